"""The linker of one session: what capture calls when running code and its text both exist.

Nothing here raises: code that cannot be linked runs as torch made it, and :attr:`Linker.notes` says so.
"""

from __future__ import annotations

import itertools
import os
import re
import weakref
import zlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

from .. import budgets, reading
from ..guarded import guarded_call
from ..harmless import say
from ..records.model import Bytecode, PackedCode
from ..values import frozen
from .sessions import run_when_debugging

if TYPE_CHECKING:  # (what is watched and not debugged needs no decompiler)
    from ..decompiler import Decompiled
    from ..decompiler.dynamo.facts import Facts

@frozen
class LinkedFunction:
    """A function of a graph that runs with the lines of a dumped file."""

    function: weakref.ReferenceType[FunctionType]  # a weak reference; dead when torch released the graph
    graph: str  # name of the graph, `"__compiled_fn_1"`
    stage: str  # `"Captured_Graph"`, `"Forward_graph"`, `"Backward_graph"` or `"kernel_0"`
    path: str


class Linker:
    """Links transformed code, graphs and generated modules to files."""

    def __init__(self, at_once: bool = False) -> None:
        self.at_once = at_once  # link graphs as soon as they are made; else when :meth:`link_graphs` is called
        self._numbers = itertools.count()
        self._waiting: dict[int, tuple[str, str, weakref.ReferenceType[Any], str]] = {}
        self.files: dict[str, None] = {}
        self.notes: list[str] = []
        self.functions: list[LinkedFunction] = []

    def link_transformed(
        self, original: CodeType, transformed: CodeType, decompiled: Decompiled, place: tuple[str, int, str],
        rename: Mapping[str, str] | None = None, facts: Facts | None = None,
    ) -> CodeType | None:
        """Return the result of the bytecode hook, or ``None`` to leave torch's code.

        Args:
            place: of the text: path of its file, line that it begins at, all of the file.
        """
        from .functions import remember_lines
        from .transformed import linked_code

        path, first_line, file_text = place
        try:
            code, lacking = linked_code(original, transformed, decompiled, path, first_line, rename, facts)
            if code is not None:
                remember_lines(path, file_text, code)
                self.files[path] = None
        except Exception as error:  # noqa: BLE001  (an error in depyf must not reach the program)
            code, lacking = None, f"not linked ({type(error).__name__}: {error})"
        if lacking:
            self.notes.append(f"{transformed.co_name}: {lacking}")
        return code

    def link_when_debugging(self, original: CodeType, transformed: CodeType, bytecode: Bytecode, path: str) -> None:
        """Have linked code run in place of ``transformed`` inside ``debug()``, made when that is first entered.

        Args:
            path: of its file, which need not exist yet.
        """
        # (Running code takes the place of its record. A long run has ten thousands of these.)
        known = replace(bytecode, transformed=PackedCode(""), traced=None, facts="")
        facts = zlib.compress(bytecode.facts.encode(), 1)

        def make(original: CodeType, transformed: CodeType) -> CodeType | None:
            noted = len(self.notes)
            whole = replace(known, facts=zlib.decompress(facts).decode())
            linked = self._linked_now(original, transformed, whole, path)
            for note in self.notes[noted:]:
                say(f"depyf: {note}")
            return linked

        run_when_debugging(original, transformed, make, lambda: self.files.pop(path, None))
        self.files[path] = None

    def _linked_now(self, original: CodeType, transformed: CodeType, bytecode: Bytecode, path: str) -> CodeType | None:
        """Decompile once more what the file shows, and link it."""
        from ..decompiler.dynamo.facts import Facts
        from ..finishing.frames import readable_alone
        from ..finishing.texts import decompiled_bytecode

        def attempt(action: Callable[[], Any], otherwise: Any) -> Any:
            return guarded_call(action, otherwise, lambda error: self.notes.append(
                f"{transformed.co_name}: {type(error).__name__}: {error}"))

        decompiled = decompiled_bytecode(bytecode, transformed, attempt)
        try:
            text = reading.text(path, budgets.WRITTEN, "surrogatepass")
        except OSError as error:
            self.notes.append(f"{transformed.co_name}: not linked: {error}")
            return None
        head, found, _ = text.partition(readable_alone(decompiled.text))
        if not found:
            self.notes.append(f"{transformed.co_name}: not linked: {path} has another text")
            return None
        facts = attempt(lambda: Facts(bytecode.facts), None) if bytecode.facts else None
        return self.link_transformed(
            original, transformed, decompiled, (path, head.count("\n") + 1, text), bytecode.shown, facts)

    def link_graph(self, name: str, stage: str, target: Any, path: str) -> None:
        """Link a graph module's ``forward``, a function, or a generated module to its file.

        Unless this linker links at once, that waits for :meth:`link_graphs`, and does not keep ``target`` alive.
        """
        if self.at_once:
            self._link_graph(name, stage, target, path)
            return
        number = next(self._numbers)
        try:
            waiting = weakref.ref(target, lambda _: self._waiting.pop(number, None))
        except TypeError:
            return  # (no object of a kind that is linked)
        self._waiting[number] = name, stage, waiting, path

    def link_graphs(self) -> None:
        """Link the graphs that wait for it, if they are alive and their files exist."""
        for number in list(self._waiting):
            waiting = self._waiting.pop(number, None)  # (others wait meanwhile, and graphs go)
            if waiting is None:
                continue
            name, stage, reference, path = waiting
            target = reference()
            if target is not None and os.path.exists(path):
                self._link_graph(name, stage, target, path)

    def lives(self) -> bool:
        """Return whether one of its graphs is alive."""
        return bool(self._waiting) or any(each.function() is not None for each in self.functions)

    def _link_graph(self, name: str, stage: str, target: Any, path: str) -> None:
        from .functions import functions_of, link_function, link_module, plain_function

        try:
            text = reading.text(path, budgets.WRITTEN)
            if isinstance(target, ModuleType):
                linked, total = link_module(target, text, path)
                done = bool(linked)
                running = [*functions_of(target)]
                if linked < total:
                    self.notes.append(f"{name} {stage}: {total - linked} of {total} functions differ from the text")
            else:
                # All of the file, whose lines running code has, but for its imports: CPython compiles ``torch.sin(x)``
                # in another way where it can see that ``torch`` was imported (compile.c, ``is_import_originated``),
                # and torch's own text has none.
                text = re.sub(r"(?m)^(import|from) ", r"# \1 ", text)
                real_recompile = getattr(target, "real_recompile", None)  # lazy graph modules have no forward yet
                if callable(real_recompile):
                    real_recompile()
                forward: Callable[..., Any] = getattr(target, "forward", target)
                done = link_function(forward, text, path)
                running = [*filter(None, [plain_function(forward)])]
                if not done:
                    self.notes.append(f"{name} {stage}: the text is not what runs, so it is not linked")
        except Exception as error:  # noqa: BLE001
            self.notes.append(f"{name} {stage}: not linked ({type(error).__name__}: {error})")
            return
        if done:
            self.files[path] = None
            self.functions += [
                LinkedFunction(weakref.ref(function), name, stage, path) for function in running
                if function.__code__.co_filename == path]
