"""The first node or kernel of a stage that gives something else: each stage runs once more, and records its values."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import torch

from ..capture.torch_private import hooks, pipeline
from ..model.graph import Node
from ..model.graph_text import read_graph
from ..records.model import SourceLocation
from ..watch.origins import UserLine
from . import stages
from .outcome import outcome_of
from .reachable import Reachable
from .recording import EagerCalls, GraphRun, Recorder, Value
from .results import Difference, StageResult
from .runs import JudgedCall
from .tensors import Tolerance, difference, kept


class Located:
    """Where the stages of one call begin to differ.

    Args:
        call: runs on copies in this process, so that what is recorded in one run can be compared with another's.
        dynamic: as of ``torch.compile``.
    """

    def __init__(self, call: JudgedCall, dynamic: bool | None) -> None:
        self._call = replace(call, here=True)
        self._dynamic = dynamic
        self._given: list[Any] = []
        self.notes: list[str] = []
        self._eager: list[Value] | None = None
        self._runs: dict[str, list[GraphRun]] = {}

    def first(self, wanted: Sequence[StageResult]) -> dict[str, Difference]:
        """Return the first difference of each stage that differs, that of an earlier one where that has it, too.

        Args:
            wanted: the stages that differ, in order.
        """
        hooks.never_compile("depyf")
        found: dict[str, Difference] = {}
        search = Search(self._call.tolerance)
        with pipeline.isolated_compile():
            for each in wanted:
                own = next(iter(found.values()), None) or self._own(each.stage, search)
                if own is not None:
                    found[each.stage] = own
        return found

    def captured_node(self) -> Difference | None:
        """Return the first captured node that does not compute what its line computes in eager Python.

        ``None`` also where it begins with a value that eager Python never had: what is wrong happened before the graph.
        """
        hooks.never_compile("depyf")
        with pipeline.isolated_compile():
            first = self._own("captured", Search(self._call.tolerance))
        return first if first is not None and not self._begins_with_other_values(first) else None

    def _own(self, stage: str, search: Search) -> Difference | None:
        if stage == "captured":
            return search.captured(self._eager_calls(), self._runs_at("captured"))
        if stage == "aot":
            runs = self._runs_at("aot")
            found = search.aot(self._runs_at("captured"), runs, "the AOT graph")
            if found is None and any(each.backward for each in runs):
                plain = [each for each in self._runs_at("plain") if each.backward]
                found = search.aot(plain, runs, "the backward graph with decompositions")
            return found
        return search.passes(self._runs_at("aot"), self._runs_at("inductor")) or search.kernels(
            self._runs_at("inductor"))

    def _eager_calls(self) -> list[Value]:
        if self._eager is None:
            calls = EagerCalls()

            def work(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
                walk = Reachable()
                for name, each in {"args": args, "kwargs": kwargs, **self._call.roots}.items():
                    walk.add(name, each)
                self._given = [kept(each) for each in walk.tensors]
                with pipeline.all_eager(), calls, contextlib.suppress(Exception):  # (it may be its result)
                    self._call.function(*args, **kwargs)

            self._call.run(work)
            self._eager = calls.values
        return self._eager

    def _runs_at(self, stage: str) -> list[GraphRun]:
        """Run the call at a stage, and return what its graphs computed."""
        if stage not in self._runs:
            recorder = Recorder()

            def work(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
                with stages.backend(stage, recorder) as backend:
                    recorder.on = True
                    compiled = stages.compiled(self._call.function, backend, self._dynamic)
                    outcome_of(compiled, {}, args, kwargs, self._call.backward)

            try:
                self._call.run(work)
            except Exception as error:
                self.notes.append(f"{stages.TITLES.get(stage, stage)}: no node was looked for: {error}")
            self.notes += recorder.notes
            self._runs[stage] = recorder.runs
        return self._runs[stage]

    def _begins_with_other_values(self, first: Difference) -> bool:
        run = next((each for each in self._runs_at("captured") if each.number == first.graph), None)
        if run is None:
            return False
        nodes = {node.name: node for node in read_graph(run.text).nodes}
        node = nodes.get(first.name)
        values = {each.name: each.value for each in run.values}
        known = [*(each.value for each in self._eager_calls()), *self._given]
        for each in (nodes[name] for name in (node.inputs if node is not None else ()) if name in nodes):
            value = values.get(each.name)
            if not each.is_call and isinstance(value, torch.Tensor) and not any(
                    difference(value, other, self._call.tolerance)[0] for other in flat(known)):
                return True
        return False


# --- the first node or kernel that differs -----------------------------------------------------------
# Nodes of one stage are compared with those of the stage before by their values: the counterpart of a node is any node
# of the other graph with the same shape and dtype that gives the same, those of the same line first. So it does not
# matter how a stage names or splits what it computes, and a node is at fault only when nothing in the other graph
# gives its value although something there could.
_Place = tuple[str, int]


class Search:
    """Looks for the first difference of a stage.

    Args:
        tolerance: how far values may be apart.
    """

    def __init__(self, tolerance: Tolerance) -> None:
        self.tolerance = tolerance

    def node(
        self, stage: str, run: GraphRun, candidates: Callable[[str, Node], Iterable[Any]], against: str,
    ) -> Difference | None:
        """Return the first node of a run whose value is none of those that it could be.

        Args:
            stage: of the difference.
            run: of the graph.
            candidates: give the values of the other run for a node, by its name.
            against: what these are, in words.
        """
        nodes = _nodes(run)
        for value in run.values:
            node = nodes.get(value.name)
            apart = self.apart(value.value, candidates(value.name, node)) if node is not None and node.is_call else None
            if apart is not None:
                return Difference(stage, "node", value.name, run.number, run.backward, (), against, apart,
                                  _lines(_locations(nodes, value.name)))
        return None

    def captured(self, eager: Sequence[Value], runs: Sequence[GraphRun]) -> Difference | None:
        """Return the first captured node that gives what no call of torch's on its line gave in eager Python."""
        def on_its_line(name: str, node: Node) -> list[Any]:
            place = node.location
            return [] if place is None else [
                each.value for each in eager if _among((place.filename, place.line), each.places)]

        found = (self.node("captured", run, on_its_line, "what eager Python computes on that line") for run in runs)
        return next(filter(None, found), None)

    def aot(self, before: Sequence[GraphRun], runs: Sequence[GraphRun], against: str) -> Difference | None:
        """Return the first value of a line that a graph with decompositions does not give.

        What a line computes on the way is left out on both sides.

        Args:
            before: graphs without decompositions: captured ones, or backward ones.
            runs: those with them.
            against: what is compared with, in words.
        """
        for one in before:
            other = next((run for run in runs if (run.number, run.backward) == (one.number, one.backward)), None)
            if other is None or self._same_results(one, other):
                continue
            given, theirs = _of_lines(one), _of_lines(other)
            values = [value.value for value in other.values if value.name in theirs]
            found = self.node("aot", replace(one, values=[each for each in one.values if each.name in given]),
                              _any_of(values), against)
            if found is not None:
                return found
        return None

    def passes(self, aot: Sequence[GraphRun], runs: Sequence[GraphRun]) -> Difference | None:
        """Return the first node of a graph after Inductor's passes that gives what no node of the graph before does."""
        for run in runs:
            before = next((each for each in aot if (each.number, each.backward) == (run.number, run.backward)), None)
            if before is None or not run.values or self._same_results(before, run):
                continue
            values = [each.value for each in before.values]
            found = self.node("inductor", run, _any_of(values),
                              "the graph before Inductor's passes")
            if found is not None:
                return found
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


def _any_of(values: list[Any]) -> Callable[[str, Node], list[Any]]:
    return lambda name, node: values


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
    from ..model.graph_text import read_graph

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


def _of_lines(run: GraphRun) -> set[str]:
    """Return nodes that a node of another line takes, or that are returned."""
    nodes = _nodes(run)
    result = set(run.results)
    for node in nodes.values():
        for name in node.inputs:
            if name in nodes and nodes[name].location != node.location:
                result.add(name)
    return result


def _lines(locations: Iterable[SourceLocation]) -> tuple[UserLine, ...]:
    return tuple(dict.fromkeys(UserLine(location) for location in locations))


def _among(place: _Place, places: Iterable[_Place]) -> bool:
    """Return whether a place is one of several; torch cuts what a path has in common with its own."""
    return any(line == place[1] and (file == place[0] or file.endswith(place[0])) for file, line in places)
