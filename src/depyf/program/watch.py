"""A process that is watched from its first compilation to its end.

``prepare_debug`` is entered when the first frame is about to be compiled (``--check``: when compiled code is called for
the first time, as that call is judged, too): the directory is made then, so a process that compiles nothing leaves
nothing, and by then the program has set whatever it sets before it uses torch. It is left when the interpreter ends,
after everything that the program itself does at exit.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import sys
import threading
from types import FrameType, ModuleType
from typing import TYPE_CHECKING

from ..capture import apart
from ..capture.import_hook import when_imported
from ..capture.torch_private import first_compilation
from ..harmless import say
from ..unwarned import unwarned
from . import variables
from .options import STAGES, Options

if TYPE_CHECKING:
    from .recording import Recording


class Watch:
    """Watches this process, and those that it forks.

    Args:
        directory: where the dump goes, a full path.
        options: how.
        first: this is the first process of the program: it tells what became of the run.
        run: it was started by ``depyf run``.
    """

    def __init__(self, directory: str, options: Options, first: bool, run: bool) -> None:
        self.directory = directory
        self.options = options
        self.first = first
        self.run = run
        self._moment = first_compilation.CALL if options.check else first_compilation.FRAME
        self.launch = os.environ.get(variables.LAUNCH, "")
        self._recording: Recording | None = None
        self._left: Recording | None = None  # that of this process, once it is over
        self._trouble = ""
        self._ended = False
        self._writing = False
        self._killed = 0  # the signal that came while it was written
        self._lock = threading.RLock()

    def arm(self) -> None:
        """Wait for the first compilation or call."""
        atexit.register(self.end)  # the first to be registered is the last to be called
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forked)
        when_imported(self._moment.module, self._wait)
        first_compilation.before_first(self._begin, frames=False)

    def _wait(self, module: ModuleType) -> None:
        try:
            first_compilation.before_next(self._moment, module, self._begin)
        except AttributeError as error:  # another torch
            if self._moment is not first_compilation.FRAME:
                self._moment = first_compilation.FRAME
                when_imported(self._moment.module, self._wait)
                return
            self._trouble = f"this torch cannot be watched from outside ({error}); use depyf.prepare_debug"
            say(f"depyf: {self._trouble}")

    def _begin(self) -> None:
        """Enter :class:`Recording`: the moment has come."""
        with self._lock:
            if self._recording is not None or self._ended:
                return
            from ..run_files import choice_of
            from .recording import Recording

            given = self.options
            choice = choice_of(
                given.include, given.exclude, given.backends, tuple(STAGES[each] for each in given.stages))
            try:
                recording = Recording(
                    self.directory, choice, self.launch, first=self.first,
                    shows_progress=self.first and not given.quiet, internal_stages=given.internal_stages,
                    link=given.link, unsimplified=given.unsimplified, log_bytecode=given.log_bytecode,
                    caches=given.caches, page=given.page, check=given.check,
                    files=given.files or os.environ.get("DEPYF_FILES") or ("now" if self.first else None))
                with unwarned():
                    # What torch's own modules warn of while we import them is not the program's doing, and may be an
                    # error to it.
                    recording.__enter__()
            except Exception as error:
                self._trouble = f"this process was not watched: {error or type(error).__name__}"
                say(f"depyf: {self._trouble}")
                return
            self._recording = recording
            self._at_exit_of_workers()
            if self.first:
                self._on_sigterm()

    def _at_exit_of_workers(self) -> None:
        """Workers of ``multiprocessing`` that were forked end without a word (``os._exit``), but for its own."""
        process = sys.modules.get("multiprocessing.process")
        if process is not None and process.parent_process() is not None:
            from multiprocessing import util

            util.Finalize(None, self.end, exitpriority=-1000)

    # --- ends that the program does not know of ----------------------------------------------------
    def _on_sigterm(self) -> None:
        """Write what there is before the process ends by SIGTERM, where the program leaves that to the system.

        Not for ranks: their launcher ends those that hang in a collective with SIGTERM, and a handler in Python would
        not come to its turn there.
        """
        from ..records.environment import rank_and_world

        if rank_and_world() is not None or threading.current_thread() is not threading.main_thread():
            return
        if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
            signal.signal(signal.SIGTERM, self._terminated)

    def _terminated(self, number: int, frame: FrameType | None) -> None:
        if self._writing and not self._killed:
            self._killed = number  # once it is written; a second one does not wait
            return
        self.end()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    def _forked(self) -> None:
        """In the child of a fork: what the parent records stays the parent's.

        A first compilation of the child's own begins a dump of its own.
        """
        self._lock = threading.RLock()
        if apart.is_apart():
            self._ended = True  # what it compiles is only to be judged
            return
        recording, self._recording = self._recording, None
        self.first, self._left, self._trouble, self._ended = False, None, "", False
        if recording is None:
            return  # it waits still
        try:
            recording.__exit__(None, None, None)  # in another process this takes the hooks back, and no more
            if signal.getsignal(signal.SIGTERM) == self._terminated:
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
            self._wait(sys.modules[self._moment.module])
        except Exception:
            pass  # a child that is not watched

    # --- the end -----------------------------------------------------------------------------------
    def end(self) -> None:
        """Write what there is and, in the first process, tell of it. Called a second time it does nothing."""
        with self._lock:
            if self._ended:
                return
            self._ended = self._writing = True
            recording, self._recording = self._recording, None
        by_interrupt = _ends_by_interrupt()
        interrupted = False
        try:
            if recording is not None:
                recording.__exit__(None, None, None)
                self._left = recording
        except KeyboardInterrupt:
            interrupted = True
        try:
            if self.first and not self.options.quiet:
                self._tell(interrupted)
        except KeyboardInterrupt:
            pass
        except Exception as error:  # ours, and the program is over
            say(f"depyf: an internal error ({type(error).__name__}: {error}); the dump is in {self.directory}")
        self._writing = False
        if self._killed:
            self._terminated(self._killed, None)
        if by_interrupt:
            # The interpreter keeps in mind that the program was interrupted, and forgets it when text is executed, as
            # imports do (pythonrun.c, ``unhandled_keyboard_interrupt``): its status would be another.
            with contextlib.suppress(KeyboardInterrupt):
                exec("raise KeyboardInterrupt")

    def _tell(self, interrupted: bool) -> None:
        if not self.run and "torch" not in sys.modules and not os.path.isdir(self.directory):
            return  # nobody asked about this process, and it had nothing to do with torch
        from .kept import kept_lines, shown

        try:
            sys.stdout.flush()  # what the program printed stands above what we say
        except Exception:
            pass
        if interrupted:
            say(f"depyf: interrupted while the dump was written; `depyf report {shown(self.directory)}` makes "
                 "what is missing")
            return
        left = self._left
        if left is not None and left.kept is not None:
            say("\n".join(kept_lines(left.kept, left.path, left.files == "background")))
            return
        from . import summary

        known = {left.path: left.capture} if left is not None and left.capture is not None else {}
        captures = summary.captures(self.directory, self.launch, known)
        if captures:
            say("\n".join(summary.summary(captures)))
        elif self.run or "torch" in sys.modules:
            say("\n".join(summary.nothing(self._why_nothing())))

    def _why_nothing(self) -> str:
        """Return why nothing was compiled in this process."""
        if self._trouble:
            return self._trouble
        if "torch" not in sys.modules:
            import importlib.util

            if importlib.util.find_spec("torch") is None:
                return f"PyTorch is not installed for {sys.executable}"
            return "the program did not import torch, or could not"
        if first_compilation.FRAME.module not in sys.modules:
            return "the program did not use torch.compile"
        for name in ("TORCH_COMPILE_DISABLE", "TORCHDYNAMO_DISABLE"):
            if os.environ.get(name, "0") not in ("", "0"):
                return f"{name} is set: torch.compile does nothing"
        return ("torch.compile may have been used, but what it gave was not called, or what was called is on torch's "
                "list of functions to leave alone")


def _ends_by_interrupt() -> bool:
    """Return whether the interpreter ends because nobody caught a KeyboardInterrupt."""
    trace = getattr(sys, "last_traceback", None)
    return (isinstance(getattr(sys, "last_value", None), KeyboardInterrupt) and trace is not None
            # (an interactive shell may have printed one, too, but its own functions lie around it)
            and trace.tb_frame.f_code.co_name in ("<module>", "_run_module_as_main"))



