"""``depyf explain``: a run explained in the terminal."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING, Any

from .. import collector
from .status import DONE, refused
from .terminal import add_color, console_on

if TYPE_CHECKING:
    from ..views.rank_classes import RankClass


def add(commands: Any) -> None:
    """Add the command to those of the parser."""
    command = commands.add_parser(
        "explain", help="tell what torch.compile did in a run",
        description="Tells what torch.compile did in a run: graph breaks with reason and advice, recompiles, what was "
                    "not compiled, dynamic shapes, time. Needs no torch.",
        epilog="Exit status: 0 done, 2 there is nothing that can be read.")
    command.add_argument("path", metavar="PATH", help="directory of a dump, its records.jsonl, or a log of TORCH_TRACE")
    command.add_argument("--rank", type=int, metavar="N", help="of several ranks, this one")
    command.add_argument("--json", action="store_true", help="the same as JSON (docs/json.md)")
    add_color(command)
    command.set_defaults(run=explain)


@collector.paused()
def explain(given: argparse.Namespace) -> int:
    """Run ``depyf explain``."""
    from ..recorded_runs import captures_of, shown
    from ..records.run_directory import RANK
    from ..records.store import RecordsError
    from ..views.index import index

    try:
        if given.rank is None and not given.json:
            run = shown(given.path)
            if isinstance(run, list) and sum(len(each.members) for each in run) > 1:
                return _explain_ranks(given, run)
            captures = {each.members[0].folder: each.capture for each in run if each.capture is not None} if isinstance(
                run, list) else {"": run}
        else:
            captures = captures_of(given.path, given.rank)
    except (RecordsError, OSError) as error:
        return refused(error)
    folder = next(iter(captures)) if len(captures) == 1 else ""
    if given.rank is not None:
        folder = f"{RANK}{given.rank}"
        if folder not in captures:
            return refused(f"{given.path} holds no rank {given.rank}")
    if given.json:
        from ..views.as_json.explain import document
        from ..views.as_json.output import written

        sys.stdout.write(written(document({folder: captures[folder]} if folder in captures else captures, given.path)))
        return DONE
    from ..views.terminal import show

    console = console_on(sys.stdout, given.color)
    show(index.brief(captures[folder]), console)
    files = _files_to_read(os.path.join(given.path, folder) if folder else given.path)
    if files:
        print()
        show("## Read on", console)
        print("\n".join(files))
    return DONE


def _explain_ranks(given: argparse.Namespace, classes: list[RankClass]) -> int:
    from ..views.ranks import ranks_index
    from ..views.terminal import show

    show(ranks_index(classes), console_on(sys.stdout, given.color))
    print(f"\nEach of them: depyf explain {given.path} --rank N")
    return DONE


def _files_to_read(path: str) -> list[str]:
    """Return the lines that say where the files are, and which dumps of other runs or processes there are."""
    from ..records.run_directory import RUN, numbered
    from ..views.dump.folder import INDEX, PAGE

    if not os.path.isdir(path):
        path = os.path.dirname(path) or "."
    if not os.path.exists(os.path.join(path, INDEX)):
        return []
    lines = [f"  {os.path.join(path, INDEX)}"]
    names = sorted(os.listdir(path))
    full = [name for name in names if name.startswith("full_code_for_")]
    lines += [f"  {os.path.join(path, name)}" for name in full[:5]]
    if len(full) > 5:
        lines.append(f"  ... and {len(full) - 5} more full_code_for_*.py")
    remark = "" if PAGE in names else " (which makes it first)"
    lines.append(f"  in a browser: depyf open {path}{remark}")
    runs = list(numbered(names, RUN).values())
    if runs:
        lines.append(f"  other runs or processes in it: {', '.join(runs[:6])}{' ...' if len(runs) > 6 else ''}")
    return lines
