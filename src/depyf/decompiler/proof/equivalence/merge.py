"""Merge points: the values of both programs are dropped; which places have equal ones is recorded.

A place is a local or a stack slot of one of the programs, ``("p", name)`` or ``("q", index)``. A relation gives for
each place the number of its class, of places with the same value, and what else is known of that value.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any

from ....bytecode.code import Code
from ...dynamo.facts import ALWAYS, EPOCHS
from .states import OPEN, UNBOUND, Allocation, Constant, Different, State, Symbol, Value, is_own, resolve

if TYPE_CHECKING:
    from .prover import Prover

#: What is known about the places of a class besides their equality; or the key of a symbol that means one thing
#: wherever it is made, so that the value survives a merge.
Kind = str | tuple[Any, ...]
Relation = dict[tuple[str, Any], tuple[int, Kind]]


def meet(known: Relation, arrived: Relation) -> Relation:
    """Return the places that are equal in both relations; one that is bound in one of them is maybe bound."""
    if known.keys() != arrived.keys():
        raise Different("stacks of different depth meet")
    numbers: dict[tuple[int, int], int] = {}
    result: Relation = {}
    for place, (number, kind) in known.items():
        other, arrived_kind = arrived[place]
        if kind != arrived_kind:
            kind = "maybe" if {kind, arrived_kind} & {"unbound", "maybe"} else ""
        result[place] = numbers.setdefault((number, other), len(numbers)), kind
    return result


def is_constant(identity: tuple[Any, ...]) -> bool:
    """Return whether an identity is that of a constant, or of a tuple or slice of constants."""
    if identity[0] in ("tuple", "slice"):
        return all(map(is_constant, identity[1:]))
    return bool(identity[0] == "constant")


def merge(prover: Prover, left: State, right: State) -> bool:
    """Bring both programs to a merge point; return whether they go on: not where that has been walked already."""
    key = (left.at, right.at)
    prover.pairs_at_merge = pair_containers(prover, left, right)
    numbers: dict[Any, int] = {}
    arrived: Relation = {}
    for tag, state in (("p", left), ("q", right)):
        for place, value in [*((name, state.content(name)) for name in prover.names[tag]), *enumerate(state.stack)]:
            identity = identify(prover, value, tag)
            arrived[tag, place] = numbers.setdefault(identity, len(numbers)), kind_of_places(prover, identity)
    known = prover.relations.get(key)
    if known is None:
        # The first arrival goes on with all that it knows; the second will forget.
        prover.relations[key] = arrived
        return True
    relation = meet(known, arrived)
    if relation == known and key in prover.forgotten:
        return False
    prover.forgotten.add(key)
    prover.relations[key] = relation
    havoc(prover, left, right, relation, key)
    return True


def kind_of_places(prover: Prover, identity: tuple[Any, ...]) -> Kind:
    """Return the fact about all places of a class besides that they are equal; ``""`` if none is known."""
    if identity[0] in ("maybe", "unbound", "lasti"):
        return str(identity[0])
    if is_constant(identity):
        return f"constant {identity!r}"
    # (What the function was given, globals of Dynamo's own, modules, and reads that always give the same.)
    if identity[0] in ("argument", "own", "module") or identity[:2] == ("read", ALWAYS):
        return identity
    return "graph" if identity in prover.graphs else ""


def identify(prover: Prover, value: Value, tag: str) -> tuple[Any, ...]:
    """Return what is equal for equal values, on either side."""
    value = resolve(value)
    if isinstance(value, Symbol):
        return value.key
    if isinstance(value, Constant):
        if isinstance(value.value, Code):
            return (tag, id(value))
        return ("constant", type(value.value).__name__, repr(value.value))
    if value.kind in ("tuple", "slice"):
        return (value.kind, *[identify(prover, item, tag) for item in value.items])
    if id(value) in prover.pairs_at_merge:
        return ("pair", prover.pairs_at_merge[id(value)])
    return (tag, "container", id(value))  # equal to nothing of the other program


def havoc(prover: Prover, left: State, right: State, relation: Relation, key: tuple[int, int]) -> None:
    """Forget all values: each class of equal places gets a fresh symbol."""
    prover.events += 1
    before = {"p": left.locals, "q": right.locals}
    for state in (left, right):
        state.epochs = (prover.events,) * len(EPOCHS)
        state.locals, state.maybe = {}, set()
    for (tag, place), (number, kind) in relation.items():
        state = left if tag == "p" else right
        on_stack = isinstance(place, int)
        fresh = Symbol(("joined", key, prover.events, number))
        value: Value = fresh
        if isinstance(kind, tuple):
            value = Symbol(kind)
        elif kind.startswith("constant"):
            value = state.stack[place] if on_stack else before[tag][place]
        elif kind == "unbound":
            value = UNBOUND
        elif kind == "maybe":
            value = Symbol(("maybe", fresh.key))
        elif kind == "lasti":
            value = Symbol(("lasti",))
        elif kind == "graph":
            prover.graphs.add(fresh.key)
        if on_stack:
            state.stack[place] = value
        else:
            state.bind(place, value)


# --- containers that both programs carry into a merge point ------------------------------------------
def pair_containers(prover: Prover, left: State, right: State) -> dict[int, int]:
    """Pair up the containers of both programs by content, one object from there on: ``{id: number of pair}``."""
    single = _referenced_once(left) | _referenced_once(right)
    content = partial(_content, prover, single)
    others = {id(value): content(value) for value in (*right.stack, *right.locals.values()) if is_own(value, *OPEN)}
    pairs: dict[int, int] = {}
    for value in (*left.stack, *left.locals.values()):
        if not is_own(value, *OPEN) or id(value) in pairs or (wanted := content(value)) is None:
            continue
        other = next((each for each, known in others.items() if known == wanted and each not in pairs), None)
        if other is not None:
            pairs[id(value)] = pairs[other] = len(pairs)
    return pairs


# (A function inside the one above would refer to itself: the code that is compared would stay alive for the collector.)
def _content(prover: Prover, single: set[int], value: Value) -> Any:
    """Return what is equal for equal contents; ``None`` where others than those ``single`` may change them later."""
    value = resolve(value)
    if isinstance(value, Constant) and type(value.value) is tuple:
        value = Allocation("tuple", list(map(Constant, value.value)))
    if not isinstance(value, Allocation):
        return identify(prover, value, "")
    parts = [None if is_own(item, *OPEN) and id(item) not in single else _content(prover, single, item)
             for item in value.items]
    return None if None in parts else (value.kind, *parts)


def all_paired(prover: Prover, left: State, right: State) -> bool:
    """Return whether each container of one program is one of the other's."""
    containers = [v for state in (left, right) for v in (*state.stack, *state.locals.values()) if is_own(v, *OPEN)]
    pairs = pair_containers(prover, left, right) if containers else {}
    return all(id(value) in pairs for value in containers)


def _referenced_once(state: State) -> set[int]:
    """Return the allocations that are in one place only: in a slot, a local or another allocation."""
    places: Counter[int] = Counter()
    pending: list[Value] = [*state.stack, *state.locals.values()]
    while pending:
        value = pending.pop()
        if isinstance(value, Allocation) and value.escaped is None:
            places[id(value)] += 1
            if places[id(value)] == 1:
                pending.extend(value.items)
    return {identity for identity, count in places.items() if count == 1}
