"""Other people's tests, plain and inside ``prepare_debug``: what passes plain has to pass inside.

    python benchmarks/inside.py FOLDER [--timeout S] [--jobs 1] [--write FILE] [-- pytest arguments]

Each test file of the folder (``test_*.py``; pytest or unittest) runs twice with pytest in a process of its own, the
second time with every single test inside ``depyf.prepare_debug`` (a fresh directory each; what a test's own set-up
does is outside). Made for torch's own ``test/dynamo``, which its wheel does not hold: give the folder of a checkout.
``benchmarks/watched`` is a folder of our own.

Printed are the counts and each test that is lost: it passes plain, and inside it fails, is skipped, or takes its
process with it. A lost test is run again alone, both ways, up to twice, so that a test that fails by chance is not
counted.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml
from collections.abc import Iterator
from datetime import date
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parent.parent
PLUGIN = "inside"  # this file is the plugin, too


# --- the plugin -------------------------------------------------------------------------------------
def _watching() -> str:
    return os.environ.get("DEPYF_INSIDE", "")


try:
    import pytest
except ImportError:  # the module is also read by those who only want its documentation
    pass
else:
    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(item: Any) -> Iterator[None]:
        """The body of a test, inside the context manager."""
        folder = _watching()
        if not folder:
            return (yield)
        import depyf

        with tempfile.TemporaryDirectory(dir=folder) as dump, depyf.prepare_debug(dump, files="now"):
            return (yield)


# --- the runner -------------------------------------------------------------------------------------
def run(target: str, inside: bool, timeout: int, extra: list[str]) -> dict[str, str]:
    """``{test: "passed" | "failed" | "skipped" | "died"}`` of one file or one test."""
    with tempfile.TemporaryDirectory(prefix="depyf_inside_") as folder:
        report = os.path.join(folder, "report.xml")
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(
            [str(ROOT / "src"), str(ROOT / "benchmarks"), *filter(None, [os.environ.get("PYTHONPATH")])])}
        environment["DEPYF_INSIDE"] = folder if inside else ""
        command = [sys.executable, "-m", "pytest", "-q", "-p", PLUGIN, "-p", "no:cacheprovider", "-o", "addopts=",
                   "-o", "junit_family=xunit1", f"--junitxml={report}", f"--timeout={timeout}", target, *extra]
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors="replace", cwd=os.path.dirname(os.path.abspath(target.split("::")[0])))
        if done.returncode not in (0, 1, 5) or not os.path.exists(report):
            # A death of the process, or a file that cannot even be collected.
            return {target: f"died ({done.returncode}): {done.stdout[-300:]}"}
        result = {}
        for case in xml.parse(report).iter("testcase"):
            kinds = {child.tag for child in case}
            outcome = "failed" if kinds & {"failure", "error"} else "skipped" if "skipped" in kinds else "passed"
            result[f"{case.get('classname')}::{case.get('name')}"] = outcome
        return result


def lost_tests(plain: dict[str, str], inside: dict[str, str]) -> list[str]:
    return [test for test, outcome in plain.items() if outcome == "passed" and inside.get(test) != "passed"]


def compare(file: str, timeout: int, extra: list[str]) -> tuple[dict[str, str], dict[str, str], list[str]]:
    """Outcomes plain and inside, and what is lost even when it is tried again."""
    plain = run(file, False, timeout, extra)
    inside = run(file, True, timeout, extra)
    lost = lost_tests(plain, inside)
    for _ in range(2):
        for test in list(lost):
            chosen = [*extra, "-k", test.rpartition("::")[2].split("[")[0]]
            if test not in lost_tests(run(file, False, timeout, chosen), run(file, True, timeout, chosen)):
                lost.remove(test)
    return plain, inside, lost


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--timeout", type=int, default=120, help="seconds for one test")
    parser.add_argument("--write", metavar="FILE", help="add the result to this file, as a line of JSON")
    parser.add_argument("extra", nargs="*", help="arguments for pytest, after --")
    chosen = parser.parse_args()
    folder = pathlib.Path(chosen.folder).absolute()
    files = sorted(folder.rglob("test_*.py")) if folder.is_dir() else [folder]
    if not files:
        raise SystemExit(f"{folder} holds no test_*.py")
    passed = total = 0
    all_lost = []
    for file in files:
        plain, inside, lost = compare(str(file), chosen.timeout, chosen.extra)
        total += len(plain)
        passed += sum(outcome == "passed" for outcome in plain.values())
        all_lost += [f"{file.name}::{test}: {inside.get(test, 'did not run')}" for test in lost]
        print(f"{file.name}: {len(plain)} tests, {sum(o == 'passed' for o in plain.values())} pass plain, "
              f"{len(lost)} of them lost inside", flush=True)
    for test in all_lost:
        print(f"LOST {test}")
    print(f"{total} tests, {passed} pass plain, {len(all_lost)} of them fail inside prepare_debug")
    if chosen.write:
        with open(chosen.write, "a", encoding="utf-8") as out:
            out.write(json.dumps({"date": str(date.today()), "folder": str(folder), "tests": total,
                                  "pass_plain": passed, "lost": all_lost}) + "\n")
    raise SystemExit(bool(all_lost))


if __name__ == "__main__":
    main()
