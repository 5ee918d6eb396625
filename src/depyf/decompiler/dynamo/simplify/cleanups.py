"""Exception handlers that only clean up and raise again do not need the values under them.

Around a call after a graph break Dynamo enters the user's contexts again, with a handler for each that
leaves the context and re-raises.  Such a handler finds the values that were on the stack when its region was
entered, and never looks at them.  Left out of its region, they can be known by name like any others.
"""

from __future__ import annotations

from ....bytecode.operations import effect
from ....cfg import graph as g
from ....cfg.graph import Block, Cfg, Region, reachable


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
            or any(h in primary and primary[h] and h not in chosen for h in _handlers(graph, inside[handler]))
            or any(inside[handler] & inside[other] for other in chosen if other != handler)
            or not _untouched(graph, handler, inside[handler], primary)
        }
        if not lost:
            break
        chosen -= lost
    if not chosen:
        return graph
    shift = {number: primary[handler] for handler in chosen for number in inside[handler]}
    regions: dict[int, Region] = {}
    graph = graph.copy()
    for number, block in graph.blocks.items():
        region = block.region
        if region is not None:
            less = primary[region.handler] if region.handler in chosen else \
                0 if region.handler in primary else shift.get(number, 0)
            if less:
                block.region = regions.setdefault(id(region), Region(region.handler, region.depth - less, region.lasti))
    return graph


def _inside(graph: Cfg, handler: int, primary: dict[int, int]) -> set[int]:
    """Return the blocks that run once the handler has been entered, up to handlers around it."""

    def successors(block: Block) -> list[int]:
        more = list(block.successors)
        if block.region is not None and block.region.handler not in primary:
            more.append(block.region.handler)
        return more

    return reachable(graph.blocks, [handler], successors)


def _handlers(graph: Cfg, ids: set[int]) -> set[int]:
    return {region.handler for id in ids if (region := graph.blocks[id].region) is not None}


def _untouched(graph: Cfg, handler: int, inside: set[int], primary: dict[int, int]) -> bool:
    """Return whether no block inside reaches below the values that the handler's region keeps."""
    floor = primary[handler]
    lasti = next(b.region.lasti for b in graph.blocks.values() if b.region and b.region.handler == handler)
    depths = {handler: floor + lasti + 1}
    pending = [handler]
    while pending:
        block = graph.blocks[pending.pop()]
        depth = depths[block.id]
        for op in block.ops:
            pops, pushes = effect(op)
            if depth - pops < floor:
                return False
            depth += pushes - pops
        if block.end in (g.RETURN, g.FOR_ITER) or depth - {g.BRANCH: 1, g.RERAISE: 1 + (block.arg or 0),
                                                          g.RAISE: block.arg or 0}.get(block.end, 0) < floor:
            return False
        edges = [(s, depth - (block.end == g.BRANCH)) for s in block.successors]
        if block.region is not None and block.region.handler in inside:
            if block.region.depth < floor:
                return False
            edges.append((block.region.handler, block.region.depth + block.region.lasti + 1))
        for target, there in edges:
            if target not in depths:
                depths[target] = there
                pending.append(target)
    return True
