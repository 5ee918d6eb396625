"""``depyf.debug()``: stop the program so that breakpoints can be set in what was dumped.

    with depyf.prepare_debug("dump"):
        fn(x)                 # compiles; files are written
    with depyf.debug():       # pauses here: set breakpoints in the files under "dump"
        fn(x)                 # they are hit

Inside, nothing is compiled: the files show what runs.

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
from typing import TYPE_CHECKING

from . import pausing
from .guarded import guarded_call, warn_of
from .harmless import say
from .link.sessions import DebugSession, active_sessions, ended_sessions, linked_code_runs

if TYPE_CHECKING:
    from .watch.stop import StopOn

_inside = threading.local()
_MOST_FILES = 8


class DebugUsageError(RuntimeError):
    """``debug()`` was called where it cannot work."""


@contextlib.contextmanager
def debug(pause: bool | None = None, stop_on: StopOn | None = None) -> Iterator[None]:
    """Pause for breakpoints, then run the block without compiling anything.

    Args:
        pause: by default where someone answers: under a debugger, in a terminal or a notebook, or where a pipe or file
            on standard input has commands, which pdb then reads to their end, where it quits. ``True`` insists: pdb
            reads from any open standard input, and waits for what is written later. ``False``, for scripts and
            tests, sets no pause and prints nothing.
        stop_on: ``"nan"`` or ``"inf"``: do not pause now, but at the first line of a graph (or kernel call of a
            generated module) whose result contains one while its operands contain none; forward and backward. Or a
            function ``(name, value) -> bool``, called for each tensor and number that a line makes, by the line's name
            for it. Where no one can look (no one answers, or ``pause=False``) the line raises instead.
            Values do not change; each line takes longer, and nothing is watched outside of the block. Functions
            that run uncompiled are not watched.

    Raises:
        DebugUsageError: there is nothing to debug, ``prepare_debug`` is still on, or ``pause=True`` where nothing
            can pause.
        BadValueFound: from the line at fault (see ``stop_on``).
        ValueError: ``stop_on`` is none of these.

    A call that fits no compiled version runs the original Python function; that is said once per
    function. Leaving the block, also by quitting the debugger, brings everything back as it was.
    """
    if active_sessions():
        raise DebugUsageError(
            "depyf.debug() was entered inside depyf.prepare_debug(): functions are still being compiled. "
            "Leave the prepare_debug block first, then enter debug().")
    if not ended_sessions():
        raise DebugUsageError(
            "depyf.debug() has nothing to debug yet. Run the program once under "
            'depyf.prepare_debug("some_dir"), then enter debug().')
    if pause and os.environ.get("PYTHONBREAKPOINT") != "0" and not pausing.can_pause(insist=True):
        raise DebugUsageError(
            "depyf.debug(pause=True) cannot pause: standard input is closed and the program is under no debugger. "
            "Start it in a terminal, give it commands for pdb on standard input (python program.py < commands), or "
            "leave pause=True out to pause only where that is possible.")
    for each in ended_sessions():
        guarded_call(each.get_ready, None, lambda error: warn_of(error, "and breakpoints in the dump may not be hit"))
    from .capture.torch_private.hooks import no_compilation

    _inside.depth = getattr(_inside, "depth", 0) + 1
    try:
        with contextlib.ExitStack() as stack:
            stack.enter_context(no_compilation(_Misses()))
            for function, why in stack.enter_context(linked_code_runs()).items():
                say(f"depyf: {function.co_name} ({function.co_filename}:{function.co_firstlineno}) {why}, so torch's "
                    "own code runs: breakpoints in the files of its transformed code are not hit")
            if pause is not False:
                stack.enter_context(pausing.breakpoints_that_stop(insist=bool(pause)))
            if stop_on is not None:
                from .watch.stop import Watch

                stack.enter_context(Watch(
                    ended_sessions(), stop_on, lambda: pause is not False and pausing.can_pause(insist=bool(pause))))
            elif pause is not False and _inside.depth == 1:
                answered = pausing.can_pause(insist=bool(pause))
                say(message(ended_sessions()[-1], answered))
                if answered:
                    pausing.stop()
            yield
    finally:
        _inside.depth -= 1


class _Misses:
    """Reports once per function that it ran uncompiled: one that has other versions, or that ``torch.compile`` runs.

    (Debuggers and coverage tools also run functions there.)
    """

    def __init__(self) -> None:
        self._reported: dict[int, CodeType] = {}

    def __call__(self, code: CodeType) -> None:
        from .capture.torch_private.cache_entries import cache_entries
        from .capture.torch_private.compiled_callables import outermost_call

        call = outermost_call(sys._getframe(1))
        function = getattr(call.function, "__func__", call.function) if call is not None else None
        if id(code) in self._reported or not (getattr(function, "__code__", None) is code or cache_entries(code)):
            return
        self._reported[id(code)] = code
        name = getattr(code, "co_qualname", code.co_name)
        say(f"depyf: {name} ({code.co_filename}:{code.co_firstlineno}) has no compiled version for these "
            "inputs; the original function runs (nothing is compiled inside depyf.debug()).")


def message(session: DebugSession, answered: bool) -> str:
    """Return the message that says what to open, and how to set a breakpoint there."""
    files = [path for path in [*(session.linker.files if session.linker else ())] if os.path.exists(path)]
    lines = [f"depyf: paused. Running code is linked to the files in {session.directory}"]
    if not answered:
        lines[0] = ("depyf: no pause: no debugger, no terminal and no commands on standard input (debug(pause=True) "
                    f"waits for them). Dumped files: {session.directory}")
    for path in files[:_MOST_FILES]:
        lines.append(f"    {path}")
    if len(files) > _MOST_FILES:
        lines.append(f"    ... and {len(files) - _MOST_FILES} more")
    if not files:
        lines.append("    (no linked file: nothing was compiled under prepare_debug)")
    if answered:
        example = files[0] if files else os.path.join(session.directory, "<file>.py")
        lines.append("Set breakpoints in them, then continue:")
        lines.append("    in an editor: open the file, click beside a line, press continue")
        lines.append(f"    in pdb:       break {example}:<line>   then: continue")
    return "\n".join(lines)
