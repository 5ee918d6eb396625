"""Texts of graphs, kernels and guards without what differs between two runs of the same program.

That is: numbers that torch counts up, ids of objects, hashes, paths of caches.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Iterator

from ...model.folding import fold, layer_pattern, layer_ranges
from ...model.graph import Graph, Node, with_names
from ...model.graph_text import read_graph
from ...records.model import GraphStage
from ...torch_text.run_ids import without_counter, without_run_ids
from ...torch_text.size_names import is_symbol, with_symbols
from ..markdown import code


def graph_lines(stage: GraphStage) -> tuple[str, ...]:
    """Return the statements of a graph, to be compared.

    Names of nodes and symbols are numbered by their first use, so two graphs are the same if their lines are.
    """
    return _compared(stage.text)


@functools.lru_cache(maxsize=1000)
def _compared(text: str) -> tuple[str, ...]:
    names: dict[str, str] = {}
    for _, graph in read_graph(text).walk():
        for name in (*(given.name for given in graph.inputs), *(node.name for node in graph.nodes)):
            if not is_symbol(name):
                names.setdefault(name, f"%{len(names)}")
    return tuple(with_names(line, names) for line in _statements(text))


def shown_lines(stage: GraphStage) -> list[str]:
    """Return the same for people: names without the numbers that torch counts up."""
    names = {node.name: without_counter(node.name) for _, node in read_graph(stage.text).named_nodes()}
    return [with_names(line, names) for line in _statements(stage.text)]


def _statements(text: str) -> list[str]:
    """Return the parameters and statements of a graph, a line each; of another text its lines."""
    graph = read_graph(text)
    lines = list(_lines(graph, "")) if graph.nodes else [line.rstrip() for line in text.splitlines() if line.strip()]
    symbols: dict[str, str] = {}

    def numbered(symbol: str) -> str:
        return symbols.setdefault(symbol, f"{symbol[0]}{len(symbols)}")

    return [without_run_ids(with_symbols(line, numbered)) for line in lines]


def _lines(graph: Graph, indent: str) -> Iterator[str]:
    yield f"{indent}class {graph.name}(torch.nn.Module):"
    yield from (f"{part}," for part in (f"{indent}    def forward(self", *(
        f"{indent}            {given.text}" for given in graph.inputs)))
    for node in graph.nodes:
        if node.statement:
            yield f"{indent}        {node.statement}"
        if node.op == "output":
            yield f"{indent}        return {' '.join(line.strip() for line in node.value.splitlines())}"
        elif node.value:
            yield f"{indent}        {node.name}" + (f': "{node.type.text}"' if node.type else "") + f" = {node.value}"
    for inner in graph.subgraphs:
        yield from _lines(inner, f"{indent}    ")


def excerpts(first: str, second: str, longest: int = 100) -> tuple[str, str]:
    """Cut two different lines so that it can be seen where they differ."""
    common = next((at for at, pair in enumerate(zip(first, second)) if pair[0] != pair[1]),
                  min(len(first), len(second)))
    begin = max(0, common - longest // 3) if max(len(first), len(second)) > longest else 0

    def cut(line: str) -> str:
        return ("... " if begin else "") + line[begin : begin + longest] + (
            " ..." if len(line) > begin + longest else "")

    return cut(first), cut(second)


def calls(graph: Graph) -> Iterable[tuple[str, Node]]:
    """Return the operations of a graph and of those within it, with their names in the records of modules."""
    return ((name, node) for name, node in graph.named_nodes() if node.is_call)


# --- What differs in two graphs: operations by module; where these are the same, the first line ------
def changed_operations(old: GraphStage, new: GraphStage) -> list[str]:
    """Return the operations that only one of two graphs has, by module, those of layers folded, as Markdown."""
    before, after = _counts(old), _counts(new)
    changed: dict[str, tuple[str, ...]] = {}
    for path in dict.fromkeys([*after, *before]):
        first, second = before.get(path, Counter()), after.get(path, Counter())
        words = [f"+ {times_of(name, number)}" for name, number in (second - first).items()]
        words += [f"- {times_of(name, number)}" for name, number in (first - second).items()]
        if words:
            changed[path] = tuple(words)
    lines = []
    for (_, changes), paths in fold(changed, lambda path: (layer_pattern(path), changed[path])).items():
        where = code(layer_ranges(paths) if len(paths) > 1 else paths[0]) if paths[0] else "in no module"
        lines.append(f"{where}: " + ", ".join(code(word) for word in changes))
    return lines


def first_difference(old: GraphStage, new: GraphStage) -> list[str]:
    """Return the first line that differs, as two lines of a diff, cut where they do; none where no line does."""
    for line, other in zip(shown_lines(old), shown_lines(new)):
        if line != other:
            cut = excerpts(line.strip(), other.strip())
            return [f"- {cut[0]}", f"+ {cut[1]}"]
    return []


def times_of(name: str, number: int) -> str:
    """Return ``relu``, ``relu (3 times)``."""
    return f"{name} ({number} times)" if number > 1 else name


def _counts(stage: GraphStage) -> dict[str, Counter[str]]:
    paths = {node: call.path for call in stage.modules for node in call.nodes}
    result: dict[str, Counter[str]] = {}
    for name, node in calls(read_graph(stage.text)):
        result.setdefault(paths.get(name, ""), Counter())[node.operation] += 1
    return result
