"""Switches off each pass of the decompiler and counts the cases whose text is another one then.

    python scripts/passes_switched_off.py 3.10 3.11 3.12 3.13 --write docs/measured/passes.md

Each version is run by an interpreter of its own; one that is absent is left out. Cases that need torch are run by the
version that this script is run by.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import pathlib
import subprocess
import sys
import warnings

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / each) for each in ("src", "benchmarks", "tests/cases")]

from _shared import dated, find_interpreter, table
from case_files import HERE, cases_of, read
from case_inputs import can_run, without

from depyf.decompiler.passes import ALL

#: Pass -> what is read of each of its cases, and of each small function, without it (empty: the same text).
Outcomes = dict[str, dict[str, dict[str, str]]]
#: What the fidelity of a text means for its reader.
WORDS = {"exact": "other text", "equivalent": "other text", "fallback": "dispatch loop", "unproven": "not proven"}
HEAD = """\
# Each pass switched off

{dated}, Python {versions}. Command: `make passes`.

A case counts if its text is another one without the pass, on one of these versions at least: some passes undo what only
some versions of the compiler do. The last column counts what is read then, over all versions: another text, which is
proven but not what a person would write; a form that is right by construction (dispatch loop); text that is not proven
(code of 3.14, for which there is no interpreter); none.

"""


def outcomes() -> Outcomes:
    """Return what is read without each pass, by this Python."""
    warnings.simplefilter("ignore")  # a pass that finds a graph which it does not know says so
    cases = [case for case in cases_of("passes") if can_run(case)]
    functions = cases_of("functions")
    return {each.name: {
        "cases": {case.name: without(each.name, case) for case in cases if case.path.stem == each.name},
        "functions": {case.id(): without(each.name, case) for case in functions}} for each in ALL}


def asked(version: str) -> Outcomes | None:
    """Return the outcomes by another version of Python; ``None`` if it is not there."""
    if version == "{}.{}".format(*sys.version_info[:2]):
        return outcomes()
    path = find_interpreter(version)
    if path is None:
        return None
    run = subprocess.run([str(path), __file__, "--print"], capture_output=True, text=True, check=True,
                         env={**os.environ, "PYTHONPATH": ""})
    return json.loads(run.stdout)


def report(results: dict[str, Outcomes]) -> str:
    """Return the table as Markdown."""
    rows = []
    functions = sum(len(read(path)[1]) for path in (HERE / "functions").glob("*.test"))
    for each in ALL:
        by_version = [by[each.name] for by in results.values()]
        cases = {case.name for case in read(HERE / "passes" / f"{each.name}.test")[1]}
        rows.append([f"`{each.name}`", each.does, f"{len(_failing(by_version, 'cases'))} of {len(cases)}",
                     len(_failing(by_version, "functions")), _read_then(by_version)])
    head = ["pass", "what it does", "of its cases", f"of {functions} small functions",
            "what is read of all these then"]
    return HEAD.format(dated=dated(), versions=", ".join(results)) + table(head, rows)


def _failing(by_version: list[dict[str, dict[str, str]]], kind: str) -> set[str]:
    return {name for outcomes in by_version for name, outcome in outcomes[kind].items() if outcome}


def _read_then(by_version: list[dict[str, dict[str, str]]]) -> str:
    """Count what is read where the text is another one."""
    counts = collections.Counter(
        WORDS.get(outcome, "none")
        for outcomes in by_version for by_name in outcomes.values() for outcome in by_name.values() if outcome)
    return ", ".join(f"{count} {words}" for words, count in counts.most_common())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("versions", nargs="*", default=["{}.{}".format(*sys.version_info[:2])])
    parser.add_argument("--write", type=pathlib.Path)
    parser.add_argument("--print", action="store_true", help="what this Python finds, as JSON")
    given = parser.parse_args()
    if given.print:
        print(json.dumps(outcomes()))
        return 0
    results = {}
    for version in given.versions:
        by = asked(version)
        if by is None:
            print(f"Python {version} is not on this machine: left out")
        else:
            results[version] = by
    text = report(results)
    if given.write:
        given.write.write_text(text, encoding="utf-8")
    print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
