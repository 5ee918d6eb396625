"""Merge points: the values of both programs are dropped; which places have equal ones is recorded.

A place is a local or a stack slot of one of the programs, ``("p", name)`` or ``("q", index)``. A relation is a set of
classes of places with the same value; a class may have a member ``("kind", what else is known of the value)``.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from ....bytecode.code import Code
from ...dynamo.facts import ALWAYS, EPOCHS
from .states import UNBOUND, Allocation, Constant, Different, State, Symbol, Value, is_open, resolve

if TYPE_CHECKING:
    from .prover import Prover

#: Facts about the places of a class besides their equality; or the key of a symbol that means one thing
#: wherever it is made, so that the value survives a merge.
Kind = str | tuple[Any, ...]


def meet(known: frozenset[Any], arrived: frozenset[Any]) -> frozenset[Any]:
    """Return the places that are equal in both relations.

    Having no value is one of the values for that. Bound in one and unbound in the other: maybe bound.
    """
    def index(relation: frozenset[Any]) -> dict[Any, tuple[int, Kind]]:
        result: dict[Any, tuple[int, Kind]] = {}
        for number, members in enumerate(relation):
            kind = next((m[1] for m in members if m[0] == "kind"), "")
            for member in members:
                if member[0] != "kind":
                    result[member] = (number, kind)
        return result

    first, second = index(known), index(arrived)
    classes: dict[Any, set[Any]] = {}
    for place in first.keys() | second.keys():
        a, b = first.get(place), second.get(place)
        if a is None or b is None:
            raise Different("stacks of different depth meet")
        kind = a[1] if a[1] == b[1] else "maybe" if {a[1], b[1]} & {"unbound", "maybe"} else ""
        classes.setdefault((a[0], b[0]), set()).update({place, ("kind", kind)})
    return frozenset(frozenset(members) for members in classes.values())


def is_constant(identity: Any) -> bool:
    """Return whether an identity is that of a constant, or of a tuple or slice of constants."""
    if not isinstance(identity, tuple) or not identity:
        return False
    if identity[0] in ("tuple", "slice"):
        return all(map(is_constant, identity[1:]))
    return bool(identity[0] == "constant")


def merge(prover: Prover, left: State, right: State) -> bool:
    """Bring both programs to a merge point; return whether they go on from there.

    From the second arrival on, only the equality of places is recorded, not their values. They do not go on where
    that has been walked already.
    """
    key = (left.at, right.at)
    prover.pairs_at_merge = pair_containers(prover, left, right)
    values: dict[Any, set[tuple[str, Any]]] = {}
    for tag, state in (("p", left), ("q", right)):
        for name in prover.names[tag]:
            values.setdefault(identify(prover, state.content(name), tag), set()).add((tag, name))
        for place, value in enumerate(state.stack):
            values.setdefault(identify(prover, value, tag), set()).add((tag, place))
    arrived = frozenset(
        frozenset({("kind", kind_of_places(prover, identity)), *places}) for identity, places in values.items())
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


def kind_of_places(prover: Prover, identity: Any) -> Kind:
    """Return the fact about all places of a class besides that they are equal; ``""`` if none is known."""
    if isinstance(identity, tuple) and identity[0] in ("maybe", "unbound", "lasti"):
        return str(identity[0])
    if isinstance(identity, tuple) and identity[0] == "constant":
        return f"constant {identity[1]} {identity[2]}"
    if is_constant(identity):
        return f"constant {identity!r}"
    # (What the function was given, globals of Dynamo's own, modules, and reads that always give the same.)
    if isinstance(identity, tuple) and (
            identity[:1] in (("argument",), ("own",), ("module",)) or identity[:2] == ("read", ALWAYS)):
        return identity
    return "graph" if identity in prover.graphs else ""


def identify(prover: Prover, value: Value, tag: str) -> Any:
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


def havoc(prover: Prover, left: State, right: State, relation: frozenset[Any], key: tuple[int, int]) -> None:
    """Forget all values: each class of equal places gets a fresh symbol."""
    prover.events += 1
    left.epochs = right.epochs = (prover.events,) * len(EPOCHS)
    constants: dict[tuple[str, Any], Value] = {}
    for tag, state in (("p", left), ("q", right)):
        for name, value in state.locals.items():
            constants[tag, name] = value
        for index, value in enumerate(state.stack):
            constants[tag, index] = value
        state.locals = {}
        state.maybe = set()
    for number, members in enumerate(relation):
        kind = next((m[1] for m in members if m[0] == "kind"), "")
        places = [m for m in members if m[0] != "kind"]
        fresh = Symbol(("joined", key, prover.events, number))
        if kind == "lasti":
            fresh = Symbol(("lasti",))
        elif kind == "graph":
            prover.graphs.add(fresh.key)
        elif isinstance(kind, tuple):
            fresh = Symbol(kind)
        for tag, place in places:
            state = left if tag == "p" else right
            known: Value = fresh
            if isinstance(kind, str) and kind.startswith("constant"):
                known = constants.get((tag, place), fresh)
            elif kind == "unbound":
                known = UNBOUND
            elif kind == "maybe":
                known = Symbol(("maybe", fresh.key))
            if isinstance(place, int):
                state.stack[place] = known
            else:
                state.bind(place, known)


# --- containers that both programs carry into a merge point ------------------------------------------
def pair_containers(prover: Prover, left: State, right: State) -> dict[int, int]:
    """Pair up by content the containers of both programs: ``{id: number of pair}``.

    From there on a pair is one object; a wrong pair can only make the comparison fail later.
    """
    single = _referenced_once(left) | _referenced_once(right)

    def content(value: Value) -> Any:
        """Return what is equal for equal contents; ``None`` where others may change them later."""
        value = resolve(value)
        if isinstance(value, Constant) and type(value.value) is tuple:
            value = Allocation("tuple", list(map(Constant, value.value)))
        if not isinstance(value, Allocation):
            return identify(prover, value, "")
        parts = [None if is_open(item) and id(item) not in single else content(item) for item in value.items]
        return None if None in parts else (value.kind, *parts)

    others = {id(value): content(value) for value in (*right.stack, *right.locals.values()) if is_open(value)}
    pairs: dict[int, int] = {}
    for value in (*left.stack, *left.locals.values()):
        if not is_open(value) or id(value) in pairs or (wanted := content(value)) is None:
            continue
        other = next((each for each, known in others.items() if known == wanted and each not in pairs), None)
        if other is not None:
            pairs[id(value)] = pairs[other] = len(pairs)
    return pairs


def all_paired(prover: Prover, left: State, right: State) -> bool:
    """Return whether each container of one program is one of the other's."""
    containers = [v for state in (left, right) for v in (*state.stack, *state.locals.values()) if is_open(v)]
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
