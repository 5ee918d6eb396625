"""The abstract state of a program in the middle of its evaluation, and what it does next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ....bytecode import operations as o
from ....bytecode.operations import Op, Program
from ....bytecode.opspec import ON_GLOBALS, UPDATES, effect
from .values import UNBOUND, Allocation, Symbol, Value, alike, is_open, resolve

if TYPE_CHECKING:
    from .prover import Prover



class Different(Exception):
    """The programs are not proven to do the same; the message says where they part."""


@dataclass(eq=False, slots=True)
class State:
    """The abstract state of one program: what it holds, and where it stands.

    Attributes:
        program: the program.
        at: index of the next operation.
        stack: the values on the stack.
        locals: the values of the locals that are, or may be, bound.
        maybe: locals of which it is not known whether they are bound.
        turns: 1 where it has stopped at a merge point already.
        epochs: numbers of the last events that may have changed what plain objects hold, and what modules hold.
    """

    program: Program
    at: int
    stack: list[Value]
    locals: dict[str, Value]
    maybe: set[str]
    epochs: tuple[int, int] = (0, 0)
    turns: int = 0

    def is_bound(self, name: str) -> bool:
        """Return whether a local is known to have a value."""
        return name in self.locals and name not in self.maybe

    def content(self, name: str) -> Value:
        """Return the value of a local, which may be unbound."""
        if name in self.maybe:
            joined = self.locals[name]
            assert isinstance(joined, Symbol)  # (it may be unbound where it was, because edges merged)
            return Symbol(("maybe", joined.key))
        return self.locals.get(name, UNBOUND)

    def bind(self, name: str, value: Value) -> None:
        """Give a local what another one, or a name of an outer comprehension, held."""
        self.maybe.discard(name)
        self.locals.pop(name, None)
        if isinstance(value, Symbol) and value.key[0] == "maybe":
            self.locals[name] = Symbol(value.key[1])
            self.maybe.add(name)
        elif value is not UNBOUND:
            self.locals[name] = value

    def copy(self, memo: dict[int, Allocation]) -> State:
        """Return a state that goes on by itself; ``memo`` holds the copies of allocations."""
        def dup(value: Value) -> Value:
            if not isinstance(value, Allocation):
                return value
            known = memo.get(id(value))
            if known is None:
                known = memo[id(value)] = Allocation(value.kind, [])
                known.escaped = value.escaped
                known.items = [dup(item) for item in value.items]
            return known

        return State(self.program, self.at, [dup(v) for v in self.stack],
                    {n: dup(v) for n, v in self.locals.items()}, set(self.maybe), self.epochs)


@dataclass(eq=False, slots=True)
class Event:
    """The next observable step of a program: an operation with its operands (bottom first).

    Attributes:
        kind: what it does; that of the operation, but where two operations do the same.
        argument: its argument.
        operands: the values it is done to.
        op: the operation.
        negated: it is a test of which the program holds the contrary (``is not``).
    """

    kind: str
    argument: Any
    operands: list[Value]
    op: Op
    negated: bool = False


class MergePoint:
    """The program stands at an operation that several edges lead to."""


def held_once(state: State) -> set[int]:
    """Return the allocations that lie in one place only: in a slot, a local or another allocation."""
    places: dict[int, int] = {}
    pending: list[Value] = [*state.stack, *state.locals.values()]
    while pending:
        value = pending.pop()
        if isinstance(value, Allocation) and value.escaped is None:
            places[id(value)] = places.get(id(value), 0) + 1
            if places[id(value)] == 1:
                pending.extend(value.items)
    return {identity for identity, count in places.items() if count == 1}


def pair_containers(left: State, right: State) -> dict[int, int]:
    """Pair up by content the containers that both programs carry into a merge point: ``{id: number of pair}``.

    From there on a pair is one object; a wrong pair can only make the comparison fail later.
    """
    others = [v for v in (*right.stack, *right.locals.values()) if is_open(v)]
    single = held_once(left) | held_once(right)
    pairs: dict[int, int] = {}
    for value in (*left.stack, *left.locals.values()):
        if not is_open(value) or id(value) in pairs:
            continue
        for other in others:
            if id(other) not in pairs and alike(value, other, single):
                pairs[id(value)] = pairs[id(other)] = len(pairs)
                break
    return pairs


def all_paired(left: State, right: State) -> bool:
    """Return whether each container of one program is one of the other's."""
    containers = [v for state in (left, right) for v in (*state.stack, *state.locals.values()) if is_open(v)]
    pairs = pair_containers(left, right) if containers else {}
    return all(id(value) in pairs for value in containers)


# --- The event that an operation is: what of it another part of the program, or its user, can observe ---
def event_of(prover: Prover, state: State, op: Op) -> Event:
    """Return the event that an operation is, with the operands that count."""
    kind, stack = op.kind, state.stack
    popped = effect(op)[0]
    if popped > len(stack):
        raise Different("a stack holds too few values")
    operands = stack[len(stack) - popped :]
    if kind in UPDATES:  # (how far below the container lies is layout)
        return Event(kind, None, [stack[-popped - op.arg], *operands], op)
    if kind is o.RERAISE:
        return Event(kind, bool(op.arg), [stack[-1]], op)
    if kind is o.WITH_EXCEPT_START:
        below = resolve(stack[-3])
        has_lasti = isinstance(below, Symbol) and below.key[0] == "lasti"
        return Event(kind, None, [stack[-4 if has_lasti else -3], stack[-1]], op)
    argument = op.arg
    if kind in ON_GLOBALS and state.program is prover.p:
        argument = prover.rename.get(argument, argument)
    return Event(kind, argument, operands, op)
