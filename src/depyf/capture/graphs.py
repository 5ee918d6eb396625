"""The graphs of a session: each is built of the events of its compilation, and has a name once code calls it."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from ..decompiler.nodes import free_name
from ..model.graph_text import read_graph
from ..records import model as records
from ..records.naming import function_identifier, legal_identifier
from ..records.store import Recorded, RecordLog
from ..torch_text.trace_table import add_facts
from ..torch_text.wrapping import NOT_PYTHON, legal_graph
from .torch_private import current_compilation, graph_modules

StageKey = tuple[str, int]  #: A stage and its index in the graph.


@dataclass(slots=True, eq=False)
class GraphBuilder:
    """A graph while its compilation is in progress. Its texts are recorded as soon as it has a name."""

    ids: records.CompileId
    whole: GraphBuilder | None = None  # of a piece of a graph that the backend split: that graph
    pieces: dict[str, GraphBuilder] = field(default_factory=dict)  # of this graph that the backend compiled, by name
    name: str = ""  # as shown; empty until the code that calls the graph exists, which has torch's name of it
    torch_name: str = ""
    backend: str = ""
    call: current_compilation.CompilerCall | None = None  # what compiles a graph without a frame
    module: weakref.ref[Any] | None = None  # the captured graph, as long as it lives
    stages: dict[StageKey, Recorded[records.StageOfGraph]] = field(default_factory=dict)
    kernels: dict[str, Recorded[records.KernelOfGraph]] = field(default_factory=dict)  # by the paths of torch's files
    # stages that are printed once they are compiled: torch need not print them for its trace
    printed_later: frozenset[str] = frozenset()
    # such a stage, and torch's print of it, recorded at the end of the run if it was not compiled (no backward ran)
    later: tuple[str, str] | None = None
    waiting: tuple[Callable[[], object], ...] = ()  # what is done once it has a name
    is_called: bool = False  # transformed code calls it
    facts: dict[str, tuple[Any, ...]] = field(default_factory=dict)  # fields of its record that events gave

    def last(self, stage: str) -> StageKey | None:
        """Return the key of the latest text of a stage."""
        return next((key for key in reversed(self.stages) if key[0] == stage), None)

    def when_named(self, action: Callable[[], object]) -> None:
        """Run an action as soon as the graph has a name, which may be now."""
        if self.name:
            action()
        else:
            self.waiting += (action,)


class Graphs:
    """All graphs of a session; ``log``, ``writer``, ``linker`` and ``attempt`` are the session's.

    The files that running code names are written, and linked, as soon as the graph has a name.
    """

    def __init__(
        self, log: RecordLog, writer: Any, linker: Any, attempt: Callable[[Callable[[], object], None], object],
    ) -> None:
        self._log = log
        self._writer = writer
        self._linker = linker
        self._attempt = attempt
        self._builders: dict[tuple[int, int, int], list[GraphBuilder]] = {}
        self.names: dict[str, str] = {}  # torch's name of a graph -> shown name
        self._taken: set[str] = set()
        #: By AOTAutograd's number of a compilation: a backward graph that is compiled later has the same.
        self.of_aot_number: dict[int, GraphBuilder] = {}
        #: Those without a frame: by the numbers under which torch traces them, and by the function that showed a graph.
        self._of_call: dict[tuple[int, int, int], GraphBuilder] = {}
        self._shown: dict[tuple[str, str, int], GraphBuilder] = {}
        self._last_of_call: GraphBuilder | None = None
        self._mark = f"depyf {id(self)}"

    # --- which ------------------------------------------------------------------------------------
    def current(self, ids: records.CompileId, new: bool = False) -> GraphBuilder:
        """Return the graph of a compilation that is in progress; begin one where there is none.

        With ``new`` begin one, unless the last one was not captured yet.
        """
        if new:
            self._of_call.pop(ids.key, None)
        elif ids.key in self._of_call:
            return self._of_call[ids.key]
        builders = self._builders.setdefault(ids.key, [])
        if builders and not builders[-1].name and builders[-1].ids.attempt != ids.attempt:
            builders.pop()  # tracing started again: what it had is void
        if not builders or new and builders[-1].last("Captured_Graph") is not None:
            builders.append(GraphBuilder(ids))
        return builders[-1]

    def aot_graph(self, ids: records.CompileId, number: int | None) -> GraphBuilder | None:
        """Return the graph that AOTAutograd compiles under a number; ``None`` where it is not known yet."""
        builder = None if number is None else self.of_aot_number.get(number)
        return builder if builder is not None and builder.ids.key == ids.key else None

    def begun(self, ids: records.CompileId) -> GraphBuilder | None:
        """Return the graph of a compilation whose backend is at work; ``None`` where it traces, or is done."""
        builder = next(reversed(self._builders.get(ids.key, [])), None)
        return builder if builder is not None and not builder.name else None

    def piece(self, whole: GraphBuilder, name: str) -> GraphBuilder:
        """Return a piece of a graph that its backend split; begin it where it is new."""
        builder = whole.pieces.get(name)
        if builder is None:
            builder = whole.pieces[name] = GraphBuilder(whole.ids, whole, backend=whole.backend)
            whole.when_named(lambda: self.name(builder, f"{whole.name}.{legal_identifier(name)}"))
        return builder

    def graph_of_call(
        self, call: current_compilation.CompilerCall, traced: records.CompileId | None = None,
    ) -> GraphBuilder:
        """Return the graph that a call of a compiler works on; begin one where there is none.

        Args:
            traced: the numbers under which Dynamo traces the graph for the call, not for a frame: what comes under them
                is of it. What compiles it then, in the same call, goes on with it.
        """
        marked = call.marks.get(self._mark) if call.marks is not None else None
        shown = None if call.marks is not None else (call.filename, call.function, call.line)
        known = self.of_aot_number.get(call.aot) if call.aot is not None else self._shown.get(shown) if shown else None
        builder, last = marked or known, self._last_of_call
        if builder is None and traced is None and last is not None and last.call is not None and (
                call.filename, call.line, call.function) == (last.call.filename, last.call.line, last.call.function) \
                and {stage for stage, _ in last.stages} == {"Captured_Graph"}:
            builder = last
        if builder is None:
            ids = records.CompileId(-1, sum(key[1] < 0 for key in self._builders))
            builder = GraphBuilder(ids, call=call._replace(marks=None))
            self._builders[builder.ids.key] = [builder]
            self._last_of_call = builder
            names = (f"{function_identifier(call.function)}_{number}" for number in itertools.count(1))
            self.name(builder, next(name for name in names if name not in self._taken))
        if call.marks is not None:
            call.marks[self._mark] = builder
        if call.aot is not None:
            self.of_aot_number[call.aot] = builder
        if shown is not None:
            self._shown[shown] = builder
        if traced is not None:
            self._of_call[traced.key] = builder
        return builder

    def at_work(self, call: current_compilation.CompilerCall) -> GraphBuilder | None:
        """Return the graph that a call of a compiler works on, or worked on if it is at its end; ``None`` for none."""
        last = self._last_of_call
        if call.by_compiler:
            return self.graph_of_call(call)
        return last if last is not None and last.call is not None and (
            call.filename, call.line) == (last.call.filename, last.call.line) else None

    def find(self, graph: Any) -> GraphBuilder | None:
        """Return the graph of a name, torch's or the shown one, or the one that a captured graph module is."""
        for builder in reversed(self.all()):
            if isinstance(graph, str):
                match = graph_modules.GRAPH_NAME.match(builder.torch_name)
                if graph == builder.name or not builder.name and graph in (builder.torch_name, match and match[1]):
                    return builder
            elif builder.module is not None and builder.module() is graph:
                return builder
        return None

    def unnamed(self, ids: records.CompileId) -> list[GraphBuilder]:
        """Return the graphs of a compilation that have no name yet, in the order in which they began."""
        return [builder for builder in self._builders.get(ids.key, ()) if not builder.name]

    def all(self) -> list[GraphBuilder]:
        """Return the graphs in the order in which their compilations began, each before its pieces."""
        return [each for builders in self._builders.values() for builder in builders
                for each in (builder, *builder.pieces.values())]

    # --- what is in them --------------------------------------------------------------------------
    def has(self, builder: GraphBuilder, stage: str, text: str) -> bool:
        """Return whether a graph has this text of a stage already."""
        return any(self._log.read(known).stage.text == text
                   for key, known in builder.stages.items() if key[0] == stage)

    def add_stage(
        self, builder: GraphBuilder, stage: str, text: str, internal: bool = False,
        modules: tuple[records.ModuleCall, ...] = (), inputs: tuple[records.GraphInput, ...] = (),
        callers: tuple[records.Caller, ...] = (), shown_as: str = "",
    ) -> None:
        """Add a text of a stage to a graph, after those that it has of that stage."""
        key = stage, sum(known == stage for known, _ in builder.stages)
        unnamed = records.GraphStage(*key, text, internal, builder.ids if builder.call is None else None,
                                     modules=modules, inputs=inputs, callers=callers, shown_as=shown_as)
        builder.stages[key] = records.StageOfGraph(builder.name, unnamed)

        def record() -> None:
            python = not shown_as or not legal_graph(text).startswith(NOT_PYTHON)
            named = replace(unnamed, file=self._writer.names.stage_file(builder.name, *key, is_python=python))
            builder.stages[key] = records.StageOfGraph(builder.name, named)  # (remains where it cannot be recorded)
            builder.stages[key] = self._log.append(records.StageOfGraph(builder.name, named))
            if self._writer.writes:
                self._writer.graph(builder.name, named, self.inputs(builder))

        builder.when_named(record)

    def add_facts(self, builder: GraphBuilder, **facts: tuple[Any, ...]) -> None:
        """Add values to fields of the record of a graph."""
        add_facts(builder.facts, facts)
        builder.when_named(lambda: self._log.append(self._head(builder)))

    def inputs(self, builder: GraphBuilder) -> tuple[records.GraphInput, ...]:
        """Return the inputs of a graph, as far as they are known."""
        captured = builder.stages.get(("Captured_Graph", 0))
        return () if captured is None else self._log.read(captured).stage.inputs

    def has_forward_kernel_only(self, builder: GraphBuilder) -> bool:
        """Return whether Inductor compiled the forward graph alone. It makes a module of each graph that has calls."""
        keys = builder.last("Forward_graph"), builder.last("Backward_graph")
        return len(builder.kernels) == 1 and all(
            key is not None and any(node.is_call for node in read_graph(
                self._log.read(builder.stages[key]).stage.text).nodes) for key in keys)

    def runs(self, builder: GraphBuilder, stage: str, target: Any) -> None:
        """Link what runs of the last text of a stage to its file."""
        key = builder.last(stage)
        if key is not None:
            builder.when_named(lambda: self._link(
                builder, stage, target, self._writer.names.stage_file(builder.name, *key)))

    def _link(self, builder: GraphBuilder, stage: str, target: Any, file: str) -> None:
        if self._linker is not None:
            self._linker.link_graph(builder.name, stage, target, self._writer.path_of(file))

    def add_kernel(self, builder: GraphBuilder, text: str, path: str, module: Any) -> None:
        """Add a module that Inductor generated, with the path of torch's own file, unless the graph has it."""
        if path in builder.kernels:
            return
        kernel = records.Kernel(len(builder.kernels), text, path, builder.ids if builder.call is None else None)
        builder.kernels[path] = records.KernelOfGraph(builder.name, kernel)

        def record() -> None:
            named = replace(kernel, file=self._writer.names.kernel_file(builder.name, kernel.index))
            builder.kernels[path] = records.KernelOfGraph(builder.name, named)
            builder.kernels[path] = self._log.append(records.KernelOfGraph(builder.name, named))
            if self._writer.writes:
                self._writer.kernel(named)
            self._link(builder, f"kernel_{kernel.index}", module, named.file)

        builder.when_named(record)

    def record(self, builder: GraphBuilder) -> records.CompiledGraph:
        """Return the whole graph."""
        return replace(
            self._head(builder), stages=tuple(self._log.read(each).stage for each in builder.stages.values()),
            kernels=tuple(self._log.read(each).kernel for each in builder.kernels.values()))

    def running(self) -> Iterator[tuple[str, str, str]]:
        """Yield ``(graph, stage, backend)`` of what runs of the graphs that transformed code calls.

        Of a graph that its backend split the pieces run.
        """
        for builder in filter(lambda each: (each.whole or each).is_called and not each.pieces, self.all()):
            stages = [f"kernel_{index}" for index in range(len(builder.kernels))] or [
                stage for stage in ("Forward_graph", "Backward_graph") if builder.last(stage)] or ["Captured_Graph"]
            for stage in stages:
                yield builder.name, stage, builder.backend

    @staticmethod
    def _head(builder: GraphBuilder) -> records.CompiledGraph:
        call = builder.call
        return records.CompiledGraph(
            builder.name, builder.torch_name, builder.ids, builder.backend,
            call=None if call is None else records.SourceLocation(call.filename, call.line, call.function),
            by_compiler=call is None or call.by_compiler, piece_of=builder.whole.name if builder.whole else "",
            **builder.facts)

    # --- names ------------------------------------------------------------------------------------
    def name(self, builder: GraphBuilder, torch_name: str, is_called: bool = False) -> None:
        """Name a graph, after torch's name, and run the actions that waited for that; does transformed code call it?"""
        builder.is_called = is_called
        match = graph_modules.GRAPH_NAME.match(torch_name)
        shown = free_name(match.group(1) if match else torch_name, self._taken, first=2)
        self._taken.add(shown)
        builder.name = shown
        if builder.whole is None:
            builder.torch_name = torch_name
            self.names[torch_name] = shown
        self._log.append(self._head(builder))
        waiting, builder.waiting = builder.waiting, ()
        for action in waiting:
            self._attempt(action, None)

    def name_the_rest(self) -> None:
        """Name the graphs that no code calls: their compilation failed, or is in progress."""
        for builder in self.all():
            if not builder.name:
                torch_name = builder.torch_name or "__graph_of_frame_{1}_{2}".format(*builder.ids.key)
                self._attempt(lambda: self.name(builder, torch_name), None)  # (and its pieces)
