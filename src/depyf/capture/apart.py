"""Work in a forked child, which changes nothing in this process.

The child has its own copy of all objects: torch's caches, guards and counters, random numbers, arguments, globals. Only
the result, pickled, reaches this process.
"""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import random
import select
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from ..guarded import unwarned
from .torch_private import forking

Result = TypeVar("Result")

#: Set around the fork, for what is registered with ``os.register_at_fork``, and in the child ever after.
_judging = threading.local()


class ChildFailed(RuntimeError):
    """The child did not give a result; the message says why."""


class ChildTooSlow(ChildFailed):
    """The child did not end in time."""


def why_not() -> str:
    """Return why no child can be forked here; ``""`` if one can."""
    return forking.why_not()


def why_no_backward() -> str:
    """Return why no child could run a backward pass; ``""`` if one can."""
    return in_child(forking.why_no_backward) if forking.may_lack_backward() else ""


def is_apart() -> bool:
    """Return whether this is such a child (or is about to become one, inside a hook on forks), or :func:`judging`."""
    return bool(getattr(_judging, "on", False))


@contextlib.contextmanager
def judging() -> Iterator[None]:
    """Inside, what this thread compiles is only to be judged, as in a child: nothing records it."""
    before, _judging.on = is_apart(), True
    try:
        yield
    finally:
        _judging.on = before


def in_child(work: Callable[[], Result], limit: float = 600.0, *, judging: bool = True) -> Result:
    """Return the result of ``work()`` in a forked child.

    Args:
        work: its result can be pickled. What it prints is discarded.
        limit: seconds.
        judging: what the child compiles is only to be judged: it is written to no cache. Else the child is an ordinary
            program, forked only such that its changes do not remain.

    Raises:
        ChildFailed: it raised, ended, or did not end in time.
    """
    state = random.getstate()  # Python's own hook on forks takes a new seed in the child
    forking.pause_threads()
    reading, writing = os.pipe()
    before, _judging.on = is_apart(), judging
    parent = os.getpid()
    try:
        with unwarned():  # (of forks while threads run)
            child = os.fork()
    except BaseException:
        _judging.on = before
        os.close(reading)
        os.close(writing)
        raise
    if child == 0:
        os.close(reading)
        _be_child(work, writing, state, judging, parent)
    _judging.on = before
    os.close(writing)
    try:
        answer = _read(reading, time.monotonic() + limit)
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        raise
    finally:
        os.close(reading)
        with contextlib.suppress(ChildProcessError):  # (the program may wait for all children itself)
            os.waitpid(child, 0)
    if not answer:
        raise ChildFailed("the process that it was tried in ended without a result")
    done, value = pickle.loads(answer)
    if not done:
        raise ChildFailed(value)
    result: Result = value
    return result


def _read(reading: int, until: float) -> bytes:
    parts: list[bytes] = []
    while True:
        ready, _, _ = select.select([reading], [], [], max(0.0, until - time.monotonic()))
        if not ready:
            raise ChildTooSlow("the process that it was tried in did not end in time")
        part = os.read(reading, 1 << 20)
        if not part:
            return b"".join(parts)
        parts.append(part)


def _be_child(work: Callable[[], Any], writing: int, state: Any, judging: bool, parent: int) -> None:
    """Do the work and end without running exit handlers."""
    code = 1
    try:
        forking.end_with(parent)
        random.setstate(state)
        with contextlib.suppress(ValueError):  # (not in a thread)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(nowhere, number)
        if judging:
            forking.settle_child()
        try:
            answer = pickle.dumps((True, work()), protocol=5)
        except BaseException as error:  # noqa: BLE001  (all that can be said of it is said)
            answer = pickle.dumps((False, f"{type(error).__name__}: {error}"))
        view = memoryview(answer)
        while view:
            view = view[os.write(writing, view):]
        code = 0
    finally:
        os._exit(code)


@contextlib.contextmanager
def caught_text() -> Iterator[tuple[io.StringIO, io.StringIO]]:
    """Catch what is printed inside to Python's standard output and error; warnings are left out."""
    out, err = io.StringIO(), io.StringIO()
    before = sys.stdout, sys.stderr, warnings.showwarning
    sys.stdout, sys.stderr, warnings.showwarning = out, err, lambda *args, **kwargs: None
    try:
        yield out, err
    finally:
        sys.stdout, sys.stderr, warnings.showwarning = before
