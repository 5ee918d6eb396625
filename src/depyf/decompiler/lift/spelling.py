"""Tests spelled as the columns of their operands say: ``not (a or b)`` or ``not a and not b``.

Both are the same jumps. The gap between the operands shows the text between them (*likely*: there may be more
blanks and parentheses than needed). Where it shows nothing, ``not`` precedes each operand; but three operands or more
that all would need one share it, as they do in most sources, and ``not (a == b and c)`` is likelier than
``not a == b or not c``. Nothing is negated twice.

Example: in ``if not (a or b):`` the spans of ``a`` and ``b`` are four columns apart, `` or ``; `` and not `` has nine.
"""

from __future__ import annotations

import ast

from ..nodes import FoldedBool, Formatted, offset_of, with_operands
from .scope import Positions, Scope
from .stack import CaseTest, is_none

#: From how many operands on a ``not`` before all of them is likelier than one before each.
_MANY = 3
#: A text that is too narrow for a spelling speaks more against it than one that is wider.
_NARROW = 3
#: A gap wider by more than this shows nothing (an operation may have the span of another one, in 3.13).
_SLACK = 6


def spelled(scope: Scope, test: ast.expr) -> ast.expr:
    """Return a test in the likeliest of its spellings; it is tested, its value is not used."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return ast.copy_location(ast.UnaryOp(test.op, spelled(scope, test.operand)), test)
    if not isinstance(test, FoldedBool) or test.merged:
        return test
    values: list[ast.expr] = []
    for start, end in _groups(scope, test):
        group = test.values[start:end]
        if len(group) > 1:
            contrary = negate(with_operands(test, group))
            assert isinstance(contrary, FoldedBool)
            inner = [spelled(scope, each) for each in contrary.values]
            values.append(ast.UnaryOp(ast.Not(), with_operands(contrary, inner)))
        else:
            values.append(spelled(scope, group[0]))
    return values[0] if len(values) == 1 else with_operands(test, _enclosed(scope, test, values))


def _enclosed(scope: Scope, test: FoldedBool, values: list[ast.expr]) -> list[ast.expr]:
    """Return the operands of ``a and (b and c)``, where the gap before ``b`` has a parenthesis that ``c`` follows."""
    if len(values) < len(test.values) or len(values) < 3:
        return values
    wider = [_gap(scope, left, right) for left, right in zip(values, values[1:])]
    spare = [-1 if gap is None else gap - _between(test, at) for at, gap in enumerate(wider)]
    if spare[-1] or 1 not in spare:
        return values
    at = len(spare) - spare[::-1].index(1)
    if any(spare[at:]) or _is_negated(values[at - 1]):
        return values
    return [*values[:at], with_operands(test, values[at:])]


def _groups(scope: Scope, test: FoldedBool) -> list[tuple[int, int]]:
    """Return the operands that share a ``not``, as ranges; most are alone."""
    values = test.values
    shareable = list(map(_is_shareable, values))
    groups, decides = [(0, 1)], False
    for at in range(1, len(values)):
        start = groups[-1][0]
        margin, is_exact = _tells(scope, test, start, at)
        decides = decides or margin != 0
        if margin > 0 and (is_exact or all(shareable[start:at + 1])):
            groups[-1] = start, at + 1
        else:
            groups.append((at, at + 1))
    return groups if decides or not all(shareable) or not _shares_mostly(values) else [(0, len(values))]


def _is_shareable(value: ast.expr) -> bool:
    """Return whether the contrary of an operand is an operand, and no negation."""
    if isinstance(value, ast.BoolOp):
        return all(map(_is_shareable, value.values))
    return not folds_not(value) and not _is_negated(negate(value))


def _tells(scope: Scope, test: FoldedBool, first: int, at: int) -> tuple[int, bool]:
    """Return how much better an operand fits after the one before it in ``not (contrary)`` than in ``test``.

    Args:
        scope: the code object of the test.
        test: the test.
        first: the operand that the ``not`` would precede.
        at: the operand.

    Returns:
        The difference, 0 if it is unknown; and whether the gap before the operand is just what the contrary needs.
    """
    contrary = negate(with_operands(test, test.values[first:at + 1]))
    if any(map(folds_not, test.values[first:at + 1])) or not isinstance(contrary, FoldedBool):
        return 0, False
    last = negate(test.values[at])
    place = len(contrary.values) - (len(last.values) if isinstance(last, ast.BoolOp) and (
        type(last.op) is type(contrary.op)) else 1)
    gap = _gap(scope, test.values[at - 1], test.values[at])
    if gap is None:
        further = _further(scope, test.values[first], test.values[at])
        return 0 if further is None else _fits(further, contrary, place) - _fits(
            further, with_operands(test, test.values[first:]), at - first), False
    needed, otherwise = _between(test, at - 1), _between(contrary, place - 1)
    if gap > max(needed, otherwise) + _SLACK:
        return 0, False
    return _misfit(gap, needed) - _misfit(gap, otherwise), gap == otherwise


def _further(scope: Scope, first: ast.expr, operand: ast.expr) -> int | None:
    """Return how much further right than another an operand begins, on a line below it."""
    left, right = (start_of(scope, first_part(each)[0]) for each in (first, operand))
    return right[1] - left[1] if left is not None and right is not None and right > left and (
        right[1] > left[1]) else None


def _fits(further: int, test: ast.BoolOp, at: int) -> int:
    """Return how well an operand fits on a line that begins with the operator, ``and b`` below ``a``: 0, 1 or 2.

    Args:
        further: how much further right it is than the first operand.
        test: has both.
        at: the operand.
    """
    first, operand = (_is_enclosed(each, test) + first_part(each)[1] for each in (test.values[0], test.values[at]))
    more = further - len("or " if isinstance(test.op, ast.Or) else "and ") - operand + first
    return 2 - more if more in (0, isinstance(test.values[at], ast.BoolOp)) else 0  # (or in parentheses)


def _shares_mostly(values: list[ast.expr]) -> bool:
    """Return whether most people write one ``not`` for operands: for many, or such as ``not a == b``."""
    if not all(map(_is_negated, values)):
        return False
    inner = [value.operand for value in values if isinstance(value, ast.UnaryOp)]
    return (len(values) >= _MANY or any(isinstance(each, ast.Compare) for each in inner)
            or all(isinstance(each, ast.BoolOp) for each in inner))


def _is_negated(test: ast.expr) -> bool:
    return isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)


def _misfit(gap: int, needed: int) -> int:
    return gap - needed if gap >= needed else _NARROW * (needed - gap)


def _between(test: ast.BoolOp, at: int) -> int:
    """Return the least number of characters between the places that :func:`_gap` measures."""
    word = len(" and " if isinstance(test.op, ast.And) else " or ")
    left, right = test.values[at], test.values[at + 1]
    return (_last(left)[1] + _is_enclosed(left, test) + word + _is_enclosed(right, test) + first_part(right)[1])


def _is_enclosed(operand: ast.expr, test: ast.BoolOp) -> bool:
    """Return whether an operand needs parentheses."""
    return isinstance(operand, ast.IfExp) or isinstance(operand, ast.BoolOp) and not (
        isinstance(operand.op, ast.And) and isinstance(test.op, ast.Or))


def _gap(scope: Scope, left: ast.expr, right: ast.expr) -> int | None:
    """Return the number of characters between two operands; ``None`` where it is not known."""
    end, start = end_of(scope, _last(left)[0]), start_of(scope, first_part(right)[0])
    return start[1] - end[1] if end is not None and start is not None and end[0] == start[0] else None


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


def _last(test: ast.expr) -> tuple[ast.expr, int]:
    """Return the last part of a test whose end is known, and the number of characters after it."""
    behind = 0
    while True:
        if _is_negated(test) and offset_of(test) < 0:
            assert isinstance(test, ast.UnaryOp)
            test = test.operand
            behind += isinstance(test, (ast.BoolOp, ast.IfExp))
        elif isinstance(test, ast.BoolOp):
            behind += _is_enclosed(test.values[-1], test)
            test = test.values[-1]
        elif isinstance(test, ast.Compare) and len(test.ops) == 1 and is_none(test.comparators[0]) and isinstance(
            test.ops[0], (ast.Is, ast.IsNot)
        ):
            return test.left, behind + len(" is None" if isinstance(test.ops[0], ast.Is) else " is not None")
        else:
            return test, behind


# --- nested statements ----------------------------------------------------------------------------
_INDENTATION = 4


def begins_statement(
    scope: Scope, test: ast.expr, before: ast.expr, operand: ast.expr, outer: tuple[str, ...], inner: str
) -> bool:
    """Return whether an operand was the test of a statement of its own, in the one whose test comes before it.

    It is on a line below, where the test of such a statement is (*likely*: continuation lines begin elsewhere).
    Before 3.11 the jump after an operand that is no comparison has the line of its statement, or of a comparison
    before it (``compiler_jump_if`` in compile.c; *certain*).

    Args:
        scope: the code object of the test.
        test: the outer one.
        before: the last operand of it.
        operand: the one that may begin a statement, as it is written there.
        outer: text that may precede the outer test.
        inner: text that would precede the operand.
    """
    left, right = _last(before)[0], first_part(operand)[0]
    end, start, begin = end_of(scope, left), start_of(scope, right), start_of(scope, first_part(test)[0])
    if start is not None:
        if end is None or begin is None or start[0] <= end[0] or (start[1] - len(inner)) % _INDENTATION:
            return False  # (``not`` is as wide as one indentation)
        further = start[1] - len(inner) - _before(operand) - (begin[1] - _before(test))
        return any(further + len(keyword) == _INDENTATION for keyword in outer)
    jumping = _jumping(operand)
    line = scope.line_of_jump(offset_of(jumping))
    return not isinstance(jumping, ast.Compare) and line is not None and line == scope.line(offset_of(right)) and (
        scope.line(offset_of(left)) or line) < line


def begins_in_parentheses(scope: Scope, left: ast.expr, right: ast.expr) -> bool:
    """Return whether a line without operations is between two operands: the beginning of a test, ``if (``."""
    end, start = end_of(scope, _last(left)[0]), start_of(scope, first_part(right)[0])
    return end is not None and start is not None and start[0] > end[0] + 1


def begins_below(scope: Scope, left: ast.expr, right: ast.expr) -> bool:
    """Return whether an operand begins on a line below the one that the operand before it ends on."""
    last = _last(left)[0]
    end, begin = end_of(scope, last), line_of_first(scope, right)
    line = scope.line(offset_of(last)) if end is None else end[0]
    return line is not None and begin is not None and begin > line


def depth(scope: Scope, test: ast.expr, column: int) -> int | None:
    """Return how many statements, besides one ``if``, enclose one at a column; ``None`` if it is not known."""
    begin = start_of(scope, first_part(test)[0])
    if begin is None:
        return None
    # (its keyword is three columns wide, a parenthesis and ``el`` come to it)
    return (column - (begin[1] - _before(test)) + len("(el") - 1) // _INDENTATION


def line_of_first(scope: Scope, test: ast.expr) -> int | None:
    """Return the line of the first part of a test; ``None`` where it is not known."""
    part = first_part(test)[0]
    start = start_of(scope, part)
    return scope.line(offset_of(part)) if start is None else start[0]


def _before(test: ast.expr) -> int:
    while isinstance(test, ast.BoolOp):
        test = test.values[0]
    return len("not ") * _is_negated(test)


def _jumping(test: ast.expr) -> ast.expr:
    """Return the part of a test that its last jump follows."""
    while True:
        if _is_negated(test) and offset_of(test) < 0:
            assert isinstance(test, ast.UnaryOp)
            test = test.operand
        elif isinstance(test, ast.BoolOp):
            test = test.values[-1]
        else:
            return test


# --- The negation of a test, as people write it ------------------------------------------------------
# A condition is compiled as jumps alone, whose sense costs nothing (``compiler_jump_if`` in compile.c): ``not`` turns
# round the jumps of what follows it, so ``not (a and b)`` is the program of ``not a or not b``. Only a ``not``
# before one comparison with ``is`` or ``in`` is an operation of its own, ``is not`` or ``not in`` (``fold_unaryop`` in
# ast_opt.c); a comparison with ``None`` is a jump again.
#
# Example: the contrary of ``x is None or b`` is ``x is not None and not b``.
_CONTRARY: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}


def contrary_comparison(test: ast.expr) -> ast.Compare | None:
    """Return ``a is not b`` for ``a is b`` and so on; ``None`` for any other expression."""
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        contrary = _CONTRARY.get(type(test.ops[0]))
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
        isinstance(test, ast.Compare) and len(test.ops) == 1 and type(test.ops[0]) in _CONTRARY
        and not is_none(test.comparators[0]))


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
    while True:
        inner, jumps = _first_part(expr)
        if not jumps:
            own = _own_span(scope, expr)
            if own is None:
                return None
            place = own[0] if place is None else min(place, own[0])
        if inner is None:
            return place
        expr = inner


def end_of(scope: Scope, expr: ast.expr) -> Place | None:
    """Return where an expression ends, without parentheses around it; ``None`` where that is not known."""
    while isinstance(expr, (ast.BoolOp, ast.IfExp)):
        expr = expr.values[-1] if isinstance(expr, ast.BoolOp) else expr.orelse
    if isinstance(expr, ast.Compare):
        last = expr.comparators[-1]  # (Loads in one instruction have the span of the first, in 3.13.)
        return None if is_none(last) or offset_of(last) == offset_of(expr.left) else end_of(scope, last)
    own = _own_span(scope, expr)
    return None if own is None else own[1]


def _first_part(expr: ast.expr) -> tuple[ast.expr | None, bool]:
    """Return the part that an expression begins with, and whether its own operations are jumps."""
    if isinstance(expr, ast.BoolOp):
        return expr.values[0], True
    if isinstance(expr, ast.IfExp):
        return expr.body, True
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
