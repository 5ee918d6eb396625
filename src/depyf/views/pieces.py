"""Pieces of graphs that a backend split, and compiled again for other sizes when they were called, as vLLM does.

The first time a backend compiles a piece within the compilation of a frame, later by a direct call of a compiler::

    __compiled_fn_1.submod_0                 a piece, for every x.shape[0]
    compile_fx_1        Again(graph, {"s77": "4"})
    compile_fx_2        Again(graph, {"s77": "8"})

Such a graph has the operations, names and user lines of exactly one piece.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..model.folding import fold
from ..model.graph_text import read_graph
from ..records.model import CompiledGraph, GraphStage
from ..records.naming import BEFORE_PRE_GRAD
from ..torch_text.size_names import is_symbol
from ..values import frozen


@frozen
class Again:
    """A piece that was compiled again: the graph, and the values of sizes that the piece has open, by torch's names."""

    graph: CompiledGraph
    sizes: dict[str, str]


def pieces_of(graphs: Iterable[CompiledGraph]) -> dict[str, list[CompiledGraph]]:
    """Return the pieces of each graph that its backend split, by the name of the graph."""
    return fold((graph for graph in graphs if graph.piece_of), lambda graph: graph.piece_of)


def compiled_again(graphs: Iterable[CompiledGraph]) -> dict[str, list[Again]]:
    """Return the graphs by direct calls that are pieces once more, by the name of the piece."""
    pieces = fold((graph for graph in graphs if graph.piece_of and graph.captured),
                  lambda graph: graph.captured and _operations(graph.captured))
    result: dict[str, list[Again]] = {}
    for graph in graphs if pieces else ():
        given = next((each for each in graph.stages if each.shown_as == BEFORE_PRE_GRAD), None)
        found = pieces.get(_operations(given), ()) if given and graph.call is not None else ()
        if len(found) == 1:
            result.setdefault(found[0].name, []).append(Again(graph, _sizes(found[0], graph)))
    return result


def _operations(stage: GraphStage) -> Any:
    graph = read_graph(stage.text)
    return (tuple(each.name for each in graph.inputs),
            tuple((node.name, " ".join(node.value.split()), node.location) for node in graph.nodes
                  if node.op not in ("placeholder", "output")))


def _sizes(piece: CompiledGraph, graph: CompiledGraph) -> dict[str, str]:
    """Return the values of the sizes that the inputs of a piece have open and those of the graph have not."""
    stages = piece.captured, next((each for each in graph.stages if each.stage == "Forward_graph"), None)
    types = [[each.type.shape if each.type is not None else None for each in read_graph(stage.text).inputs]
             for stage in stages if stage is not None]
    if len(types) != 2 or len(types[0]) != len(types[1]):
        return {}
    sizes = fold((pair for before, now in zip(*types) for pair in zip(before or (), now or ()) if is_symbol(pair[0])),
                 lambda pair: pair[0])
    return {symbol: pairs[0][1] for symbol, pairs in sizes.items() if len(set(pairs)) == 1 and pairs[0][1].isdigit()}
