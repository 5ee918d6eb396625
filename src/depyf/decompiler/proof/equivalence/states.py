"""Symbolic values, and the abstract state of a program in the middle of its evaluation: what it does next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeGuard

from ....bytecode.operations import Op, Program
from ...constants import is_literal
from ...dynamo.facts import EPOCHS, MODULES


# --- symbolic values ---------------------------------------------------------------------------------
@dataclass(eq=False, slots=True)
class Constant:
    """A constant of the code object."""

    value: Any


@dataclass(eq=False, slots=True)
class Symbol:
    """A value of which only its name is known: the same name is the same value.

    ``key`` is any hashable tuple: ``("argument", name)``, ``("event", n[, i])``, ``("item", symbol, index)``, ...
    """

    key: tuple[Any, ...]


class Allocation:
    """A list, tuple, slice, dictionary, set or object that this program has made (its ``kind``).

    Items of a dictionary are keys and values in turn. Those of an object (:mod:`.objects`) are its class, its contents
    as a dictionary (or ``Constant(None)``), and names and values of its attributes in turn. ``escaped``: the symbol
    that it became when it escaped to other code.
    """

    __slots__ = ("escaped", "items", "kind")

    def __init__(self, kind: str, items: list[Value]) -> None:
        self.kind = kind
        self.items = items
        self.escaped: Symbol | None = None


Value = Constant | Symbol | Allocation

#: The value of an unbound local (3.12 and later put it on the stack around comprehensions).
UNBOUND = Symbol(("unbound",))


def resolve(value: Value) -> Value:
    """Return the value as it is now: a container that has escaped is its symbol."""
    if isinstance(value, Allocation) and value.escaped is not None:
        return value.escaped
    return value


def constant_of(value: Value) -> Any:
    """Return what a value that is known to be a constant is."""
    value = resolve(value)
    assert isinstance(value, Constant)
    return value.value


def sequence(value: Value) -> list[Value] | None:
    """Return the items of a list or tuple that are known."""
    value = resolve(value)
    if isinstance(value, Allocation) and value.kind in ("list", "tuple"):
        return list(value.items)
    if isinstance(value, Constant) and type(value.value) is tuple:
        return [Constant(item) for item in value.value]
    return None


def index_of(value: Value) -> int | slice | None:
    """Return the index or slice that a value is, if that is known."""
    value = resolve(value)
    if isinstance(value, Constant) and isinstance(value.value, (int, slice)) and type(value.value) in (int, slice):
        return value.value
    if isinstance(value, Allocation) and value.kind == "slice":
        parts = [part.value for part in map(resolve, value.items) if isinstance(part, Constant)]
        if len(parts) == len(value.items) and all(part is None or type(part) is int for part in parts):
            return slice(*parts)
    return None


def slice_parts(value: Value) -> list[Value] | None:
    """Return start, stop and step of a slice whose parts are known."""
    if isinstance(value, Constant) and type(value.value) is slice:
        return [Constant(part) for part in (value.value.start, value.value.stop, value.value.step)]
    if isinstance(value, Allocation) and value.kind == "slice":
        return [*value.items, Constant(None)][:3]
    return None


def frozen_items(value: Allocation) -> list[tuple[str, str]]:
    """Return type and text of each item of a set of constants, sorted; of equal ones (``1``, ``True``) the first."""
    kept: dict[Any, Any] = {}
    for item in map(constant_of, value.items):
        kept.setdefault(item, item)
    return sorted((type(item).__name__, repr(item)) for item in kept)


def constants_of(value: Value) -> list[Value] | None:
    """Return the items of a constant frozenset, or of ``()``: what the compiler puts into a new set."""
    value = resolve(value)
    constant = value.value if isinstance(value, Constant) else None
    if isinstance(constant, frozenset) and type(constant) is frozenset or type(constant) is tuple and not constant:
        return [Constant(item) for item in constant]
    return None


def is_own(value: Value | None, *kinds: str) -> TypeGuard[Allocation]:
    """Return whether a value is an allocation of one of the kinds, to which no other code refers."""
    return isinstance(value, Allocation) and value.escaped is None and value.kind in kinds


#: What can still be changed unobserved, if it is the program's own.
OPEN = ("list", "dict", "set", "object")


def is_key(value: Value) -> bool:
    """Return whether a value is a constant whose hashing is unobservable."""
    value = resolve(value)
    return isinstance(value, Constant) and type(value.value) in (str, int, bool, type(None))


def is_hashable(value: Value) -> bool:
    """Return whether a value is a constant that can be in a set."""
    value = resolve(value)
    return isinstance(value, Constant) and type(value.value) is not slice and is_literal(value.value)


class Different(Exception):
    """The programs are not proven to do the same; the message says where they part."""


@dataclass(eq=False, slots=True)
class State:
    """The abstract state of one program: its values and its position.

    Attributes:
        at: index of the next operation.
        locals: the values of the locals that are, or may be, bound.
        maybe: locals of which it is not known whether they are bound.
        turns: 1 where it has stopped at a merge point already.
        epochs: numbers of the last events that may have changed what each of :data:`.facts.EPOCHS` lasts for.
    """

    program: Program
    at: int
    stack: list[Value]
    locals: dict[str, Value]
    maybe: set[str]
    epochs: tuple[int, ...] = (0,) * len(EPOCHS)
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
        """Give a local what another one, or a name of an outer comprehension, had."""
        self.maybe.discard(name)
        self.locals.pop(name, None)
        if isinstance(value, Symbol) and value.key[0] == "maybe":
            self.locals[name] = Symbol(value.key[1])
            self.maybe.add(name)
        elif value is not UNBOUND:
            self.locals[name] = value

    def copy(self, memo: dict[int, Allocation]) -> State:
        """Return an independent copy of the state; ``memo`` contains the copies of allocations."""
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
        negated: it is a test that the program contains negated (``is not``).
        entries: the dictionary on the stack whose first entry alone it takes; the operation goes on with the others.
        ends: what lasts no longer than until it (:data:`.facts.EPOCHS`).
    """

    kind: str
    argument: Any
    operands: list[Value]
    op: Op
    negated: bool = False
    entries: Allocation | None = None
    ends: str = MODULES
