"""The integration suite on every torch that is promised: builds an environment for each, one at a time, runs the same
tests in each, and writes docs/measured/compatibility.md.

    python scripts/matrix.py --write docs/measured/compatibility.md
    python scripts/matrix.py --only 2.13.0/3.11 --ready /opt/envs

An environment takes about 5 GB of disk; those in the folder given by --ready are taken as they are. Results are kept
in the folder as they come (``results.json``), so that a later call for one column, or for one part of the suite, leaves
the others.
"""

from __future__ import annotations

import argparse
import ast
import collections
import datetime
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time
import xml.etree.ElementTree
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))

from _shared import dated

#: torch, and the Python to run it with.
COLUMNS = [("2.6.0", "3.11"), ("2.9.1", "3.12"), ("2.11.0", "3.12"), ("2.13.0", "3.11"), ("2.13.0", "3.13"),
           ("2.15.0", "3.12")]
PACKAGES = ["hypothesis", "markdown-it-py", "numpy", "pytest", "pytest-timeout", "pexpect", "psutil", "rich"]
#: Parts of the suite, and what is tried there, in words for the page.
SUITES = {
    "tests/test_artefacts.py": "each artefact", "tests/test_warm_cache.py": "torch's caches, warm against cold",
    "tests/test_prepare_debug.py": "a block and its dump", "tests/test_full_code.py": "full code",
    "tests/test_debugging.py": "`debug()`",
    "tests/test_faults.py": "faults: torch's names gone, our own errors, full disks",
    "tests/test_processes.py": "ranks, workers, killed processes", "tests/test_report.py": "views of records alone",
    "tests/test_trace.py": "logs of `TORCH_TRACE`", "tests/test_logs.py": "`install()`",
    "tests/test_old_names.py": "names of depyf 0.20", "tests/test_optimization.py": "the dispatcher class",
    "tests/test_doctor.py": "`depyf doctor`", "tests/capture": "capture, private names of torch",
    "tests/torch_text": "texts of torch, read", "tests/records": "records", "tests/provenance": "provenance",
    "tests/link": "breakpoints, stepping, profiles, memory", "tests/watch": "`stop_on`",
    "tests/views": "index, guards, ranks",
    "tests/cli": "the command, `depyf run`"}
#: Tests of these names are left out of all columns, for time: they run a C++ compiler for a minute, or start torch
#: many times for what others of their part try, too. The rest takes some minutes for a torch, these longer.
LEFT_OUT = ["inductor", "kernels_lead_to_nodes", "test_the_same_compilations",
            "test_files_that_the_system_refuses", "test_does_not_hang", "test_each_function_of_ours",
            "test_a_rank_without_records",
            "test_source_follows", "test_while_prepare_debug_is_on", "test_threads_and_a_set_up",
            "test_under_plus_dynamo", "test_silent_when",
            "test_generated_module", "test_names_of_the_transformed", "test_quitting_the_debugger",
            "test_under_python_m_pdb", "test_the_profile_is_the_same", "test_a_chain_of_ten_breaks",
            "test_real_runs", "test_a_function_that_was_skipped_and_is_compiled", "test_what_there_is_is_written",
            "test_what_is_written_can_be_chosen", "test_a_program_that_compiles_nothing", "test_pytest",
            "test_torchrun", "test_a_directory_that_cannot_be_written"]

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
    result = {}
    ask = "import sys, importlib.metadata as m; print(m.version('torch').split('+')[0], '%d.%d' % sys.version_info[:2])"
    for interpreter in sorted(folder.glob("*/bin/python")):
        done = subprocess.run([str(interpreter), "-c", ask], capture_output=True, text=True)
        if done.returncode == 0:
            result["/".join(done.stdout.split())] = str(interpreter.parents[1])
    return result


def environment(torch: str, python: str, folder: pathlib.Path, given: dict[str, str]) -> pathlib.Path:
    """The interpreter of a column's environment, built if it is not there.

    Raises:
        RuntimeError: it cannot be built; the message says why.
    """
    result = given.get(f"{torch}/{python}")
    if result is not None:
        return pathlib.Path(result) / "bin" / "python"
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
    paths = sorted(pathlib.Path.home().glob(f".pyenv/versions/{python}.*/bin/python"))
    return str(paths[-1]) if paths else shutil.which(f"python{python}")


def run(interpreter: pathlib.Path, suites: list[str], select: str, limit: float) -> dict[str, Any]:
    """Runs the suites: ``{"parts": {part: what its tests did}, "lacks": [...]}``; no ``lacks`` where nobody asked."""
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.xml"
        command = [str(interpreter), "-m", "pytest", "-q", "-p", "no:cacheprovider",
                   "--continue-on-collection-errors", f"--junitxml={report}", *suites,
                   *(["-k", select] if select else [])]
        try:
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=limit,
                                  env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "DEPYF_TEST_ONE_OF": "1"})
            tail = (done.stdout + done.stderr)[-3000:]
        except subprocess.TimeoutExpired:
            tail = f"stopped after {limit:.0f} seconds"
        result = read(report) if report.exists() else {
            "parts": {part: {**_nothing(), "failed": [tail]} for part in suites}}
    for part in result["parts"].values():
        part |= {"date": datetime.date.today().isoformat(), "select": select}
    return result


def _nothing() -> dict[str, Any]:
    return {"counts": {"passed": 0, "failed": 0, "skipped": 0}, "tests": {}, "failed": [], "skipped": []}


def read(report: pathlib.Path) -> dict[str, Any]:
    """The results in a JUnit report."""
    parts: dict[str, dict[str, Any]] = {}
    tree = xml.etree.ElementTree.parse(report)
    for case in tree.iter("testcase"):
        outcome, why = "passed", ""
        for child in case:
            if child.tag in ("failure", "error", "skipped"):
                outcome = "skipped" if child.tag == "skipped" else "failed"
                why = _reason(child)
        name = case.get("name") or ""
        # (A file that cannot be imported has no class, and its own name.)
        file = (case.get("classname") or name).replace(".", "/") + ".py"
        part = parts.setdefault(next((each for each in SUITES if file.startswith(each)), file), _nothing())
        part["counts"][outcome] += 1
        if name in ROWS.values():
            part["tests"][name] = (outcome, why)
        if outcome == "failed":
            part["failed"].append(f"{file}::{name}: {why}")
        if outcome == "skipped":
            part["skipped"].append(why)
    lacking = [str(each.get("value")) for each in tree.iter("property") if each.get("name") == "lacks"]
    return {"parts": parts, **({"lacks": lacking} if "tests/test_artefacts.py" in parts else {})}


def _reason(outcome: xml.etree.ElementTree.Element) -> str:
    """Why a test did not pass, in one line: what was said, and of a plain ``assert`` the line of the test."""
    text = (outcome.get("message") or "").split("\n")[0].strip()
    if text == "collection skipped":  # of a whole file
        text = str(ast.literal_eval(outcome.text or '("", 0, "")')[2]).removeprefix("Skipped: ")
    if outcome.tag != "skipped" and text.removeprefix("AssertionError: ").startswith("assert "):
        line = next((each[1:].strip() for each in (outcome.text or "").splitlines() if each.startswith("> ")), "")
        return f"`{line}`" if line else text
    return text


def document(results: dict[str, Any], command: str) -> str:
    """docs/measured/compatibility.md."""
    heads = [f"{torch} / {python}" for torch, python in COLUMNS]
    keys = [f"{torch}/{python}" for torch, python in COLUMNS]
    columns: dict[str, dict[str, Any]] = {key: results.get(key, {}).get("parts", {}) for key in keys}
    notes: list[str] = []
    lines = [
        "# Compatibility", "",
        f"{dated()}. Command: `{command}` (`make matrix`). Columns: torch / Python, each an environment of its own, "
        "one after the other. \"partly\": without what a torch lacks, which is listed below.", "",
        "## Artefacts", "",
        "A cell is the result of one test that makes the artefact and looks at it (tests/test_artefacts.py, "
        "tests/test_warm_cache.py).", "",
        "| artefact | " + " | ".join(heads) + " |", "| --- |" + " --- |" * len(heads)]
    for row, test in ROWS.items():
        cells = []
        for key in keys:
            outcome, why = next((part["tests"][test] for part in columns[key].values() if test in part["tests"]),
                                ("not run", ""))
            cell = {"passed": "yes", "failed": "no", "skipped": "partly"}.get(outcome, outcome)
            if why:
                if why not in notes:
                    notes.append(why)
                cell += f" ({notes.index(why) + 1})"
            cells.append(cell)
        lines.append(f"| {row} | " + " | ".join(cells) + " |")
    lines += ["", *(f"{number}. {note}" for number, note in enumerate(notes, 1))]
    lines += ["", "## Tests", "", "How many passed in each part; skipped ones ask for what that torch lacks, or for "
              "what is not on the machine.", "",
              "| part | " + " | ".join(heads) + " |", "| --- |" + " --- |" * len(heads)]
    for part, what in SUITES.items():
        cells = [_tally([column[part]] if part in column else []) for column in columns.values()]
        lines.append(f"| {what} ({part}) | " + " | ".join(cells) + " |")
    lines.append("| all | " + " | ".join(_tally(list(column.values())) for column in columns.values()) + " |")
    dates = [sorted({part["date"] for part in column.values()}) for column in columns.values()]
    lines.append("| date | " + " | ".join(
        " to ".join(each[:: max(1, len(each) - 1)]) or "not run" for each in dates) + " |")
    lines += ["", "## What each lacks", "", "By `depyf doctor`, on the same environments.", ""]
    for key in keys:
        lacking = results.get(key, {}).get("lacks")
        missing = "not run" if lacking is None else "nothing" if not lacking else ""
        lines.append(f"- torch {key.replace('/', ', Python ')}: {missing}".rstrip())
        lines += [f"  - {each}" for each in lacking or ()]
    lines += ["", "## What failed, and what was skipped", ""]
    for key, column in columns.items():
        lines.append(f"- torch {key.replace('/', ', Python ')}" + ("" if column else ": not run"))
        lines += [f"  - failed: {each}" for part in column.values() for each in part["failed"]]
        skipped = collections.Counter(each for part in column.values() for each in part["skipped"])
        lines += [f"  - {count} skipped: {why}" for why, count in sorted(skipped.items())]
    lines += ["", "## What was run", ""]
    runs: dict[str, list[str]] = {}
    for key, column in columns.items():
        for select in {part["select"] for part in column.values()}:
            there = [part for part in SUITES if column.get(part, {}).get("select") == select]
            text = " ".join(["pytest", *there, *(["-k", f'"{select}"'] if select else [])])
            runs.setdefault(text, []).append(key.replace("/", " / "))
    for text, where in runs.items():
        lines += ["In each the same:" if len(where) == len(keys) else f"In {', '.join(where)}:", "",
                  "    " + " \\\n        ".join(textwrap.wrap(text, 108)), ""]
    lines += ["", "Left out are parts that need more than torch (a browser, transformers), those of the decompiler "
              "alone and, for time, tests that run a C++ compiler for a minute or start torch many times for what "
              "others try, too (`--select ''` runs those as well)."]
    return "\n".join(lines).replace("\n\n\n", "\n\n") + "\n"


def _tally(parts: list[dict[str, Any]]) -> str:
    """``35``, ``33, 2 skipped``, ``**1 failed**, 34``."""
    if not parts:
        return "-"
    passed, failed, skipped = (sum(part["counts"][what] for part in parts) for what in ("passed", "failed", "skipped"))
    return ", ".join([*([f"**{failed} failed**"] if failed else []), str(passed),
                      *([f"{skipped} skipped"] if skipped else [])])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / ".matrix", help="where environments are built")
    parser.add_argument("--env", action="append", default=[], metavar="TORCH/PYTHON=PATH",
                        help="an environment that is there already")
    parser.add_argument("--ready", type=pathlib.Path, metavar="FOLDER", help="a folder of environments that are there")
    parser.add_argument("--only", action="append", default=[], metavar="TORCH/PYTHON", help="these columns only")
    parser.add_argument("--suite", action="append", default=[], metavar="PATH", help="these tests instead of all")
    parser.add_argument("--select", default=f"not ({' or '.join(LEFT_OUT)})", metavar="EXPRESSION",
                        help="only tests whose names fit (pytest's -k); '' for all")
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
        begun = time.monotonic()
        result = run(interpreter, given.suite or list(SUITES), given.select, given.limit)
        known = results.setdefault(key, {"parts": {}})
        known["parts"] |= result.pop("parts")
        known |= result
        store.write_text(json.dumps(results, indent=1))
        print(f"{_tally(list(known['parts'].values()))}, in {time.monotonic() - begun:.0f} s")
        failed += sum(len(part["failed"]) for part in known["parts"].values())
        if given.drop:
            shutil.rmtree(given.folder / f"torch{torch}-python{python}", ignore_errors=True)
    if given.write:
        given.write.write_text(document(results, "python scripts/matrix.py --write docs/measured/compatibility.md"))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
