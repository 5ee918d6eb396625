"""Internal steps: the unobservable actions of a program, by operation.

A rule performs its operation on the abstract state, or returns the event that it is there. Operations without a rule
are events wherever they are.

What is assumed, and said in ``Verdict.notes`` when it was used:

* torch's profiler is off: its markers and the test of its flag are left out;
* globals that Dynamo itself puts into the module (``__compiled_fn_1``, ``__resume_at_...``,
  ``__import_...``, ``__builtins_dict__...``) are there and do not change, so it does not matter when they are read;
* items of a graph's result (a tuple that only torch made) can be read in any order, or not at all;
* which locals exist in the frame, how long values live, and the identity of tuples do not matter;
* classes, functions and Python modules that are read by global names are not rebound while the code runs; reading an
  attribute or an item does not replace a submodule, parameter or buffer of a module;
* a context that torch enters again after a graph break swallows no exception.

Taken for granted without a note: ``f(**d)`` calls with a copy of ``d`` and a plain call copies it too; a set of
constants has no order; the keys of a dictionary display that are strings are hashed unseen.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ....bytecode import operations as o
from ....bytecode.operations import Op, registrar
from ...dynamo.global_names import OWN_GLOBALS, PROFILER_FLAGS, PROFILER_MARKERS
from . import objects
from .objects import item_key, read
from .states import (
    UNBOUND,
    Allocation,
    Constant,
    Different,
    Event,
    State,
    Symbol,
    Value,
    constant_of,
    constants_of,
    event_of,
    index_of,
    is_hashable,
    is_key,
    is_new,
    own_list,
    resolve,
    sequence,
)

if TYPE_CHECKING:
    from .prover import Prover

PROFILER_NOTE = "if torch's profiler is off"
ITEMS_NOTE = "items of a graph's result are read where they are used"

#: Performs an operation (``None``), or returns the event that it is.
Rule = Callable[["Prover", State, Op], "Event | None"]

#: The rules of operations after which control goes on to the next one.
RULES: dict[str, Rule] = {}
#: The rules of those that say where it goes on.
JUMPS: dict[str, Rule] = {}
rule = registrar(RULES)
jump = registrar(JUMPS)


def step(prover: Prover, state: State, op: Op) -> Event | None:
    """Perform the operation if it is unobservable, or return the event that it is."""
    move = JUMPS.get(op.kind)
    if move is not None:
        return move(prover, state, op)
    event = RULES.get(op.kind, event_of)(prover, state, op)
    if event is None:
        state.at += 1
    return event


def pop_many(state: State, count: int) -> list[Value]:
    """Take ``count`` values off the stack, the lowest first."""
    start = len(state.stack) - count
    if start < 0:
        raise Different("a stack holds too few values")
    values = state.stack[start:]
    del state.stack[start:]
    return values


# --- constants, locals, the stack -----------------------------------------------------------------
@rule(o.CONST)
def _constant(prover: Prover, state: State, op: Op) -> None:
    state.stack.append(Constant(op.arg))


@rule(o.LOAD_FAST)
def _load_local(prover: Prover, state: State, op: Op) -> Event | None:
    if not state.is_bound(op.arg):
        return Event(f"LOAD_FAST {op.arg}", None, [state.content(op.arg)], op)
    state.stack.append(resolve(state.locals[op.arg]))
    return None


@rule(o.STORE_FAST)
def _store_local(prover: Prover, state: State, op: Op) -> None:
    state.bind(op.arg, state.stack.pop())


@rule(o.DELETE_FAST)
def _delete_local(prover: Prover, state: State, op: Op) -> Event | None:
    if not state.is_bound(op.arg):
        return Event(op.kind, op.arg, [state.content(op.arg)], op)
    del state.locals[op.arg]
    return None


@rule(o.LOAD_FAST_AND_CLEAR)
def _set_aside(prover: Prover, state: State, op: Op) -> None:
    state.stack.append(state.content(op.arg))
    state.bind(op.arg, UNBOUND)


@rule(o.POP)
def _pop(prover: Prover, state: State, op: Op) -> None:
    state.stack.pop()


@rule(o.COPY)
def _copy(prover: Prover, state: State, op: Op) -> None:
    state.stack.append(state.stack[-op.arg])


@rule(o.SWAP)
def _swap(prover: Prover, state: State, op: Op) -> None:
    stack = state.stack
    stack[-1], stack[-op.arg] = stack[-op.arg], stack[-1]


@rule(o.ROT)
def _rotate(prover: Prover, state: State, op: Op) -> None:
    stack = state.stack
    stack[-op.arg :] = stack[-1:] + stack[-op.arg : -1]


# --- globals, cells, attributes -------------------------------------------------------------------
@rule(o.LOAD_GLOBAL)
def _load_global(prover: Prover, state: State, op: Op) -> Event | None:
    name = op.arg
    if name in PROFILER_MARKERS or name in PROFILER_FLAGS:
        symbol = Symbol(("module", name))
        prover.paths[symbol.key] = (("global", name),)
    elif name.startswith(OWN_GLOBALS):
        symbol = Symbol(("own", prover.rename.get(name, name) if state.program is prover.p else name))
        prover.paths[symbol.key] = (("global", prover.real_name(state, name)),)
    else:
        return _read_variable(prover, state, op, "global", prover.real_name(state, name))
    state.stack.append(symbol)
    return None


@rule(o.LOAD_DEREF)
def _load_cell(prover: Prover, state: State, op: Op) -> Event | None:
    return _read_variable(prover, state, op, "local", op.arg)


def _read_variable(prover: Prover, state: State, op: Op, kind: str, name: str) -> Event | None:
    """Read a global or a cell; one that is known to have a value is read unobserved."""
    symbol = read(prover, state, None, (kind, name))
    if symbol is None:
        return event_of(prover, state, op)
    state.stack.append(symbol)
    return None


@rule(o.LOAD_CLOSURE)
def _load_closure(prover: Prover, state: State, op: Op) -> None:
    state.stack.append(Symbol(("cell", op.arg)))


@rule(o.LOAD_ATTR)
def _load_attribute(prover: Prover, state: State, op: Op) -> Event | None:
    owner = state.stack[-1]
    value: Value | None = _marker(prover, owner, op.arg)
    if value is None:
        value = objects.attribute(prover, owner, op.arg)
    if value is None:
        value = read(prover, state, owner, ("attr", op.arg))
    if value is None:
        return event_of(prover, state, op)
    state.stack[-1] = value
    return None


def _marker(prover: Prover, owner: Value, name: str) -> Symbol | None:
    """Return what an attribute of one of torch's modules has to do with its profiler; ``None`` if nothing."""
    owner = resolve(owner)
    if not isinstance(owner, Symbol) or owner.key[0] != "module":
        return None
    if name in PROFILER_MARKERS.get(owner.key[1], ()):
        symbol = Symbol(("marker", name))
    elif name in PROFILER_FLAGS.get(owner.key[1], ()):
        symbol = Symbol(("profiler flag",))
    else:
        return None
    prover.notes.add(PROFILER_NOTE)
    return symbol


@rule(o.STORE_ATTR)
def _store_attribute(prover: Prover, state: State, op: Op) -> Event | None:
    owner, value = state.stack[-1], state.stack[-2]
    stored = objects.store(prover, owner, op.arg, value, op)
    if isinstance(stored, Event):
        return stored
    if not stored:
        return event_of(prover, state, op)
    del state.stack[-2:]
    return None


# --- displays -------------------------------------------------------------------------------------
_DISPLAYS = {o.BUILD_LIST: "list", o.BUILD_TUPLE: "tuple", o.BUILD_SLICE: "slice"}


@rule(*_DISPLAYS)
def _build(prover: Prover, state: State, op: Op) -> None:
    state.stack.append(Allocation(_DISPLAYS[op.kind], pop_many(state, op.arg)))


@rule(o.BUILD_MAP)
def _build_map(prover: Prover, state: State, op: Op) -> Event | None:
    if not all(map(is_key, state.stack[len(state.stack) - 2 * op.arg :: 2])):
        return event_of(prover, state, op)
    state.stack.append(Allocation("dict", pop_many(state, 2 * op.arg)))
    return None


@rule(o.BUILD_CONST_KEY_MAP)
def _build_const_key_map(prover: Prover, state: State, op: Op) -> Event | None:
    """Build the same dictionary as ``BUILD_MAP``; which of them is used is the compiler's choice."""
    keys, start = list(map(Constant, op.arg)), len(state.stack) - len(op.arg)
    pairs = [part for pair in zip(keys, state.stack[start:]) for part in pair]
    if not all(map(is_key, keys)):
        return Event(o.BUILD_MAP, len(op.arg), pairs, op)
    state.stack[start:] = [Allocation("dict", pairs)]
    return None


@rule(o.BUILD_SET)
def _build_set(prover: Prover, state: State, op: Op) -> Event | None:
    if not all(map(is_hashable, state.stack[len(state.stack) - op.arg :])):
        return event_of(prover, state, op)
    state.stack.append(Allocation("set", pop_many(state, op.arg)))
    return None


@rule(o.SET_UPDATE)
def _update_set(prover: Prover, state: State, op: Op) -> Event | None:
    """Fill a new set with constants: how the compiler writes ``{1, 2, 3}``, and ``{*()}`` for an empty set."""
    items = constants_of(state.stack[-1])
    allocation = state.stack[-2]
    if op.arg != 1 or items is None or not is_new(allocation, "set"):
        return event_of(prover, state, op)
    assert isinstance(allocation, Allocation)
    state.stack.pop()
    allocation.items = items
    return None


@rule(o.DICT_MERGE)
def _merge_keywords(prover: Prover, state: State, op: Op) -> Event | None:
    """Copy the keywords of a call that follows at once.

    ``f(**d)`` hands a copy of ``d`` to the call; Dynamo's code hands ``d``, and the call copies it.
    """
    following = state.program.ops[state.at + 1]
    if op.arg != 1 or not is_new(state.stack[-2], "dict") or following.kind is not o.CALL_EX:
        return event_of(prover, state, op)
    state.stack[-2:] = [Allocation("copy", [state.stack[-1]])]
    return None


@rule(o.LIST_TO_TUPLE)
def _list_to_tuple(prover: Prover, state: State, op: Op) -> Event | None:
    own = own_list(state.stack[-1])
    if own is None:
        return event_of(prover, state, op)
    state.stack[-1] = Allocation("tuple", list(own.items))
    return None


@rule(o.LIST_APPEND)
def _append(prover: Prover, state: State, op: Op) -> Event | None:
    own = own_list(state.stack[-1 - op.arg])
    if own is None:
        return event_of(prover, state, op)
    own.items.append(state.stack.pop())
    return None


@rule(o.LIST_EXTEND)
def _extend(prover: Prover, state: State, op: Op) -> Event | None:
    own, more = own_list(state.stack[-1 - op.arg]), sequence(state.stack[-1])
    if own is None or more is None:
        return event_of(prover, state, op)
    state.stack.pop()
    own.items.extend(more)
    return None


@rule(o.UNPACK)
def _unpack(prover: Prover, state: State, op: Op) -> Event | None:
    items = sequence(state.stack[-1])
    if items is None or len(items) != op.arg:
        return event_of(prover, state, op)
    state.stack[-1:] = reversed(items)
    return None


# --- items ----------------------------------------------------------------------------------------
@rule(o.GETITEM)
def _get_item(prover: Prover, state: State, op: Op) -> Event | None:
    owner, subscript = resolve(state.stack[-2]), state.stack[-1]
    index = index_of(subscript)
    item: Value | None = objects.ancestor(prover, owner, index)
    if item is None and item_key(subscript) is not ...:
        item = read(prover, state, owner, ("item", item_key(subscript)))
    if item is None and index is not None:
        item = _item_of_graph(prover, state, owner, index) or _item_of_sequence(owner, index)
    if item is None:
        return event_of(prover, state, op)
    state.stack[-2:] = [item]
    return None


def _item_of_graph(prover: Prover, state: State, owner: Value, index: int | slice) -> Symbol | None:
    """Return an item of the tuple that a graph has given."""
    if not isinstance(owner, Symbol) or owner.key not in prover.graphs or type(index) is not int or index < 0:
        return None
    prover.notes.add(ITEMS_NOTE)
    symbol = Symbol(("item", owner.key, index))
    prover.items[state.program is prover.p].setdefault(symbol.key, state.program.ops[state.at].offset)
    return symbol


def _item_of_sequence(owner: Value, index: int | slice) -> Value | None:
    """Return an item, or a slice, of a list or tuple that was made here."""
    if not isinstance(owner, Allocation) or owner.kind not in ("list", "tuple"):
        return None
    try:
        return Allocation(owner.kind, owner.items[index]) if isinstance(index, slice) else owner.items[index]
    except (IndexError, ValueError):
        return None


@rule(o.SETITEM)
def _set_item(prover: Prover, state: State, op: Op) -> Event | None:
    subscript, owner, value = state.stack[-1], state.stack[-2], state.stack[-3]
    own, index, more = own_list(owner), index_of(subscript), sequence(value)
    if own is not None and isinstance(index, slice) and index.step in (None, 1) and more is not None:
        own.items[index] = more
    elif own is not None and isinstance(index, int) and -len(own.items) <= index < len(own.items):
        own.items[index] = value
    else:
        return objects.entry(prover, owner, subscript, value, op) or objects.store_entry(
            prover, owner, subscript, value, op) or event_of(prover, state, op)
    del state.stack[-3:]
    return None


@rule(o.DELITEM)
def _delete_item(prover: Prover, state: State, op: Op) -> Event | None:
    own, index = own_list(state.stack[-2]), index_of(state.stack[-1])
    if own is None or index is None or (
        not isinstance(index, slice) and not -len(own.items) <= index < len(own.items)
    ):
        return event_of(prover, state, op)
    del own.items[index]
    del state.stack[-2:]
    return None


# --- tests ----------------------------------------------------------------------------------------
@rule(o.IS)
def _is(prover: Prover, state: State, op: Op) -> Event | None:
    right, left = state.stack[-1], state.stack[-2]
    if all(isinstance(each, Constant) and each.value is None for each in map(resolve, (left, right))):
        state.stack[-2:] = [Constant(not op.arg)]
        return None
    if op.arg and state.program.ops[state.at + 1].kind is o.BRANCH:  # (in either sense the same test)
        return Event(o.IS, False, [left, right], op, negated=True)
    return event_of(prover, state, op)


# --- calls ----------------------------------------------------------------------------------------
@rule(o.CALL)
def _call(prover: Prover, state: State, op: Op) -> Event | None:
    positional, keywords = op.arg
    start = len(state.stack) - (1 + positional + len(keywords))
    operands = state.stack[start:]
    function = resolve(operands[0])
    result: Value | Event | None = None
    if isinstance(function, Symbol) and function.key[0] == "marker":
        result = Symbol(("marked",))
    elif not keywords:
        result = objects.call(prover, state, function, operands[1:], op)
    if result is None:
        return Event(o.CALL, (positional, keywords), operands, op)
    if isinstance(result, Event):
        return result
    state.stack[start:] = [result]
    return None


@rule(o.CALL_EX)
def _call_spread(prover: Prover, state: State, op: Op) -> Event | None:
    """Take a call with ``*`` or ``**`` of what is known for one without."""
    operands = state.stack[len(state.stack) - (3 if op.arg else 2) :]
    items = sequence(operands[1])
    names: list[str] | None = []
    values: list[Value] = []
    if op.arg:
        mapping = resolve(operands[2])
        if isinstance(mapping, Allocation) and mapping.kind == "copy":
            operands[2] = mapping.items[0]
            mapping = resolve(operands[2])
        names = None
        if isinstance(mapping, Allocation) and mapping.kind == "dict":
            names = [constant_of(key) for key in mapping.items[::2]]
            values = mapping.items[1::2]
    if items is None or names is None or len(set(names)) != len(names):
        return Event(o.CALL_EX, op.arg, operands, op)
    return Event(o.CALL, (len(items), tuple(names)), [operands[0], *items, *values], op)


# --- iteration, jumps -----------------------------------------------------------------------------
@rule(o.GET_ITER)
def _iterate(prover: Prover, state: State, op: Op) -> Event | None:
    value = state.stack[-1]
    owner = value.items[0] if isinstance(value, Allocation) and value.kind == "items" else None
    if not isinstance(owner, Allocation):
        return event_of(prover, state, op)
    pairs = zip(owner.items[::2], owner.items[1::2])
    state.stack[-1] = Allocation("iterator", [Allocation("tuple", list(pair)) for pair in pairs])
    return None


@jump(o.FOR_ITER)
def _next(prover: Prover, state: State, op: Op) -> Event | None:
    iterator = state.stack[-1]
    if not objects.is_known_iterator(iterator):
        return event_of(prover, state, op)
    if iterator.items:
        state.stack.append(iterator.items.pop(0))
        state.at += 1
    else:
        state.stack.pop()
        state.at = op.target
    return None


@jump(o.JUMP)
def _jump(prover: Prover, state: State, op: Op) -> None:
    state.at = op.target


@jump(o.BRANCH)
def _branch(prover: Prover, state: State, op: Op) -> Event | None:
    tested = resolve(state.stack[-1])
    if isinstance(tested, Constant):
        answer = bool(tested.value)
    elif isinstance(tested, Symbol) and tested.key[0] == "profiler flag":
        answer = False
    elif isinstance(tested, Symbol) and tested.key[0] == "not":
        return Event(o.BRANCH, None, [Symbol(tested.key[1])], op, negated=True)
    else:
        return Event(o.BRANCH, None, [tested], op)
    state.stack.pop()
    state.at = op.target if answer == op.arg else state.at + 1
    return None
