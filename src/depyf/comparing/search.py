"""Search for the first node or kernel that gives something else.

Nodes of one stage are held against those of the stage before by their values: the counterpart of a node is any node of
the other graph with the same shape and dtype that gives the same, those of the same line first. So it does not matter
how a stage names or splits what it computes, and a node is at fault only when nothing in the other graph gives its
value although something there could.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch

from ..provenance.graph_provenance import Provenance, StageNodes
from ..records.model import CompiledGraph, CompileId, GraphStage, SourceLocation
from ..torch_text.graph_text import Node
from ..watch.origins import UserLine
from .recording import GraphRun, Value
from .results import Difference
from .tensors import Tolerance, difference

_Place = tuple[str, int]


class Search:
    """Looks for the first difference of a stage.

    Args:
        tolerance: how far values may be apart.
    """

    def __init__(self, tolerance: Tolerance) -> None:
        self.tolerance = tolerance

    def captured(self, eager: Sequence[Value], runs: Sequence[GraphRun]) -> Difference | None:
        """Return the first captured node that gives what no call of torch's on its line gave in eager Python."""
        for run in runs:
            nodes = _nodes(run)
            for value in run.values:
                node = nodes.get(value.name)
                if node is None or not node.is_call or node.location is None:
                    continue
                place = (node.location.filename, node.location.line)
                there = [each.value for each in eager if _among(place, each.places)]
                apart = self.apart(value.value, there)
                if apart is not None:
                    return Difference("captured", "node", value.name, run.number, run.backward, (),
                                      "what eager Python computes on that line", apart, _lines([node.location]))
        return None

    def aot(self, captured: Sequence[GraphRun], runs: Sequence[GraphRun]) -> Difference | None:
        """Return the first captured node whose value no node of the AOT graph has."""
        for before in captured:
            after = next((run for run in runs if run.number == before.number and not run.backward), None)
            if after is None:
                continue
            result = self._decomposed(before, after)
            if result is not None:
                return result
        return None

    def _decomposed(self, before: GraphRun, after: GraphRun) -> Difference | None:
        ids = CompileId(0, 0)
        provenance = Provenance(CompiledGraph("", "", ids, "", (
            GraphStage("Captured_Graph", 0, before.text), GraphStage("Forward_graph", 0, after.text))))
        stage = provenance.stage("Forward_graph")
        if stage is None:
            return None
        values = {value.name: value.value for value in after.values}
        inner = _inner(stage)
        nodes = _nodes(before)
        for value in before.values:
            node = nodes.get(value.name)
            if node is None or not node.is_call:
                continue
            candidates = [each for name, each in values.items() if inner.get(name) != value.name]
            if self.apart(value.value, candidates) is None:
                continue
            # What computes it there: the nodes that are tied to it, or else those of its line.
            own = [name for name, origin in stage.origins.items() if origin.captured == value.name and name in values]
            line = [name for name, origin in stage.origins.items()
                    if name in values and origin.location is not None and origin.location == node.location]
            same_shape = [name for name in own if _alike(values[name], value.value)] or [
                name for name in line if _alike(values[name], value.value)]
            if not same_shape:
                continue
            name = same_shape[-1]
            _, apart = difference(values[name], value.value, self.tolerance)
            return Difference("aot", "node", name, after.number, False, (),
                              f"{value.name} of the captured graph", apart,
                              _lines([node.location] if node.location else _location(stage, name)))
        return None

    def gradients(self, plain: Sequence[GraphRun], runs: Sequence[GraphRun]) -> Difference | None:
        """Return the first value of a line in a backward graph without decompositions that the other does not give.

        The other is that with decompositions. What a line computes on the way is left out on both sides.
        """
        for before in plain:
            after = next((run for run in runs if run.backward and run.number == before.number), None)
            if not before.backward or after is None:
                continue
            given, theirs = _of_lines(before), _of_lines(after)
            nodes, others = _nodes(before), _nodes(after)
            candidates = [value.value for value in after.values if value.name in theirs]
            for value in before.values:
                node = nodes.get(value.name)
                if node is None or not node.is_call or value.name not in given:
                    continue
                apart = self.apart(value.value, candidates)
                if apart is None:
                    continue
                places = _locations(nodes, value.name)
                there = [each.name for each in after.values if each.name in theirs and _alike(each.value, value.value)
                         and others[each.name].is_call and _locations(others, each.name) == places]
                return Difference("aot", "node", there[-1] if there else value.name, after.number, True, (),
                                  f"{value.name} of the backward graph without decompositions", apart, _lines(places))
        return None

    def passes(self, aot: Sequence[GraphRun], runs: Sequence[GraphRun]) -> Difference | None:
        """Return the first node of a graph after Inductor's passes that gives what no node of the graph before does."""
        for run in runs:
            before = next((each for each in aot if (each.number, each.backward) == (run.number, run.backward)), None)
            if before is None or not run.values or self._same_results(before, run):
                continue
            values = {value.name: value.value for value in before.values}
            candidates = list(values.values())
            nodes = _nodes(run)
            for value in run.values:
                node = nodes.get(value.name)
                if node is None or not node.is_call:
                    continue
                there = [values[value.name]] if value.name in values else candidates
                apart = self.apart(value.value, there)
                if apart is not None and self.apart(value.value, candidates) is not None:
                    return Difference(
                        "inductor", "node", value.name, run.number, run.backward, (),
                        "the graph before Inductor's passes", apart, _lines(_locations(nodes, value.name)))
        return None

    def _same_results(self, before: GraphRun, after: GraphRun) -> bool:
        """Return whether two graphs return the same number of values, and the same ones."""
        first = {value.name: value.value for value in before.values}
        second = {value.name: value.value for value in after.values}
        return len(before.results) == len(after.results) and all(
            difference(second.get(other), first.get(one), self.tolerance)[0]
            for one, other in zip(before.results, after.results))

    def kernels(self, runs: Sequence[GraphRun]) -> Difference | None:
        """Return the first kernel that writes what no node that it computes gives."""
        for run in runs:
            values = {value.name: value.value for value in run.values}
            if not values:
                continue
            nodes = _nodes(run)
            candidates = list(values.values())
            for kernel in run.kernels:
                own = [values[name] for name in kernel.call.nodes if name in values]
                for written in kernel.written:
                    apart = self.apart(written.value, own)
                    if apart is not None and self.apart(written.value, candidates) is not None:
                        places = [place for name in kernel.call.nodes for place in _locations(nodes, name)]
                        return Difference(
                            "inductor", "kernel", kernel.call.name, run.number, run.backward, kernel.call.nodes,
                            f"its nodes in eager PyTorch, in {written.name}", apart, _lines(places))
        return None

    def apart(self, value: Any, others: Iterable[Any]) -> float | None:
        """Return the smallest difference to those of its kind; ``None`` where one is equal, or none is of its kind."""
        if isinstance(value, (tuple, list)) or not isinstance(value, torch.Tensor):
            return None
        best: float | None = None
        for other in flat(others):
            if _alike(value, other):
                equal, apart = difference(value, other, self.tolerance)
                if equal:
                    return None
                best = apart if best is None else min(best, apart)
        return best


def flat(values: Iterable[Any]) -> Iterable[Any]:
    """Yield values, those of a sequence one by one."""
    for value in values:
        if isinstance(value, (tuple, list)):
            yield from value
        else:
            yield value


def _alike(value: Any, other: Any) -> bool:
    return isinstance(value, torch.Tensor) and isinstance(other, torch.Tensor) and value.dtype == other.dtype \
        and value.numel() == other.numel() and value.shape == other.shape


def _nodes(run: GraphRun) -> dict[str, Node]:
    from ..torch_text.graph_text import read_graph

    return {node.name: node for node in read_graph(run.text).nodes}


def _locations(nodes: dict[str, Node], name: str) -> list[SourceLocation]:
    """Return the node's line; where torch names none, that of the nearest node that it takes."""
    pending, seen = [name], set()
    while pending:
        current = pending.pop(0)
        node = nodes.get(current)
        if node is None or current in seen:
            continue
        seen.add(current)
        if node.location is not None:
            return [node.location]
        pending += node.inputs
    return []


def node_lines(run: GraphRun, name: str) -> tuple[UserLine, ...]:
    """Return the user's line that a node comes from."""
    return _lines(_locations(_nodes(run), name))


def _of_lines(run: GraphRun) -> set[str]:
    """Return nodes that a node of another line takes, or that are returned."""
    nodes = _nodes(run)
    result = set(run.results)
    for node in nodes.values():
        for name in node.inputs:
            if name in nodes and nodes[name].location != node.location:
                result.add(name)
    return result


def _inner(stage: StageNodes) -> dict[str, str]:
    """Return nodes that only nodes of the same captured one take: ``{node: captured}``.

    That is then not what they give.
    """
    users: dict[str, set[str]] = {}
    for node in stage.graph.nodes:
        own = stage.origins[node.name].captured if node.is_call and node.name in stage.origins else ""
        for name in node.inputs:
            users.setdefault(name, set()).add(own)
    return {name: origin.captured for name, origin in stage.origins.items()
            if origin.captured and users.get(name) == {origin.captured}}


def _location(stage: StageNodes, name: str) -> list[SourceLocation]:
    origin = stage.origins.get(name)
    return [origin.location] if origin is not None and origin.location is not None else []


def _lines(locations: Iterable[SourceLocation]) -> tuple[UserLine, ...]:
    return tuple(dict.fromkeys(UserLine(location) for location in locations))


def _among(place: _Place, places: Iterable[_Place]) -> bool:
    """Return whether a place is one of several; torch cuts what a path has in common with its own."""
    return any(line == place[1] and (file == place[0] or file.endswith(place[0])) for file, line in places)
