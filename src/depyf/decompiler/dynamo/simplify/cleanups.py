"""Exception handlers that only clean up and raise again do not need the values under them.

Around a call after a graph break Dynamo enters the user's contexts again, with a handler for each that
leaves the context and re-raises.  Such a handler finds the values that were on the stack when its region was
entered, and never looks at them.  Left out of its region, they can be known by name like any others.
"""

from __future__ import annotations

from ....cfg import graph as g
from ....cfg.graph import Block, Cfg, Region, StackMismatch, entry_depths, reachable


def forget_under_cleanups(graph: Cfg) -> Cfg:
    """Return the graph without values that only handlers which clean up use; the same graph if there are none."""
    normal = reachable(graph.blocks, [graph.entry], lambda block: block.successors)
    primary = {
        block.region.handler: block.region.depth
        for number in normal if (block := graph.blocks[number]).region is not None
    }
    chosen = {handler for handler, depth in primary.items() if depth}
    while True:
        inside = {handler: _inside(graph, handler, primary) for handler in chosen}
        lost = {
            handler for handler in chosen
            if inside[handler] & normal
            or any(primary.get(region.handler) and region.handler not in chosen
                   for id in inside[handler] if (region := graph.blocks[id].region) is not None)
            or any(inside[handler] & inside[other] for other in chosen if other != handler)
            or any(graph.blocks[id].end in (g.RETURN, g.FOR_ITER) for id in inside[handler])
        }
        if not lost:
            break
        chosen -= lost
    if not chosen:
        return graph
    shift = {number: primary[handler] for handler in chosen for number in inside[handler]}
    regions: dict[int, Region] = {}
    given, graph = graph, graph.copy()
    for number, block in graph.blocks.items():
        region = block.region
        if region is not None:
            less = primary[region.handler] if region.handler in chosen else \
                0 if region.handler in primary else shift.get(number, 0)
            if less:
                block.region = regions.setdefault(id(region), Region(region.handler, region.depth - less, region.lasti))
    try:
        entry_depths(graph)
    except StackMismatch:  # one of them looks at these values
        return given
    return graph


def _inside(graph: Cfg, handler: int, primary: dict[int, int]) -> set[int]:
    """Return the blocks that run once the handler has been entered, up to handlers around it."""

    def successors(block: Block) -> list[int]:
        more = list(block.successors)
        if block.region is not None and block.region.handler not in primary:
            more.append(block.region.handler)
        return more

    return reachable(graph.blocks, [handler], successors)
