"""Tuples, lists, sets and dicts: built, and filled."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any, TypeVar

from ...bytecode import operations as o
from ..errors import LIFT, CannotDecompile
from ..nodes import BuiltTuple, JoinedTuple, LiteralSet, LiteralTuple, MergedDict, refined
from ..rules import registrar
from .definitions import reached
from .operators import display_barrier, sequence_barrier
from .stack import LOAD, Accumulator, Iter, Rule, State

if TYPE_CHECKING:
    from .executor import SymbolicExecutor

RULES: dict[str, Rule] = {}
rule = registrar(RULES)


@rule(o.BUILD_TUPLE)
def _(executor: SymbolicExecutor, state: State, count: int) -> ast.expr:
    items = executor.popn(state, count)
    display_barrier(executor, items)
    return BuiltTuple(items, LOAD)


@rule(o.BUILD_LIST)
def _(executor: SymbolicExecutor, state: State, count: int) -> ast.expr:
    items = executor.popn(state, count)
    sequence_barrier(executor, items)
    return ast.List(items, LOAD)


@rule(o.BUILD_SET)
def _(executor: SymbolicExecutor, state: State, count: int) -> ast.expr:
    items = executor.popn(state, count)
    sequence_barrier(executor, items)
    return ast.Set(items)


@rule(o.BUILD_MAP)
def _(executor: SymbolicExecutor, state: State, count: int) -> ast.expr:
    items = executor.popn(state, 2 * count)
    keys = items[::2]
    if executor.scope.has_constant_keys():
        display_barrier(executor, keys, 2)
    return ast.Dict([*keys], items[1::2])


@rule(o.BUILD_CONST_KEY_MAP)
def _(executor: SymbolicExecutor, state: State, keys: tuple[Any, ...]) -> ast.expr:
    values = executor.popn(state, len(keys))
    return ast.Dict([executor.scope.constant(k) for k in keys], values)


@rule(o.BUILD_UNPACK)
def _(executor: SymbolicExecutor, state: State, arg: tuple[str, int]) -> ast.expr:
    """Join parts of a display (3.8 and before): what stands between two stars is a tuple or dict of its own."""
    kind, count = arg
    parts = executor.popn(state, count)
    if kind in ("dict", "keywords"):
        return joined_mapping(parts, kind == "keywords")
    elts: list[ast.expr] = []
    inner = ast.Set if kind == "set" else ast.Tuple
    spliced = False
    for part in parts:
        if isinstance(part, inner) and part.elts and not spliced and not has_star(part):
            elts += part.elts
            spliced = True
        else:
            elts.append(ast.Starred(part, LOAD))
            spliced = False
    if kind == "set":
        return ast.Set(elts)
    if kind == "list":
        return ast.List(elts, LOAD)
    return JoinedTuple(elts, LOAD) if kind == "tuple" else ast.Tuple(elts, LOAD)


def joined_mapping(parts: list[ast.expr], keywords: bool) -> ast.Dict:
    """Return a dictionary of parts: displays are spliced in, and other mappings stand behind ``**``."""
    merged = MergedDict([], [])
    merged.parts = []
    spliced = False
    for part in parts:
        if isinstance(part, ast.Dict) and part.keys and None not in part.keys and not spliced and (
            not keywords or all(isinstance(k, ast.Constant) for k in part.keys)
        ):
            merged.keys += part.keys
            merged.values += part.values
            merged.parts.append(list(zip(part.keys, part.values)))
            spliced = True
        else:
            merged.keys.append(None)
            merged.values.append(part)
            merged.parts.append(part)
            spliced = False
    return merged if keywords else ast.Dict(merged.keys, merged.values)


Display = TypeVar("Display", ast.List, ast.Set, ast.Dict)


def collector(state: State, depth: int, kind: type[Display]) -> Display | Accumulator:
    """Return the container at ``depth`` that an element is added to.

    Raises:
        CannotDecompile: it is neither the accumulator of a comprehension nor a display of the kind.
    """
    state.need(depth)
    entry = state.stack[-depth]
    if isinstance(entry, (kind, Accumulator)):
        return entry
    raise CannotDecompile(LIFT, "an element is added to something else")


def display(state: State, depth: int, kind: type[Display]) -> Display:
    """Return the display that elements are added to."""
    owner = collector(state, depth, kind)
    if isinstance(owner, Accumulator):
        raise CannotDecompile(LIFT, "elements are added to a comprehension")
    return owner


@rule(o.LIST_APPEND)
def _(executor: SymbolicExecutor, state: State, depth: int) -> None:
    value = executor.pop(state)
    owner = collector(state, depth, ast.List)
    if isinstance(owner, Accumulator):
        owner.element = value
    elif state.element is None and any(isinstance(e, Iter) for e in state.stack[-depth:]):
        state.element = value
    else:
        owner.elts.append(value)


@rule(o.SET_ADD)
def _(executor: SymbolicExecutor, state: State, depth: int) -> None:
    value = executor.pop(state)
    if executor.scope.annotates and depth == 1 and reached(executor, state, value):
        return
    owner = collector(state, depth, ast.Set)
    if isinstance(owner, Accumulator):
        owner.element = value
    else:
        owner.elts.append(value)


@rule(o.MAP_ADD)
def _(executor: SymbolicExecutor, state: State, depth: int) -> None:
    key, value = executor.popn(state, 2)
    owner = collector(state, depth, ast.Dict)
    if isinstance(owner, Accumulator):
        owner.element = (key, value)
    else:
        owner.keys.append(key)
        owner.values.append(value)


@rule(o.LIST_EXTEND)
def _(executor: SymbolicExecutor, state: State, depth: int) -> None:
    value = executor.pop(state)
    owner = display(state, depth, ast.List)
    if isinstance(value, LiteralTuple) and not owner.elts and len(value.elts) > 2:
        # the compiler makes a constant of three elements or more (``starunpack_helper`` in compile.c)
        owner.elts.extend(value.elts)
    else:
        owner.elts.append(ast.Starred(value, LOAD))


@rule(o.SET_UPDATE)
def _(executor: SymbolicExecutor, state: State, depth: int) -> None:
    value = executor.pop(state)
    owner = display(state, depth, ast.Set)
    if isinstance(value, LiteralSet) and not owner.elts:
        # the compiler makes a constant of three elements or more: some of them were equal
        owner.elts.extend([*value.elts, *value.elts[-1:] * (3 - len(value.elts))])
    else:
        owner.elts.append(ast.Starred(value, LOAD))


#: The number of entries that the compiler puts into one part of a dictionary (``STACK_USE_GUIDELINE``).
_FULL_PART = 15


@rule(o.DICT_UPDATE)
def _(executor: SymbolicExecutor, state: State, depth: int) -> None:
    value = executor.pop(state)
    owner = display(state, depth, ast.Dict)
    # Entries come in a part of their own behind ``**``, and where a part is full (``compiler_dict`` in compile.c).
    is_part = bool(owner.keys) and (owner.keys[-1] is None or len(owner.keys) >= _FULL_PART)
    if is_part and isinstance(value, ast.Dict) and value.values and None not in value.keys:
        owner.keys.extend(value.keys)
        owner.values.extend(value.values)
    else:
        owner.keys.append(None)
        owner.values.append(value)


@rule(o.DICT_MERGE)
def _(executor: SymbolicExecutor, state: State, depth: int) -> None:
    value = executor.pop(state)
    owner = display(state, depth, ast.Dict)
    if not isinstance(owner, MergedDict):
        merged = refined(owner, MergedDict)
        merged.parts = [list(zip(owner.keys, owner.values))] if owner.keys else []
        owner = state.stack[-depth] = merged
    owner.parts.append(value)


@rule(o.LIST_TO_TUPLE)
def list_to_tuple(executor: SymbolicExecutor, state: State, _: Any) -> ast.expr:
    """Make a tuple of the list on top, which was filled because of a star: ``(*a, b)``."""
    value = executor.pop(state)
    if not isinstance(value, ast.List):
        raise CannotDecompile(LIFT, "LIST_TO_TUPLE of something else")
    return ast.Tuple(value.elts, LOAD)


def has_star(node: ast.Tuple | ast.Set) -> bool:
    """Return whether a display has a starred element."""
    return any(isinstance(e, ast.Starred) for e in node.elts)
