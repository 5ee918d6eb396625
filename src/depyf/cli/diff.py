"""Run ``depyf diff``."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .terminal import DONE, RUN, add_color, console_on, refused

if TYPE_CHECKING:
    from ..views.diff.difference import Difference

DIFFERENT = 1


def add(commands: Any) -> None:
    """Add the command to those of the parser."""
    command = commands.add_parser(
        "diff", help="report what changed between two runs",
        description="Reports what changed between two runs: functions, graphs (operations by module), breaks, "
                    "recompiles, guards, kernels. Ids, addresses, hashes and names that torch counts up are no "
                    "difference, nor is time, which is shown. Needs no torch.",
        epilog="Exit status: 0 no difference, 1 there is one, 2 there is nothing that can be read.")
    command.add_argument("before", metavar="DIR_A", help=RUN)
    command.add_argument("after", metavar="DIR_B", help="the same of the other run")
    command.add_argument("--full", action="store_true",
                         help="report every change, and those of graphs and kernels line by line")
    command.add_argument("--json", action="store_true", help="the differences as JSON (docs/json.md)")
    command.add_argument("-q", "--quiet", action="store_true", help="only the exit status")
    add_color(command)
    command.set_defaults(run=diff)


def diff(given: argparse.Namespace) -> int:
    """Run ``depyf diff``."""
    from ..recorded_runs import captures_of
    from ..views.diff.difference import difference

    before, after = captures_of(given.before), captures_of(given.after)
    if len(before) == len(after) == 1:
        pairs = [("", next(iter(before.values())), next(iter(after.values())))]
    elif before.keys() & after.keys():
        pairs = [(folder, before[folder], after[folder]) for folder in before if folder in after]
    else:
        return refused(f"one of the two is of several ranks; give one rank: {given.before} {given.after}")
    alone = [[name for name in mine if len(pairs) > 1 and name not in other]
             for mine, other in ((before, after), (after, before))]
    results = {folder: difference(first, second, given.full) for folder, first, second in pairs}
    if given.json:
        from ..views.as_json import diff_document, written

        sys.stdout.write(written(diff_document(results, (given.before, given.after), alone)))
    elif not given.quiet:
        _show(given, results, alone)
    return DIFFERENT if any(results.values()) or any(alone) else DONE


def _show(given: argparse.Namespace, results: Mapping[str, Difference], alone: Sequence[Sequence[str]]) -> None:
    from ..views.diff.difference import text
    from ..views.terminal import show

    for path, names in zip((given.before, given.after), alone):
        for name in names:
            print(f"{name} only in {path}")
    console = console_on(sys.stdout, given.color)
    for number, (folder, result) in enumerate(results.items()):
        if number:
            print()
        show(text(result, (os.path.join(given.before, folder) if folder else given.before,
                           os.path.join(given.after, folder) if folder else given.after)), console)
