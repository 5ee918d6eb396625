"""Loop-invariant stack slots: values that are untouched while a loop runs need not be there.

Dynamo pushes everything that its side effects need, then performs them one after the other, some of them
as loops (``for k, v in d.items(): dict.__setitem__(x, k, v)``).  The values for the later ones are under the
iterator meanwhile.  No expression keeps values on the stack across a statement; but where all
predecessors of a block bring *the same* value in a slot, that value can go by name and its slot be left out.
"""

from __future__ import annotations

from ....bytecode import operations as o
from ....bytecode.opspec import effect
from ....cfg import graph as g
from ....cfg.graph import Block, Cfg, Region, reachable

#: A slot at a block's entry: ``(block id, index of the operation, which of its results, its kind)``;
#: predecessors that disagree make a slot of their own (kind ``"joined"``).
Slot = tuple[int, int, int, str]

#: What pushes values that only mean something on the stack.
_STAYS = frozenset({"joined", "entry", o.GET_ITER, g.FOR_ITER, o.GET_AITER, o.LOAD_FAST_AND_CLEAR})


def loop_invariant_slots(graph: Cfg, joins: set[int]) -> dict[int, int]:
    """Count the loop-invariant values at the bottom of the stack that need not be there, by block.

    Returns:
        ``{block id: count}``; the slots are those from the block's exception region upwards.
    """
    if not any(block.end == g.FOR_ITER for block in graph.blocks.values()):
        return {}
    slots = _slots(graph)
    counts: dict[int, int] = {}
    for component in _components(graph, joins):
        blocks = [graph.blocks[id] for id in component]
        if not any(block.end == g.FOR_ITER for block in blocks):
            continue
        around = [p for p in graph.blocks.values() if any(s in component for s in p.successors)]
        bases = {block.floor for block in [*blocks, *around]}
        if len(bases) != 1:
            continue
        (base,) = bases
        # A comprehension is an expression: what is under it is put there by an expression, too.
        if any(slot[3] == o.LOAD_FAST_AND_CLEAR for id in component for slot in slots[id]):
            continue
        count = min(_leading(slots[id][base:]) for id in component)
        if count:
            counts.update(dict.fromkeys(component, count))
    return counts


def _leading(slots: tuple[Slot, ...]) -> int:
    """Return the number of slots at the bottom whose values have a meaning off the stack, too."""
    for count, slot in enumerate(slots):
        if slot[3] in _STAYS:
            return count
    return len(slots)


def _components(graph: Cfg, joins: set[int]) -> list[set[int]]:
    """Return sets of joins that must agree: the successors of one block, and a loop's head with what follows it."""
    leader = {id: id for id in joins}

    def find(id: int) -> int:
        while leader[id] != id:
            id = leader[id]
        return id

    for block in graph.blocks.values():
        together = [s for s in block.successors if s in leader]
        if block.end == g.FOR_ITER and block.id in leader:
            together.append(block.id)
        for other in together[1:]:
            leader[find(other)] = find(together[0])
    components: dict[int, set[int]] = {}
    for id in joins:
        components.setdefault(find(id), set()).add(id)
    return list(components.values())


def _slots(graph: Cfg) -> dict[int, tuple[Slot, ...]]:
    """Return the operations that put each value on the stack, by block, as the stack is at its entry."""
    entries: dict[int, tuple[Slot, ...]] = {graph.entry: ()}
    pending = [graph.entry]

    def arrive(target: int, stack: tuple[Slot, ...], joined: bool = False) -> None:
        known = entries.get(target)
        if joined:
            stack = tuple((target, -1, index, "entry") for index in range(len(stack)))
        elif known is not None:
            stack = tuple(
                old if old == new else (target, -1, index, "joined")
                for index, (old, new) in enumerate(zip(known, stack)))
        if stack != known:
            entries[target] = stack
            pending.append(target)

    while pending:
        block = graph.blocks[pending.pop()]
        stack = list(entries[block.id])
        if block.region:
            depth = block.region.depth + block.region.lasti + 1
            arrive(block.region.handler, tuple([(block.id, -1, 0, "entry")] * depth), joined=True)
        for index, op in enumerate(block.ops):
            pops, pushes = effect(op)
            del stack[len(stack) - pops :]
            stack += [(block.id, index, result, op.kind) for result in range(pushes)]
        if block.end == g.FOR_ITER:
            item: Slot = (block.id, len(block.ops), 0, g.FOR_ITER)
            arrive(block.successors[0], (*stack, item))
            arrive(block.successors[1], tuple(stack[:-1]))
            continue
        if block.end == g.BRANCH:
            stack.pop()
        for successor in block.successors:
            arrive(successor, tuple(stack))
    return entries


# --- Exception handlers that only clean up and raise again do not need the values under them ---------
# Around a call after a graph break Dynamo enters the user's contexts again, with a handler for each that
# leaves the context and re-raises.  Such a handler finds the values that were on the stack when its region was
# entered, and never looks at them.  Left out of its region, they can be known by name like any others.
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
    blocks: dict[int, Block] = {}
    for number, block in graph.blocks.items():
        region = block.region
        if region is not None:
            less = primary[region.handler] if region.handler in chosen else \
                0 if region.handler in primary else shift.get(number, 0)
            if less:
                region = regions.setdefault(id(region), Region(region.handler, region.depth - less, region.lasti))
        blocks[number] = Block(number, block.ops, block.end, block.successors, block.arg, block.end_op, region)
    return Cfg(graph.code, blocks, graph.entry)


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
