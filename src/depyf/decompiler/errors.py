"""The error of code that cannot be written in the output tier that is tried."""

from __future__ import annotations

import enum
import os
import re
import warnings

from ..bytecode.errors import Unreadable, one_line
from ..bytecode.linetable import MalformedTable
from ..cfg.graph import StackMismatch


class Stage(enum.Enum):
    """The stages of a decompilation that code may not fit."""

    SIMPLIFY = "simplification"
    LIFT = "expressions"
    STRUCTURE = "structure"
    EMIT = "text"
    FALLBACK = "dispatch loop"


SIMPLIFY, LIFT, STRUCTURE, EMIT, FALLBACK = Stage


class CannotDecompile(Exception):
    """The code cannot be written in the tier that is tried; a note names the stage, and the next tier is tried."""

    def __init__(self, stage: Stage, message: str) -> None:
        super().__init__(message)
        self.stage = stage


# --- Errors in words: those that say a form does not fit, and errors in depyf -------------------------
# The first kind is named and part of the work: the code object gets its next form, and its note says why. Any other
# exception is a mistake in depyf. It costs the form too, never the program that asked; but it is called a mistake where
# the result is read, and a warning says so once for each place in depyf.
#: What says that code does not fit a form, that its text is none, or that it is too deep or too much.
EXPECTED = (
    CannotDecompile, Unreadable, StackMismatch, MalformedTable, SyntaxError, RecursionError, MemoryError,
)
#: In messages of Python's own: of no use to a reader, and another in each run.
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_warned: set[tuple[str, str]] = set()


class InternalError(RuntimeWarning):
    """A mistake in depyf cost a code object its readable form."""


def why(error: Exception) -> str:
    """Return a note's text on an exception that cost a form. An error in depyf is warned of, once for each place."""
    kind = error.stage.value if isinstance(error, CannotDecompile) else type(error).__name__
    message = _ADDRESS.sub("", f"{kind}: {error}")
    if isinstance(error, EXPECTED):
        return message
    place = _place(error)
    message = one_line(f"internal error of depyf ({message}, {place})")
    if (type(error).__name__, place) not in _warned:
        _warned.add((type(error).__name__, place))
        try:
            warnings.warn(f"{message}; please report it. The code is shown in another form", InternalError,
                          stacklevel=2)
        except InternalError:  # where warnings are errors: no program may end because of an error in depyf
            pass
    return message


def _place(error: BaseException) -> str:
    """Return file and line of the innermost frame, without reading source."""
    at = error.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    return "" if at is None else f"{os.path.basename(at.tb_frame.f_code.co_filename)}:{at.tb_lineno}"
