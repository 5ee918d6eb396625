"""The walk: both sides side by side, event by event. Changes with what makes two events the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ....bytecode import operations as o
from ....bytecode.operations import Program
from ....cfg.stack import effect
from ...dynamo.facts import Facts, NoFacts, Path
from ...dynamo.global_names import GRAPH_PREFIX
from ..same import Pair, same_constant
from .joins import join
from .objects import READ_SIZE, is_known_iterator, own_object
from .programs import cells_used, joins_of, locals_of
from .reads import MODULES_NOTE
from .sides import Different, Event, Join, Side, all_paired
from .silent import IN_PLACE, step
from .values import Built, Constant, Symbol, frozen_items, seen, sequence, slice_parts

SWALLOWED_NOTE = "if no context that was entered again behind the graph break swallows exceptions (torch raises)"

#: Events that read something.
_READS = frozenset({o.LOAD_ATTR, o.GETITEM, o.LOAD_GLOBAL, o.LOAD_DEREF, READ_SIZE})

#: Steps after which the answer is no (programs of ordinary size need a few per operation).
LIMIT = 400_000


class Prover:
    """Evaluates a recompiled and an original program side by side; raises :class:`Different` where they part."""

    def __init__(
        self, p: Program, q: Program, rename: Mapping[str, str], nested: list[Pair] | None = None,
        facts: Facts | None = None,
    ) -> None:
        self.facts: Facts = facts or NoFacts()
        #: Paths of the live objects that symbols stand for; those of the classes of objects that were made here.
        self.paths: dict[tuple[Any, ...], Path] = {}
        self.classes: dict[tuple[Any, ...], Path] = {}
        self._real = {shown: name for name, shown in rename.items()}
        self.p = p
        self.q = q
        self.rename = rename
        self.nested = nested
        self.notes: set[str] = set()
        self.pairs: list[tuple[int, int]] = []
        self.events = 0
        #: Where items of graphs' results are read, on the recompiled and on the original side.
        self.items: tuple[dict[tuple[Any, ...], int], dict[tuple[Any, ...], int]] = ({}, {})
        self.joins = joins_of(p)
        #: All locals of each side.
        self.names = {"p": locals_of(p), "q": locals_of(q)}
        self.graphs: set[tuple[Any, ...]] = set()  # symbols that are results of graph calls
        #: Relation at each pair of places where the walk joined: see ``join``.
        self.relations: dict[tuple[int, int], frozenset[frozenset[tuple[str, Any]]]] = {}
        #: Pairs of places at which values have been forgotten.
        self.forgotten: set[tuple[int, int]] = set()
        self.pairs_here: dict[int, int] = {}
        self.pending: list[tuple[Side, Side]] = []
        self.steps = 0

    def run(self) -> None:
        arguments = self.p.code.arguments
        cells = cells_used(self.p) | cells_used(self.q)
        start = {name: Symbol(("argument", name)) for name in arguments if name not in cells}
        self.pending.append((Side(self.p, 0, [], dict(start), set()), Side(self.q, 0, [], dict(start), set())))
        while self.pending:
            left, right = self.pending.pop()
            self.follow(left, right)

    def follow(self, left: Side, right: Side) -> None:
        """Runs both sides until this way through the program ends."""
        while True:
            a = self.advance(left, stop_at_joins=True)
            if isinstance(a, Join):
                self.catch_up(left, right)
                if not join(self, left, right):
                    return
                continue
            b = self.advance(right, stop_at_joins=False)
            assert isinstance(b, Event)
            self.match(a, b)
            self.pairs.append((a.op.offset, b.op.offset))
            self.handlers(left, right, a, b)
            if not self.perform(left, right, a, b):
                return

    def advance(self, side: Side, stop_at_joins: bool) -> Event | Join:
        """Runs what nobody can observe, up to the next event (not yet performed) or join."""
        ops = side.program.ops
        while True:
            self.steps += 1
            if self.steps > LIMIT:
                raise Different("the comparison takes too long")
            if stop_at_joins and side.at in self.joins and side.turns == 0 and not (
                    ops[side.at].kind is o.FOR_ITER and is_known_iterator(side.stack[-1])):
                side.turns = 1
                return Join()
            op = ops[side.at]
            event = step(self, side, op)
            if event is not None:
                return event
            side.turns = 0

    def real_name(self, side: Side, name: str) -> str:
        """The name that a global has, not the one that the text shows."""
        return name if side.program is self.p else self._real.get(name, name)

    def catch_up(self, left: Side, right: Side) -> None:
        """The left side stands at a join, the right one behind its last event. Where the left one has put something
        into a container since, as a comprehension does before it goes round, the right one does so too."""
        if all_paired(left, right):
            return
        ahead = right.copy({})
        ops = ahead.program.ops
        while step(self, ahead, ops[ahead.at]) is None:
            self.steps += 1
            if self.steps > LIMIT:
                raise Different("the comparison takes too long")
            if all_paired(left, ahead):
                right.at, right.stack, right.locals, right.maybe = ahead.at, ahead.stack, ahead.locals, ahead.maybe
                return

    def match(self, a: Event, b: Event) -> None:
        if a.kind != b.kind or a.argument != b.argument or len(a.operands) != len(b.operands):
            raise Different(_became(a, b))
        for x, y in zip(a.operands, b.operands):
            if not self.equal(x, y):
                raise Different(f"{_became(a, b)}: not with the same operands")

    def equal(self, x: Any, y: Any) -> bool:
        """Return whether both sides hand out the same value. Containers escape by it."""
        x, y = seen(x), seen(y)
        if isinstance(x, Symbol) and isinstance(y, Symbol):
            return x.key == y.key
        if isinstance(x, Constant) and isinstance(y, Constant):
            return same_constant(x.value, y.value, self.nested)
        left, right = sequence(x), sequence(y)
        if left is not None and right is not None and not isinstance(x, Constant) | isinstance(y, Constant):
            if x.kind != y.kind or len(left) != len(right):
                return False
            if x.kind == "list":
                # Escaped before its items: it may hold itself.
                self.events += 1
                x.escaped = y.escaped = Symbol(("built", self.events))
            return all(self.equal(i, j) for i, j in zip(left, right))
        if left is not None and right is not None:  # a constant tuple against a built one
            kinds = [v.kind for v in (x, y) if isinstance(v, Built)]
            return kinds == ["tuple"] and len(left) == len(right) and all(map(self.equal, left, right))
        parts = slice_parts(x)
        if parts is not None:
            others = slice_parts(y)
            return others is not None and all(map(self.equal, parts, others))
        if isinstance(x, Built) and isinstance(y, Built) and x.kind == y.kind == "set":
            if frozen_items(x) != frozen_items(y):
                return False
            self.events += 1
            x.escaped = y.escaped = Symbol(("built", self.events))
            return True
        if isinstance(x, Built) and isinstance(y, Built) and x.kind == y.kind \
                and x.kind in ("dict", "ordered", "object"):
            if len(x.items) != len(y.items):
                return False
            self.events += 1
            made = own_object(x)
            x.escaped = y.escaped = Symbol(("built", self.events))
            if made is not None:
                path = self.paths.get(seen(made.items[0]).key)
                if path is not None:
                    self.classes[x.escaped.key] = path
            return all(map(self.equal, x.items, y.items))
        return False

    def perform(self, left: Side, right: Side, a: Event, b: Event) -> bool:
        """Takes both sides past equal events; false if this way ends (or was handed on)."""
        kind = a.kind
        if kind in (o.RETURN, o.RAISE, o.RERAISE):
            return False
        self.events += 1
        if kind is o.BRANCH or kind is o.FOR_ITER:
            self.passed(left, right, kind)
        if kind is o.BRANCH:
            left.stack.pop()
            right.stack.pop()
            if self.swallowed(a):
                for side, event in ((left, a), (right, b)):  # only the other way is followed
                    side.at = event.op.target if not event.op.arg else side.at + 1
                    side.turns = 0
                return True
            memo: dict[int, Built] = {}
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
                side.stack.append(Symbol(("event", self.events)))
                side.at += 1
                side.turns = 0
            return True
        self.passed(left, right, kind)
        for side, event in ((left, a), (right, b)):
            pops, pushes = effect(event.op)
            if event.op.kind in IN_PLACE:
                pops, pushes = IN_PLACE[event.op.kind], 0
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

    def passed(self, left: Side, right: Side, kind: str) -> None:
        """An event may have changed what objects hold; one that only reads has not changed what modules hold."""
        modules = left.epochs[1]
        if kind in _READS:
            if self.paths:
                self.notes.add(MODULES_NOTE)
        else:
            modules = self.events
        left.epochs = right.epochs = (self.events, modules)

    def swallowed(self, event: Event) -> bool:
        """Return whether an event is the test of a ``with`` that torch entered again, before a mere ``raise None``."""
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

    def results(self, event: Event, count: int, taken: list[Any]) -> list[Any]:
        kind = event.kind
        if kind is o.PUSH_EXC_INFO:
            return [Symbol(("previous", self.events)), taken[0]]
        if kind in (o.CHECK_EXC_MATCH, o.IMPORT_FROM, o.GET_LEN, o.MATCH_MAPPING, o.MATCH_SEQUENCE,
                    o.GET_ANEXT_AWAIT):
            return [taken[0], Symbol(("event", self.events))]
        if kind is o.MATCH_KEYS:
            return [taken[0], taken[1], Symbol(("event", self.events))]
        found = [Symbol(("event", self.events, i)) for i in range(count)]
        if event.negated:
            found = [Symbol(("not", found[0].key))]
        if kind is o.CALL and found:
            function = seen(event.operands[0])
            if isinstance(function, Symbol) and function.key[0] == "own" \
                    and function.key[1].startswith(GRAPH_PREFIX):
                self.graphs.add(found[0].key)
        return list(found)

    def handlers(self, left: Side, right: Side, a: Event, b: Event) -> None:
        """An event that can raise must lie under corresponding handlers, which are followed too."""
        if a.kind in (o.RETURN, o.PUSH_EXC_INFO, o.POP_EXCEPT, o.LOAD_CLOSURE):
            return
        if (a.op.handler < 0) != (b.op.handler < 0):
            raise Different(f"only one of {a.op!r} at offset {a.op.offset} and {b.op!r} at offset "
                            f"{b.op.offset} lies under an exception handler")
        if a.op.handler < 0:
            return
        sides = []
        memo: dict[int, Built] = {}
        self.events += 1  # exceptions of several handlers are several
        for side, event in ((left, a), (right, b)):
            handler = side.program.handlers[event.op.handler]
            other = side.copy(memo)
            del other.stack[handler.depth :]
            if handler.lasti:
                other.stack.append(Symbol(("lasti",)))
            other.stack.append(Symbol(("exception", self.events)))
            other.at = handler.target
            other.turns = 0
            other.epochs = (self.events, self.events)
            sides.append(other)
        # A handler is reached from many events: a join by itself, with the exception as a fresh value.
        if join(self, sides[0], sides[1]):
            sides[0].turns = 1
            self.pending.append((sides[0], sides[1]))


def _became(a: Event, b: Event) -> str:
    return f"{a.op!r} at offset {a.op.offset} became {b.op!r} at offset {b.op.offset}"
