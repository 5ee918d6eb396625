"""Statements of several parts: ``import a, b`` and ``del a, b``.

The compiler makes one operation a part. From 3.11 on the imports of one statement have its span (``compiler_import`` in
compile.c), and the targets of one ``del`` stand as close together as a comma allows.

Example: ``IMPORT_NAME a`` and ``IMPORT_NAME b``, both at ``1:0-1:11``, are ``import a, b``.
"""

from __future__ import annotations

import ast
import copy
from typing import TYPE_CHECKING

from ...bytecode import operations as o
from ...bytecode.code import Code
from ...bytecode.linetable import Position, positions
from ..lift import Scope
from ..lift.spelling import begins_below, begins_guard, line_of_first
from ..nodes import compound_places, ops_of, part_of, suites_of
from .evidence import Evidence

if TYPE_CHECKING:
    from ..body import Body

if TYPE_CHECKING:
    from ..body import Body

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


def split_guards(body: Body) -> None:
    """Split guards of which each has its own exit.

    ``if a: continue`` and ``if b: continue`` are the jumps of ``if a or b: continue``. They are two where ``b``
    is two lines below ``a`` and as far right: there is a ``continue`` between the two.
    """
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
