"""Statements of several parts: ``import a, b`` and ``del a, b``.

The compiler makes one operation a part. From 3.11 on the imports of one statement have its span (``compiler_import`` in
compile.c), and the targets of one ``del`` stand as close together as a comma allows.

Example: ``IMPORT_NAME a`` and ``IMPORT_NAME b``, both at ``1:0-1:11``, are ``import a, b``.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ...bytecode import operations as o
from ...bytecode.code import Code
from ...bytecode.linetable import Position, positions
from ..nodes import ops_of, suites_of

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
