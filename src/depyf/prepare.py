"""``depyf.prepare_debug``: watch a program, write what torch.compile did with it."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import os
import sys
from types import TracebackType
from typing import TYPE_CHECKING, Any

from .capture import collector
from .capture.caches import CACHES
from .link.sessions import session_ended, session_started

if TYPE_CHECKING:
    from .capture.session import Session
    from .comparing.checking import CheckedCalls
    from .link.linker import Linker
    from .records.model import Capture
    from .views.dump.directory import Directory


class prepare_debug:
    """Context manager: what is compiled inside is written to a directory as source.

    Args:
        *args: ``prepare_debug("dir")``, or ``prepare_debug(fn, "dir")`` as in older versions (the function
            is accepted and not needed).
        dump_src_dir: the directory, by name.
        clean_wild_fx_code: do not write graphs that no compiled function calls.
        log_bytecode: write code objects (``marshal``) beside the texts: original, transformed, recompiled.
        internal_stages: write torch's internal graphs too.
        unsimplified: write each transformed function once more, with nothing simplified (``....unsimplified.py``).
        caches: what to do about torch's compile caches: ``"separate"``, ``"bypass"`` or ``"use"``
            (see :class:`depyf.capture.session.Session`).
        link: tie running code to the files, for :func:`depyf.debug` and tracebacks: the source of each transformed
            function runs where it is proven, so that a debugger can stop at every line and shows every name;
            where it is not, torch's bytecode runs with lines that point at the file, and ``notes.txt``, or ``debug()``,
            says so.
            (``"source"`` means the same as ``True``.) ``False``: nothing is tied.
        check: judge each compiled call that is made inside (``True``), or one in so many, against eager Python while
            the program runs on; ``checked_calls.txt`` says what was found, and a line on standard error.
        page: write the page ``index.html``. ``None``: unless that takes over two seconds;
            ``depyf report DIR`` makes it then.

    Raises:
        TypeError, ValueError: wrong arguments.
        ModuleNotFoundError: torch is not installed.
        TorchTooOld: it is older than 2.2.
        DirectoryError: the directory cannot be used.
    """

    def __init__(
        self, *args: Any, clean_wild_fx_code: bool = True, log_bytecode: bool = False,
        internal_stages: bool = False, caches: str = "separate", link: bool | str = True,
        unsimplified: bool = False, page: bool | None = None, check: bool | int = False,
        dump_src_dir: str | os.PathLike[str] | None = None,
    ) -> None:
        self.wanted = _directory_of(args if dump_src_dir is None else (*args, dump_src_dir))
        if caches not in CACHES:
            raise ValueError(f"caches={caches!r} is not known; give one of {', '.join(map(repr, CACHES))}")
        if link not in (True, False, "source"):
            raise ValueError(f'link={link!r} is not known; give True, False or "source"')
        self.clean_wild_fx_code = clean_wild_fx_code
        self.log_bytecode = log_bytecode
        self.internal_stages = internal_stages
        self.caches = caches
        self.link = link
        self.unsimplified = unsimplified
        self.page = page
        self.check = int(check)
        self.path = ""
        self._checks: CheckedCalls | None = None
        self._session: Session | None = None

    def __enter__(self) -> prepare_debug:
        if "torch" not in sys.modules and importlib.util.find_spec("torch") is None:
            raise ModuleNotFoundError("depyf.prepare_debug needs PyTorch: pip install torch")
        from .capture.session import Session
        from .capture.torch_private import versions
        from .link import Linker
        from .records.log import RecordLog
        from .views.dump.directory import Directory, run_directory

        if self._session is not None:
            raise RuntimeError("this prepare_debug is on already; make another one for a nested block")
        version = str(importlib.import_module("torch").__version__)
        untested = versions.support_status(version)
        self.path, notice = run_directory(self.wanted)
        if notice:
            self._put_elsewhere(notice)
        self._directory = Directory(self.path)
        self._linker = Linker()
        self._debug = session_started(self.path)
        self._session = Session(
            RecordLog(self.path, self._directory.record_failed), self._directory, self._linker if self.link else None,
            internal_stages=self.internal_stages, caches=self.caches, log_bytecode=self.log_bytecode,
            unsimplified=self.unsimplified)
        if untested:
            self._session.note(untested)
        try:
            self._session.attempt(self._session.start, None)
        except BaseException:  # the user's Ctrl-C
            self._session.detach()
            self._session = None
            session_ended(self._debug)
            raise
        if self.check:
            self._session.attempt(self._begin_checks, None)
        lacking = "" if not self._session.lacking else (
            f"torch {version} lacks {len(self._session.lacking)} of the names that depyf uses; `depyf doctor` shows "
            "what is lost")
        for message in (untested, lacking):
            if message:
                self._session.attempt(functools.partial(self._warn_once, message), None)
        return self

    def _begin_checks(self) -> None:
        from .comparing.checking import CheckedCalls

        checks = CheckedCalls(self.check)
        try:
            checks.start()
        except (RuntimeError, AttributeError) as error:
            self._say(f"depyf: {error}")
            return
        self._checks = checks

    def _end_checks(self) -> None:
        """Write what was found in the calls that were judged."""
        checks, self._checks = self._checks, None
        if checks is None:
            return
        checked = checks.stop()
        self._directory.write("checked_calls.txt", checked.text())
        self._say(f"depyf: {checked.summary()}: {os.path.join(self.path, 'checked_calls.txt')}")

    def _warn_once(self, text: str) -> None:
        from .capture.torch_private import versions

        if versions.warn_once(text):
            self._say(f"depyf: {text}")

    def _say(self, text: str) -> None:
        print(text, file=sys.stderr)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        session, self._session = self._session, None
        if session is None:
            return
        unlinked: dict[str, str] = {}
        try:
            if os.getpid() == session.process:
                session.attempt(self._end_checks, None)
                with collector.paused():
                    unlinked = self._write(session)
            else:
                session.detach()
        except Exception as problem:  # ours: the program's own exception, if any, goes on
            session._report(problem)
        finally:
            session.detach()
            session_ended(self._debug, self._linker.files, self._linker.functions, unlinked)

    def _write(self, session: Session) -> dict[str, str]:
        """End the session and writes what is made of the whole run.

        What could not be recorded in its final form is there as it was written while the run went on.

        Returns:
            The graphs that run without lines of a file (:func:`_unlinked`).
        """
        from .records import store
        from .records.model import Capture
        from .torch_text.recorded import read_records
        from .views import ranks
        from .views.dump import files as views

        capture = session.attempt(session.stop, Capture())
        if session.warned and os.path.exists(os.path.join(self.path, store.FILE)):
            whole = capture
            capture = session.attempt(lambda: store.filled(whole, read_records(self.path)), whole)
        whole = capture
        capture = session.attempt(lambda: self._chosen(whole, self._directory), whole)
        self._recorded(views.write_views(
            capture, self._directory, session._report, self._linker.notes, clean=self.clean_wild_fx_code,
            page=self.page, progress=self._progress))
        session.attempt(lambda: ranks.rank_ended(self.path), None)
        linked = capture
        nothing: dict[str, str] = {}
        return session.attempt(lambda: _unlinked(linked, self._linker), nothing)


    # --- for those who watch a whole program ---
    def _put_elsewhere(self, notice: str) -> None:
        """Take note that the directory held an earlier run."""
        self._say(notice)

    def _chosen(self, capture: Capture, directory: Directory) -> Capture:
        """Return the part of the run that is written."""
        return capture

    def _progress(self, what: str, done: int, total: int) -> None:
        """Take note of what is being written (:data:`depyf.views.dump.files.Progress`)."""

    def _recorded(self, capture: Capture) -> None:
        """Take note of what was written."""


def _unlinked(capture: Capture, linker: Linker) -> dict[str, str]:
    """Return graphs that run without lines of a file: ``{"__compiled_fn_1, Forward_graph": why}``."""
    linked = {(each.graph, each.stage) for each in linker.functions}
    unlinked = {}
    called = {name for function in capture.functions for frame in function.frames for entry in frame.entries
              for name in entry.graph_names}
    for graph in capture.graphs:
        if graph.name not in called:
            continue
        if graph.kernels:
            running = [f"kernel_{kernel.index}" for kernel in graph.kernels]
        else:
            stages = {stage.stage for stage in graph.stages}
            running = [stage for stage in ("Forward_graph", "Backward_graph") if stage in stages] or ["Captured_Graph"]
        for stage in running:
            if (graph.name, stage) not in linked:
                notes = [note for note in linker.notes if note.startswith(f"{graph.name} {stage}: ")]
                unlinked[f"{graph.name}, {stage}"] = notes[-1].partition(": ")[2] if notes else (
                    f"the backend {graph.backend} runs it in a way of its own" if graph.backend
                    else "its backend runs it in a way of its own")
    return unlinked


def _directory_of(args: tuple[Any, ...]) -> str:
    usage = 'use prepare_debug("some_dir") or prepare_debug(fn, "some_dir")'
    if len(args) == 1:
        directory = args[0]
    elif len(args) == 2 and callable(args[0]):
        directory = args[1]
    else:
        raise TypeError(f"prepare_debug got {len(args)} positional arguments of the wrong kind; {usage}")
    if not isinstance(directory, (str, os.PathLike)):
        raise TypeError(
            f"prepare_debug needs the name of a directory, not a {type(directory).__name__}; {usage}")
    path = os.fspath(directory)
    if not isinstance(path, str) or not path:
        raise ValueError(f"prepare_debug needs the name of a directory, not {path!r}; {usage}")
    return path
