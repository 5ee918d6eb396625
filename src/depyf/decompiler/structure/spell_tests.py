"""The tests of statements as their author spelled them: which ``not``, and whether ``and`` was a nested ``if``.

Example: ``if a and b:``, where ``b`` stands on a line below that of ``a`` and as far right as the test of an ``if``, is
``if a:`` with ``if b:`` in it.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ..lift import Scope
from ..lift.spelling import begins_statement, spelled
from ..nodes import refined, suites_of

if TYPE_CHECKING:
    from ..body import Body


def spell_tests(body: Body) -> None:
    """Spell the tests of ``if``, ``while`` and ``assert`` as columns and lines say."""
    _spell(body.statements, body.scope)


def _spell(statements: list[ast.stmt], scope: Scope) -> None:
    for statement in statements:
        if isinstance(statement, ast.If):
            if not statement.orelse:
                _nest(statement, scope)
            statement.test = spelled(scope, statement.test)
        elif isinstance(statement, (ast.While, ast.Assert)):
            statement.test = spelled(scope, statement.test)
        for suite in suites_of(statement):
            _spell(suite, scope)


def _nest(statement: ast.If, scope: Scope) -> None:
    """Make ``if a and b:`` two statements, if the second operand was the test of one."""
    test = statement.test
    if not isinstance(test, ast.BoolOp) or not isinstance(test.op, ast.And):
        return
    for at in range(1, len(test.values)):
        if begins_statement(scope, test.values, at):
            outer, inner = _part(test, 0, at), _part(test, at, len(test.values))
            statement.test, statement.body = outer, [ast.copy_location(ast.If(inner, statement.body, []), statement)]
            return


def _part(test: ast.BoolOp, start: int, end: int) -> ast.expr:
    """Return some operands of ``and`` as a test."""
    values = test.values[start:end]
    if len(values) == 1:
        return values[0]
    made = refined(test, type(test))
    made.values = values
    return made
