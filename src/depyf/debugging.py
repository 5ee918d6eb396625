"""``depyf.debug()``: stop the program so that breakpoints can be set in what was dumped.

    with depyf.prepare_debug("dump"):
        fn(x)                 # compiles; files are written
    with depyf.debug():       # pauses here: set breakpoints in the files under "dump"
        fn(x)                 # they are hit

Inside, nothing is compiled: the files show what runs, and would not show anything newer.

    with depyf.debug(stop_on="nan"):
        fn(x)                 # pauses at, or raises from, the first line of a graph that makes a NaN of good values
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Iterator
from types import CodeType
from typing import TYPE_CHECKING, Any

from .link.sessions import DebugSession, active_session, ended_sessions, last_session
from .link.tracers import of_a_tool

if TYPE_CHECKING:
    from .watch.stop import BadValueFound as BadValueFound
    from .watch.values import StopOn

_inside = threading.local()
_MOST_FILES = 8


class DebugUsageError(RuntimeError):
    """``debug()`` was called where it cannot work."""


def __getattr__(name: str) -> Any:
    if name == "BadValueFound":  # imports torch
        from .watch.stop import BadValueFound

        return BadValueFound
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@contextlib.contextmanager
def debug(pause: bool = True, stop_on: StopOn | None = None) -> Iterator[None]:
    """Pause for breakpoints, then run the block without compiling anything.

    Args:
        pause: ``False`` in scripts and tests: set no pause, print nothing.
        stop_on: ``"nan"`` or ``"inf"``: do not pause now, but at the first line of a graph (or kernel call of a
            generated module) whose result holds one while what it took holds none; forward and backward. Or a
            function ``(name, value) -> bool``, asked for each tensor and number that a line makes, by the line's name
            for it. Where nobody can look (no terminal, no debugger, or ``pause=False``) the line raises instead.
            Values do not change; each line takes longer, and nothing is watched outside of the block. Functions
            that run uncompiled are not watched.

    Raises:
        DebugUsageError: there is nothing to debug, or ``prepare_debug`` is still on.
        BadValueFound: from the line at fault (see ``stop_on``).
        ValueError: ``stop_on`` is none of these.

    A call that fits no compiled version runs the original Python function; that is said once per
    function. Leaving the block, also by quitting the debugger, brings everything back as it was.
    """
    session = _session()
    from .capture.torch_private.stance import no_compilation

    _inside.depth = getattr(_inside, "depth", 0) + 1
    try:
        with contextlib.ExitStack() as stack:
            stack.enter_context(no_compilation(_Misses()))
            if pause:
                stack.enter_context(_breakpoints_that_stop())
            if stop_on is not None:
                from .watch.stop import Watch

                stack.enter_context(Watch(ended_sessions(), stop_on, lambda: pause and can_pause()))
            elif pause and _inside.depth == 1:
                _pause(session)
            yield
    finally:
        _inside.depth -= 1


def _session() -> DebugSession:
    if active_session() is not None:
        raise DebugUsageError(
            "depyf.debug() was entered inside depyf.prepare_debug(): functions are still being compiled. "
            "Leave the prepare_debug block first, then enter debug()."
        )
    session = last_session()
    if session is None:
        raise DebugUsageError(
            "depyf.debug() has nothing to debug yet. Run the program once under "
            'depyf.prepare_debug("some_dir"), then enter debug().'
        )
    return session


class _Misses:
    """Says once per function that it ran uncompiled."""

    def __init__(self) -> None:
        self._said: dict[int, CodeType] = {}

    def __call__(self, code: CodeType) -> None:
        from .capture.torch_private.touchpoints import DYNAMO

        if id(code) in self._said or of_a_tool(code, DYNAMO):
            return
        self._said[id(code)] = code
        name = getattr(code, "co_qualname", code.co_name)
        print(
            f"depyf: {name} ({code.co_filename}:{code.co_firstlineno}) has no compiled version for these "
            "inputs; the original function runs (nothing is compiled inside depyf.debug()).",
            file=sys.stderr,
        )


# --- the pause -------------------------------------------------------------------------------------
def _pause(session: DebugSession) -> None:
    print(message(session), file=sys.stderr, flush=True)
    if can_pause():
        _here()


def _here() -> None:
    """A frame of its own for the debugger to stop in; ``up`` leads to the user's ``with``."""
    breakpoint()  # noqa: T100  (whatever debugger the process is under takes over)


def message(session: DebugSession) -> str:
    """What to open, and how to set a breakpoint there."""
    files = [path for path in session.files if os.path.exists(path)]
    lines = [f"depyf: paused. Running code is linked to the files in {session.directory}"]
    if not can_pause():
        lines[0] = f"depyf: no debugger and no terminal, so no pause. Dumped files: {session.directory}"
    for path in files[:_MOST_FILES]:
        lines.append(f"    {path}")
    if len(files) > _MOST_FILES:
        lines.append(f"    ... and {len(files) - _MOST_FILES} more")
    if not files:
        lines.append("    (no linked file: nothing was compiled under prepare_debug)")
    if can_pause():
        example = files[0] if files else os.path.join(session.directory, "<file>.py")
        lines.append("Set breakpoints in them, then continue:")
        lines.append("    in an editor: open the file, click beside a line, press continue")
        lines.append(f"    in pdb:       break {example}:<line>   then: continue")
    return "\n".join(lines)


def can_pause() -> bool:
    """Whether someone is there to continue the program."""
    return _under_debugger() or _custom_breakpoint() or _has_terminal() or _notebook_asks()


@contextlib.contextmanager
def _breakpoints_that_stop() -> Iterator[None]:
    """Loaded, but with no editor connected, debugpy makes ``breakpoint()`` do nothing (every notebook loads it): where
    somebody can answer, ``breakpoint()`` is pdb's again inside."""
    before = sys.breakpointhook
    if not (_is_idle(before) and (_has_terminal() or _notebook_asks())):
        yield
        return
    sys.breakpointhook = sys.__breakpointhook__
    try:
        yield
    finally:
        if sys.breakpointhook is sys.__breakpointhook__:
            sys.breakpointhook = before


def _is_idle(hook: object) -> bool:
    module = str(getattr(hook, "__module__", "")).split(".")[0]
    return module in ("debugpy", "pydevd", "_pydevd_bundle") and not _under_debugger()


def _notebook_asks() -> bool:
    """Whether this is the kernel of a notebook whose reader can be asked for input."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return bool(getattr(getattr(shell, "kernel", None), "_allow_stdin", False))


def _under_debugger() -> bool:
    if sys.gettrace() is not None:
        return _is_debugger(sys.gettrace())
    # (Asked before it has loaded pydevd, it does so, and replaces the hook of ``breakpoint()``.)
    debugpy = sys.modules.get("debugpy") if "pydevd" in sys.modules else None
    if debugpy is not None and getattr(debugpy, "is_client_connected", lambda: False)():
        return True
    monitoring = getattr(sys, "monitoring", None)
    return monitoring is not None and monitoring.get_tool(monitoring.DEBUGGER_ID) is not None


def _is_debugger(trace: object) -> bool:
    """A trace function may also be a coverage tool's."""
    import bdb

    if isinstance(getattr(trace, "__self__", None), bdb.Bdb):
        return True
    module = getattr(trace, "__module__", None) or type(trace).__module__
    return module.split(".")[0] in ("bdb", "pydevd", "_pydevd_bundle", "pydevd_bundle", "debugpy", "IPython")


def _custom_breakpoint() -> bool:
    """``PYTHONBREAKPOINT`` or a tool (a notebook, a test runner) says what ``breakpoint()`` does."""
    if os.environ.get("PYTHONBREAKPOINT") == "0":
        return False
    return sys.breakpointhook is not sys.__breakpointhook__ and not _is_idle(sys.breakpointhook)


def _has_terminal() -> bool:
    if os.environ.get("PYTHONBREAKPOINT") == "0":
        return False
    try:
        return sys.stdin is not None and sys.stdin.isatty()
    except (ValueError, OSError, AttributeError):  # closed, or replaced by something else
        return False
