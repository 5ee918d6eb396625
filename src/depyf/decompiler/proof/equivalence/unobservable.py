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
from collections.abc import Callable, Mapping
from typing import Any

from ....bytecode import operations as o
from ....bytecode.operations import JUMPS, ON_GLOBALS, UPDATES, Op, Program, effect
from ...dynamo.facts import Facts
from ...dynamo.global_names import OWN_GLOBALS, PROFILER_FLAGS, PROFILER_MARKERS
from . import states as s
from .objects import Reads, item_key

PROFILER_NOTE = "if torch's profiler is off"
ITEMS_NOTE = "items of a graph's result are read where they are used"
#: What is left in place of the values that an operation takes, or the event that it is.
Done = s.Value | list[s.Value] | s.Event | None
#: What operations leave that only move values about, or build something of them.
_OF_VALUES: dict[str, Callable[[Op, list[s.Value]], Done]] = {
    o.CONST: lambda op, taken: s.Constant(op.arg),
    o.LOAD_CLOSURE: lambda op, taken: s.Symbol(("cell", op.arg)),
    o.POP: lambda op, taken: [],
    o.COPY: lambda op, taken: [*taken, taken[0]],
    o.SWAP: lambda op, taken: [taken[-1], *taken[1:-1], taken[0]],
    o.ROT: lambda op, taken: [taken[-1], *taken[:-1]],
    o.BUILD_LIST: lambda op, taken: s.Allocation("list", taken),
    o.BUILD_TUPLE: lambda op, taken: s.Allocation("tuple", taken),
    o.BUILD_SLICE: lambda op, taken: s.Allocation("slice", taken),
    o.BUILD_MAP: lambda op, taken: s.Allocation("dict", taken) if all(map(s.is_key, taken[::2])) else None,
    o.BUILD_SET: lambda op, taken: s.Allocation("set", taken) if all(map(s.is_hashable, taken)) else None,
    o.LIST_TO_TUPLE: lambda op, taken: s.Allocation("tuple", [*taken[0].items]) if s.is_own(taken[0], "list") else None,
}


class Steps(Reads):
    """The operations, each by its row or its method ``_do_KIND``, or as an event wherever it is."""

    def __init__(self, p: Program, q: Program, rename: Mapping[str, str], facts: Facts | None) -> None:
        super().__init__(p, q, rename, facts)
        self._real = {shown: name for name, shown in rename.items()}
        #: Symbols that are results of graph calls.
        self.graphs: set[tuple[Any, ...]] = set()
        #: Where items of graphs' results are read, in the recompiled and in the original program.
        self.items: tuple[dict[tuple[Any, ...], int], dict[tuple[Any, ...], int]] = ({}, {})

    def step(self, state: s.State, op: Op) -> s.Event | None:
        """Perform the operation if it is unobservable, or return the event that it is.

        A method gets the values that are taken, and returns what is left, that event, or ``None`` for the usual one.
        """
        of_values = _OF_VALUES.get(op.kind)
        method: Any = getattr(self, "_do_" + op.kind, None)
        if method is None and of_values is None:
            return self.event_of(state, op)
        start = len(state.stack) - effect(op)[0]
        if start < 0:
            raise s.Different("a stack holds too few values")
        taken = state.stack[start:]
        done: Done = of_values(op, taken) if of_values is not None else method(state, op, taken)
        if done is None:
            return self.event_of(state, op)
        if isinstance(done, s.Event):
            return done
        state.stack[start:] = done if isinstance(done, list) else [done]
        if op.kind not in JUMPS:  # (these say where it goes on)
            state.at += 1
        return None

    def event_of(self, state: s.State, op: Op) -> s.Event:
        """Return the event that an operation is, with the operands that count."""
        kind, stack = op.kind, state.stack
        popped = effect(op)[0]
        if popped > len(stack):
            raise s.Different("a stack holds too few values")
        operands = stack[len(stack) - popped :]
        if kind in UPDATES:  # (the depth of the container is layout)
            return s.Event(kind, None, [stack[-popped - op.arg], *operands], op)
        if kind is o.RERAISE:
            return s.Event(kind, bool(op.arg), [stack[-1]], op)
        if kind is o.WITH_EXCEPT_START:
            below = s.resolve(stack[-3])
            has_lasti = isinstance(below, s.Symbol) and below.key[0] == "lasti"
            return s.Event(kind, None, [stack[-4 if has_lasti else -3], stack[-1]], op)
        argument = op.arg
        if kind in ON_GLOBALS and state.program is self.p:
            argument = self.rename.get(argument, argument)
        return s.Event(kind, argument, operands, op)

    # --- constants, locals, the stack -----------------------------------------------------------------
    def _do_LOAD_FAST(self, state: s.State, op: Op, taken: list[s.Value]) -> Done:
        if not state.is_bound(op.arg):
            return s.Event(f"LOAD_FAST {op.arg}", None, [state.content(op.arg)], op)
        return s.resolve(state.locals[op.arg])

    def _do_STORE_FAST(self, state: s.State, op: Op, taken: list[s.Value]) -> Done:
        state.bind(op.arg, taken[0])
        return []

    def _do_DELETE_FAST(self, state: s.State, op: Op, taken: list[s.Value]) -> Done:
        if not state.is_bound(op.arg):
            return s.Event(op.kind, op.arg, [state.content(op.arg)], op)
        del state.locals[op.arg]
        return []

    def _do_LOAD_FAST_AND_CLEAR(self, state: s.State, op: Op, taken: list[s.Value]) -> Done:
        content = state.content(op.arg)
        state.bind(op.arg, s.UNBOUND)
        return content

    # --- globals, cells, attributes -------------------------------------------------------------------
    def _do_LOAD_GLOBAL(self, state: s.State, op: Op, taken: list[s.Value]) -> Done:
        name = op.arg
        if name in PROFILER_MARKERS or name in PROFILER_FLAGS:
            symbol = s.Symbol(("module", name))
            self.paths[symbol.key] = (("global", name),)
            return symbol
        is_text = state.program is not self.p
        real = self._real.get(name, name) if is_text else name
        if not name.startswith(OWN_GLOBALS):
            return self.read(state, None, ("global", real))
        symbol = s.Symbol(("own", name if is_text else self.rename.get(name, name)))
        self.paths[symbol.key] = (("global", real),)
        return symbol

    def _do_LOAD_DEREF(self, state: s.State, op: Op, taken: list[s.Value]) -> Done:
        return self.read(state, None, ("local", op.arg))

    def _do_LOAD_ATTR(self, state: s.State, op: Op, taken: list[s.Value]) -> Done:
        owner = s.resolve(taken[0])
        if isinstance(owner, s.Symbol) and owner.key[0] == "module":  # (a module of torch's, with its profiler)
            for key, names in (("marker", PROFILER_MARKERS), ("profiler flag", PROFILER_FLAGS)):
                if op.arg in names.get(owner.key[1], ()):
                    self.notes.add(PROFILER_NOTE)
                    return s.Symbol((key,))
        return self.attribute(owner, op.arg) or self.read(state, owner, ("attr", op.arg))

    def _do_STORE_ATTR(self, state: s.State, op: Op, taken: list[s.Value]) -> Done:
        value, owner = taken
        return self.store(owner, op.arg, value, op)

    # --- displays -------------------------------------------------------------------------------------
    def _do_BUILD_CONST_KEY_MAP(self, state: s.State, op: Op, taken: list[s.Value]) -> Done:
        """Build the same dictionary as ``BUILD_MAP``; which of them is used is the compiler's choice."""
        pairs = [part for pair in zip(map(s.Constant, op.arg), taken) for part in pair]
        return _OF_VALUES[o.BUILD_MAP](op, pairs) or s.Event(o.BUILD_MAP, len(op.arg), pairs, op)

    def _do_SET_UPDATE(self, state: s.State, op: Op, taken: list[s.Value]) -> Done:
        """Fill a new set with constants: how the compiler writes ``{1, 2, 3}``, and ``{*()}`` for an empty set."""
        items, allocation = s.constants_of(taken[0]), state.stack[-2]
        if op.arg != 1 or items is None or not s.is_own(allocation, "set") or allocation.items:
            return None
        allocation.items = items
        return []

    def _do_DICT_MERGE(self, state: s.State, op: Op, taken: list[s.Value]) -> Done:
        """Copy the keywords of a call that follows at once: Dynamo's code lets the call copy them."""
        following, owner = state.program.ops[state.at + 1], state.stack[-2]
        if op.arg != 1 or not s.is_own(owner, "dict") or owner.items or following.kind is not o.CALL_EX:
            return None
        state.stack[-2] = s.Allocation("copy", taken)
        return []

    def _do_LIST_APPEND(self, state: s.State, op: Op, taken: list[s.Value]) -> Done:
        own, more = state.stack[-1 - op.arg], taken if op.kind is o.LIST_APPEND else s.sequence(taken[0])
        if not s.is_own(own, "list") or more is None:
            return None
        own.items.extend(more)
        return []

    _do_LIST_EXTEND = _do_LIST_APPEND

    def _do_UNPACK(self, state: s.State, op: Op, taken: list[s.Value]) -> Done:
        items = s.sequence(taken[0])
        return items[::-1] if items is not None and len(items) == op.arg else None

    # --- items ----------------------------------------------------------------------------------------
    def _do_GETITEM(self, state: s.State, op: Op, taken: list[s.Value]) -> Done:
        owner, index, key = s.resolve(taken[0]), s.index_of(taken[1]), item_key(taken[1])
        if isinstance(owner, s.Symbol) and owner.key[0] == "mro" and type(index) is int and (
                container := self.facts.ancestor(self.paths[owner.key[1]], index)):
            return s.Symbol(("ancestor", container))
        item = self.read(state, owner, ("item", key)) if key is not ... else None
        if item is None and isinstance(owner, s.Symbol) and owner.key in self.graphs and type(index) is int and (
                index >= 0):
            self.notes.add(ITEMS_NOTE)  # (of the tuple that a graph has given)
            item = s.Symbol(("item", owner.key, index))
            self.items[state.program is self.p].setdefault(item.key, op.offset)
        if item is None and isinstance(owner, s.Allocation) and owner.kind in ("list", "tuple") and index is not None:
            with contextlib.suppress(IndexError, ValueError):
                return s.Allocation(owner.kind, owner.items[index]) if isinstance(index, slice) else owner.items[index]
        return item

    def _do_SETITEM(self, state: s.State, op: Op, taken: list[s.Value]) -> Done:
        value, owner, subscript = taken
        index, more = s.index_of(subscript), s.sequence(value)
        if s.is_own(owner, "list") and isinstance(index, slice) and index.step in (None, 1) and more is not None:
            owner.items[index] = more
            return []
        return self.store_item(owner, subscript, value, op)

    def _do_DELITEM(self, state: s.State, op: Op, taken: list[s.Value]) -> Done:
        own, index = taken[0], s.index_of(taken[1])
        if not s.is_own(own, "list") or index is None or (
            not isinstance(index, slice) and not -len(own.items) <= index < len(own.items)
        ):
            return None
        del own.items[index]
        return []

    # --- tests, calls -----------------------------------------------------------------------------------
    def _do_IS(self, state: s.State, op: Op, taken: list[s.Value]) -> Done:
        if all(isinstance(each, s.Constant) and each.value is None for each in map(s.resolve, taken)):
            return [s.Constant(not op.arg)]  # (torch 2.15 asks that before each call of a graph)
        is_test = op.arg and state.program.ops[state.at + 1].kind is o.BRANCH  # (in either sense the same test)
        return s.Event(o.IS, False, taken, op, negated=True) if is_test else None

    def _do_CALL(self, state: s.State, op: Op, taken: list[s.Value]) -> Done:
        function = s.resolve(taken[0])
        if isinstance(function, s.Symbol) and function.key[0] == "marker":
            return s.Symbol(("marked",))
        return self.call(state, function, taken[1:], op) if not op.arg[1] else None

    def _do_CALL_EX(self, state: s.State, op: Op, taken: list[s.Value]) -> Done:
        """Take a call with ``*`` or ``**`` of what is known for one without."""
        items = s.sequence(taken[1])
        names: list[str] | None = []
        values: list[s.Value] = []
        if op.arg:
            mapping = s.resolve(taken[2])
            if isinstance(mapping, s.Allocation) and mapping.kind == "copy":
                taken[2] = mapping.items[0]
                mapping = s.resolve(taken[2])
            names = None
            if isinstance(mapping, s.Allocation) and mapping.kind == "dict":
                names = [s.constant_of(key) for key in mapping.items[::2]]
                values = mapping.items[1::2]
        if items is None or names is None or len(set(names)) != len(names):
            return s.Event(o.CALL_EX, op.arg, taken, op)
        return s.Event(o.CALL, (len(items), tuple(names)), [taken[0], *items, *values], op)

    # --- iteration, jumps -----------------------------------------------------------------------------
    def _do_GET_ITER(self, state: s.State, op: Op, taken: list[s.Value]) -> Done:
        value = taken[0]
        owner = value.items[0] if isinstance(value, s.Allocation) and value.kind == "items" else None
        if not isinstance(owner, s.Allocation):
            return None
        pairs = zip(owner.items[::2], owner.items[1::2])
        return s.Allocation("iterator", [s.Allocation("tuple", list(pair)) for pair in pairs])

    def _do_FOR_ITER(self, state: s.State, op: Op, taken: list[s.Value]) -> Done:
        iterator = taken[0]
        if not s.is_own(iterator, "iterator"):
            return None
        state.at = state.at + 1 if iterator.items else op.target
        return [iterator, iterator.items.pop(0)] if iterator.items else []

    def _do_JUMP(self, state: s.State, op: Op, taken: list[s.Value]) -> Done:
        state.at = op.target
        return []

    def _do_BRANCH(self, state: s.State, op: Op, taken: list[s.Value]) -> Done:
        tested = s.resolve(taken[0])
        is_flag = isinstance(tested, s.Symbol) and tested.key[0] == "profiler flag"
        if isinstance(tested, s.Symbol) and tested.key[0] == "not":
            return s.Event(o.BRANCH, None, [s.Symbol(tested.key[1])], op, negated=True)
        if not is_flag and not isinstance(tested, s.Constant):
            return s.Event(o.BRANCH, None, [tested], op)
        answer = isinstance(tested, s.Constant) and bool(tested.value)
        state.at = op.target if answer == op.arg else state.at + 1
        return []
