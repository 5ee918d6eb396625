"""The parts that the commands share for the terminal that they write to."""

from __future__ import annotations

import argparse
import os
import shutil
from typing import TextIO

from ..views.terminal import Style

#: Longer lines are hard to read.
WIDEST = 120


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
