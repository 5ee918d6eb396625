"""CPython's own regression tests, run on a standard library that was decompiled (``make behaviour``).

    python benchmarks/behaviour.py [--python PATH] [--folder DIR] [--long] [--timeout S] [--resume]
                                    [--write FILE] [TEST ...]

The library of the interpreter is copied twice below ``folder``: as it is, and with each module replaced by its
decompiled text (``test`` and other test packages stay, they are what judges).  Each copy is a whole installation with
its own interpreter, so that a child process that ignores the environment runs on the same copy; no frozen module
stands in for a file.  ``python -m test`` runs each test file in both, one after the other, without extra resources (no
network, no screen).

Each single test is compared, by the report that ``--junit-xml`` makes: what passes with the original has to pass with
the decompiled one, also in a file that fails on this machine with both.  A file whose tests ``unittest`` does not run
counts as one test.  A lost test is repeated in both, twice; it is lost when it never passes on the decompiled library.
Tests that read the library's source text, its comments or its line numbers cannot pass: they are ``SOURCE_TESTS``, with
the reason.  ``LONG_TESTS`` are left out unless they are named or ``--long`` is given.

Results are kept in ``folder/VERSION/results.jsonl``; ``--resume`` goes on there, and ``--write`` puts a table of all
versions in the folder between the comments ``behaviour`` of a file.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import fnmatch
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Iterator
from typing import Any

from _shared import dated, table

#: Tests that compare source text, comments or line numbers of library modules: a whole file by its name, a single test
#: by the end of its id.  ``*`` stands for anything.
SOURCE_TESTS: dict[str, str] = {
    "test_doctest.test_unicode": "expects a source line of doctest.py in a traceback",
    "test_imp.ImportTests.test_issue1267": "compares the first line of tokenize.py",
    "test_pdb.test_pdb_return_to_different_file": "expects the text of a line of pprint.py",
    "test_pdb.test_pdb_breakpoints_preserved_across_interactive_sessions": "expects the line of a function of pdb.py",
}

#: Files that take too long to be run at each measurement, and what they do in that time.
LONG_TESTS: dict[str, str] = {
    "test_multiprocessing_fork*": "starts hundreds of processes and waits for them (fork and forkserver)",
    "test_multiprocessing_spawn*": "the same with new interpreters",
    "test_concurrent_futures*": "the same with pools",
    "test_subprocess": "hundreds of child interpreters",
    "test_peg_generator*": "compiles parsers in C",
    "test_gdb*": "starts a debugger for each test",
    "test_venv": "installs pip again and again",
    "test_tools": "runs the tools of CPython's source tree",
}

KINDS = ("original", "decompiled")
REPEATS = 2
_NOT_XML = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]|&#(?:[0-8]|1[124-9]|2[0-9]|3[01]);")
MARKS = ("<!-- behaviour -->\n", "<!-- /behaviour -->")
#: Folders of tests, of programs that are no library, and of files that are not for this interpreter.
NOT_LIBRARY = ("site-packages", "__pycache__", "test", "tests", "idle_test", "lib-dynload")

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
        file.write(found.text)
    print(json.dumps([source, found.fidelity.value]), flush=True)
"""


@dataclasses.dataclass(frozen=True)
class Interpreter:
    """What the copies are made of."""

    version: str
    executable: str
    library: str
    prefix: str

    @classmethod
    def ask(cls, python: str) -> Interpreter:
        asked = "import os, sys, sysconfig; print(sys.version.split()[0]); print(os.path.realpath(sys.executable)); " \
                "print(sysconfig.get_path('stdlib')); print(sys.base_prefix)"
        done = subprocess.run([python, "-I", "-c", asked], stdout=subprocess.PIPE, text=True, check=True)
        return cls(*done.stdout.split("\n")[:4])


@dataclasses.dataclass
class Run:
    """Test files on one copy: ``verdict`` of all, ``{test id: outcome}``, and which files were skipped whole."""

    verdict: str
    seconds: float
    tests: dict[str, str]
    skipped: list[str] = dataclasses.field(default_factory=list)

    def passed(self) -> set[str]:
        if self.tests:
            return {name for name, outcome in self.tests.items() if outcome == "passed"}
        return {"(file)"} if self.verdict == "passed" else set()


def install(interpreter: Interpreter, home: str) -> str:
    """A copy of the interpreter with its library; the path of its executable."""
    name = os.path.basename(interpreter.library)
    target = os.path.join(home, "lib", name)
    if os.path.isdir(home):
        shutil.rmtree(home)
    os.makedirs(os.path.join(home, "bin"))
    shutil.copytree(interpreter.library, target, ignore=shutil.ignore_patterns("site-packages", "__pycache__"),
                    symlinks=True)
    os.makedirs(os.path.join(target, "site-packages"))
    include = os.path.join(interpreter.prefix, "include")
    if os.path.isdir(include):
        os.symlink(include, os.path.join(home, "include"))
    executable = os.path.join(home, "bin", name)
    shutil.copy2(interpreter.executable, executable)
    os.symlink(name, os.path.join(home, "bin", "python3"))
    library = subprocess.run([executable, "-I", "-c", "import os; print(os.path.dirname(os.__file__))"],
                             stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    if not os.path.samefile(library, target):
        raise SystemExit(f"{executable} uses the library in {library}")
    return executable


def decompile_library(interpreter: Interpreter, target: str) -> dict[str, int]:
    """Writes the decompiled modules over those in ``target``; how many there are of each fidelity."""
    pairs = []
    for folder, folders, names in os.walk(interpreter.library):
        folders[:] = [f for f in folders if f not in NOT_LIBRARY]
        for name in names:
            if name.endswith(".py") and not name.startswith("_sysconfigdata"):
                source = os.path.join(folder, name)
                pairs.append((source, os.path.join(target, os.path.relpath(source, interpreter.library))))
    directory = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "src")
    done = subprocess.run(
        [interpreter.executable, "-c", _DECOMPILE], input="\n".join(map(json.dumps, pairs)), text=True,
        stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": directory}, check=True)
    counts: dict[str, int] = {}
    for line in done.stdout.splitlines():
        fidelity = json.loads(line)[1]
        counts[fidelity] = counts.get(fidelity, 0) + 1
    return counts


def prepare(interpreter: Interpreter, folder: str) -> None:
    """Both copies, unless an earlier call made them."""
    ready = os.path.join(folder, "modules.json")
    if os.path.exists(ready):
        return
    for kind in KINDS:
        install(interpreter, os.path.join(folder, kind))
    counts = decompile_library(
        interpreter, os.path.join(folder, "decompiled", "lib", os.path.basename(interpreter.library)))
    with open(ready, "w", encoding="utf-8") as file:
        json.dump(counts, file)


def copy_of(interpreter: Interpreter, folder: str, kind: str) -> str:
    return os.path.join(folder, kind, "bin", os.path.basename(interpreter.library))


def _default_signals() -> None:
    # A shell starts background jobs with these ignored, and tests send them to themselves.
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def run_files(python: str, tests: list[str], timeout: int) -> Run:
    """Test files in one process; its output goes to ``logs`` of the copy, named after the first file."""
    test = tests[0]
    home = os.path.dirname(os.path.dirname(python))
    logs = os.path.join(home, "logs")
    os.makedirs(logs, exist_ok=True)
    report = os.path.join(logs, test + ".xml")
    with contextlib.suppress(FileNotFoundError):
        os.remove(report)
    # Nothing of our own environment: certificates, PYTHON* and PATH change what some tests do.
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": home, "LANG": "C.UTF-8"}
    began = time.monotonic()
    with open(os.path.join(logs, test + ".log"), "w+", encoding="utf-8", errors="replace") as log:
        process = subprocess.Popen(
            [python, "-X", "frozen_modules=off", "-m", "test", "--timeout", str(timeout), "--junit-xml", report,
             *tests],
            stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, cwd=home, env=environment,
            start_new_session=True, preexec_fn=_default_signals)
        try:
            status = str(process.wait(timeout * len(tests) + 30))
        except subprocess.TimeoutExpired:
            status = "timeout"
        # What the tests left behind must not disturb the next.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        log.seek(0)
        text = log.read()
    seconds = time.monotonic() - began
    skipped = [name for name in tests if re.search(rf"^{re.escape(name)} skipped\b", text, re.MULTILINE)]
    if skipped == tests:
        verdict = "skipped"
    elif status == "0":
        verdict = "passed"
    else:
        verdict = "timeout" if "Timeout (" in text else f"failed ({status})"
    return Run(verdict, round(seconds, 1), read_report(report), skipped)


def read_report(path: str) -> dict[str, str]:
    """``{test id: "passed" | "skipped" | "failed"}``; an id that ran twice has its worst outcome."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            # regrtest writes what tests printed, also characters that XML does not have.
            root = ElementTree.fromstring(_NOT_XML.sub("", file.read()))
    except (FileNotFoundError, ElementTree.ParseError):
        return {}
    ranks = ("passed", "skipped", "failed")
    outcomes: dict[str, str] = {}
    for case in root.iter("testcase"):
        # A test whose part failed has no name: it is missing among those that passed.
        name = case.get("name")
        if name is None:
            continue
        children = {child.tag for child in case}
        outcome = "skipped" if "skipped" in children else \
            "failed" if children & {"failure", "error", "outcome"} else "passed"
        # Addresses in ids (of tests made of functions) differ from run to run.
        name = re.sub(r"0x[0-9a-f]+", "0x", name)
        outcomes[name] = max(outcome, outcomes.get(name, outcome), key=ranks.index)
    return outcomes


def reason_of(test: str, name: str) -> str | None:
    """Why the test is no test of behaviour, where ``SOURCE_TESTS`` says so."""
    for pattern, reason in SOURCE_TESTS.items():
        if fnmatch.fnmatchcase(name, "*." + pattern) or name == "(file)" and fnmatch.fnmatchcase(test, "*" + pattern):
            return reason
    return None


def is_among(test: str, patterns: Iterable[str]) -> bool:
    short = test.removeprefix("test.")
    return any(fnmatch.fnmatchcase(short, pattern) for pattern in patterns)


def compare(pythons: dict[str, str], test: str, timeout: int) -> dict[str, Any]:
    """A test file on both copies: counts, and the tests that are lost."""
    original = run_files(pythons["original"], [test], timeout)
    # One that does not end with the original says nothing about the decompiled library.
    first = {"original": original,
             "decompiled": Run("not run", 0.0, {}) if original.verdict in ("timeout", "skipped") and not original.tests
             else run_files(pythons["decompiled"], [test], timeout)}
    wanted, got = first["original"].passed(), first["decompiled"].passed()
    missing = {name for name in wanted - got if reason_of(test, name) is None}
    unstable: set[str] = set()
    for _ in range(REPEATS):
        if not missing:
            break
        again = {kind: run_files(pythons[kind], [test], timeout).passed() for kind in KINDS}
        unstable |= (missing & again["decompiled"]) | (missing - again["original"])
        got |= missing & again["decompiled"]
        missing -= again["decompiled"]
    source = {name for name in wanted - got if reason_of(test, name) is not None}
    # A file can fail without a test of its own: when it is imported or set up.
    whole = (first["original"].verdict == "passed" != first["decompiled"].verdict) and not missing and not source \
        and not unstable
    return {
        "test": test,
        **{kind: {"verdict": run.verdict, "seconds": run.seconds, "passed": len(run.passed())}
           for kind, run in first.items()},
        "skipped": original.skipped,
        "tests": len(first["original"].tests) or 1,
        "kept": len(wanted & got),
        "lost": sorted(missing) + (["(file)"] if whole and reason_of(test, "(file)") is None else []),
        "source": sorted(source),
        "unstable": sorted(unstable),
    }


def together(pythons: dict[str, str], tests: list[str], timeout: int) -> dict[str, Any] | None:
    """Test files in one process, on both copies, judged as one; ``None`` where they have to be looked at one by one."""
    runs = {kind: run_files(pythons[kind], tests, timeout) for kind in KINDS}
    passed = {kind: run.passed() for kind, run in runs.items()}
    if any(run.verdict != "passed" for run in runs.values()) or passed["original"] != passed["decompiled"]:
        return None
    return {"test": " ".join(tests),
            **{kind: {"verdict": run.verdict, "seconds": run.seconds, "passed": len(passed[kind])}
               for kind, run in runs.items()},
            "skipped": runs["original"].skipped, "tests": len(runs["original"].tests), "kept": len(passed["original"]),
            "lost": [], "source": [], "unstable": []}


def all_tests(python: str) -> list[str]:
    done = subprocess.run([python, "-m", "test", "--list-tests"], stdout=subprocess.PIPE, text=True, check=True,
                          stdin=subprocess.DEVNULL)
    return done.stdout.split()


def read_results(folder: str) -> Iterator[dict[str, Any]]:
    """The last result of each test file."""
    path = os.path.join(folder, "results.jsonl")
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            results = {result["test"]: result for result in map(json.loads, file)}
        for result in results.values():
            # A reason may have been found since.
            explained = [name for name in result["lost"] if reason_of(result["test"], name)]
            yield {**result, "lost": [name for name in result["lost"] if name not in explained],
                   "source": result["source"] + explained}


def report(folder: str) -> str:
    """What was found, of all versions in the folder."""
    columns = ("Python", "modules decompiled", "test files", "skipped", "pass with original", "pass with decompiled",
               "tests", "pass with original", "pass with decompiled", "read source", "lost")
    lines = [f"{dated()}, {os.cpu_count()} cores. Command: `python benchmarks/behaviour.py "
             "--python PYTHON` for each version.", ""]
    rows, lost, failing = [], [], []
    versions = [v for v in os.listdir(folder) if os.path.exists(os.path.join(folder, v, "results.jsonl"))]
    for version in sorted(versions, key=lambda v: [int(part) for part in v.split(".")]):
        results = list(read_results(os.path.join(folder, version)))
        with open(os.path.join(folder, version, "modules.json"), encoding="utf-8") as file:
            modules = sum(count for fidelity, count in json.load(file).items() if fidelity != "not Python")
        files = [len(result["test"].split()) for result in results]
        rows.append([
            version, modules, sum(files), sum(len(r["skipped"]) for r in results),
            *(sum(count - len(r["skipped"]) for r, count in zip(results, files) if r[kind]["verdict"] == "passed")
              for kind in KINDS),
            sum(r["tests"] for r in results), sum(r["original"]["passed"] for r in results),
            sum(r["kept"] for r in results), sum(len(r["source"]) for r in results),
            sum(len(r["lost"]) for r in results)])
        failing += [f"`{r['test']}` ({version}, {r['original']['verdict']}, {r['original']['passed']} tests pass)"
                    for r in results if r["original"]["verdict"] not in ("passed", "skipped")]
        lost += [f"* {version}: `{name}` of `{r['test']}`" for r in results for name in r["lost"]]
    lines.append(table(columns, rows).rstrip("\n"))
    if failing:
        lines += ["", f"Files that fail with the original too: {', '.join(failing)}. Their passing tests count."]
    if lost:
        lines += ["", "Lost:", "", *lost]
    return "\n".join(lines) + "\n"


def write_table(path: str, text: str) -> None:
    with open(path, encoding="utf-8") as file:
        before, begin, rest = file.read().partition(MARKS[0])
    _, end, after = rest.partition(MARKS[1])
    if not end:
        raise SystemExit(f"{path} has no {MARKS[0].strip()} ... {MARKS[1]}")
    with open(path, "w", encoding="utf-8") as file:
        file.write(before + begin + text + end + after)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--folder", default="/tmp/depyf_behaviour")
    parser.add_argument("--long", action="store_true", help="LONG_TESTS too")
    parser.add_argument("--timeout", type=int, default=600, help="seconds for one test file")
    parser.add_argument("--resume", action="store_true", help="keep the copies and the results of an earlier call")
    parser.add_argument("--batch", type=int, default=1, help="so many test files in one process; one by one only "
                        "where that fails or differs (saves starting)")
    parser.add_argument("--report", action="store_true", help="run nothing")
    parser.add_argument("--write", metavar="FILE")
    parser.add_argument("tests", nargs="*")
    chosen = parser.parse_args()
    interpreter = Interpreter.ask(chosen.python)
    folder = os.path.join(chosen.folder, interpreter.version)
    failed = False
    if not chosen.report:
        if not chosen.resume:
            shutil.rmtree(folder, ignore_errors=True)
        prepare(interpreter, folder)
        pythons = {kind: copy_of(interpreter, folder, kind) for kind in KINDS}
        done = {test for result in read_results(folder) for test in result["test"].split()}
        tests = chosen.tests or [
            test for test in all_tests(pythons["original"])
            if test not in done and not is_among(test, SOURCE_TESTS)
            and (chosen.long or not is_among(test, LONG_TESTS))]
        for start in range(0, len(tests), chosen.batch):
            batch = tests[start:start + chosen.batch]
            results = together(pythons, batch, chosen.timeout) if len(batch) > 1 else None
            for result in [results] if results else (compare(pythons, test, chosen.timeout) for test in batch):
                with open(os.path.join(folder, "results.jsonl"), "a", encoding="utf-8") as file:
                    file.write(json.dumps(result) + "\n")
                both = ", ".join(f"{kind} {result[kind]['verdict']} {result[kind]['passed']} in "
                                 f"{result[kind]['seconds']} s" for kind in KINDS)
                print(f"[{start + len(batch)}/{len(tests)}] {result['test']}: {both}", flush=True)
                for what in ("source", "unstable", "lost"):
                    for name in result[what]:
                        print(f"    {what.upper()} {name}", flush=True)
        failed = any(result["lost"] for result in read_results(folder))
    text = report(chosen.folder)
    print(text)
    if chosen.write:
        write_table(chosen.write, text)
    raise SystemExit(failed)


if __name__ == "__main__":
    main()
