"""Where expressions stand in the source: facts from the positions of operations (3.11 and later).

The compiler gives an operation the span of the node that it is made for. Exceptions:

* an attribute on a line of its own has the span of its name, as has a method's call (3.11:
  ``update_start_location_to_match_attr`` in compile.c), so the start of what stands left of it counts, too;
* ``and``, ``or``, ``x if c else y`` and chained comparisons are jumps: they begin where their first part does;
* ``x is None`` in a condition is a jump, whose span is that of the statement;
* two loads in one instruction (3.13) have the span of the first.

Example: in ``if a.b and not c:`` the operation of ``a.b`` has the span ``3-6``, and that of ``c`` ``15-16``.
"""

from __future__ import annotations

import ast

from ..nodes import Formatted, offset_of
from .scope import Scope
from .stack import is_none

#: Line and column.
Place = tuple[int, int]


def start_of(scope: Scope, expr: ast.expr) -> Place | None:
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
        return None if is_none(expr.comparators[-1]) else end_of(scope, expr.comparators[-1])
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


def _own_span(scope: Scope, expr: ast.expr) -> tuple[Place, Place] | None:
    if isinstance(expr, Formatted):
        return None
    position = scope.position(offset_of(expr))
    if position is None or position.column is None or position.end_column is None:
        return None
    if isinstance(expr, ast.Name) and position.end_column - position.column != len(expr.id):
        return None
    return (position.line, position.column), (position.end_line, position.end_column)
