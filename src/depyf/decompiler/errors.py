"""The error of code that cannot be written in the output tier that is tried."""

from __future__ import annotations

import enum


class Stage(enum.Enum):
    """The stages of a decompilation that code may not fit."""

    SIMPLIFY = "simplification"
    LIFT = "expressions"
    STRUCTURE = "structure"
    EMIT = "text"
    FALLBACK = "dispatch loop"


SIMPLIFY, LIFT, STRUCTURE, EMIT, FALLBACK = Stage


class CannotDecompile(Exception):
    """The code cannot be written in the tier that is tried; the next tier is tried, and a note says why.

    Attributes:
        stage: which it does not fit.
    """

    def __init__(self, stage: Stage, message: str) -> None:
        super().__init__(message)
        self.stage = stage
