"""Expressions out of branches: operations that :mod:`depyf.decompiler.structure.fold_expressions` makes."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..errors import LIFT, CannotDecompile
from ..nodes import FoldedBool
from ..rules import registrar
from .operators import tested_later
from .spelling import negate, spelled
from .stack import Duplicate, Entry, Rule, State, deduplicated, same_duplicate

if TYPE_CHECKING:
    from .executor import SymbolicExecutor

RULES: dict[str, Rule] = {}
rule = registrar(RULES)


@rule("EXPR")
def _(executor: SymbolicExecutor, state: State, node: ast.expr) -> ast.expr:
    return node


def fold_bool(executor: SymbolicExecutor, op: ast.boolop, left: ast.expr, right: ast.expr) -> FoldedBool:
    """Return ``left and right`` (or ``or``), joined with operands of the same operator."""
    values = [left, right]
    if isinstance(right, ast.BoolOp) and type(right.op) is type(op) and not (
        isinstance(right, FoldedBool) and right.tested_again
    ):
        values = [left, *right.values]
    if isinstance(left, FoldedBool) and type(left.op) is type(op) and left.folded:
        values = left.values + values[1:]
    return FoldedBool(op, [*(tested_later(executor, value) for value in values[:-1]), values[-1]])


def condition(executor: SymbolicExecutor, state: State, op: ast.boolop, right: ast.expr) -> ast.expr:
    """Return a condition of the test on the stack and ``right``; one that is a merged value is tested once more."""
    if isinstance(right, FoldedBool) and right.merged:
        right.tested_again = True
        executor.scope.begins_a_line(right)
    return fold_bool(executor, op, tested(executor, executor.pop(state)), right)


@rule("AND")
def _(executor: SymbolicExecutor, state: State, right: ast.expr) -> ast.expr:
    return condition(executor, state, ast.And(), right)


@rule("OR")
def _(executor: SymbolicExecutor, state: State, right: ast.expr) -> ast.expr:
    return condition(executor, state, ast.Or(), right)


def value_bool(executor: SymbolicExecutor, state: State, op: ast.boolop, right: ast.expr) -> ast.expr:
    """Return ``left or right`` (or ``and``) as a value that is merged from both, as in ``x = a or b``."""
    left = tested(executor, executor.pop(state))
    node = fold_bool(executor, op, left, right)
    node.merged = True
    return node


def tested(executor: SymbolicExecutor, left: ast.expr) -> ast.expr:
    """Return the value that is tested first, prepared to be tested once more if it comes from a merge."""
    if isinstance(left, FoldedBool) and left.merged:
        left.folded = False
        executor.scope.begins_a_line(left)
    return left


@rule("VALUE_AND")
def _(executor: SymbolicExecutor, state: State, right: ast.expr) -> ast.expr:
    return value_bool(executor, state, ast.And(), right)


@rule("VALUE_OR")
def _(executor: SymbolicExecutor, state: State, right: ast.expr) -> ast.expr:
    return value_bool(executor, state, ast.Or(), right)


@rule("NOT_AND")
def _(executor: SymbolicExecutor, state: State, right: ast.expr) -> ast.expr:
    return fold_bool(executor, ast.And(), negate(executor.pop(state)), right)


@rule("NOT_OR")
def _(executor: SymbolicExecutor, state: State, right: ast.expr) -> ast.expr:
    return fold_bool(executor, ast.Or(), negate(executor.pop(state)), right)


@rule("IFEXP")
def _(executor: SymbolicExecutor, state: State, arms: tuple[ast.expr, ast.expr]) -> ast.expr:
    return ast.IfExp(spelled(executor.scope, executor.pop(state)), arms[0], arms[1])


@rule("NOT_IFEXP")
def _(executor: SymbolicExecutor, state: State, arms: tuple[ast.expr, ast.expr]) -> ast.expr:
    return ast.IfExp(spelled(executor.scope, negate(executor.pop(state))), arms[0], arms[1])


@rule("CHAIN")
def _(executor: SymbolicExecutor, state: State, rest: ast.Compare) -> ast.expr:
    first = state.pop()
    kept = state.pop()
    if isinstance(first, Duplicate):
        first = first.value
    if not isinstance(first, ast.Compare) or not same_duplicate(first.comparators[-1], kept):
        raise CannotDecompile(LIFT, "not a chained comparison")
    last = deduplicated(first.comparators[-1])
    return ast.Compare(first.left, first.ops + rest.ops, [*first.comparators[:-1], last, *rest.comparators])


@rule("COMPREHENSION")
def _(executor: SymbolicExecutor, state: State, make: Callable[[Entry], ast.expr]) -> ast.expr:
    iterable = state.pop()
    state.pop()
    return make(iterable)
