"""Facts about a generated module's values and the nodes of its graph, while kernels are matched to nodes."""

from __future__ import annotations

import functools
from collections.abc import Mapping

from ...model.graph import SCATTERS, Graph, bare_name, users_of
from ...torch_text.generated import Module


class Flow:
    """The values that flow between the kernels of a module, and the nodes that they are known to be.

    Attributes:
        module, graph: what was generated, and of what.
        captured: captured node of each node, where known.
        nodes, order, users: of the graph, by name of a node.
        results: names of the nodes that the graph returns; empty for what is no node.
        node_of: value -> node, for values that are known.
        launched: node -> the call of a library's kernel that makes it.
        libraries: calls that are tied to a node.
        writer, readers: by value, the calls that write and read it.
        targets: what a fused kernel writes that is known: nodes, with the views above them that only a result shows.
        first: calls that are the first of their kernel.
    """

    def __init__(self, module: Module, graph: Graph, captured: Mapping[str, str]) -> None:
        self.module = module
        self.graph = graph
        self.captured = captured
        self.nodes = {node.name: node for node in graph.nodes}
        self.order = {node.name: index for index, node in enumerate(graph.nodes)}
        self.users = users_of(graph.nodes)
        self.results = list(graph.results) or [
            name for node in graph.nodes if node.op == "output" for name in node.inputs]
        self.node_of: dict[int, str] = {}
        self.launched: dict[str, int] = {}
        self.libraries: set[int] = set()
        self.writer = {value: index for index, launch in enumerate(module.launches) for value in launch.writes}
        self.writer |= {part: self.writer[whole] for part, (whole, _) in module.parts.items() if whole in self.writer}
        self.readers: dict[int, list[int]] = {}
        for index, launch in enumerate(module.launches):
            for value in launch.reads:
                self.readers.setdefault(value, []).append(index)
        self.targets: dict[int, set[str]] = {}
        self.first: set[int] = set()
        seen: set[str] = set()
        for index, launch in enumerate(module.launches):
            if launch.name not in seen:
                seen.add(launch.name)
                self.first.add(index)
        for (name, value), node in zip(self.module.arguments.items(), [
                node for node in self.graph.nodes if node.op == "placeholder"]):
            self.node_of[value] = name if name in self.nodes else node.name

    def base(self, name: str) -> str:
        """Return the node whose memory a view shows."""
        for _ in range(100):
            node = self.nodes.get(name)
            if node is None or not node.is_view or not node.inputs:
                break
            if node.target == "operator.getitem":
                break
            name = node.inputs[0]
        return name

    def without_views(self, name: str) -> str:
        """Return the stored node that a node is a view of; not past what a library's kernel computes."""
        seen = 0
        while seen < 50 and self.nodes[name].is_view and self.nodes[name].inputs:
            inner = self.nodes[name].inputs[0]
            if self.nodes[inner].op != "call_function" or inner in self.launched or self.of_library(inner):
                break
            name, seen = inner, seen + 1
        return name

    def fits(self, value: int, name: str) -> bool:
        """Return whether a value has the elements and the type of a node, as far as both are known."""
        size, kind = self.module.buffers.get(value), self.nodes[name].type
        if size is None or kind is None or kind.shape is None:
            return size is None
        return elements(size.sizes) == elements(kind.shape) and (not size.dtype or size.dtype == kind.dtype)

    def of_library(self, name: str) -> bool:
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
                if self.nodes[base].op == "call_function" and base not in self.launched and not self.of_library(base):
                    name = base
                    self.node_of.setdefault(current, base)


@functools.lru_cache(4096)
def elements(sizes: tuple[str, ...]) -> tuple[int, tuple[str, ...]]:
    """Return the number of elements: the product of the numbers, and the symbols."""
    product, symbols = 1, []
    for size in sizes:
        if size.isdigit():
            product *= int(size)
        else:
            symbols.append(size)
    return product, tuple(sorted(symbols))
