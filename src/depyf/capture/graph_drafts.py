"""The graphs of compilations that go on: their stages, names and files, until they are records."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from ..decompiler.names import free_name
from ..records.model import Caller, CompiledGraph, CompileId, GraphInput, GraphStage, Kernel, ModuleCall
from .shelf import Kept, Shelf
from .sink import GraphLinker, Sink
from .torch_private import hooks

_IMPORTS = re.compile(r"(?m)^(import|from) ")


@dataclass
class GraphDraft:
    """A graph while its compilation goes on.

    Attributes:
        name: as shown; empty until the code that calls the graph is there, which says what torch calls it.
        printed_later: stages that are printed once they are compiled: torch need not print them for its trace.
        files: paths, by stage (or ``"kernel"``) and index.
        waiting: what is done once it has a name.
    """

    ids: CompileId
    backend: str = ""
    torch_name: str = ""
    name: str = ""
    stages: list[GraphStage] = field(default_factory=list)
    printed_later: frozenset[str] = frozenset()
    kernels: list[Kernel] = field(default_factory=list)
    files: dict[tuple[str, int], str] = field(default_factory=dict)
    waiting: list[Callable[[], None]] = field(default_factory=list)

    def of_stage(self, stage: str) -> list[GraphStage]:
        return [known for known in self.stages if known.stage == stage]

    def record(self) -> CompiledGraph:
        def file(kind: str, index: int) -> str:
            return os.path.basename(self.files.get((kind, index), ""))

        return CompiledGraph(
            self.name, self.torch_name, self.ids, self.backend,
            tuple(replace(stage, file=file(stage.stage, stage.index)) for stage in self.stages),
            tuple(replace(kernel, file=file("kernel", kernel.index)) for kernel in self.kernels))


class GraphDrafts:
    """All graphs of a session.

    Args:
        sink: takes each text as soon as its graph has a name.
        linker: ties what runs to the files; ``None``: nothing is tied.
        shelf: where graphs lie that are complete.
        guarded: runs an action; an error of it is reported (``Session.attempt``).
    """

    def __init__(
        self, sink: Sink, linker: GraphLinker | None, shelf: Shelf, guarded: Callable[[Callable[[], None], None], None]
    ) -> None:
        self._sink = sink
        self._linker = linker
        self._guarded = guarded
        self._drafts: Kept[tuple[int, int, int], list[GraphDraft]] = Kept(shelf, _are_complete)
        self.names: dict[str, str] = {}  # torch's name of a graph -> shown name
        self._taken: set[str] = set()

    # --- which ------------------------------------------------------------------------------------
    def current(self, ids: CompileId, new: bool = False) -> GraphDraft:
        """The graph that the compilation works on.

        Args:
            new: one begins, unless there is one without anything in it.
        """
        drafts = self._drafts.setdefault(ids.key, [])
        if drafts and not drafts[-1].name and drafts[-1].ids.attempt != ids.attempt:
            drafts.pop()  # tracing started again: what it had is void
        if not drafts or new and drafts[-1].stages:
            drafts.append(GraphDraft(ids))
        return drafts[-1]

    def named(self, ids: CompileId) -> list[GraphDraft]:
        """The graphs of a compilation that code calls by name."""
        return [draft for draft in self._drafts.get(ids.key, ()) if draft.name]

    def unnamed(self, ids: CompileId) -> list[GraphDraft]:
        return [draft for draft in self._drafts.get(ids.key, ()) if not draft.name]

    def all(self) -> Iterator[GraphDraft]:
        """In the order in which their compilations began; to be read only."""
        for drafts in self._drafts.all():
            yield from drafts

    # --- what is in them --------------------------------------------------------------------------
    def add_stage(
        self, draft: GraphDraft, stage: str, text: str, internal: bool = False,
        modules: tuple[ModuleCall, ...] = (), inputs: tuple[GraphInput, ...] = (),
        callers: tuple[Caller, ...] = (),
    ) -> GraphStage:
        record = GraphStage(
            stage, len(draft.of_stage(stage)), text, internal, draft.ids, modules=modules, inputs=inputs,
            callers=callers)
        draft.stages.append(record)
        self._when_named(draft, lambda: self._write(draft, record))
        return record

    def replace_stage(self, draft: GraphDraft, stage: str, text: str) -> GraphStage:
        """The last text of a stage is this one."""
        known = draft.of_stage(stage)
        if not known:
            return self.add_stage(draft, stage, text)
        record = GraphStage(stage, known[-1].index, text, False, draft.ids)
        draft.stages[draft.stages.index(known[-1])] = record
        self._when_named(draft, lambda: self._write(draft, record))
        return record

    def link(self, draft: GraphDraft, record: GraphStage, target: Any) -> None:
        """Ties what runs to the file of a stage."""

        def link() -> None:
            path = draft.files.get((record.stage, record.index))
            if path is not None and self._linker is not None:
                # The file as it stands on disk, header and all: its lines are what running code points at.
                # But for its imports: CPython compiles ``torch.sin(x)`` in another way where it can see that
                # ``torch`` was imported (compile.c, ``is_import_originated``), and torch's own text has none.
                with open(path, encoding="utf-8") as file:
                    text = _IMPORTS.sub(r"# \1 ", file.read())
                self._linker.link_graph(draft.name, record.stage, target, text, path)

        self._when_named(draft, link)

    def add_kernel(self, draft: GraphDraft, text: str, path: str, loaded: Any) -> None:
        """A module that Inductor generated; the same one counts once.

        Args:
            path: of torch's own file. loaded: the module.
        """
        if any(known.path == path for known in draft.kernels):
            return
        kernel = Kernel(len(draft.kernels), text, path, draft.ids)
        draft.kernels.append(kernel)

        def write() -> None:
            written = self._sink.kernel(draft.name, kernel)
            if written is not None:
                draft.files["kernel", kernel.index] = written
                if self._linker is not None:
                    self._linker.link_graph(draft.name, f"kernel_{kernel.index}", loaded, text, written)

        self._when_named(draft, write)

    def _write(self, draft: GraphDraft, record: GraphStage) -> None:
        path = self._sink.graph(draft.name, record, draft.record().inputs)
        if path is not None:
            draft.files[record.stage, record.index] = path

    # --- names ------------------------------------------------------------------------------------
    @staticmethod
    def _when_named(draft: GraphDraft, action: Callable[[], None]) -> None:
        if draft.name:
            action()
        else:
            draft.waiting.append(action)

    def name(self, draft: GraphDraft, torch_name: str) -> None:
        found = hooks.GRAPH_NAME.match(torch_name)
        shown = free_name(found.group(1) if found else torch_name, self._taken, first=2)
        self._taken.add(shown)
        draft.torch_name, draft.name = torch_name, shown
        self.names[torch_name] = shown
        waiting, draft.waiting = draft.waiting, []
        for action in waiting:
            self._guarded(action, None)

    def name_the_rest(self) -> None:
        """Graphs that no code calls: their compilation failed."""
        for draft in self.all():
            if not draft.name:  # (so it is in memory, and no copy)
                _, frame, recompile = draft.ids.key
                torch_name = f"__graph_of_frame_{frame}_{recompile}"
                self._guarded(lambda: self.name(draft, torch_name), None)


def _are_complete(drafts: list[GraphDraft]) -> bool:
    return all(draft.name and not draft.waiting for draft in drafts)
