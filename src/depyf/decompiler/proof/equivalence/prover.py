"""The walk: both programs side by side, event by event."""

from __future__ import annotations

from collections.abc import Mapping

from ....bytecode import operations as o
from ...dynamo.facts import EPOCHS, PLAIN, Facts
from ...dynamo.global_names import GRAPH_PREFIX
from ..exact import Pair, same_constant
from . import states as s
from .merge import Relation, all_paired, merge
from .objects import MODULES_NOTE, READ_SIZE
from .unobservable import Steps

SWALLOWED_NOTE = "if no context that was entered again after the graph break swallows exceptions (torch raises)"

#: Events that only read something.
_READS = o.ONLY_READ | {READ_SIZE}

#: Steps after which the answer is no (programs of ordinary size need a few per operation).
LIMIT = 400_000


class Prover(Steps):
    """Evaluates a recompiled and an original program side by side; raises :class:`Different` where they part."""

    def __init__(
        self, p: o.Program, q: o.Program, rename: Mapping[str, str], nested: list[Pair] | None = None,
        facts: Facts | None = None,
    ) -> None:
        super().__init__(p, q, rename, facts)
        self.nested = nested
        self.pairs: list[tuple[int, int]] = []
        self.events = 0
        self.merge_points = merge_points(p)
        #: All locals of each program.
        self.names = {tag: sorted({*program.code.varnames, *(op.arg for op in program.ops if op.kind in o.ON_LOCALS)})
                      for tag, program in (("p", p), ("q", q))}
        #: Relation at each pair of merge points: see :mod:`.merge`.
        self.relations: dict[tuple[int, int], Relation] = {}
        #: Pairs of merge points at which values have been forgotten.
        self.forgotten: set[tuple[int, int]] = set()
        self.pairs_at_merge: dict[int, int] = {}
        self.pending: list[tuple[s.State, s.State]] = []
        self.steps = 0

    def run(self) -> None:
        """Prove the programs equivalent, path by path."""
        arguments = self.p.code.arguments
        cells = cells_used(self.p) | cells_used(self.q)
        start: dict[str, s.Value] = {name: s.Symbol(("argument", name)) for name in arguments if name not in cells}
        self.pending.append((s.State(self.p, 0, [], dict(start), set()), s.State(self.q, 0, [], dict(start), set())))
        while self.pending:
            left, right = self.pending.pop()
            self.follow(left, right)

    def follow(self, left: s.State, right: s.State) -> None:
        """Run both programs until this path ends."""
        while True:
            a = self.advance(left, stop_at_merges=True)
            if a is None:
                self.catch_up(left, right)
                if not merge(self, left, right):
                    return
                continue
            b = self.advance(right, stop_at_merges=False)
            assert b is not None
            self.match(a, b)
            self.pairs.append((a.op.offset, b.op.offset))
            self.handlers(left, right, a, b)
            if not self.perform(left, right, a, b):
                return

    def advance(self, state: s.State, stop_at_merges: bool) -> s.Event | None:
        """Run unobservable operations up to the next event (not yet performed), or to a merge point (``None``)."""
        ops = state.program.ops
        while True:
            self.steps += 1
            if self.steps > LIMIT:
                raise s.Different("the comparison takes too long")
            if stop_at_merges and state.at in self.merge_points and state.turns == 0 and not (
                    ops[state.at].kind is o.FOR_ITER and s.is_own(state.stack[-1], "iterator")):
                state.turns = 1
                return None
            op = ops[state.at]
            event = self.step(state, op)
            if event is not None:
                return event
            state.turns = 0

    def catch_up(self, left: s.State, right: s.State) -> None:
        """Bring the right program to the merge point where the left one is.

        Where the left one has filled a container since the last event, as a comprehension does, the right one does so.
        """
        if all_paired(self, left, right):
            return
        ahead = right.copy({})
        ops = ahead.program.ops
        while self.step(ahead, ops[ahead.at]) is None:
            self.steps += 1
            if self.steps > LIMIT:
                raise s.Different("the comparison takes too long")
            if all_paired(self, left, ahead):
                right.at, right.stack, right.locals, right.maybe = ahead.at, ahead.stack, ahead.locals, ahead.maybe
                return

    def match(self, a: s.Event, b: s.Event) -> None:
        """Raise :class:`Different` unless two events are the same."""
        if a.kind != b.kind or a.argument != b.argument or len(a.operands) != len(b.operands):
            raise s.Different(_became(a, b))
        for x, y in zip(a.operands, b.operands):
            if not self.equal(x, y):
                raise s.Different(f"{_became(a, b)}: not with the same operands")

    def equal(self, x: s.Value, y: s.Value) -> bool:
        """Return whether both programs hand out the same value. Containers escape by it."""
        x, y = s.resolve(x), s.resolve(y)
        if isinstance(x, s.Symbol) and isinstance(y, s.Symbol):
            return x.key == y.key
        if isinstance(x, s.Constant) and isinstance(y, s.Constant):
            return same_constant(x.value, y.value, self.nested)
        kinds = {each.kind for each in (x, y) if isinstance(each, s.Allocation)}
        if kinds <= {"tuple"} or kinds <= {"slice"}:  # (one of them may be a constant)
            left, right = (s.sequence(x), s.sequence(y)) if "tuple" in kinds else (s.slice_parts(x), s.slice_parts(y))
        elif isinstance(x, s.Allocation) and isinstance(y, s.Allocation) and x.kind == y.kind in (
                "set", "list", "dict", "ordered", "object"):
            self.events += 1  # (escaped before its items: it may contain itself)
            x.escaped = y.escaped = s.Symbol(("built", self.events))
            if x.kind == "set":
                return s.frozen_items(x) == s.frozen_items(y)
            left, right = list(x.items), list(y.items)
        else:
            return False
        return left is not None and right is not None and len(left) == len(right) and all(map(self.equal, left, right))

    def perform(self, left: s.State, right: s.State, a: s.Event, b: s.Event) -> bool:
        """Take both programs past equal events; return whether this path goes on."""
        kind = a.kind
        if kind in (o.RETURN, o.RAISE, o.RERAISE):
            return False
        self.events += 1
        self.passed(left, right, a)
        if kind in (o.BRANCH, o.FOR_ITER):
            self._fork(left, right, a, b)
        else:
            self._produce(left, a)
            self._produce(right, b)
        return True

    def _fork(self, left: s.State, right: s.State, a: s.Event, b: s.Event) -> None:
        """Go on where a test is true, or with an item of an iterator; where it is false or exhausted comes later."""
        memo: dict[int, s.Allocation] = {}
        paths = [((left, right), True)]
        if a.kind is o.BRANCH and self.swallowed(a):
            paths = [((left, right), False)]  # only that path is followed
        else:
            self.pending.append((left.copy(memo), right.copy(memo)))
            paths.append((self.pending[-1], False))
        for states, answer in paths:
            for state, event in zip(states, (a, b)):
                iterator = state.stack.pop()
                jumps = (answer != event.negated) == event.op.arg
                if a.kind is o.FOR_ITER:
                    jumps = not answer
                    state.stack += [iterator, s.Symbol(("event", self.events))] if answer else []
                _go(state, event.op.target if jumps else state.at + 1)

    def _produce(self, state: s.State, event: s.Event) -> None:
        """Take the operands of an event off the stack, and leave its results there."""
        op = event.op
        if event.entries is not None and len(event.entries.items) > 2:
            state.stack[-1] = s.Allocation("dict", event.entries.items[2:])
            return
        popped, pushed = o.effect(op)
        start = len(state.stack) - popped
        state.stack[start:] = self.results(event, pushed, state.stack[start:])
        _go(state, state.at + 1)
        if op.kind is o.LOAD_FAST:
            state.maybe.discard(op.arg)
            state.locals[op.arg] = state.stack[-1]
        elif op.kind is o.DELETE_FAST:
            state.locals.pop(op.arg, None)
            state.maybe.discard(op.arg)

    def passed(self, left: s.State, right: s.State, event: s.Event) -> None:
        """Note what an event may have changed."""
        if event.kind in _READS and self.paths:
            self.notes.add(MODULES_NOTE)
        ended = EPOCHS.index(PLAIN if event.kind in _READS else event.ends) + 1
        left.epochs = right.epochs = (self.events,) * ended + left.epochs[ended:]

    def swallowed(self, event: s.Event) -> bool:
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

    def results(self, event: s.Event, count: int, taken: list[s.Value]) -> list[s.Value]:
        """Return what an event leaves of the values that it has taken, and what it gives."""
        if event.kind is o.PUSH_EXC_INFO:
            return [s.Symbol(("previous", self.events)), taken[0]]
        if kept := o.KEEPS.get(event.kind, 0):
            return [*taken[:kept], s.Symbol(("event", self.events))]
        given = [s.Symbol(("event", self.events, i)) for i in range(count)]
        if event.negated:
            given = [s.Symbol(("not", given[0].key))]
        if event.kind is o.CALL:
            function = s.resolve(event.operands[0])
            if isinstance(function, s.Symbol) and function.key[0] == "own" and function.key[1].startswith(GRAPH_PREFIX):
                self.graphs.add(given[0].key)
        return list(given)

    def handlers(self, left: s.State, right: s.State, a: s.Event, b: s.Event) -> None:
        """Follow the handlers of an event that can raise; it must be under corresponding ones."""
        if a.kind in o.CANNOT_RAISE:
            return
        if (a.op.handler < 0) != (b.op.handler < 0):
            raise s.Different(f"only one of {a.op!r} at offset {a.op.offset} and {b.op!r} at offset "
                            f"{b.op.offset} lies under an exception handler")
        if a.op.handler < 0:
            return
        states: list[s.State] = []
        memo: dict[int, s.Allocation] = {}
        self.events += 1  # exceptions of several handlers are several
        for state, event in ((left, a), (right, b)):
            handler = state.program.handlers[event.op.handler]
            other = state.copy(memo)
            del other.stack[handler.depth :]
            if handler.lasti:
                other.stack.append(s.Symbol(("lasti",)))
            other.stack.append(s.Symbol(("exception", self.events)))
            other.at = handler.target
            other.turns = 0
            other.epochs = (self.events,) * len(EPOCHS)
            states.append(other)
        # A handler is reached from many events: a merge point by itself, with the exception as a fresh value.
        if merge(self, states[0], states[1]):
            states[0].turns = 1
            self.pending.append((states[0], states[1]))


def _go(state: s.State, target: int) -> None:
    """Move a program to an operation, where it has not stopped yet."""
    state.at = target
    state.turns = 0


def _became(a: s.Event, b: s.Event) -> str:
    return f"{a.op!r} at offset {a.op.offset} became {b.op!r} at offset {b.op.offset}"


# --- Facts about a program that are known before it is evaluated -------------------------------------
#: Operations on the contents of a cell, with their equivalents on a local.
_PLAIN = {o.LOAD_DEREF: o.LOAD_FAST, o.STORE_DEREF: o.STORE_FAST, o.DELETE_DEREF: o.DELETE_FAST}


def merge_points(program: o.Program) -> set[int]:
    """Return the indexes of operations that more than one edge leads to (every loop goes through one)."""
    count = [0] * (len(program.ops) + 1)
    for index, op in enumerate(program.ops):
        if op.target >= 0:
            count[op.target] += 1
        if op.kind not in o.NO_FALL_THROUGH:
            count[index + 1] += 1
    return {index for index, edges in enumerate(count) if edges > 1}


def cells_used(program: o.Program) -> set[str]:
    """Return the variables that the program reaches through cells (torch's code has cells that it does not use)."""
    return {op.arg for op in program.ops if op.kind in o.ON_CELLS}


def without_private_cells(program: o.Program) -> o.Program:
    """Return the program with the cells that it never passes on (``LOAD_CLOSURE``) as plain locals.

    Dynamo keeps such cells because the original function had them.
    """
    shared = {op.arg for op in program.ops if op.kind in o.ON_CELLS and op.kind not in _PLAIN}
    private = set(program.code.cellvars) - shared
    if not private:
        return program
    ops = [
        o.Op(_PLAIN[op.kind], op.arg, op.offset, op.line, op.target, op.handler)
        if op.kind in _PLAIN and op.arg in private else op
        for op in program.ops
    ]
    return o.Program(program.code, ops, program.handlers)
