"""Calls of kernels in a generated module -> the nodes of the graph that they compute.

Torch says it in comments above Triton kernels, for their first call. For the rest, C++ kernels among them, it is
*inferred* from the graph after Inductor's passes and from the data flow in the generated module:

1. Calls of library kernels are nodes of the graph, by operation, known inputs, shape of the result, and torch's source
   nodes (:func:`match_libraries`).
2. Each argument and result of such a call, and each result of the module, is thereby a node (``flow``).
3. A fused kernel computes what is between the nodes of the values that it writes and reads (:class:`.flow.Fused`).
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ...model.graph import CALLED, VIEWS, Graph, Node, bare_name
from ...model.graph_text import read_graph
from ...records.model import CompiledGraph, GraphStage, Kernel, KernelCall
from ...torch_text.generated import Launch, Module, read_module
from .flow import Flow, Fused, elements


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
        captured: captured node of each node, where known.
    """
    flow = Flow(module, graph, captured or {})
    match_libraries(flow)
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
            computed[index] = with_views(flow, stored, computed[index])
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


# --- Library kernels ---------------------------------------------------------------------------------
def match_libraries(flow: Flow) -> None:
    """Match calls of library kernels to nodes, in order, each with the one that fits best."""
    by_operation: dict[str, list[Node]] = {}
    by_input: dict[tuple[str, str], list[Node]] = {}
    for node in flow.graph.nodes:
        if node.is_call:
            operation = bare_name(node.target)
            by_operation.setdefault(operation, []).append(node)
            for name in dict.fromkeys(map(flow.base, node.inputs)):
                by_input.setdefault((operation, name), []).append(node)
    for index, launch in enumerate(flow.module.launches):
        if launch.definition is not None and not _is_users(launch):
            continue
        operations = _operations(launch)
        # It is called by its name. (What torch names above the call may be of what flows into it.)
        named = [name for name in _own_names(launch) if any(
            node.name not in flow.launched for node in by_operation.get(name, ()))]
        operations = named or operations
        known = [flow.base(flow.node_of[value]) for value in launch.reads if value in flow.node_of]
        candidates = {node.name: node for name in operations for base in known
                      for node in by_input.get((name, base), ()) if node.name not in flow.launched}
        if not candidates:
            candidates = {node.name: node for name in operations for node in by_operation.get(name, ())
                          if node.name not in flow.launched}
        if not candidates:
            continue
        best = max(candidates.values(), key=functools.partial(_agreement, flow, launch))
        flow.launched[best.name] = index
        flow.libraries.add(index)
        for value in launch.writes[:1]:
            flow.node_of[value] = best.name
        for part, (whole, item) in flow.module.parts.items():
            if whole in launch.writes:
                for user in (flow.nodes[name] for name in flow.users.get(best.name, ())):
                    if user.target == "operator.getitem" and user.item == item:
                        flow.node_of[part] = user.name
                        break
        _arguments(flow, launch, best)


def _own_names(launch: Launch) -> list[str]:
    """Return the operations that the name of a library's call may mean."""
    if launch.definition is not None:
        return ["triton_kernel_wrapper_mutation", "triton_kernel_wrapper_functional"]
    parts = launch.name.split(".")
    of_torch = parts[:2] == ["torch", "ops"] and len(parts) > 3
    plain = bare_name(parts[3] if of_torch else parts[min(1, len(parts) - 1)])
    return list(dict.fromkeys([plain, *CALLED.get(plain, "").split()]))


def _operations(launch: Launch) -> list[str]:
    names = _own_names(launch)
    operations = dict.fromkeys(names)
    if launch.definition is None:
        operations.update(dict.fromkeys(bare_name(item) for item in reversed(launch.aten)))
    return [name for name in operations if name not in VIEWS or name == names[0]]


def _agreement(flow: Flow, launch: Launch, node: Node) -> tuple[float, int]:
    """Return how well a call fits a node; of equals the first is the greater."""
    score = 0.0
    wanted = [flow.base(name) for name in node.inputs]
    for value in launch.reads:
        known = flow.node_of.get(value)
        if known is None:
            continue
        score += 3.0 if flow.base(known) in wanted or known in node.inputs else -4.0
    if launch.definition is None and bare_name(node.target) == _operations(launch)[0]:
        score += 2.0
    if launch.sources:
        names = {node.name, flow.captured.get(node.name, "").rpartition(".")[2]}
        score += 4.0 if launch.sources[-1] in names else 2.0 if names & set(launch.sources) else 0.0
    for value in launch.writes[:1]:
        size = flow.module.buffers.get(value)
        if size is not None and node.type is not None and node.type.shape is not None:
            score += 2.0 if elements(size.sizes) == elements(node.type.shape) else -2.0
    return score, -flow.order[node.name]


def _arguments(flow: Flow, launch: Launch, node: Node) -> None:
    wanted = list(dict.fromkeys(node.inputs))
    values = list(launch.reads)
    for value in list(values):
        known = flow.node_of.get(value)
        if known is not None:
            match = next((name for name in wanted if name == known or flow.base(name) == flow.base(known)), None)
            if match is not None:
                wanted.remove(match)
                values.remove(value)
    wanted = [name for name in wanted if flow.base(name) not in flow.launched]
    values = [value for value in values if value not in flow.node_of]
    for value, name in zip(values, wanted):
        if len(values) == len(wanted) or flow.fits(value, name):
            flow.is_node(value, name)


def with_views(flow: Flow, stored: set[str], nodes: set[str]) -> set[str]:
    """Return the nodes with the views that a library's kernel takes, and the parts of its results."""
    result = set(nodes)
    for name in nodes:
        pending = list(flow.nodes[name].inputs)
        while pending:
            inner = pending.pop()
            node = flow.nodes.get(inner)
            if node is not None and node.is_view and node.target != "operator.getitem" \
                    and inner not in stored:
                result.add(inner)
                pending += node.inputs[:1]
        result.update(user for user in flow.users.get(name, ()) if flow.is_of_library(user))
    return result


def _is_users(launch: Launch) -> bool:
    """Return whether a call is of the user's own Triton kernel, which keeps its name."""
    definition = launch.definition
    return definition is not None and definition.kind == "Triton" and not definition.name.startswith("triton_")
