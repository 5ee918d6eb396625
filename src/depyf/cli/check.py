"""``depyf check``: compare a run with budgets, for CI."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

from . import terminal
from .terminal import DONE, refused

BEYOND = 1
#: Options, with the kinds of budgets that they are for (``depyf.views.verdict.KINDS``; a help need not import that).
OPTIONS = {
    "--max-breaks": ("breaks", "graph breaks, each once for every compilation that comes to it"),
    "--max-recompiles": ("recompiles", "recompiles: a call matched no version"),
    "--max-skipped": ("skipped", "functions that run in plain Python: skipped, failed, or at the recompile limit"),
    "--max-versions": ("versions", "compiled versions, those of resume functions too"),
    "--max-graphs": ("graphs", "graphs that compiled code calls"),
    "--max-guards": ("guards", "guards of all versions"),
    "--max-kernels": ("kernels", "kernel calls in generated code"),
    "--max-compile-seconds": ("seconds", "seconds of compiling"),
}


def add(commands: Any) -> None:
    """Add the command to those of the parser."""
    command = commands.add_parser(
        "check", help="compare a run with budgets, for CI",
        description="Compares what torch.compile did in a run with budgets, and reports for each what is beyond it: "
                    "place and cause. Of several ranks each is judged by itself. Needs no torch.",
        epilog="N is a number for the whole run, or FUNCTION:N for each function that FUNCTION means (a pattern of the "
               "shell for its qualified name or the last part of it; with a / or with .py at its end for its file). "
               "Each option can be given several times. Exit status: 0 within the budgets, 1 beyond one of them, 2 "
               "there is nothing that can be read or judged.")
    command.add_argument("path", metavar="PATH", help=terminal.RUN)
    given = command.add_argument_group("budgets: at most")
    for option, (kind, meaning) in OPTIONS.items():
        given.add_argument(option, action="append", default=[], dest=kind, help=meaning,
                           metavar="S" if kind == "seconds" else "N")
    given.add_argument("--no-skipped", action="append_const", dest="skipped", const="0",
                       help="the same as --max-skipped 0")
    command.add_argument("--json", action="store_true", help="the result as JSON (docs/json.md)")
    command.add_argument("-q", "--quiet", action="store_true", help="only the exit status")
    command.set_defaults(run=check)


def check(given: argparse.Namespace) -> int:
    """Run ``depyf check``."""
    from ..recorded_runs import captures_of
    from ..records.run_directory import RUN, numbered
    from ..views.budgets import BudgetError, budgets, judge, sentences
    from ..views.markdown import some

    try:
        wanted = budgets({kind: values for kind, _ in OPTIONS.values() if (values := getattr(given, kind))})
        if not wanted:
            raise BudgetError("there is no budget; give one, such as --max-breaks 0 (depyf check --help)")
        judgement = judge(captures_of(given.path), wanted)
    except BudgetError as error:
        return refused(error)
    if given.json:
        from ..views.as_json import check_document, written

        sys.stdout.write(written(check_document(judgement, given.path)))
    elif not given.quiet:
        print("\n".join(sentences(judgement)))
    left_out = list(numbered(os.listdir(given.path), RUN).values()) if os.path.isdir(given.path) else []
    if left_out and not given.quiet:
        print(f"depyf: not judged: {some(left_out, 6)} in {given.path}, which other runs or processes wrote",
              file=sys.stderr)
    return DONE if judgement.within else BEYOND
