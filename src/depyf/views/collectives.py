"""The collectives of generated code, their order and estimated times, and the order in which graphs ran.

Of a run, and where ranks differ in them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, zip_longest

from ..model.folding import fold
from ..records.model import Capture, CompiledGraph
from ..torch_text.global_names import plain_name
from ..torch_text.trace_table import executed
from .markdown import code, count, listed, some, table

_ROWS, _SHOWN = 30, 12  #: Graphs in the table, and collectives of each.
_ALIKE = 0.01  #: Estimates that differ by less, as a share of the longer one, count as equal.


def collectives(capture: Capture) -> list[str]:
    """Return the section on collectives of the index; none where the generated code calls none."""
    names = _graph_names(capture)
    rows = [(names[graph.name], _in_order(map(_plain_operation, graph.collectives)),
             f"{_milliseconds(_seconds(graph))}, {_milliseconds(_seconds(graph, True))} of it collectives"
             if graph.schedule else "") for graph in capture.graphs if graph.collectives]
    order = _in_order(executed(capture.events))
    lines = ["## Collectives", "", "In the order in which the generated code calls them. Times are Inductor's "
             "estimates of one call of the graph.", "", *table(("graph", "collectives", "estimated"), rows[:_ROWS]),
             *([f"... and {count(len(rows) - _ROWS, 'graph')} more."] if len(rows) > _ROWS else [])] if rows else []
    return [*lines, *[""][: bool(lines)], f"Graphs ran in this order: {order}."] if order else lines


def _graph_names(capture: Capture) -> dict[str, str]:
    """Return each graph in words, by its name: ``[0/1]`` and its function; a name where it is of no frame."""
    functions = {each.compile_id.key: each.user_function.name if each.user_function else plain_name(each.function)
                 for each in capture.compilations}
    return {graph.name: code(graph.name) if graph.call is not None or graph.piece_of else " ".join(filter(None, (
        code(str(graph.compile_id)), code(functions.get(graph.compile_id.key, ""))))) for graph in capture.graphs}


def _plain_operation(name: str) -> str:
    """Return the name of a collective without what all have: ``all_reduce_``."""
    return name.removeprefix("torch.ops.").removeprefix("_c10d_functional.").removesuffix(".default")


def _in_order(names: Iterable[str]) -> str:
    """Return names in their order, with a count of equal ones after each other."""
    groups = [(code(name), len(list(same))) for name, same in groupby(names)]
    return some([name + (f" {number} times" if number > 1 else "") for name, number in groups], _SHOWN)


def _seconds(graph: CompiledGraph, only_collectives: bool = False) -> float:
    return sum(each.estimate for each in graph.schedule if each.is_collective or not only_collectives)


def _milliseconds(value: float) -> str:
    return f"{value * 1000:.2f} ms"


# --- ranks -----------------------------------------------------------------------------------------------
def differences(captures: Mapping[str, Capture]) -> list[str]:
    """Return where ranks (``"ranks 0, 2"``) call different collectives, and whom they wait for, as Markdown."""
    lines = [f"Graphs run in different orders, {first}. Where these call collectives of one process group, the ranks "
             "may wait for each other."
             for first in _differing("run", {ranks: executed(each.events) for ranks, each in captures.items()})]
    graphs: dict[str, dict[str, CompiledGraph]] = {}
    for ranks, capture in captures.items():
        names = _graph_names(capture)
        for graph in capture.graphs:
            if graph.collectives or graph.schedule:
                graphs.setdefault(names[graph.name], {})[ranks] = graph
    for name, by_ranks in graphs.items():
        orders = {ranks: list(map(_plain_operation, graph.collectives)) for ranks, graph in by_ranks.items()}
        lines += [f"The collectives of {name} differ, {first}. Ranks of one process group that call different ones may "
                  "wait for each other, up to its time limit." for first in _differing("call", orders)]
        times = sorted((_seconds(graph), ranks) for ranks, graph in by_ranks.items()
                       if graph.schedule and graph.collectives)
        if times and times[-1][0] - times[0][0] > _ALIKE * times[-1][0]:
            (least, first), (longest, last) = times[0], times[-1]
            lines.append(f"Inductor estimates {_milliseconds(least)} for {name} on {first} and "
                         f"{_milliseconds(longest)} on {last}: where that is so, {first} may wait at collectives.")
        lacking = [ranks for ranks in captures if ranks not in by_ranks]
        if lacking and any(orders.values()):
            text = listed(lacking)
            lines.append(f"{text[:1].upper()}{text[1:]} {'has' if _is_one(lacking) else 'have'} no graph {name}, which "
                         "calls collectives on others.")
    return lines


def _differing(verb: str, orders: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Yield a clause on the first place where orders differ; none where all are equal, or some are not known."""
    for number, names in enumerate(zip_longest(*orders.values()), 1):
        if len(set(names)) > 1 and all(orders.values()):
            what = [f"{listed(ranks)} {verb}{'s' * _is_one(ranks)} {code(name) if name else 'none'}"
                    for name, ranks in fold(orders, dict(zip(orders, names)).__getitem__).items()]
            yield f"first at number {number}: {'; '.join(what)}"
            return


def _is_one(ranks: Sequence[str]) -> bool:
    return len(ranks) == 1 and ranks[0].startswith("rank ")
