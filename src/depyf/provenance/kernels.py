"""The nodes of a graph that each generated kernel computes.

Torch says it in comments above Triton kernels, for their first call. For the rest, C++ kernels among them, it is
*inferred* from the graph after Inductor's passes and from what flows in the generated module (``assignment``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..model.graph import Graph
from ..model.graph_text import read_graph
from ..records.model import CompiledGraph, GraphStage, Kernel, KernelCall
from ..torch_text.generated import Launch, Module, read_module
from .kernel_mapping import assign


def graph_kernels(graph: CompiledGraph, captured_of: Mapping[str, Mapping[str, str]] | None = None) -> tuple[
        Kernel, ...]:
    """Return the kernels of a graph with their calls.

    Args:
        graph: its kernels and stages ``AFTER_POST_GRAD`` are read.
        captured_of: for a stage ``"AFTER_POST_GRAD.0"``: captured node of each of its nodes, where known.
    """
    stages = [stage for stage in graph.stages if stage.stage == "AFTER_POST_GRAD"] or [
        stage for stage in graph.stages if stage.stage in ("Forward_graph", "Backward_graph")]
    read = [(stage, read_graph(stage.text)) for stage in stages]
    modules = [read_module(kernel.text) for kernel in graph.kernels]
    result = []
    taken: set[int] = set()
    for kernel, module in zip(graph.kernels, modules):
        at = _stage_of(module, [inner for _, inner in read], taken)
        if at is None:
            result.append(_with_calls(kernel, module, None, {}))
            continue
        taken.add(at)
        stage, inner = read[at]
        key = f"{stage.stage}.{stage.index}"
        result.append(_with_calls(kernel, module, (stage, inner), (captured_of or {}).get(key, {})))
    return tuple(result)


def _stage_of(module: Module, graphs: Sequence[Graph], taken: set[int]) -> int | None:
    """Return the graph whose inputs are the module's arguments.

    Of several the first that no other module was made of.
    """
    names = list(module.arguments)
    best = None
    for index, graph in enumerate(graphs):
        inputs = [node.name for node in graph.nodes if node.op == "placeholder"]
        if inputs == names and index not in taken:
            return index
        if best is None and names and index not in taken and set(names) <= set(inputs):
            best = index
    if best is None and not names and module.launches and len(graphs) == 1 and not taken:
        return 0
    return best


def _with_calls(
    kernel: Kernel, module: Module, source: tuple[GraphStage, Graph] | None, captured: Mapping[str, str]
) -> Kernel:
    assigned = assign(module, source[1], captured) if source is not None else [
        (launch.definition.nodes if launch.definition is not None else (), True) for launch in module.launches]
    calls = tuple(
        KernelCall(launch.name, _kind(launch), launch.definition.line if launch.definition is not None else 0,
                   launch.line, nodes, inferred, launch.sources)
        for launch, (nodes, inferred) in zip(module.launches, assigned))
    stage = "" if source is None else f"{source[0].stage}.{source[0].index}"
    return replace(kernel, stage=stage, calls=calls)


def _kind(launch: Launch) -> str:
    definition = launch.definition
    if definition is None:
        return "extern"
    if re.match(r"(?:cpp_packed|cpp_grouped|cpp_flex|cpp_bmm|triton_tem)_", definition.name):
        return f"{definition.kind} template"
    return definition.kind
