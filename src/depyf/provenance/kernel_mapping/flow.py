"""Facts about a generated module's values and the nodes of its graph, while kernels are matched to nodes."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ...model.graph import SCATTERS, STORED, Graph, Node, bare_name, users_of
from ...torch_text.generated import Launch, Module


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
            if self.nodes[inner].op != "call_function" or inner in self.launched or self.is_of_library(inner):
                break
            name, seen = inner, seen + 1
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
                if self.nodes[base].op == "call_function" and base not in self.launched \
                        and not self.is_of_library(base):
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


# --- Fused kernels: the nodes between those of the values that one writes and reads -------------------
# A value that only fused kernels read may be any node of its size: the one is taken with which the nodes of the kernel
# need just its inputs.
#: A kernel with more open inputs, or a longer search, is left as far as it is.
_OPEN, _TRIES, _NODES = 24, 400, 4000


@dataclass
class _Needs:
    """The needs of a kernel for a choice of inner values.

    Attributes:
        nodes: what it computes.
        lacking: how many values it would need that it does not read.
        used: nodes of values that it reads.
    """

    nodes: set[str] = field(default_factory=set)
    lacking: int = 0
    used: set[str] = field(default_factory=set)


class Fused:
    """Fused kernels, asked for from the last call to the first, so that what a kernel writes is known.

    Args:
        flow: with the calls of libraries and the results tied to nodes.

    Attributes:
        moved: of a call that only moves a value, by its index: for which nodes.
    """

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self.moved: dict[int, set[str]] = {}
        self.last: dict[str, int] = {}  # of a node: the last library call that it needs

    def computed(self, index: int) -> set[str]:
        """Return the nodes that a call of a fused kernel computes; later calls must have been asked for before."""
        launch = self.flow.module.launches[index]
        targets = set(self.flow.targets.get(index, ()))
        known = {self.flow.node_of[value] for value in launch.reads if value in self.flow.node_of}
        unknown = [value for value in launch.reads
                   if value not in self.flow.node_of and value in self.flow.writer and self.flow.writer[value] != index]
        if not targets:
            self._moves(index, launch)
            return set()
        chosen: dict[int, str] = {}
        # (A scatter adds to the previous contents of its memory.)
        before = [self.flow.module.continues.get(value) for value in launch.writes]
        perhaps = {self.flow.node_of[value] for value in (*launch.perhaps, *before) if value in self.flow.node_of}
        needs = self._needs(targets, known | perhaps)
        if unknown:
            chosen, needs = self._choose(targets, known, perhaps, unknown[:_OPEN], needs)
        for value, name in chosen.items():
            self.flow.node_of[value] = name
            self.flow.computes(value, name)
        for value in unknown:
            if value not in chosen:
                # A part of a reduction, or something unknown: its kernel computes what this one does.
                inner = {name for name in needs.nodes if bare_name(self.flow.nodes[name].target) in STORED}
                self.flow.targets.setdefault(self.flow.writer[value], set()).update(inner or targets)
        return needs.nodes

    def _moves(self, index: int, launch: Launch) -> None:
        """Note a kernel that only copies a value, for the kernels that read it."""
        for value in launch.writes:
            for reader in self.flow.readers.get(value, ()):
                names = [name for name, at in self.flow.launched.items() if at == reader]
                self.moved.setdefault(index, set()).update(names)
        if index not in self.moved:
            nodes = {name for value in launch.reads for name in [self.flow.node_of.get(value, "")]
                     if name and self.flow.nodes[name].is_call}
            self.moved[index] = nodes

    def _needs(self, targets: Iterable[str], available: set[str]) -> _Needs:
        """Return the needs of a kernel that writes the targets and reads the nodes that are available."""
        computable: dict[str, bool] = {}
        used: set[str] = set()
        reached: set[str] = set()
        lacking: set[str] = set()
        pending = [(name, False) for name in targets]
        first = set(targets)
        while pending and len(reached) < _NODES:
            name, done = pending.pop()
            node = self.flow.nodes[name]
            if done:
                computable[name] = all(computable.get(inner, True) for inner in node.inputs)
                continue
            if name in available and name not in first:
                used.add(name)
                computable[name] = True
                continue
            if name in reached:
                continue
            reached.add(name)
            if node.op == "get_attr" or node.op == "placeholder" and node.type is not None and node.type.shape is None:
                computable[name] = True  # (a size is a number, which every kernel may have)
                continue
            if node.op == "placeholder" or self.flow.is_of_library(name) or (
                    name in self.flow.launched and name not in first):
                computable[name] = False
                if node.type is None or node.type.shape is not None:
                    lacking.add(name)
                continue
            pending.append((name, True))
            pending += [(inner, False) for inner in reversed(node.inputs) if inner in self.flow.nodes]
        nodes = {name for name in reached if (computable.get(name) or name in first) and self.flow.nodes[name].is_call}
        return _Needs(nodes, len(lacking), used)

    def _choose(
        self, targets: set[str], known: set[str], perhaps: set[str], unknown: Sequence[int], start: _Needs
    ) -> tuple[dict[int, str], _Needs]:
        """Choose nodes for the values between fused kernels, one after the other, then each once more."""
        chosen: dict[int, str] = {}
        best = start
        tries = 0
        reach = self._reach(targets, known)
        for _ in range(3):
            changed = False
            for value in unknown:
                others = {name for other, name in chosen.items() if other != value}
                best_here: tuple[tuple[float, ...], str, _Needs] | None = None
                for name in self._candidates(value, reach, targets):
                    if name in others or tries > _TRIES * len(unknown):
                        continue
                    tries += 1
                    needs = self._needs(targets, known | perhaps | others | {name})
                    score = self._score(value, name, needs, known, others)
                    if best_here is None or score < best_here[0]:
                        best_here = score, name, needs
                if best_here is not None and chosen.get(value) != best_here[1]:
                    chosen[value], best, changed = best_here[1], best_here[2], True
            if not changed:
                break
        if chosen:
            best = self._needs(targets, known | perhaps | set(chosen.values()))
        return chosen, best

    def _score(self, value: int, name: str, needs: _Needs, known: set[str], others: set[str]) -> tuple[float, ...]:
        """Return how well a node fits, the smaller the better: missing values, unused values, then other evidence."""
        unused = sum(node not in needs.used for node in (*known, *others, name)
                     if self.flow.nodes[node].op != "placeholder" or self.flow.nodes[node].type is not None)
        node = self.flow.nodes[name]
        stored = bare_name(node.target) in STORED or self._is_part_of_stored(node)
        size = self.flow.module.buffers.get(value)
        exact = size is not None and node.type is not None and node.type.shape == size.sizes
        alone = len(self.flow.users.get(name, ())) < 2
        return needs.lacking, unused, not exact, not stored and alone, len(needs.nodes), -self.flow.order[name]

    def _is_part_of_stored(self, node: Node) -> bool:
        return bool(node.target == "operator.getitem" and node.inputs
                    and bare_name(self.flow.nodes[node.inputs[0]].target) in STORED)

    def _reach(self, targets: Iterable[str], known: set[str]) -> set[str]:
        """Return nodes above the targets, up to values that library kernels made."""
        result: set[str] = set()
        pending = list(targets)
        while pending and len(result) < _NODES:
            name = pending.pop()
            node = self.flow.nodes[name]
            if name in result or name in known or node.op == "placeholder" or name in self.flow.launched:
                continue
            result.add(name)
            pending += [inner for inner in node.inputs if inner in self.flow.nodes]
        return result

    def _candidates(self, value: int, reach: set[str], targets: set[str]) -> list[str]:
        writer = self.flow.writer[value]
        result = []
        for name in reach:
            node = self.flow.nodes[name]
            if name not in targets and node.is_call and self.flow.fits(value, name) \
                    and not (node.is_view and not self._is_part_of_stored(node)) \
                    and self._last_needed(name) < writer:
                result.append(name)
        return sorted(result, key=lambda name: -self.flow.order[name])

    def _last_needed(self, name: str) -> int:
        if name in self.last:
            return self.last[name]
        last = self.flow.launched.get(name, -1)
        pending, seen = list(self.flow.nodes[name].inputs) if name not in self.flow.launched else [], set()
        while pending:
            inner = pending.pop()
            if inner in seen or inner not in self.flow.nodes:
                continue
            seen.add(inner)
            if inner in self.flow.launched:
                last = max(last, self.flow.launched[inner])
            elif inner in self.last:
                last = max(last, self.last[inner])
            else:
                pending += self.flow.nodes[inner].inputs
        self.last[name] = last
        return last
