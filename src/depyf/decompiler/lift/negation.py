"""The contrary of a test, as people write it.

A condition is compiled as jumps alone, whose sense costs nothing (``compiler_jump_if`` in compile.c): ``not`` turns
round the jumps of what it stands before, so ``not (a and b)`` is the program of ``not a or not b``. Only a ``not``
before one comparison with ``is`` or ``in`` is an operation of its own, ``is not`` or ``not in`` (``fold_unaryop`` in
ast_opt.c); a comparison with ``None`` is a jump again.

Example: the contrary of ``x is None or b`` is ``x is not None and not b``.
"""

from __future__ import annotations

import ast

from ..nodes import FoldedBool
from .stack import CaseTest, is_none

_CONTRARY: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}


def contrary_comparison(test: ast.expr) -> ast.Compare | None:
    """Return ``a is not b`` for ``a is b`` and so on; ``None`` for what is no such comparison."""
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
