"""Calls of kernels in a generated module -> the nodes of the graph that they compute.

Torch says it in comments above Triton kernels, for their first call. For the rest, C++ kernels among them, it is
*inferred* from the graph after Inductor's passes and from the data flow in the generated module:

1. Calls of library kernels are nodes of the graph, by operation, torch's source nodes and known inputs
   (:func:`match_libraries`).
2. Each argument and result of such a call, and each result of the module, is thereby a node (:class:`Flow`).
3. A fused kernel computes what is between the nodes of the values that it writes and reads (:func:`_computed`).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import NamedTuple

from ..model.folding import fold
from ..model.graph import CALLED, SCATTERS, STORED, Graph, Node, bare_name, users_of
from ..model.graph_text import read_graph
from ..records.model import CompiledGraph, Kernel, KernelCall
from ..torch_text.generated import Launch, Module, read_module

#: For a stage, ``"AFTER_POST_GRAD.0"``, the captured node of each of its nodes, where it is known.
Captured = Mapping[str, Mapping[str, str]]


def graph_kernels(graph: CompiledGraph, captured: Captured = MappingProxyType({})) -> tuple[Kernel, ...]:
    """Return the kernels of a graph with their calls, by its stages ``AFTER_POST_GRAD``."""
    stages = [stage for stage in graph.stages if stage.stage == "AFTER_POST_GRAD"] or [
        stage for stage in graph.stages if stage.stage in ("Forward_graph", "Backward_graph")]
    graphs = {f"{stage.stage}.{stage.index}": read_graph(stage.text) for stage in stages}
    result = []
    for kernel in graph.kernels:
        module = read_module(kernel.text)
        # The graph whose inputs are the module's arguments, or have these among them.
        names = list(module.arguments)
        inputs = {key: [node.name for node in of.nodes if node.op == "placeholder"] for key, of in graphs.items()}
        fitting = [key for key, of in inputs.items() if of == names] or [
            key for key, of in inputs.items() if names and set(names) <= set(of)]
        key = fitting[0] if fitting else ""
        assigned = assign(module, graphs.pop(key), captured.get(key, {})) if key else [
            (launch.definition.nodes if launch.definition is not None else (), True) for launch in module.launches]
        calls = tuple(
            KernelCall(launch.name, launch.kind, launch.definition.line if launch.definition is not None else 0,
                       launch.line, nodes, inferred, launch.sources)
            for launch, (nodes, inferred) in zip(module.launches, assigned))
        result.append(replace(kernel, stage=key, calls=calls))
    return tuple(result)


def assign(
    module: Module, graph: Graph, captured: Mapping[str, str] = MappingProxyType({})
) -> list[tuple[tuple[str, ...], bool]]:
    """Return ``(nodes in the graph's order, inferred)`` of each call in ``module.launches``."""
    flow = Flow(module, graph)
    match_libraries(flow, captured)
    _note_results(flow)
    computed: dict[int, set[str]] = {index: {name} for name, index in flow.launched.items()}
    for index in range(len(module.launches) - 1, -1, -1):
        if index not in computed:
            computed[index] = _computed(flow, index)
    stored = set(flow.node_of.values())
    for index in flow.libraries:
        computed[index] = _with_views(flow, stored, computed[index])
    result = []
    seen: set[str] = set()
    for index, launch in enumerate(module.launches):
        # (Torch names nodes for the first call only.)
        definition = launch.definition if launch.name not in seen else None
        seen.add(launch.name)
        named = {name for name in definition.nodes if name in flow.nodes} if definition is not None else set()
        nodes = sorted(named or computed[index], key=lambda name: flow.order.get(name, 0))
        result.append((tuple(nodes), not named))
    return result


class Flow:
    """The values that flow between the kernels of a module, and the nodes that they are known to be."""

    def __init__(self, module: Module, graph: Graph) -> None:
        self.module, self.graph = module, graph
        # nodes, order, users: of the graph, by name of a node
        self.nodes = {node.name: node for node in graph.nodes}
        self.order = {node.name: index for index, node in enumerate(graph.nodes)}
        self.users = users_of(graph.nodes)
        self.launched: dict[str, int] = {}  # node -> the call of a library's kernel that makes it
        self.libraries: set[int] = set()  # calls that are tied to a node
        # by value, the call that writes it
        self.writer = {value: index for index, launch in enumerate(module.launches) for value in launch.writes}
        self.writer |= {part: self.writer[whole] for part, (whole, _) in module.parts.items() if whole in self.writer}
        # what a fused kernel writes that is known: nodes, with the views above them that only a result shows
        self.targets: dict[int, set[str]] = {}
        inputs = [node.name for node in graph.nodes if node.op == "placeholder"]
        # value -> node, for values that are known
        self.node_of = {value: name if name in self.nodes else there
                        for (name, value), there in zip(module.arguments.items(), inputs)}

    def base(self, name: str) -> str:
        """Return the node whose memory a view shows."""
        for _ in range(100):
            node = self.nodes.get(name)
            if node is None or not node.is_view or not node.inputs or node.target == "operator.getitem":
                break
            name = node.inputs[0]
        return name

    def without_views(self, name: str) -> str:
        """Return the stored node that a node is a view of; not past what a library's kernel computes."""
        for _ in range(50):
            if not self.nodes[name].is_view or not self.nodes[name].inputs:
                break
            inner = self.nodes[name].inputs[0]
            if self.nodes[inner].op != "call_function" or inner in self.launched or self.is_of_library(inner):
                break
            name = inner
        return name

    def fits(self, value: int, name: str) -> bool:
        """Return whether a value has the elements and the type of a node, as far as both are known."""
        size, kind = self.module.buffers.get(value), self.nodes[name].type
        if size is None or kind is None or kind.shape is None:
            return size is None
        return elements(size.sizes) == elements(kind.shape) and (not size.dtype or size.dtype == kind.dtype)

    def is_of_library(self, name: str) -> bool:
        """Return whether a node is a part of the results of a library's kernel."""
        node = self.nodes[name]
        return bool(node.target == "operator.getitem" and node.inputs and node.inputs[0] in self.launched)

    def is_node(self, value: int, name: str) -> None:
        """Note that a value which a fused kernel writes is a node, or what the node is a view of."""
        if value not in self.writer or name not in self.nodes:
            return
        stored = self.without_views(name)
        self.node_of.setdefault(value, stored)
        if self.nodes[stored].is_call and stored not in self.launched:
            self.computes(value, stored)

    def computes(self, value: int, name: str) -> None:
        """Note that a kernel which writes a value computes the node; so do those that wrote parts of it before.

        The base of a scatter was written before, by a kernel that computes the scatter's first argument.
        """
        current: int | None = value
        while current is not None and current in self.writer:
            if self.writer[current] not in self.libraries:
                self.targets.setdefault(self.writer[current], set()).add(name)
            current = self.module.continues.get(current)
            node = self.nodes[name]
            if current is not None and bare_name(node.target) in SCATTERS and node.inputs:
                base = self.without_views(node.inputs[0])
                if self.nodes[base].op == "call_function" and base not in self.launched and (
                        not self.is_of_library(base)):
                    name = base
                    self.node_of.setdefault(current, base)


@functools.lru_cache(4096)
def elements(sizes: tuple[str, ...]) -> tuple[int, tuple[str, ...]]:
    """Return the number of elements: the product of the numbers, and the symbols."""
    return (math.prod(int(size) for size in sizes if size.isdigit()),
            tuple(sorted(size for size in sizes if not size.isdigit())))


def _note_results(flow: Flow) -> None:
    """Note that results are nodes, and which kernels write to inputs what ``copy_`` does."""
    results = flow.graph.results or [name for node in flow.graph.nodes if node.op == "output" for name in node.inputs]
    for values, name in zip(flow.module.results, results):
        for value in values[:1] if name in flow.nodes else ():
            if value not in flow.node_of:
                flow.is_node(value, name)
            writer = flow.writer.get(value)
            if writer is not None and flow.nodes[name].is_call and writer not in flow.libraries and (
                    flow.node_of.get(value) == flow.without_views(name)):
                flow.computes(value, name)
    copies = fold((node for node in flow.graph.nodes if node.is_call and bare_name(node.target) == "copy"
                   and node.inputs), lambda node: node.inputs[0])
    for index, launch in enumerate(flow.module.launches):
        for changed in launch.changes:
            flow.targets.setdefault(index, set()).update(node.name for node in copies.get(changed, ()))


# --- Library kernels ---------------------------------------------------------------------------------
def match_libraries(flow: Flow, captured: Mapping[str, str]) -> None:
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
        if not (operations := _operations(launch)):
            continue
        known = [flow.base(flow.node_of[value]) for value in launch.reads if value in flow.node_of]
        candidates = [node for name in operations for base in known for node in by_input.get((name, base), ())
                      if node.name not in flow.launched] or [
            node for name in operations for node in by_operation.get(name, ()) if node.name not in flow.launched]
        if not candidates:
            continue

        def agreement(node: Node) -> tuple[float, ...]:
            """Rank a node: torch names it above the call, how many known inputs it has, and the earlier one first."""
            names = {node.name, captured.get(node.name, "").rpartition(".")[2]}
            named = sum(not names.isdisjoint(of) for of in (launch.sources, launch.sources[-1:]))
            inputs = {flow.base(name) for name in node.inputs}
            return named, sum(name in inputs for name in known), -flow.order[node.name]

        best = max(candidates, key=agreement)
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
        _note_arguments(flow, launch, best)


def _operations(launch: Launch) -> list[str]:
    """Return the operations that the name of a library's call may mean; none for a kernel of Inductor's."""
    if launch.definition is not None:  # (the user's own Triton kernel keeps its name)
        is_users = launch.definition.kind == "Triton" and not launch.definition.name.startswith("triton_")
        return ["triton_kernel_wrapper_mutation", "triton_kernel_wrapper_functional"] if is_users else []
    parts = launch.name.split(".")
    of_torch = parts[:2] == ["torch", "ops"] and len(parts) > 3
    plain = bare_name(parts[3] if of_torch else parts[min(1, len(parts) - 1)])
    return list(dict.fromkeys([plain, *CALLED.get(plain, "").split()]))


def _note_arguments(flow: Flow, launch: Launch, node: Node) -> None:
    """Note which nodes the values are that a call takes, where they are not known."""
    wanted = list(dict.fromkeys(node.inputs))
    values = []
    for value in launch.reads:
        known = flow.node_of.get(value)
        if known is None:
            values.append(value)
        else:
            match = next((name for name in wanted if name == known or flow.base(name) == flow.base(known)), None)
            wanted = [name for name in wanted if name != match]
    wanted = [name for name in wanted if flow.base(name) not in flow.launched]
    for value, name in zip(values, wanted):
        if len(values) == len(wanted) or flow.fits(value, name):
            flow.is_node(value, name)


def _with_views(flow: Flow, stored: Collection[str], nodes: Collection[str]) -> set[str]:
    """Return the nodes with the views that a library's kernel takes, and the parts of its results."""
    result = set(nodes)
    for name in nodes:
        pending = list(flow.nodes[name].inputs)
        while pending:
            inner = pending.pop()
            node = flow.nodes.get(inner)
            if node is not None and node.is_view and node.target != "operator.getitem" and inner not in stored:
                result.add(inner)
                pending += node.inputs[:1]
        result.update(user for user in flow.users.get(name, ()) if flow.is_of_library(user))
    return result


# --- Fused kernels: the nodes between those of the values that one writes and reads -------------------
# A value that only fused kernels read may be any node of its size: the one is taken with which the nodes of the kernel
# need just its inputs.
#: A kernel with more open inputs, or a longer search, is left as far as it is.
_OPEN, _TRIES, _NODES = 24, 400, 4000


class _Needs(NamedTuple):
    """The needs of a kernel for a choice of inner values."""

    nodes: set[str]  # what it computes
    lacking: int  # how many values it would need that it does not read
    used: set[str]  # nodes of values that it reads


def _computed(flow: Flow, index: int) -> set[str]:
    """Return the nodes that a call of a fused kernel computes; of one that only copies a value, those that read it.

    The calls are asked for from the last to the first, so that what one writes is known.
    """
    launch = flow.module.launches[index]
    targets = set(flow.targets.get(index, ()))
    if not targets:
        readers = {at for at, other in enumerate(flow.module.launches) if not {*launch.writes}.isdisjoint(other.reads)}
        return {name for name, at in flow.launched.items() if at in readers}
    known = {flow.node_of[value] for value in launch.reads if value in flow.node_of}
    # (A scatter adds to the previous contents of its memory.)
    before = [flow.module.continues.get(value) for value in launch.writes]
    perhaps = {flow.node_of[value] for value in (*launch.perhaps, *before) if value in flow.node_of}
    unknown = [value for value in launch.reads
               if value not in flow.node_of and value in flow.writer and flow.writer[value] != index]
    chosen = _chosen(flow, targets, known, perhaps, unknown[:_OPEN])
    needs = _needs(flow, targets, known | perhaps | set(chosen.values()))
    for value, name in chosen.items():
        flow.node_of[value] = name
        flow.computes(value, name)
    for value in unknown:
        if value not in chosen:
            # A part of a reduction, or something unknown: its kernel computes what this one does.
            inner = {name for name in needs.nodes if bare_name(flow.nodes[name].target) in STORED}
            flow.targets.setdefault(flow.writer[value], set()).update(inner or targets)
    return needs.nodes


def _needs(flow: Flow, targets: Collection[str], available: Collection[str]) -> _Needs:
    """Return the needs of a kernel that writes the targets and reads the nodes that are available."""
    computable: dict[str, bool] = {}
    used, reached, lacking = set[str](), set[str](), set[str]()
    pending = [(name, False) for name in targets]
    while pending and len(reached) < _NODES:
        name, done = pending.pop()
        node = flow.nodes[name]
        if done:
            computable[name] = all(computable.get(inner, True) for inner in node.inputs)
        elif name in available and name not in targets:
            used.add(name)
            computable[name] = True
        elif name not in reached:
            reached.add(name)
            is_number = node.type is not None and node.type.shape is None
            if node.op == "get_attr" or node.op == "placeholder" and is_number:
                computable[name] = True  # (a size is a number, which every kernel may have)
            elif node.op == "placeholder" or flow.is_of_library(name) or (
                    name in flow.launched and name not in targets):
                computable[name] = False
                lacking |= set() if is_number else {name}
            else:
                pending.append((name, True))
                pending += [(inner, False) for inner in reversed(node.inputs) if inner in flow.nodes]
    nodes = {name for name in reached if (computable.get(name) or name in targets) and flow.nodes[name].is_call}
    return _Needs(nodes, len(lacking), used)


def _chosen(
    flow: Flow, targets: Collection[str], known: set[str], perhaps: set[str], unknown: Sequence[int]
) -> dict[int, str]:
    """Choose nodes for the values between fused kernels, one after the other, then each once more.

    Those are above the targets, up to values that library kernels made. What fits best lacks the fewest values, and
    uses all that the kernel reads.
    """
    reach: set[str] = set()
    pending = list(targets) if unknown else []
    while pending and len(reach) < _NODES:
        name = pending.pop()
        node = flow.nodes[name]
        if name not in reach and name not in known and node.op != "placeholder" and name not in flow.launched:
            reach.add(name)
            pending += [inner for inner in node.inputs if inner in flow.nodes]
    possible = sorted((name for name in reach if name not in targets and flow.nodes[name].is_call
                       and not flow.nodes[name].is_view), key=lambda name: -flow.order[name])
    chosen: dict[int, str] = {}
    tries = 0
    for value in (*unknown, *unknown):  # (once more, when a node is chosen for each)
        best: tuple[tuple[float, ...], str] | None = None
        chosen.pop(value, None)
        others = {*known, *chosen.values()}
        for name in possible:
            if name in chosen.values() or tries > _TRIES * len(unknown) or not flow.fits(value, name):
                continue
            tries += 1
            needs = _needs(flow, targets, others | perhaps | {name})
            unused = sum(node not in needs.used for node in others | {name})
            size, kind = flow.module.buffers.get(value), flow.nodes[name].type
            is_other = size is None or kind is None or kind.shape != size.sizes
            is_inlined = bare_name(flow.nodes[name].target) not in STORED and len(flow.users.get(name, ())) < 2
            score = needs.lacking, unused, is_other, is_inlined, len(needs.nodes)
            if best is None or score < best[0]:
                best = score, name
        if best is not None:
            chosen[value] = best[1]
    return chosen
