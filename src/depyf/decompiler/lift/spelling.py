"""Tests spelled as the places of their operands say: ``not (a or b)`` or ``not a and not b``.

Both are the same jumps. Each spelling has other text between the operands, and so other places for them: on one line,
and on lines below, which begin where the first line in the same parentheses does. The spelling that explains the places
best is written (*likely*: there may be more blanks and parentheses than needed). Where places say nothing, ``not``
precedes each operand; but three operands or more that all would need one share it, as they do in most sources, and
``not (a == b and c)`` is likelier than ``not a == b or not c``. Nothing is negated twice.

Example: in ``if not (a or b):`` the spans of ``a`` and ``b`` are four columns apart, `` or ``; `` and not `` has nine.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from itertools import islice, product
from typing import TYPE_CHECKING, Protocol

from ..nodes import FoldedBool, Formatted, UnfoldedCompare, offset_of, with_operands
from .stack import CaseTest, is_none

if TYPE_CHECKING:
    from ...bytecode.linetable import Position
    from ..scopes import CodeScope

#: From how many operands on a ``not`` before all of them is likelier than one before each.
_MANY = 3
#: So many spellings of a test are compared, with so many operands in all; so many operands are grouped.
_MOST_SPELLINGS, _MOST_OPERANDS, _MOST_GROUPED = 64, 384, 6
#: One step of it.
INDENTATION = 4
#: Columns from a statement to its test: ``if ``, ``elif `` and ``while ``, perhaps with a parenthesis.
IF_TO_TEST, ELIF_TO_TEST, WHILE_TO_TEST = (3, 4), (5, 6), (6, 7)
#: Those of ``if `` and ``elif ``; and of these, those without a parenthesis.
BRANCH_TO_TEST = (*IF_TO_TEST, *ELIF_TO_TEST)
_BARE = (3, 5)

# What speaks against a spelling.
#: Each column that the text between two operands is too wide, or too narrow, for it; no more than the last counts.
_TOO_WIDE, _TOO_NARROW, _WIDEST = 3.0, 1.0, 4
#: A line that begins where none should, or at an unusual column; a test that begins left of its statement.
_ELSEWHERE, _UNUSUAL, _IMPOSSIBLE = 2.0, 0.5, 6.0
#: An operand that is negated twice; parentheses that are not needed; a line that goes on below a backslash.
_TWICE, _NOT_NEEDED, _BACKSLASH = 1.0, 0.5, 0.25


class Positions(Protocol):
    """Something that knows where operations are in the source."""

    def position(self, offset: int) -> Position | None:
        """Return where the operation at a byte offset is in the source; ``None`` where that is not known."""


def spelled(
    scope: Positions, test: ast.expr, column: int | None = None, widths: Collection[int] = BRANCH_TO_TEST,
    keyword: str = "",
) -> ast.expr:
    """Return a test in the likeliest of its spellings; it is tested, its value is not used.

    Args:
        scope: the code object of the test.
        test: the test.
        column: of its statement, if known; ``widths``: how far right of that column the test may begin.
        widths: see there.
        keyword: before a test that is in no statement.
    """
    return best_spelling(scope, test, column, widths, keyword)[1] if has_spellings(test) else test


def has_spellings(test: ast.expr) -> bool:
    """Return whether a test has operands, which can be written in several ways."""
    return isinstance(_without_not(test), FoldedBool)


def best_spelling(
    scope: Positions, test: ast.expr, column: int | None, widths: Collection[int] = BRANCH_TO_TEST, keyword: str = "",
) -> tuple[float, ast.expr]:
    """Return how much speaks against the likeliest spelling of a test (0: nothing), and that spelling."""
    least, likeliest = float("inf"), test
    inner = _without_not(test)
    count = len(inner.values) if isinstance(inner, ast.BoolOp) else 1
    for cost, each in islice(_spellings(test), max(2, min(_MOST_SPELLINGS, _MOST_OPERANDS // count))):
        if cost < least:
            cost += _misfit(scope, each, column, widths, keyword, least - cost)
            if cost < least:
                least, likeliest = cost, each
        if not least:
            break
    return least, likeliest


def _spellings(test: ast.expr) -> Iterator[tuple[float, ast.expr]]:
    """Yield the spellings of a test, the likeliest first, each with what speaks against it anywhere."""
    is_contrary = _is_negated(test)
    inner = _without_not(test)
    if not isinstance(inner, FoldedBool) or inner.merged:
        yield 0.0, test
        return
    outer = FoldedBool(ast.Or() if isinstance(inner.op, ast.And) else ast.And(), []) if is_contrary else inner
    for groups in _groupings(inner.values, is_contrary):
        of_each = [list(islice(_group_spellings(inner, group, is_contrary), _MOST_SPELLINGS)) for group in groups]
        for chosen in product(*of_each):
            values = [value for _, value in chosen]
            yield sum(cost for cost, _ in chosen), values[0] if len(values) == 1 else with_operands(outer, values)


def _group_spellings(test: FoldedBool, group: list[ast.expr], is_contrary: bool) -> Iterator[tuple[float, ast.expr]]:
    """Yield the spellings of neighbouring operands of a test that share a ``not``, or of one operand.

    Nothing where there is none: ``not a is b`` would be another program. ``is_contrary``: of the contrary of the test.
    """
    if len(group) == 1:
        if not is_contrary:
            yield from _spellings(group[0])
        elif not folds_not(group[0]):
            yield from _spellings(negate(group[0]))
        return
    shared = with_operands(test, group) if is_contrary else negate(with_operands(test, group))
    if isinstance(shared, FoldedBool) and (is_contrary or not any(map(folds_not, group))):
        is_twice = not is_contrary and not all(map(_is_shareable, group))
        for chosen in product(*(list(islice(_spellings(each), _MOST_SPELLINGS)) for each in shared.values)):
            values = [value for _, value in chosen]
            twice = _TWICE * max(1, sum(map(_negations, values))) * is_twice
            yield twice + sum(cost for cost, _ in chosen), ast.UnaryOp(ast.Not(), with_operands(shared, values))


def _groupings(values: list[ast.expr], is_contrary: bool) -> Iterator[list[list[ast.expr]]]:
    """Yield operands in groups of neighbours, the likeliest groups first."""
    if is_contrary or all(map(_is_shareable, values)) and _shares_mostly(values):
        yield [values]
    count = len(values)
    cuts_of_all = product((1, 0), repeat=count - 1) if count <= _MOST_GROUPED else [(1,) * (count - 1)]
    for cuts in cuts_of_all:
        starts = [0, *(at for at, cut in enumerate(cuts, 1) if cut), count]
        yield [values[start:end] for start, end in zip(starts, starts[1:])]


def _is_shareable(value: ast.expr) -> bool:
    """Return whether the contrary of an operand is an operand, and no negation."""
    if isinstance(value, ast.BoolOp):
        return all(map(_is_shareable, value.values))
    return not folds_not(value) and not _is_negated(negate(value))


def _shares_mostly(values: list[ast.expr]) -> bool:
    """Return whether most people write one ``not`` for operands: for many, or such as ``not a == b``."""
    if not all(map(_is_negated, values)):
        return False
    inner = [value.operand for value in values if isinstance(value, ast.UnaryOp)]
    return (len(values) >= _MANY or any(isinstance(each, ast.Compare) for each in inner)
            or all(isinstance(each, ast.BoolOp) for each in inner))


def _is_negated(test: ast.expr) -> bool:
    return isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)


def _negations(test: ast.expr) -> int:
    """Return how many operands of a test, and of those in it, are negated."""
    return sum(map(_negations, test.values)) if isinstance(test, ast.BoolOp) else _is_negated(test)


def _without_not(test: ast.expr) -> ast.expr:
    return test.operand if isinstance(test, ast.UnaryOp) and _is_negated(test) else test


def _is_enclosed(operand: ast.expr, test: ast.BoolOp) -> bool:
    """Return whether an operand needs parentheses."""
    return isinstance(operand, ast.IfExp) or isinstance(operand, ast.BoolOp) and not (
        isinstance(operand.op, ast.And) and isinstance(test.op, ast.Or))


# --- how well a spelling explains the places of its operands ----------------------------------------
# The text between two operands is known from a spelling: ``) and not (``. On one line their distance is its width.
# Where the second one is on a line below, that line begins somewhere in this text, at one of the columns where lines
# are expected to begin: one step right of the statement, where the test begins, or what is in a parenthesis of it.
def _misfit(
    scope: Positions, test: ast.expr, column: int | None, widths: Collection[int], keyword: str, most: float,
) -> float:
    """Return how much of the places of a test a spelling does not explain, ``most`` for more than that."""
    tokens, enclosed = (_tokens(test, all_enclosed) for all_enclosed in (False, True))
    cost = _misfit_of(scope, [keyword, *tokens], column, widths, most)
    if not cost or tokens == enclosed:
        return cost
    return _misfit_of(scope, [keyword, *enclosed], column, widths, cost)


def _tokens(test: ast.expr, all_enclosed: bool) -> list[str | ast.expr]:
    """Return the operands of a test and the words between them; ``all_enclosed``: ``(a and b) or c``."""
    if _is_negated(test) and offset_of(test) < 0:
        assert isinstance(test, ast.UnaryOp)
        inner = _tokens(test.operand, all_enclosed)
        return ["not ", "(", *inner, ")"] if isinstance(test.operand, (ast.BoolOp, ast.IfExp)) else ["not ", *inner]
    if not isinstance(test, ast.BoolOp):
        return [test]
    result: list[str | ast.expr] = []
    for value in test.values:
        inner = _tokens(value, all_enclosed)
        if _is_enclosed(value, test) or all_enclosed and isinstance(value, ast.BoolOp):
            inner = ["(", *inner, ")"]
        result += [*([" and " if isinstance(test.op, ast.And) else " or "] if result else []), *inner]
    return result


def _misfit_of(
    scope: Positions, tokens: list[str | ast.expr], column: int | None, widths: Collection[int], most: float,
) -> float:
    cost, depth = 0.0, 0
    words: list[str] = []
    end: Place | None = None
    is_bare, is_open = False, False  # the test begins without a parenthesis; with one that may be of its first operand
    lines: set[int] = set()  # where lines of the test may begin
    led: bool | None = None  # whether the line before begins with the operator, or the one above ends with it
    for token in tokens:
        if isinstance(token, str):
            words.append(token)
            depth += (token == "(") - (token == ")")
            continue
        start, next_end = _span(scope, token, len(tokens) == 2)
        if start is not None:
            # Where each word, and what is in a parenthesis, begins if it is on the line of the operand.
            begins = [start[1] - sum(map(len, words[at:])) + words[at].startswith(" ") for at in range(len(words))]
            inside = {right for word, right in zip(words, [*begins[1:], start[1]]) if word == "("}
            if end is None and column is not None and not lines:
                text = begins[0]
                lines = {column + INDENTATION * step for step in range(1, 1 + max(1, len(inside)))}
                if text - column in widths:
                    is_bare = text - column in _BARE
                    is_open = not is_bare
                    lines.add(text)
                elif lines.isdisjoint({*inside, text}):
                    cost += _NOT_NEEDED if text - 1 in lines else _ELSEWHERE if text > column else _IMPOSSIBLE
            elif end is not None and start[0] == end[0]:
                spare = start[1] - end[1] - sum(map(len, words))
                cost += (_TOO_WIDE * -spare if spare < 0 else _TOO_NARROW * min(spare, _WIDEST) if spare != 1 else
                         _NOT_NEEDED / 2 if is_open else _NOT_NEEDED)
                is_open = spare == 1 and not is_open
            elif end is not None:
                line = {begin + INDENTATION * (word == ")") for word, begin in zip(words, begins)}
                line |= {start[1]} if words[-1] != "not " else set()
                if not {"(", ")"} & {*words}:  # (beside a parenthesis a line begins with neither)
                    leads = any(word in (" and ", " or ") and at in lines for word, at in zip(words, begins))
                    cost += _ELSEWHERE * (led not in (leads, None))
                    led = leads
                if lines and lines.isdisjoint(line):
                    cost += _UNUSUAL if {each - INDENTATION for each in line} & lines else _ELSEWHERE
                if is_bare and not depth:
                    cost += _BACKSLASH
                    is_bare = False  # (counts once)
                is_open = False
            lines |= inside
        if cost >= most:
            return most
        end, words = next_end, []
    return cost


def _span(scope: Positions, operand: ast.expr, is_alone: bool) -> tuple[Place | None, Place | None]:
    """Return where an operand begins and ends; an assignment that is no test alone, with its parentheses."""
    (first, _), (last, right) = first_part(operand), _last(operand)
    begin, end = start_of(scope, first), end_of(scope, last)
    if isinstance(operand, ast.NamedExpr):
        if not is_alone:
            return begin and (begin[0], begin[1] - 1), end and (end[0], end[1] + 1)
    elif isinstance(last, ast.NamedExpr):
        end = None  # (its parenthesis may be on a line below)
    return begin, end and (end[0], end[1] + right)


def first_part(test: ast.expr) -> tuple[ast.expr, int]:
    """Return the first part of a test that has a span, and the number of characters before it."""
    before = 0
    while True:
        if _is_negated(test) and offset_of(test) < 0:
            assert isinstance(test, ast.UnaryOp)
            test = test.operand
            before += len("not ") + isinstance(test, (ast.BoolOp, ast.IfExp))
        elif isinstance(test, ast.BoolOp):
            before += _is_enclosed(test.values[0], test)
            test = test.values[0]
        else:
            return test, before


def _last(test: ast.expr, until_jump: bool = False) -> tuple[ast.expr, int]:
    """Return the last part of a test whose end is known (that its last jump follows), and the characters after it."""
    right = 0
    while True:
        if _is_negated(test) and offset_of(test) < 0:
            assert isinstance(test, ast.UnaryOp)
            test = test.operand
            right += isinstance(test, (ast.BoolOp, ast.IfExp))
        elif isinstance(test, ast.BoolOp):
            right += _is_enclosed(test.values[-1], test)
            test = test.values[-1]
        elif isinstance(test, ast.Compare) and len(test.ops) == 1 and is_none(test.comparators[0]) and isinstance(
            test.ops[0], (ast.Is, ast.IsNot)
        ) and not until_jump:
            return test.left, right + len(" is None" if isinstance(test.ops[0], ast.Is) else " is not None")
        else:
            return test, right


# --- nested statements ----------------------------------------------------------------------------
def begins_statement(scope: CodeScope, before: ast.expr, operand: ast.expr) -> bool:
    """Return whether an operand was the test of a statement of its own, inside that of ``before``, without columns.

    Before 3.11 the jump after an operand that is no comparison has the line of its statement, or of a comparison
    before it (``compiler_jump_if`` in compile.c; *certain*).
    """
    left, right, last = _last(before)[0], first_part(operand)[0], before_jump(operand)
    line = scope.line_of_jump(offset_of(last))
    return not isinstance(last, ast.Compare) and line is not None and line == scope.line(offset_of(right)) and (
        scope.line(offset_of(left)) or line) < line


def begins_below(scope: CodeScope, left: ast.expr, right: ast.expr) -> bool:
    """Return whether an operand begins on a line below the one that the operand before it ends on."""
    last = _last(left)[0]
    end, begin = end_of(scope, last), line_of_first(scope, right)
    line = scope.line(offset_of(last)) if end is None else end[0]
    return line is not None and begin is not None and begin > line


def line_of_first(scope: CodeScope, test: ast.expr) -> int | None:
    """Return the line of the first part of a test; ``None`` where it is not known."""
    part = first_part(test)[0]
    start = start_of(scope, part)
    return scope.line(offset_of(part)) if start is None else start[0]


def before_jump(test: ast.expr) -> ast.expr:
    """Return the part of a test that its last jump follows."""
    return _last(test, until_jump=True)[0]


# --- The negation of a test, as people write it ------------------------------------------------------
# A condition is compiled as jumps alone, whose sense costs nothing (``compiler_jump_if`` in compile.c): ``not`` turns
# round the jumps of what follows it, so ``not (a and b)`` is the program of ``not a or not b``. Only a ``not``
# before one comparison with ``is`` or ``in`` is an operation of its own, ``is not`` or ``not in`` (``fold_unaryop`` in
# ast_opt.c, up to 3.13); a comparison with ``None`` is a jump again.
#
# Example: the contrary of ``x is None or b`` is ``x is not None and not b``.
CONTRARY: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}


def contrary_comparison(test: ast.expr) -> ast.Compare | None:
    """Return ``a is not b`` for ``a is b`` and so on; ``None`` for any other expression."""
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        contrary = CONTRARY.get(type(test.ops[0]))
        if contrary is not None:
            result = ast.Compare(test.left, [contrary()], test.comparators)
            return ast.copy_location(result, test)
    return None


def folds_not(test: ast.expr) -> bool:
    """Return whether the contrary of a test is another program, ``a not in b``, or there is none (a case)."""
    if isinstance(test, ast.BoolOp):
        test = test.values[0]
        return isinstance(test, CaseTest)
    return isinstance(test, CaseTest) or (
        isinstance(test, ast.Compare) and not isinstance(test, UnfoldedCompare) and len(test.ops) == 1
        and type(test.ops[0]) in CONTRARY and not is_none(test.comparators[0]))


def negate(test: ast.expr) -> ast.expr:
    """Return the contrary of a test: another program only where it :func:`folds_not`."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return test.operand
    if isinstance(test, ast.BoolOp) and not any(map(folds_not, test.values)) and not (
        isinstance(test, FoldedBool) and test.merged
    ):
        op = ast.Or() if isinstance(test.op, ast.And) else ast.And()
        values: list[ast.expr] = []
        for value in map(negate, test.values):
            # (``not (b or c in d)`` in it: its operands become some of these)
            values += value.values if isinstance(value, FoldedBool) and type(value.op) is type(op) and not (
                value.merged) else [value]
        return ast.copy_location(FoldedBool(op, values), test)
    if isinstance(test, UnfoldedCompare) and not is_none(test.comparators[0]):
        return ast.UnaryOp(ast.Not(), test)
    return contrary_comparison(test) or ast.UnaryOp(ast.Not(), test)


# --- Where expressions are in the source: facts from the positions of operations (3.11 and later) ---
# The compiler gives an operation the span of the node that it is made for. Exceptions:
#
# * an attribute on a line of its own has the span of its name, as has a method's call (3.11:
#   ``update_start_location_to_match_attr`` in compile.c), so the start of the expression before it counts, too;
# * ``and``, ``or``, ``x if c else y`` and chained comparisons are jumps: they begin where their first part does;
# * ``x is None`` in a condition is a jump, whose span is that of the statement;
# * two loads in one instruction (3.13) have the span of the first.
#
# Example: in ``if a.b and not c:`` the operation of ``a.b`` has the span ``3-6``, and that of ``c`` ``15-16``.
#: Line and column.
Place = tuple[int, int]


def start_of(scope: Positions, expr: ast.expr) -> Place | None:
    """Return where an expression begins, without parentheses around it; ``None`` where that is not known."""
    place: Place | None = None
    enclosed = False  # (in the parentheses that an assignment needs; the first part of one is a name)
    while True:
        inner, jumps = _first_part(expr)
        if not jumps:
            own = _own_span(scope, expr)
            if own is None:
                return None
            begin = own[0][0], own[0][1] - enclosed
            place = begin if place is None else min(place, begin)
        if inner is None:
            return place
        enclosed = enclosed or isinstance(inner, ast.NamedExpr)
        expr = inner


def end_of(scope: Positions, expr: ast.expr) -> Place | None:
    """Return where an expression ends, without parentheses around it; ``None`` where that is not known."""
    while isinstance(expr, (ast.BoolOp, ast.IfExp, ast.NamedExpr)):
        expr = (expr.values[-1] if isinstance(expr, ast.BoolOp) else
                expr.orelse if isinstance(expr, ast.IfExp) else expr.value)
    if isinstance(expr, ast.Compare):
        last = expr.comparators[-1]
        if is_none(last):
            return None
        if len(expr.ops) > 1 or offset_of(expr) < 0:
            # (Loads in one instruction have the span of the first, in 3.13.)
            return None if offset_of(last) == offset_of(expr.left) else end_of(scope, last)
    own = _own_span(scope, expr)
    return None if own is None else own[1]


def _first_part(expr: ast.expr) -> tuple[ast.expr | None, bool]:
    """Return the part that an expression begins with, and whether its own operations are jumps."""
    if isinstance(expr, ast.BoolOp):
        return expr.values[0], True
    if isinstance(expr, ast.IfExp):
        return expr.body, True
    if isinstance(expr, ast.NamedExpr):
        return expr.target, True
    if isinstance(expr, ast.Compare):
        return expr.left, len(expr.ops) > 1 or is_none(expr.comparators[0])
    if isinstance(expr, (ast.Attribute, ast.Subscript)):
        return expr.value, False
    if isinstance(expr, ast.Call):
        return expr.func, False
    return None, False


def _own_span(scope: Positions, expr: ast.expr) -> tuple[Place, Place] | None:
    if isinstance(expr, Formatted):
        return None
    position = scope.position(offset_of(expr))
    if position is None or position.column is None or position.end_column is None:
        return None
    if isinstance(expr, ast.Name) and position.end_column - position.column != len(expr.id):
        return None
    return (position.line, position.column), (position.end_line, position.end_column)
