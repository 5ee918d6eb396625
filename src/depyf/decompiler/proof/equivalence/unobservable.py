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

import contextlib
from collections.abc import Mapping
from typing import Any

from ....bytecode import operations as o
from ....bytecode.operations import JUMPS, ON_GLOBALS, UPDATES, Op, Program, effect
from ...dynamo.facts import Facts
from ...dynamo.global_names import OWN_GLOBALS, PROFILER_FLAGS, PROFILER_MARKERS
from .objects import Reads, is_known_iterator, item_key
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
    index_of,
    is_hashable,
    is_key,
    is_new,
    own_list,
    resolve,
    sequence,
)

PROFILER_NOTE = "if torch's profiler is off"
ITEMS_NOTE = "items of a graph's result are read where they are used"
_DISPLAYS = {o.BUILD_LIST: "list", o.BUILD_TUPLE: "tuple", o.BUILD_SLICE: "slice"}


class Steps(Reads):
    """The operations, each by its method ``_do_KIND``, or as an event wherever it is."""

    def __init__(self, p: Program, q: Program, rename: Mapping[str, str], facts: Facts | None) -> None:
        super().__init__(p, q, rename, facts)
        self._real = {shown: name for name, shown in rename.items()}
        #: Symbols that are results of graph calls.
        self.graphs: set[tuple[Any, ...]] = set()
        #: Where items of graphs' results are read, in the recompiled and in the original program.
        self.items: tuple[dict[tuple[Any, ...], int], dict[tuple[Any, ...], int]] = ({}, {})

    def step(self, state: State, op: Op) -> Event | None:
        """Perform the operation if it is unobservable, or return the event that it is."""
        event: Event | None = getattr(self, "_do_" + op.kind, self.event_of)(state, op)
        if event is None and op.kind not in JUMPS:  # (these say where it goes on)
            state.at += 1
        return event

    def event_of(self, state: State, op: Op) -> Event:
        """Return the event that an operation is, with the operands that count."""
        kind, stack = op.kind, state.stack
        popped = effect(op)[0]
        if popped > len(stack):
            raise Different("a stack holds too few values")
        operands = stack[len(stack) - popped :]
        if kind in UPDATES:  # (the depth of the container is layout)
            return Event(kind, None, [stack[-popped - op.arg], *operands], op)
        if kind is o.RERAISE:
            return Event(kind, bool(op.arg), [stack[-1]], op)
        if kind is o.WITH_EXCEPT_START:
            below = resolve(stack[-3])
            has_lasti = isinstance(below, Symbol) and below.key[0] == "lasti"
            return Event(kind, None, [stack[-4 if has_lasti else -3], stack[-1]], op)
        argument = op.arg
        if kind in ON_GLOBALS and state.program is self.p:
            argument = self.rename.get(argument, argument)
        return Event(kind, argument, operands, op)

    def _do_CONST(self, state: State, op: Op) -> None:
        state.stack.append(Constant(op.arg))

    def _do_LOAD_FAST(self, state: State, op: Op) -> Event | None:
        if not state.is_bound(op.arg):
            return Event(f"LOAD_FAST {op.arg}", None, [state.content(op.arg)], op)
        state.stack.append(resolve(state.locals[op.arg]))
        return None

    def _do_STORE_FAST(self, state: State, op: Op) -> None:
        state.bind(op.arg, state.stack.pop())

    def _do_DELETE_FAST(self, state: State, op: Op) -> Event | None:
        if not state.is_bound(op.arg):
            return Event(op.kind, op.arg, [state.content(op.arg)], op)
        del state.locals[op.arg]
        return None

    def _do_LOAD_FAST_AND_CLEAR(self, state: State, op: Op) -> None:
        state.stack.append(state.content(op.arg))
        state.bind(op.arg, UNBOUND)

    def _do_POP(self, state: State, op: Op) -> None:
        state.stack.pop()

    def _do_COPY(self, state: State, op: Op) -> None:
        state.stack.append(state.stack[-op.arg])

    def _do_SWAP(self, state: State, op: Op) -> None:
        stack = state.stack
        stack[-1], stack[-op.arg] = stack[-op.arg], stack[-1]

    def _do_ROT(self, state: State, op: Op) -> None:
        stack = state.stack
        stack[-op.arg :] = stack[-1:] + stack[-op.arg : -1]

    def _do_LOAD_GLOBAL(self, state: State, op: Op) -> Event | None:
        name = op.arg
        if name in PROFILER_MARKERS or name in PROFILER_FLAGS:
            symbol = Symbol(("module", name))
            self.paths[symbol.key] = (("global", name),)
        elif name.startswith(OWN_GLOBALS):
            symbol = Symbol(("own", self.rename.get(name, name) if state.program is self.p else name))
            self.paths[symbol.key] = (("global", self.real_name(state, name)),)
        else:
            return self._read_variable(state, op, "global", self.real_name(state, name))
        state.stack.append(symbol)
        return None

    def _do_LOAD_DEREF(self, state: State, op: Op) -> Event | None:
        return self._read_variable(state, op, "local", op.arg)

    def real_name(self, state: State, name: str) -> str:
        """Return the name that a global has, not the one that the text shows."""
        return name if state.program is self.p else self._real.get(name, name)

    def _read_variable(self, state: State, op: Op, kind: str, name: str) -> Event | None:
        """Read a global or a cell; one that is known to have a value is read unobserved."""
        symbol = self.read(state, None, (kind, name))
        if symbol is None:
            return self.event_of(state, op)
        state.stack.append(symbol)
        return None

    def _do_LOAD_CLOSURE(self, state: State, op: Op) -> None:
        state.stack.append(Symbol(("cell", op.arg)))

    def _do_LOAD_ATTR(self, state: State, op: Op) -> Event | None:
        owner = resolve(state.stack[-1])
        value: Value | None = None
        if isinstance(owner, Symbol) and owner.key[0] == "module":  # (a module of torch's, with its profiler)
            for key, names in (("marker", PROFILER_MARKERS), ("profiler flag", PROFILER_FLAGS)):
                if op.arg in names.get(owner.key[1], ()):
                    self.notes.add(PROFILER_NOTE)
                    value = Symbol((key,))
        if value is None:
            value = self.attribute(owner, op.arg)
        if value is None:
            value = self.read(state, owner, ("attr", op.arg))
        if value is None:
            return self.event_of(state, op)
        state.stack[-1] = value
        return None

    def _do_STORE_ATTR(self, state: State, op: Op) -> Event | None:
        owner, value = state.stack[-1], state.stack[-2]
        stored = self.store(owner, op.arg, value, op)
        if isinstance(stored, Event):
            return stored
        if not stored:
            return self.event_of(state, op)
        del state.stack[-2:]
        return None

    def _do_BUILD_LIST(self, state: State, op: Op) -> None:
        state.stack.append(Allocation(_DISPLAYS[op.kind], pop_many(state, op.arg)))

    _do_BUILD_TUPLE = _do_BUILD_SLICE = _do_BUILD_LIST

    def _do_BUILD_MAP(self, state: State, op: Op) -> Event | None:
        if not all(map(is_key, state.stack[len(state.stack) - 2 * op.arg :: 2])):
            return self.event_of(state, op)
        state.stack.append(Allocation("dict", pop_many(state, 2 * op.arg)))
        return None

    def _do_BUILD_CONST_KEY_MAP(self, state: State, op: Op) -> Event | None:
        """Build the same dictionary as ``BUILD_MAP``; which of them is used is the compiler's choice."""
        keys, start = list(map(Constant, op.arg)), len(state.stack) - len(op.arg)
        pairs = [part for pair in zip(keys, state.stack[start:]) for part in pair]
        if not all(map(is_key, keys)):
            return Event(o.BUILD_MAP, len(op.arg), pairs, op)
        state.stack[start:] = [Allocation("dict", pairs)]
        return None

    def _do_BUILD_SET(self, state: State, op: Op) -> Event | None:
        if not all(map(is_hashable, state.stack[len(state.stack) - op.arg :])):
            return self.event_of(state, op)
        state.stack.append(Allocation("set", pop_many(state, op.arg)))
        return None

    def _do_SET_UPDATE(self, state: State, op: Op) -> Event | None:
        """Fill a new set with constants: how the compiler writes ``{1, 2, 3}``, and ``{*()}`` for an empty set."""
        items = constants_of(state.stack[-1])
        allocation = state.stack[-2]
        if op.arg != 1 or items is None or not is_new(allocation, "set"):
            return self.event_of(state, op)
        assert isinstance(allocation, Allocation)
        state.stack.pop()
        allocation.items = items
        return None

    def _do_DICT_MERGE(self, state: State, op: Op) -> Event | None:
        """Copy the keywords of a call that follows at once.

        ``f(**d)`` hands a copy of ``d`` to the call; Dynamo's code hands ``d``, and the call copies it.
        """
        following = state.program.ops[state.at + 1]
        if op.arg != 1 or not is_new(state.stack[-2], "dict") or following.kind is not o.CALL_EX:
            return self.event_of(state, op)
        state.stack[-2:] = [Allocation("copy", [state.stack[-1]])]
        return None

    def _do_LIST_TO_TUPLE(self, state: State, op: Op) -> Event | None:
        own = own_list(state.stack[-1])
        if own is None:
            return self.event_of(state, op)
        state.stack[-1] = Allocation("tuple", list(own.items))
        return None

    def _do_LIST_APPEND(self, state: State, op: Op) -> Event | None:
        own = own_list(state.stack[-1 - op.arg])
        if own is None:
            return self.event_of(state, op)
        own.items.append(state.stack.pop())
        return None

    def _do_LIST_EXTEND(self, state: State, op: Op) -> Event | None:
        own, more = own_list(state.stack[-1 - op.arg]), sequence(state.stack[-1])
        if own is None or more is None:
            return self.event_of(state, op)
        state.stack.pop()
        own.items.extend(more)
        return None

    def _do_UNPACK(self, state: State, op: Op) -> Event | None:
        items = sequence(state.stack[-1])
        if items is None or len(items) != op.arg:
            return self.event_of(state, op)
        state.stack[-1:] = reversed(items)
        return None

    def _do_GETITEM(self, state: State, op: Op) -> Event | None:
        owner, subscript = resolve(state.stack[-2]), state.stack[-1]
        index = index_of(subscript)
        item: Value | None = self.ancestor(owner, index)
        if item is None and item_key(subscript) is not ...:
            item = self.read(state, owner, ("item", item_key(subscript)))
        if item is None and isinstance(owner, Symbol) and owner.key in self.graphs and type(index) is int and (
                index >= 0):
            self.notes.add(ITEMS_NOTE)  # (of the tuple that a graph has given)
            item = Symbol(("item", owner.key, index))
            self.items[state.program is self.p].setdefault(item.key, op.offset)
        elif item is None and isinstance(owner, Allocation) and owner.kind in ("list", "tuple") and index is not None:
            with contextlib.suppress(IndexError, ValueError):
                item = Allocation(owner.kind, owner.items[index]) if isinstance(index, slice) else owner.items[index]
        if item is None:
            return self.event_of(state, op)
        state.stack[-2:] = [item]
        return None

    def _do_SETITEM(self, state: State, op: Op) -> Event | None:
        subscript, owner, value = state.stack[-1], state.stack[-2], state.stack[-3]
        own, index, more = own_list(owner), index_of(subscript), sequence(value)
        if own is not None and isinstance(index, slice) and index.step in (None, 1) and more is not None:
            own.items[index] = more
        elif own is not None and isinstance(index, int) and -len(own.items) <= index < len(own.items):
            own.items[index] = value
        else:
            return self.entry(owner, subscript, value, op) or self.store_entry(
                owner, subscript, value, op) or self.event_of(state, op)
        del state.stack[-3:]
        return None

    def _do_DELITEM(self, state: State, op: Op) -> Event | None:
        own, index = own_list(state.stack[-2]), index_of(state.stack[-1])
        if own is None or index is None or (
            not isinstance(index, slice) and not -len(own.items) <= index < len(own.items)
        ):
            return self.event_of(state, op)
        del own.items[index]
        del state.stack[-2:]
        return None

    def _do_IS(self, state: State, op: Op) -> Event | None:
        right, left = state.stack[-1], state.stack[-2]
        if all(isinstance(each, Constant) and each.value is None for each in map(resolve, (left, right))):
            state.stack[-2:] = [Constant(not op.arg)]
            return None
        if op.arg and state.program.ops[state.at + 1].kind is o.BRANCH:  # (in either sense the same test)
            return Event(o.IS, False, [left, right], op, negated=True)
        return self.event_of(state, op)

    def _do_CALL(self, state: State, op: Op) -> Event | None:
        positional, keywords = op.arg
        start = len(state.stack) - (1 + positional + len(keywords))
        operands = state.stack[start:]
        function = resolve(operands[0])
        result: Value | Event | None = None
        if isinstance(function, Symbol) and function.key[0] == "marker":
            result = Symbol(("marked",))
        elif not keywords:
            result = self.call(state, function, operands[1:], op)
        if result is None:
            return Event(o.CALL, (positional, keywords), operands, op)
        if isinstance(result, Event):
            return result
        state.stack[start:] = [result]
        return None

    def _do_CALL_EX(self, state: State, op: Op) -> Event | None:
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

    def _do_GET_ITER(self, state: State, op: Op) -> Event | None:
        value = state.stack[-1]
        owner = value.items[0] if isinstance(value, Allocation) and value.kind == "items" else None
        if not isinstance(owner, Allocation):
            return self.event_of(state, op)
        pairs = zip(owner.items[::2], owner.items[1::2])
        state.stack[-1] = Allocation("iterator", [Allocation("tuple", list(pair)) for pair in pairs])
        return None

    def _do_FOR_ITER(self, state: State, op: Op) -> Event | None:
        iterator = state.stack[-1]
        if not is_known_iterator(iterator):
            return self.event_of(state, op)
        if iterator.items:
            state.stack.append(iterator.items.pop(0))
            state.at += 1
        else:
            state.stack.pop()
            state.at = op.target
        return None

    def _do_JUMP(self, state: State, op: Op) -> None:
        state.at = op.target

    def _do_BRANCH(self, state: State, op: Op) -> Event | None:
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


def pop_many(state: State, count: int) -> list[Value]:
    """Take ``count`` values off the stack, the lowest first."""
    start = len(state.stack) - count
    if start < 0:
        raise Different("a stack holds too few values")
    values = state.stack[start:]
    del state.stack[start:]
    return values
