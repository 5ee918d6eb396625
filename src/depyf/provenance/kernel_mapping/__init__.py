"""Calls of kernels in a generated module -> the nodes of the graph that they compute.

Torch says it in comments above Triton kernels, for their first call. For the rest, C++ kernels among them, it is
*inferred* from the graph after Inductor's passes and from the data flow in the generated module:

1. Calls of library kernels are nodes of the graph (``libraries``).
2. Each argument and result of such a call, and each result of the module, is thereby a node (``flow``).
3. A fused kernel computes what is between the nodes of the values that it writes and reads (``fused``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ...model.graph import Graph, bare_name
from ...model.graph_text import read_graph
from ...records.model import CompiledGraph, GraphStage, Kernel, KernelCall
from ...torch_text.generated import Module, read_module
from . import libraries
from .flow import Flow
from .fused import Fused


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
    """Return the graph whose inputs are the module's arguments; of several the first that no other module took."""
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
        KernelCall(launch.name, launch.kind, launch.definition.line if launch.definition is not None else 0,
                   launch.line, nodes, inferred, launch.sources)
        for launch, (nodes, inferred) in zip(module.launches, assigned))
    stage = "" if source is None else f"{source[0].stage}.{source[0].index}"
    return replace(kernel, stage=stage, calls=calls)


def assign(
    module: Module, graph: Graph, captured: Mapping[str, str] | None = None
) -> list[tuple[tuple[str, ...], bool]]:
    """Return ``(nodes in the graph's order, inferred)`` of each call in ``module.launches``.

    Args:
        module: what Inductor generated.
        graph: after Inductor's passes.
        captured: captured node of each node, where known.
    """
    flow = Flow(module, graph, captured or {})
    libraries.match_libraries(flow)
    _returned(flow)
    _mutated(flow)
    fused = Fused(flow)
    computed: dict[int, set[str]] = {index: {name} for name, index in flow.launched.items()}
    for index in range(len(module.launches) - 1, -1, -1):
        if index not in computed:
            computed[index] = fused.computed(index)
    stored = set(flow.node_of.values())
    for index in computed:
        if index in flow.libraries:
            computed[index] = libraries.with_views(flow, stored, computed[index])
    result = []
    for index, launch in enumerate(module.launches):
        definition = launch.definition if index in flow.first else None  # (torch names nodes for the first call only)
        named = {name for name in definition.nodes if name in flow.nodes} if definition is not None else set()
        nodes = named or computed[index] or fused.moved.get(index, set())
        result.append((tuple(sorted(nodes, key=lambda name: flow.order.get(name, 0))), not named))
    return result


def _returned(flow: Flow) -> None:
    """Note that results are nodes."""
    for values, name in zip(flow.module.results, flow.results):
        for value in values[:1]:
            if value not in flow.node_of and name in flow.nodes:
                flow.is_node(value, name)
            writer = flow.writer.get(value)
            if writer is not None and name in flow.nodes and flow.nodes[name].is_call \
                    and writer not in flow.libraries and flow.node_of.get(value) == flow.without_views(name):
                flow.computes(value, name)


def _mutated(flow: Flow) -> None:
    """Assign ``copy_`` to an input to the kernel that writes to it."""
    copies: dict[str, list[str]] = {}
    for node in flow.graph.nodes:
        if node.is_call and bare_name(node.target) == "copy" and node.inputs:
            copies.setdefault(node.inputs[0], []).append(node.name)
    for index, launch in enumerate(flow.module.launches):
        for name in launch.changes:
            for copy in copies.get(name, ()):
                flow.targets.setdefault(index, set()).add(copy)
