"""Which ``prepare_debug`` is on, and which was the last one: what ``debug()`` needs to know."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field


@dataclass
class DebugSession:
    """One ``prepare_debug``: its directory and the files that running code is tied to."""

    directory: str
    files: list[str] = field(default_factory=list)


_lock = threading.Lock()
_active: list[DebugSession] = []
_last: DebugSession | None = None


def session_started(directory: str) -> DebugSession:
    """Called by ``prepare_debug`` on entry."""
    session = DebugSession(directory)
    with _lock:
        _active.append(session)
    return session


def session_ended(session: DebugSession, files: list[str] | None = None) -> None:
    """Called by ``prepare_debug`` on leaving, whatever happened, with the files that are linked."""
    global _last
    with _lock:
        if session in _active:
            _active.remove(session)
        if files is not None:
            session.files = list(files)
        _last = session


def active_session() -> DebugSession | None:
    with _lock:
        return _active[-1] if _active else None


def last_session() -> DebugSession | None:
    with _lock:
        return _last
