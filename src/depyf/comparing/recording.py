"""Values of each node of a graph, each kernel, and each call in eager Python, recorded in one run.

The stages of a compilation are backends that record what their graphs give.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import functools
import itertools
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import FunctionType, MethodType
from typing import Any

import torch

from .. import budgets, reading
from ..capture.torch_private import graph_modules, hooks, pipeline
from ..link.functions import functions_of
from ..provenance.kernel_mapping import graph_kernels
from ..records.model import CompiledGraph, CompileId, GraphStage, Kernel, KernelCall
from ..torch_text.generated import read_module
from ..torch_text.wrapping import legal_graph
from ..watch.probe import CannotWatch, Observation, Step, observe
from ..watch.stop import kernel_groups
from .reference import snapshot
from .state import same_random_numbers


@dataclass
class Value:
    """A copy of the value of a node, of a buffer that a kernel wrote, or of a call in eager Python."""

    name: str
    value: Any
    places: frozenset[tuple[str, int]] = frozenset()  #: ``(file, line)`` of each frame on the stack of a call.


@dataclass
class GraphRun:
    """One run of a graph."""

    number: int  # of the captured graph, in the order in which they were compiled
    backward: bool  # it computes gradients
    text: str  # as torch prints it
    values: list[Value] = field(default_factory=list)  # of its nodes, in order
    results: tuple[str, ...] = ()  # names of what it returns
    #: calls of kernels and what each wrote, where it was compiled; `values` are then those of the graph after
    #: Inductor's passes, computed by eager PyTorch from the same inputs
    kernels: list[tuple[KernelCall, list[Value]]] = field(default_factory=list)


class Recorder:
    """Counts the graphs that are compiled; collects their runs if it is ``on``."""

    def __init__(self, on: bool = False) -> None:
        self.on = on
        self.runs: list[GraphRun] = []
        self.graphs = 0
        self.number, self.backward = 0, False  # of the graph that is being compiled
        self.notes: list[str] = []

    def interpreted(self, gm: Any, number: int, backward: bool = False) -> Callable[..., Any]:
        """Return what runs a graph node by node."""
        text = legal_graph(graph_modules.readable(gm)) if self.on else ""

        def run(*args: Any) -> Any:
            if not self.on:
                return torch.fx.Interpreter(gm).run(*args)
            self.runs.append(GraphRun(number, backward, text, results=_results(gm)))
            return _Interpreter(gm, self.runs[-1]).run(*args)

        return run


class _Interpreter(torch.fx.Interpreter):
    """Runs a graph node by node, and records the value of each."""

    def __init__(self, gm: Any, record: GraphRun) -> None:
        super().__init__(gm)
        self.record = record

    def run_node(self, n: Any) -> Any:
        result = super().run_node(n)
        if n.op != "output":
            self.record.values.append(Value(n.name, snapshot(result)))
        return result


def _results(gm: Any) -> tuple[str, ...]:
    output = next(node for node in reversed(list(gm.graph.nodes)) if node.op == "output")
    returned = output.args[0]
    items = returned if isinstance(returned, (tuple, list)) else (returned,)
    return tuple(getattr(item, "name", "") for item in items)


def copied(gm: Any) -> Any:
    """Return the module with a copy of the graph's nodes: Inductor changes them while it generates kernels."""
    return torch.fx.GraphModule(gm, copy.deepcopy(gm.graph))


# --- kernels --------------------------------------------------------------------------------------
@contextlib.contextmanager
def kernels_recorded(recorder: Recorder) -> Iterator[None]:
    """Inside, record what the kernels of generated modules write; they are of the graph ``recorder.number``."""
    pending: list[Any] = []  # the graph that the next module is generated from

    def on_module(module: Any, path: str) -> None:
        if not pending:
            recorder.notes.append("a generated module was not looked at: it is not known what it was made from")
            return
        source = reading.text(path, budgets.CODE)
        generated = _GeneratedModule(recorder, pending.pop(), source)
        groups_of = kernel_groups(source)
        tree = ast.parse(source)
        for function in functions_of(module):
            if groups_of(tree, function.__code__.co_firstlineno):
                try:
                    stack.callback(observe(function, source, groups_of, lambda: generated))
                except CannotWatch as why:
                    recorder.notes.append(f"a generated module was not looked at: {why}")

    def on_graph(gm: Any) -> None:
        pending[:] = [copied(gm)]

    with contextlib.ExitStack() as stack:
        for install in (lambda: pipeline.on_post_grad(on_graph), lambda: hooks.on_kernel_module(on_module)):
            try:
                stack.callback(install())
            except AttributeError as error:  # this torch lacks it
                recorder.notes.append(f"kernels were not looked at one by one ({error})")
        yield


class _GeneratedModule(Observation):
    """A generated module, the graph that it was generated from, and its run that is observed."""

    def __init__(self, recorder: Recorder, gm: Any, source: str) -> None:
        self.recorder, self.gm, self.number, self.backward = recorder, gm, recorder.number, recorder.backward
        self.text = legal_graph(graph_modules.readable(gm))
        module = read_module(source)
        graph = CompiledGraph(
            "", "", CompileId(0, 0), "", (GraphStage("AFTER_POST_GRAD", 0, self.text),), (Kernel(0, source),))
        self.calls = {call.call_line: call for call in graph_kernels(graph)[0].calls}
        #: By line, whether something else reads what a launch writes: the rest is a kernel's scratch memory.
        used = {value for launch in module.launches for value in launch.reads}
        used.update(value for values in module.results for value in values)
        self.used = {launch.line: tuple(value in used for value in launch.writes) for launch in module.launches}
        self.run: GraphRun | None = None

    def before(self, step: Step, *reads: Any) -> None:
        pass

    def after(self, step: Step, writes: tuple[Any, ...], reads: tuple[Any, ...]) -> bool:
        if step.kind == "input":
            if len(writes) == sum(node.op == "placeholder" for node in self.gm.graph.nodes):
                self._begin(writes)  # (a part of ``call`` takes what it needs)
        elif self.run is not None and (call := self.calls.get(step.line)) is not None:
            used = self.used.get(step.line) or itertools.repeat(True)
            self.run.kernels.append((call, [
                Value(name, snapshot(value)) for name, value, wanted in zip(step.writes, writes, used) if wanted]))
        return False

    def _begin(self, args: Sequence[Any]) -> None:
        """Compute the graph in eager PyTorch, from copies."""
        run = self.run = GraphRun(self.number, self.backward, self.text, results=_results(self.gm))
        self.recorder.runs.append(run)
        try:
            with same_random_numbers(), torch.no_grad():
                _Interpreter(self.gm, run).run(*map(snapshot, args))
        except Exception as error:  # (it is a graph for kernels; not all of its operations need to run)
            self.recorder.notes.append(
                f"a graph after Inductor's passes could not be run by itself ({type(error).__name__}: "
                f"{str(error).splitlines()[0] if str(error) else ''}); its kernels were not compared one by one")
            run.values.clear()


# --- eager Python ---------------------------------------------------------------------------------
class EagerCalls(torch.overrides.TorchFunctionMode):
    """Records the result of each call of a torch function, with the lines on its stack."""

    def __init__(self) -> None:
        super().__init__()
        self.values: list[Value] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if isinstance(result, (torch.Tensor, tuple, list)):
            frames = itertools.islice(traceback.walk_stack(sys._getframe(1)), 60)
            places = {(frame.f_code.co_filename, line) for frame, line in frames}
            self.values.append(Value(getattr(func, "__name__", str(func)), snapshot(result), frozenset(places)))
        return result


# --- The stages of a compilation ---------------------------------------------------------------------
#: In the order in which torch makes them.
STAGES = ("captured", "aot", "inductor")
#: What they are, in words.
STAGE_TITLES = {"eager": "eager Python", "captured": "captured graph", "aot": "AOT graphs", "inductor": "Inductor"}


@contextlib.contextmanager
def stage_backend(stage: str, recorder: Recorder) -> Iterator[Callable[..., Any]]:
    """Make the backend that runs graphs as they are at a stage: of ``STAGES``, or ``"plain"`` (no decompositions)."""
    def boxed(run: Callable[..., Any]) -> Callable[[list[Any]], Any]:
        """Make the function take its arguments as one list, which it empties."""
        def called(args: list[Any]) -> Any:
            given = list(args)
            args.clear()
            return run(*given)

        called._boxed_call = True  # type: ignore[attr-defined]  # torch's own word for it, on any function
        return called

    def compiler(gm: Any, inputs: Any) -> Any:
        recorder.graphs += 1
        number = recorder.graphs

        def by_nodes(graph: Any, examples: Any, is_backward: bool = False, **options: Any) -> Any:
            return boxed(recorder.interpreted(graph, number, bool(is_backward)))

        def by_kernels(graph: Any, examples: Any, **options: Any) -> Any:
            recorder.number, recorder.backward = number, bool(options.get("is_backward"))
            return pipeline.inductor_inner()(graph, examples, **options)

        if stage == "captured":
            return recorder.interpreted(gm, number)
        if stage == "plain":
            return pipeline.plain_aot(gm, inputs, by_nodes, functools.partial(by_nodes, is_backward=True))
        return pipeline.inductor(gm, inputs, by_nodes if stage == "aot" else by_kernels)

    # (torch wraps a backend, and keeps the function's attributes)
    compiler.depyf_compares = True  # type: ignore[attr-defined]  # no function declares attributes
    with kernels_recorded(recorder) if stage == "inductor" and recorder.on else contextlib.nullcontext():
        yield compiler


def compiled_copy(function: Any, compiler: Callable[..., Any], dynamic: bool | None) -> Any:
    """Return the function as the backend runs it; torch compiles when it is called.

    A copy of its code object is compiled, as torch stores compiled versions with the code object. A module has a copy
    of its ``forward`` while it is called.
    """
    if not isinstance(function, torch.nn.Module):
        return torch.compile(_copy(function), backend=compiler, dynamic=dynamic)
    module, forward, own = torch.compile(function, backend=compiler, dynamic=dynamic), function.forward, vars(function)
    if not isinstance(forward, MethodType) or "forward" in own:
        return module
    copied = _copy(forward)

    def call(*args: Any, **kwargs: Any) -> Any:
        own["forward"] = copied
        try:
            return module(*args, **kwargs)
        finally:
            own.pop("forward", None)

    return call


def _copy(function: Any) -> Any:
    if isinstance(function, MethodType):
        return MethodType(_copy(function.__func__), function.__self__)
    if not isinstance(function, FunctionType):
        return function
    result = FunctionType(function.__code__.replace(), function.__globals__, function.__name__, function.__defaults__,
                          function.__closure__)
    result.__kwdefaults__ = function.__kwdefaults__
    result.__qualname__, result.__module__ = function.__qualname__, function.__module__
    result.__dict__.update(function.__dict__)
    return result
