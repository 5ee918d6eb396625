"""Changes to torch that several sessions want at once, and that end in any order.

Each change is made once, by the first who wants it, and taken back by the last. So torch is left as it was also where
two sessions overlap (in two threads: one begins, the other begins, the first ends) and neither knows of the other.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

Undo = Callable[[], None]
Wanted = TypeVar("Wanted")


class _Wish(Generic[Wanted]):
    """One user's wish; two users may want the same."""

    def __init__(self, what: Wanted) -> None:
        self.what = what


class Shared(Generic[Wanted]):
    """One change, and what each of those who want it want of it."""

    def __init__(self) -> None:
        self._wishes: tuple[_Wish[Wanted], ...] = ()  # replaced, never changed: it is read without the lock
        self._undo: Undo | None = None
        self._lock = threading.Lock()

    @property
    def wanted(self) -> tuple[Wanted, ...]:
        """What the present users gave, in the order in which they came."""
        return tuple(each.what for each in self._wishes)

    def join(self, wish: Wanted, make: Callable[[Shared[Wanted]], Undo]) -> Undo:
        """Adds a wish; what is returned takes it back.

        Args:
            wish: what is wanted.
            make: makes the change, where it is not made, and returns what takes it back. It finds out later what
                is wanted, by :attr:`wanted`.
        """
        token = _Wish(wish)
        with self._lock:
            if self._undo is None:
                self._undo = make(self)
            self._wishes = (*self._wishes, token)

        def leave() -> None:
            with self._lock:
                if token not in self._wishes:
                    return
                self._wishes = tuple(each for each in self._wishes if each is not token)
                if not self._wishes and self._undo is not None:
                    undo, self._undo = self._undo, None
                    undo()

        return leave


_known: dict[Any, Shared[Any]] = {}
_knowing = threading.Lock()


def shared(key: Any) -> Shared[Any]:
    """The change that goes by this key."""
    with _knowing:
        return _known.setdefault(key, Shared())
