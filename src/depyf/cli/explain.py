"""``depyf explain``: a run explained in the terminal."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

from .. import guarded
from .terminal import DONE, RUN, add_color, add_rank, console_on, refused


def add(commands: Any) -> None:
    """Add the command to those of the parser."""
    command = commands.add_parser(
        "explain", help="explain what torch.compile did in a run",
        description="Explains what torch.compile did in a run: graph breaks with reason and advice, recompiles, what "
                    "was not compiled, dynamic shapes, time. Needs no torch.",
        epilog="Exit status: 0 done, 2 there is nothing that can be read.")
    command.add_argument("path", metavar="PATH", help=RUN)
    add_rank(command)
    command.add_argument("--json", action="store_true", help="the same as JSON (docs/json.md)")
    add_color(command)
    command.set_defaults(run=explain)


@guarded.paused()
def explain(given: argparse.Namespace) -> int:
    """Run ``depyf explain``."""
    from ..records.run_directory import RANK

    rank = "" if given.rank is None else f"{RANK}{given.rank}"
    path = os.path.join(given.path, rank) if rank else given.path
    if not given.json and (text := _written_index(path)) is not None:
        return _show(given, text, path)
    from ..recorded_runs import captures_of, folder_of, shown
    from ..records.store import RecordsError
    from ..views.index.index import index

    try:
        run = shown(given.path) if given.rank is None and not given.json else captures_of(given.path, given.rank)
    except (RecordsError, OSError) as error:
        return refused(error)
    if isinstance(run, list):
        from ..views.ranks import ranks_index
        from ..views.terminal import show

        if sum(len(each.members) for each in run) > 1:
            show(ranks_index(run), console_on(sys.stdout, given.color))
            print(f"\nEach of them: depyf explain {given.path} --rank N")
            return DONE
        captures = {each.members[0].folder: each.capture for each in run if each.capture is not None}
    else:
        captures = run if isinstance(run, dict) else {"": run}
    try:
        folder = folder_of(captures, given.path, given.rank)
    except RecordsError as error:
        return refused(error)
    if given.json:
        from ..views.as_json import explain_document, written

        chosen = {folder: captures[folder]} if rank else captures
        sys.stdout.write(written(explain_document(chosen, given.path)))
        return DONE
    return _show(given, index(captures[folder]), os.path.join(given.path, folder) if folder else given.path)


def _written_index(path: str) -> str | None:
    """Return the index in the dump of one process; ``None`` where it has to be made."""
    from ..records.run_directory import directory_of, rank_folders
    from ..views.index.written import read

    directory = directory_of(path)
    return None if rank_folders(directory) else read(directory)


def _show(given: argparse.Namespace, text: str, path: str) -> int:
    """Show the index of one process, and where its files are."""
    from ..views.index.written import in_terminal
    from ..views.terminal import show

    console = console_on(sys.stdout, given.color)
    show(text, console, in_terminal)
    files = _files_to_read(path)
    if files:
        print()
        show("## Read on", console)
        print("\n".join(files))
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
