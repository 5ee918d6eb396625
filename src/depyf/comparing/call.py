"""One call on its way through the stages: run by eager Python, run at each stage, compared, located."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from ..capture.torch_private import pipeline
from . import stages
from .recording import EagerCalls, Recorder
from .results import Comparison, Difference, StageResult
from .search import Search, flat
from .state import Run, Start
from .tensors import Tolerance, difference, kept, named_leaves

#: The name of what a run leaves that raised.
_EXCEPTION = "exception"


class Call:
    """A call that is compared.

    Args:
        start: the function and its arguments, the same for each run.
        tolerance: up to which values are equal.
        backward: run the backward pass too, and compare gradients.
        dynamic: as of ``torch.compile``.
    """

    def __init__(self, start: Start, tolerance: Tolerance, backward: bool, dynamic: bool | None) -> None:
        self.start, self.tolerance, self.backward, self.dynamic = start, tolerance, backward, dynamic
        self._recorders: dict[str, Recorder] = {}
        self._notes: list[str] = []
        self._computed: list[Any] = []
        self._given: list[Any] = []

    def compare(self, wanted: Sequence[str], title: str) -> Comparison:
        """Run the call in eager Python and at the stages that are wanted, and compare what the runs leave."""
        expected, calls = self._in_eager_python()
        self._computed = [each.value for each in calls]
        with pipeline.isolated_compile():
            results = [self._at_stage(name, expected) for name in stages.NAMES if name in wanted]
            if self.backward and any(each.stage == "aot" and not each.equal and not each.failure for each in results):
                self._record_gradients()
        search = Search(self.tolerance)
        located: list[StageResult] = []
        for result in results:
            if not result.equal and not result.failure:
                before = next((each.first for each in located if each.first), None)
                result = self._located(result, search, calls, before)
            located.append(result)
        return Comparison(title, tuple(located), tuple(dict.fromkeys(self._notes)))

    def _in_eager_python(self) -> tuple[dict[str, Any], list[Any]]:
        """Return what the run leaves, and what each function of torch's gave."""
        with pipeline.all_eager(), self.start.run() as run:
            calls = EagerCalls()
            try:
                left = self._left_by(self.start.function, run, calls)
            except Exception as error:  # noqa: BLE001  (that is its result)
                left = {_EXCEPTION: _told(error)}
            return left, calls.values

    def _compiled(self, stage: str) -> dict[str, Any]:
        """Return what the run leaves that is compiled up to a stage; its recorder has what happens within."""
        recorder = self._recorders[stage] = Recorder()
        with stages.backend(stage, recorder) as backend, self.start.run() as run:
            recorder.on = True
            return self._left_by(stages.compiled(self.start.function, backend, self.dynamic), run)

    def _at_stage(self, stage: str, expected: dict[str, Any]) -> StageResult:
        title = stages.TITLES[stage]
        try:
            actual = self._compiled(stage)
        except Exception as error:  # noqa: BLE001  (what stops a stage is its result)
            if expected.get(_EXCEPTION) != _told(error):
                return StageResult(stage, title, False, failure=_told(error), graphs=self._recorders[stage].graphs)
            return StageResult(stage, title, True, graphs=self._recorders[stage].graphs)
        recorder = self._recorders[stage]
        self._notes += recorder.notes
        if not recorder.graphs:
            self._notes.append(f"{title}: torch compiled nothing")
        differing, largest = [], 0.0
        for name in dict.fromkeys([*expected, *actual]):
            equal, apart = difference(actual[name], expected[name], self.tolerance) \
                if name in expected and name in actual else (False, float("inf"))
            largest = max(largest, apart)
            if not equal:
                differing.append(name)
        return StageResult(stage, title, not differing, largest, tuple(differing), graphs=recorder.graphs)

    def _record_gradients(self) -> None:
        """Record what gradients are held against: no stage before has nodes that compute them."""
        try:
            self._compiled("plain")
        except Exception as error:  # noqa: BLE001
            self._notes.append(f"gradients could not be compared node by node ({type(error).__name__}: {error})")

    def _left_by(self, function: Any, run: Run, mode: Any = None) -> dict[str, Any]:
        """Run the function, and return everything that it leaves, by name."""
        self._given = [kept(each) for _, each in [*named_leaves(run.args, ""), *named_leaves(run.kwargs, ""),
                                                  *run.held.items()] if isinstance(each, torch.Tensor)]
        with mode if mode is not None else contextlib.nullcontext():
            result = function(*run.args, **run.kwargs)
        values = {name: kept(value) for name, value in named_leaves(result, "result")}
        if self.backward:
            outputs = [value for _, value in named_leaves(result, "result")
                       if isinstance(value, torch.Tensor) and value.requires_grad]
            if outputs:
                torch.autograd.backward(outputs, [torch.ones_like(each) for each in outputs])
        given = [*named_leaves(run.args, "args"), *named_leaves(run.kwargs, "kwargs")]
        for name, value in [*given, *run.held.items()]:
            if not isinstance(value, torch.Tensor):
                continue
            values[f"{name} afterwards"] = kept(value)
            if self.backward and value.requires_grad and value.is_leaf:
                values[f"gradient of {name}"] = kept(value.grad)
        return values

    def begins_with_other_values(self, first: Difference) -> bool:
        """Return whether a captured node takes an input of its graph that nothing gave in eager Python.

        Then what went wrong lies before the graph.
        """
        run = next((each for each in self._runs("captured") if each.number == first.graph), None)
        if run is None:
            return False
        from ..torch_text.graph_text import read_graph

        nodes = {node.name: node for node in read_graph(run.text).nodes}
        node = nodes.get(first.name)
        taken = [nodes[name] for name in node.inputs if name in nodes] if node is not None else []
        values = {each.name: each.value for each in run.values}
        known = [*self._computed, *self._given]
        for each in taken:
            value = values.get(each.name)
            if not each.is_call and isinstance(value, torch.Tensor) and not any(
                    difference(value, other, self.tolerance)[0] for other in flat(known)):
                return True
        return False

    def _runs(self, stage: str) -> list[Any]:
        return self._recorders[stage].runs if stage in self._recorders else []

    def _located(
        self, stage: StageResult, search: Search, calls: list[Any], before: Difference | None
    ) -> StageResult:
        """Return the stage with its first difference: its own, or that which it has of an earlier stage."""
        first = before
        if first is None and stage.stage == "captured":
            first = search.captured(calls, self._runs("captured"))
        elif first is None and stage.stage == "aot":
            first = search.aot(self._runs("captured"), self._runs("aot")) or search.gradients(
                self._runs("plain"), self._runs("aot"))
        elif first is None:
            first = search.passes(self._runs("aot"), self._runs("inductor")) or search.kernels(self._runs("inductor"))
        if first is None:
            name = stage.differing[0]
            against = "eager Python; no single node or kernel is further from its counterpart than the tolerance"
            first = Difference(stage.stage, "result", name, backward=name.startswith("gradient of"), against=against,
                               max_difference=stage.max_difference)
        return replace(stage, first=first)


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
