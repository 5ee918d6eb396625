"""Lines of a graph from torch's cache.

The key of an entry of AOTAutograd's and Inductor's caches is what a graph computes, not where that is written. The
comments in an entry of another program, or of this one before it was edited (a notebook cell is another file after each
change), name the lines of then. What was captured now says where the same lines are.
"""

from __future__ import annotations

import dataclasses

from ..model.graph import Graph
from ..records.model import SourceLocation


def relocated(graph: Graph, captured: Graph) -> Graph:
    """Return the graph, with the lines that the captured graph has for the same text in the same function.

    A stage is from a cache entry if it names none of the captured graph's lines, one of them with another text, or the
    text of one at another line of the file. Its lines without a counterpart are dropped: no line is better than a wrong
    one.
    """
    home = _locations(captured)
    own = _locations(graph)
    if not home or not own:
        return graph
    texts = {(place.filename, place.line): place.text for place in home}
    there = _by_text(home)
    moved = [place for place in own if place not in home and (
        (place.filename, place.line) in texts
        or any(other.filename == place.filename for other in there.get(_words(place), ())))]
    if not moved and any(place in home for place in own):
        return graph
    by_text = _by_text(own)
    table: dict[SourceLocation, SourceLocation | None] = {}
    for words, places in by_text.items():
        # (the same text on several lines: in their order, where there are as many)
        table |= {place: place if place in home else None for place in places} | (
            dict(zip(places, there[words])) if len(there.get(words, ())) == len(places) else {})
    return _replaced(graph, table)


def _locations(graph: Graph) -> dict[SourceLocation, None]:
    return {node.location: None for _, node in graph.named_nodes() if node.location is not None}


def _by_text(places: dict[SourceLocation, None]) -> dict[tuple[str, str], list[SourceLocation]]:
    result: dict[tuple[str, str], list[SourceLocation]] = {}
    for place in sorted(places, key=lambda place: (place.filename, place.line)):
        result.setdefault(_words(place), []).append(place)
    return result


def _words(place: SourceLocation) -> tuple[str, str]:
    return place.function, place.text.strip()


def _replaced(graph: Graph, table: dict[SourceLocation, SourceLocation | None]) -> Graph:
    nodes = tuple(node._replace(location=table[node.location]) if node.location is not None else node
                  for node in graph.nodes)
    return dataclasses.replace(
        graph, nodes=nodes, subgraphs=tuple(_replaced(inner, table) for inner in graph.subgraphs))
