"""Is simplified code still the same program?  A symbolic evaluation of both, side by side.

Both canonical programs are run on symbolic values from their entries.  Each side runs on silently while
it only moves values about: constants, bound locals, the stack, lists and tuples that it built and that
nobody else has seen.  It stops at the next *event*: something another part of the program, or its user,
can observe.  Events must come in the same order with equal operands on both sides; both ways out of each
branch, and each exception handler, are followed.  Nothing is shared with ``simplify``.

Values are compared by name: equal events give both sides the same symbol for their result.  A container
that escapes must have the same items on both sides, and is one symbol from then on.

Where control flow joins, the walk forgets values and keeps a relation: which places of one side (locals,
stack slots) hold the same value as which places of the other.  The relation is computed as a fixpoint:
the first arrival states it, later arrivals can only weaken it, and a weaker one is walked again.

What is assumed, and said in ``Verdict.notes`` when it was used:

* torch's profiler is off: its markers and the test of its flag are left out;
* globals that Dynamo itself puts into the module (``__compiled_fn_1``, ``__resume_at_...``,
  ``__import_...``, ``__builtins_dict__...``) are there and do not change, so it does not matter when they are read;
* items of a graph's result (a tuple that only torch made) can be read in any order, or not at all;
* which locals exist in the frame, how long values live, and the identity of tuples do not matter;
* a context that torch enters again behind a graph break swallows no exception.

Taken for granted without a note: ``f(**d)`` calls with a copy of ``d`` and a plain call copies it too; a set of
constants has no order; the keys of a dictionary display that are strings are hashed unseen.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..bytecode import operations as o
from ..bytecode.canonical import canonicalise
from ..bytecode.code import Code
from ..bytecode.operations import Op, Program
from ..flow.stack import effect
from .constants import is_literal
from .dynamo_names import GRAPH_PREFIX, OWN_GLOBALS, PROFILER_FLAGS, PROFILER_MARKERS
from .verify import MEANINGFUL_FLAGS, Pair, Verdict, conflated, docstring, same_constant

SWALLOWED_NOTE = "a context that was entered again behind the graph break must not swallow exceptions: torch raises"
PROFILER_NOTE = "torch's marks for its profiler are left out: the profiler is taken to be off"
ITEMS_NOTE = "items of a graph's result are read where they are used"

#: Steps after which the answer is no (programs of ordinary size need a few per operation).
LIMIT = 400_000


class _Different(Exception):
    pass


# --- symbolic values ------------------------------------------------------------------------------
# A symbol is any hashable tuple: ("argument", name), ("event", n[, i]), ("item", symbol, index), ...
class _Constant:
    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


class _Symbol:
    __slots__ = ("key",)

    def __init__(self, key: tuple[Any, ...]) -> None:
        self.key = key


#: What a local without a value holds (3.12 and later put it on the stack around comprehensions).
_UNBOUND = _Symbol(("unbound",))


class _Built:
    """A list, tuple or slice made by this side. ``escaped``: the symbol it became."""

    __slots__ = ("escaped", "items", "kind")

    def __init__(self, kind: str, items: list[Any]) -> None:
        self.kind = kind
        self.items = items
        self.escaped: _Symbol | None = None


def _seen(value: Any) -> Any:
    """The value as it is now: a container that has escaped is its symbol."""
    if isinstance(value, _Built) and value.escaped is not None:
        return value.escaped
    return value


def _sequence(value: Any) -> list[Any] | None:
    value = _seen(value)
    if isinstance(value, _Built) and value.kind in ("list", "tuple"):
        return list(value.items)
    if isinstance(value, _Constant) and type(value.value) is tuple:
        return [_Constant(item) for item in value.value]
    return None


def _index(value: Any) -> Any:
    value = _seen(value)
    if isinstance(value, _Constant) and type(value.value) in (int, slice):
        return value.value
    if isinstance(value, _Built) and value.kind == "slice":
        parts = [_seen(item) for item in value.items]
        if all(isinstance(p, _Constant) and (p.value is None or type(p.value) is int) for p in parts):
            return slice(*(p.value for p in parts))
    return None


class _Side:
    """One program in the middle of its evaluation."""

    __slots__ = ("at", "locals", "maybe", "program", "stack", "turns")

    def __init__(self, program: Program, at: int, stack: list[Any], variables: dict[str, Any],
                 maybe: set[str]) -> None:
        self.program = program
        self.at = at
        self.stack = stack
        self.locals = variables  # bound locals
        self.maybe = maybe  # locals of which it is not known whether they are bound
        self.turns = 0

    def content(self, name: str) -> Any:
        """What a local holds, which may be nothing."""
        if name in self.maybe:
            return _Symbol(("maybe", self.locals[name].key))
        return self.locals.get(name, _UNBOUND)

    def bind(self, name: str, value: Any) -> None:
        """Gives a local what another one, or a name of an outer comprehension, held."""
        self.maybe.discard(name)
        self.locals.pop(name, None)
        if isinstance(value, _Symbol) and value.key[0] == "maybe":
            self.locals[name] = _Symbol(value.key[1])
            self.maybe.add(name)
        elif value is not _UNBOUND:
            self.locals[name] = value

    def copy(self, memo: dict[int, _Built]) -> _Side:
        def dup(value: Any) -> Any:
            if not isinstance(value, _Built):
                return value
            known = memo.get(id(value))
            if known is None:
                known = memo[id(value)] = _Built(value.kind, [])
                known.escaped = value.escaped
                known.items = [dup(item) for item in value.items]
            return known

        return _Side(self.program, self.at, [dup(v) for v in self.stack],
                     {n: dup(v) for n, v in self.locals.items()}, set(self.maybe))


class _Event:
    """What a side does next: an operation with its operands (bottom first).

    ``negated``: a test of which the side holds the contrary (``is not``).
    """

    __slots__ = ("argument", "kind", "negated", "op", "operands")

    def __init__(self, kind: str, argument: Any, operands: list[Any], op: Op, negated: bool = False) -> None:
        self.kind = kind
        self.argument = argument
        self.operands = operands
        self.op = op
        self.negated = negated


class _Join:
    """The side stands at an operation that several ways lead to."""


#: Operations on the container ``arg`` below the top that change it.
_IN_PLACE = {o.LIST_APPEND: 1, o.SET_ADD: 1, o.MAP_ADD: 2, o.LIST_EXTEND: 1, o.SET_UPDATE: 1,
             o.DICT_UPDATE: 1, o.DICT_MERGE: 1}


#: First parts of symbols that mean one thing wherever they are made: their value survives a join.
_THE_SAME_ANYWHERE = frozenset({"own", "module"})


class _Prover:
    def __init__(
        self, p: Program, q: Program, rename: Mapping[str, str], nested: list[Pair] | None = None
    ) -> None:
        self.p = p
        self.q = q
        self.rename = rename
        self.nested = nested
        self.notes: set[str] = set()
        self.pairs: list[tuple[int, int]] = []
        self.events = 0
        #: Where items of graphs' results are read, on the recompiled and on the original side.
        self.items: tuple[dict[tuple[Any, ...], int], dict[tuple[Any, ...], int]] = ({}, {})
        self.joins = _joins(p)
        #: All locals of each side.
        self.names = {"p": _locals(p), "q": _locals(q)}
        self.graphs: set[tuple[Any, ...]] = set()  # symbols that are results of graph calls
        #: Relation at each pair of places where the walk joined: see ``join``.
        self.relations: dict[tuple[int, int], frozenset[frozenset[tuple[str, Any]]]] = {}
        #: Pairs of places at which values have been forgotten.
        self.forgotten: set[tuple[int, int]] = set()
        self.pairs_here: dict[int, int] = {}
        self.pending: list[tuple[_Side, _Side]] = []
        self.steps = 0

    # --- the walk ---------------------------------------------------------------------------------
    def run(self) -> None:
        arguments = self.p.code.arguments
        cells = _cells_used(self.p) | _cells_used(self.q)
        start = {name: _Symbol(("argument", name)) for name in arguments if name not in cells}
        self.pending.append((_Side(self.p, 0, [], dict(start), set()), _Side(self.q, 0, [], dict(start), set())))
        while self.pending:
            left, right = self.pending.pop()
            self.follow(left, right)

    def follow(self, left: _Side, right: _Side) -> None:
        """Runs both sides until this way through the program ends."""
        while True:
            a = self.advance(left, stop_at_joins=True)
            if isinstance(a, _Join):
                if not self.join(left, right):
                    return
                continue
            b = self.advance(right, stop_at_joins=False)
            assert isinstance(b, _Event)
            self.match(a, b)
            self.pairs.append((a.op.offset, b.op.offset))
            self.handlers(left, right, a, b)
            if not self.perform(left, right, a, b):
                return

    def advance(self, side: _Side, stop_at_joins: bool) -> _Event | _Join:
        """Runs what nobody can observe, up to the next event (not yet performed) or join."""
        ops = side.program.ops
        while True:
            self.steps += 1
            if self.steps > LIMIT:
                raise _Different("the comparison takes too long")
            if stop_at_joins and side.at in self.joins and side.turns == 0:
                side.turns = 1
                return _Join()
            op = ops[side.at]
            event = self.step(side, op)
            if event is not None:
                return event
            side.turns = 0

    def step(self, side: _Side, op: Op) -> _Event | None:
        """Performs one silent operation, or returns the event it is."""
        stack, kind = side.stack, op.kind
        if kind is o.CONST:
            stack.append(_Constant(op.arg))
        elif kind is o.LOAD_FAST:
            if op.arg not in side.locals or op.arg in side.maybe:
                return _Event(f"LOAD_FAST {op.arg}", None, [side.content(op.arg)], op)
            stack.append(_seen(side.locals[op.arg]))
        elif kind is o.STORE_FAST:
            side.bind(op.arg, stack.pop())
        elif kind is o.DELETE_FAST:
            if op.arg not in side.locals or op.arg in side.maybe:
                return _Event(kind, op.arg, [side.content(op.arg)], op)
            del side.locals[op.arg]
        elif kind is o.LOAD_FAST_AND_CLEAR:
            stack.append(side.content(op.arg))
            side.bind(op.arg, _UNBOUND)
        elif kind is o.POP:
            stack.pop()
        elif kind is o.COPY:
            stack.append(stack[-op.arg])
        elif kind is o.SWAP:
            stack[-1], stack[-op.arg] = stack[-op.arg], stack[-1]
        elif kind is o.ROT:
            stack[-op.arg :] = stack[-1:] + stack[-op.arg : -1]
        elif kind is o.JUMP:
            side.at = op.target
            return None
        elif kind in (o.BUILD_LIST, o.BUILD_TUPLE, o.BUILD_SLICE):
            items = stack[len(stack) - op.arg :]
            del stack[len(stack) - op.arg :]
            name = {o.BUILD_LIST: "list", o.BUILD_TUPLE: "tuple", o.BUILD_SLICE: "slice"}[kind]
            stack.append(_Built(name, items))
        elif kind is o.BUILD_MAP and all(map(_is_text, stack[len(stack) - 2 * op.arg :: 2])):
            # Hashing strings is not seen by anyone.
            items = stack[len(stack) - 2 * op.arg :]
            del stack[len(stack) - 2 * op.arg :]
            stack.append(_Built("dict", items))
        elif kind is o.BUILD_CONST_KEY_MAP:
            # The same dictionary as BUILD_MAP; which of them is used is the compiler's choice.
            values = stack[len(stack) - len(op.arg) :]
            pairs = [part for pair in zip(map(_Constant, op.arg), values) for part in pair]
            if not all(type(key) is str for key in op.arg):
                return _Event(o.BUILD_MAP, len(op.arg), pairs, op)
            del stack[len(stack) - len(op.arg) :]
            stack.append(_Built("dict", pairs))
        elif kind is o.DICT_MERGE and op.arg == 1 and _is_new(stack[-2], "dict") \
                and side.program.ops[side.at + 1].kind is o.CALL_EX:
            # ``f(**d)`` hands a copy of ``d`` to the call that follows at once; Dynamo's code hands ``d``,
            # and the call copies it.
            stack[-2:] = [_Built("copy", [stack[-1]])]
        elif kind is o.BUILD_SET and all(map(_is_hashable, stack[len(stack) - op.arg :])):
            items = stack[len(stack) - op.arg :]
            del stack[len(stack) - op.arg :]
            stack.append(_Built("set", items))
        elif kind is o.SET_UPDATE and op.arg == 1 and _is_new(stack[-2], "set") \
                and _constants_of(stack[-1]) is not None:
            # How the compiler writes ``{1, 2, 3}``.
            items = _constants_of(stack.pop()) or []
            stack[-1].items = items
        elif kind is o.IS and op.arg and side.program.ops[side.at + 1].kind is o.BRANCH \
                and not _both_none(stack[-1], stack[-2]):
            return _Event(kind, False, stack[-2:], op, negated=True)
        elif kind is o.LIST_TO_TUPLE and _own_list(stack[-1]) is not None:
            stack.append(_Built("tuple", list(_own_list(stack.pop()).items)))  # type: ignore[union-attr]
        elif kind is o.LIST_APPEND and _own_list(stack[-1 - op.arg]) is not None:
            _own_list(stack[-1 - op.arg]).items.append(stack.pop())  # type: ignore[union-attr]
        elif kind is o.LIST_EXTEND and _own_list(stack[-1 - op.arg]) is not None \
                and _sequence(stack[-1]) is not None:
            more = _sequence(stack.pop()) or []
            _own_list(stack[-op.arg]).items.extend(more)  # type: ignore[union-attr]
        elif kind is o.GETITEM and self.getitem(side):
            pass
        elif kind is o.SETITEM and self.setitem(side):
            pass
        elif kind is o.DELITEM and self.delitem(side):
            pass
        elif kind is o.UNPACK and self.unpack(side, op):
            pass
        elif kind is o.LOAD_GLOBAL and (op.arg in PROFILER_MARKERS or op.arg in PROFILER_FLAGS):
            stack.append(_Symbol(("module", op.arg)))
        elif kind is o.LOAD_GLOBAL and op.arg.startswith(OWN_GLOBALS):
            name = self.rename.get(op.arg, op.arg) if side.program is self.p else op.arg
            stack.append(_Symbol(("own", name)))
        elif kind is o.LOAD_CLOSURE:
            stack.append(_Symbol(("cell", op.arg)))
        elif kind is o.LOAD_ATTR and op.arg == "cell_contents" and _cell(stack[-1]) is not None:
            return _Event(o.LOAD_DEREF, _cell(stack[-1]), [], op)
        elif kind is o.STORE_ATTR and op.arg == "cell_contents" and _cell(stack[-1]) is not None:
            return _Event(o.STORE_DEREF, _cell(stack[-1]), [stack[-2]], op)
        elif kind is o.LOAD_ATTR and self.marker_attribute(side, op):
            pass
        elif kind is o.IS and _both_none(stack[-1], stack[-2]):
            del stack[-2:]
            stack.append(_Constant(not op.arg))
        elif kind is o.CALL:
            return self.call(side, op, op.arg[0], op.arg[1])
        elif kind is o.CALL_EX:
            return self.call_ex(side, op)
        elif kind is o.BRANCH:
            return self.branch(side, op)
        elif kind is o.FOR_ITER:
            return _Event(kind, None, [stack[-1]], op)
        elif kind is o.RETURN:
            return _Event(kind, None, [stack[-1]], op)
        elif kind is o.RAISE:
            return _Event(kind, op.arg, stack[len(stack) - op.arg :], op)
        elif kind is o.RERAISE:
            return _Event(kind, bool(op.arg), [stack[-1]], op)
        elif kind in _IN_PLACE:
            taken = stack[len(stack) - _IN_PLACE[kind] :]
            return _Event(kind, None, [stack[-_IN_PLACE[kind] - op.arg], *taken], op)
        elif kind is o.WITH_EXCEPT_START:
            lasti = isinstance(_seen(stack[-3]), _Symbol) and _seen(stack[-3]).key[0] == "lasti"
            return _Event(kind, None, [stack[-4 if lasti else -3], stack[-1]], op)
        else:
            argument = op.arg
            if kind in (o.LOAD_GLOBAL, o.STORE_GLOBAL, o.DELETE_GLOBAL) and side.program is self.p:
                argument = self.rename.get(op.arg, op.arg)
            return self.event(side, op, kind, argument, effect(op)[0])
        side.at += 1
        return None

    @staticmethod
    def event(side: _Side, op: Op, kind: str, argument: Any, count: int) -> _Event:
        return _Event(kind, argument, side.stack[len(side.stack) - count :] if count else [], op)

    # --- what is silent only sometimes ------------------------------------------------------------
    def getitem(self, side: _Side) -> bool:
        owner, index = _seen(side.stack[-2]), _index(side.stack[-1])
        if index is None:
            return False
        if isinstance(owner, _Symbol) and owner.key in self.graphs and type(index) is int and index >= 0:
            self.notes.add(ITEMS_NOTE)
            found: Any = _Symbol(("item", owner.key, index))
            places = self.items[side.program is self.p]
            places.setdefault(found.key, side.program.ops[side.at].offset)
        elif isinstance(owner, _Built) and owner.kind in ("list", "tuple"):
            try:
                found = owner.items[index]
            except (IndexError, ValueError):
                return False
            if isinstance(index, slice):
                found = _Built(owner.kind, found)
        else:
            return False
        del side.stack[-2:]
        side.stack.append(found)
        return True

    def setitem(self, side: _Side) -> bool:
        owner, index = _own_list(side.stack[-2]), _index(side.stack[-1])
        if owner is None or index is None:
            return False
        value = side.stack[-3]
        if isinstance(index, slice):
            items = _sequence(value)
            if items is None or index.step not in (None, 1):
                return False
            owner.items[index] = items
        elif -len(owner.items) <= index < len(owner.items):
            owner.items[index] = value
        else:
            return False
        del side.stack[-3:]
        return True

    def delitem(self, side: _Side) -> bool:
        owner, index = _own_list(side.stack[-2]), _index(side.stack[-1])
        if owner is None or index is None:
            return False
        if not isinstance(index, slice) and not -len(owner.items) <= index < len(owner.items):
            return False
        del owner.items[index]
        del side.stack[-2:]
        return True

    def unpack(self, side: _Side, op: Op) -> bool:
        items = _sequence(side.stack[-1])
        if items is None or len(items) != op.arg:
            return False
        side.stack.pop()
        side.stack.extend(reversed(items))
        return True

    def marker_attribute(self, side: _Side, op: Op) -> bool:
        owner = _seen(side.stack[-1])
        if not isinstance(owner, _Symbol) or owner.key[0] != "module":
            return False
        if op.arg in PROFILER_MARKERS.get(owner.key[1], ()):
            side.stack[-1] = _Symbol(("marker", op.arg))
        elif op.arg in PROFILER_FLAGS.get(owner.key[1], ()):
            side.stack[-1] = _Symbol(("profiler flag",))
        else:
            return False
        self.notes.add(PROFILER_NOTE)
        return True

    def call(self, side: _Side, op: Op, positional: int, keywords: tuple[str, ...]) -> _Event | None:
        count = 1 + positional + len(keywords)
        operands = side.stack[len(side.stack) - count :]
        function = _seen(operands[0])
        if isinstance(function, _Symbol) and function.key[0] == "marker":
            del side.stack[len(side.stack) - count :]
            side.stack.append(_Symbol(("marked",)))
            side.at += 1
            return None
        return _Event(o.CALL, (positional, keywords), operands, op)

    def call_ex(self, side: _Side, op: Op) -> _Event:
        count = 3 if op.arg else 2
        operands = side.stack[len(side.stack) - count :]
        items = _sequence(operands[1])
        names: list[str] | None = []
        values: list[Any] = []
        if op.arg:
            mapping = _seen(operands[2])
            if isinstance(mapping, _Built) and mapping.kind == "copy":
                operands = [*operands[:2], mapping.items[0]]
                mapping = _seen(mapping.items[0])
            names = None
            if isinstance(mapping, _Built) and mapping.kind == "dict":
                names, values = [_seen(key).value for key in mapping.items[::2]], mapping.items[1::2]
        if items is None or names is None or len(set(names)) != len(names):
            return _Event(o.CALL_EX, op.arg, operands, op)
        return _Event(o.CALL, (len(items), tuple(names)), [operands[0], *items, *values], op)

    def branch(self, side: _Side, op: Op) -> _Event | None:
        tested = _seen(side.stack[-1])
        answer: bool | None = None
        if isinstance(tested, _Constant):
            answer = bool(tested.value)
        elif isinstance(tested, _Symbol) and tested.key[0] == "profiler flag":
            answer = False
        elif isinstance(tested, _Symbol) and tested.key[0] == "not":
            return _Event(o.BRANCH, None, [_Symbol(tested.key[1])], op, negated=True)
        if answer is None:
            return _Event(o.BRANCH, None, [tested], op)
        side.stack.pop()
        side.at = op.target if answer == op.arg else side.at + 1
        return None

    # --- comparing --------------------------------------------------------------------------------
    def match(self, a: _Event, b: _Event) -> None:
        here = f"{a.op!r} at offset {a.op.offset} became {b.op!r} at offset {b.op.offset}"
        if a.kind != b.kind or a.argument != b.argument or len(a.operands) != len(b.operands):
            raise _Different(here)
        for x, y in zip(a.operands, b.operands):
            if not self.equal(x, y):
                raise _Different(f"{here}: not with the same operands")

    def equal(self, x: Any, y: Any) -> bool:
        """Whether both sides hand out the same value. Containers escape by it."""
        x, y = _seen(x), _seen(y)
        if isinstance(x, _Symbol) and isinstance(y, _Symbol):
            return x.key == y.key
        if isinstance(x, _Constant) and isinstance(y, _Constant):
            return same_constant(x.value, y.value, self.nested)
        left, right = _sequence(x), _sequence(y)
        if left is not None and right is not None and not isinstance(x, _Constant) | isinstance(y, _Constant):
            if x.kind != y.kind or len(left) != len(right):
                return False
            if x.kind == "list":
                # Escaped before its items: it may hold itself.
                self.events += 1
                x.escaped = y.escaped = _Symbol(("built", self.events))
            return all(self.equal(i, j) for i, j in zip(left, right))
        if left is not None and right is not None:  # a constant tuple against a built one
            kinds = [v.kind for v in (x, y) if isinstance(v, _Built)]
            return kinds == ["tuple"] and len(left) == len(right) and all(map(self.equal, left, right))
        parts = _slice(x)
        if parts is not None:
            others = _slice(y)
            return others is not None and all(map(self.equal, parts, others))
        if isinstance(x, _Built) and isinstance(y, _Built) and x.kind == y.kind == "set":
            if _frozen(x) != _frozen(y):
                return False
            self.events += 1
            x.escaped = y.escaped = _Symbol(("built", self.events))
            return True
        if isinstance(x, _Built) and isinstance(y, _Built) and x.kind == y.kind == "dict":
            if len(x.items) != len(y.items):
                return False
            self.events += 1
            x.escaped = y.escaped = _Symbol(("built", self.events))
            return all(map(self.equal, x.items, y.items))
        return False

    @staticmethod
    def pair_containers(left: _Side, right: _Side) -> dict[int, int]:
        """Containers that both sides carry into a join, paired up by content: ``{id: number of pair}``.
        From there on a pair is one object; a wrong pair can only make the comparison fail later."""
        others = [v for v in (*right.stack, *right.locals.values()) if _is_open(v)]
        single = _held_once(left) | _held_once(right)
        pairs: dict[int, int] = {}
        for value in (*left.stack, *left.locals.values()):
            if not _is_open(value) or id(value) in pairs:
                continue
            for other in others:
                if id(other) not in pairs and _alike(value, other, single):
                    pairs[id(value)] = pairs[id(other)] = len(pairs)
                    break
        return pairs

    def perform(self, left: _Side, right: _Side, a: _Event, b: _Event) -> bool:
        """Takes both sides past equal events; false if this way ends (or was handed on)."""
        kind = a.kind
        if kind in (o.RETURN, o.RAISE, o.RERAISE):
            return False
        self.events += 1
        if kind is o.BRANCH:
            left.stack.pop()
            right.stack.pop()
            if self.swallowed(a):
                for side, event in ((left, a), (right, b)):  # only the other way is followed
                    side.at = event.op.target if not event.op.arg else side.at + 1
                    side.turns = 0
                return True
            memo: dict[int, _Built] = {}
            others = (left.copy(memo), right.copy(memo))
            for sides, answer in (((left, right), True), (others, False)):
                for side, event in zip(sides, (a, b)):
                    side.at = event.op.target if (answer != event.negated) == event.op.arg else side.at + 1
                    side.turns = 0
            self.pending.append(others)
            return True
        if kind is o.FOR_ITER:
            memo = {}
            others = (left.copy(memo), right.copy(memo))
            for side, event in zip(others, (a, b)):
                side.stack.pop()
                side.at = event.op.target
                side.turns = 0
            self.pending.append(others)
            for side in (left, right):
                side.stack.append(_Symbol(("event", self.events)))
                side.at += 1
                side.turns = 0
            return True
        for side, event in ((left, a), (right, b)):
            pops, pushes = effect(event.op)
            if event.op.kind in _IN_PLACE:
                pops, pushes = _IN_PLACE[event.op.kind], 0
            elif event.op.kind is o.WITH_EXCEPT_START:
                pops, pushes = 0, 1
            elif event.op.kind is o.LOAD_FAST:
                pops, pushes = 0, 1
            taken = side.stack[len(side.stack) - pops :]
            if pops:
                del side.stack[len(side.stack) - pops :]
            side.stack.extend(self.results(event, pushes, taken))
            side.at += 1
            side.turns = 0
            if event.op.kind is o.LOAD_FAST:
                side.maybe.discard(event.op.arg)
                side.locals[event.op.arg] = side.stack[-1]
            elif event.op.kind is o.DELETE_FAST:
                side.locals.pop(event.op.arg, None)
                side.maybe.discard(event.op.arg)
        return True

    def swallowed(self, event: _Event) -> bool:
        """Whether this is the test of a ``with`` that torch entered again, behind which lies only ``raise None``."""
        ops = self.p.ops
        at = next(i for i, op in enumerate(ops) if op is event.op)
        if not at or ops[at - 1].kind is not o.WITH_EXCEPT_START:
            return False
        at = event.op.target if event.op.arg else at + 1
        for _ in range(len(ops)):
            op = ops[at]
            if op.kind is o.RAISE:
                if op.arg != 1 or ops[at - 1].kind is not o.CONST or ops[at - 1].arg is not None:
                    return False
                self.notes.add(SWALLOWED_NOTE)
                return True
            if op.kind is o.JUMP:
                at = op.target
            elif op.kind in (o.POP, o.POP_EXCEPT, o.CONST, o.CALL):
                at += 1
            else:
                return False
        return False

    def results(self, event: _Event, count: int, taken: list[Any]) -> list[Any]:
        kind = event.kind
        if kind is o.PUSH_EXC_INFO:
            return [_Symbol(("previous", self.events)), taken[0]]
        if kind in (o.CHECK_EXC_MATCH, o.IMPORT_FROM, o.GET_LEN, o.MATCH_MAPPING, o.MATCH_SEQUENCE,
                    o.GET_ANEXT_AWAIT):
            return [taken[0], _Symbol(("event", self.events))]
        if kind is o.MATCH_KEYS:
            return [taken[0], taken[1], _Symbol(("event", self.events))]
        found = [_Symbol(("event", self.events, i)) for i in range(count)]
        if event.negated:
            found = [_Symbol(("not", found[0].key))]
        if kind is o.CALL and found:
            function = _seen(event.operands[0])
            if isinstance(function, _Symbol) and function.key[0] == "own" \
                    and function.key[1].startswith(GRAPH_PREFIX):
                self.graphs.add(found[0].key)
        return list(found)

    def handlers(self, left: _Side, right: _Side, a: _Event, b: _Event) -> None:
        """An event that can raise must lie under corresponding handlers, which are followed too."""
        if a.kind in (o.RETURN, o.PUSH_EXC_INFO, o.POP_EXCEPT, o.LOAD_CLOSURE):
            return
        if (a.op.handler < 0) != (b.op.handler < 0):
            raise _Different(f"only one of {a.op!r} at offset {a.op.offset} and {b.op!r} at offset "
                             f"{b.op.offset} lies under an exception handler")
        if a.op.handler < 0:
            return
        sides = []
        memo: dict[int, _Built] = {}
        self.events += 1  # exceptions of several handlers are several
        for side, event in ((left, a), (right, b)):
            handler = side.program.handlers[event.op.handler]
            other = side.copy(memo)
            del other.stack[handler.depth :]
            if handler.lasti:
                other.stack.append(_Symbol(("lasti",)))
            other.stack.append(_Symbol(("exception", self.events)))
            other.at = handler.target
            other.turns = 0
            sides.append(other)
        # A handler is reached from many events: a join by itself, with the exception as a fresh value.
        if self.join(sides[0], sides[1]):
            sides[0].turns = 1
            self.pending.append((sides[0], sides[1]))

    # --- joins ------------------------------------------------------------------------------------
    def join(self, left: _Side, right: _Side) -> bool:
        """A place that several ways lead to.  From the second arrival on, values are forgotten and only
        which places are equal is kept.  False if that has been walked already."""
        key = (left.at, right.at)
        self.pairs_here = self.pair_containers(left, right)
        values: dict[Any, set[tuple[str, Any]]] = {}
        for tag, side in (("p", left), ("q", right)):
            for name in self.names[tag]:
                values.setdefault(self.identity(side.content(name), tag), set()).add((tag, name))
            for place, value in enumerate(side.stack):
                values.setdefault(self.identity(value, tag), set()).add((tag, place))
        arrived = frozenset(
            frozenset({("kind", self.kind(identity)), *places}) for identity, places in values.items())
        known = self.relations.get(key)
        if known is None:
            # The first arrival goes on with all that it knows; the second will forget.
            self.relations[key] = arrived
            return True
        relation = _meet(known, arrived)
        if relation == known and key in self.forgotten:
            return False
        self.forgotten.add(key)
        self.relations[key] = relation
        self.assume(left, right, relation, key)
        return True

    def kind(self, identity: Any) -> str:
        """What is known of all places of a class, besides that they are equal."""
        if isinstance(identity, tuple) and identity[0] in ("maybe", "unbound", "lasti"):
            return str(identity[0])
        if isinstance(identity, tuple) and identity[0] == "constant":
            return f"constant {identity[1]} {identity[2]}"
        if _is_constant(identity):
            return f"constant {identity!r}"
        if isinstance(identity, tuple) and identity[0] in _THE_SAME_ANYWHERE:
            return f"{identity[0]} {identity[1]}"
        return "graph" if identity in self.graphs else ""

    def identity(self, value: Any, tag: str) -> Any:
        value = _seen(value)
        if isinstance(value, _Symbol):
            return value.key
        if isinstance(value, _Constant):
            if isinstance(value.value, Code):
                return (tag, id(value))
            return ("constant", type(value.value).__name__, repr(value.value))
        if value.kind in ("tuple", "slice"):
            return (value.kind, *[self.identity(item, tag) for item in value.items])
        if id(value) in self.pairs_here:
            return ("pair", self.pairs_here[id(value)])
        return (tag, "container", id(value))  # equal to nothing on the other side

    def assume(self, left: _Side, right: _Side, relation: frozenset[Any], key: tuple[int, int]) -> None:
        """Gives each class of equal places a fresh symbol."""
        self.events += 1
        constants: dict[tuple[str, Any], Any] = {}
        for tag, side in (("p", left), ("q", right)):
            for name, value in side.locals.items():
                constants[tag, name] = value
            for place, value in enumerate(side.stack):
                constants[tag, place] = value
            side.locals = {}
            side.maybe = set()
        for number, members in enumerate(relation):
            kind = next((m[1] for m in members if m[0] == "kind"), "")
            places = [m for m in members if m[0] != "kind"]
            fresh: Any = _Symbol(("joined", key, self.events, number))
            if kind == "lasti":
                fresh = _Symbol(("lasti",))
            elif kind == "graph":
                self.graphs.add(fresh.key)
            elif kind.partition(" ")[0] in _THE_SAME_ANYWHERE:
                what, _, name = kind.partition(" ")
                fresh = _Symbol((what, name))
            for tag, place in places:
                side = left if tag == "p" else right
                value = fresh
                if kind.startswith("constant"):
                    value = constants.get((tag, place), fresh)
                if kind == "unbound":
                    value = _UNBOUND
                elif kind == "maybe":
                    value = _Symbol(("maybe", fresh.key))
                if isinstance(place, int):
                    side.stack[place] = value
                else:
                    side.bind(place, value)


def _meet(known: frozenset[Any], arrived: frozenset[Any]) -> frozenset[Any]:
    """Places are equal only if they are so in both; having no value is one of the values for that.
    Bound in one and unbound in the other: maybe bound."""
    def index(relation: frozenset[Any]) -> dict[Any, tuple[int, str]]:
        found: dict[Any, tuple[int, str]] = {}
        for number, members in enumerate(relation):
            kind = next((m[1] for m in members if m[0] == "kind"), "")
            for member in members:
                if member[0] != "kind":
                    found[member] = (number, kind)
        return found

    first, second = index(known), index(arrived)
    classes: dict[Any, set[Any]] = {}
    for place in first.keys() | second.keys():
        a, b = first.get(place), second.get(place)
        if a is None or b is None:
            raise _Different("stacks of different depth meet")
        kind = a[1] if a[1] == b[1] else "maybe" if {a[1], b[1]} & {"unbound", "maybe"} else ""
        classes.setdefault((a[0], b[0]), set()).update({place, ("kind", kind)})
    return frozenset(frozenset(members) for members in classes.values())


def _locals(program: Program) -> tuple[str, ...]:
    """Names of the locals that the program can give a value or ask for one."""
    kinds = (o.LOAD_FAST, o.STORE_FAST, o.DELETE_FAST, o.LOAD_FAST_AND_CLEAR)
    return tuple(sorted({*program.code.varnames, *(op.arg for op in program.ops if op.kind in kinds)}))


def _cells_used(program: Program) -> set[str]:
    """Variables that the program reaches through cells (Dynamo's code carries cells that it does not use)."""
    kinds = (o.LOAD_DEREF, o.STORE_DEREF, o.DELETE_DEREF, o.LOAD_CLASSDEREF, o.LOAD_CLOSURE,
             o.LOAD_FROM_DICT_OR_DEREF, o.MAKE_CELL)
    return {op.arg for op in program.ops if op.kind in kinds}


def _is_constant(identity: Any) -> bool:
    """Whether the identity is that of a constant, or of a tuple or slice of constants."""
    if not isinstance(identity, tuple) or not identity:
        return False
    if identity[0] in ("tuple", "slice"):
        return all(map(_is_constant, identity[1:]))
    return bool(identity[0] == "constant")


def _is_open(value: Any) -> bool:
    return isinstance(value, _Built) and value.escaped is None and value.kind in ("list", "dict", "set")


def _is_new(value: Any, kind: str) -> bool:
    """Whether it is an empty container of this side's own."""
    return isinstance(value, _Built) and value.escaped is None and value.kind == kind and not value.items


def _is_text(value: Any) -> bool:
    value = _seen(value)
    return isinstance(value, _Constant) and type(value.value) is str


def _is_hashable(value: Any) -> bool:
    value = _seen(value)
    return isinstance(value, _Constant) and type(value.value) is not slice and is_literal(value.value)


def _both_none(x: Any, y: Any) -> bool:
    x, y = _seen(x), _seen(y)
    return isinstance(x, _Constant) and isinstance(y, _Constant) and x.value is None is y.value


def _constants_of(value: Any) -> list[Any] | None:
    """Items of a constant frozenset."""
    value = _seen(value)
    if isinstance(value, _Constant) and type(value.value) is frozenset:
        return [_Constant(item) for item in value.value]
    return None


def _frozen(value: _Built) -> list[tuple[str, str]]:
    """What a set of constants holds, in an order of its own. Of equal ones (``1``, ``True``) it keeps the first."""
    kept: dict[Any, Any] = {}
    for item in value.items:
        kept.setdefault(_seen(item).value, _seen(item).value)
    return sorted((type(item).__name__, repr(item)) for item in kept)


def _slice(value: Any) -> list[Any] | None:
    """Start, stop and step of a slice whose parts are known."""
    if isinstance(value, _Constant) and type(value.value) is slice:
        return [_Constant(part) for part in (value.value.start, value.value.stop, value.value.step)]
    if isinstance(value, _Built) and value.kind == "slice":
        return [*value.items, _Constant(None)][:3]
    return None


def _held_once(side: _Side) -> set[int]:
    """Open containers that lie in one place only: in a slot, a local or another container."""
    places: dict[int, int] = {}
    pending: list[Any] = [*side.stack, *side.locals.values()]
    while pending:
        value = pending.pop()
        if isinstance(value, _Built) and value.escaped is None:
            places[id(value)] = places.get(id(value), 0) + 1
            if places[id(value)] == 1:
                pending.extend(value.items)
    return {identity for identity, count in places.items() if count == 1}


def _alike(x: Any, y: Any, single: set[int]) -> bool:
    """Whether two values are the same (nothing is changed by asking).

    What they hold may change later only through them: ``single`` are the containers that nothing else holds.
    """
    x, y = _seen(x), _seen(y)
    if isinstance(x, _Symbol) and isinstance(y, _Symbol):
        return bool(x.key == y.key)
    if isinstance(x, _Constant) and isinstance(y, _Constant):
        return not isinstance(x.value, Code) and same_constant(x.value, y.value)
    if _kind_of(x) != _kind_of(y):
        return False
    left, right = _sequence(x), _sequence(y)
    if left is None or right is None:
        left, right = getattr(x, "items", None), getattr(y, "items", None)
    return left is not None and right is not None and len(left) == len(right) and all(
        _is_settled(a, single) and _is_settled(b, single) and _alike(a, b, single) for a, b in zip(left, right))


def _is_settled(value: Any, single: set[int]) -> bool:
    return not _is_open(value) or id(value) in single


def _kind_of(value: Any) -> str:
    return value.kind if isinstance(value, _Built) else type(getattr(value, "value", None)).__name__


def _cell(value: Any) -> str | None:
    """Name of the variable whose cell the value is."""
    value = _seen(value)
    return value.key[1] if isinstance(value, _Symbol) and value.key[0] == "cell" else None


def _without_private_cells(program: Program) -> Program:
    """Cells that nobody else holds are plain locals.

    A cell variable whose cell is never handed out (``LOAD_CLOSURE``) is seen by this code only; Dynamo keeps
    such cells because the original function had them.
    """
    shared = {op.arg for op in program.ops if op.kind in (o.LOAD_CLOSURE, o.LOAD_CLASSDEREF, o.MAKE_CELL,
                                                          o.LOAD_FROM_DICT_OR_DEREF)}
    private = set(program.code.cellvars) - shared
    if not private:
        return program
    plain = {o.LOAD_DEREF: o.LOAD_FAST, o.STORE_DEREF: o.STORE_FAST, o.DELETE_DEREF: o.DELETE_FAST}
    ops = [
        Op(plain[op.kind], op.arg, op.offset, op.line, op.target, op.handler)
        if op.kind in plain and op.arg in private else op
        for op in program.ops
    ]
    return Program(program.code, ops, program.handlers)


def _own_list(value: Any) -> _Built | None:
    if isinstance(value, _Built) and value.kind == "list" and value.escaped is None:
        return value
    return None


def _joins(program: Program) -> set[int]:
    """Indexes of operations that more than one way leads to (every loop goes through one)."""
    count = [0] * (len(program.ops) + 1)
    for index, op in enumerate(program.ops):
        if op.target >= 0:
            count[op.target] += 1
        if op.kind not in o.ENDS:
            count[index + 1] += 1
    return {index for index, ways in enumerate(count) if ways > 1}


def equivalent(
    original: Code | Program, recompiled: Code | Program, *, rename: Mapping[str, str] | None = None,
    nested: list[Pair] | None = None,
) -> Verdict:
    """Whether both do the same things in the same order with the same values (see the module).

    Args:
        original: code, or its canonical program.
        recompiled: the same.
        rename: ``{global name in the original: name in the recompiled}``.
        nested: gets the pairs of nested code objects that have still to be compared; without it they are
            compared here, and must be the same.

    Returns:
        A verdict; ``notes`` say what was assumed. When unsure, the answer is no.
    """
    p = original if isinstance(original, Program) else canonicalise(original)
    q = recompiled if isinstance(recompiled, Program) else canonicalise(recompiled)
    if any(op.kind is o.LOAD_FAST and op.arg in program.code.cellvars for program in (p, q) for op in program.ops):
        return Verdict(False, "a variable is a cell and is none")  # what an inlined comprehension set aside
    p, q = _without_private_cells(p), _without_private_cells(q)
    if rename and conflated(p, rename):
        return Verdict(False, f"two globals are both called {conflated(p, rename)}")
    a, b = p.code, q.code
    if (a.argcount, a.posonlyargcount, a.kwonlyargcount, a.arguments) != (
        b.argcount, b.posonlyargcount, b.kwonlyargcount, b.arguments
    ) or (a.flags ^ b.flags) & MEANINGFUL_FLAGS:
        return Verdict(False, "parameters or flags differ")
    if a.flags & 0x3 == 0x3 and not a.name.startswith("<") and docstring(a) != docstring(b):
        return Verdict(False, "docstrings differ")
    differing = (set(a.freevars) ^ set(b.freevars)) | (set(a.cellvars) ^ set(b.cellvars))
    if differing & (_cells_used(p) | _cells_used(q)):
        return Verdict(False, "free or cell variables differ")
    prover = _Prover(p, q, rename or {}, nested)
    try:
        prover.run()
    except _Different as difference:
        return Verdict(False, str(difference), prover.pairs)
    except IndexError:
        return Verdict(False, "a stack holds too few values", prover.pairs)
    recompiled_items, original_items = prover.items
    pairs = prover.pairs + [(place, recompiled_items[key]) for key, place in original_items.items()
                            if key in recompiled_items]
    return Verdict(True, "", pairs, tuple(sorted(prover.notes)))
