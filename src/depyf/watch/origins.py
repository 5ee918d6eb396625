"""The computation of a line of a dumped file, and the user's lines that it comes from."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterable, Mapping, Sequence

from ..model.folding import fold
from ..model.graph import Node
from ..model.graph_text import read_graph
from ..provenance.graph_provenance import Provenance, StageNodes
from ..records import store
from ..records.model import CompiledGraph, Kernel, SourceLocation
from ..values import frozen
from ..views.dump.directory import stage_view
from ..views.dump.graph_view import parameter_words


@frozen
class UserLine:
    """A user's line, and the module in which it ran (``"layers.3.mlp"``; empty outside of modules)."""

    location: SourceLocation
    module: str = ""

    def __str__(self) -> str:
        place = f"{self.location.filename}:{self.location.line}"
        if self.location.function:
            place += f" in {self.location.function}"
        if self.location.text:
            place += f": {self.location.text}"
        return place + (f"    (module {self.module})" if self.module else "")


@frozen
class Origin:
    """The computation of a line of a graph or of a generated module."""

    nodes: tuple[str, ...] = ()  # of the graph; all that a kernel's call computes, in order
    graph_file: str = ""  # the file that shows those nodes, where it is another one
    kernel: str = ""  # the kernel's name; empty in a graph
    user_lines: tuple[UserLine, ...] = ()  # each once, in the order of the nodes
    inferred: bool = False  # the nodes of a kernel were inferred, not reported by torch
    literals: frozenset[str] = frozenset()  # those of `{"inf", "nan"}` that are constants of those nodes


class Origins:
    """The origins of the lines of one dumped file, whose records are in the same folder; read when first asked for."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path  # of the file
        self.name = os.path.basename(path)
        self.text = text  # the text that runs, line by line as in the file

    @functools.cached_property
    def graph(self) -> CompiledGraph | None:
        """The record of the file's graph, if it can be read."""
        try:
            capture = store.read(os.path.dirname(self.path))
        except (OSError, ValueError):
            return None
        return next((graph for graph in capture.graphs if self.name in {
            *(stage.file for stage in graph.stages), *(kernel.file for kernel in graph.kernels)}), None)

    @functools.cached_property
    def _provenance(self) -> Provenance | None:
        return Provenance(self.graph) if self.graph is not None else None

    @functools.cached_property
    def _stage(self) -> StageNodes | None:
        stages = self._provenance.stages if self._provenance is not None else ()
        return next((each for each in stages if each.record.file == self.name), None)

    @functools.cached_property
    def _nodes(self) -> Mapping[int, Sequence[Node]]:
        """Nodes of a graph by the first line of their statement."""
        if self._stage is None or self.graph is None:
            return fold(read_graph(self.text).nodes, lambda node: node.line)
        view = stage_view(self._stage.record, self.graph.inputs)
        above = self.text[: max(self.text.find(view.text), 0)].count("\n")
        return fold(self._stage.graph.nodes, lambda node: view.line(node.line) + above)

    def at(self, line: int) -> Origin:
        """Return the computation of a line; empty where nothing is known. Never raises."""
        try:
            kernels = self._provenance.kernels if self._provenance is not None else ()
            kernel = next((each for each in kernels if each.file == self.name), None)
            if kernel is not None:
                return self._kernel_origin(kernel, line)
            nodes = self._nodes.get(line, ())
            return Origin(tuple(node.name for node in nodes), user_lines=self._lines(self._stage, nodes))
        except Exception:  # noqa: BLE001  (the fault is described without it)
            return Origin()

    def argument(self, name: str) -> str:
        """Return the meaning of an argument in words; empty where it is not known."""
        if name.startswith("tangents_"):
            return "a gradient that came in"
        try:
            words = parameter_words(name, self.graph.inputs) if self.graph is not None else ""
        except Exception:  # noqa: BLE001
            words = ""
        return words if words != name else ""

    def _lines(self, stage: StageNodes | None, nodes: Iterable[Node]) -> tuple[UserLine, ...]:
        result: dict[UserLine, None] = {}
        for node in nodes:
            location, module = node.location, ""
            origin = stage.origins.get(node.name) if stage is not None else None
            if origin is not None and self._provenance is not None:
                location = location or origin.location
                calls = self._provenance.module_path(origin.module)
                module = calls[-1].path if calls else ""
            if location is not None:
                result[UserLine(location, module)] = None
        return tuple(result)

    # --- kernels ----------------------------------------------------------------------------------
    def _kernel_origin(self, kernel: Kernel, line: int) -> Origin:
        assert self._provenance is not None
        call = next((each for each in kernel.calls if each.call_line == line), None)
        if call is None:
            return Origin()
        stage = self._provenance.kernel_stage(kernel)
        if stage is None:
            return Origin(call.nodes, kernel=call.name, inferred=call.inferred)
        wanted, lines = set(call.nodes), stage.record.text.split("\n")
        nodes = [node for node in stage.graph.nodes if node.name in wanted]
        file = os.path.join(os.path.dirname(self.path), stage.record.file) if stage.record.file else ""
        return Origin(call.nodes, file, call.name, self._lines(stage, nodes), call.inferred,
                      literals(lines[node.line - 1] for node in nodes if 0 < node.line <= len(lines)))


def literals(lines: Iterable[str]) -> frozenset[str]:
    """Return those of ``{"inf", "nan"}`` that are constants in lines of a graph."""
    return frozenset(re.findall(r"\b(?:inf|nan)\b", " ".join(line.split("  # ")[0] for line in lines)))
