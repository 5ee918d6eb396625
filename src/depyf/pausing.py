"""The pause of ``debug()``: whether it is answered, and a stop in the user's own frame.

It is answered by a debugger that runs the program, a custom ``breakpoint()``, a terminal, a notebook, or commands in a
pipe or file on standard input, which pdb reads to their end and then quits.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import os
import select
import stat
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any, cast

#: pdb has read commands from standard input in this process; the rest may be in its buffer, so it reads all.
_reading_commands = False


def can_pause(insist: bool = False) -> bool:
    """Return whether a pause is answered; ``insist``: by any open standard input, also an empty one."""
    return under_debugger() or _custom_breakpoint() or _pdb_is_answered(insist)


def stop() -> None:
    """Stop in the frame that entered the block: pdb at its next line, debugpy in the ``with``. Others stop here."""
    global _reading_commands
    frame = _frame_of_the_user()
    if _hook_of_pydevd(sys.breakpointhook) and "pydevd" in sys.modules:
        sys.modules["pydevd"].settrace(
            suspend=True, trace_only_current_thread=True, patch_multiprocessing=False, stop_at_frame=frame)
    elif _custom_breakpoint() or os.environ.get("PYTHONBREAKPOINT", "") not in ("", "pdb.set_trace"):
        breakpoint()  # noqa: T100  (whatever debugger the process is under takes over)
    else:
        _reading_commands = _reading_commands or not (_has_terminal() or _notebook_asks())
        _pdb().set_trace(frame)


def _frame_of_the_user() -> FrameType:
    frame = sys._getframe(1)
    while frame.f_back is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if module not in ("contextlib", __package__) and not module.startswith(f"{__package__}."):
            break
        frame = frame.f_back
    return frame


def _pdb() -> Any:
    """Return the pdb that runs the program, or a new one, which steps over our functions."""
    import pdb

    active = getattr(sys.gettrace(), "__self__", None)
    if isinstance(active, pdb.Pdb):
        return active
    class AtNextLine(pdb.Pdb):
        """pdb as it is up to 3.12: since 3.13 it would stop at the next instruction, which is still in the ``with``."""

        def set_stepinstr(self) -> None:
            self.set_step()

    # Since 3.13, leaving an inline debugger ends the process.
    options: dict[str, Any] = {"mode": "inline"} if "mode" in inspect.signature(pdb.Pdb.__init__).parameters else {}
    return AtNextLine(skip=["contextlib", str(__package__), f"{__package__}.*"], **options)


@contextlib.contextmanager
def breakpoints_that_stop(insist: bool = False) -> Iterator[None]:
    """Inside, ``breakpoint()`` is pdb's where debugpy is loaded without an editor, as in each notebook.

    Debugpy's would do nothing.
    """
    before = sys.breakpointhook
    if not (_is_idle(before) and _pdb_is_answered(insist)):
        yield
        return
    sys.breakpointhook = sys.__breakpointhook__
    try:
        yield
    finally:
        if sys.breakpointhook is sys.__breakpointhook__:
            sys.breakpointhook = before


# --- who answers -----------------------------------------------------------------------------------
def _pdb_is_answered(insist: bool) -> bool:
    if os.environ.get("PYTHONBREAKPOINT") == "0":
        return False
    return _has_terminal() or _notebook_asks() or _has_commands() or insist and _stdin_is_open()


def _has_terminal() -> bool:
    try:
        return _stdin_is_open() and sys.stdin.isatty()
    except (AttributeError, OSError, ValueError):  # replaced by something else
        return False


def _stdin_is_open() -> bool:
    return sys.stdin is not None and not getattr(sys.stdin, "closed", True)


def _has_commands() -> bool:
    """Return whether standard input is a pipe or a file with something to read now."""
    if not _stdin_is_open():
        return False
    if _reading_commands:
        return True
    try:
        number = sys.stdin.fileno()
        mode = os.fstat(number).st_mode
        if not (stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode)):
            return False
        ready, _, _ = select.select([number], [], [], 0)
        return bool(ready) and bool(cast("io.BufferedReader", sys.stdin.buffer).peek(1))
    except (AttributeError, OSError, ValueError):  # replaced by something else; no select for pipes on Windows
        return False


def _notebook_asks() -> bool:
    """Return whether this is the kernel of a notebook whose reader can be asked for input."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return bool(getattr(getattr(shell, "kernel", None), "_allow_stdin", False))


def under_debugger() -> bool:
    """Return whether a debugger watches this thread; a trace function can also be a coverage tool's."""
    if sys.gettrace() is not None:
        return _is_debugger(sys.gettrace())
    # (Asked before it has loaded pydevd, it does so, and replaces the hook of ``breakpoint()``.)
    debugpy = sys.modules.get("debugpy") if "pydevd" in sys.modules else None
    if debugpy is not None and getattr(debugpy, "is_client_connected", lambda: False)():
        return True
    monitoring = getattr(sys, "monitoring", None)
    return monitoring is not None and monitoring.get_tool(monitoring.DEBUGGER_ID) is not None


def _is_debugger(trace: object) -> bool:
    """Return whether a trace function is a debugger's."""
    import bdb

    if isinstance(getattr(trace, "__self__", None), bdb.Bdb):
        return True
    module = getattr(trace, "__module__", None) or type(trace).__module__
    return module.split(".")[0] in ("bdb", "pydevd", "_pydevd_bundle", "pydevd_bundle", "debugpy", "IPython")


def _custom_breakpoint() -> bool:
    """Return whether ``PYTHONBREAKPOINT`` or a tool (a notebook, a test runner) says what ``breakpoint()`` does."""
    if os.environ.get("PYTHONBREAKPOINT") == "0":
        return False
    return sys.breakpointhook is not sys.__breakpointhook__ and not _is_idle(sys.breakpointhook)


def _is_idle(hook: object) -> bool:
    return _hook_of_pydevd(hook) and not under_debugger()


def _hook_of_pydevd(hook: object) -> bool:
    return str(getattr(hook, "__module__", "")).split(".")[0] in ("debugpy", "pydevd", "_pydevd_bundle")
