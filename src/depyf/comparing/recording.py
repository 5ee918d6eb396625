"""Records of what each node of a graph, each kernel, and each call of eager Python gives in one run."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from .. import budgets, reading
from ..capture.torch_private import graph_modules
from ..link.functions import functions_of
from ..records.model import CompiledGraph, CompileId, GraphStage, Kernel, KernelCall
from ..torch_text.generated import read_module
from ..torch_text.wrapping import legal_graph
from ..watch.probe import CannotWatch, Step, observe
from ..watch.stop import kernel_groups
from .tensors import kept


@dataclass
class Value:
    """A value that a node, a kernel or a call gave.

    Attributes:
        name: of the node or buffer; of a function that eager Python called.
        value: a copy.
        places: ``(file, line)`` on its stack of calls.
    """

    name: str
    value: Any
    places: frozenset[tuple[str, int]] = frozenset()


@dataclass
class KernelRun:
    """A call of a kernel: what it wrote, and what the graph that it was generated from gives for that."""

    call: KernelCall
    written: list[Value]


@dataclass
class GraphRun:
    """One run of a graph.

    Attributes:
        number: of the captured graph, in the order in which they were compiled.
        backward: it computes gradients.
        text: as torch prints it.
        values: of its nodes, in order.
        results: names of what it returns.
        kernels: calls of kernels, where it was compiled; ``values`` are then those of the graph after Inductor's
            passes, computed by eager PyTorch from the same inputs.
    """

    number: int
    backward: bool
    text: str
    values: list[Value] = field(default_factory=list)
    results: tuple[str, ...] = ()
    kernels: list[KernelRun] = field(default_factory=list)


class Recorder:
    """Collects the runs of graphs while ``on``."""

    def __init__(self) -> None:
        self.on = False
        self.runs: list[GraphRun] = []
        self.graphs = 0
        self.notes: list[str] = []

    def interpreted(self, gm: Any, number: int, backward: bool = False) -> Callable[..., Any]:
        """Run a graph node by node."""
        text = legal_graph(graph_modules.readable(gm))
        results = _results(gm)

        def run(*args: Any) -> Any:
            record = GraphRun(number, backward, text, results=results)
            if self.on:
                self.runs.append(record)
            return Interpreter(gm, record if self.on else None).run(*args)

        return run


class Interpreter(torch.fx.Interpreter):
    """Runs a graph node by node, and records what each gives."""

    def __init__(self, gm: Any, record: GraphRun | None) -> None:
        super().__init__(gm)
        self.record = record

    def run_node(self, n: Any) -> Any:
        """Run one node."""
        result = super().run_node(n)
        if self.record is not None and n.op != "output":
            self.record.values.append(Value(n.name, kept(result)))
        return result


def _results(gm: Any) -> tuple[str, ...]:
    output = next(node for node in reversed(list(gm.graph.nodes)) if node.op == "output")
    returned = output.args[0]
    items = returned if isinstance(returned, (tuple, list)) else (returned,)
    return tuple(getattr(item, "name", "") for item in items)


# --- kernels --------------------------------------------------------------------------------------
class KernelRecorder:
    """Observes the generated modules of one compilation.

    Args:
        recorder: takes the runs.
    """

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.pending: Any = None
        self.number, self.backward = 0, False
        self.undo: list[Callable[[], None]] = []

    def on_post_grad(self, gm: Any) -> None:
        """Remember the graph that the next module is generated from."""
        self.pending = torch.fx.GraphModule(gm, copied_graph(gm))

    def on_module(self, module: Any, path: str) -> None:
        """Record the kernels of a module that was generated."""
        gm, self.pending = self.pending, None
        if gm is None:
            self.recorder.notes.append("a generated module was not looked at: nothing tells what it was made of")
            return
        source = reading.text(path, budgets.CODE)
        generated = _GeneratedModule(self.recorder, gm, source, self.number, self.backward)
        groups_of = kernel_groups(source)
        tree = ast.parse(source)
        for function in functions_of(module):
            if groups_of(tree, function.__code__.co_firstlineno):
                try:
                    self.undo.append(observe(function, source, groups_of, lambda: _Kernels(generated)))
                except CannotWatch as why:
                    self.recorder.notes.append(f"a generated module was not looked at: {why}")

    def leave(self) -> None:
        """Take the hooks back."""
        while self.undo:
            self.undo.pop()()


class _GeneratedModule:
    """A generated module, and the graph that it was made of."""

    def __init__(self, recorder: Recorder, gm: Any, source: str, number: int, backward: bool) -> None:
        from ..provenance.kernel_mapping import graph_kernels

        self.recorder = recorder
        self.gm = gm
        self.number = number
        self.backward = backward
        self.text = legal_graph(graph_modules.readable(gm))
        self.module = read_module(source)
        graph = CompiledGraph(
            "", "", CompileId(0, 0), "", (GraphStage("AFTER_POST_GRAD", 0, self.text),), (Kernel(0, source),))
        self.calls = {call.call_line: call for call in graph_kernels(graph)[0].calls}
        #: Values that something else takes; others are a kernel's notes to itself.
        used = {value for launch in self.module.launches for value in launch.reads}
        used.update(value for values in self.module.results for value in values)
        self.used = {launch.line: tuple(value in used for value in launch.writes) for launch in self.module.launches}
        self.run: GraphRun | None = None

    def begin(self, args: Sequence[Any]) -> None:
        """Compute the graph by eager PyTorch, from copies."""
        self.run = None
        if not self.recorder.on:
            return
        run = GraphRun(self.number, self.backward, self.text, results=_results(self.gm))
        self.recorder.runs.append(run)
        state = torch.get_rng_state()
        cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_available() and torch.cuda.is_initialized() else None
        try:
            with torch.no_grad():
                Interpreter(self.gm, run).run(*[kept(each) for each in args])
        except Exception as error:  # (it is a graph for kernels; not all of its operations need to run)
            self.recorder.notes.append(
                f"a graph after Inductor's passes could not be run by itself ({type(error).__name__}: "
                f"{str(error).splitlines()[0] if str(error) else ''}); its kernels were not compared one by one")
            run.values.clear()
        finally:
            torch.set_rng_state(state)
            if cuda is not None:
                torch.cuda.set_rng_state_all(cuda)
        self.run = run

    def wrote(self, step: Step, writes: Sequence[Any]) -> None:
        call = self.calls.get(step.line)
        if self.run is None or call is None:
            return
        used = self.used.get(step.line, ())
        if len(used) != len(writes):
            used = (True,) * len(writes)
        self.run.kernels.append(KernelRun(call, [
            Value(name, kept(value)) for name, value, wanted in zip(step.writes, writes, used) if wanted]))


class _Kernels:
    """One call of ``call``, or of a part of it."""

    def __init__(self, module: _GeneratedModule) -> None:
        self.module = module

    def before(self, step: Step, reads: tuple[Any, ...]) -> None:
        pass

    def after(self, step: Step, writes: tuple[Any, ...], reads: tuple[Any, ...]) -> bool:
        if step.kind == "input":
            if len(step.writes) == sum(node.op == "placeholder" for node in self.module.gm.graph.nodes):
                self.module.begin(writes)  # (a part of ``call`` takes what it needs)
        else:
            self.module.wrote(step, writes)
        return False


def copied_graph(gm: Any) -> Any:
    """Return the graph's nodes again: Inductor changes them while it makes kernels."""
    graph = torch.fx.Graph()
    output = graph.graph_copy(gm.graph, {}, return_output_node=True)
    value, old = output if isinstance(output, tuple) else (output, None)
    copied = graph.output(value)
    if old is not None:
        copied.meta = dict(old.meta)
    return graph


# --- eager Python ---------------------------------------------------------------------------------
class EagerCalls(torch.overrides.TorchFunctionMode):
    """Records what each call of torch's gives, with the lines on its stack."""

    def __init__(self) -> None:
        super().__init__()
        self.values: list[Value] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if isinstance(result, (torch.Tensor, tuple, list)):
            places = set()
            frame: Any = sys._getframe(1)
            for _ in range(60):
                if frame is None:
                    break
                places.add((frame.f_code.co_filename, frame.f_lineno))
                frame = frame.f_back
            self.values.append(Value(getattr(func, "__name__", str(func)), kept(result), frozenset(places)))
        return result

