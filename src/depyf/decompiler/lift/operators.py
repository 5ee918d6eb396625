"""Operators and comparisons."""

from __future__ import annotations

import ast
import operator
import re
from typing import TYPE_CHECKING, Any

from ...bytecode import operations as o
from ...bytecode.operations import registrar
from ..nodes import Literal, LiteralTuple, UnfoldedCompare, offset_of
from ..unparse import unparse
from .spelling import CONTRARY, contrary_comparison
from .stack import STORE, Augmented, Rule, State, operand

if TYPE_CHECKING:
    from .executor import SymbolicExecutor

BINARY_OPS: dict[str, type[ast.operator]] = {
    "+": ast.Add, "-": ast.Sub, "*": ast.Mult, "/": ast.Div, "//": ast.FloorDiv, "%": ast.Mod,
    "@": ast.MatMult, "**": ast.Pow, "<<": ast.LShift, ">>": ast.RShift, "&": ast.BitAnd,
    "|": ast.BitOr, "^": ast.BitXor,
}
UNARY_OPS: dict[str, type[ast.unaryop]] = {
    "-": ast.USub, "+": ast.UAdd, "~": ast.Invert, "not": ast.Not,
}
COMPARE_OPS: dict[str, type[ast.cmpop]] = {
    "<": ast.Lt, "<=": ast.LtE, "==": ast.Eq, "!=": ast.NotEq, ">": ast.Gt, ">=": ast.GtE,
}

#: The ``%`` formats that ``optimize_format`` in ast_opt.c (3.11) understands.
_FORMAT = re.compile(r"(?:[^%]|%%|%-?\d{0,3}(?:\.\d{0,3})?[sra])*")

RULES: dict[str, Rule] = {}
rule = registrar(RULES)


@rule(o.BINARY)
def _(executor: SymbolicExecutor, state: State, op: str) -> ast.expr:
    right = executor.pop(state)
    left = executor.pop(state)
    if op == "%" and executor.scope.formats_percent() and would_be_formatted(left, right):
        left = ast.JoinedStr([left])
    if op == "+" and _is_text(left) and _is_text(right) and executor.scope.adds_f_strings():
        left, right = _with_f_string(executor, left, right)
    left = binary_barrier(executor, op, left, right)
    return ast.BinOp(left, BINARY_OPS[op](), right)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, Literal) and isinstance(node.literal, str)


def _with_f_string(executor: SymbolicExecutor, left: ast.expr, right: ast.expr) -> tuple[ast.expr, ast.expr]:
    """Return two texts of which one is an f-string without fields: the compiler joins all others (up to 3.13).

    The span of its text is that of the f-string; from 3.12 on it is without the quotes.
    """
    position = executor.scope.position(offset_of(right))
    if position is not None and position.column is not None and position.end_column is not None:
        quoted = len(unparse(right))
        if position.end_column - position.column in (quoted + 1, quoted - 2):
            return left, ast.JoinedStr([right])
    return ast.JoinedStr([left]), right


@rule(o.INPLACE)
def _(executor: SymbolicExecutor, state: State, op: str) -> ast.expr:
    right = executor.pop(state)
    if executor.spill:
        value = executor.pop(state)
        executor.spill_pending(state)
        name = executor.temporary(state, value)
        state.stmts.append(ast.AugAssign(ast.Name(name.id, STORE), BINARY_OPS[op](), right))
        return name
    left = state.pop()
    if isinstance(left, ast.Name) and executor.scope.is_handed_over(left) and all(
        isinstance(entry, ast.expr) and executor.scope.is_handed_over(entry) for entry in state.stack
    ):
        # (The place that it is to be stored in is on the stack, too: its value is not read there again.)
        executor.emit_before(state, ast.AugAssign(ast.Name(left.id, STORE), BINARY_OPS[op](), right))
        return left
    return Augmented(left, op, right)


@rule(o.UNARY)
def unary(executor: SymbolicExecutor, state: State, op: str) -> ast.expr:
    """Return ``op operand``."""
    operand = unary_barrier(executor, op, executor.pop(state))
    flipped = contrary_comparison(operand) if op == "not" and not isinstance(operand, UnfoldedCompare) else None
    return flipped or ast.UnaryOp(UNARY_OPS[op](), operand)


def compare(executor: SymbolicExecutor, state: State, op: ast.cmpop) -> ast.expr:
    """Return ``left op right``; the right one may be a duplicate, in a chain of comparisons."""
    right = state.pop()
    left = executor.pop(state)
    kind = UnfoldedCompare if type(op) in CONTRARY and not executor.scope.folds_not() else ast.Compare
    return kind(left, [op], [operand(executor, right)])


@rule(o.COMPARE)
def _(executor: SymbolicExecutor, state: State, op: str) -> ast.expr:
    return compare(executor, state, COMPARE_OPS[op]())


@rule(o.IS)
def _(executor: SymbolicExecutor, state: State, inverted: bool) -> ast.expr:
    return compare(executor, state, ast.IsNot() if inverted else ast.Is())


@rule(o.IN)
def _(executor: SymbolicExecutor, state: State, inverted: bool) -> ast.expr:
    if state.stack and isinstance(state.stack[-1], ast.expr):
        state.stack[-1] = executor.scope.looked_through(state.stack[-1])
    return compare(executor, state, ast.NotIn() if inverted else ast.In())


def would_be_formatted(left: ast.expr, right: ast.expr) -> bool:
    """Return whether the compiler makes an f-string of ``"%s" % (x,)``; it leaves one without fields as it is."""
    return (
        isinstance(left, ast.Constant) and isinstance(left.value, str) and isinstance(right, ast.Tuple)
        and not isinstance(right, LiteralTuple) and not any(isinstance(item, ast.Starred) for item in right.elts)
        and _FORMAT.fullmatch(left.value) is not None
        and left.value.replace("%%", "").count("%") == len(right.elts)
    )


# --- Operations on constants alone, which compilers do themselves ------------------------------
# Where one is left in a program, an operand came after a jump that the compiler decided later (``1 or x``). It is
# written as such a one again (:meth:`CodeScope.in_barrier`). What a compiler folds is in ``fold_unaryop``,
# ``fold_binop``, ``fold_subscr``, ``fold_tuple`` in ast_opt.c up to 3.13; ``starunpack_helper`` and
# ``compiler_subdict`` in compile.c.
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


def in_barrier(executor: SymbolicExecutor, node: ast.expr) -> ast.expr:
    """Return a constant wrapped in a fold barrier; another expression as it is."""
    return executor.scope.in_barrier(node) if isinstance(node, Literal) else node


def tested_later(executor: SymbolicExecutor, node: ast.expr) -> ast.expr:
    """Return an expression for the middle of a condition, a constant wrapped in a fold barrier.

    From 3.14 on a constant there may be tested where it is.
    """
    return node if executor.scope.tests_constants() else in_barrier(executor, node)


def display_barrier(executor: SymbolicExecutor, items: list[ast.expr], least: int = 1) -> None:
    """Wrap the first item in a fold barrier, in place, if there are ``least`` or more and all are constants."""
    if len(items) >= least and all(isinstance(item, Literal) for item in items):
        items[0] = in_barrier(executor, items[0])


def sequence_barrier(executor: SymbolicExecutor, items: list[ast.expr]) -> None:
    """Wrap the first item of a list or set in a fold barrier, in place, if the compiler would fold them."""
    display_barrier(executor, items, _FEW)


def unary_barrier(executor: SymbolicExecutor, op: str, operand: ast.expr) -> ast.expr:
    """Return the operand of ``op``, wrapped in a fold barrier if the compiler would fold the operation."""
    if isinstance(operand, Literal) and _succeeds(_UNARY[op], operand.literal):
        return in_barrier(executor, operand)
    return operand


def binary_barrier(executor: SymbolicExecutor, op: str, left: ast.expr, right: ast.expr) -> ast.expr:
    """Return the left operand of ``op``, in a fold barrier if the compiler would fold the operation."""
    if op in _BINARY and isinstance(left, Literal) and isinstance(right, Literal):
        a, b = left.literal, right.literal
        if _in_limits(op, a, b) and _succeeds(_BINARY[op], a, b):
            return in_barrier(executor, left)
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
