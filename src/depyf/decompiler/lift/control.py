"""Iterators, generators, handlers, ``with``. Changes with what control flow leaves on the stack."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from ...bytecode import operations as o
from ..nodes import Comprehension
from ..rules import registrar
from .rule import Rule
from .stack import Caught, Exit, Iter, Slot, Special, State, Target, Unliftable, is_none

if TYPE_CHECKING:
    from .machine import Machine

RULES: dict[str, Rule] = {}
rule = registrar(RULES)


@rule(o.GET_ITER)
def _(machine: Machine, state: State, _: Any) -> None:
    state.stack.append(Iter(machine.scope.looked_through(machine.pop(state))))


@rule(o.GET_AITER)
def _(machine: Machine, state: State, _: Any) -> None:
    state.stack.append(Iter(machine.pop(state), True))


@rule(o.YIELD)
def _(machine: Machine, state: State, _: Any) -> None:
    value = machine.pop(state)
    machine.push(state, ast.Yield(None if is_none(value) else value))


@rule(o.YIELD_FROM)
def _(machine: Machine, state: State, _: Any) -> None:
    machine.push(state, ast.YieldFrom(machine.pop(state)))


@rule(o.AWAIT)
def _(machine: Machine, state: State, _: Any) -> None:
    entry = state.pop()
    if isinstance(entry, Slot):
        state.stack.append(entry)
        return
    if isinstance(entry, Comprehension) and entry.awaited:
        # an asynchronous comprehension is a coroutine function that is called and awaited
        entry.awaited = False
        state.stack.append(entry)
        return
    machine.push(state, ast.Await(entry if isinstance(entry, ast.expr) else machine.resolve(entry)))


@rule(o.PUSH_EXC_INFO)
def _(machine: Machine, state: State, _: Any) -> None:
    exception = state.pop()
    if not isinstance(exception, Caught):
        raise Unliftable("PUSH_EXC_INFO outside a handler")
    state.stack.extend((Caught(True), exception))


@rule(o.POP_EXCEPT)
def _(machine: Machine, state: State, _: Any) -> None:
    entry = state.pop()
    if not (isinstance(entry, Caught) and entry.previous):
        raise Unliftable("POP_EXCEPT outside a handler")


@rule(o.CHECK_EXC_MATCH)
def _(machine: Machine, state: State, _: Any) -> None:
    state.stack.append(Special("match", machine.pop(state)))


@rule(o.BEFORE_WITH)
def _(machine: Machine, state: State, _: Any) -> None:
    state.stack.extend((Exit(machine.pop(state), False), Slot(Target("value"))))


@rule(o.BEFORE_ASYNC_WITH)
def _(machine: Machine, state: State, _: Any) -> None:
    state.stack.extend((Exit(machine.pop(state), True), Slot(Target("value"))))


@rule("LEAVE")
def _(machine: Machine, state: State, kind: str) -> None:
    """The end of a protected body, its clean-up already taken out (see ``structure.region_cfg``)."""
    stack = state.stack
    if kind == "with":
        for index in range(len(stack) - 1, -1, -1):
            if isinstance(stack[index], Exit):
                del stack[index]
                return
        raise Unliftable("the end of a with statement outside it")
    if kind == "named":
        for index in range(len(stack) - 1, -1, -1):
            entry = stack[index]
            if isinstance(entry, Caught) and entry.previous:
                del stack[index]
                return
        raise Unliftable("the end of a handler outside it")
