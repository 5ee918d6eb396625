"""``depyf.prepare_debug``: watch a program, write what torch.compile did with it."""

from __future__ import annotations

import contextlib
import copy
import importlib
import importlib.util
import inspect
import os
import sys
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any

from . import guarded
from .capture import CACHES
from .guarded import guarded_call, unwarned, warn_of
from .harmless import say
from .link.sessions import session_ended, session_started
from .termination import at_sigterm, postponed

if TYPE_CHECKING:
    from .capture.session import Session
    from .comparing.checking import CheckedCalls
    from .records.model import Capture
    from .views.dump.folder import Folder


FILES = ("now", "later")  #: When the files are made.


class prepare_debug(contextlib.ContextDecorator):
    """Context manager, and decorator: what is compiled inside is written to a directory as source.

    Args:
        *args: ``prepare_debug("dir")``; as in depyf up to 0.20, ``clean_wild_fx_code`` and ``log_bytecode`` may follow,
            and a function, which is not needed, may come first (or by keyword, ``func``).
        dump_src_dir: the directory, by name.
        clean_wild_fx_code: do not write graphs that no compiled function calls, unless their compilation failed.
        log_bytecode: write code objects (``marshal``) beside the texts: original, transformed, recompiled.
        internal_stages: write torch's internal graphs too.
        unsimplified: write each transformed function once more, with nothing simplified (``....unsimplified.py``).
        caches: what to do about torch's compile caches: ``"separate"``, ``"bypass"`` or ``"use"``
            (see :class:`depyf.capture.session.Session`).
        link: link running code to the files. ``None``: when :func:`depyf.debug` is entered, or at once under a
            debugger. ``True`` (or ``"source"``): graphs are linked as soon as they are compiled, so that tracebacks
            name their files. Inside ``debug()`` the source of each transformed function runs where it is proven, so
            that a debugger can stop at every line and shows every name; where it is not, torch's bytecode runs with
            lines that point at the file, and ``debug()`` says so. ``False``: nothing is linked.
        check: compare each compiled call inside (``True``), or one in so many, with eager Python while the program
            runs on; ``checked_calls.txt`` says what was found, and a line on standard error.
        page: write the page ``index.html``. ``None``: unless that takes over two seconds;
            ``depyf report DIR`` makes it then.
        files: when the files are made of what was recorded. ``"now"``: before the block is left. ``"later"``: by
            :meth:`wait`, ``depyf report DIR``, or any other command that reads the directory; for programs that are
            always watched. ``None``: ``DEPYF_FILES``, or else ``"now"``.

    Raises:
        TypeError, ValueError: wrong arguments.
        ModuleNotFoundError: torch is not installed.
        TorchTooOld: it is older than 2.6.
        DirectoryError: the directory cannot be used.
    """

    shows_progress, first = True, True  # What differs for a :class:`Recording`:
    #: Whether a summary follows, which says more, of :attr:`capture`.
    is_summarised = False
    choice: tuple[str, ...] = ()

    def __init__(
        self, *args: Any, clean_wild_fx_code: bool = True, log_bytecode: bool = False,
        internal_stages: bool = False, caches: str = "separate", link: bool | str | None = None,
        unsimplified: bool = False, page: bool | None = None, check: bool | int = False,
        files: str | None = None, dump_src_dir: str | os.PathLike[str] | None = None, func: Any = None,
    ) -> None:
        self.wanted, self.clean_wild_fx_code, self.log_bytecode = _arguments(
            args, dump_src_dir, clean_wild_fx_code, log_bytecode)
        wanted = [("caches", caches, CACHES), ("link", link, (True, False, None, "source")),
                  ("DEPYF_FILES" if files is None else "files", files or os.environ.get("DEPYF_FILES") or "now", FILES)]
        for name, value, known in wanted:
            if value not in known:
                raise ValueError(f"{name}={value!r} is not known; give {' or '.join(map(repr, known))}")
        self.files = wanted[2][1]
        self.internal_stages = internal_stages
        self.caches = caches
        self.link = link
        self.unsimplified = unsimplified
        self.page = page
        try:
            self.check = int(check)
        except (TypeError, ValueError):
            raise ValueError(f"check={check!r} is not known; give True, False or a number of calls") from None
        self.path = ""
        self.kept: int | None = None  # the number of compilations of which only records were written
        self.capture: Capture | None = None  # what was written, if a summary follows
        self._checks: CheckedCalls | None = None
        self._on = False
        self._debugged = False
        self._untested = ""
        self._trouble = ""  # why the run could not be watched
        self._wait: Callable[[], None] | None = None  # ends the wait for the first compilation
        self._session: Session | None = None

    def __call__(self, func: Any) -> Any:
        """Return the function with each of its calls as a block.

        Raises:
            TypeError: what it returns runs later, outside the block.
        """
        if isinstance(func, type) or any(is_kind(func) for is_kind in (
                inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction)):
            raise TypeError(f"prepare_debug cannot decorate {getattr(func, '__qualname__', func)}: its body does not "
                            "run during the call. Write `with depyf.prepare_debug(...):` inside it")
        return super().__call__(func)

    def _recreate_cm(self) -> prepare_debug:
        """Return another one of the same arguments, for each call of a decorated function."""
        return copy.copy(self)

    def __enter__(self) -> prepare_debug:
        """Make the directory, and wait for the first compilation to begin the session."""
        if "torch" not in sys.modules and importlib.util.find_spec("torch") is None:
            raise ModuleNotFoundError("depyf.prepare_debug needs PyTorch: pip install torch")
        with guarded.paused():
            from .capture.torch_private import private_api, trace_events
            from .records.run_directory import run_directory
            from .views.dump.folder import Folder

        if self._on:
            raise RuntimeError("this prepare_debug is on already; make another one for a nested block")
        self._untested = private_api.support_status(_torch_version())
        self.path, notice = run_directory(self.wanted)
        if notice:
            self._say_now(notice)
        self._folder: Folder = Folder(self.path)
        self._debug = session_started(self.path)
        self._debug.show = self._show
        self._process = os.getpid()
        self._on = True
        self._leave_sigterm = at_sigterm(self._terminated) if self.first else lambda: None
        guarded_call(lambda: self._warn_once(self._untested), None, self._failed)
        if self.check:
            guarded_call(self._begin_checks, None, self._failed)
        self._wait = guarded_call(lambda: trace_events.before_first(self._begin), None, self._failed)
        return self

    def _begin(self) -> None:
        """Begin the session, once. An internal error costs the dump, not the program."""
        if self._on and self._session is None and os.getpid() == self._process:
            guarded_call(self._begin_session, None, self._failed)

    def _show(self, name: str, shown: Any, graph: Any) -> None:
        """Record a stage, by :func:`depyf.stage`."""
        self._begin()
        if self._session is not None:
            self._session.show(name, shown, graph)

    def _begin_session(self) -> None:
        from .pausing import under_debugger

        self._debugged = guarded_call(under_debugger, False, lambda error: warn_of(
            error, "and graphs are linked to their files when depyf.debug() is entered"))
        # (Warnings of torch's modules that these import may be errors to the program.)
        with unwarned(), guarded.paused():
            from .capture.session import Session
            from .capture.torch_private import cache_entries
            from .link.linker import Linker

            linker = None if self.link is False else Linker(at_once=self.link is not None or self._debugged)
            self._debug.linker = linker
            # (Older torches take no linked code of functions that they have compiled.)
            at_once = linker is not None and not cache_entries.can_replace()
            # (Files are written while the program runs only where running code names them.)
            if at_once or self.link in (True, "source") or self.log_bytecode or self._debugged:
                from .views.dump.directory import Directory

                self._folder = Directory(self.path)
        session = Session(
            self._folder, linker, internal_stages=self.internal_stages, caches=self.caches,
            log_bytecode=self.log_bytecode, at_once=at_once)
        if self._untested:
            session.note(self._untested)
        try:
            session.attempt(session.start, None)
        except BaseException:  # the user's Ctrl-C
            session.detach()
            raise
        self._session = session

    def _begin_checks(self) -> None:
        from .comparing.checking import CheckedCalls

        checks = CheckedCalls(self.check)
        try:
            checks.start()
            self._checks = checks
        except (RuntimeError, AttributeError) as error:
            say(f"depyf: {error}")

    def _end_checks(self, session: Session | None) -> None:
        """Write what was found in the calls that were checked."""
        checks, self._checks = self._checks, None
        if checks is None:
            return
        from .comparing.checking import FILE
        from .records.run_directory import shown
        from .records.store import WRONG_RESULTS

        checked = checks.stop()
        self._folder.write(FILE, checked.text())
        say(f"depyf: {checked.summary()}: {shown(os.path.join(self.path, FILE))}")
        if checked.different:
            self._say_now(f"  {checked.sentence()}")
            if session is not None:
                session.note(WRONG_RESULTS + checked.sentence())

    def _warn_once(self, text: str) -> None:
        from .capture.torch_private import private_api

        if text and self.first and private_api.warn_once(text):
            say(f"depyf: {text}")

    def _failed(self, error: Exception) -> None:
        """Report an internal error."""
        if self._session is not None:
            self._session._report(error)
            return
        if not self._trouble:
            warn_of(error, "and is not watched")
        self._trouble = self._trouble or f"internal error: {type(error).__name__}: {error}"

    def _terminated(self) -> None:
        """End the block before SIGTERM ends the process."""
        self.__exit__(None, None, None)

    def _say_now(self, text: str) -> None:
        """Print what the summary after a watched program says."""
        if not self.is_summarised:
            say(text)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with postponed():
            if self._on:
                self._on = False
                self._end()

    def _end(self) -> None:
        if self._wait is not None:
            guarded_call(self._wait, None, self._failed)
        session, self._session = self._session, None
        try:
            if os.getpid() != self._process:
                return
            guarded_call(lambda: self._end_checks(session), None, self._failed)
            if session is None:
                self._write_nothing()
            else:
                with guarded.paused():
                    self._write(session)
        except KeyboardInterrupt:
            self._say_now(f"depyf: interrupted while files were written; `depyf report {self.path} -o NEW_DIR` writes "
                          "them")
            raise
        except Exception as problem:  # (the program's own exception, if any, goes on)
            self._failed(problem) if session is None else session._report(problem)
        finally:
            if session is not None:
                session.detach()
            session_ended(self._debug)
            self._leave_sigterm()

    def wait(self) -> None:
        """Make the files if that was left for later (``files="later"``).

        Raises:
            RuntimeError: the block was not left yet.
        """
        if self._on or not self.path:
            raise RuntimeError("prepare_debug.wait(): leave the block first; its files are made of the whole run")
        from .run_files import make

        make(self.path)

    def _write_nothing(self) -> None:
        """Write the dump of a run in which nothing was compiled."""
        from .records.run_directory import FILE, environment, first_line, last_lines, rank_and_world
        from .views.dump.folder import NOTES, index_of_nothing

        facts = environment()
        notes = list(filter(None, [self._untested, self._trouble]))
        self._folder.write(FILE, "".join([first_line(facts), *last_lines(notes)]))
        self._folder.write("index.md", index_of_nothing(facts, notes, self._trouble))
        if notes:
            self._folder.write(NOTES, "\n".join(notes) + "\n")
        self._folder.report_missing()
        if rank_and_world() is not None:
            from .views import ranks

            ranks.rank_ended(self.path)

    def _write(self, session: Session) -> None:
        from .link.sessions import RunningStage
        from .records import store
        from .records.run_directory import environment
        from .run_files import make
        from .views.dump.folder import INDEX, index_of_records

        session.attempt(lambda: session.end(self._options()), None)
        nothing: tuple[RunningStage, ...] = ()
        self._debug.stages = session.attempt(
            lambda: tuple(RunningStage(*each) for each in session.graphs.running()), nothing)
        if session.lacking:
            self._warn_once(
                f"torch {_torch_version()} lacks {len(session.lacking)} of the names that depyf uses; `depyf doctor` "
                "shows what is lost")
        # (Records that could not be written are in this process only, and so is an internal error.)
        if self.files == "now" or session.warned or not store.is_unwritten(self.path):
            session.attempt(lambda: self._write_now(session), None)
            return
        session.close()
        self._folder.write(INDEX, index_of_records(environment()))
        self._folder.report_missing()
        path = self.path
        self._debug.write = lambda: make(path)
        self.kept = session.events.count()

    def _options(self) -> tuple[str, ...]:
        """Return how files are made of the records (``EndOfRecording.options``)."""
        from .records.model import EndOfRecording
        from .run_files import KEEP_WILD, NO_PAGE, PAGE

        page = "" if self.page is None else PAGE if self.page else NO_PAGE
        wild = "" if self.clean_wild_fx_code else KEEP_WILD
        return tuple(filter(None, (wild, EndOfRecording.UNSIMPLIFIED if self.unsimplified else "", page))) + self.choice

    def _write_now(self, session: Session) -> None:
        from .records import store
        from .records.model import Capture
        from .run_files import write
        from .views import ranks
        from .views.progress import Progress

        whole = session.attempt(session.capture, Capture())
        session.close()
        capture = whole
        if session.warned and os.path.exists(os.path.join(self.path, store.FILE)):
            capture = session.attempt(lambda: store.filled(whole, store.read(self.path)), whole)
        linker = self._debug.linker
        bar = Progress(2, sys.stderr, self.shows_progress, delay=1)  # (on a terminal)
        try:
            written = write(capture, self.path, session._report, linker.notes if linker is not None else (),
                            lambda *step: session.attempt(lambda: bar.writing(*step), None), self._folder)
            self.capture = written if self.is_summarised else None
        finally:
            session.attempt(bar.clear, None)
        session.attempt(lambda: ranks.rank_ended(self.path), None)


class Recording(prepare_debug):
    """A ``prepare_debug`` for a process that ``depyf run``, the environment or pytest watches.

    It is entered for the first compilation, and followed by a summary.

    Args:
        directory: where the dump goes.
        choice: what is written of it (:data:`depyf.run_files.CHOICES`).
        launch: the name of the launch, which goes into the mark of the directory: so the first process finds what the
            others wrote.
        first: this is the first process of the program, which reports for all, and is the one that SIGTERM ends.
        shows_progress: show what is being written, on a terminal and if it takes long.
        terminated: called when the first process is about to end by SIGTERM.
        **options: as of :class:`prepare_debug`.
    """

    is_summarised = True

    def __init__(
        self, directory: str, choice: tuple[str, ...], launch: str, *, first: bool = True, shows_progress: bool = False,
        terminated: Callable[[], None] | None = None, **options: Any
    ) -> None:
        super().__init__(directory, **options)
        self.choice, self.first, self.shows_progress, self._launch = choice, first, shows_progress, launch
        self._end_of_program = terminated

    def __enter__(self) -> Recording:
        """Begin at once."""
        from .records.run_directory import MARK

        with unwarned():  # (warnings of torch's modules that we import may be errors to the program)
            super().__enter__()
            self._begin()
        with contextlib.suppress(OSError), open(os.path.join(self.path, MARK), "a", encoding="utf-8") as file:
            file.write(f"launch {self._launch}\n")  # (without it the summary leaves this process out)
        return self

    def _terminated(self) -> None:
        (self._end_of_program or super()._terminated)()


def _torch_version() -> str:
    return str(importlib.import_module("torch").__version__)


def _arguments(args: tuple[Any, ...], directory: Any, *flags: bool) -> tuple[str, bool, bool]:
    """Return the directory and two flags, which ``args`` may begin with."""
    usage = 'use prepare_debug("some_dir") or prepare_debug(fn, "some_dir")'
    rest = list(args[1:] if args and callable(args[0]) else args)
    if directory is None and rest:
        directory = rest.pop(0)
    if len(rest) > len(flags) or not all(isinstance(flag, int) for flag in rest):
        raise TypeError(f"prepare_debug got {len(args)} positional arguments of the wrong kind; {usage}")
    if not isinstance(directory, (str, os.PathLike)):
        raise TypeError(f"prepare_debug needs the name of a directory, which {directory!r:.60} is not; {usage}")
    path = os.fspath(directory)
    if not isinstance(path, str) or not path:
        raise ValueError(f"prepare_debug needs the name of a directory, not {path!r}; {usage}")
    clean, log = map(bool, (*rest, *flags[len(rest):]))
    return path, clean, log
