"""Results that several views of one run need, made once while they are written."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Hashable, Iterator
from contextvars import ContextVar
from typing import Any, TypeVar

Made = TypeVar("Made")
_known: ContextVar[dict[Hashable, Any] | None] = ContextVar("depyf_remembered", default=None)


@contextlib.contextmanager
def remembered() -> Iterator[None]:
    """Inside of it, :func:`once` makes things once; afterwards they are released."""
    token = _known.set({})
    try:
        yield
    finally:
        _known.reset(token)


def once(key: Hashable, make: Callable[[], Made]) -> Made:
    """Return the result of ``make``, made once for equal keys inside of :func:`remembered`."""
    known = _known.get()
    if known is None:
        return make()
    if key not in known:
        known[key] = make()
    result: Made = known[key]
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
