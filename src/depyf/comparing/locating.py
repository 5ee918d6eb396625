"""The first node or kernel of a stage that gives something else: each stage runs once more, and records its values."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch

from ..capture.torch_private import pipeline
from ..model.graph import Node
from ..model.graph_text import read_graph
from ..records.model import SourceLocation
from ..watch.origins import UserLine
from .reachable import Reachable
from .recording import STAGE_TITLES, EagerCalls, GraphRun, Recorder, Value
from .reference import Tolerance, difference, snapshot
from .results import Difference
from .runs import JudgedCall


class Located:
    """Finds where the stages of a call begin to differ; by runs on copies in this process, to compare their values."""

    def __init__(self, call: JudgedCall, dynamic: bool | None) -> None:
        self._call, self._dynamic = replace(call, here=True), dynamic
        self._given: list[Any] = []
        self.notes: list[str] = []
        self._eager: list[Value] | None = None
        self._runs: dict[str, list[GraphRun]] = {}
        self._search = Search(call.tolerance)

    def first(self, stages: Iterable[str]) -> Difference | None:
        """Return the difference with which the first of some stages begins that has one."""
        return next(filter(None, map(self._own, stages)), None)

    def captured_node(self) -> Difference | None:
        """Return the first captured node that does not compute what its line computes in eager Python.

        ``None`` also where an input of the graph has a value that eager Python never had: the fault is before it.
        """
        first = self._own("captured")
        run = next((each for each in self._runs_at("captured") if first and each.number == first.graph), None)
        if first is None or run is None:
            return first
        nodes, values = _nodes(run), {each.name: each.value for each in run.values}
        known = list(_flat([*(each.value for each in self._eager_calls()), *self._given]))
        inputs = [nodes[name] for name in nodes[first.name].inputs if name in nodes]
        return None if any(not node.is_call and isinstance(value := values.get(node.name), torch.Tensor) and not any(
            difference(value, other, self._call.tolerance)[0] for other in known) for node in inputs) else first

    def _own(self, stage: str) -> Difference | None:
        search, runs = self._search, self._runs_at(stage)
        if stage == "captured":
            return search.captured(self._eager_calls(), runs)
        if stage == "inductor":
            return search.between(stage, runs, self._runs_at("aot"), "the graph before Inductor's passes") \
                or search.kernels(runs)
        found = search.between(stage, self._runs_at("captured"), runs, "the AOT graph", between_lines=True)
        if found is None and any(each.backward for each in runs):
            plain = [each for each in self._runs_at("plain") if each.backward]
            found = search.between(stage, plain, runs, "the backward graph with decompositions", between_lines=True)
        return found

    def _eager_calls(self) -> list[Value]:
        if self._eager is None:
            calls = EagerCalls()

            def work(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
                given = Reachable({"args": args, "kwargs": kwargs, **self._call.roots})
                self._given = [snapshot(each) for each in given.tensors]
                with pipeline.all_eager(), calls, contextlib.suppress(Exception):  # (it may be its result)
                    self._call.function(*args, **kwargs)

            self._call.run(work)
            self._eager = calls.values
        return self._eager

    def _runs_at(self, stage: str) -> list[GraphRun]:
        """Run the call at a stage, and return what its graphs computed."""
        if stage not in self._runs:
            recorder = Recorder(on=True)
            try:
                self._call.at_stage(stage, recorder, self._dynamic)
            except Exception as error:
                self.notes.append(f"{STAGE_TITLES.get(stage, stage)}: no node was looked for: {error}")
            self.notes += recorder.notes
            self._runs[stage] = recorder.runs
        return self._runs[stage]


# --- the first node or kernel that differs -----------------------------------------------------------
# Nodes of one stage are compared with those of the stage before by their values: the counterpart of a node is any node
# of the other graph with the same shape and dtype that gives the same, those of the same line first. So it does not
# matter how a stage names or splits its computations, and a node is at fault only when nothing in the other graph
# gives its value although something there could.
class Search:
    """Looks for the first difference of a stage."""

    def __init__(self, tolerance: Tolerance) -> None:
        self.tolerance = tolerance

    def node(
        self, stage: str, run: GraphRun, candidates: Callable[[Node], Iterable[Any]], against: str,
    ) -> Difference | None:
        """Return the first node of a run whose value is none of its candidates, which ``against`` names in words."""
        nodes = _nodes(run)
        for value in run.values:
            node = nodes.get(value.name)
            if node is not None and node.is_call:
                distance = self.distance(value.value, candidates(node))
                if distance is not None:
                    return Difference(stage, "node", value.name, run.number, run.backward, (), against, distance,
                                      _lines(nodes, [value.name]))
        return None

    def captured(self, eager: Sequence[Value], runs: Sequence[GraphRun]) -> Difference | None:
        """Return the first captured node whose value no call of torch on its line gave in eager Python."""
        def on_its_line(node: Node) -> list[Any]:
            place = node.location
            # (Torch cuts what a path has in common with its own.)
            return [] if place is None else [each.value for each in eager if any(
                line == place.line and file.endswith(place.filename) for file, line in each.places)]

        found = (self.node("captured", run, on_its_line, "what eager Python computes on that line") for run in runs)
        return next(filter(None, found), None)

    def between(
        self, stage: str, runs: Sequence[GraphRun], others: Sequence[GraphRun], against: str,
        between_lines: bool = False,
    ) -> Difference | None:
        """Return the first node whose value no node of the same graph at another stage gives.

        Args:
            others: runs of the same graphs at the other stage; ``against`` names them in words.
            between_lines: leave out intermediate values of a line on both sides.
        """
        for run in runs:
            other = next((each for each in others if (each.number, each.backward) == (run.number, run.backward)), None)
            if other is None or difference(_returned(run), _returned(other), self.tolerance)[0]:
                continue
            if between_lines:
                run, other = _values_between_lines(run), _values_between_lines(other)
            values = [each.value for each in other.values]
            found = self.node(stage, run, lambda node: values, against)  # noqa: B023  (it is called at once)
            if found is not None:
                return found
        return None

    def kernels(self, runs: Sequence[GraphRun]) -> Difference | None:
        """Return the first kernel that writes a value that none of its nodes gives."""
        for run in runs:
            values = {value.name: value.value for value in run.values}
            for call, writes in run.kernels if values else ():
                own = [values[name] for name in call.nodes if name in values]
                for written in writes:
                    distance = self.distance(written.value, own)
                    if distance is not None and self.distance(written.value, values.values()) is not None:
                        return Difference(
                            "inductor", "kernel", call.name, run.number, run.backward, call.nodes,
                            f"its nodes in eager PyTorch, in {written.name}", distance, _lines(_nodes(run), call.nodes))
        return None

    def distance(self, value: Any, others: Iterable[Any]) -> float | None:
        """Return the smallest difference to tensors of the same shape and dtype; ``None`` where one is equal."""
        best: float | None = None
        for other in _flat(others) if isinstance(value, torch.Tensor) else ():
            if isinstance(other, torch.Tensor) and (value.dtype, value.shape) == (other.dtype, other.shape):
                equal, distance = difference(value, other, self.tolerance)
                if equal:
                    return None
                best = distance if best is None else min(best, distance)
        return best


def _flat(values: Iterable[Any]) -> Iterator[Any]:
    """Yield values, those of a sequence one by one."""
    for value in values:
        yield from value if isinstance(value, (tuple, list)) else [value]


def _nodes(run: GraphRun) -> dict[str, Node]:
    return {node.name: node for node in read_graph(run.text).nodes}


def _returned(run: GraphRun) -> list[Any]:
    values = {value.name: value.value for value in run.values}
    return [values.get(name) for name in run.results]


def _values_between_lines(run: GraphRun) -> GraphRun:
    """Return a run with the values only that a node of another line takes, or that are returned."""
    nodes = _nodes(run)
    taken = {name for node in nodes.values() for name in node.inputs
             if name in nodes and nodes[name].location != node.location}
    return replace(run, values=[each for each in run.values if each.name in taken or each.name in run.results])


def _lines(nodes: dict[str, Node], names: Iterable[str]) -> tuple[UserLine, ...]:
    """Return the lines of nodes; of one for which torch names none, that of the nearest node that it takes."""
    found: dict[SourceLocation, None] = {}
    for name in names:
        pending, seen = [name], set()
        while pending:
            node = nodes.get(current := pending.pop(0))
            if node is not None and node.location is not None:
                found[node.location] = None
                break
            if node is not None and current not in seen:
                seen.add(current)
                pending += node.inputs
    return tuple(map(UserLine, found))
