"""What differs in two graphs: operations by module; where these are the same, the first line."""

from __future__ import annotations

from collections import Counter

from ...model.graph_text import read_graph
from ...records.model import GraphStage
from ..dump.outline import layer_pattern, layer_ranges
from ..markdown import code
from .canonical import calls, excerpts, shown_lines


def changed_operations(old: GraphStage, new: GraphStage) -> list[str]:
    """Return the operations that only one of two graphs has, by module, those of layers folded, as Markdown."""
    before, after = _counts(old), _counts(new)
    by_change: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for path in dict.fromkeys([*after, *before]):
        first, second = before.get(path, Counter()), after.get(path, Counter())
        words = [f"+ {times_of(name, number)}" for name, number in (second - first).items()]
        words += [f"- {times_of(name, number)}" for name, number in (first - second).items()]
        if words:
            by_change.setdefault((layer_pattern(path), tuple(words)), []).append(path)
    lines = []
    for (_, changes), paths in by_change.items():
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
    """Return operations by the path of the module that they were called in."""
    paths = {node: call.path for call in stage.modules for node in call.nodes}
    result: dict[str, Counter[str]] = {}
    for name, node in calls(read_graph(stage.text)):
        result.setdefault(paths.get(name, ""), Counter())[node.operation] += 1
    return result
