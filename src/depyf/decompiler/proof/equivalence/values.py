"""Symbolic values, and what is known of them. Changes with the kinds of values that are followed."""

from __future__ import annotations

from typing import Any

from ....bytecode.code import Code
from ...constants import is_literal
from ..same import same_constant


class Constant:
    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


class Symbol:
    """Any hashable tuple: ``("argument", name)``, ``("event", n[, i])``, ``("item", symbol, index)``, ..."""

    __slots__ = ("key",)

    def __init__(self, key: tuple[Any, ...]) -> None:
        self.key = key


#: What a local without a value holds (3.12 and later put it on the stack around comprehensions).
UNBOUND = Symbol(("unbound",))


class Built:
    """A list, tuple, slice, dictionary, set or object made by this side. ``escaped``: the symbol it became.

    Items of a dictionary are keys and values in turn. Those of an object (:mod:`.objects`) are its class, its contents
    as a dictionary or list (or ``Constant(None)``), and names and values of its attributes in turn.
    """

    __slots__ = ("escaped", "items", "kind")

    def __init__(self, kind: str, items: list[Any]) -> None:
        self.kind = kind
        self.items = items
        self.escaped: Symbol | None = None


def seen(value: Any) -> Any:
    """The value as it is now: a container that has escaped is its symbol."""
    if isinstance(value, Built) and value.escaped is not None:
        return value.escaped
    return value


def sequence(value: Any) -> list[Any] | None:
    value = seen(value)
    if isinstance(value, Built) and value.kind in ("list", "tuple"):
        return list(value.items)
    if isinstance(value, Constant) and type(value.value) is tuple:
        return [Constant(item) for item in value.value]
    return None


def index_of(value: Any) -> Any:
    value = seen(value)
    if isinstance(value, Constant) and type(value.value) in (int, slice):
        return value.value
    if isinstance(value, Built) and value.kind == "slice":
        parts = [seen(item) for item in value.items]
        if all(isinstance(p, Constant) and (p.value is None or type(p.value) is int) for p in parts):
            return slice(*(p.value for p in parts))
    return None


def slice_parts(value: Any) -> list[Any] | None:
    """Start, stop and step of a slice whose parts are known."""
    if isinstance(value, Constant) and type(value.value) is slice:
        return [Constant(part) for part in (value.value.start, value.value.stop, value.value.step)]
    if isinstance(value, Built) and value.kind == "slice":
        return [*value.items, Constant(None)][:3]
    return None


def frozen_items(value: Built) -> list[tuple[str, str]]:
    """Return type and text of each item of a set of constants, sorted; of equal ones (``1``, ``True``) the first."""
    kept: dict[Any, Any] = {}
    for item in value.items:
        kept.setdefault(seen(item).value, seen(item).value)
    return sorted((type(item).__name__, repr(item)) for item in kept)


def constants_of(value: Any) -> list[Any] | None:
    """Items of a constant frozenset, or of ``()``: what the compiler puts into a new set."""
    value = seen(value)
    constant = value.value if isinstance(value, Constant) else None
    if type(constant) is frozenset or type(constant) is tuple and not constant:
        return [Constant(item) for item in constant]
    return None


def own_list(value: Any) -> Built | None:
    if isinstance(value, Built) and value.kind == "list" and value.escaped is None:
        return value
    return None


def cell_of(value: Any) -> str | None:
    """Name of the variable whose cell the value is."""
    value = seen(value)
    return value.key[1] if isinstance(value, Symbol) and value.key[0] == "cell" else None


def kind_of(value: Any) -> str:
    return value.kind if isinstance(value, Built) else type(getattr(value, "value", None)).__name__


def is_open(value: Any) -> bool:
    return isinstance(value, Built) and value.escaped is None and value.kind in ("list", "dict", "set", "object")


def is_new(value: Any, kind: str) -> bool:
    """Return whether a value is an empty container of its side's own."""
    return isinstance(value, Built) and value.escaped is None and value.kind == kind and not value.items


def is_text(value: Any) -> bool:
    value = seen(value)
    return isinstance(value, Constant) and type(value.value) is str


def is_key(value: Any) -> bool:
    """Return whether a value is a constant whose hashing is unobservable."""
    value = seen(value)
    return isinstance(value, Constant) and type(value.value) in (str, int, bool, type(None))


def is_hashable(value: Any) -> bool:
    value = seen(value)
    return isinstance(value, Constant) and type(value.value) is not slice and is_literal(value.value)


def both_none(x: Any, y: Any) -> bool:
    x, y = seen(x), seen(y)
    return isinstance(x, Constant) and isinstance(y, Constant) and x.value is None is y.value


def alike(x: Any, y: Any, single: set[int]) -> bool:
    """Return whether two values are the same (nothing is changed by asking).

    What they hold may change later only through them: ``single`` are the containers that nothing else holds.
    """
    x, y = seen(x), seen(y)
    if isinstance(x, Symbol) and isinstance(y, Symbol):
        return bool(x.key == y.key)
    if isinstance(x, Constant) and isinstance(y, Constant):
        return not isinstance(x.value, Code) and same_constant(x.value, y.value)
    if kind_of(x) != kind_of(y):
        return False
    left, right = sequence(x), sequence(y)
    if left is None or right is None:
        left, right = getattr(x, "items", None), getattr(y, "items", None)
    return left is not None and right is not None and len(left) == len(right) and all(
        is_settled(a, single) and is_settled(b, single) and alike(a, b, single) for a, b in zip(left, right))


def is_settled(value: Any, single: set[int]) -> bool:
    return not is_open(value) or id(value) in single
