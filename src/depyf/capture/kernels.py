"""Which nodes of a graph a generated kernel computes.

Torch says it in comments above Triton kernels, for their first call. For the rest, C++ kernels among them, it is
*inferred* from the graph after Inductor's passes and from what flows in the generated module:

1. Calls of library kernels are nodes of the graph: the operation, the inputs that are known, the shape of the result
   and the source nodes that torch names tell which.
2. Each value of the module that such a call takes or gives, and each result, is thereby a node.
3. A fused kernel computes what lies between the nodes of the values that it writes and those of the values that it
   reads. The kernels are taken from the last to the first, so that what a kernel writes is known. A value that only
   fused kernels read may be any node of its size: the one is taken with which the kernel's inputs are just those that
   its nodes need.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from .generated import Launch, Module, read_module
from .graph_text import Graph, Node, read_graph
from .records import CompiledGraph, GraphStage, Kernel, KernelCall

#: Operations that give the same memory in another shape.
_VIEWS = frozenset(
    "view reshape _unsafe_view unsafe_view permute t transpose expand squeeze unsqueeze slice select alias detach "
    "as_strided split split_with_sizes chunk unbind diagonal view_as_real view_as_complex unfold getitem "
    "inductor_force_stride_order".split())
#: Reductions and the like: they are computed once and stored.
_STORED = frozenset(
    "sum mean amax amin max min prod var var_mean std std_mean argmax argmin any all cumsum cumprod logsumexp "
    "sort topk".split())
#: Operations that Inductor calls by another name (torch/_inductor/lowering.py, kernel/mm.py).
_CALLED = {
    "scatter_reduce": "scatter_add scatter scatter_reduce scatter_reduce_two", "randint": "inductor_seeds",
    "bias_addmm": "addmm", "mm": "mm addmm", "addmm": "addmm mm", "bmm": "bmm baddbmm", "baddbmm": "baddbmm bmm",
    "index_put": "index_put _unsafe_index_put index_put_", "convolution": "convolution _convolution",
    "linear_pointwise": "addmm mm linear", "convolution_pointwise": "convolution"}
#: A kernel with more open inputs, or a longer search, is left as far as it is.
_OPEN, _TRIES, _NODES = 24, 400, 4000


def graph_kernels(graph: CompiledGraph, captured_of: Mapping[str, Mapping[str, str]] | None = None) -> tuple[
        Kernel, ...]:
    """The kernels of a graph with their calls.

    Args:
        graph: its kernels and stages ``AFTER_POST_GRAD`` are read.
        captured_of: for a stage ``"AFTER_POST_GRAD.0"``: captured node of each of its nodes, where known.
    """
    stages = [stage for stage in graph.stages if stage.stage == "AFTER_POST_GRAD"] or [
        stage for stage in graph.stages if stage.stage in ("Forward_graph", "Backward_graph")]
    read = [(stage, read_graph(stage.text)) for stage in stages]
    modules = [read_module(kernel.text) for kernel in graph.kernels]
    found = []
    taken: set[int] = set()
    for kernel, module in zip(graph.kernels, modules):
        at = _stage_of(module, [inner for _, inner in read], taken)
        if at is None:
            found.append(_with_calls(kernel, module, None, {}))
            continue
        taken.add(at)
        stage, inner = read[at]
        key = f"{stage.stage}.{stage.index}"
        found.append(_with_calls(kernel, module, (stage, inner), (captured_of or {}).get(key, {})))
    return tuple(found)


def _stage_of(module: Module, graphs: Sequence[Graph], taken: set[int]) -> int | None:
    """The graph whose inputs are the module's arguments; of several the first that no other module was made of."""
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
    found = assign(module, source[1], source[0].text, captured) if source is not None else [
        (launch.definition.nodes if launch.definition is not None else (), True) for launch in module.launches]
    calls = tuple(
        KernelCall(launch.name, _kind(launch), launch.definition.line if launch.definition is not None else 0,
                   launch.line, nodes, inferred, launch.sources)
        for launch, (nodes, inferred) in zip(module.launches, found))
    stage = "" if source is None else f"{source[0].stage}.{source[0].index}"
    return replace(kernel, stage=stage, calls=calls)


def _kind(launch: Launch) -> str:
    definition = launch.definition
    if definition is None:
        return "extern"
    if re.match(r"(?:cpp_packed|cpp_grouped|cpp_flex|cpp_bmm|triton_tem)_", definition.name):
        return f"{definition.kind} template"
    return definition.kind


# --- assignment -----------------------------------------------------------------------------------
def assign(
    module: Module, graph: Graph, text: str = "", captured: Mapping[str, str] | None = None
) -> list[tuple[tuple[str, ...], bool]]:
    """``(nodes in the graph's order, inferred)`` of each call in ``module.launches``.

    Args:
        module: what Inductor generated.
        graph: after Inductor's passes.
        text: of the graph.
        captured: captured node of each node, where known.
    """
    return _Assignment(module, graph, text, captured or {}).found()


@dataclass
class _Needs:
    """What a choice of inner values makes a kernel compute.

    Attributes:
        nodes: what it computes.
        lacking: how many values it would need that it does not read.
        used: nodes of values that it reads.
    """

    nodes: set[str] = field(default_factory=set)
    lacking: int = 0
    used: set[str] = field(default_factory=set)


class _Assignment:
    def __init__(self, module: Module, graph: Graph, text: str, captured: Mapping[str, str]) -> None:
        self.module = module
        self.graph = graph
        self.captured = captured
        self.lines = text.split("\n")
        self.nodes = {node.name: node for node in graph.nodes}
        self.last: dict[str, int] = {}  # of a node: the last library call that it needs
        self.order = {node.name: index for index, node in enumerate(graph.nodes)}
        self.users: dict[str, list[str]] = {}
        for node in graph.nodes:
            for name in node.inputs:
                self.users.setdefault(name, []).append(node.name)
        self.results = _results(text) or [
            name for node in graph.nodes if node.op == "output" for name in node.inputs]
        #: Value -> node, for values that are known; the other way round, nodes that a library's kernel made.
        self.node_of: dict[int, str] = {}
        self.launched: dict[str, int] = {}
        self.libraries: set[int] = set()  # calls that are tied to a node
        self.writer = {value: index for index, launch in enumerate(module.launches) for value in launch.writes}
        self.writer |= {part: self.writer[whole] for part, (whole, _) in module.parts.items() if whole in self.writer}
        self.readers: dict[int, list[int]] = {}
        for index, launch in enumerate(module.launches):
            for value in launch.reads:
                self.readers.setdefault(value, []).append(index)
        #: What a fused kernel writes that is known: nodes, with the views above them that only a result shows.
        self.targets: dict[int, set[str]] = {}
        self.stored: set[str] = set()  # nodes that are values of the module
        self.first: set[int] = set()  # calls that are the first of their kernel
        seen: set[str] = set()
        for index, launch in enumerate(module.launches):
            if launch.name not in seen:
                seen.add(launch.name)
                self.first.add(index)
        self.copies: dict[int, set[str]] = {}  # of a kernel that only moves a value: for whom

    def found(self) -> list[tuple[tuple[str, ...], bool]]:
        for (name, value), node in zip(self.module.arguments.items(), [
                node for node in self.graph.nodes if node.op == "placeholder"]):
            self.node_of[value] = name if name in self.nodes else node.name
        self._libraries()
        self._returned()
        self._mutated()
        computed: dict[int, set[str]] = {index: {name} for name, index in self.launched.items()}
        for index in range(len(self.module.launches) - 1, -1, -1):
            if index not in computed:
                computed[index] = self._fused(index)
        self.stored = set(self.node_of.values())
        for index in computed:
            if index in self.libraries:
                computed[index] = self._with_views(index, computed[index])
        found = []
        for index, launch in enumerate(self.module.launches):
            said = self._said(launch, index)
            nodes = said or computed[index] or self.copies.get(index, set())
            found.append((tuple(sorted(nodes, key=lambda name: self.order.get(name, 0))), not said))
        return found

    def _said(self, launch: Launch, index: int) -> set[str]:
        """What torch itself says of a call: of the first one of a kernel, above the kernel."""
        definition = launch.definition
        if definition is None or index not in self.first:
            return set()
        return {name for name in definition.nodes if name in self.nodes}

    # --- what is known of values ------------------------------------------------------------------
    def _libraries(self) -> None:
        """Ties calls of library kernels to nodes, in order, each with the one that fits best."""
        by_operation: dict[str, list[Node]] = {}
        by_input: dict[tuple[str, str], list[Node]] = {}
        for node in self.graph.nodes:
            if node.is_call:
                operation = _plain(node.operation)
                by_operation.setdefault(operation, []).append(node)
                for name in dict.fromkeys(map(self._base, node.inputs)):
                    by_input.setdefault((operation, name), []).append(node)
        for index, launch in enumerate(self.module.launches):
            if launch.definition is not None and not _is_users(launch):
                continue
            operations = self._operations(launch)
            known = [self._base(self.node_of[value]) for value in launch.reads if value in self.node_of]
            candidates = {node.name: node for name in operations for base in known
                          for node in by_input.get((name, base), ()) if node.name not in self.launched}
            if not candidates:
                candidates = {node.name: node for name in operations for node in by_operation.get(name, ())
                              if node.name not in self.launched}
            if not candidates:
                continue
            best = max(candidates.values(), key=functools.partial(self._agreement, launch))
            self.launched[best.name] = index
            self.libraries.add(index)
            for value in launch.writes[:1]:
                self.node_of[value] = best.name
            for part, (whole, item) in self.module.parts.items():
                if whole in launch.writes:
                    getter = self._getter(best.name, item)
                    if getter:
                        self.node_of[part] = getter
            self._arguments(launch, best)

    def _operations(self, launch: Launch) -> list[str]:
        if launch.definition is not None:
            return ["triton_kernel_wrapper_mutation", "triton_kernel_wrapper_functional"]
        parts = launch.name.split(".")
        of_torch = parts[:2] == ["torch", "ops"] and len(parts) > 3
        plain = _plain(parts[3] if of_torch else parts[min(1, len(parts) - 1)])
        found = dict.fromkeys([plain, *_CALLED.get(plain, "").split()])
        found.update(dict.fromkeys(_plain(item.rpartition(".")[2]) for item in reversed(launch.aten)))
        return [name for name in found if name not in _VIEWS or name == plain]

    def _agreement(self, launch: Launch, node: Node) -> tuple[float, int]:
        """How well a call fits a node; of equals the first."""
        score = 0.0
        wanted = [self._base(name) for name in node.inputs]
        for value in launch.reads:
            known = self.node_of.get(value)
            if known is None:
                continue
            score += 3.0 if self._base(known) in wanted or known in node.inputs else -4.0
        if launch.definition is None and _plain(node.operation) == self._operations(launch)[0]:
            score += 2.0
        if launch.sources:
            names = {node.name, self.captured.get(node.name, "").rpartition(".")[2]}
            score += 4.0 if launch.sources[-1] in names else 2.0 if names & set(launch.sources) else 0.0
        for value in launch.writes[:1]:
            size = self.module.buffers.get(value)
            if size is not None and node.type is not None and node.type.shape is not None:
                score += 2.0 if _numbers(size.sizes) == _numbers(node.type.shape) else -2.0
        return score, -self.order[node.name]

    def _getter(self, node: str, item: int) -> str:
        found = [self.nodes[name] for name in self.users.get(node, ())
                 if self.nodes[name].target == "operator.getitem"]
        # (The text of a getitem names its index, the node does not.)
        for getter in found:
            if self._index(getter) == item:
                return getter.name
        return ""

    def _index(self, getter: Node) -> int:
        return _index_in(self.lines[getter.line - 1]) if 0 < getter.line <= len(self.lines) else -1

    def _arguments(self, launch: Launch, node: Node) -> None:
        """What a library's kernel takes are the inputs of its node, in order."""
        wanted = list(dict.fromkeys(node.inputs))
        values = list(launch.reads)
        for value in list(values):
            known = self.node_of.get(value)
            if known is not None:
                match = next((name for name in wanted if name == known or self._base(name) == self._base(known)), None)
                if match is not None:
                    wanted.remove(match)
                    values.remove(value)
        wanted = [name for name in wanted if self._base(name) not in self.launched]
        values = [value for value in values if value not in self.node_of]
        for value, name in zip(values, wanted):
            if len(values) == len(wanted) or self._fits(value, name):
                self._known(value, name)

    def _known(self, value: int, name: str) -> None:
        """A value that a fused kernel writes is a node, or what the node is a view of."""
        writer = self.writer.get(value)
        if writer is None:
            return
        stored, chain = name, [name]
        while True:
            node = self.nodes.get(stored)
            if node is None or not is_view(node) or not node.inputs:
                break
            inner = node.inputs[0]
            if self.nodes[inner].op != "call_function" or inner in self.launched or self._held(inner):
                break
            stored = inner
            chain.append(stored)
        base = self.nodes.get(stored)
        if base is None:
            return
        self.node_of.setdefault(value, stored)
        if base.is_call and stored not in self.launched:
            self._target(value, stored)

    def _target(self, value: int, name: str) -> None:
        """A kernel that writes the value computes the node; so do those that wrote parts of it before."""
        here: int | None = value
        while here is not None and here in self.writer:
            if self.writer[here] not in self.libraries:
                self.targets.setdefault(self.writer[here], set()).add(name)
            here = self.module.continues.get(here)

    def _held(self, name: str) -> bool:
        """The node is one that a library's kernel gives (a part of its results)."""
        node = self.nodes[name]
        return bool(node.target == "operator.getitem" and node.inputs and node.inputs[0] in self.launched)

    def _returned(self) -> None:
        for values, name in zip(self.module.results, self.results):
            for value in values[:1]:
                if value not in self.node_of and name in self.nodes:
                    self._known(value, name)
                writer = self.writer.get(value)
                if writer is not None and name in self.nodes and self.nodes[name].is_call \
                        and writer not in self.libraries and self.node_of.get(value) == self._stored(name):
                    self._target(value, name)

    def _stored(self, name: str) -> str:
        seen = 0
        while seen < 50 and is_view(self.nodes[name]) and self.nodes[name].inputs:
            inner = self.nodes[name].inputs[0]
            if self.nodes[inner].op != "call_function" or inner in self.launched or self._held(inner):
                break
            name, seen = inner, seen + 1
        return name

    def _mutated(self) -> None:
        """``copy_`` to an input is what a kernel does that writes to it."""
        copies: dict[str, list[str]] = {}
        for node in self.graph.nodes:
            if node.is_call and _plain(node.operation) == "copy" and node.inputs:
                copies.setdefault(node.inputs[0], []).append(node.name)
        for index, launch in enumerate(self.module.launches):
            for name in launch.changes:
                for copy in copies.get(name, ()):
                    self.targets.setdefault(index, set()).add(copy)

    # --- fused kernels ----------------------------------------------------------------------------
    def _fused(self, index: int) -> set[str]:
        launch = self.module.launches[index]
        targets = set(self.targets.get(index, ()))
        known = {self.node_of[value] for value in launch.reads if value in self.node_of}
        unknown = [value for value in launch.reads
                   if value not in self.node_of and value in self.writer and self.writer[value] != index]
        if not targets:
            self._moves(index, launch)
            return set()
        chosen: dict[int, str] = {}
        perhaps = {self.node_of[value] for value in launch.perhaps if value in self.node_of}
        needs = self._needs(targets, known | perhaps)
        if unknown:
            chosen, needs = self._choose(targets, known, perhaps, unknown[:_OPEN], needs)
        for value, name in chosen.items():
            self._known_exactly(value, name)
        for value in unknown:
            if value not in chosen:
                # A part of a reduction, or of what nothing tells: its kernel computes what this one does.
                inner = {name for name in needs.nodes if _plain(self.nodes[name].operation) in _STORED}
                self.targets.setdefault(self.writer[value], set()).update(inner or targets)
        return needs.nodes

    def _known_exactly(self, value: int, name: str) -> None:
        self.node_of[value] = name
        self._target(value, name)

    def _moves(self, index: int, launch: Launch) -> None:
        """A kernel that writes nothing new: it lays a value out for the kernels that read it."""
        for value in launch.writes:
            for reader in self.readers.get(value, ()):
                names = [name for name, at in self.launched.items() if at == reader]
                self.copies.setdefault(index, set()).update(names)
        if index not in self.copies:
            said = {name for value in launch.reads for name in [self.node_of.get(value, "")]
                    if name and self.nodes[name].is_call}
            self.copies[index] = said

    def _needs(self, targets: Iterable[str], available: set[str]) -> _Needs:
        """What a kernel computes that writes the targets and reads the nodes that are available."""
        computable: dict[str, bool] = {}
        used: set[str] = set()
        reached: set[str] = set()
        lacking: set[str] = set()
        pending = [(name, False) for name in targets]
        first = set(targets)
        while pending and len(reached) < _NODES:
            name, done = pending.pop()
            node = self.nodes[name]
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
            if node.op == "get_attr":
                computable[name] = True
                continue
            if node.op == "placeholder" or (name in self.launched and name not in first) or self._held(name):
                computable[name] = False
                if node.type is None or node.type.shape is not None:
                    lacking.add(name)
                continue
            pending.append((name, True))
            pending += [(inner, False) for inner in reversed(node.inputs) if inner in self.nodes]
        nodes = {name for name in reached if (computable.get(name) or name in first) and self.nodes[name].is_call}
        return _Needs(nodes, len(lacking), used)

    def _choose(
        self, targets: set[str], known: set[str], perhaps: set[str], unknown: Sequence[int], start: _Needs
    ) -> tuple[dict[int, str], _Needs]:
        """Nodes for values that fused kernels hand each other, one value after the other, then each once more."""
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

    def _score(
        self, value: int, name: str, needs: _Needs, known: set[str], others: set[str]
    ) -> tuple[float, ...]:
        """The smaller the better: values that are not there, values that are not used, then what speaks for a node."""
        unused = sum(node not in needs.used for node in (*known, *others, name)
                     if self.nodes[node].op != "placeholder" or self.nodes[node].type is not None)
        node = self.nodes[name]
        stored = _plain(node.operation) in _STORED or self._is_part_of_stored(node)
        size = self.module.buffers.get(value)
        exact = size is not None and node.type is not None and node.type.shape == size.sizes
        return (needs.lacking, unused, not exact, not stored and len(self.users.get(name, ())) < 2, len(needs.nodes),
                -self.order[name])

    def _is_part_of_stored(self, node: Node) -> bool:
        return bool(node.target == "operator.getitem" and node.inputs
                    and _plain(self.nodes[node.inputs[0]].operation) in _STORED)

    def _reach(self, targets: Iterable[str], known: set[str]) -> set[str]:
        """Nodes above the targets, up to values that library kernels made."""
        found: set[str] = set()
        pending = list(targets)
        while pending and len(found) < _NODES:
            name = pending.pop()
            if name in found or name in known or self.nodes[name].op == "placeholder" or name in self.launched:
                continue
            found.add(name)
            pending += [inner for inner in self.nodes[name].inputs if inner in self.nodes]
        return found

    def _candidates(self, value: int, reach: set[str], targets: set[str]) -> list[str]:
        writer = self.writer[value]
        found = []
        for name in reach:
            node = self.nodes[name]
            if name not in targets and node.is_call and self._fits(value, name) and not self._is_plain_view(node) \
                    and self._before(name, writer):
                found.append(name)
        return sorted(found, key=lambda name: -self.order[name])

    def _is_plain_view(self, node: Node) -> bool:
        return is_view(node) and not self._is_part_of_stored(node)

    def _before(self, name: str, index: int) -> bool:
        """Whether the library kernels that a node needs were called by then."""
        return self._last_needed(name) < index

    def _last_needed(self, name: str) -> int:
        if name in self.last:
            return self.last[name]
        last = self.launched.get(name, -1)
        pending, seen = list(self.nodes[name].inputs) if name not in self.launched else [], set()
        while pending:
            inner = pending.pop()
            if inner in seen or inner not in self.nodes:
                continue
            seen.add(inner)
            if inner in self.launched:
                last = max(last, self.launched[inner])
            elif inner in self.last:
                last = max(last, self.last[inner])
            else:
                pending += self.nodes[inner].inputs
        self.last[name] = last
        return last

    def _fits(self, value: int, name: str) -> bool:
        size, kind = self.module.buffers.get(value), self.nodes[name].type
        if size is None or kind is None or kind.shape is None:
            return size is None
        return _numbers(size.sizes) == _numbers(kind.shape) and (not size.dtype or size.dtype == kind.dtype)

    # --- views ------------------------------------------------------------------------------------
    def _base(self, name: str) -> str:
        """The node whose memory a view shows."""
        for _ in range(100):
            node = self.nodes.get(name)
            if node is None or not is_view(node) or not node.inputs:
                break
            if node.target == "operator.getitem":
                break
            name = node.inputs[0]
        return name

    def _with_views(self, index: int, nodes: set[str]) -> set[str]:
        """The views that a library's kernel takes, and the parts of what it gives."""
        found = set(nodes)
        for name in nodes:
            pending = list(self.nodes[name].inputs)
            while pending:
                inner = pending.pop()
                node = self.nodes.get(inner)
                if node is not None and is_view(node) and node.target != "operator.getitem" \
                        and inner not in self.stored:
                    found.add(inner)
                    pending += node.inputs[:1]
            found.update(user for user in self.users.get(name, ()) if self._held(user))
        return found


def is_view(node: Node) -> bool:
    """Whether a node gives its input's memory in another shape."""
    return node.is_call and (_plain(node.operation) in _VIEWS or node.operation.rpartition(".")[2] in _VIEWS)


def _is_users(launch: Launch) -> bool:
    """A Triton kernel that the user wrote keeps its name."""
    definition = launch.definition
    return definition is not None and definition.kind == "Triton" and not definition.name.startswith("triton_")


def _index_in(line: str) -> int:
    found = re.search(r"\[(\d+)\]", line.partition(" = ")[2])
    return int(found[1]) if found else -1


def _plain(operation: str) -> str:
    """``aten.copy_`` and ``copy`` are both ``copy``; ``_softmax`` keeps its underscore."""
    name = operation.rpartition(".")[2]
    return name.rstrip("_") or name


@functools.lru_cache(4096)
def _numbers(sizes: tuple[str, ...]) -> tuple[int, tuple[str, ...]]:
    """The number of elements: the product of the numbers, and the symbols."""
    product, symbols = 1, []
    for size in sizes:
        if size.isdigit():
            product *= int(size)
        else:
            symbols.append(size)
    return product, tuple(sorted(symbols))


def _results(text: str) -> list[str]:
    """What a graph returns, in order, ``""`` for what is no node."""
    found = re.findall(r"^        return (.*)$", text, re.M)
    try:
        value = ast.parse(found[0]).body[0].value if found else None  # type: ignore[attr-defined]
    except (SyntaxError, IndexError):
        value = None
    if not isinstance(value, (ast.Tuple, ast.List)):
        return []
    return [item.id if isinstance(item, ast.Name) else "" for item in value.elts]
