"""Changes to torch that several sessions want at once, and that end in any order.

Each change is made once, by the first who wants it, and taken back by the last. So torch is left as it was also where
two sessions overlap (in two threads: one begins, the other begins, the first ends) and neither knows of the other.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

Undo = Callable[[], None]
_HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "")
Wanted = TypeVar("Wanted")


class SharedPatch(Generic[Wanted]):
    """A reference-counted patch of torch: made for the first who wants it, undone for the last.

    Attributes:
        wanted: what the present users gave, in the order in which they came. Another tuple each time it changes.
    """

    def __init__(self) -> None:
        self.wanted: tuple[Wanted, ...] = ()  # replaced, never changed: it is read without the lock
        self._users: tuple[object, ...] = ()
        self._undo: Undo | None = None
        self._lock = threading.Lock()

    def acquire(self, wish: Wanted, make: Callable[[SharedPatch[Wanted]], Undo]) -> Undo:
        """Add a wish; what is returned takes it back.

        Args:
            wish: what is wanted.
            make: makes the change, where it is not made, and returns what takes it back. It finds out later what
                is wanted, by :attr:`wanted`.
        """
        user = object()  # two users may want the same
        with self._lock:
            if self._undo is None:
                self._undo = make(self)
            self._users, self.wanted = (*self._users, user), (*self.wanted, wish)

        def release() -> None:
            with self._lock:
                if user not in self._users:
                    return
                at = self._users.index(user)
                self._users = self._users[:at] + self._users[at + 1 :]
                self.wanted = self.wanted[:at] + self.wanted[at + 1 :]
                if not self._users and self._undo is not None:
                    undo, self._undo = self._undo, None
                    undo()

        return release


_known: dict[Any, SharedPatch[Any]] = {}
_knowing = threading.Lock()


def shared_patch(key: Any) -> SharedPatch[Any]:
    """Return the patch that goes by this key, the same one each time."""
    with _knowing:
        return _known.setdefault(key, SharedPatch())


def leave_traceback(error: BaseException) -> None:
    """Drop the frames of this package that begin the traceback of an error that passes through them.

    They are no places of the user's. To be followed by a bare ``raise``, which does not add the frame again (with
    Python 3.11 and later; before, the frames stay).
    """
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_frame.f_code.co_filename.startswith(_HERE):
        traceback = traceback.tb_next
    if traceback is not None:  # (else the error is ours)
        error.__traceback__ = traceback
