"""Constants, variables, attributes, items: loaded, stored, deleted, unpacked into."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from ...bytecode import operations as o
from ...bytecode.code import Code
from ...bytecode.operations import registrar
from ..constants import constant
from ..nodes import AssertionErrorName, Comprehension, LiteralConstant, as_literal
from .operators import binary_barrier
from .stack import (
    DEL,
    LOAD,
    STORE,
    Augmented,
    Duplicate,
    Iter,
    PendingTarget,
    Rule,
    Special,
    StackParameter,
    State,
    Unpack,
    deduplicated,
    is_none,
    operand,
    same_target,
)

if TYPE_CHECKING:
    from .executor import SymbolicExecutor

#: Types of constants that are expressions as they are.
_PLAIN = frozenset({str, bytes, bool, type(None)})

RULES: dict[str, Rule] = {}
rule = registrar(RULES)


@rule(o.CONST)
def _(executor: SymbolicExecutor, state: State, value: Any) -> ast.expr | None:
    kind = type(value)
    if kind in _PLAIN:  # (as :func:`as_literal` would write it)
        node = LiteralConstant(value)
        node.literal = value
        return node
    if kind is Code:
        state.stack.append(Special("code", value))
        return None
    return as_literal(constant(value), value)


@rule(o.LOAD_FAST, o.LOAD_GLOBAL, o.LOAD_NAME, o.LOAD_DEREF, o.LOAD_CLASSDEREF)
def load_name(executor: SymbolicExecutor, state: State, name: str) -> ast.expr | None:
    """Return a variable of any kind to push; ``.0`` is the iterator that a comprehension is called with."""
    if name == ".0":
        state.stack.append(Iter(StackParameter(0)))
        return None
    if name in executor.hidden:
        state.stack.append(executor.hidden[name])
        return None
    return ast.Name(executor.scope.plain_name(name), LOAD)


@rule(o.LOAD_FROM_DICT_OR_GLOBALS, o.LOAD_FROM_DICT_OR_DEREF)
def _(executor: SymbolicExecutor, state: State, name: str) -> ast.expr | None:
    state.pop()
    return load_name(executor, state, name)


@rule(o.LOAD_LOCALS)
def _(executor: SymbolicExecutor, state: State, _: Any) -> None:
    state.stack.append(Special("locals"))


@rule(o.LOAD_CLOSURE)
def _(executor: SymbolicExecutor, state: State, name: str) -> ast.expr:
    return ast.Name(name, LOAD)


@rule(o.MAKE_CELL)
def _(executor: SymbolicExecutor, state: State, _: Any) -> None:
    pass


@rule(o.LOAD_FAST_AND_CLEAR)
def _(executor: SymbolicExecutor, state: State, name: str) -> None:
    state.stack.append(Special("null", name))


@rule(o.STORE_FAST)
def _(executor: SymbolicExecutor, state: State, name: str) -> None:
    value = state.stack[-1] if state.stack else None
    if isinstance(value, Comprehension) and value.restored and name not in value.restored and not state.queue:
        # A store on its line would have changed places with the last of those that give the variables of the inlined
        # comprehension their values back (``apply_static_swaps`` in flowgraph.c).
        executor.scope.begins_another_line(value)
    store_name(executor, state, name)


@rule(o.STORE_GLOBAL, o.STORE_NAME, o.STORE_DEREF)
def store_name(executor: SymbolicExecutor, state: State, name: str) -> None:
    """Store the top of the stack to a variable of any kind."""
    target = ast.Name(executor.scope.plain_name(name), STORE)
    target.end_col_offset = executor.offset
    executor.store(state, target)


@rule(o.DELETE_FAST, o.DELETE_GLOBAL, o.DELETE_NAME, o.DELETE_DEREF)
def delete_name(executor: SymbolicExecutor, state: State, name: str) -> None:
    """Write ``del name``."""
    executor.emit(state, ast.Delete([ast.Name(executor.scope.plain_name(name), DEL)]))


@rule(o.LOAD_ASSERTION_ERROR)
def _(executor: SymbolicExecutor, state: State, _: Any) -> ast.expr:
    return AssertionErrorName()


@rule(o.LOAD_ATTR)
def _(executor: SymbolicExecutor, state: State, name: str) -> ast.expr:
    return ast.Attribute(operand(executor, state.pop()), executor.scope.plain_name(name), LOAD)


@rule(o.STORE_ATTR)
def _(executor: SymbolicExecutor, state: State, name: str) -> None:
    owner = operand(executor, state.pop())
    store_checked(executor, state, ast.Attribute(owner, executor.scope.plain_name(name), STORE))


def store_checked(executor: SymbolicExecutor, state: State, target: Any) -> None:
    """Store to an attribute or item, of which a part may be a duplicate.

    With the in-place result of the same place on the stack it is ``a.b += c``, which evaluates its parts once.
    """
    value = state.pop()
    shared = isinstance(target.value, Duplicate) or isinstance(getattr(target, "slice", None), (Duplicate, ast.Slice))
    if shared:
        if isinstance(value, Augmented) and same_target(target, value.left):
            target = deduplicated(target)
            value = Augmented(target, value.op, value.right)
        elif isinstance(target.value, Duplicate):
            target.value = executor.resolve(target.value)
        if isinstance(getattr(target, "slice", None), Duplicate):
            target.slice = executor.resolve(target.slice)
    executor.store_value(state, target, value)


@rule(o.DELETE_ATTR)
def _(executor: SymbolicExecutor, state: State, name: str) -> None:
    executor.emit(state, ast.Delete([ast.Attribute(executor.pop(state), executor.scope.plain_name(name), DEL)]))


@rule(o.LOAD_SUPER_ATTR)
def _(executor: SymbolicExecutor, state: State, arg: Any) -> ast.expr:
    name, two = arg
    super_, class_, self_ = executor.popn(state, 3)
    arguments = [class_, self_] if two else []
    return ast.Attribute(ast.Call(super_, arguments, []), executor.scope.plain_name(name), LOAD)


@rule(o.BUILD_SLICE)
def _(executor: SymbolicExecutor, state: State, count: int) -> ast.expr:
    parts = []
    for _ in range(count):
        parts.append(operand(executor, state.pop()))
    parts.reverse()
    ends = [None if is_none(p) else p for p in parts[:2]]
    step = parts[2] if count == 3 else None
    return ast.Slice(ends[0], ends[1], step)


@rule(o.GETITEM)
def _(executor: SymbolicExecutor, state: State, _: Any) -> ast.expr:
    index = operand(executor, state.pop())
    value = binary_barrier(executor, "[]", operand(executor, state.pop()), index)
    return ast.Subscript(value, index, LOAD)


@rule(o.SETITEM)
def _(executor: SymbolicExecutor, state: State, _: Any) -> None:
    index = operand(executor, state.pop())
    value = operand(executor, state.pop())
    store_checked(executor, state, ast.Subscript(value, index, STORE))


@rule(o.DELITEM)
def _(executor: SymbolicExecutor, state: State, _: Any) -> None:
    index = executor.pop(state)
    executor.emit(state, ast.Delete([ast.Subscript(executor.pop(state), index, DEL)]))


@rule(o.UNPACK)
def _(executor: SymbolicExecutor, state: State, count: int) -> None:
    unpack(executor, state, count)


@rule(o.UNPACK_EX)
def _(executor: SymbolicExecutor, state: State, arg: Any) -> None:
    before, after = arg
    unpack(executor, state, before + 1 + after, before)


def unpack(executor: SymbolicExecutor, state: State, count: int, star: int | None = None) -> None:
    """Replace the top of the stack by the pending targets of its elements."""
    owner = Unpack(state.pop(), count, star)
    if not count:
        executor.store_value(state, ast.Tuple([], STORE), owner.source)
        return
    state.stack.extend(PendingTarget(owner, index) for index in range(count - 1, -1, -1))
