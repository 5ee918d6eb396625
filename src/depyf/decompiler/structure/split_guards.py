"""Guards one after the other: ``if a: continue`` and ``if b: continue``, which are ``if a or b: continue`` as jumps.

Example: in ``if a or b: continue``, where ``b`` stands two lines below ``a`` and as far right, there is a ``continue``
between the two.
"""

from __future__ import annotations

import ast
import copy
from typing import TYPE_CHECKING

from ..lift import Scope
from ..lift.spelling import begins_below, begins_guard, line_of_first
from ..nodes import compound_places, part_of, suites_of
from .evidence import Evidence

if TYPE_CHECKING:
    from ..body import Body


def split_guards(body: Body) -> None:
    """Split guards of which each has its own exit."""
    if body.has_places:
        _split(body.statements, body)


def _split(statements: list[ast.stmt], body: Body) -> None:
    for at in compound_places(statements):
        statement = statements[at]
        for suite in suites_of(statement):
            _split(suite, body)
        if isinstance(statement, ast.If) and len(statement.body) == 1 and not statement.orelse and isinstance(
            statement.body[0], (ast.Continue, ast.Break, ast.Return)
        ) and isinstance(statement.test, ast.BoolOp) and isinstance(statement.test.op, ast.Or):
            statements[at:at + 1] = _apart(statement, statement.test, statement.body[0], body)


def _apart(statement: ast.If, test: ast.BoolOp, leave: ast.stmt, body: Body) -> list[ast.stmt]:
    """Return the guards that were written for ``if test: leave``."""
    values, scope = test.values, body.scope
    starts = [0]
    for at in range(1, len(values)):
        before, operand = values[at - 1:at + 1]
        if begins_below(scope, before, operand):
            if exit_between(body.facts, scope, before, operand) or (
                begins_guard(scope, values[starts[-1]], before, operand)
            ):
                starts.append(at)
    guards: list[ast.stmt] = []
    for start, end in zip(starts, [*starts[1:], len(values)]):
        guards.append(ast.copy_location(ast.If(part_of(test, start, end), [copy.copy(leave)], []), statement))
    return guards if len(guards) > 1 else [statement]


def exit_between(evidence: Evidence, scope: Scope, before: ast.expr, operand: ast.expr) -> bool:
    """Return whether there is a statement of one word on a line between two operands: a guard's exit."""
    line = line_of_first(scope, before)
    return line is not None and evidence.exit_between(line + 1, line_of_first(scope, operand)) is not None
