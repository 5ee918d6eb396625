"""Operations on constants alone: the compiler does them itself wherever it sees their operands side by side.

Where one is left in a program, an operand stood behind a jump that the compiler decided later (``1 or x``). It is
written as such a one again (:meth:`Scope.behind_barrier`). What a compiler folds is in ``fold_unaryop``,
``fold_binop``, ``fold_subscr``, ``fold_tuple`` in ast_opt.c up to 3.13; ``starunpack_helper`` and ``compiler_subdict``
in compile.c.
"""

from __future__ import annotations

import ast
import operator
from typing import TYPE_CHECKING, Any

from ..nodes import Literal

if TYPE_CHECKING:
    from .executor import SymbolicExecutor

#: From how many constants on a list or set is made of one constant.
_FEW = 3
#: Limits of the compiler: bits of an integer, items of a tuple, characters of a string.
_BITS, _ITEMS, _CHARACTERS = 128, 256, 4096

_UNARY = {"-": operator.neg, "+": operator.pos, "~": operator.invert, "not": operator.not_}
_BINARY = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv,
    "%": operator.mod, "**": operator.pow, "<<": operator.lshift, ">>": operator.rshift, "&": operator.and_,
    "|": operator.or_, "^": operator.xor, "[]": operator.getitem,
}


def behind_barrier(executor: SymbolicExecutor, node: ast.expr) -> ast.expr:
    """Return a constant behind a fold barrier; another expression as it is."""
    return executor.scope.behind_barrier(node) if isinstance(node, Literal) else node


def tested_later(executor: SymbolicExecutor, node: ast.expr) -> ast.expr:
    """Return an expression for the middle of a condition, a constant behind a fold barrier.

    From 3.14 on a constant there may be tested where it stands.
    """
    return node if executor.scope.tests_constants() else behind_barrier(executor, node)


def display(executor: SymbolicExecutor, items: list[ast.expr], least: int = 1) -> None:
    """Put the first item behind a fold barrier, in place, if there are ``least`` or more and all are constants."""
    if len(items) >= least and all(isinstance(item, Literal) for item in items):
        items[0] = behind_barrier(executor, items[0])


def sequence(executor: SymbolicExecutor, items: list[ast.expr]) -> None:
    """Put the first item of a list or set behind a fold barrier, in place, if the compiler would fold them."""
    display(executor, items, _FEW)


def unary(executor: SymbolicExecutor, op: str, operand: ast.expr) -> ast.expr:
    """Return the operand of ``op``, behind a fold barrier if the compiler would fold the operation."""
    if isinstance(operand, Literal) and _succeeds(_UNARY[op], operand.literal):
        return behind_barrier(executor, operand)
    return operand


def binary(executor: SymbolicExecutor, op: str, left: ast.expr, right: ast.expr) -> ast.expr:
    """Return the left operand of ``op``, behind a fold barrier if the compiler would fold the operation."""
    if op in _BINARY and isinstance(left, Literal) and isinstance(right, Literal):
        a, b = left.literal, right.literal
        if _in_limits(op, a, b) and _succeeds(_BINARY[op], a, b):
            return behind_barrier(executor, left)
    return left


def _in_limits(op: str, a: Any, b: Any) -> bool:
    """Return whether the compiler would try to fold an operation (``safe_multiply`` and others in ast_opt.c)."""
    if isinstance(a, int) and isinstance(b, int):
        if op == "*":
            return a.bit_length() + b.bit_length() <= _BITS
        if op == "**":
            return b < 0 or b.bit_length() <= _BITS and a.bit_length() * b <= _BITS
        if op == "<<":
            return 0 <= b <= _BITS and a.bit_length() + b <= _BITS
    elif op == "*" and isinstance(a, int) != isinstance(b, int):
        times, sequence = (a, b) if isinstance(a, int) else (b, a)
        limit = _CHARACTERS if isinstance(sequence, (str, bytes)) else _ITEMS
        return not hasattr(sequence, "__len__") or 0 <= times and times * len(sequence) <= limit
    return op != "%" or not isinstance(a, (str, bytes))


def _succeeds(operation: Any, *operands: Any) -> bool:
    """Return whether an operation on constants raises none of the errors that make the compiler leave it."""
    try:
        operation(*operands)
    except (TypeError, ValueError, ArithmeticError, LookupError):
        return False
    return True
