"""The tests of statements as their author spelled them: which ``not``, and whether ``and`` was a nested ``if``.

Example: ``if a and b:``, where ``b`` is on a line below that of ``a`` and as far right as the test of an ``if``, is
``if a:`` with ``if b:`` in it.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Iterable
from operator import itemgetter
from typing import TYPE_CHECKING, TypeVar

from ...bytecode import operations as o
from ...bytecode.code import Code
from ...bytecode.linetable import Position, positions
from ..lift.spelling import (
    BRANCH_TO_TEST,
    IF_TO_TEST,
    INDENTATION,
    WHILE_TO_TEST,
    before_jump,
    begins_below,
    begins_statement,
    best_spelling,
    first_part,
    folds_not,
    has_spellings,
    line_of_first,
    negate,
    spelled,
    start_of,
)
from ..nodes import FoldedBool, at_line, line_of, ops_of, part_of, suites_of, with_operands

if TYPE_CHECKING:
    from ..bodies import Body
    from ..scopes import CodeScope


_Tested = ast.If | ast.While | ast.Assert
#: So many statements inside each other are tried, in so many ways that they have so many operands in all.
_MOST_INSIDE, _MOST_OPERANDS = 3, 400
#: What speaks against an ``if`` in a ``while`` whose test begins below ``if (`` or after ``if not (``.
_GOES_ON = 0.5


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
                for case in statement.cases:
                    case.guard = case.guard and spelled(self.scope, case.guard)
            if isinstance(statement, (ast.If, ast.While, ast.Assert)):
                statements[at] = outer = self._by_columns(statement)
                self._spell(outer)

    def _spell(self, statement: _Tested) -> None:
        if has_spellings(statement.test):
            column = None if isinstance(statement, ast.Assert) else self._column(statement)
            widths = WHILE_TO_TEST if isinstance(statement, ast.While) else BRANCH_TO_TEST
            statement.test = spelled(self.scope, statement.test, column, widths)
        inner = getattr(statement, "body", None)
        if inner and isinstance(inner[0], (ast.If, ast.Assert)):
            self._spell(inner[0])

    def _column(self, statement: ast.If | ast.While) -> int | None:
        """Return the column of a statement whose body is on lines of its own, as far as that is known."""
        facts, first = self.body.facts, statement.body[0]
        column, begin = facts.column(first), line_of_first(self.scope, statement.test)
        return column - INDENTATION if column is not None and (facts.first_line(first) or 0) > (begin or 0) else None

    def _by_columns(self, statement: _Tested) -> _Tested:
        """Return the statement with others in it, if their tests are in its own."""
        test = statement.test
        if not isinstance(statement, ast.Assert) and not statement.orelse:
            if isinstance(statement, ast.While):
                self._break_in_while(statement)
            elif self.body.facts.has_columns and self._is_one_test(statement):
                return statement
            elif isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
                return self._nested(statement, test)
        return statement

    def _is_one_test(self, statement: ast.If) -> bool:
        """Make ``if a and b:`` of ``if a:`` with ``if b:`` in it, where columns speak for one test.

        (The graph does not say so where the compiler copied what follows to each of its jumps.)
        """
        inner = statement.body[0]
        if len(statement.body) > 1 or not isinstance(inner, ast.If) or inner.orelse:
            return False
        outer = _operands(statement.test)
        test = FoldedBool(ast.And(), [*outer, *_operands(inner.test)])
        one, two = (self._cost(test, starts, self._column(inner)) for starts in ((), (len(outer),)))
        if one < two:
            statement.test, statement.body = test, inner.body
        return one < two

    def _nested(self, statement: ast.If, test: ast.BoolOp) -> ast.If:
        """Return ``if a:`` with ``if b:`` in it for ``if a and b:``."""
        values, scope = test.values, self.scope
        below = [at for at in range(1, len(values)) if begins_below(scope, values[at - 1], values[at])
                 and not self.body.facts.exits_between(values[at - 1], values[at])]
        if below and scope.has_columns():
            column = self._column(statement)
            ways = (each for count in range(_MOST_INSIDE + 1) for each in itertools.combinations(below, count))
            chosen = _cheapest(ways, lambda each: self._cost(test, each, column), len(values))
        else:
            chosen = tuple(at for at in below if begins_statement(scope, values[at - 1], values[at]))[:1]
        for at in reversed(chosen):
            statement.body = [ast.copy_location(ast.If(part_of(test, at), statement.body, []), statement)]
            statement.test = part_of(test, 0, at)
            test = with_operands(test, test.values[:at])
        return statement

    def _cost(self, test: ast.BoolOp, starts: tuple[int, ...], column: int | None) -> float:
        """Return what speaks against ``if`` statements with the operands of a test, one in the other.

        Args:
            test: the test.
            starts: the operands that begin the inner ones.
            column: of the outermost, if it were the only one.
        """
        ends = [*starts, len(test.values)]
        if column is None:
            first = self.body.facts.start(test.values[0])
            if first is None or first[1] is None:
                return len(starts)
            column = (first[1] - IF_TO_TEST[0]) // INDENTATION * INDENTATION + INDENTATION * len(starts)
        return sum(best_spelling(self.scope, part_of(test, start, end), column - INDENTATION * (len(ends) - at))[0]
                   for at, (start, end) in enumerate(zip((0, *starts), ends), 1))

    def _break_in_while(self, statement: ast.While) -> None:
        """Make ``while a: if not b: break`` of ``while a and b``, if ``b`` was the test of an ``if``."""
        test = _contrary(statement.test)
        if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or):
            at = self._if_in_while(statement, test) or _negated_twice(test, self.scope)
            if at and not any(map(folds_not, test.values[:at])):
                inner = ast.copy_location(ast.If(part_of(test, at), [ast.Break()], []), statement)
                statement.test = negate(part_of(test, 0, at))
                statement.body.insert(0, inner)

    def _if_in_while(self, statement: ast.While, test: ast.BoolOp) -> int:
        """Return which operand of the contrary of a ``while`` was the test of an ``if``; 0 for none."""
        values, scope = test.values, self.scope
        if not scope.has_columns():
            return next((at for at in range(1, len(values)) if begins_statement(scope, values[at - 1], values[at])), 0)
        column = self._column(statement)
        if column is None:
            return 0

        def cost(at: int) -> float:
            outer = best_spelling(scope, negate(part_of(test, 0, at or None)), column, WHILE_TO_TEST)[0]
            if not at:
                return outer
            begin = self.body.facts.start(values[at])
            # (Two or three indentations to the right it is rather a line of the test that goes on.)
            goes_on = begin is not None and begin[1] in (column + 2 * INDENTATION, column + 3 * INDENTATION)
            return outer + best_spelling(scope, part_of(test, at), column + INDENTATION)[0] + _GOES_ON * goes_on

        below = [at for at in range(1, len(values)) if begins_below(scope, values[at - 1], values[at])]
        return _cheapest([0, *below], cost, len(values))


_Way = TypeVar("_Way")


def _cheapest(ways: Iterable[_Way], cost: Callable[[_Way], float], operands: int) -> _Way:
    """Return the first of some ways to write a test of so many operands that costs least."""
    costs: list[tuple[float, _Way]] = []
    for way in itertools.islice(ways, max(_MOST_OPERANDS // operands, 2)):
        costs.append((cost(way), way))
        if not costs[-1][0]:
            break
    return min(costs, key=itemgetter(0))[1]


def _negated_twice(test: ast.BoolOp, scope: CodeScope) -> int:
    """Return where ``not (not a or b in c)`` ceases to be negated twice, if no columns are known; 0 for nowhere."""
    at = next((at for at, value in enumerate(test.values) if folds_not(value)), 0)
    are_negative = all(not folds_not(negate(value)) and (isinstance(value, ast.UnaryOp) or isinstance(
        value, ast.Compare) and isinstance(value.ops[0], ast.Is)) for value in test.values[:at])
    return at if not scope.has_columns() and are_negative else 0


def split_asserts(statements: list[ast.stmt], scope: CodeScope) -> None:
    """Write ``if a: assert b`` for ``assert not a or b`` in a suite and those in it, where the lines say so."""
    for at, statement in enumerate(statements):
        if isinstance(statement, ast.Assert):
            statements[at] = _assert_in_if(statement, scope, scope.code.version < (3, 12))
        else:
            for suite in suites_of(statement):
                split_asserts(suite, scope)


def _assert_in_if(statement: ast.Assert, scope: CodeScope, hides_line: bool) -> _Tested:
    """Return ``if a: assert b`` for ``assert not a or b``, if ``a`` is above the line of the ``assert``.

    (*Certain*: its operations have the line on which it begins; up to 3.11 a comparison in it ``hides_line``.)
    """
    contrary, line = _contrary(statement.test), line_of(statement)
    is_and = isinstance(contrary, ast.BoolOp) and isinstance(contrary.op, ast.And)
    test = contrary if is_and else statement.test
    if not isinstance(test, ast.BoolOp) or isinstance(test.op, ast.And) is not is_and:
        return statement
    at = next((at for at, value in enumerate(test.values) if (line_of_first(scope, value) or 0) >= (line or 0)), 0)
    outer, inner = part_of(test, 0, at), part_of(test, at)
    if at and not folds_not(inner if is_and else outer):
        outer, inner = (outer, negate(inner)) if is_and else (negate(outer), inner)
        operands = inner.values if isinstance(inner, ast.BoolOp) else [inner]
        hidden = hides_line and any(isinstance(before_jump(each), ast.Compare) for each in operands)
        if not hidden or _is_inside(outer, inner, statement.test, scope):
            statement.test = inner
            return at_line(ast.If(outer, [statement], []), line_of_first(scope, test.values[at - 1]))
    return statement


def _is_inside(outer: ast.expr, inner: ast.expr, test: ast.expr, scope: CodeScope) -> bool:
    """Return whether columns speak for ``if outer:`` with ``assert inner`` in it, or as much as for the test in one."""
    part, before = first_part(inner)
    start = start_of(scope, part)
    if start is None:
        return True
    column = start[1] - before - len("assert ") - INDENTATION
    apart, together = best_spelling(scope, outer, column)[0], best_spelling(scope, test, None, keyword="assert ")[0]
    is_unusual = isinstance(outer, ast.UnaryOp) and isinstance(outer.operand, ast.Compare)  # (``if not a != b``)
    return apart < together or apart == together and not is_unusual


def _operands(test: ast.expr) -> list[ast.expr]:
    """Return the operands of ``a and b``; another test alone."""
    return test.values if isinstance(test, FoldedBool) and isinstance(test.op, ast.And) and not test.merged else [test]


def _contrary(test: ast.expr) -> ast.expr:
    """Return the contrary of a test, if it is the same jumps; else the test."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return test.operand
    return test if any(map(folds_not, test.values if isinstance(test, ast.BoolOp) else ())) else negate(test)


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
    if body.scope.has_places and not _JOINED.isdisjoint(body.cfg.present):
        _join(body.statements, body.scope.code)


def _join(statements: list[ast.stmt], code: Code) -> None:
    kept: list[ast.stmt] = []
    for statement in statements:
        last = kept[-1] if kept else None
        if isinstance(statement, (ast.Import, ast.Delete)) and last is not None:
            first, second = (_place(each, positions(code)) for each in (last, statement))
            if isinstance(statement, ast.Import) and isinstance(last, ast.Import) and first == second is not None:
                last.names += statement.names
                continue
            if isinstance(statement, ast.Delete) and isinstance(last, ast.Delete) and first and second and (
                    second.line == first.end_line and 0 < (second.column or 0) - (first.end_column or 0) <= _COMMA):
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
