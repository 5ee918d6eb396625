"""Pairs of what belongs together in two runs: functions, frames, versions. By meaning: ids differ.

Graphs are compared without what torch counts up (:mod:`depyf.torch_text.run_ids`).
"""

from __future__ import annotations

import difflib
import functools
import itertools
import ntpath
import os
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from ...model.folding import fold, layer_pattern, layer_ranges
from ...model.graph import Graph, Node, with_names
from ...model.graph_text import read_graph
from ...records.model import CompiledFunction, Frame, GraphStage
from ...torch_text.global_names import plain_name, resumed_function
from ...torch_text.libraries import is_generated
from ...torch_text.run_ids import without_counter, without_run_ids
from ...torch_text.size_names import is_symbol, with_symbols
from ...values import frozen
from ..function_summary import FunctionSummary
from ..markdown import code
from ..user_source import UserSource

Item = TypeVar("Item")
Pairs = list[tuple[Item | None, Item | None]]  #: One of the two can be missing.


def paired(before: Sequence[Item], after: Sequence[Item], *keys: Callable[[Item], Hashable]) -> Pairs[Item]:
    """Pair items with the same key, in the order of ``after``; a later key is for what the stricter ones left."""
    partner: dict[int, int] = {}  # index in after -> index in before
    left = set(range(len(before)))
    for key in keys:
        free: dict[Hashable, list[int]] = {}
        for index in sorted(left):
            free.setdefault(key(before[index]), []).append(index)
        for index, item in enumerate(after):
            if index not in partner and free.get(key(item)):
                partner[index] = free[key(item)].pop(0)
                left.discard(partner[index])
    result: Pairs[Item] = [
        (before[partner[index]] if index in partner else None, item) for index, item in enumerate(after)]
    for index in sorted(left):
        at = next((place for place, (old, _) in reversed(list(enumerate(result)))
                   if index > 0 and old is before[index - 1]), -1)
        result.insert(at + 1 if index else 0, (before[index], None))
    return result


def aligned(before: Sequence[Item], after: Sequence[Item], mark: Callable[[Item], Hashable]) -> Pairs[Item]:
    """Align two series: those with equal marks first, in order; between them one after the other."""
    result: Pairs[Item] = []
    matcher = difflib.SequenceMatcher(None, [mark(item) for item in before], [mark(item) for item in after], False)
    for _, begin, end, other_begin, other_end in matcher.get_opcodes():
        result += itertools.zip_longest(before[begin:end], after[other_begin:other_end])
    return result


base_name = ntpath.basename  #: The name of a file without its folders, of either system: records come from elsewhere.


def either(old: Item | None, new: Item | None) -> Item:
    """Return what a pair has, that of the second run rather than that of the first."""
    found = old if new is None else new
    assert found is not None
    return found


def summaries(before: Sequence[FunctionSummary], after: Sequence[FunctionSummary]) -> Pairs[FunctionSummary]:
    """Pair functions by qualified name and file, else by less; not by line: a function that moved is the same."""
    # (a log names the wrapper that torch compiled, and not the function in it)
    is_of_log = not all(any(each.wrappers for each in side) for side in (before, after))
    return paired(
        before, after, lambda each: (each.title, each.location and each.location.filename),
        lambda each: (each.title, each.location and base_name(each.location.filename)), lambda each: each.title,
        # (a run that did not end, or a log, does not say of what class a method is)
        lambda each: (each.name, each.location and base_name(each.location.filename)),
        *[_compiled_at][:is_of_log])


def _compiled_at(summary: FunctionSummary) -> Hashable:
    """Return the place of the code that torch compiled, the outermost wrapper's."""
    place = next(iter(summary.wrappers), summary.location)
    if place is None:
        return id(summary)
    return not is_generated(place.filename) and (base_name(place.filename), place.line)


@frozen
class Place:
    """A frame within its function."""

    frame: Frame  # the function itself, or a resume function
    name: str  # the user's function that it is of; with nested breaks another than the function's own
    line: str  # the text of the line that a resume function continues at, else its number from the function's first
    title: str


def places(function: CompiledFunction, source: UserSource) -> list[Place]:
    """Return the frames of a function."""
    result = []
    for frame in function.frames:
        name, line = resumed_function(frame.code_name) or (plain_name(frame.code_name), 0)
        where = frame.location
        text = (source.line(replace(where, line=line)) if where else "") or f"+{line - (where.line if where else 0)}"
        result.append(Place(frame, name, text, f"from line {line} on") if line else Place(frame, name, "", ""))
    return result


def frames(before: Sequence[Place], after: Sequence[Place]) -> Pairs[Place]:
    """Pair the frames of a function: resume functions by the line that they continue at, else by their order."""
    # (after a branch there are two that go on with the same line, of which often only one is ever compiled)
    return paired(before, after, lambda place: (place.name, place.line, bool(place.frame.entries)),
                  lambda place: (place.name, bool(place.line), bool(place.frame.entries)),
                  lambda place: (place.name, bool(place.line)))


# --- Graphs and kernels, without what differs by itself ----------------------------------------------
def are_equal(stage: GraphStage, other: GraphStage) -> bool:
    """Return whether two graphs are the same; types of inputs count only if both name them (boxed ones do not)."""
    if graph_lines(stage.text) == graph_lines(other.text):
        return True
    graphs = read_graph(stage.text), read_graph(other.text)
    boxed = [any(node.op == "placeholder" and node.value for node in graph.nodes) for graph in graphs]
    return boxed[0] != boxed[1] and _operations(graphs[0]) == _operations(graphs[1])


def _operations(graph: Graph) -> list[str]:
    """Return the operations of a graph, the names of nodes numbered, and what it returns."""
    names = {node.name: f"%{number}" for number, node in enumerate(graph.nodes) if not is_symbol(node.name)}
    return [with_names(" ".join((
        node.op, node.name, "" if node.op in ("placeholder", "output") else node.value, *node.inputs)), names)
            for node in graph.nodes]


@functools.lru_cache(maxsize=1000)
def graph_lines(text: str) -> tuple[str, ...]:
    """Return the statements of a graph, to be compared.

    Names of nodes and symbols are numbered by their first use, so two graphs are the same if their lines are.
    """
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
    return [without_run_ids(with_symbols(line, lambda symbol: symbols.setdefault(
        symbol, f"{symbol[0]}{len(symbols)}"))) for line in lines]


def _lines(graph: Graph, indent: str) -> Iterator[str]:
    yield f"{indent}class {graph.name}(torch.nn.Module):"
    yield f"{indent}    def forward(self,"
    yield from (f"{indent}            {given.text}," for given in graph.inputs)
    for node in graph.nodes:
        if node.statement:
            yield f"{indent}        {node.statement}"
        if node.op == "output":
            yield f"{indent}        return {' '.join(line.strip() for line in node.value.splitlines())}"
        elif node.value:
            yield f"{indent}        {node.name}" + (f': "{node.type.text}"' if node.type else "") + f" = {node.value}"
    for inner in graph.subgraphs:
        yield from _lines(inner, f"{indent}    ")


def calls(graph: Graph) -> Iterable[tuple[str, Node]]:
    """Return the operations of a graph and of those within it, with their names in the records of modules."""
    return ((name, node) for name, node in graph.named_nodes() if node.is_call)


# --- Differences of two graphs: operations by module; where these are the same, the first line -------
#: Characters of two different lines that are shown.
_LONGEST = 100


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
    pair = next(((line.strip(), other.strip()) for line, other in zip(shown_lines(old), shown_lines(new))
                 if line != other), ("", ""))
    common = len(os.path.commonprefix(pair))
    begin = max(0, common - _LONGEST // 3) if max(map(len, pair)) > _LONGEST else 0
    return [f"{sign} {'... ' * bool(begin)}{line[begin : begin + _LONGEST]}{' ...' * (len(line) > begin + _LONGEST)}"
            for sign, line in zip("-+", pair) if line]


def times_of(name: str, number: int) -> str:
    """Return ``relu``, ``relu (3 times)``."""
    return f"{name} ({number} times)" if number > 1 else name


def _counts(stage: GraphStage) -> dict[str, Counter[str]]:
    paths = {node: call.path for call in stage.modules for node in call.nodes}
    result: dict[str, Counter[str]] = {}
    for name, node in calls(read_graph(stage.text)):
        result.setdefault(paths.get(name, ""), Counter())[node.operation] += 1
    return result
