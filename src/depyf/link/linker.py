"""The linker of one session: what capture calls when running code and its text both exist.

Nothing here raises: code that cannot be linked runs as torch made it, and :attr:`Linker.notes` says so.
"""

from __future__ import annotations

import pickle
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping
from types import CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from ..decompiler import Fidelity
from ..harmless import say
from .functions import functions_of, link_function, link_graph, link_module, plain_function
from .lines import remember_lines
from .replacing import run_when_debugging
from .transformed import PROVEN, CannotLink, Text, linked_code

if TYPE_CHECKING:
    from ..decompiler import Decompiled
    from ..decompiler.dynamo.facts import Facts


class Place(NamedTuple):
    """The place of a text: line ``first_line`` of ``path``; ``file_text`` is all of that file."""

    path: str
    first_line: int
    file_text: str


class LinkedFunction(NamedTuple):
    """A function of a graph that runs with the lines of a dumped file.

    Attributes:
        function: weak; gone when torch let go of the graph.
        graph: name of the graph, ``"__compiled_fn_1"``.
        stage: ``"Captured_Graph"``, ``"Forward_graph"``, ``"Backward_graph"`` or ``"kernel_0"``.
        path: of the file.
    """

    function: weakref.ReferenceType[FunctionType]
    graph: str
    stage: str
    path: str


class Linker:
    """Links transformed code, graphs and generated modules to files."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.files: dict[str, None] = {}
        self.notes: list[str] = []
        self.functions: list[LinkedFunction] = []

    def link_transformed(
        self,
        original: CodeType,
        transformed: CodeType,
        decompiled: Decompiled | Text,
        place: tuple[str, int, str],
        rename: Mapping[str, str] | None = None,
        facts: Facts | None = None,
    ) -> CodeType | None:
        """Return the code to give back from the bytecode hook, or ``None`` to leave torch's.

        Args:
            place: of the text, as :class:`Place` has it.
        """
        path, first_line, file_text = place
        try:
            linked = linked_code(original, transformed, decompiled, path, first_line, rename, facts)
            remember_lines(path, file_text, linked.code)
        except CannotLink as why:
            self._note(f"{transformed.co_name}: runs Dynamo's own bytecode, not linked: {why}")
            return None
        except Exception as error:  # noqa: BLE001  (an error of ours must not reach the program)
            self._note(f"{transformed.co_name}: not linked ({type(error).__name__}: {error})")
            return None
        if linked.lacking:
            how = "runs recompiled" if linked.from_text else "runs Dynamo's own bytecode, relocated"
            self._note(f"{transformed.co_name}: {how}{'; ' if linked.from_text else ': '}{linked.lacking}")
        self._linked(path)
        return linked.code

    def link_when_debugging(
        self,
        original: CodeType,
        transformed: CodeType,
        decompiled: Decompiled,
        place: tuple[str, int, str],
        rename: Mapping[str, str] | None = None,
        facts: Facts | None = None,
    ) -> bool:
        """Have linked code run in place of ``transformed`` inside ``debug()``, made when that is first entered.

        A program that is not debugged need not wait for it. What is not proven is linked now, as the notes of the run
        say so.

        Args:
            original, transformed, decompiled, place, rename: as of :meth:`link_transformed`.
            facts: likewise; can be pickled.

        Returns:
            Whether it will. ``False``: this torch cannot do so.
        """
        try:
            proven = Fidelity(decompiled.fidelity).value in PROVEN
            linked = None if proven else self.link_transformed(
                original, transformed, decompiled, place, rename, facts)
            packed = pickle.dumps((Text.of(decompiled), facts)) if proven else b""

            def make(original: CodeType, transformed: CodeType) -> CodeType | None:
                if not packed:
                    return linked
                noted = len(self.notes)
                text, facts = pickle.loads(packed)
                result = self.link_transformed(original, transformed, text, place, rename, facts)
                for note in self.notes[noted:]:
                    say(f"depyf: {note}")
                return result

            if not run_when_debugging(original, transformed, make):
                return False
        except Exception as error:  # noqa: BLE001
            self._note(f"{transformed.co_name}: not linked ({type(error).__name__}: {error})")
            return True
        self._linked(place[0])
        return True

    def link_graph(self, name: str, stage: str, target: Any, text: str, path: str) -> bool:
        """Point a graph module's ``forward``, a function, or a generated module at its file.

        Args:
            name, stage: of the graph.
            target: what runs.
            text: of the file ``path``.
        """
        try:
            if isinstance(target, ModuleType):
                linked, total = link_module(target, text, path)
                done = bool(linked)
                running: Iterable[FunctionType | None] = functions_of(target)
                if linked < total:
                    self._note(f"{name} {stage}: {total - linked} of {total} functions differ from the text")
            else:
                forward = _forward_of(target)
                done = link_graph(forward, text, path) or link_function(forward, text, path)
                running = [plain_function(forward)]
                if not done:
                    self._note(f"{name} {stage}: the text is not what runs, so it is not linked")
        except Exception as error:  # noqa: BLE001
            self._note(f"{name} {stage}: not linked ({type(error).__name__}: {error})")
            return False
        if done:
            self._linked(path)
            with self._lock:
                self.functions += [
                    LinkedFunction(weakref.ref(function), name, stage, path) for function in running
                    if function is not None and function.__code__.co_filename == path]
        return done

    def _linked(self, path: str) -> None:
        with self._lock:
            self.files[path] = None

    def _note(self, text: str) -> None:
        with self._lock:
            self.notes.append(text)


def _forward_of(target: Any) -> Callable[..., Any]:
    """Return the function that runs when a graph is called: a module's ``forward``, or the function itself."""
    real_recompile = getattr(target, "real_recompile", None)  # lazy graph modules have no forward yet
    if callable(real_recompile):
        real_recompile()
    forward: Callable[..., Any] = getattr(target, "forward", target)
    return forward
