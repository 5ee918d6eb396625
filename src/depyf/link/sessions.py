"""The active ``prepare_debug``, and those that ended: what ``debug()`` needs to know."""

from __future__ import annotations

import contextlib
import functools
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import CodeType
from typing import TYPE_CHECKING, Any

from ..guarded import guarded_call, warn_of
from ..values import frozen

if TYPE_CHECKING:
    from .linker import LinkedFunction, Linker


class DebugSession:
    """One ``prepare_debug``."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self.linker: Linker | None = None  # links running code to the files; `None` if nothing is linked
        self.stages: Sequence[RunningStage] = ()  # the stages of graphs that run
        self.write: Callable[[], None] | None = None  # writes the files, if they are not written yet
        self.show: Callable[[str, Any, Any], None] | None = None  # records a stage (`depyf.stage`)

    def get_ready(self) -> None:
        """Write the files that are not written yet, and link running graphs to them."""
        write, self.write = self.write, None
        if write is not None:
            write()
        if self.linker is not None:
            self.linker.link_graphs()

    @property
    def functions(self) -> list[LinkedFunction]:
        """Functions of graphs that run with the lines of those files."""
        return self.linker.functions if self.linker is not None else []

    @property
    def unlinked(self) -> dict[str, str]:
        """Graphs that run without lines of a file: ``{"__compiled_fn_1, Forward_graph": why}``."""
        if self.linker is None:
            return {f"{stage.graph}, {stage.stage}": "prepare_debug was given link=False" for stage in self.stages}
        linked = {(each.graph, each.stage) for each in self.functions}
        return {f"{stage.graph}, {stage.stage}": stage.why_not(self.linker.notes) for stage in self.stages
                if (stage.graph, stage.stage) not in linked}


@frozen
class RunningStage:
    """A stage of a graph, or a generated module, that runs when compiled code is called."""

    # graph, stage: as of `LinkedFunction`
    graph: str
    stage: str
    backend: str  # of the graph

    def why_not(self, notes: Sequence[str]) -> str:
        """Return why it is not linked, by the linker's notes."""
        own = [note.partition(": ")[2] for note in notes if note.startswith(f"{self.graph} {self.stage}: ")]
        backend = f"the backend {self.backend}" if self.backend else "its backend"
        return own[-1] if own else f"{backend} runs it in a way of its own"


_lock = threading.Lock()
_active: list[DebugSession] = []
_ended: list[DebugSession] = []


def session_started(directory: str) -> DebugSession:
    """Begin the session of a ``prepare_debug`` that is entered."""
    session = DebugSession(directory)
    with _lock:
        _active.append(session)
    return session


def session_ended(session: DebugSession) -> None:
    """End the session of a ``prepare_debug``, however it is left."""
    with _lock:
        if session in _active:
            _active.remove(session)
        # Of earlier sessions, only those whose graphs still run are of use.
        _ended[:] = guarded_call(
            lambda: [known for known in _ended if known.linker is not None and known.linker.lives()], list(_ended),
            lambda error: warn_of(error, "and depyf.debug() still knows earlier dumps"))
        _ended.append(session)


def ended_sessions() -> list[DebugSession]:
    """Return the ended sessions whose graphs still run, and at the end the one that ended last."""
    with _lock:
        return list(_ended)


def active_sessions() -> list[DebugSession]:
    """Return every active ``prepare_debug``, the one entered last at the end."""
    with _lock:
        return list(_active)


# --- Linked code runs in place of Dynamo's while ``debug()`` is on -----------------------------------
# Outside, Dynamo's own code runs: it has the lines of the user's file, which warnings and tracebacks name.
#: Makes the linked code of a version: ``make(function, version)``; ``None`` where Dynamo's own code has to run.
Make = Callable[[CodeType, CodeType], "CodeType | None"]


@dataclass(eq=False)
class _Version:
    """A version of a function in torch's cache, with its linked code, which is made when it is first needed."""

    function: weakref.ReferenceType[CodeType]
    version: weakref.ReferenceType[CodeType]
    make: Make

    @functools.cached_property
    def linked(self) -> CodeType | None:
        function, version = self.function(), self.version()
        return None if function is None or version is None else self.make(function, version)


#: By the id of Dynamo's code, as long as that lives.
_versions: dict[int, _Version] = {}
_users = 0
_undo: Callable[[], None] | None = None


def run_when_debugging(function: CodeType, version: CodeType, make: Make, gone: Callable[[], object]) -> None:
    """Have linked code run in place of a version inside ``debug()``; ``gone`` is called when that is deleted."""
    _versions[id(version)] = _Version(weakref.ref(function), weakref.ref(version), make)
    weakref.finalize(version, _forget, id(version), gone).atexit = False


def _forget(version: int, gone: Callable[[], object]) -> None:
    _versions.pop(version, None)
    gone()


@contextlib.contextmanager
def linked_code_runs() -> Iterator[dict[CodeType, str]]:
    """Inside, linked code runs. Blocks may overlap, and end in any order.

    Yields the functions whose own code runs on, with the reason: those compiled for several backends. Where torch does
    not take linked code, there is one warning, and Dynamo's own runs.
    """
    global _users, _undo
    left: dict[CodeType, str] = {}
    with _lock:
        if _users == 0 and _versions:
            try:
                _undo, left = _replace()
            except Exception as error:  # noqa: BLE001  (an error in depyf must not reach the program)
                warnings.warn(f"depyf: breakpoints in files of transformed code are not hit: this torch does not take "
                              f"the code for them ({type(error).__name__}: {error})", RuntimeWarning, stacklevel=2)
        _users += 1
    try:
        yield left
    finally:
        with _lock:
            _users -= 1
            if _users == 0 and _undo is not None:
                undo, _undo = _undo, None
                undo()


def _replace() -> tuple[Callable[[], None], dict[CodeType, str]]:
    from ..capture.torch_private import cache_entries

    if not cache_entries.can_replace():  # (The notes of the dump say what this torch lacks.)
        return (lambda: None), {}
    functions = {id(function): function for each in list(_versions.values())
                 if (function := each.function()) is not None}

    def linked(version: CodeType) -> CodeType | None:
        known = _versions.get(id(version))
        return known.linked if known is not None and known.version() is version else None

    return cache_entries.replace_versions(functions.values(), linked)
