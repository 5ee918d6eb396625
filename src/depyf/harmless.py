"""Text of foreign origin on its way out: what a terminal would obey, or a reader would not see, comes out escaped.

Names, messages and lines of code come from the watched program, from torch, or from a file received from elsewhere.
Every channel has one place where its text goes through here: the command line its output streams
(``depyf.cli.terminal``), messages in the user's own program :func:`say`, a dump its folder
(``depyf.views.dump.folder``). HTML and JSON have escapes of their own. ``tests/test_channels.py`` finds what goes past.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Iterable

#: Control characters but for the line end and the tab, marks that change the direction of text ("Trojan Source",
#: CVE-2021-42574), and line separators that are none for Python.
_OBEYED = "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]"
_NO_NAMES = frozenset('/\\:*?"<>|')  #: What no name of a file has on every system.


def harmless(text: str) -> str:
    r"""Return the text with such characters escaped: ``\x1b[31m``."""
    if text.isascii() and text.replace("\n", "").replace("\t", "").isprintable():
        return text  # (It is in most runs, and the expression takes longer to compile.)
    return re.sub(_OBEYED, lambda match: match[0].encode("unicode_escape").decode(), text)


def say(text: str) -> None:
    """Print a message of depyf to standard error, if the program has one that takes it."""
    if sys.stderr is None:
        return
    try:
        print(harmless(text), file=sys.stderr, flush=True)
    except Exception:  # (closed, full, or the program's own: it goes on)
        pass


def is_plain_name(name: str) -> bool:
    """Return whether a text names a file in the folder that it is used in, on any system, and nothing else."""
    return bool(name) and name not in (os.curdir, os.pardir) and _NO_NAMES.isdisjoint(name) \
        and harmless(name) == name and "\n" not in name and "\t" not in name \
        and name.encode(errors="ignore").decode() == name


def write_whole(path: str, pieces: Iterable[bytes]) -> None:
    """Write a file at once or not at all: a reader who comes meanwhile sees the old one.

    Raises:
        OSError: it cannot be written.
    """
    partial = f"{path}.{os.getpid()}.partial"
    try:
        with open(partial, "wb") as file:
            for piece in pieces:
                file.write(piece)
        os.replace(partial, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(partial)
        raise
