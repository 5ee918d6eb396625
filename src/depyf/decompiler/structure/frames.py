"""The surroundings of a statement: where control falls through to, and what ``break`` and ``continue`` mean there."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any


@dataclass(slots=True, eq=False)
class Frame:
    """The construct around a statement: a protected body, a handler, or (the outermost) the function.

    Attributes:
        parent: the construct around it.
        handler: the handler of the innermost region around the statement.
    """

    parent: Frame | None = None
    handler: int | None = None

    def jump(self, target: int | None) -> ast.stmt | None:
        """Return the statement that goes to ``target``, if it is an end of the innermost loop."""
        return self.parent.jump(target) if self.parent is not None else None


@dataclass(slots=True, eq=False)
class LoopFrame(Frame):
    """A loop around a statement.

    Attributes:
        head: where ``continue`` leads.
        exit: where ``break`` leads; ``None`` where nothing leaves the loop.
    """

    head: int = -1
    exit: int | None = None

    def jump(self, target: int | None) -> ast.stmt | None:
        """Return ``continue`` or ``break`` for an end of this loop."""
        if target == self.head:
            return ast.Continue()
        return ast.Break() if target == self.exit else None


def outer_ends(frame: Frame | None, follow: int | None) -> set[int]:
    """Return where control goes on behind the statement at hand and behind each loop around it, and their heads."""
    ends = {follow}
    while frame is not None:
        if isinstance(frame, LoopFrame):
            ends |= {frame.head, frame.exit}
        frame = frame.parent
    return {end for end in ends if end is not None}


@dataclass(slots=True)
class Cursor:
    """The place that the walk through the graph has come to.

    Attributes:
        at: the block that control is at.
        stack: the values on the symbolic stack there.
        follow: the block at which the statements to be written end; ``None`` where control never falls through.
        frame: the construct around.
    """

    at: int
    stack: list[Any]
    follow: int | None
    frame: Frame


@dataclass(slots=True)
class Construct:
    """A statement that was written for several blocks.

    Attributes:
        statements: the statement, with those that come before it.
        next: the block behind it; ``None`` where control never gets there.
        stack: the values on the symbolic stack there.
    """

    statements: list[ast.stmt]
    next: int | None
    stack: list[Any]


@dataclass(slots=True)
class Suite:
    """Statements that were written up to where control leaves them.

    Attributes:
        statements: in their order.
        falls: whether control falls through to what follows.
        stack: the values on the symbolic stack at the end.
    """

    statements: list[ast.stmt]
    falls: bool
    stack: list[Any]
