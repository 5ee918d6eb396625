"""A process that is watched from its first compilation to its end.

``prepare_debug`` is entered when the first frame is about to be compiled (``--check``: when compiled code is called for
the first time, as that call is judged, too): the directory is made then, so a process that compiles nothing leaves
nothing, and the program has made its settings. It is left when the interpreter ends, after all that the program does at
exit.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading
from importlib.machinery import BuiltinImporter
from typing import TYPE_CHECKING

from ..capture import forked
from ..capture.torch_private import trace_events
from ..harmless import say
from ..termination import postponed
from .options import AS_GIVEN, STAGES, Options
from .start import LAUNCH

if TYPE_CHECKING:
    from ..prepare import Recording


class Watch:
    """Watches this process, and those that it forks."""

    def __init__(self, directory: str, options: Options, first: bool, run: bool) -> None:
        self.directory = directory  # where the dump goes, a full path
        self.options = options
        self.first = first  # this is the first process of the program, which prints the summary
        self.run = run  # it was started by `depyf run`
        self._moment = trace_events.CALL if options.check else trace_events.FRAME
        self.launch = os.environ.get(LAUNCH, "")
        self._recording: Recording | None = None
        self._left: Recording | None = None  # that of this process, once it is over
        self._trouble = ""
        self._ended = False
        self._lock = threading.RLock()

    def arm(self) -> None:
        """Wait for the first compilation or call."""
        atexit.register(self.end)  # the first to be registered is the last to be called
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forked)
        trace_events.before_first(self._begin, self._moment)

    def _begin(self) -> None:
        """Enter :class:`Recording`."""
        with self._lock:
            if self._recording is not None or self._trouble or self._ended:
                return
            from ..prepare import Recording
            from ..run_files import CHOICES

            given = self.options
            chosen = given.include, given.exclude, given.backend, [STAGES[each] for each in given.stage]
            choice = tuple(f"{kind} {each}" for kind, patterns in zip(CHOICES, chosen) for each in patterns)
            try:
                recording = Recording(
                    self.directory, choice, self.launch, first=self.first,
                    shows_progress=self.first and not given.quiet, terminated=self.end,
                    **{name: getattr(given, name) for name in AS_GIVEN})
                recording.__enter__()
            except Exception as error:
                self._trouble = f"this process was not watched: {error or type(error).__name__}"
                say(f"depyf: {self._trouble}")
                return
            self._recording = recording
            # (A forked worker of ``multiprocessing`` calls its own finalizers only, then ``os._exit``.)
            process = sys.modules.get("multiprocessing.process")
            if process is not None and process.parent_process() is not None:
                from multiprocessing import util

                util.Finalize(None, self.end, exitpriority=-1000)

    def _forked(self) -> None:
        """In the child of a fork, leave the parent's recording and wait for the child's own first compilation."""
        self._lock = threading.RLock()
        if forked.is_judging():
            self._ended = True  # a compilation only to be judged
            return
        recording, self._recording = self._recording, None
        self.first, self._left, self._trouble, self._ended = False, None, "", False
        if recording is None:
            return  # it is still waiting
        try:
            recording.__exit__(None, None, None)  # in another process this only removes the hooks
            trace_events.before_first(self._begin, self._moment)
        except Exception:
            pass  # a child that is not watched

    # --- the end -----------------------------------------------------------------------------------
    def end(self) -> None:
        """Write the files and, in the first process, the summary. Called a second time it does nothing."""
        with postponed():
            self._end()

    def _end(self) -> None:
        with self._lock:
            if self._ended:
                return
            self._ended = True
            recording, self._recording = self._recording, None
        by_interrupt = isinstance(_uncaught(), KeyboardInterrupt)
        interrupted = False
        try:
            if recording is not None:
                recording.__exit__(None, None, None)
                self._left = recording
        except KeyboardInterrupt:
            interrupted = True
        try:
            if self.first and not self.options.quiet:
                self._print_summary(interrupted)
        except KeyboardInterrupt:
            pass
        except Exception as error:  # ours, and the program is over
            say(f"depyf: an internal error ({type(error).__name__}: {error}); the dump is in {self.directory}")
        if by_interrupt:
            # The interpreter remembers that the program was interrupted, but forgets it when text is executed, as by
            # imports (pythonrun.c, ``unhandled_keyboard_interrupt``): the exit status would be another.
            with contextlib.suppress(KeyboardInterrupt):
                exec("raise KeyboardInterrupt")

    def _print_summary(self, interrupted: bool) -> None:
        if not self.run and "torch" not in sys.modules and not os.path.isdir(self.directory):
            return  # a process without torch that was not started by ``depyf run``
        from ..records.run_directory import shown
        from ..views.markdown import count

        try:
            sys.stdout.flush()  # the program's output comes before the summary
        except Exception:
            pass
        if interrupted:
            say(f"depyf: interrupted while the dump was written; `depyf report {shown(self.directory)}` makes "
                 "what is missing")
            return
        left = self._left
        if left is not None and left.kept is not None:
            path = shown(left.path)
            say(f"depyf: {count(left.kept, 'compilation')} recorded in {path}{os.sep}\n  its files are made when they "
                f"are wanted: depyf explain {path}, depyf open {path}, or depyf report {path}")
            return
        from . import summary

        known = {left.path: left.capture} if left is not None and left.capture is not None else {}
        captures = summary.captures(self.directory, self.launch, known)
        if captures:
            say("\n".join(summary.summary(captures)))
        elif self.run or "torch" in sys.modules:
            say(f"depyf: {self._why_nothing()}\n  nothing was written to {shown(self.directory)}{os.sep}")

    def _why_nothing(self) -> str:
        """Return a clause on why nothing was compiled."""
        if self._trouble:
            return self._trouble
        error = _uncaught()
        # (``__main__`` has the program's loader once it is found; a program on standard input has none.)
        loader = getattr(sys.modules.get("__main__"), "__loader__", None)
        if error is None and loader is BuiltinImporter and sys.orig_argv[1:2] != ["-"]:
            return "Python did not start the program, so nothing was run"
        if "torch" not in sys.modules:
            import importlib.util

            if importlib.util.find_spec("torch") is None:
                return f"PyTorch is not installed for {sys.executable}, so nothing could be compiled"
            how = f"with {type(error).__name__} before it imported" if error is not None else "without importing"
            return f"the program ended {how} torch, so nothing could be compiled"
        if error is not None:
            return f"the program imported torch, but ended with {type(error).__name__} before anything was compiled"
        if trace_events.FRAME.first_place[0] not in sys.modules:
            return "the program imported torch, but did not use torch.compile"
        for name in ("TORCH_COMPILE_DISABLE", "TORCHDYNAMO_DISABLE"):
            if os.environ.get(name, "0") not in ("", "0"):
                return f"nothing was compiled: {name} is set, so torch.compile does nothing"
        return ("the program imported torch, but nothing was compiled: what torch.compile returned was not called, or "
                "torch leaves what was called alone")


def _uncaught() -> BaseException | None:
    """Return the exception that ends the interpreter, unless it is ``SystemExit``.

    (Shells and pytest also set it, but from their own functions.)
    """
    error, trace = getattr(sys, "last_value", None), getattr(sys, "last_traceback", None)
    if trace is None:  # the script is not valid Python, so nothing ran; or it is text that a shell was given
        return error if isinstance(error, SyntaxError) and not str(error.filename).startswith("<") else None
    frame = trace.tb_frame
    return error if frame.f_back is None and frame.f_code.co_name in ("<module>", "_run_module_as_main") else None
