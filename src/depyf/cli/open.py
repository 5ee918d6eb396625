"""``depyf open``: the page of a run, in the browser."""

from __future__ import annotations

import argparse
import os
import pathlib
import sys
from typing import Any

from .terminal import DONE, refused


def add(commands: Any) -> None:
    """Add the command to those of the parser."""
    command = commands.add_parser(
        "open", help="show the page of a run in the browser",
        description="Shows index.html of a dump in the browser, and makes it first where it is not there. Where there "
                    "is no display, its address is printed.",
        epilog="Exit status: 0 done, 2 there is nothing that can be read, or the page cannot be written.")
    command.add_argument("path", metavar="DIR", nargs="?", default="depyf_output",
                         help="directory of a dump (default: depyf_output)")
    command.add_argument("--print", action="store_true", dest="only_print", help="print the address, open nothing")
    command.set_defaults(run=show)


def show(given: argparse.Namespace) -> int:
    """Run ``depyf open``."""
    from .. import page
    from ..records.store import RecordsError
    from ..report import report

    path = given.path
    if os.path.isfile(path) and path.endswith((".html", ".jsonl")):
        path = os.path.dirname(path) or "."
    file = os.path.join(path, page.FILE)
    if not os.path.isfile(file):
        try:
            report(path)
        except (RecordsError, OSError) as error:
            return refused(error)
    address = pathlib.Path(os.path.abspath(file)).as_uri()
    if given.only_print or not _display() or not _opened(address):
        print(address)
    return DONE


def _display() -> bool:
    """Return whether a window can come up here."""
    if sys.platform in ("win32", "darwin"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY") or os.environ.get("BROWSER"))


def _opened(address: str) -> bool:
    import webbrowser

    try:
        return webbrowser.open(address)
    except (webbrowser.Error, OSError):
        return False
