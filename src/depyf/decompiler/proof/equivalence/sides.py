"""One program in the middle of its evaluation, and what it does next. Changes with what such a state consists of."""

from __future__ import annotations

from typing import Any

from ....bytecode.operations import Op, Program
from .values import UNBOUND, Built, Symbol, alike, is_open


class Different(Exception):
    pass


class Side:
    """One program in the middle of its evaluation."""

    __slots__ = ("at", "epochs", "locals", "maybe", "program", "stack", "turns")

    def __init__(self, program: Program, at: int, stack: list[Any], variables: dict[str, Any],
                 maybe: set[str], epochs: tuple[int, int] = (0, 0)) -> None:
        self.program = program
        self.at = at
        self.stack = stack
        self.locals = variables  # bound locals
        self.maybe = maybe  # locals of which it is not known whether they are bound
        self.turns = 0
        #: Numbers of the last events that may have changed what plain objects hold, and what modules hold.
        self.epochs = epochs

    def content(self, name: str) -> Any:
        """Return the value of a local, which may be unbound."""
        if name in self.maybe:
            return Symbol(("maybe", self.locals[name].key))
        return self.locals.get(name, UNBOUND)

    def bind(self, name: str, value: Any) -> None:
        """Gives a local what another one, or a name of an outer comprehension, held."""
        self.maybe.discard(name)
        self.locals.pop(name, None)
        if isinstance(value, Symbol) and value.key[0] == "maybe":
            self.locals[name] = Symbol(value.key[1])
            self.maybe.add(name)
        elif value is not UNBOUND:
            self.locals[name] = value

    def copy(self, memo: dict[int, Built]) -> Side:
        def dup(value: Any) -> Any:
            if not isinstance(value, Built):
                return value
            known = memo.get(id(value))
            if known is None:
                known = memo[id(value)] = Built(value.kind, [])
                known.escaped = value.escaped
                known.items = [dup(item) for item in value.items]
            return known

        return Side(self.program, self.at, [dup(v) for v in self.stack],
                    {n: dup(v) for n, v in self.locals.items()}, set(self.maybe), self.epochs)


class Event:
    """The next observable step of a side: an operation with its operands (bottom first).

    ``negated``: a test of which the side holds the contrary (``is not``).
    """

    __slots__ = ("argument", "kind", "negated", "op", "operands")

    def __init__(self, kind: str, argument: Any, operands: list[Any], op: Op, negated: bool = False) -> None:
        self.kind = kind
        self.argument = argument
        self.operands = operands
        self.op = op
        self.negated = negated


class Join:
    """The side stands at an operation that several ways lead to."""


def held_once(side: Side) -> set[int]:
    """Open containers that lie in one place only: in a slot, a local or another container."""
    places: dict[int, int] = {}
    pending: list[Any] = [*side.stack, *side.locals.values()]
    while pending:
        value = pending.pop()
        if isinstance(value, Built) and value.escaped is None:
            places[id(value)] = places.get(id(value), 0) + 1
            if places[id(value)] == 1:
                pending.extend(value.items)
    return {identity for identity, count in places.items() if count == 1}


def pair_containers(left: Side, right: Side) -> dict[int, int]:
    """Containers that both sides carry into a join, paired up by content: ``{id: number of pair}``.
    From there on a pair is one object; a wrong pair can only make the comparison fail later."""
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


def all_paired(left: Side, right: Side) -> bool:
    """Return whether each container of one side is one of the other's."""
    containers = [value for side in (left, right) for value in (*side.stack, *side.locals.values()) if is_open(value)]
    pairs = pair_containers(left, right) if containers else {}
    return all(id(value) in pairs for value in containers)
