"""Texts of transformed code; where there are many, worker processes make them.

A worker is isolated from the program: ``-I -S`` (neither the working directory nor ``PYTHONPATH`` is on its path), in a
new session, without the program's open files. It gets records and returns texts, both pickled, and is joined before
:meth:`Texts.make` returns.
"""

from __future__ import annotations

import ast
import os
import pickle
import re
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, closing, suppress
from typing import Any

from ..bytecode.code import Code, decode
from ..bytecode.errors import Unreadable
from ..bytecode.packed import unpacked
from ..decompiler import Decompiled, Fidelity, decompile_code
from ..decompiler.dynamo.facts import Facts
from ..guarded import guarded_call
from ..records.model import Bytecode, TransformedCode
from .frames import code_text

#: Runs an action and returns what it returns; where it raises, reports that and returns the second argument.
Attempt = Callable[[Callable[[], Any], Any], Any]
#: Bytes of bytecode from which workers are worth their start: about two seconds of work.
_MANY = 60_000
_MOST_WORKERS = 16
#: Seconds that workers may take for a text on average; then this process makes them.
_PATIENCE = 20
_WORKER = "import sys; sys.path.append(sys.argv[1]); from depyf.finishing.texts import work; work()"


class Texts:
    """Makes the texts of transformed code."""

    def __init__(
        self, version: tuple[int, int], unsimplified: bool, attempt: Attempt,
        progress: Callable[[int], None] = lambda done: None,
    ) -> None:
        self._version = version  # of the Python that made the code
        self._unsimplified = unsimplified  # write a text with nothing simplified, too
        self._attempt = attempt  # runs what may fail
        self._progress = progress  # called with the number of finished texts before each further one
        self._done = 0
        self._made: dict[int, TransformedCode] = {}  # by the identity of the record

    def of(self, bytecode: Bytecode) -> TransformedCode:
        """Return the text of a transformed code.

        Raises:
            ValueError: a name in the record is no identifier, or the code cannot be read.
        """
        if id(bytecode) in self._made:
            return self._made[id(bytecode)]
        self._count()
        return _written(bytecode, _code_of(bytecode, self._version), self._unsimplified, self._attempt)

    def make(self, bytecodes: Sequence[Bytecode]) -> None:
        """Have workers make the texts, where that is worth it; :meth:`of` makes those that they do not."""
        sizes = {}
        for each in bytecodes:
            with suppress(Exception):  # (:meth:`of` meets it again, and reports it)
                sizes[id(each)] = len(_code_of(each, self._version).bytecode)
        # (The longest first, so that no worker is left with one at the end.)
        wanted = sorted((each for each in bytecodes if id(each) in sizes), key=lambda each: -sizes[id(each)])
        workers = min(available_workers(), len(wanted))
        if workers < 2 or sum(sizes.values()) < _MANY:
            return
        with closing(_by_workers(self._version, self._unsimplified, wanted, workers)) as texts:
            for bytecode, written in zip(wanted, texts):
                if written is not None:
                    self._count()
                    self._made[id(bytecode)] = written

    def _count(self) -> None:
        self._progress(self._done)
        self._done += 1


def _code_of(bytecode: Bytecode, version: tuple[int, int]) -> Code:
    for name in (bytecode.text_name, *bytecode.shown.values(), *(each.shown for each in bytecode.resumes)):
        if not name.isidentifier():  # (records may come from anywhere)
            raise ValueError(f"{name!r} is no name of Python")
    return unpacked(bytecode.transformed, version)


def _written(bytecode: Bytecode, code: Code, unsimplified: bool, attempt: Attempt) -> TransformedCode:
    source, exact = code_text(decompiled_bytecode(bytecode, code, attempt)), None
    if unsimplified and source.fidelity == "equivalent":
        exact = code_text(decompile_code(code, name=bytecode.text_name, rename=bytecode.shown))
    return TransformedCode(bytecode.compile_id, bytecode.function_name, source, exact,
                           code.varnames[: code.argcount + code.kwonlyargcount], bytecode.file)


def available_workers() -> int:
    """Return how many workers this process can start: its share of the processors.

    None on Windows, where the program handles the end of child processes and would notice, or where the executable of
    this process may not be Python (a frozen application, a server that embeds Python).
    """
    executable = os.path.basename(sys.executable or "").lower()
    if os.name != "posix" or getattr(sys, "frozen", False) or not re.fullmatch(r"(python|pypy)[\d.]*t?d?", executable):
        return 0
    if hasattr(signal, "SIGCHLD") and signal.getsignal(signal.SIGCHLD) != signal.SIG_DFL:
        return 0
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    ranks = os.environ.get("LOCAL_WORLD_SIZE", "1")  # (each makes files)
    return max(1, min(_MOST_WORKERS, cores // max(1, int(ranks) if ranks.isdecimal() else 1)))


def _by_workers(
    version: tuple[int, int], unsimplified: bool, bytecodes: list[Bytecode], workers: int,
) -> Generator[TransformedCode | None, None, None]:
    """Yield the texts in order, ``None`` where one failed. They end early where a worker cannot start or dies."""
    folder = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    with ExitStack() as stack:
        started: list[subprocess.Popen[bytes]] = []
        try:
            for number in range(workers):
                share = stack.enter_context(tempfile.TemporaryFile())
                pickle.dump((version, unsimplified, bytecodes[number::workers]), share)
                share.seek(0)
                worker = stack.enter_context(subprocess.Popen(
                    [sys.executable, "-I", "-S", "-c", _WORKER, folder], stdin=share, stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL, start_new_session=True))
                stack.callback(worker.kill)  # (called first, then the context waits for its end)
                started.append(worker)
                watch = threading.Timer(_PATIENCE * len(bytecodes), worker.kill)  # (it may hang)
                watch.daemon = True
                watch.start()
                stack.callback(watch.cancel)
            for number in range(len(bytecodes)):
                output = started[number % workers].stdout
                assert output is not None
                yield pickle.load(output)
        except (OSError, RuntimeError, EOFError, pickle.UnpicklingError):
            return


def work() -> None:
    """Make texts, as a worker: records from standard input, texts to standard output."""
    version, unsimplified, bytecodes = pickle.load(sys.stdin.buffer)
    for bytecode in bytecodes:
        errors: list[Exception] = []

        def attempt(action: Callable[[], Any], otherwise: Any) -> Any:
            return guarded_call(action, otherwise, errors.append)

        written = attempt(lambda: _written(bytecode, _code_of(bytecode, version), unsimplified, attempt), None)
        pickle.dump(None if errors else written, sys.stdout.buffer)
        sys.stdout.buffer.flush()


# --- decompiling transformed code --------------------------------------------------------------------
def decompiled_bytecode(bytecode: Bytecode, code: Any, attempt: Attempt) -> Decompiled:
    """Decompile what Dynamo made; where an internal error prevents that, return a text that says so.

    Args:
        code: its transformed code, from the record or as it runs.
        attempt: runs what may fail.
    """
    facts = attempt(lambda: Facts(bytecode.facts), Facts())
    errors: list[Exception] = []

    def decompiled() -> Decompiled:
        try:
            return decompile_code(
                code, name=bytecode.text_name, simplify=True,
                parameter_names={each.name: each.parameters for each in bytecode.resumes}, rename=bytecode.shown,
                facts=facts)
        except Exception as error:
            errors.append(error)
            raise

    result: Decompiled | None = attempt(decompiled, None)
    return not_decompiled(bytecode.text_name, code, errors[0]) if result is None else result


def not_decompiled(name: str, code: Any, error: Exception) -> Decompiled:
    """Return the text of code that could not be decompiled: its bytecode."""
    try:
        lines = [f"{each.offset:6} {each.opname:30} {each.arg}" for each in decode(code)]
    except Unreadable:
        lines = [f"{len(code.bytecode)} bytes that cannot be read"]
    listing = "".join(f"    # {line}\n" for line in lines)
    text = f"def {name}(*args, **kwargs):\n    # not decompiled; its bytecode:\n{listing}    ...\n"
    note = f"not decompiled: {type(error).__name__}: {error}"
    return Decompiled(text, Fidelity.UNPROVEN, note, ast.parse(text))
