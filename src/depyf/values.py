"""Values: compared by their fields (:func:`frozen`), by identity (:class:`Same`), made once (:func:`once`).

``@frozen`` makes a frozen dataclass of which one method is compiled, not six.
``dataclasses`` writes and compiles each method of each class: 0.56 ms for five fields on CPython 3.11. Of the 0.16 s of
processor time in which ``depyf report`` is imported, 0.06 s were that. Here the constructor alone is compiled; the
other methods are functions over a tuple of the fields. (mypy refuses to set a field; nothing does at run time.)
"""

from __future__ import annotations

import contextlib
import operator
import reprlib
from collections.abc import Callable, Hashable
from contextvars import ContextVar
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:
    def dataclass_transform(**_):
        """Return a decorator that changes nothing: only type checkers read this one."""
        return lambda function: function

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[T]) -> type[T]:
    """Make a class of annotated fields a dataclass whose instances are compared and hashed by their fields."""
    made: Any = dataclass(eq=False, repr=False)(cls)
    # (two attributes or more are a tuple: in one, a NaN equals itself)
    state = operator.attrgetter("__class__", *[each.name for each in fields(made) if each.compare])

    def same(self: object, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return bool(state(self) == state(other))

    made.__eq__, made.__hash__, made.__repr__ = same, lambda self: hash(state(self)), _text
    return cls


@reprlib.recursive_repr()
def _text(self: Any) -> str:
    shown = [f"{each.name}={getattr(self, each.name)!r}" for each in fields(self) if each.repr]
    return f"{type(self).__qualname__}({', '.join(shown)})"


# --- results that several views of one run need, made once while they are written -------------------
_known: ContextVar[dict[Hashable, Any] | None] = ContextVar("depyf_remembered", default=None)


class remembered(contextlib.ContextDecorator):
    """Inside of it, :func:`once` makes things once; afterwards they are released.

    No generator: that of a decorator is closed when the interpreter ends, where a debugger's trace function fails.
    """

    def _recreate_cm(self) -> remembered:
        return remembered()  # (for each call of a decorated function)

    def __enter__(self) -> None:
        self._token = _known.set({})

    def __exit__(self, *raised: object) -> None:
        _known.reset(self._token)


def once(key: Hashable, make: Callable[[], T]) -> T:
    """Return the result of ``make``, made once for equal keys inside of :func:`remembered`."""
    known = _known.get()
    if known is None:
        return make()
    if key not in known:
        known[key] = make()
    result: T = known[key]
    return result


class Same:
    """An object as a key, by its identity; the key keeps it alive."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)
