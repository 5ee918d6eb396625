"""A fork of a process that has used torch: conditions for the child to compute with it."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import glob
import os
import signal
import sys
from types import ModuleType
from typing import Any

from . import private_api

#: ``omp_pause_hard``: OpenMP gives up its threads until they are needed again.
_PAUSE_HARD = 2
#: ``prctl``: the signal that a process gets when the thread that forked it ends (linux/prctl.h).
_PR_SET_PDEATHSIG = 1


def why_not() -> str:
    """Return why a child could not continue with the state of this process; ``""`` if it can."""
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


def may_lack_backward() -> bool:
    """Return whether a child of a process that ran a backward pass may be unable to run one.

    Autograd has a thread for each device that torch was built for, whether there is one or not, and refuses to work in
    a child of a process that has them (torch/csrc/autograd/engine.cpp, ``track_bad_autograd_forks``).
    """
    import torch

    return any(getattr(torch.version, name, None) for name in ("cuda", "hip", "xpu"))


def why_no_backward() -> str:
    """In a child: return why autograd refuses to work; ``""`` if it works.

    It may start threads, so that no child of this child can run a backward pass.
    """
    import torch

    try:
        with torch.enable_grad():
            torch.ones((), device="cpu", requires_grad=True).clone().backward()
    except RuntimeError as error:
        if "fork" in str(error):
            return ("the process has run a backward pass, after which a forked process can run none "
                    "(autograd's threads, in a torch built for GPUs)")
    return ""


def pause_threads() -> None:
    """Have OpenMP end its threads until they are needed again: a child has none of them, and would wait for them."""
    pause = _pause()
    if pause is not None:
        pause(_PAUSE_HARD)


def end_with(parent: int) -> None:
    """In the child: end with the parent, which alone would end a child that takes too long (on Linux)."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # (It ended before.)
        os._exit(1)


def settle_child() -> None:
    """In the child: compile in this process only (pools of processes are the parent's), and write to no cache."""
    with contextlib.suppress(private_api.MissingPrivateApi, AttributeError):
        private_api.INDUCTOR_SETTINGS.get().compile_threads = 1
    for api in (private_api.FX_CACHE_WRITE, private_api.AOT_CACHE_WRITE, private_api.PROFILE_WRITE):
        with contextlib.suppress(private_api.MissingPrivateApi):
            owner = api.owner()
            nothing = _nothing if isinstance(owner, ModuleType) else staticmethod(_nothing)
            setattr(owner, api.attribute, nothing)


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
