"""The integration suite on every torch that is promised: builds an environment for each, one at a time, runs the
tests that need torch, and writes docs/compatibility.md.

    python scripts/matrix.py --write docs/compatibility.md
    python scripts/matrix.py --only 2.13.0/3.11 --ready /opt/envs

An environment takes about 5 GB of disk; those in the folder given by --ready are taken as they are. Results are kept
in the folder as they come (``results.json``), so that a later call for one column leaves the others.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parent.parent
#: torch, and the Python to run it with.
COLUMNS = [("2.6.0", "3.11"), ("2.9.1", "3.12"), ("2.11.0", "3.12"), ("2.13.0", "3.11"), ("2.13.0", "3.13"),
           ("2.15.0", "3.12")]
PACKAGES = ["numpy", "pytest", "pytest-timeout", "pexpect", "psutil"]
SUITES = ["tests/test_artefacts.py", "tests/test_warm_cache.py", "tests/test_prepare_debug.py", "tests/test_trace.py",
          "tests/test_full_code.py", "tests/test_debugging.py", "tests/test_logs.py", "tests/test_doctor.py",
          "tests/test_faults.py", "tests/test_old_names.py", "tests/test_optimization.py", "tests/test_processes.py",
          "tests/link", "tests/capture", "tests/zoo"]
#: Rows of the table, and the test that each is the result of.
ROWS = {
    **{name: f"test_artefact[{name}]" for name in (
        "transformed code", "guards", "captured graph", "AOT graphs", "kernels", "breaks", "recompiles", "symbols",
        "metrics")},
    "warm cache": "test_a_second_process_writes_the_same_files",
    **{name: f"test_artefact[{name}]" for name in ("linking (breakpoints)", "debug()", "full code")},
}


def ready(folder: pathlib.Path) -> dict[str, str]:
    """``{"torch/python": path}`` of the environments in a folder."""
    found = {}
    ask = "import sys, importlib.metadata as m; print(m.version('torch').split('+')[0], '%d.%d' % sys.version_info[:2])"
    for interpreter in sorted(folder.glob("*/bin/python")):
        done = subprocess.run([str(interpreter), "-c", ask], capture_output=True, text=True)
        if done.returncode == 0:
            found["/".join(done.stdout.split())] = str(interpreter.parents[1])
    return found


def environment(torch: str, python: str, folder: pathlib.Path, given: dict[str, str]) -> pathlib.Path:
    """The interpreter of a column's environment, built if it is not there.

    Raises:
        RuntimeError: it cannot be built; the message says why.
    """
    found = given.get(f"{torch}/{python}")
    if found is not None:
        return pathlib.Path(found) / "bin" / "python"
    place = folder / f"torch{torch}-python{python}"
    interpreter = place / "bin" / "python"
    if (place / ".ready").exists():
        return interpreter
    base = _base(python)
    if base is None:
        raise RuntimeError(f"Python {python} is not on this machine")
    shutil.rmtree(place, ignore_errors=True)
    for command in ([base, "-m", "venv", str(place)],
                    # torch comes first and alone, so that nothing else chooses its version
                    [str(interpreter), "-m", "pip", "install", "-q", "--no-cache-dir", f"torch=={torch}"],
                    [str(interpreter), "-m", "pip", "install", "-q", "--no-cache-dir", *PACKAGES]):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)} failed:\n{(done.stdout + done.stderr)[-2000:]}")
    (place / ".ready").touch()
    return interpreter


def _base(python: str) -> str | None:
    found = sorted(pathlib.Path.home().glob(f".pyenv/versions/{python}.*/bin/python"))
    return str(found[-1]) if found else shutil.which(f"python{python}")


def run(interpreter: pathlib.Path, suites: list[str], select: str, limit: float) -> dict[str, Any]:
    """Runs the suites; what each test of a row did, and how many did what."""
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.xml"
        command = [str(interpreter), "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", *suites,
                   *(["-k", select] if select else [])]
        try:
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=limit,
                                  env={**os.environ, "PYTHONPATH": str(ROOT / "src")})
            tail = (done.stdout + done.stderr)[-3000:]
        except subprocess.TimeoutExpired:
            tail = f"stopped after {limit:.0f} seconds"
        result = read(report) if report.exists() else {"counts": {}, "tests": {}, "failed": [tail], "lacks": None}
    result |= {"seconds": round(time.monotonic() - begun), "date": datetime.date.today().isoformat(),
               "tests_run": " ".join([*suites, *(["-k", select] if select else [])])}
    return result


def read(report: pathlib.Path) -> dict[str, Any]:
    """The results in a JUnit report."""
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    tests: dict[str, tuple[str, str]] = {}
    failed = []
    tree = xml.etree.ElementTree.parse(report)
    for case in tree.iter("testcase"):
        outcome, why = "passed", ""
        for child in case:
            if child.tag in ("failure", "error", "skipped"):
                outcome = "skipped" if child.tag == "skipped" else "failed"
                why = (child.get("message") or "").split("\n")[0]
        counts[outcome] += 1
        name = case.get("name") or ""
        if name in ROWS.values():
            tests[name] = (outcome, why)
        if outcome == "failed":
            failed.append(f"{(case.get('classname') or '').replace('.', '/')}.py::{name}: {why}")
    found = [str(each.get("value")) for each in tree.iter("property") if each.get("name") == "lacks"]
    return {"counts": counts, "tests": tests, "failed": failed, "lacks": found}


def document(results: dict[str, Any], command: str) -> str:
    """docs/compatibility.md."""
    heads = [f"{torch} / {python}" for torch, python in COLUMNS]
    keys = [f"{torch}/{python}" for torch, python in COLUMNS]
    notes: list[str] = []
    lines = [
        "# Compatibility", "",
        f"Generated by `{command}` (`make matrix`). A cell is the result of one test that makes the artefact and looks "
        "at it (tests/test_artefacts.py, tests/test_warm_cache.py). Columns: torch / Python.", "",
        "| artefact | " + " | ".join(heads) + " |", "| --- |" + " --- |" * len(heads)]
    for row, test in ROWS.items():
        cells = []
        for key in keys:
            outcome, why = results.get(key, {}).get("tests", {}).get(test, ("not run", ""))
            cell = {"passed": "yes", "failed": "no", "skipped": "partly"}.get(outcome, outcome)
            if why:
                note = f"{key.replace('/', ' / ')}, {row}: {why}"
                if note not in notes:
                    notes.append(note)
                cell += f" ({notes.index(note) + 1})"
            cells.append(cell)
        lines.append(f"| {row} | " + " | ".join(cells) + " |")
    for what in ("passed", "failed", "skipped"):
        cells = [str(results.get(key, {}).get("counts", {}).get(what, "-")) for key in keys]
        lines.append(f"| tests {what} | " + " | ".join(cells) + " |")
    lines.append("| date | " + " | ".join(results.get(key, {}).get("date", "not run") for key in keys) + " |")
    lines += ["", *(f"{number}. {note}" for number, note in enumerate(notes, 1))]
    lines += ["", "## What each lacks", "", "By `depyf doctor`, on the same environments.", ""]
    for key in keys:
        found = results.get(key, {}).get("lacks")
        said = "not run" if found is None else "nothing" if not found else ""
        lines.append(f"- torch {key.replace('/', ', Python ')}: {said}".rstrip())
        lines += [f"  - {each}" for each in found or ()]
    lines += ["", "## What was run", ""]
    for key in keys:
        result = results.get(key)
        if result:
            head = f"- torch {key.replace('/', ', Python ')} ({result['seconds']} s): "
            lines.append(head + result["tests_run"])
            lines += [f"  - failed: {each}" for each in result["failed"]]
    return "\n".join(lines).replace("\n\n\n", "\n\n") + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / ".matrix", help="where environments are built")
    parser.add_argument("--env", action="append", default=[], metavar="TORCH/PYTHON=PATH",
                        help="an environment that is there already")
    parser.add_argument("--ready", type=pathlib.Path, metavar="FOLDER", help="a folder of environments that are there")
    parser.add_argument("--only", action="append", default=[], metavar="TORCH/PYTHON", help="these columns only")
    parser.add_argument("--suite", action="append", default=[], metavar="PATH", help="these tests instead of all")
    parser.add_argument("--select", default="", metavar="EXPRESSION", help="only tests whose names fit (pytest's -k)")
    parser.add_argument("--limit", type=float, default=7200.0, help="seconds for a column")
    parser.add_argument("--drop", action="store_true", help="remove each environment that was built, once it has run")
    parser.add_argument("--write", type=pathlib.Path, metavar="PATH", help="write the table there")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    there = {**(ready(given.ready) if given.ready else {}), **dict(each.split("=", 1) for each in given.env)}
    store = given.folder / "results.json"
    results = json.loads(store.read_text()) if store.exists() else {}
    failed = 0
    for torch, python in COLUMNS:
        key = f"{torch}/{python}"
        if given.only and key not in given.only:
            continue
        print(f"torch {torch}, Python {python}: ", end="", flush=True)
        try:
            interpreter = environment(torch, python, given.folder, there)
        except RuntimeError as error:
            print(error)
            failed += 1
            continue
        results[key] = run(interpreter, given.suite or SUITES, given.select, given.limit)
        store.write_text(json.dumps(results, indent=1))
        counts = results[key]["counts"]
        print(", ".join(f"{count} {what}" for what, count in counts.items()) or results[key]["failed"][0])
        failed += counts.get("failed", 1)
        if given.drop:
            shutil.rmtree(given.folder / f"torch{torch}-python{python}", ignore_errors=True)
    if given.write:
        given.write.write_text(document(results, "python scripts/matrix.py --write docs/compatibility.md"))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
