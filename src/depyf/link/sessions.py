"""The ``prepare_debug`` that is on, and the last one that was: what ``debug()`` needs to know."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .linker import LinkedFunction


@dataclass
class DebugSession:
    """One ``prepare_debug``.

    Attributes:
        directory: of the dump.
        files: those that running code is tied to.
        functions: of graphs, that run with the lines of those files.
        unlinked: graphs and stages of graphs that run without, with the reason.
    """

    directory: str
    files: list[str] = field(default_factory=list)
    functions: list[LinkedFunction] = field(default_factory=list)
    unlinked: dict[str, str] = field(default_factory=dict)


_lock = threading.Lock()
_active: list[DebugSession] = []
_last: DebugSession | None = None
_ended: list[DebugSession] = []


def session_started(directory: str) -> DebugSession:
    """Begin the session of a ``prepare_debug`` that is entered."""
    session = DebugSession(directory)
    with _lock:
        _active.append(session)
    return session


def session_ended(
    session: DebugSession, files: Iterable[str] | None = None, functions: Sequence[LinkedFunction] = (),
    unlinked: Mapping[str, str] | None = None,
) -> None:
    """End the session of a ``prepare_debug``, however it is left, with what is linked (see :class:`DebugSession`)."""
    global _last
    with _lock:
        if session in _active:
            _active.remove(session)
        if files is not None:
            session.files = list(files)
        session.functions = list(functions)
        session.unlinked = dict(unlinked or {})
        _last = session
        # Of earlier sessions those count whose graphs still run.
        _ended[:] = [known for known in _ended if any(each.function() is not None for each in known.functions)]
        _ended.append(session)


def ended_sessions() -> list[DebugSession]:
    """Return the last session, and earlier ones whose graphs still run."""
    with _lock:
        return list(_ended)


def active_session() -> DebugSession | None:
    """Return the ``prepare_debug`` that is on, of several the one entered last; ``None`` outside of any."""
    with _lock:
        return _active[-1] if _active else None


def last_session() -> DebugSession | None:
    """Return the ``prepare_debug`` that was left last; ``None`` before any was."""
    with _lock:
        return _last
