"""Operators and comparisons."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from ...bytecode import operations as o
from ..nodes import LiteralTuple
from ..rules import registrar
from . import fold_barriers
from .copies import operand
from .negation import contrary_comparison
from .rule import Rule
from .stack import STORE, Augmented, State

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

#: What ``optimize_format`` in ast_opt.c (3.11) understands in a ``%`` format.
_FORMAT = re.compile(r"(?:[^%]|%%|%-?\d{0,3}(?:\.\d{0,3})?[sra])*")

RULES: dict[str, Rule] = {}
rule = registrar(RULES)


@rule(o.BINARY)
def _(executor: SymbolicExecutor, state: State, op: str) -> ast.expr:
    right = executor.pop(state)
    left = executor.pop(state)
    if op == "%" and executor.scope.formats_percent() and would_be_formatted(left, right):
        left = ast.JoinedStr([left])
    left = fold_barriers.binary(executor, op, left, right)
    return ast.BinOp(left, BINARY_OPS[op](), right)


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
        # (The place that it is to be stored in lies on the stack, too: its value is not read there again.)
        executor.emit_before(state, ast.AugAssign(ast.Name(left.id, STORE), BINARY_OPS[op](), right))
        return left
    return Augmented(left, op, right)


@rule(o.UNARY)
def unary(executor: SymbolicExecutor, state: State, op: str) -> ast.expr:
    """Return ``op operand``."""
    operand = fold_barriers.unary(executor, op, executor.pop(state))
    flipped = contrary_comparison(operand) if op == "not" else None
    return flipped or ast.UnaryOp(UNARY_OPS[op](), operand)


def compare(executor: SymbolicExecutor, state: State, op: ast.cmpop) -> ast.expr:
    """Return ``left op right``; the right one may be a duplicate, in a chain of comparisons."""
    right = state.pop()
    left = executor.pop(state)
    return ast.Compare(left, [op], [operand(executor, right)])


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
