"""Loops as their author wrote them: where ``break`` stands, and what ends a loop."""

from __future__ import annotations

import ast

from ..lift import folds_not, negate
from ..nodes import at_line, line_of, suites_of
from .evidence import Evidence
from .suites import is_nothing


def break_branch(evidence: Evidence, stmts: list[ast.stmt], at: int, after: int | None) -> None:
    """Arrange an ``if`` with a ``break`` alone in one branch: a guard, or ``else: break``.

    A jump is all that a ``break`` leaves. Which branch comes first in the text follows from its line. Where nothing
    tells, it is a guard.

    Args:
        evidence: of the code.
        stmts: the suite.
        at: the place of the ``if`` in it.
        after: the line of the statement behind the suite.
    """
    stmt = stmts[at]
    assert isinstance(stmt, ast.If)
    if folds_not(stmt.test) or is_break(stmt.body) and is_break(stmt.orelse):
        return
    if is_break(stmt.orelse):
        guard = evidence.exit_between(line_of(stmt), line_of(stmt.body[0]), "break")
        behind = line_of(stmts[at + 1]) if at + 1 < len(stmts) else after
        if guard is None and evidence.exit_between(evidence.behind(stmt.body), behind, "break") is not None:
            return
        stmt.test, stmt.body, stmt.orelse = negate(stmt.test), stmt.orelse, stmt.body
        if guard is not None:
            evidence.stands_at(stmt.body[0], guard)
        if evidence.column(stmt.body[0]) is None:
            stmts[at + 1:at + 1], stmt.orelse = stmt.orelse, []
    elif is_break(stmt.body):
        rest = stmt.orelse or stmts[at + 1:]
        guard = evidence.exit_between(line_of(stmt), line_of(rest[0]) if rest else after, "break")
        if guard is not None:
            evidence.stands_at(stmt.body[0], guard)
        else:
            _break_behind(evidence, stmts, at, after)


def break_at_end(evidence: Evidence, stmts: list[ast.stmt], after: int | None) -> bool:
    """Arrange ``if a: break`` at the end of a loop as ``if not a: continue`` and ``break`` where that was written.

    Returns:
        Whether it was.
    """
    stmt = stmts[-1]
    assert isinstance(stmt, ast.If)
    if not is_break(stmt.body) or folds_not(stmt.test):
        return False
    goes_on = evidence.exit_between(line_of(stmt), after, "continue")
    leaves = evidence.exit_between(goes_on.line + 1, after, "break") if goes_on is not None else None
    if goes_on is None or leaves is None or goes_on.column is None or leaves.column is None \
            or leaves.column >= goes_on.column:
        return False
    stmt.test = negate(stmt.test)
    stmts.extend(stmt.body)
    stmt.body = [ast.Continue()]
    evidence.stands_at(stmt.body[0], goes_on)
    evidence.stands_at(stmts[-1], leaves)
    return True


def _break_behind(evidence: Evidence, stmts: list[ast.stmt], at: int, after: int | None) -> None:
    """Arrange ``if a: break`` and the rest as ``if not a: (rest)`` with ``else: break`` where that was written."""
    stmt = stmts[at]
    assert isinstance(stmt, ast.If)
    rest = [*stmt.orelse, *stmts[at + 1:]]
    for count in range(1, len(rest) + 1):
        behind = line_of(rest[count]) if count < len(rest) else after
        written = evidence.exit_between(evidence.behind(rest[:count]), behind, "break")
        if written is not None and written.column is not None and written.column == evidence.column(rest[0]):
            stmt.test, stmt.body, stmt.orelse = negate(stmt.test), rest[:count], stmt.body
            evidence.stands_at(stmt.orelse[0], written)
            stmts[at + 1:] = rest[count:]
            return


def break_in_loop(evidence: Evidence, stmt: ast.While) -> None:
    """Arrange ``while a:`` as ``while True:`` with ``if not a: break``, where a ``break`` stands before its body."""
    first, test = stmt.body[0], stmt.test
    if stmt.orelse or isinstance(test, ast.Constant) or folds_not(test) or isinstance(first, ast.Break):
        return
    contrary = negate(test)
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) or (
            isinstance(contrary, ast.BoolOp) and isinstance(contrary.op, ast.Or)):
        return  # (The first part may be the test of the loop.)
    written = evidence.exit_between((line_of(stmt) or 0) + 1, line_of(first), "break")
    column = evidence.column(first)
    if written is not None and (written.column is None or column is None or written.column > column):
        inner = at_line(ast.If(contrary, [ast.Break()], []), line_of(stmt))
        evidence.stands_at(inner.body[0], written)
        stmt.test = ast.Constant(True)
        stmt.body.insert(0, inner)


def leave_by_break(evidence: Evidence, stmts: list[ast.stmt]) -> None:
    """Write the ``break`` of a loop that nothing comes behind, where the compiler has a copy of the function's end."""
    for at, stmt in enumerate(stmts):
        if isinstance(stmt, ast.Return) and is_nothing(stmt):
            written = evidence.break_at(stmt)
            if written is not None:
                stmts[at] = ast.Break()
                evidence.stands_at(stmts[at], written)
        elif isinstance(stmt, (ast.For, ast.AsyncFor, ast.While)):
            leave_by_break(evidence, stmt.orelse)
        else:
            for suite in suites_of(stmt):
                leave_by_break(evidence, suite)


def is_break(stmts: list[ast.stmt]) -> bool:
    """Return whether a suite is a ``break``."""
    return len(stmts) == 1 and isinstance(stmts[0], ast.Break)
