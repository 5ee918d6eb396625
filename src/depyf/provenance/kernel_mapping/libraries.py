"""Calls of library kernels -> nodes, by operation, known inputs, shape of the result, and torch's source nodes."""

from __future__ import annotations

import functools

from ...model.graph import CALLED, VIEWS, Node, bare_name
from ...torch_text.generated import Launch
from .flow import Flow, elements


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
        result.update(user for user in flow.users.get(name, ()) if flow.of_library(user))
    return result


def _is_users(launch: Launch) -> bool:
    """Return whether a call is of the user's own Triton kernel, which keeps its name."""
    definition = launch.definition
    return definition is not None and definition.kind == "Triton" and not definition.name.startswith("triton_")
