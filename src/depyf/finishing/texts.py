"""Texts of transformed code: each is made once, the long ones are kept on disk, many are made by several processes."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ..bytecode.code import Code
from ..bytecode.packed import unpacked
from ..guarded import guarded_call
from ..records.model import Bytecode
from .kept_texts import SHORTEST, KeptTexts, Written, key_of

#: Runs an action and returns what it returns; where it raises, reports that and returns the second argument.
Attempt = Callable[[Callable[[], Any], Any], Any]
#: Bytes of bytecode for which further processes are worth their start: about a second's work.
_MANY = 30_000
#: More processes than these wait for each other.
_MOST_PROCESSES = 16


class Texts:
    """Makes the texts of transformed code.

    Args:
        version: of the Python that made the code.
        unsimplified: a text with nothing simplified is wanted, too.
        attempt: runs what may fail.
        kept: texts of earlier runs.
    """

    def __init__(
        self, version: tuple[int, int], unsimplified: bool, attempt: Attempt,
        kept: KeptTexts,
    ) -> None:
        self._version = version
        self._unsimplified = unsimplified
        self._attempt = attempt
        self._kept = kept
        self._made: dict[str, Written] = {}

    def of(self, bytecode: Bytecode) -> Written:
        """Return the text of what Dynamo made.

        Raises:
            ValueError: a name that stands in the text is no name, or the code cannot be read.
        """
        code, key = self._read(bytecode)
        known = self._known(key, code)
        if known is None:
            known = self._new(bytecode, code, self._attempt)
            self._keep(key, code, known)
        return known

    def make(self, bytecodes: Iterable[Bytecode], processes: int, progress: Callable[[int, int], None]) -> None:
        """Make texts by several processes, where there is enough to do. What fails there is left to :meth:`of`.

        Args:
            bytecodes: what is wanted.
            processes: at most; 1: nothing is done here.
            progress: called with how many are done, and of how many.
        """
        if processes < 2:
            return
        lacking: dict[str, tuple[Bytecode, Code]] = {}
        for bytecode in bytecodes:
            read = guarded_call(lambda: self._read(bytecode), None, lambda _: None)
            if read is not None and self._known(read[1], read[0]) is None:
                lacking.setdefault(read[1], (bytecode, read[0]))
        if len(lacking) < 2 or sum(len(code.bytecode) for _, code in lacking.values()) < _MANY:
            return
        # The longest come first, so that no process is left with one at the end.
        tasks = sorted(lacking.items(), key=lambda each: -len(each[1][1].bytecode))
        made = _by_processes(self._alone, [bytecode for _, (bytecode, _) in tasks], min(processes, len(tasks)))
        for number, written in enumerate(made):
            progress(number, len(tasks))
            if written is not None:
                key, (_, code) = tasks[number]
                self._keep(key, code, written)

    def close(self) -> None:
        """Say that no more texts are wanted."""
        self._kept.close()

    def _read(self, bytecode: Bytecode) -> tuple[Code, str]:
        for name in (bytecode.text_name, *bytecode.shown.values(), *(each.shown for each in bytecode.resumes)):
            if not name.isidentifier():  # (records may come from anywhere)
                raise ValueError(f"{name!r} is no name of Python")
        code = unpacked(bytecode.transformed, self._version)
        return code, key_of(bytecode, code, self._unsimplified)

    def _known(self, key: str, code: Code) -> Written | None:
        if key not in self._made and len(code.bytecode) >= SHORTEST:
            kept = self._kept.get(key)
            if kept is not None:
                self._made[key] = kept
        return self._made.get(key)

    def _keep(self, key: str, code: Code, written: Written) -> None:
        if not written.is_proven():
            return  # (an error of ours may be another one the next time)
        self._made[key] = written
        if len(code.bytecode) >= SHORTEST:
            self._kept.put(key, written)

    def _new(self, bytecode: Bytecode, code: Code, attempt: Attempt) -> Written:
        from ..decompiler import decompile_code  # (not wanted where all texts are kept)
        from .decompiled import decompiled_bytecode
        from .frames import code_text

        source, exact = code_text(decompiled_bytecode(bytecode, code, attempt)), None
        if self._unsimplified and source.fidelity == "equivalent":
            exact = code_text(decompile_code(code, name=bytecode.text_name, rename=bytecode.shown))
        return Written(source, exact, code.varnames[: code.argcount + code.kwonlyargcount])

    def _alone(self, bytecode: Bytecode) -> Written | None:
        """Return a text, in another process; ``None`` where there is something to report."""
        errors: list[Exception] = []
        code = unpacked(bytecode.transformed, self._version)
        written: Written | None = guarded_call(
            lambda: self._new(bytecode, code, lambda action, otherwise: guarded_call(action, otherwise, errors.append)),
            None, errors.append)
        return None if errors else written


def processes_here() -> int:
    """Return how many processes can work for this one: one where it is more than a process that makes files."""
    if "torch" in sys.modules or threading.active_count() > 1 or not hasattr(os, "fork"):
        return 1
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    ranks = os.environ.get("LOCAL_WORLD_SIZE", "1")  # (each has files made)
    return max(1, min(_MOST_PROCESSES, cores // max(1, int(ranks) if ranks.isdecimal() else 1)))


_work: Callable[[Bytecode], Written | None] | None = None


def _begin(work: Callable[[Bytecode], Written | None], first: int) -> None:
    global _work
    _work = work
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # (a Ctrl-C is the first process's, which ends the others)
    threading.Thread(target=_end_with, args=(first,), daemon=True).start()


def _end_with(first: int) -> None:
    """End this process soon after the first one: one that was killed tells nobody, and its lock is inherited."""
    while os.getppid() == first:
        time.sleep(0.5)
    os._exit(1)


def _do(bytecode: Bytecode) -> Written | None:
    assert _work is not None
    return _work(bytecode)


def _by_processes(
    work: Callable[[Bytecode], Written | None], tasks: list[Bytecode], processes: int,
) -> Iterator[Written | None]:
    """Yield the results in order; they end early where a process died, and at once where there can be none."""
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    try:
        # (Forked, they have what is imported, and ``work`` need not be sent.)
        pool = ProcessPoolExecutor(
            processes, mp_context=multiprocessing.get_context("fork"), initializer=_begin,
            initargs=(work, os.getpid()))
    except (ImportError, NotImplementedError, OSError):
        return  # a machine without semaphores
    try:
        yield from pool.map(_do, tasks)
    except (BrokenProcessPool, OSError):
        return
    finally:
        pool.shutdown(cancel_futures=True)
