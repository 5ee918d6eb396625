"""Calls of kernels in a generated module -> the nodes of the graph that they compute.

1. Calls of library kernels are nodes of the graph (``libraries``).
2. Each value of the module that such a call takes or gives, and each result, is thereby a node (``flow``).
3. A fused kernel computes what lies between the nodes of the values that it writes and reads (``fused``).
"""

from __future__ import annotations

from collections.abc import Mapping

from ...model.graph import Graph
from ...model.operations import bare_name
from ...torch_text.generated import Launch, Module
from . import libraries
from .flow import Flow
from .fused import Fused


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
        named = _named_nodes(flow, launch, index)
        nodes = named or computed[index] or fused.moved.get(index, set())
        result.append((tuple(sorted(nodes, key=lambda name: flow.order.get(name, 0))), not named))
    return result


def _named_nodes(flow: Flow, launch: Launch, index: int) -> set[str]:
    """Return the nodes that torch itself names for a call: for the first one of a kernel, above the kernel."""
    definition = launch.definition
    if definition is None or index not in flow.first:
        return set()
    return {name for name in definition.nodes if name in flow.nodes}


def _returned(flow: Flow) -> None:
    """Results are nodes."""
    for values, name in zip(flow.module.results, flow.results):
        for value in values[:1]:
            if value not in flow.node_of and name in flow.nodes:
                flow.is_node(value, name)
            writer = flow.writer.get(value)
            if writer is not None and name in flow.nodes and flow.nodes[name].is_call \
                    and writer not in flow.libraries and flow.node_of.get(value) == flow.without_views(name):
                flow.computes(value, name)


def _mutated(flow: Flow) -> None:
    """Give ``copy_`` to an input to the kernel that writes to it."""
    copies: dict[str, list[str]] = {}
    for node in flow.graph.nodes:
        if node.is_call and bare_name(node.target) == "copy" and node.inputs:
            copies.setdefault(node.inputs[0], []).append(node.name)
    for index, launch in enumerate(flow.module.launches):
        for name in launch.changes:
            for copy in copies.get(name, ()):
                flow.targets.setdefault(index, set()).add(copy)
