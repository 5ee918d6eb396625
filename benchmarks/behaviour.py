"""CPython's own regression tests, run on a standard library that was decompiled (``make behaviour``).

    python benchmarks/behaviour.py [--python PATH] [--folder DIR] [--jobs N] [--timeout S] [--write FILE] [TEST ...]

The library of the interpreter is copied twice below ``folder``: as it is, and with each module replaced by its
decompiled text (``test`` and other test packages stay, they are what judges).  ``python -m test`` runs in both, and
what passes with the original has to pass with the decompiled one.  Tests that read the library's source text, its
comments or its line numbers cannot: they are ``SOURCE_TESTS``, with the reason.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import re
import shutil
import subprocess
import sys

#: Tests that read source text or line numbers of library modules, and what they read.
SOURCE_TESTS: dict[str, str] = {
    "test_inspect": "getsource, line numbers and comments of library functions",
    "test_pdb": "listings with line numbers of bdb and pdb",
    "test_tabnanny": "runs on files of the library",
    "test_lib2to3": "refactors the library's files",
    "test_pyclbr": "compares what it reads in the files with line numbers",
    "test_idle": "needs a screen",
    "test_tools": "needs the source tree of CPython",
}

_DECOMPILE = """
import json, os, sys, warnings
warnings.simplefilter("ignore")
from depyf.decompiler import decompile_code
for line in sys.stdin:
    source, target = json.loads(line)
    try:
        with open(source, "rb") as file:
            code = compile(file.read(), source, "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        print(json.dumps([source, "not Python"]), flush=True)
        continue
    found = decompile_code(code)
    with open(target, "w", encoding="utf-8") as file:
        file.write("# -*- coding: utf-8 -*-\\n" + found.text)
    print(json.dumps([source, found.fidelity.value]), flush=True)
"""


def copy_library(library: str, home: str) -> str:
    """A prefix that an interpreter can be started with (``PYTHONHOME``)."""
    target = os.path.join(home, "lib", os.path.basename(library))
    if os.path.isdir(target):
        shutil.rmtree(target)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    shutil.copytree(library, target, ignore=shutil.ignore_patterns("site-packages", "__pycache__"), symlinks=True)
    os.makedirs(os.path.join(target, "site-packages"))
    return target


def decompile_library(python: str, library: str, target: str) -> dict[str, int]:
    pairs = []
    for folder, folders, names in os.walk(library):
        folders[:] = [f for f in folders if f not in ("site-packages", "__pycache__", "test", "tests", "idle_test",
                                                      "lib2to3", "lib-dynload")]
        for name in names:
            if name.endswith(".py") and not name.startswith("_sysconfigdata"):
                source = os.path.join(folder, name)
                pairs.append((source, os.path.join(target, os.path.relpath(source, library))))
    here = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "src")
    done = subprocess.run([python, "-c", _DECOMPILE], input="\n".join(map(json.dumps, pairs)), text=True,
                          stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": here}, check=True)
    counts: dict[str, int] = {}
    for line in done.stdout.splitlines():
        fidelity = json.loads(line)[1]
        counts[fidelity] = counts.get(fidelity, 0) + 1
    return counts


def run_tests(python: str, home: str, tests: list[str], jobs: int, timeout: int) -> dict[str, str]:
    """``{test: "passed" | "failed" | "skipped" | ...}``."""
    command = [python, "-m", "test", f"-j{jobs}", "--timeout", str(timeout), *tests]
    if not tests:
        command += ["-x", *SOURCE_TESTS]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                          env={**environment, "PYTHONHOME": home}, cwd=home)
    with open(os.path.join(home, "tests.log"), "w", encoding="utf-8") as file:
        file.write(done.stdout)
    found: dict[str, str] = {}
    for line in done.stdout.splitlines():
        match = re.match(r"\S+ (?:load avg: \S+ )?\[\s*\d+/\d+(?:/\d+)?\] (\w[\w.]*) (.*)", line)
        if match:
            word = match[2].split()[0].strip("(") if match[2].split() else "?"
            found[match[1]] = {"passed": "passed", "skipped": "skipped"}.get(word, match[2][:60])
    if not found:
        raise SystemExit(f"no test ran with PYTHONHOME={home}:\n" + done.stdout[-2000:])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--folder", default="/tmp/depyf_behaviour")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--timeout", type=int, default=600, help="seconds for one test file")
    parser.add_argument("--write", metavar="FILE")
    parser.add_argument("tests", nargs="*")
    chosen = parser.parse_args()
    asked = "import os, sys, sysconfig; print(os.path.realpath(sys.executable)); " \
            "print(sysconfig.get_path('stdlib')); print(sys.version.split()[0])"
    python, library, version = subprocess.run(
        [chosen.python, "-c", asked], stdout=subprocess.PIPE, text=True, check=True).stdout.split("\n")[:3]
    results = {}
    for kind in ("original", "decompiled"):
        home = os.path.join(chosen.folder, version, kind)
        target = copy_library(library, home)
        if kind == "decompiled":
            fidelities = decompile_library(python, library, target)
            print(f"{version}: modules {fidelities}", flush=True)
        results[kind] = run_tests(python, home, chosen.tests, chosen.jobs, chosen.timeout)
        passed = sum(result == "passed" for result in results[kind].values())
        print(f"{version}: {kind}: {passed} of {len(results[kind])} test files pass", flush=True)
    lost = {test: results["decompiled"].get(test, "did not run") for test, result in results["original"].items()
            if result == "passed" and results["decompiled"].get(test) != "passed"}
    for test, result in lost.items():
        print(f"LOST {test}: {result}")
    if chosen.write:
        with open(chosen.write, "a", encoding="utf-8") as file:
            file.write(json.dumps({"date": str(datetime.date.today()), "python": version, "modules": fidelities,
                                   "passed": [sum(r == "passed" for r in results[k].values()) for k in results],
                                   "lost": lost}) + "\n")
    raise SystemExit(bool(lost))


if __name__ == "__main__":
    main()
