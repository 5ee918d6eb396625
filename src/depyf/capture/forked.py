"""Work in a forked child, which changes nothing in this process.

The child has its own copy of all objects: torch's caches, guards and counters, random numbers, arguments, globals. Only
the result, pickled, reaches this process.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import glob
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
from types import ModuleType
from typing import Any, TypeVar

from ..guarded import unwarned
from .torch_private import private_api

Result = TypeVar("Result")

#: Set around the fork, for what is registered with ``os.register_at_fork``, and in the child ever after.
_judging = threading.local()


class ChildFailed(RuntimeError):
    """The child did not give a result; the message says why."""


class ChildTooSlow(ChildFailed):
    """The child did not end in time."""


def why_no_backward() -> str:
    """Return why no child could run a backward pass; ``""`` if one can."""
    return in_child(_refusal_of_autograd) if _may_lack_backward() else ""


def _may_lack_backward() -> bool:
    """Return whether a child of a process that ran a backward pass may be unable to run one.

    Autograd has a thread for each device that torch was built for, whether there is one or not, and refuses to work in
    a child of a process that has them (torch/csrc/autograd/engine.cpp, ``track_bad_autograd_forks``).
    """
    import torch

    return any(getattr(torch.version, name, None) for name in ("cuda", "hip", "xpu"))


def is_judging() -> bool:
    """Return whether this is such a child (or is about to become one, inside a hook on forks), or :func:`judging`."""
    return bool(getattr(_judging, "on", False))


@contextlib.contextmanager
def judging() -> Iterator[None]:
    """Inside, what this thread compiles is only to be judged, as in a child: nothing records it."""
    before, _judging.on = is_judging(), True
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
    if pause := _pause():  # (A child has no thread of OpenMP's, and would wait for them.)
        pause(_PAUSE_HARD)
    reading, writing = os.pipe()
    before, _judging.on = is_judging(), judging
    parent = os.getpid()
    try:
        with unwarned():  # (of forks while threads run)
            child = os.fork()
    except BaseException:
        os.close(reading)
        os.close(writing)
        raise
    finally:
        if os.getpid() == parent:
            _judging.on = before
    if child == 0:
        os.close(reading)
        _be_child(work, writing, state, judging, parent)
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
    done, value = pickle.loads(answer) if answer else (
        False, "the process that it was tried in ended without a result")
    if not done:
        raise ChildFailed(value)
    result: Any = value
    return result


def _read(reading: int, until: float) -> bytes:
    parts: list[bytes] = []
    while not parts or parts[-1]:
        ready, _, _ = select.select([reading], [], [], max(0.0, until - time.monotonic()))
        if not ready:
            raise ChildTooSlow("the process that it was tried in did not end in time")
        parts.append(os.read(reading, 1 << 20))
    return b"".join(parts)


def _be_child(work: Callable[[], Any], writing: int, state: Any, judging: bool, parent: int) -> None:
    """Do the work and end without running exit handlers."""
    code = 1
    try:
        # It ends with the parent, which alone would end a child that takes too long (on Linux).
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # (It ended before.)
            return
        random.setstate(state)
        with contextlib.suppress(ValueError):  # (not in a thread)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(nowhere, number)
        if judging:  # It compiles in this process only (pools of processes are the parent's), and writes to no cache.
            with contextlib.suppress(private_api.MissingPrivateApi, AttributeError):
                private_api.INDUCTOR_SETTINGS.get().compile_threads = 1
            for api in (private_api.FX_CACHE_WRITE, private_api.AOT_CACHE_WRITE, private_api.PROFILE_WRITE):
                with contextlib.suppress(private_api.MissingPrivateApi):
                    owner = api.owner()  # (Not by `hooks.replaced`: its lock may be another thread's.)
                    nothing = _nothing if isinstance(owner, ModuleType) else staticmethod(_nothing)
                    setattr(owner, api.attribute, nothing)
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


# --- a fork of a process that has used torch: conditions for the child to compute with it ------------
#: ``omp_pause_hard``: OpenMP gives up its threads until they are needed again.
_PAUSE_HARD = 2
_PR_SET_PDEATHSIG = 1  #: ``prctl``: the signal that a process gets when the thread that forked it ends (linux/prctl.h).


def why_not() -> str:
    """Return why no child can be forked here that continues with the state of this process; ``""`` if one can."""
    import torch

    if not hasattr(os, "fork") or sys.platform == "darwin":
        return "this system has no safe fork"
    for device in ("cuda", "xpu", "mps"):
        module = getattr(torch, device, None)
        if module is not None and getattr(module, "is_initialized", lambda: False)():
            return f"{device} is in use, which a forked process cannot go on with"
    if _pause() is None and torch.get_num_threads() > 1:
        return "this torch's OpenMP cannot be paused, and a forked process would wait for its threads"
    return ""


def _refusal_of_autograd() -> str:
    """In a child of its own (it may start threads): return why autograd refuses to work; ``""`` if it works."""
    import torch

    try:
        with torch.enable_grad():
            torch.ones((), device="cpu", requires_grad=True).clone().backward()
    except RuntimeError as error:
        if "fork" in str(error):
            return ("the process has run a backward pass, after which a forked process can run none "
                    "(autograd's threads, in a torch built for GPUs)")
    return ""


def _nothing(*args: Any, **kwargs: Any) -> None:
    return None


@functools.cache
def _pause() -> Any:
    """Return the function that pauses OpenMP, of the library that torch has loaded; ``None`` where there is none."""
    import torch

    here = os.path.dirname(str(torch.__file__))
    for library in (*glob.glob(os.path.join(here, "lib", "libgomp*")),
                    *glob.glob(os.path.join(os.path.dirname(here), "torch.libs", "libgomp*")), None):
        try:
            return ctypes.CDLL(library).omp_pause_resource_all
        except (OSError, AttributeError):
            continue
    return None
