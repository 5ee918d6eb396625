"""Each graph as a backend compiled it, run beside the graph that it was given, with the same inputs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace
from types import CodeType
from typing import Any

import torch

from ..capture.torch_private import graph_modules, hooks, pipeline
from ..torch_text.legal import legal_graph
from .recording import GraphRun, Interpreter, KernelRecorder, Recorder, copied_graph
from .results import Difference
from .search import Search
from .tensors import Tolerance, difference, kept


class _Beside:
    """One captured graph and what the backend made of it."""

    def __init__(self, number: int, captured: Any, compiled: Any) -> None:
        self.number, self.captured, self.compiled = number, captured, compiled
        self.runs: list[tuple[Any, Any, list[Any]]] = []  # (expected, actual, inputs)

    def __call__(self, *args: Any) -> Any:
        copies = [_copy(each) for each in args]
        inputs = [_copy(each) for each in args]
        state = torch.get_rng_state()
        expected: Any = None
        try:
            with torch.no_grad():
                expected = kept(self.captured.forward(*copies))
        except Exception:  # (it says nothing then)
            expected = None
        torch.set_rng_state(state)
        result = self.compiled(*args)
        if expected is not None:
            changed = [each for each in copies if isinstance(each, torch.Tensor)]
            own = [each for each in args if isinstance(each, torch.Tensor)]
            self.runs.append(((expected, kept(changed)), (kept(result), kept(own)), inputs))
        return result


def _copy(value: Any) -> Any:
    return value.detach().clone() if isinstance(value, torch.Tensor) else value


class GraphsBeside:
    """A backend that runs what another made of each graph beside the graph.

    Args:
        backend: the other: ``(graph module, inputs) -> callable``.
    """

    def __init__(self, backend: Callable[..., Any]) -> None:
        self.backend = backend
        self._graphs: list[_Beside] = []
        self._transformed: list[CodeType] = []
        self._recorder = Recorder()
        self._recorder.on = True
        self._kernels = KernelRecorder(self._recorder)
        self._stack = contextlib.ExitStack()
        for install in (lambda: hooks.on_bytecode(lambda original, transformed: self._transformed.append(transformed)),
                        lambda: pipeline.on_post_grad(self._kernels.on_post_grad),
                        lambda: hooks.on_kernel_module(self._kernels.on_module)):
            with contextlib.suppress(AttributeError):  # this torch lacks it
                self._stack.callback(install())

    def compile(self, gm: Any, inputs: Any) -> Any:
        """Compile a graph; the backend itself, as torch sees it."""
        number = len(self._graphs) + 1
        self._kernels.number = number
        captured = torch.fx.GraphModule(gm, copied_graph(gm))
        beside = _Beside(number, captured, self.backend(gm, inputs))
        self._graphs.append(beside)

        def run(*args: Any) -> Any:
            return beside(*args)

        return run

    def leave(self) -> None:
        """Take the hooks back."""
        self._kernels.leave()
        self._stack.close()

    def wrote(self, transformed: CodeType) -> bool:
        """Return whether transformed code was made meanwhile."""
        return any(each is transformed for each in self._transformed)

    def kernel(self, tolerance: Tolerance) -> Difference | None:
        """Return the first kernel that wrote something else than its nodes give."""
        return Search(tolerance).kernels(self._recorder.runs)

    def fault(self, tolerance: Tolerance) -> Difference | None:
        """Return the first graph that gave another value; with its first node where the backend runs it by nodes."""
        for graph in self._graphs:
            for expected, actual, inputs in graph.runs:
                equal, apart = difference(actual, expected, tolerance)
                if not equal:
                    whole = Difference("backend", "graph", "", graph.number, max_difference=apart)
                    return replace(self._node(graph, inputs, tolerance) or whole, max_difference=apart)
        return None

    def _node(self, graph: _Beside, inputs: list[Any], tolerance: Tolerance) -> Difference | None:
        module = graph_modules.graph_module_behind(graph.compiled)
        if not isinstance(module, torch.fx.GraphModule):
            return None
        try:
            own, captured = _run(module, graph.number, inputs), _run(graph.captured, graph.number, inputs)
        except Exception:
            return None
        by_name = {each.name: each.value for each in own.values}
        return Search(tolerance).node("backend", captured, lambda name, node: (
            [by_name[name]] if name in by_name else list(by_name.values())), "")


def _run(module: Any, number: int, inputs: list[Any]) -> GraphRun:
    run = GraphRun(number, False, legal_graph(graph_modules.readable(module)))
    with torch.no_grad():
        Interpreter(module, run).run(*[_copy(each) for each in inputs])
    return run
