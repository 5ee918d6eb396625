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

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / each) for each in ("src", "benchmarks", "tests/cases")]

from _shared import dated, find_interpreter, table
from case_files import HERE, cases_of, read
from case_inputs import can_run, without

from depyf.decompiler.passes import ALL

#: Pass -> what is read of each of its cases, and of each small function, without it (empty: the same text).
Outcomes = dict[str, dict[str, dict[str, str]]]
HEAD = """\
# Each pass switched off

{dated}, Python {versions}. Command: `make passes`. A case counts if its text is another one without the pass, on one of these
versions at least; most passes undo what some versions of the compiler do. The last columns say what is read then: text
that is still proven, but not what a person would write, or a form that is right by construction (dispatch loop).

"""


def outcomes() -> Outcomes:
    """Return what is read without each pass, by this Python."""
    cases = [case for case in cases_of("passes") if can_run(case)]
    functions = cases_of("functions")
    return {each.name: {
        "cases": {case.name: without(each.name, case) for case in cases if case.path.stem == each.name},
        "functions": {case.id(): without(each.name, case) for case in functions}} for each in ALL}


def asked(version: str) -> Outcomes | None:
    """Return the outcomes by another version of Python; ``None`` if it is not there."""
    if version == "{}.{}".format(*sys.version_info[:2]):
        return outcomes()
    found = find_interpreter(version)
    if found is None:
        return None
    run = subprocess.run([str(found), __file__, "--print"], capture_output=True, text=True, check=True,
                         env={**os.environ, "PYTHONPATH": ""})
    return json.loads(run.stdout)


def report(found: dict[str, Outcomes]) -> str:
    """Return the table as Markdown."""
    rows = []
    for each in ALL:
        fails: dict[str, set[str]] = {
            kind: {name for by in found.values() for name, outcome in by[each.name][kind].items() if outcome}
            for kind in ("cases", "functions")}
        read_then = collections.Counter(
            outcome if " " not in outcome else "none" for by in found.values()
            for kind in fails for outcome in by[each.name][kind].values() if outcome)
        rows.append([f"`{each.name}`", each.does, f"{len(fails['cases'])} of {len(read(HERE / 'passes' / f'{each.name}.test')[1])}",
                     len(fails["functions"]), ", ".join(f"{count} {name}" for name, count in read_then.most_common())])
    return HEAD.format(dated=dated(), versions=", ".join(found)) + table(
        ["pass", "what it does", "of its cases", f"of {len(cases_of('functions'))} small functions",
         "what is read then (over all versions)"], rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("versions", nargs="*", default=["{}.{}".format(*sys.version_info[:2])])
    parser.add_argument("--write", type=pathlib.Path)
    parser.add_argument("--print", action="store_true", help="what this Python finds, as JSON")
    given = parser.parse_args()
    if given.print:
        print(json.dumps(outcomes()))
        return 0
    found = {}
    for version in given.versions:
        by = asked(version)
        if by is None:
            print(f"Python {version} is not on this machine: left out")
        else:
            found[version] = by
    text = report(found)
    if given.write:
        given.write.write_text(text, encoding="utf-8")
    print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
