"""Iterators, generators, handlers, ``with``."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from ...bytecode import operations as o
from ..errors import LIFT, CannotDecompile
from ..nodes import Comprehension
from ..rules import registrar
from .rule import Rule
from .stack import Caught, Exit, Iter, PendingTarget, Special, State, Target, is_none

if TYPE_CHECKING:
    from .executor import SymbolicExecutor

RULES: dict[str, Rule] = {}
rule = registrar(RULES)


@rule(o.GET_ITER)
def _(executor: SymbolicExecutor, state: State, _: Any) -> None:
    state.stack.append(Iter(executor.scope.looked_through(executor.pop(state))))


@rule(o.GET_AITER)
def _(executor: SymbolicExecutor, state: State, _: Any) -> None:
    state.stack.append(Iter(executor.pop(state), True))


@rule(o.YIELD)
def _(executor: SymbolicExecutor, state: State, _: Any) -> ast.expr:
    value = executor.pop(state)
    place = executor.scope.position(executor.offset)
    is_wide = place is not None and (place.line, place.column) != (
        place.end_line, (place.end_column or 0) - len("yield"))  # as ``yield None`` is
    return ast.Yield(None if is_none(value) and not is_wide else value)


@rule(o.YIELD_FROM)
def _(executor: SymbolicExecutor, state: State, _: Any) -> ast.expr:
    return ast.YieldFrom(executor.pop(state))


@rule(o.AWAIT)
def _(executor: SymbolicExecutor, state: State, _: Any) -> ast.expr | None:
    entry = state.pop()
    if isinstance(entry, PendingTarget):
        state.stack.append(entry)
        return None
    if isinstance(entry, Comprehension) and entry.awaited:
        # an asynchronous comprehension is a coroutine function that is called and awaited
        entry.awaited = False
        state.stack.append(entry)
        return None
    return ast.Await(entry if isinstance(entry, ast.expr) else executor.resolve(entry))


@rule(o.PUSH_EXC_INFO)
def _(executor: SymbolicExecutor, state: State, _: Any) -> None:
    exception = state.pop()
    if not isinstance(exception, Caught):
        raise CannotDecompile(LIFT, "PUSH_EXC_INFO outside a handler")
    state.stack.extend((Caught(True), exception))


@rule(o.POP_EXCEPT)
def _(executor: SymbolicExecutor, state: State, _: Any) -> None:
    entry = state.pop()
    if not (isinstance(entry, Caught) and entry.previous):
        raise CannotDecompile(LIFT, "POP_EXCEPT outside a handler")


@rule(o.CHECK_EXC_MATCH)
def _(executor: SymbolicExecutor, state: State, _: Any) -> None:
    state.stack.append(Special("match", executor.pop(state)))


@rule(o.BEFORE_WITH)
def _(executor: SymbolicExecutor, state: State, _: Any) -> None:
    state.stack.extend((Exit(executor.pop(state), False), PendingTarget(Target("value"))))


@rule(o.BEFORE_ASYNC_WITH)
def _(executor: SymbolicExecutor, state: State, _: Any) -> None:
    state.stack.extend((Exit(executor.pop(state), True), PendingTarget(Target("value"))))


@rule("LEAVE")
def _(executor: SymbolicExecutor, state: State, kind: str) -> None:
    """End a protected body, whose clean-up was already taken out (see ``structure.region_cfg``)."""
    stack = state.stack
    if kind == "with":
        for index in range(len(stack) - 1, -1, -1):
            if isinstance(stack[index], Exit):
                del stack[index]
                return
        raise CannotDecompile(LIFT, "the end of a with statement outside it")
    if kind == "named":
        for index in range(len(stack) - 1, -1, -1):
            entry = stack[index]
            if isinstance(entry, Caught) and entry.previous:
                del stack[index]
                return
        raise CannotDecompile(LIFT, "the end of a handler outside it")
