"""The origin of a node of a graph: user line -> captured node -> node of a later stage -> kernel, and back.

Torch's print of a later stage names the user's line of each node, not the captured node. The captured node, and with
it the module, is *inferred* from the text alone (:mod:`.alignment`), so that it is the same from a cold compile, a warm
cache, records read elsewhere and a log of ``TORCH_TRACE``. :mod:`depyf.provenance.kernel_mapping` says which kernel
computes a node.

The key of an entry of AOTAutograd's and Inductor's caches is what a graph computes, not where that is written. The
comments in an entry of another program, or of this one before it was edited (a notebook cell is another file after each
change), name the lines of then. What was captured now says where the same lines are (:func:`relocated`).
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from ..model.folding import fold
from ..model.graph import Graph, Node, is_gradient, is_in_place, last_name
from ..model.graph_text import read_graph
from ..records.model import CompiledGraph, GraphStage, Kernel, KernelCall, ModuleCall, SourceLocation
from ..records.naming import AROUND
from ..torch_text.modules import is_of_module
from .alignment import UNKNOWN, CapturedRuns, align
from .kernel_mapping import graph_kernels


class Origin(NamedTuple):
    """The origin of a node of a stage, as far as it is known."""

    # name of the captured node; `""` if none fits. Names in an inner graph begin with the name of that:
    # `"wrap_body_0.linear"`.
    captured: str = ""
    module: int = -1  # index of the module call in `GraphStage.modules` of the captured graph; -1: none
    # the user's line: the node's own or, where torch names none, of a result that of the captured one; of what computes
    # nothing (an input, a view, a copy into an input) that of the nearest node which gives or takes its value; of a
    # node without values (`_set_grad_enabled`), that of the node before it
    location: SourceLocation | None = None


@dataclass
class StageNodes:
    """A stage with its nodes."""

    record: GraphStage
    graph: Graph
    # by node name; nodes within inner graphs are named `"true_graph_0.add"`
    origins: dict[str, Origin] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """Return how kernels name the stage: ``"AFTER_POST_GRAD.0"``."""
        return f"{self.record.stage}.{self.record.index}"

    def nodes(self) -> list[tuple[str, Node]]:
        """Return all nodes with their names in records, those of inner graphs too."""
        return self.graph.named_nodes()

    @functools.cached_property
    def is_backward(self) -> bool:
        """Whether the graph takes gradients."""
        return any(is_gradient(node.name) for node in self.graph.nodes if node.op == "placeholder")


#: The operation by which the transforms of ``torch.func`` take gradients.
_TAKES_GRADIENTS = "_functorch.eager_transforms._autograd_grad"


class Provenance:
    """The stages of a graph with the origins of their nodes."""

    def __init__(self, graph: CompiledGraph) -> None:
        # the record; of its stages only the texts, and `modules` and `callers` of the captured one are used
        self.graph = graph
        self.stages = [
            StageNodes(stage, read_graph(stage.text) if stage.stage not in AROUND and stage.is_python else Graph(""))
            for stage in graph.stages]
        captured = [stage for stage in self.stages if stage.record.stage == "Captured_Graph"]
        self.captured: StageNodes | None = captured[-1] if captured else None  # the captured one, if there is one
        for stage in self.stages:
            if self.captured is not None and stage is not self.captured:
                stage.graph = relocated(stage.graph, self.captured.graph)
        record = self.captured.record if self.captured is not None else GraphStage("", 0, "")
        self.modules: tuple[ModuleCall, ...] = record.modules  # calls of modules while it was captured
        # the user's lines of captured nodes for which torch names a line of its own code
        self.callers = {name: caller.location for caller in record.callers for name in caller.nodes}
        self._module_of = {name: index for index, call in enumerate(self.modules) for name in call.nodes}
        self._match()

    def stage(self, name: str, index: int = 0) -> StageNodes | None:
        """Return a stage by its name and number."""
        return next((s for s in self.stages if (s.record.stage, s.record.index) == (name, index)), None)

    def module_path(self, index: int) -> tuple[ModuleCall, ...]:
        """Return the calls that a call was made in, outermost first, itself last."""
        path: list[ModuleCall] = []
        while 0 <= index < len(self.modules) and len(path) <= len(self.modules):
            path.append(self.modules[index])
            index = self.modules[index].outer
        return tuple(reversed(path))

    def parameter(self, name: str) -> str:
        """Return the captured placeholder that a later stage calls ``primals_3`` or ``arg2_1``; ``""`` for others."""
        return self._runs.parameter(name)

    def is_argument(self, name: str) -> bool:
        """Return whether an input of a stage is a gradient or a call argument, not of a module.

        False for a saved value, which a backward graph takes.
        """
        return is_gradient(name) or (self.parameter(name) or name) in self._arguments

    @functools.cached_property
    def _arguments(self) -> frozenset[str]:
        placeholders, inputs = self._runs.placeholders, self.graph.inputs
        return frozenset(name for name, given in zip(placeholders, inputs) if len(placeholders) == len(inputs)
                         and given.source and not is_of_module(given.source))

    # --- kernels ----------------------------------------------------------------------------------
    @functools.cached_property
    def kernels(self) -> tuple[Kernel, ...]:
        """The generated modules with the calls in them; the record's own where it has them."""
        if all(kernel.calls for kernel in self.graph.kernels):
            return self.graph.kernels
        return graph_kernels(self.graph, {
            stage.key: {name: origin.captured for name, origin in stage.origins.items()} for stage in self.stages})

    def kernel_stage(self, kernel: Kernel) -> StageNodes | None:
        """Return the graph that a module was generated from."""
        return next((stage for stage in self.stages if stage.key == kernel.stage), None)

    def nodes_of(self, kernel: Kernel, call: KernelCall) -> Iterator[tuple[StageNodes, str]]:
        """Yield the nodes that a call computes, of the graph that the module was generated from."""
        stage = self.kernel_stage(kernel)
        yield from ((stage, name) for name in call.nodes if stage is not None and name in stage.origins)

    def user_line(self, stage: StageNodes, name: str, node: Node) -> SourceLocation | None:
        """Return the line that torch prints for a node, or the user's line that called it where that is torch's own."""
        origin = stage.origins.get(name)
        return (self.callers.get(origin.captured) if origin is not None else None) or node.location

    # --- alignment of the stages ------------------------------------------------------------------
    @functools.cached_property
    def _gradients_of_several_lines(self) -> frozenset[str]:
        """The captured nodes of a line of torch that takes gradients for several of the user's lines.

        What ``torch.func.grad`` does there becomes any number of operations: the next line may begin anywhere.
        """
        by_place: dict[tuple[str, int], dict[str, SourceLocation]] = {}
        unclear: set[tuple[str, int]] = set()
        for name, node in self.captured.nodes() if self.captured is not None else ():
            if name in self.callers and node.location is not None:
                place = node.location.filename, node.location.line
                by_place.setdefault(place, {})[name] = self.callers[name]
                unclear |= {place} if node.target.endswith(_TAKES_GRADIENTS) else set()
        return frozenset(name for place in unclear for name in by_place[place]
                         if len({(line.filename, line.line) for line in by_place[place].values()}) > 1)

    def _match(self) -> None:
        calls: dict[int, tuple[int, ...]] = {}  # those that each was made in, and itself
        for index, call in enumerate(self.modules):
            calls[index] = (*calls.get(call.outer, ()), index)
        runs = self._runs = CapturedRuns(self.captured.graph if self.captured else Graph(""), {
            name: calls[index] for name, index in self._module_of.items()})
        forward = UNKNOWN
        for stage in self.stages:
            if stage is self.captured:
                lines = _locations(stage.graph)
                before: SourceLocation | None = None
                for name, node in stage.nodes():
                    place = self.callers.get(name) or node.location or lines.get(name) or (
                        before if node.is_call and node.type is None else None)
                    before = place if node.is_call else before
                    stage.origins[name] = Origin(name, self._module_of.get(name, -1), place)
                continue
            aligned = align(runs, stage.graph, forward if stage.is_backward else UNKNOWN)
            if stage.record.stage == "Forward_graph":
                forward = aligned  # the backward graph names saved values as this one does
            results = self._results(stage)
            locations = _locations(stage.graph, {
                name: origin.location for name, origin in results.items() if origin.location is not None})
            for name, node in stage.nodes():
                captured = aligned.captured.get(name) or results.get(name, Origin()).captured
                captured = "" if captured in self._gradients_of_several_lines else captured
                stage.origins[name] = Origin(
                    captured, aligned.within.get(name, self._module_of.get(captured, -1)),
                    self.callers.get(captured) or node.location or locations.get(name))

    def _results(self, stage: StageNodes) -> dict[str, Origin]:
        """Return the origins of results without a line: those of the captured results, where these are as many.

        A pass of Inductor's that replaces the last node leaves no line. (After changes in place the order differs.)
        """
        captured, graph = self.captured, stage.graph
        if captured is None or stage.is_backward or len(graph.results) != len(captured.graph.results) or any(
                is_in_place(node.target) for _, node in captured.nodes() if node.is_call):
            return {}
        origins = zip(graph.results, map(captured.origins.get, captured.graph.results))
        without = {node.name for node in graph.nodes if node.location is None and node.is_call}
        return {name: origin for name, origin in origins if name in without and origin is not None}


def _locations(graph: Graph, given: Mapping[str, SourceLocation] = MappingProxyType({})) -> dict[str, SourceLocation]:
    """Return a line for nodes that have none and compute nothing: that of their first input, else of a user.

    These are inputs, views, parts of results, and copies into inputs.

    Args:
        given: nodes of which the line is known.
    """
    result = dict(given)
    known = result | {node.name: node.location for node in graph.nodes if node.location is not None}
    moves = {node.name for node in graph.nodes
             if not node.is_call or node.is_view or last_name(node.target) == "copy_"}
    for node in graph.nodes:
        if node.name in moves and node.name not in known and node.is_call:
            place = next((known[name] for name in node.inputs if name in known), None)
            if place is not None:
                result[node.name] = known[node.name] = place
    for node in reversed(graph.nodes):
        if node.name in known:
            for name in node.inputs:
                if name not in known and name in moves:
                    result[name] = known[name] = known[node.name]
    return result


# --- Lines of a graph from torch's cache -------------------------------------------------------------
def relocated(graph: Graph, captured: Graph) -> Graph:
    """Return the graph, with the lines that the captured graph has for the same text in the same function.

    A stage is from a cache entry if it names none of the captured graph's lines, one of them with another text, or the
    text of one at another line of the file. Its lines without a counterpart are dropped: no line is better than a wrong
    one.
    """
    home = _places(captured)
    own = _places(graph)
    if not home or not own:
        return graph
    texts = {(place.filename, place.line): place.text for place in home}
    there = _by_text(home)
    moved = [place for place in own if place not in home and (
        (place.filename, place.line) in texts
        or any(other.filename == place.filename for other in there.get(_words(place), ())))]
    if not moved and any(place in home for place in own):
        return graph
    by_text = _by_text(own)
    table: dict[SourceLocation, SourceLocation | None] = {}
    for words, places in by_text.items():
        # (the same text on several lines: in their order, where there are as many)
        table |= {place: place if place in home else None for place in places} | (
            dict(zip(places, there[words])) if len(there.get(words, ())) == len(places) else {})

    def replaced(one: Graph) -> Graph:
        nodes = tuple(node._replace(location=table[node.location]) if node.location is not None else node
                      for node in one.nodes)
        return dataclasses.replace(one, nodes=nodes, subgraphs=tuple(map(replaced, one.subgraphs)))

    return replaced(graph)


def _places(graph: Graph) -> dict[SourceLocation, None]:
    return {node.location: None for _, node in graph.named_nodes() if node.location is not None}


def _by_text(places: dict[SourceLocation, None]) -> dict[tuple[str, str], list[SourceLocation]]:
    return fold(sorted(places, key=lambda place: (place.filename, place.line)), _words)


def _words(place: SourceLocation) -> tuple[str, str]:
    return place.function, place.text.strip()
