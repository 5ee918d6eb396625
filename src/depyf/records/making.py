"""The lock on a dump whose files are being made, by another process than the one that was watched.

The lock is the operating system's (``flock``), on an open file that the process that makes the files inherits: it is
let go of when that process ends, however it ends.
"""

from __future__ import annotations

import contextlib
import os

try:
    import fcntl
except ImportError:  # Windows: files are made by the process itself there
    fcntl = None  # type: ignore[assignment]

#: The locked file. It is there while files are being made.
FILE = ".making"


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


def wait(directory: str) -> None:
    """Wait until nobody makes files of a dump."""
    if fcntl is None:
        return
    try:
        file = os.open(os.path.join(directory, FILE), os.O_RDWR)
    except OSError:
        return
    try:
        fcntl.flock(file, fcntl.LOCK_SH)
    except OSError:
        pass  # a file system without locks
    finally:
        os.close(file)
