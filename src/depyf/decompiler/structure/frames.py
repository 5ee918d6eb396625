"""The surroundings of a statement: where control falls through to, and what ``break`` and ``continue`` mean there."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any


@dataclass(slots=True, eq=False)
class Frame:
    """The construct around a statement, with its ``parent`` and the handler of the innermost region there."""

    parent: Frame | None = None
    handler: int | None = None

    def jump(self, target: int | None) -> ast.stmt | None:
        """Return the statement that goes to ``target``, if it is an end of the innermost loop."""
        return self.parent.jump(target) if self.parent is not None else None


@dataclass(slots=True, eq=False)
class LoopFrame(Frame):
    """A loop around a statement: ``continue`` leads to ``head``, ``break`` to ``exit`` (``None``: nothing does)."""

    head: int = -1
    exit: int | None = None

    def jump(self, target: int | None) -> ast.stmt | None:
        """Return ``continue`` or ``break`` for an end of this loop."""
        if target == self.head:
            return ast.Continue()
        return ast.Break() if target == self.exit else None


def outer_ends(frame: Frame | None, follow: int | None) -> set[int]:
    """Return where control goes after the statement at hand and after each loop around it, and the heads of these."""
    ends = {follow}
    while frame is not None:
        if isinstance(frame, LoopFrame):
            ends |= {frame.head, frame.exit}
        frame = frame.parent
    return {end for end in ends if end is not None}


@dataclass(slots=True)
class Cursor:
    """The place of the walk through the graph: the block, the symbolic stack there, and the construct around.

    ``follow`` is the block at which the statements to be written end; ``None`` where control never falls through.
    """

    at: int
    stack: list[Any]
    follow: int | None
    frame: Frame


@dataclass(slots=True)
class Construct:
    """A statement written for several blocks, with those before it.

    ``next`` is the block after it, or ``None`` where control never gets there; ``stack`` has the values there.
    """

    statements: list[ast.stmt]
    next: int | None
    stack: list[Any]


@dataclass(slots=True)
class Suite:
    """Statements up to where control leaves them, whether it falls through, and the stack at the end."""

    statements: list[ast.stmt]
    falls: bool
    stack: list[Any]
