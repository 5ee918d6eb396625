"""Iterators, generators, handlers, ``with``."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from ...bytecode import operations as o
from ..errors import LIFT, CannotDecompile
from ..nodes import Comprehension, Literal, TemporaryName
from ..rules import registrar
from .definitions import annotate, finish_import
from .stack import (
    Augmented,
    Caught,
    Duplicate,
    Entry,
    Exit,
    ImportedModule,
    Iter,
    PendingTarget,
    Rule,
    Special,
    StackParameter,
    State,
    Subject,
    Target,
    Unpack,
    is_none,
)

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


# --- Values dropped, copied, moved on the stack ------------------------------------------------------
@rule(o.POP)
def _(executor: SymbolicExecutor, state: State, _: Any) -> None:
    entry = state.pop()
    if isinstance(entry, Special):
        if isinstance(entry, ImportedModule):
            finish_import(executor, state, entry)
        elif entry.kind == "annotation":
            annotate(executor, state, *entry.value)
        elif entry.kind not in ("lasti", "match", "null", "from"):
            raise CannotDecompile(LIFT, f"a value of the compiler is dropped ({entry.kind})")
        return
    if isinstance(entry, PendingTarget):
        if isinstance(entry.owner, Unpack):
            entry.owner.fill(executor, state, entry.index, None)
        return
    if isinstance(entry, (Iter, Exit, Caught, StackParameter, Subject)):
        return
    if isinstance(entry, Duplicate):
        if any(e is entry for e in state.stack):
            return
        entry = entry.value
        if isinstance(entry, (ast.Name, ast.Constant)):
            return
    if isinstance(entry, Augmented):
        raise CannotDecompile(LIFT, "an in-place operation that is not stored")
    if isinstance(entry, TemporaryName):
        return
    value = executor.resolve(entry)
    if isinstance(value, Literal):
        value = executor.scope.dropped_constant(value)
    elif isinstance(value, Comprehension) and (value.restored is not None or _is_null(state.stack)):
        executor.emit(state, executor.scope.dropped_comprehension(value, value.restored is None))
        return
    executor.emit(state, ast.Expr(value))


@rule(o.COPY)
def _(executor: SymbolicExecutor, state: State, depth: int) -> None:
    state.need(depth)
    stack = state.stack
    entry = stack[-depth]
    if isinstance(entry, (Iter, PendingTarget, Exit, Caught, Special)):
        if isinstance(entry, PendingTarget):
            raise CannotDecompile(LIFT, "an item is used twice")
        stack.append(entry)
        return
    if executor.spill and isinstance(entry, ast.expr) and not isinstance(entry, StackParameter):
        if not isinstance(entry, (ast.Constant, TemporaryName)):
            executor.spill_pending(state)
            entry = stack[-depth]
        stack.append(entry)
        return
    if not isinstance(entry, Duplicate):
        shared = Duplicate(entry)
        stack[-depth] = shared
        entry = shared
    stack.append(entry)


@rule(o.SWAP)
def _(executor: SymbolicExecutor, state: State, depth: int) -> None:
    state.need(depth)
    stack = state.stack
    stack[-1], stack[-depth] = stack[-depth], stack[-1]


@rule(o.ROT)
def _(executor: SymbolicExecutor, state: State, depth: int) -> None:
    state.need(depth)
    stack = state.stack
    stack.insert(len(stack) - depth, stack.pop())


def _is_null(stack: list[Entry]) -> bool:
    """Return whether the marker of a variable that an inlined comprehension has to restore lies on top."""
    return bool(stack) and isinstance(stack[-1], Special) and stack[-1].kind == "null"
