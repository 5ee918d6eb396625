"""The parts that the commands share for the terminal that they write to."""

from __future__ import annotations

import argparse
import os
import shutil
from typing import TextIO

from ..views.terminal import Style

#: Longer lines are hard to read.
WIDEST = 120


class Progress:
    """A bar on the last line of a terminal; nothing elsewhere."""

    def __init__(self, total: int, stream: TextIO, wanted: bool) -> None:
        self.total = total
        self.done = 0
        self.stream = stream
        self.on = wanted and total > 1 and stream.isatty() and os.environ.get("TERM") != "dumb"
        self.colour = self.on and not os.environ.get("NO_COLOR")

    def show(self, name: str) -> None:
        if not self.on:
            return
        width = max(shutil.get_terminal_size().columns - 1, 1)
        count = f" {self.done}/{self.total} "
        room = min(30, width - len(count) - 2)
        bar = ""
        if room >= 5:
            full = room * self.done // self.total
            bar = "[" + "#" * full + "." * (room - full) + "]"
        rest = width - len(bar) - len(count)
        line = (bar + count + (name if len(name) <= rest else "…" + name[len(name) - rest + 1 :] if rest > 4 else ""))
        line = line[:width]
        if self.colour:
            line = f"\x1b[2m{line}\x1b[0m"
        self.stream.write(f"\r\x1b[K{line}")
        self.stream.flush()

    def clear(self) -> None:
        if self.on:
            self.stream.write("\r\x1b[K")
            self.stream.flush()


def add_color(command: argparse.ArgumentParser) -> None:
    """Adds ``--color``, whose value :func:`style_of` takes."""
    command.add_argument("--color", choices=("auto", "always", "never"), default="auto",
                         help="set words off by colours (default: on a terminal, unless NO_COLOR is set)")


def style_of(stream: TextIO, colours: str = "auto") -> Style:
    """Return the style of text on a stream: with colours on a terminal, unless ``NO_COLOR`` (no-color.org) says no.

    Args:
        stream: where the text goes.
        colours: ``auto``, ``always`` or ``never``.
    """
    on = colours == "always" or colours == "auto" and (
        stream.isatty() and os.environ.get("TERM") != "dumb" and not os.environ.get("NO_COLOR"))
    return Style(on, min(shutil.get_terminal_size((100, 24)).columns, WIDEST))
