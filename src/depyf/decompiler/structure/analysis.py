"""Analysis of the reduced control-flow graph before it is walked: dominators, loops, and what stands in them."""

from __future__ import annotations

from functools import cached_property

from ...cfg.dominators import DominatorTree, back_edges, leads_forward, natural_loop, predecessors
from .region_cfg import RegionCfg, handler_steps


class Analysis:
    """Dominators, loops and regions of a graph that does not change any more; all but loops when first asked for.

    Attributes:
        cfg: the graph.
        loops: ``{head: the blocks of its loop}``, with what stands in it and never leads back.
    """

    def __init__(self, cfg: RegionCfg) -> None:
        self.cfg = cfg
        blocks = cfg.blocks
        self._edges: dict[int, list[int]] = {
            id: block.successors if block.handler is None else [*block.successors, block.handler]
            for id, block in blocks.items()}  # (``all_successors``)
        self._back: dict[int, list[int]] = {}
        self.loops: dict[int, set[int]] = {}
        if not leads_forward(self._edges, cfg.order):
            self._back = back_edges({id: block.successors for id, block in blocks.items()}, self.tree)
            before = predecessors(self._edges) if self._back else {}
            for head, tails in self._back.items():
                self.loops[head] = self._whole_body(head, natural_loop(head, tails, before))

    @cached_property
    def tree(self) -> DominatorTree:
        """The dominators, handlers taken for successors."""
        return DominatorTree(self._edges, self.cfg.entry)

    @cached_property
    def preds(self) -> dict[int, list[int]]:
        """``{id: blocks that control comes from by a jump or falling through}``."""
        preds: dict[int, list[int]] = {id: [] for id in self.tree.order}
        for id in self.tree.order:
            for succ in self.cfg.blocks[id].successors:
                preds[succ].append(id)
        return preds

    @cached_property
    def leaves(self) -> dict[int, list[int]]:
        """``{handler: blocks that end in the LEAVE of its region}``."""
        leaves: dict[int, list[int]] = {}
        for id in self.tree.order if self.cfg.kinds else ():
            ops = self.cfg.blocks[id].ops
            if ops and ops[-1].kind == "LEAVE":
                leaves.setdefault(ops[-1].target, []).append(id)
        return leaves

    @cached_property
    def _members(self) -> dict[int | None, list[int]]:
        """The blocks by the innermost region around them."""
        members: dict[int | None, list[int]] = {}
        for id in self.tree.order:
            members.setdefault(self.cfg.blocks[id].handler, []).append(id)
        return members

    @cached_property
    def _regions_in(self) -> dict[int | None, list[int]]:
        """The handlers of the regions by the innermost region around them."""
        regions: dict[int | None, list[int]] = {}
        for handler in self._members:
            if handler is not None:
                regions.setdefault(self.cfg.blocks[handler].handler, []).append(handler)
        return regions

    @cached_property
    def weight(self) -> dict[int, int]:
        """``{id: the number of operations, and blocks, that it dominates}``."""
        blocks, order, parent = self.cfg.blocks, self.tree.order, self.tree.parent
        weight = {id: 1 + len(blocks[id].ops) for id in order}
        for id in reversed(order[1:]):  # (what is dominated comes behind its dominator in this order)
            weight[parent[id]] += weight[id]
        return weight

    def dominates(self, above: int, below: int) -> bool:
        """Return whether every path to ``below`` leads through ``above``."""
        return self.tree.dominates(above, below)

    def around_loop(self, head: int) -> list[int]:
        """Return the regions around the loop at ``head``.

        A region that an edge back comes from outside of is in the loop (``while True: try: ...``), though it starts
        with the same block.
        """
        chain = self.cfg.handlers_around(self.cfg.blocks[head].handler)
        for tail in self._back.get(head, ()):
            inside = self.cfg.handlers_around(self.cfg.blocks[tail].handler)
            chain = [region for region in chain if region in inside]
        return chain

    def _whole_body(self, head: int, body: set[int]) -> set[int]:
        """Return the body of a loop with what stands in it and never leads back.

        That is the rest of the protected bodies in it and their handlers (``except E: break``).
        """
        blocks = self.cfg.blocks
        around = self.around_loop(head)
        regions = {blocks[id].handler for id in body} - {None, *around}
        if not regions:
            return body
        body = set(body)
        protected = list(regions)
        for region in protected:
            body.update(self._members.get(region, ()))
            protected += self._regions_in.get(region, ())
        work = [(region, 0) for region in regions if region is not None]
        seen: set[int] = set()
        while work:
            id, depth = work.pop()
            if id in seen:
                continue
            seen.add(id)
            body.add(id)
            block = blocks[id]
            depth += sum(handler_steps(block))
            if depth > 0:
                work.extend((succ, depth) for succ in block.successors)
            if block.handler not in around and block.handler is not None:
                work.append((block.handler, 0))
        return body

    def handler_of(self, id: int) -> int | None:
        """Return the running handler that a ``POP_EXCEPT`` ends."""
        at = id
        while True:
            if self.cfg.kinds.get(at) in ("except", "except*", "finally"):
                return at
            up = self.tree.parent[at]
            if up == at:
                return None
            at = up
