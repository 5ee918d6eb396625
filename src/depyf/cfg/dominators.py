"""Dominators, post-dominators, loops: simple iterative algorithms over block ids."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from .graph import Graph

#: Id of the virtual exit in :func:`post_dominators`.
EXIT = -1


def successors(graph: Graph, exceptions: bool = True) -> dict[int, tuple[int, ...]]:
    """Return the successors of each block; with ``exceptions`` its handler is one, too."""
    result = {}
    for block in graph.blocks.values():
        ways = block.successors
        if exceptions and block.region is not None and block.region.handler not in ways:
            ways = (*ways, block.region.handler)
        result[block.id] = ways
    return result


def predecessors(ways: Mapping[int, Iterable[int]]) -> dict[int, list[int]]:
    """The edges of ``ways``, turned around."""
    result: dict[int, list[int]] = {node: [] for node in ways}
    for node, targets in ways.items():
        for target in dict.fromkeys(targets):
            result.setdefault(target, []).append(node)
    return result


def reverse_postorder(ways: Mapping[int, Sequence[int]], entry: int) -> list[int]:
    """Nodes reachable from ``entry``, each before its successors except along back edges."""
    order: list[int] = []
    seen = {entry}
    stack = [(entry, iter(ways[entry]))]
    while stack:
        node, targets = stack[-1]
        for target in targets:
            if target not in seen:
                seen.add(target)
                stack.append((target, iter(ways[target])))
                break
        else:
            order.append(node)
            stack.pop()
    order.reverse()
    return order


def immediate_dominators(
    ways: Mapping[int, Sequence[int]], entry: int, order: Sequence[int] | None = None
) -> dict[int, int]:
    """``{node: its immediate dominator}`` (the entry is its own) by Cooper, Harvey and Kennedy.

    Args:
        ways: where control can go from each node.
        entry: where it starts.
        order: the nodes in reverse postorder, where that is at hand.
    """
    if order is None:
        order = reverse_postorder(ways, entry)
    number = {node: place for place, node in enumerate(order)}
    before = predecessors(ways)
    dominator = {entry: entry}
    changed = True
    while changed:
        changed = False
        for node in order[1:]:
            new = -2
            for other in before[node]:
                if other not in dominator:
                    continue
                if new == -2:
                    new = other
                    continue
                while new != other:
                    while number[new] > number[other]:
                        new = dominator[new]
                    while number[other] > number[new]:
                        other = dominator[other]
            if dominator.get(node) != new:
                dominator[node] = new
                changed = True
    return dominator


def dominators(graph: Graph, exceptions: bool = True) -> dict[int, int]:
    """Immediate dominator of each block that is reachable from the entry."""
    return immediate_dominators(successors(graph, exceptions), graph.entry)


def post_dominators(graph: Graph, exceptions: bool = False) -> dict[int, int]:
    """Immediate post-dominator of each block; :data:`EXIT` is the virtual exit.

    Blocks from which no end can be reached (endless loops) are not in the result.
    """
    ways = successors(graph, exceptions)
    backwards: dict[int, list[int]] = {**predecessors(ways), EXIT: []}
    backwards[EXIT] = [node for node, targets in ways.items() if not targets]
    return immediate_dominators(backwards, EXIT)


def dominates(dominator: Mapping[int, int], above: int, below: int) -> bool:
    """Return whether every path to ``below`` leads through ``above``."""
    while below != above:
        up = dominator.get(below, below)
        if up == below:
            return False
        below = up
    return True


def back_edges(ways: Mapping[int, Sequence[int]], entry: int) -> list[tuple[int, int]]:
    """Edges ``(from, to)`` where ``to`` dominates ``from``."""
    dominator = immediate_dominators(ways, entry)
    return [
        (node, target) for node in dominator for target in dict.fromkeys(ways[node])
        if dominates(dominator, target, node)
    ]


def natural_loops(ways: Mapping[int, Sequence[int]], entry: int) -> dict[int, set[int]]:
    """``{head: blocks of the loop}`` (back edges to the same head are one loop)."""
    before = predecessors(ways)
    loops: dict[int, set[int]] = {}
    for tail, head in back_edges(ways, entry):
        body = loops.setdefault(head, {head})
        pending = [tail]
        while pending:
            node = pending.pop()
            if node not in body:
                body.add(node)
                pending.extend(before[node])
    return loops
