"""Constants, variables, attributes, items: loaded, stored, deleted, unpacked into. Changes with the kinds of places."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from ...bytecode import operations as o
from ...bytecode.code import Code
from ..nodes import AssertionErrorName, Comprehension, as_literal
from ..rules import registrar
from . import held
from .copies import operand, same_target, unshare
from .rule import Rule
from .stack import DEL, LOAD, STORE, Augmented, Input, Iter, Shared, Slot, Special, State, Unpack, is_none

if TYPE_CHECKING:
    from .machine import Machine

RULES: dict[str, Rule] = {}
rule = registrar(RULES)


@rule(o.CONST)
def _(machine: Machine, state: State, value: Any) -> None:
    if type(value) is Code:
        state.stack.append(Special("code", value))
    else:
        machine.push(state, as_literal(machine.scope.constant(value), value))


@rule(o.LOAD_FAST, o.LOAD_GLOBAL, o.LOAD_NAME, o.LOAD_DEREF, o.LOAD_CLASSDEREF)
def load_name(machine: Machine, state: State, name: str) -> None:
    if name == ".0":
        state.stack.append(Iter(Input(0)))
        return
    if name in machine.hidden:
        state.stack.append(machine.hidden[name])
        return
    machine.push(state, ast.Name(machine.scope.plain_name(name), LOAD))


@rule(o.LOAD_FROM_DICT_OR_GLOBALS, o.LOAD_FROM_DICT_OR_DEREF)
def _(machine: Machine, state: State, name: str) -> None:
    state.pop()
    load_name(machine, state, name)


@rule(o.LOAD_LOCALS)
def _(machine: Machine, state: State, _: Any) -> None:
    state.stack.append(Special("locals"))


@rule(o.LOAD_CLOSURE)
def _(machine: Machine, state: State, name: str) -> None:
    machine.push(state, ast.Name(name, LOAD))


@rule(o.MAKE_CELL)
def _(machine: Machine, state: State, _: Any) -> None:
    pass


@rule(o.LOAD_FAST_AND_CLEAR)
def _(machine: Machine, state: State, name: str) -> None:
    state.stack.append(Special("null", name))


@rule(o.STORE_FAST)
def _(machine: Machine, state: State, name: str) -> None:
    value = state.stack[-1] if state.stack else None
    if isinstance(value, Comprehension) and value.restored and name not in value.restored and not state.queue:
        # A store on its line would have changed places with the last of those that give the variables of the inlined
        # comprehension their values back (``apply_static_swaps`` in flowgraph.c).
        machine.scope.begins_another_line(value)
    store_name(machine, state, name)


@rule(o.STORE_GLOBAL, o.STORE_NAME, o.STORE_DEREF)
def store_name(machine: Machine, state: State, name: str) -> None:
    machine.store(state, ast.Name(machine.scope.plain_name(name), STORE))


@rule(o.DELETE_FAST, o.DELETE_GLOBAL, o.DELETE_NAME, o.DELETE_DEREF)
def delete_name(machine: Machine, state: State, name: str) -> None:
    machine.emit(state, ast.Delete([ast.Name(machine.scope.plain_name(name), DEL)]))


@rule(o.LOAD_ASSERTION_ERROR)
def _(machine: Machine, state: State, _: Any) -> None:
    machine.push(state, AssertionErrorName())


@rule(o.LOAD_ATTR)
def _(machine: Machine, state: State, name: str) -> None:
    machine.push(state, ast.Attribute(operand(machine, state.pop()), machine.scope.plain_name(name), LOAD))


@rule(o.STORE_ATTR)
def _(machine: Machine, state: State, name: str) -> None:
    owner = operand(machine, state.pop())
    store_checked(machine, state, ast.Attribute(owner, machine.scope.plain_name(name), STORE))


def store_checked(machine: Machine, state: State, target: Any) -> None:
    """Store to an attribute or item whose parts may be copies: then it must be an augmented one."""
    value = state.pop()
    shared = isinstance(target.value, Shared) or isinstance(getattr(target, "slice", None), (Shared, ast.Slice))
    if shared:
        if isinstance(value, Augmented) and same_target(target, value.left):
            target = unshare(target)
            value = Augmented(target, value.op, value.right)
        elif isinstance(target.value, Shared):
            target.value = machine.resolve(target.value)
        if isinstance(getattr(target, "slice", None), Shared):
            target.slice = machine.resolve(target.slice)
    machine.store_value(state, target, value)


@rule(o.DELETE_ATTR)
def _(machine: Machine, state: State, name: str) -> None:
    machine.emit(state, ast.Delete([ast.Attribute(machine.pop(state), machine.scope.plain_name(name), DEL)]))


@rule(o.LOAD_SUPER_ATTR)
def _(machine: Machine, state: State, arg: Any) -> None:
    name, two = arg
    super_, class_, self_ = machine.popn(state, 3)
    arguments = [class_, self_] if two else []
    machine.push(state, ast.Attribute(ast.Call(super_, arguments, []), machine.scope.plain_name(name), LOAD))


@rule(o.BUILD_SLICE)
def _(machine: Machine, state: State, count: int) -> None:
    parts = []
    for _ in range(count):
        parts.append(operand(machine, state.pop()))
    parts.reverse()
    ends = [None if is_none(p) else p for p in parts[:2]]
    step = parts[2] if count == 3 else None
    machine.push(state, ast.Slice(ends[0], ends[1], step))


@rule(o.GETITEM)
def _(machine: Machine, state: State, _: Any) -> None:
    index = operand(machine, state.pop())
    value = held.binary(machine, "[]", operand(machine, state.pop()), index)
    machine.push(state, ast.Subscript(value, index, LOAD))


@rule(o.SETITEM)
def _(machine: Machine, state: State, _: Any) -> None:
    index = operand(machine, state.pop())
    value = operand(machine, state.pop())
    store_checked(machine, state, ast.Subscript(value, index, STORE))


@rule(o.DELITEM)
def _(machine: Machine, state: State, _: Any) -> None:
    index = machine.pop(state)
    machine.emit(state, ast.Delete([ast.Subscript(machine.pop(state), index, DEL)]))


@rule(o.UNPACK)
def _(machine: Machine, state: State, count: int) -> None:
    unpack(machine, state, count, -1)


@rule(o.UNPACK_EX)
def _(machine: Machine, state: State, arg: Any) -> None:
    before, after = arg
    unpack(machine, state, before + 1 + after, before)


def unpack(machine: Machine, state: State, count: int, star: int) -> None:
    owner = Unpack(state.pop(), count, star)
    if not count:
        machine.store_value(state, ast.Tuple([], STORE), owner.source)
        return
    state.stack.extend(Slot(owner, index) for index in range(count - 1, -1, -1))
