"""``depyf open``: the page of a run, in the browser."""

from __future__ import annotations

import argparse
import contextlib
import os
import pathlib
import sys
from typing import Any

from .terminal import DONE


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
    import webbrowser

    from .. import page
    from ..report import report

    path = given.path
    if os.path.isfile(path) and path.endswith((".html", ".jsonl")):
        path = os.path.dirname(path) or "."
    file = os.path.join(path, page.FILE)
    if not os.path.isfile(file):
        report(path)
    address = pathlib.Path(os.path.abspath(file)).as_uri()
    display = sys.platform in ("win32", "darwin") or any(
        map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")))
    opened = False
    with contextlib.suppress(webbrowser.Error, OSError):
        opened = not given.only_print and display and webbrowser.open(address)
    if not opened:
        print(address)
    return DONE
