"""Symbolic values, and what is known of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ....bytecode.code import Code
from ...constants import is_literal
from ..exact import same_constant


@dataclass(eq=False, slots=True)
class Constant:
    """A value that the code object holds."""

    value: Any


@dataclass(eq=False, slots=True)
class Symbol:
    """A value of which only its name is known: the same name is the same value.

    ``key`` is any hashable tuple: ``("argument", name)``, ``("event", n[, i])``, ``("item", symbol, index)``, ...
    """

    key: tuple[Any, ...]


class Allocation:
    """A list, tuple, slice, dictionary, set or object that this program has made.

    Items of a dictionary are keys and values in turn. Those of an object (:mod:`.objects`) are its class, its contents
    as a dictionary or list (or ``Constant(None)``), and names and values of its attributes in turn.

    Attributes:
        kind: which of them.
        items: what it holds.
        escaped: the symbol that it became when others got hold of it.
    """

    __slots__ = ("escaped", "items", "kind")

    def __init__(self, kind: str, items: list[Value]) -> None:
        self.kind = kind
        self.items = items
        self.escaped: Symbol | None = None


Value = Constant | Symbol | Allocation

#: What a local without a value holds (3.12 and later put it on the stack around comprehensions).
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


def is_own(value: Value, *kinds: str) -> bool:
    """Return whether a value is an allocation of one of the kinds that nobody else holds."""
    return isinstance(value, Allocation) and value.escaped is None and value.kind in kinds


def own_list(value: Value) -> Allocation | None:
    """Return the list that a value is, if nobody else holds it."""
    return value if isinstance(value, Allocation) and is_own(value, "list") else None


def cell_of(value: Value) -> str | None:
    """Return the name of the variable whose cell the value is."""
    value = resolve(value)
    return str(value.key[1]) if isinstance(value, Symbol) and value.key[0] == "cell" else None


def kind_of(value: Value) -> str:
    """Return what a value that is no symbol is."""
    return value.kind if isinstance(value, Allocation) else type(getattr(value, "value", None)).__name__


def is_open(value: Value) -> bool:
    """Return whether a value can still be changed unobserved."""
    return is_own(value, "list", "dict", "set", "object")


def is_new(value: Value, kind: str) -> bool:
    """Return whether a value is an empty container that nobody else holds."""
    return isinstance(value, Allocation) and is_own(value, kind) and not value.items


def is_key(value: Value) -> bool:
    """Return whether a value is a constant whose hashing is unobservable."""
    value = resolve(value)
    return isinstance(value, Constant) and type(value.value) in (str, int, bool, type(None))


def is_hashable(value: Value) -> bool:
    """Return whether a value is a constant that a set can hold."""
    value = resolve(value)
    return isinstance(value, Constant) and type(value.value) is not slice and is_literal(value.value)


def both_none(x: Value, y: Value) -> bool:
    """Return whether both values are ``None``."""
    x, y = resolve(x), resolve(y)
    return isinstance(x, Constant) and isinstance(y, Constant) and x.value is None is y.value


def alike(x: Value, y: Value, single: set[int]) -> bool:
    """Return whether two values are the same (nothing is changed by asking).

    Args:
        x: a value of one program.
        y: one of the other.
        single: the containers that nothing else holds: what they hold may change later only through them.
    """
    x, y = resolve(x), resolve(y)
    if isinstance(x, Symbol) and isinstance(y, Symbol):
        return x.key == y.key
    if isinstance(x, Constant) and isinstance(y, Constant):
        return not isinstance(x.value, Code) and same_constant(x.value, y.value)
    if kind_of(x) != kind_of(y):
        return False
    left, right = _inside(x, y)
    return left is not None and right is not None and len(left) == len(right) and all(
        is_settled(a, single) and is_settled(b, single) and alike(a, b, single) for a, b in zip(left, right))


def _inside(x: Value, y: Value) -> tuple[Sequence[Value] | None, Sequence[Value] | None]:
    """Return what two values hold, one of which may be a constant tuple."""
    left, right = sequence(x), sequence(y)
    if left is None or right is None:
        return getattr(x, "items", None), getattr(y, "items", None)
    return left, right


def is_settled(value: Value, single: set[int]) -> bool:
    """Return whether what a value holds cannot change but through what holds it."""
    return not is_open(value) or id(value) in single
