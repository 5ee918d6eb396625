"""What people write most, where nothing tells which of several forms was written.

The forms of an ``if`` that are one program are counted over real code (``scripts/count_habits.py``), by what the
statements look like: how many there are, what they end in. The answer is what was written most often where they look
so; where that was seldom, the last of what is looked at is left out of account, and so on.

Example: ``if a: return b`` and one statement behind it, ``return c``, with room for a line between them: an ``else``
was counted in 1708 of 2074 functions. With a longer rest it is written seldom.
"""

from __future__ import annotations

import ast

from .habit_counts import HABITS
from .suites import is_nothing, word_of

Key = tuple[str, ...]


def written_most(question: str, key: Key) -> str:
    """Return the answer to a question that was counted most often.

    Args:
        question: ``else``, ``elif``, ``join`` or ``guard``.
        key: what the statements look like, from :func:`looks`; the most telling first.
    """
    answers = HABITS[question]
    return next(answers[key[:length]][0] for length in range(len(key), -1, -1) if key[:length] in answers)


def looks(question: str, stmt: ast.If, rest: list[ast.stmt], room: int | None = None) -> Key:
    """Return what an ``if`` and what runs where it does not look like.

    Args:
        question: that will be asked.
        stmt: the ``if``, of which the branch counts.
        rest: the statements behind it, or in its ``else``.
        room: the number of lines between them, if it is known.
    """
    lines = "" if room is None else str(min(room, 2))
    kind, count, size = leaves(stmt.body), str(min(len(rest), 3)), str(min(_size(rest, 4), 4))
    if question == "else":
        return (lines, size, kind, _few(stmt.body)) if lines else (lines, leaves(rest), count, _values(stmt.body, rest),
                                                                   _test(stmt.test), kind)
    if question == "elif":
        return lines, count, kind, str(_same_subject(stmt, rest[0])), size, leaves(rest)
    if question == "join":
        return str(min(len(rest), 4)), str(min(_size(stmt.body, 4), 4)), size, str(isinstance(rest[0], ast.If))
    return str(min(_size(rest, 12), 12)), count, _test(stmt.test)


def leaves(stmts: list[ast.stmt]) -> str:
    """Return how control leaves the end of a suite."""
    last = stmts[-1]
    if isinstance(last, ast.Return):
        return "return" if is_nothing(last) else "value"
    if isinstance(last, (ast.Raise, ast.Continue, ast.Break)):
        return word_of(last)
    if isinstance(last, ast.If) and last.orelse and leaves(last.body) != "falls" != leaves(last.orelse):
        return "if"
    return "falls"


def _size(stmts: list[ast.stmt], most: int) -> int:
    """Return the number of statements in statements, counted up to ``most``."""
    count = 0
    for stmt in stmts:
        for node in ast.walk(stmt):
            count += isinstance(node, ast.stmt)
            if count >= most:
                return count
    return count


def _few(stmts: list[ast.stmt]) -> str:
    return "1" if len(stmts) == 1 and _size(stmts, 2) == 1 else "2"


def _values(branch: list[ast.stmt], rest: list[ast.stmt]) -> str:
    """Return whether two values of one kind are returned."""
    one, other = getattr(branch[-1], "value", None), getattr(rest[-1], "value", None)
    if isinstance(one, ast.Constant):
        return "constant"
    return "alike" if one is not None and type(one) is type(other) else ""


def _test(test: ast.expr) -> str:
    """Return the kind of a test."""
    if isinstance(test, ast.UnaryOp):
        return "not"
    if isinstance(test, ast.Compare) and isinstance(test.ops[0], (ast.NotIn, ast.NotEq)):
        return "not"
    return "and" if isinstance(test, ast.BoolOp) else ""


def _same_subject(stmt: ast.If, other: ast.stmt) -> bool:
    """Return whether two tests compare one value."""
    one, two = stmt.test, getattr(other, "test", None)
    return isinstance(one, ast.Compare) and isinstance(two, ast.Compare) and ast.dump(one.left) == ast.dump(two.left)
