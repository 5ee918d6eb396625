"""The first node or kernel of a stage that gives something else: each stage runs once more, and records its values."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from ..capture.torch_private import hooks, pipeline
from ..torch_text.graph_text import read_graph
from . import stages
from .outcome import outcome_of
from .reachable import Reachable
from .recording import EagerCalls, GraphRun, Recorder, Value
from .results import Difference, StageResult
from .runs import JudgedCall
from .search import Search, flat
from .tensors import difference, kept


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
