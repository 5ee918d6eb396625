"""SIGTERM while something is watched: what was recorded is written before the process ends.

    undo = at_sigterm(block.end)    # called when the signal comes; then the process ends by the signal
    with postponed():               # a signal that comes inside takes effect at the end
        block.end()
    undo()

Only where the program leaves the signal to the system, and in no launched rank: its launcher ends ranks that hang in a
collective with SIGTERM, and a handler in Python would not run there.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType

from .records.run_directory import rank_and_world

#: Called when the signal comes, the last one first.
_actions: list[Callable[[], None]] = []
_postponed = 0
_came = False


def at_sigterm(action: Callable[[], None]) -> Callable[[], None]:
    """Call the action when SIGTERM comes, if that can be done here; return what undoes this."""
    main = threading.current_thread() is threading.main_thread()
    handled = signal.getsignal(signal.SIGTERM)
    if not main or rank_and_world() is not None or handled not in (signal.SIG_DFL, _handle):
        return lambda: None
    _actions.append(action)
    signal.signal(signal.SIGTERM, _handle)

    def undo() -> None:
        if action in _actions:
            _actions.remove(action)
        if not _actions:
            _leave_to_system()

    return undo


@contextlib.contextmanager
def postponed() -> Iterator[None]:
    """Delay a signal that comes inside until the end: what is being written is complete then."""
    global _postponed, _came
    _postponed += 1
    try:
        yield
    finally:
        _postponed -= 1
        if _came and not _postponed:
            _came = False
            os.kill(os.getpid(), signal.SIGTERM)


def _handle(number: int, frame: FrameType | None) -> None:
    global _came
    if _postponed:
        _came = True
        return
    while _actions:
        _actions.pop()()
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def _leave_to_system() -> None:
    # (In another thread the handler remains, and does what the system would do.)
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) is _handle:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _forget() -> None:
    """In the child of a fork, leave the signal to the system: what the parent records belongs to the parent."""
    global _postponed
    _postponed = 0
    _actions.clear()
    _leave_to_system()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
