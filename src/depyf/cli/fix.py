"""``depyf fix``: a patch for a program's graph breaks and recompiles, tried before it is shown."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

from .terminal import DONE, bar_on, refused

DIFFERENT = 1


def _add_fix(commands: Any) -> None:
    command = commands.add_parser(
        "fix", help="propose a patch for graph breaks and recompiles, tried by running it", allow_abbrev=False,
        usage="depyf fix [options] script.py [arguments ...]",
        description="Runs a program several times: as it is, and with the changes that depyf advises. A change is "
                    "taken where it helps and all stays the same: in the run, and in calls that are generated from "
                    "it, with other values, sizes and types and both sides of each condition. Prints a unified diff. "
                    "No file is changed without --apply: the changed texts are handed to Python in memory.",
        epilog="Risk: the program itself runs, up to --runs times, with all that it does: what it writes, sends, "
               "deletes or trains happens each time. The generated calls of its compiled functions, several hundred, "
               "run on copies, in child processes unless CUDA is in use: files that they write are written. Give it "
               "small input. Exit status: 0 nothing is left to fix or a patch was found, 1 no patch was found, 2 the "
               "program cannot be judged.")
    command.add_argument("--apply", action="store_true", help="write the patch into the files")
    command.add_argument("--limit", type=float, default=600, metavar="SECONDS", help="for each run (default: 600)")
    command.add_argument("--runs", type=int, default=20, metavar="N", help="at most (default: 20)")
    command.add_argument("program", metavar="script.py", help="what is run; all that follows is its own")
    command.add_argument("arguments", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    command.set_defaults(run=fix)


def fix(given: argparse.Namespace) -> int:
    """Run ``depyf fix``."""
    from ..fixing.patch import remaining_problems, unified_diff
    from ..fixing.search import Search
    from ..fixing.trial import Runner
    from ..views.markdown import one_line

    if not os.path.isfile(given.program):
        return refused(f"{given.program} is no file")
    if not hasattr(os, "fork"):
        return refused("depyf fix runs the program in forked processes, which this system does not have")
    bar = bar_on(sys.stderr, given.runs)

    def show(run: int, what: str) -> None:
        bar.done = run
        bar.show(one_line(what, 40))
        if not bar.on:
            print(f"depyf: run {run} of at most {given.runs}: {what}", file=sys.stderr, flush=True)

    try:
        found = Search(given.program, Runner(given.program, given.arguments, given.limit), given.runs, show).run()
    finally:
        bar.clear()
    if found.refused:
        if found.before.error:
            print(found.before.error, file=sys.stderr)
        return refused(found.refused)
    before, after, patch = found.before, found.best.after, found.best.patch
    old, new = before.totals, after.totals
    print(f"# graph breaks: {old.breaks} -> {new.breaks}\n# skipped functions: {old.skipped} -> {new.skipped}\n"
          f"# recompiles: {old.recompiles} -> {new.recompiles}\n"
          f"# compile time: {old.seconds:.1f} s -> {new.seconds:.1f} s; {found.runs} runs of the program")
    if patch.taken:
        print("# the recorded run: the same results and standard output (not compared: standard error, with warnings)\n"
              f"# other calls, in plain Python: {found.best.verdict}")
    for change, why, cost in dict.fromkeys((each.change, each.why, each.cost) for each in patch.taken):
        print(f"# {change}" + f"\n#   because {why}" * bool(why)  # (a setting has no reason)
              + f"\n#   {'cost' if why else 'what it does'}: {cost}" * bool(cost))
    remaining = remaining_problems(after.capture, found.rejected) if after.capture is not None else []
    if remaining:
        print("# left (at lines of the patched files):" if patch.taken else "# left:")
        print("\n".join(f"#   {line}" for line in remaining))
    if not patch.taken:
        print("# no change was found that helps and keeps the results" if before.weight else "# nothing to change")
        return DONE if not before.weight else DIFFERENT
    print(unified_diff(patch.texts, os.getcwd()), end="")
    if given.apply:
        for path, text in patch.texts.items():
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        print(f"# written: {', '.join(sorted(patch.texts))}")
    return DONE
