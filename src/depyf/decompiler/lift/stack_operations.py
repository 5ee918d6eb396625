"""Values dropped, copied, moved on the stack."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from ...bytecode import operations as o
from ..errors import LIFT, CannotDecompile
from ..nodes import Comprehension, Literal, TemporaryName
from ..rules import registrar
from .annotated import annotate
from .imports import finish_import
from .rule import Rule
from .stack import (
    Augmented,
    Caught,
    Duplicate,
    Entry,
    Exit,
    ImportedModule,
    Iter,
    PendingTarget,
    Special,
    StackParameter,
    State,
    Subject,
    Unpack,
)

if TYPE_CHECKING:
    from .executor import SymbolicExecutor

RULES: dict[str, Rule] = {}
rule = registrar(RULES)


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
