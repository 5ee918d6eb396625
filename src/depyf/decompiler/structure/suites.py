"""Suites: the statements of a body or branch, where they begin and end."""

from __future__ import annotations

import ast

from ..lift.stack import is_none
from ..nodes import at_line, line_of

#: Statements that control never goes on behind.
LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)


def leave(kind: str, line: int | None) -> ast.stmt:
    """Return a ``return`` or ``continue``."""
    return at_line(ast.Return() if kind == "return" else ast.Continue(), line)


def leaves_by(stmt: ast.stmt, end: str) -> bool:
    """Return whether a statement does what falling off the end of its suite does."""
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


def never_falls(stmts: list[ast.stmt]) -> bool:
    """Return whether control never falls off the end of a suite."""
    last = stmts[-1]
    if isinstance(last, ast.Try):
        return all(map(never_falls, (last.orelse or last.body, *(handler.body for handler in last.handlers))))
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
