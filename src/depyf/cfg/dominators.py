"""Dominators and natural loops, over edges given as ``{id: ids of successors}``.

The dominator tree is computed by the algorithm of Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm"
(2001). A natural loop is what leads to a back edge without passing its head (Aho, Lam, Sethi and Ullman, *Compilers*,
section 9.6.6).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

Edges = Mapping[int, Sequence[int]]


def predecessors(edges: Edges) -> dict[int, list[int]]:
    """Return the edges, turned round."""
    result: dict[int, list[int]] = {id: [] for id in edges}
    for id, targets in edges.items():
        for target in targets if len(targets) < 2 else dict.fromkeys(targets):
            result.setdefault(target, []).append(id)
    return result


def leads_forward(edges: Edges, order: Mapping[int, float]) -> bool:
    """Return whether every edge leads on in an order: then there is no loop."""
    for id, targets in edges.items():
        if targets:
            place = order[id]
            for target in targets:
                if order[target] <= place:
                    return False
    return True


def reverse_postorder(edges: Edges, entry: int) -> list[int]:
    """Return what can be reached from ``entry``, each before its successors except along back edges."""
    order: list[int] = []
    seen = {entry}
    stack = [(entry, iter(edges[entry]))]
    while stack:
        id, targets = stack[-1]
        for target in targets:
            if target not in seen:
                seen.add(target)
                stack.append((target, iter(edges[target])))
                break
        else:
            order.append(id)
            stack.pop()
    order.reverse()
    return order


class DominatorTree:
    """Dominators of all blocks that can be reached.

    Attributes:
        order: ids in reverse postorder.
        number: ``{id: place in order}``.
        parent: ``{id: its immediate dominator}``; the entry is its own.
        children: ``{id: ids that it dominates immediately}``, in reverse postorder.
    """

    def __init__(self, edges: Edges, entry: int) -> None:
        self.order = reverse_postorder(edges, entry)
        self.number = {id: place for place, id in enumerate(self.order)}
        self.parent = self._immediate_dominators(predecessors(edges), entry)
        self.children: dict[int, list[int]] = {id: [] for id in self.order}
        for id in self.order[1:]:
            self.children[self.parent[id]].append(id)

    def _immediate_dominators(self, before: Mapping[int, Iterable[int]], entry: int) -> dict[int, int]:
        number = self.number
        parent = {entry: entry}
        changed = True
        is_known = True  # whether all that leads to a block was looked at before it: then nothing changes any more
        while changed:
            changed = False
            for id in self.order[1:]:
                above: int | None = None
                for other in before[id]:
                    if other not in parent:
                        is_known = False
                        continue
                    if above is None:
                        above = other
                        continue
                    while above != other:  # up, to the nearest block above both
                        while number[above] > number[other]:
                            above = parent[above]
                        while number[other] > number[above]:
                            other = parent[other]
                if above is not None and parent.get(id) != above:
                    parent[id] = above
                    changed = True
            if is_known:
                break
        return parent

    @cached_property
    def _visits(self) -> tuple[dict[int, int], dict[int, int]]:
        """The times at which a depth-first walk of the tree enters and leaves each block, computed when first needed.

        One block is above another if its interval encloses the other's.
        """
        entered: dict[int, int] = {}
        left: dict[int, int] = {}
        clock = 0
        stack = [(self.order[0], False)]
        while stack:
            id, done = stack.pop()
            clock += 1
            if done:
                left[id] = clock
                continue
            entered[id] = clock
            stack.append((id, True))
            stack += [(child, False) for child in self.children[id]]
        return entered, left

    def dominates(self, above: int, below: int) -> bool:
        """Return whether every path to ``below`` leads through ``above``."""
        entered, left = self._visits
        return entered[above] <= entered[below] and left[below] <= left[above]


def back_edges(edges: Edges, tree: DominatorTree) -> dict[int, list[int]]:
    """Return ``{head: ids of blocks that lead back to it}``: a head dominates what leads back."""
    result: dict[int, list[int]] = {}
    number = tree.number
    for id in tree.order:
        place = number[id]
        for target in edges[id]:
            if number[target] <= place and tree.dominates(target, id):
                result.setdefault(target, []).append(id)
    return result


def natural_loop(head: int, tails: Iterable[int], before: Mapping[int, Iterable[int]]) -> set[int]:
    """Return the blocks of the loop at ``head``: all from which a tail can be reached without passing the head."""
    body = {head}
    pending = list(tails)
    while pending:
        id = pending.pop()
        if id not in body:
            body.add(id)
            pending.extend(before[id])
    return body
