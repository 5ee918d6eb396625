"""The surroundings of a statement: where control falls through to, and what ``break`` and ``continue`` mean there.

Changes with the kinds of statements that others stand in.
"""

from __future__ import annotations

import ast


class Frame:
    """The construct around a statement: a loop, a protected body, a handler, or (the outermost) the function."""

    __slots__ = ("exit", "handler", "head", "kind", "parent")

    def __init__(self, kind: str, parent: Frame | None, handler: int | None, head: int = -1, exit: int = -1) -> None:
        self.kind = kind
        self.parent = parent
        self.handler = handler
        self.head = head
        self.exit = exit

    def jump(self, target: int) -> ast.stmt | None:
        """The statement that goes to ``target``, if it is an end of the innermost loop."""
        frame: Frame | None = self
        while frame is not None:
            if frame.kind == "loop":
                if target == frame.head:
                    return ast.Continue()
                if target == frame.exit:
                    return ast.Break()
                return None
            frame = frame.parent
        return None


def outer_ends(frame: Frame, follow: int) -> set[int]:
    ends = {follow}
    at: Frame | None = frame
    while at is not None:
        if at.kind == "loop":
            ends.add(at.head)
            ends.add(at.exit)
        at = at.parent
    return ends
