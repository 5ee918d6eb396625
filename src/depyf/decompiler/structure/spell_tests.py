"""The tests of statements as their author spelled them: which ``not``, and whether ``and`` was a nested ``if``.

Example: ``if a and b:``, where ``b`` is on a line below that of ``a`` and as far right as the test of an ``if``, is
``if a:`` with ``if b:`` in it.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ...bytecode import operations as o
from ...bytecode.code import Code
from ...bytecode.linetable import Position, positions
from ..lift import Scope, folds_not, negate
from ..lift.spelling import (
    begins_below,
    begins_in_parentheses,
    begins_statement,
    depth,
    line_of_first,
    spelled,
)
from ..nodes import line_of, ops_of, part_of, suites_of, with_operands
from .evidence import INDENTATION, TO_TEST

if TYPE_CHECKING:
    from ..bodies import Body


_Tested = ast.If | ast.While | ast.Assert
#: Text that may precede the test of a statement.
_IF = ("if ", "if (", "elif ")
_WHILE = ("while ",)


def spell_tests(body: Body) -> None:
    """Spell the tests of ``if``, ``while`` and ``assert`` as columns and lines say."""
    _Speller(body).suite(body.statements)


class _Speller:
    """Spells the tests of one body."""

    def __init__(self, body: Body) -> None:
        self.body = body
        self.scope = body.scope

    def suite(self, statements: list[ast.stmt]) -> None:
        """Spell the tests of a suite, the inner ones first: where a statement begins follows from what is in it."""
        for at in reversed(range(len(statements))):
            statement = statements[at]
            if isinstance(statement, (ast.Expr, ast.Assign, ast.Return)):  # (most)
                continue
            for suite in suites_of(statement):
                self.suite(suite)
            if isinstance(statement, ast.Match):
                self._if_in_case(statement.cases[-1])
                for case in statement.cases:
                    case.guard = case.guard and spelled(self.scope, case.guard)
            if isinstance(statement, (ast.If, ast.While, ast.Assert)):
                statements[at] = outer = self._apart(statement)
                self._spell(outer)
                if len(statements) > at + 1 and isinstance(statement, ast.Assert):
                    _join_asserts(statements, at)

    def _if_in_case(self, case: ast.match_case) -> None:
        """Make ``case x if a:`` with ``if b:`` in it of ``case x if a and b:``, if that is where ``b`` is."""
        column = self.body.facts.column(case.body[0])
        if column is None or not isinstance(case.guard, ast.BoolOp) or not isinstance(case.guard.op, ast.And):
            return
        at = self.body.facts.first_inside(case.guard.values, column - INDENTATION, TO_TEST[:1])
        if at:
            case.body = [ast.copy_location(ast.If(part_of(case.guard, at), case.body, []), case.body[0])]
            case.guard = part_of(case.guard, 0, at)

    def _spell(self, statement: _Tested) -> None:
        statement.test = spelled(self.scope, statement.test)
        inner = getattr(statement, "body", None)
        if inner and isinstance(inner[0], (ast.If, ast.Assert)):
            self._spell(inner[0])

    def _apart(self, statement: _Tested) -> _Tested:
        """Return the statement with others in it, if their tests are in its own."""
        test = statement.test
        if isinstance(statement, ast.Assert):
            return _assert_in_if(statement, self.scope)
        if not statement.orelse:
            if isinstance(statement, ast.While):
                _break_in_while(statement, self.scope)
            elif isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
                return self._nested(statement, test)
        return statement

    def _nested(self, statement: ast.If, test: ast.BoolOp) -> ast.If:
        """Return ``if a:`` with ``if b:`` in it for ``if a and b:``."""
        values, scope = test.values, self.scope
        below = [at for at in range(1, len(values)) if begins_below(scope, values[at - 1], values[at])
                 and not self.body.facts.exits_between(values[at - 1], values[at])]
        if below:
            starts = [at for at in below if begins_statement(scope, values[0], values[at - 1], values[at], _IF, "if ")
                      or begins_in_parentheses(scope, values[at - 1], values[at])]
            column = self.body.facts.column(statement.body[0])
            deep = None if column is None else depth(scope, values[0], column)
            if deep is not None:
                ranked = [*(at for at in below if at not in starts), *starts]
                below = ranked[max(len(ranked) - max(deep, 0), 0):]  # (where one ends, lines begin in one column)
            else:
                below = starts[:1]
            for at in sorted(below, reverse=True):
                statement.body = [ast.copy_location(ast.If(part_of(test, at), statement.body, []), statement)]
                statement.test = part_of(test, 0, at)
                test = with_operands(test, test.values[:at])
        return statement


def _break_in_while(statement: ast.While, scope: Scope) -> None:
    """Make ``while a: if not b: break`` of ``while a and b``, if ``b`` was the test of an ``if``."""
    test = _contrary(statement.test)
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or):
        at = _statement_in([*map(negate, test.values)], test.values, scope, _WHILE, "if ")
        at = at or _negated_twice(test, scope)
        if at and not any(map(folds_not, test.values[:at])):
            inner = ast.copy_location(ast.If(part_of(test, at), [ast.Break()], []), statement)
            statement.test = negate(part_of(test, 0, at))
            statement.body.insert(0, inner)


def _negated_twice(test: ast.BoolOp, scope: Scope) -> int:
    """Return where ``not (not a or b in c)`` ceases to be negated twice, if no columns are known; 0 for nowhere."""
    at = next((at for at, value in enumerate(test.values) if folds_not(value)), 0)
    return at if not scope.has_columns() and not any(folds_not(negate(value)) or not _is_negative(value)
                                                    for value in test.values[:at]) else 0


def _is_negative(test: ast.expr) -> bool:
    return isinstance(test, ast.UnaryOp) or isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Is)


def _assert_in_if(statement: ast.Assert, scope: Scope) -> _Tested:
    """Return ``if a: assert b`` for ``assert not a or b``, if ``a`` is above the line of the ``assert``.

    (*Certain*: its operations have the line on which it begins.)
    """
    test = _contrary(statement.test)
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        line = line_of(statement)
        at = next((at for at, value in enumerate(test.values) if (line_of_first(scope, value) or 0) >= (line or 0)), 0)
        if at and not (at == len(test.values) - 1 and folds_not(test.values[at])):
            statement.test = negate(part_of(test, at))
            return ast.copy_location(ast.If(part_of(test, 0, at), [statement], []), statement)
    return statement


def _join_asserts(statements: list[ast.stmt], at: int) -> None:
    """Make ``assert a and b`` of two in one line."""
    one, other = statements[at:at + 2]
    if not isinstance(one, ast.Assert) or not isinstance(other, ast.Assert) or line_of(one) != line_of(other):
        return
    if line_of(one) is not None and (
        one.msg is other.msg is None or one.msg and other.msg and ast.dump(one.msg) == ast.dump(other.msg)
    ):
        one.test = ast.BoolOp(ast.And(), [one.test, other.test])
        del statements[at + 1]


def _contrary(test: ast.expr) -> ast.expr:
    """Return the contrary of a test, if it is the same jumps; else the test."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return test.operand
    return test if any(map(folds_not, test.values if isinstance(test, ast.BoolOp) else ())) else negate(test)


def _statement_in(
    outer: list[ast.expr], inner: list[ast.expr], scope: Scope, keywords: tuple[str, ...], keyword: str,
) -> int:
    """Return the index of the first operand that was the test of a statement in that of those before it; 0 for none.

    Args:
        outer: the operands as they would be written in the outer statement.
        inner: the same as they would be written in the inner one.
        scope: the code object of the test.
        keywords: text that may precede the outer test.
        keyword: text before the inner one.
    """
    return next((at for at in range(1, len(inner))
                 if begins_statement(scope, outer[0], outer[at - 1], inner[at], keywords, keyword)), 0)


# --- Statements of several parts: ``import a, b`` and ``del a, b`` -----------------------------------
# The compiler makes one operation a part. From 3.11 on the imports of one statement have its span
# (``compiler_import`` in compile.c), and the targets of one ``del`` are as close together as a comma allows.
#
# Example: ``IMPORT_NAME a`` and ``IMPORT_NAME b``, both at ``1:0-1:11``, are ``import a, b``.
#: Operations of statements that are joined.
_JOINED = frozenset({
    o.IMPORT_NAME, o.DELETE_FAST, o.DELETE_GLOBAL, o.DELETE_NAME, o.DELETE_DEREF, o.DELETE_ATTR, o.DELITEM})
#: Columns from the end of one target of ``del`` to the next, at most: a comma and two blanks. (``; del`` takes five.)
_COMMA = 3


def join_statements(body: Body) -> None:
    """Join the statements of a body that were written as one."""
    if body.has_places and not _JOINED.isdisjoint(body.cfg.present):
        _join(body.statements, body.scope.code)


def _join(statements: list[ast.stmt], code: Code) -> None:
    kept: list[ast.stmt] = []
    for statement in statements:
        last = kept[-1] if kept else None
        if isinstance(statement, ast.Import) and isinstance(last, ast.Import):
            if _is_one_import(last, statement, positions(code)):
                last.names += statement.names
                continue
        elif isinstance(statement, ast.Delete) and isinstance(last, ast.Delete):
            if _is_one_del(last, statement, positions(code)):
                last.targets += statement.targets
                last.end_col_offset = statement.end_col_offset  # (the next one is compared with this)
                continue
        kept.append(statement)
        for suite in suites_of(statement):
            _join(suite, code)
    statements[:] = kept


def _place(statement: ast.stmt, places: list[Position | None]) -> Position | None:
    ops = ops_of(statement)
    place = places[ops[1] // 2] if ops is not None and 0 <= ops[1] < 2 * len(places) else None
    return place if place is not None and place.column is not None else None


def _is_one_import(one: ast.Import, other: ast.Import, places: list[Position | None]) -> bool:
    first, second = _place(one, places), _place(other, places)
    return first is not None and first == second


def _is_one_del(one: ast.Delete, other: ast.Delete, places: list[Position | None]) -> bool:
    first, second = _place(one, places), _place(other, places)
    return (first is not None and second is not None and first.end_column is not None and second.column is not None
            and second.line == first.end_line and 0 < second.column - first.end_column <= _COMMA)
