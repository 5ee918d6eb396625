"""``depyf explain``: a run explained in the terminal."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

from .. import guarded
from .terminal import DONE, RUN, add_color, add_rank, console_on


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
    from ..records.run_directory import RANK, directory_of, rank_folders
    from ..views.index import read

    rank = "" if given.rank is None else f"{RANK}{given.rank}"
    directory = directory_of(os.path.join(given.path, rank) if rank else given.path)
    if not given.json and not rank_folders(directory) and (text := read(directory)) is not None:
        return _show(given, text, directory)
    from ..recorded_runs import captures_of, folder_of, shown
    from ..views.index.index import index

    run = shown(given.path) if given.rank is None and not given.json else captures_of(given.path, given.rank)
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
    folder = folder_of(captures, given.path, given.rank)
    if given.json:
        from ..views.as_json import explain_document, written

        chosen = {folder: captures[folder]} if rank else captures
        sys.stdout.write(written(explain_document(chosen, given.path)))
        return DONE
    return _show(given, index(captures[folder]), os.path.join(given.path, folder) if folder else given.path)


def _show(given: argparse.Namespace, text: str, path: str) -> int:
    """Show the index of one process, and where its files are."""
    from ..views.index import in_terminal
    from ..views.terminal import show

    console = console_on(sys.stdout, given.color)
    show(text, console, in_terminal)
    if files := _files_to_read(path):
        print()
        show("## Read on", console)
        print("\n".join(files))
    return DONE


def _files_to_read(path: str) -> list[str]:
    """Return the lines that say where the files are, and which dumps of other runs or processes there are."""
    from ..records.run_directory import RUN, numbered
    from ..views.dump.folder import INDEX, PAGE
    from ..views.markdown import some

    if not os.path.isdir(path):
        path = os.path.dirname(path) or "."
    if not os.path.exists(os.path.join(path, INDEX)):
        return []
    lines = [f"  {os.path.join(path, INDEX)}"]
    names = sorted(os.listdir(path))
    full = [name for name in names if name.startswith("full_code_for_")]
    lines += [f"  {os.path.join(path, name)}" for name in full[:5]]
    lines += [f"  ... and {len(full) - 5} more full_code_for_*.py"] * (len(full) > 5)
    lines.append(f"  in a browser: depyf open {path}{'' if PAGE in names else ' (which makes it first)'}")
    runs = list(numbered(names, RUN).values())
    return [*lines, f"  other runs or processes in it: {some(runs, 6)}"] if runs else lines
