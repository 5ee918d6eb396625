"""Expressions out of branches: operations that :mod:`depyf.decompiler.structure.fold_expressions` makes."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import partial
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


def condition(executor: SymbolicExecutor, state: State, right: ast.expr, op: ast.boolop) -> ast.expr:
    """Return a condition of the test on the stack and ``right``; one that is a merged value is tested once more."""
    if isinstance(right, FoldedBool) and right.merged:
        right.tested_again = True
        executor.scope.begins_a_line(right)
    return fold_bool(executor, op, tested(executor, executor.pop(state)), right)


def value_bool(executor: SymbolicExecutor, state: State, right: ast.expr, op: ast.boolop) -> ast.expr:
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


def negated(executor: SymbolicExecutor, state: State, right: ast.expr, op: ast.boolop) -> ast.expr:
    """Return a condition of the contrary of the test on the stack and ``right``."""
    return fold_bool(executor, op, negate(executor.pop(state)), right)


for _name, _op in (("AND", ast.And()), ("OR", ast.Or())):
    RULES[_name] = partial(condition, op=_op)
    RULES[f"VALUE_{_name}"] = partial(value_bool, op=_op)
    RULES[f"NOT_{_name}"] = partial(negated, op=_op)


@rule("IFEXP")
def _(executor: SymbolicExecutor, state: State, arms: tuple[ast.expr, ast.expr]) -> ast.expr:
    return ast.IfExp(spelled(executor.scope, executor.pop(state)), *arms)


@rule("NOT_IFEXP")
def _(executor: SymbolicExecutor, state: State, arms: tuple[ast.expr, ast.expr]) -> ast.expr:
    return ast.IfExp(spelled(executor.scope, negate(executor.pop(state))), *arms)


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
