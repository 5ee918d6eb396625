"""The surroundings of a statement: suites, targets of ``break`` and ``continue``, where control falls through to."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeGuard

from ..lift.stack import is_none
from ..nodes import at_line, line_of, suites_of


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
    """Return where control goes on after the present statement and after each loop around it, and their heads."""
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
        next: the block after it; ``None`` where control never gets there.
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
        falls: whether control falls through to the next statement.
        stack: the values on the symbolic stack at the end.
    """

    statements: list[ast.stmt]
    falls: bool
    stack: list[Any]


# --- suites: where the statements of a body begin and end ------------------------------------------------
LOOPS = (ast.For, ast.AsyncFor, ast.While)
#: Statements after which control does not go on.
LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)


def leave(kind: str, line: int | None) -> ast.stmt:
    """Return a ``return``, ``return None`` or ``continue``."""
    if kind == "continue":
        return at_line(ast.Continue(), line)
    return at_line(ast.Return(ast.Constant(None) if kind == "return None" else None), line)


def leaves_by(stmt: ast.stmt, end: str) -> bool:
    """Return whether a statement has the effect of falling off the end of its suite."""
    return end == "continue" and isinstance(stmt, ast.Continue) \
        or end == "return" and isinstance(stmt, ast.Return) and is_nothing(stmt)


def word_of(stmt: ast.stmt) -> str:
    """Return ``break`` for a ``break``, and so on."""
    return type(stmt).__name__.lower()


def is_nothing(stmt: ast.Return) -> bool:
    """Return whether a ``return`` gives nothing."""
    return stmt.value is None or is_none(stmt.value)


def is_empty(stmts: list[ast.stmt]) -> bool:
    """Return whether a suite is a ``pass``."""
    return len(stmts) == 1 and isinstance(stmts[0], ast.Pass)


def ending_in(stmts: list[ast.stmt], end: str) -> list[ast.stmt]:
    """Return a suite with a ``return`` or ``continue`` at its end, which takes the place of a ``pass``."""
    return [*([] if is_empty(stmts) else stmts), leave(end, None)]


def is_endless(stmt: ast.stmt) -> TypeGuard[ast.While]:
    """Return whether a statement is ``while True``."""
    return isinstance(stmt, ast.While) and isinstance(stmt.test, ast.Constant)


def breaks_of(stmts: list[ast.stmt]) -> Iterator[ast.Break]:
    """Yield each ``break`` that leaves the loop that contains a suite."""
    for stmt in stmts:
        if isinstance(stmt, ast.Break):
            yield stmt
        for suite in [stmt.orelse] if isinstance(stmt, LOOPS) else suites_of(stmt):
            yield from breaks_of(suite)


def always_fits(case: ast.match_case) -> bool:
    """Return whether a case is ``case _:``."""
    return case.guard is None and isinstance(case.pattern, ast.MatchAs) and case.pattern.pattern is None


def never_falls(stmts: list[ast.stmt]) -> bool:
    """Return whether control never falls off the end of a suite."""
    last = stmts[-1]
    if isinstance(last, ast.Try):
        return all(map(never_falls, (last.orelse or last.body, *(handler.body for handler in last.handlers))))
    if isinstance(last, ast.Match):
        return always_fits(last.cases[-1]) and all(never_falls(case.body) for case in last.cases)
    if is_endless(last):
        return next(breaks_of(last.body), None) is None
    if isinstance(last, ast.Assert):
        return isinstance(last.test, ast.Constant) and not last.test.value
    return isinstance(last, LEAVES) or isinstance(last, ast.If) and bool(last.orelse) \
        and never_falls(last.body) and never_falls(last.orelse)


def first_line(stmts: list[ast.stmt]) -> int | None:
    """Return the first line that is known of a suite."""
    for stmt in stmts:
        line = line_of(stmt)
        if line is not None:
            return line
    return None


def is_before(one: list[ast.stmt], other: list[ast.stmt]) -> bool:
    """Return whether a suite is known to begin on a line before another."""
    first, second = first_line(one), first_line(other)
    return first is not None and second is not None and first < second
