"""Changes to torch that several sessions want at once, and that end in any order.

Each change is made once, for the first session that wants it, and undone for the last. So torch is left as it was also
where two sessions overlap (in two threads: one begins, the other begins, the first ends).
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
    """A reference-counted patch of torch: made for the first who wants it, undone for the last."""

    def __init__(self) -> None:
        #: The wishes of the present users, in order. (Replaced, never changed: it is read without the lock.)
        self.wanted: tuple[Wanted, ...] = ()
        self._users: dict[object, Wanted] = {}
        self._undo: Undo | None = None
        self._lock = threading.Lock()

    def acquire(self, wish: Wanted, make: Callable[[SharedPatch[Wanted]], Undo]) -> Undo:
        """Add a wish; what is returned withdraws it.

        ``make`` makes the change, where it is not made, and returns what undoes it. The change reads :attr:`wanted`.
        """
        user = object()  # two users may want the same
        with self._lock:
            if self._undo is None:
                self._undo = make(self)
            self._users[user] = wish
            self.wanted = tuple(self._users.values())

        def release() -> None:
            with self._lock:
                if user not in self._users:
                    return
                del self._users[user]
                self.wanted = tuple(self._users.values())
                if not self._users and self._undo is not None:
                    undo, self._undo = self._undo, None
                    undo()

        return release


_known: dict[Any, SharedPatch[Any]] = {}
_knowing = threading.Lock()


def shared_patch(key: Any) -> SharedPatch[Any]:
    """Return the patch of a key, the same one each time."""
    with _knowing:
        return _known.setdefault(key, SharedPatch())


def leave_traceback(error: BaseException) -> None:
    """Drop the frames of this package at the beginning of the traceback of an error that passes through them.

    To be followed by a bare ``raise``, which does not add the frame again (with Python 3.11 and later; before, the
    frames remain).
    """
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_frame.f_code.co_filename.startswith(_HERE):
        traceback = traceback.tb_next
    if traceback is not None:  # (else the error is ours)
        error.__traceback__ = traceback
