"""The lock on a dump whose files are being made, by another process than the one that was watched.

The lock is the operating system's (``flock``), on an open file that the process that makes the files inherits: it is
let go of when that process ends, however it ends. The file says how far that process is.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar

try:
    import fcntl
except ImportError:  # Windows: files are made by the process itself there
    fcntl = None  # type: ignore[assignment]

#: The locked file. It is there while files are being made.
FILE = ".making"
#: ``("outlines", 3, 48)``: the fourth of 48 is being made. Zeros: that is not known yet.
Status = tuple[str, int, int]
#: Called every so often while somebody waits, and with ``None`` when that is over.
Waiting = Callable[[Status | None], None]
_POLL = 0.02  # seconds
_waiting: ContextVar[Waiting | None] = ContextVar("waiting", default=None)


def can_lock() -> bool:
    """Return whether there are such locks."""
    return fcntl is not None


def lock(directory: str) -> int:
    """Lock a dump and return the open file, which a process that is started can inherit.

    Raises:
        OSError: it cannot be locked.
    """
    file = os.open(os.path.join(directory, FILE), os.O_CREAT | os.O_RDWR, 0o644)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(file)
        raise
    return file


def unlock(directory: str) -> None:
    """Say that the files are made."""
    with contextlib.suppress(OSError):
        os.unlink(os.path.join(directory, FILE))


def tell(directory: str, what: str, done: int, total: int) -> None:
    """Write the status of the making into the locked file, for processes that wait."""
    with contextlib.suppress(OSError):
        file = os.open(os.path.join(directory, FILE), os.O_WRONLY)  # (as it is: it is the file that is locked)
        try:
            os.write(file, f"{done} {total} {what}\n".ljust(80).encode())
        finally:
            os.close(file)


def _told(file: int) -> Status:
    done, _, rest = os.pread(file, 80, 0).decode(errors="replace").partition(" ")
    total, _, what = rest.strip().partition(" ")
    return (what, int(done), int(total)) if done.isdecimal() and total.isdecimal() else ("", 0, 0)


@contextlib.contextmanager
def shown(waiting: Waiting) -> Iterator[None]:
    """Call ``waiting`` with the status of the other process while :func:`wait` waits inside the context."""
    before = _waiting.set(waiting)
    try:
        yield
    finally:
        _waiting.reset(before)


def wait(directory: str) -> None:
    """Wait until nobody makes files of a dump."""
    if fcntl is None:
        return
    try:
        file = os.open(os.path.join(directory, FILE), os.O_RDWR)
    except OSError:
        return
    waiting = _waiting.get()
    try:
        while waiting is not None:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                waiting(_told(file))
                time.sleep(_POLL)
        fcntl.flock(file, fcntl.LOCK_SH)
    except OSError:
        pass  # a file system without locks
    finally:
        os.close(file)
        if waiting is not None:
            waiting(None)
