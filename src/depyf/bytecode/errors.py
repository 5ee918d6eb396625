"""Errors for input that cannot be read: one base, so that callers need to know one name."""

from __future__ import annotations

import reprlib

_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 120
_SHORT.maxlong = 60
_SHORT.maxtuple = _SHORT.maxlist = _SHORT.maxset = _SHORT.maxfrozenset = _SHORT.maxdict = 8


class DecompilationError(Exception):
    """There is no source for the code: the base of :class:`Unreadable`, by the name that depyf 0.20 has for it."""


class Unreadable(ValueError, DecompilationError):
    """Input that is not what it claims to be, or is not understood; ``offset`` is in the file or the bytecode."""

    def __init__(self, message: str, filename: str, offset: int) -> None:
        super().__init__(message)
        self.filename = filename
        self.offset = offset


def shown(value: object) -> str:
    """Return a value as text for a message: one line, of bounded length whatever the value is."""
    try:
        return _SHORT.repr(value)
    except ValueError:  # an integer of more digits than the interpreter converts
        return f"a number of {value.bit_length()} bits" if isinstance(value, int) else f"a {type(value).__name__}"


def shown_name(name: str) -> str:
    """Return a name of code or of a file for a message: as it is if it is harmless, else quoted and cut."""
    return name if len(name) <= 200 and name.isprintable() else shown(name)


def one_line(message: str, longest: int = 1000) -> str:
    """Return a message with parts from elsewhere as one line of at most ``longest`` characters."""
    line = " ".join(message.split())
    line = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in line[: longest + 1])
    return line if len(line) <= longest else line[: longest - 3] + "..."
