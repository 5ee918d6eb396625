"""Analysis of the reduced control-flow graph before it is walked: handlers, dominators, loops, reachable blocks."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from ...bytecode.operations import Op
from ...cfg.graph import Block, Cfg, DominatorTree, back_edges, leads_forward, natural_loop, predecessors

if TYPE_CHECKING:
    from .walk import Walker


# --- the graph with its exception handlers -----------------------------------------------------------
#: The end of a block that control never reaches: an edge into a ``finally`` that never ends.
NOWHERE = "nowhere"


class RegionCfg(Cfg):
    """A control-flow graph with its exception handlers.

    Attributes:
        groups: ids of the handlers of ``except*``.
        kinds: ``{handler id: "with" | "finally" | "except" | "except*" | "named" | "async for"}``.
        resumes: ``{handler id of a with: where control goes when the exception is swallowed}``.
        ends: ``{handler id of a finally: where its clean-up ends}``.
        nowhere: ``{handler id of a finally that never ends: where its exits lead instead}``.
        in_loops: ``{head of a loop: regions that it is in, and an empty block that jumps back to it is not}``.
        present: the kinds of operations that the graph had when it was taken: most bodies have nothing to undo, which
            these show at once.
        handles: whether a block had an exception handler then.
    """

    def __init__(self, graph: Cfg, is_shared: bool = True) -> None:
        """Take a graph to change it: a copy of it, if it is shared."""
        blocks = graph.blocks if not is_shared else {
            id: Block(id, list(block.ops), block.end, list(block.successors), block.arg, block.end_op, block.region,
                      block.end_op.line if block.end_op is not None else None)
            for id, block in graph.blocks.items()}
        super().__init__(graph.code, blocks, graph.entry, graph.order.copy() if is_shared else graph.order)
        self.present = {op.kind for block in blocks.values() for op in block.ops}
        self.handles = self.has_regions
        self.groups: set[int] = set()
        self.kinds: dict[int, str] = {}
        self.resumes: dict[int, int | None] = {}
        self.ends: dict[int, int] = {}
        self.nowhere: dict[int, int] = {}
        self.in_loops: dict[int, set[int]] = {}

    def redirect(self, old: int, new: int) -> None:
        """Lead all edges to ``old`` to ``new``, and remove ``old``."""
        super().redirect(old, new)
        for region, resume in self.resumes.items():
            if resume == old:
                self.resumes[region] = new

    def settled(self, id: int, index: int = 0) -> tuple[int, int]:
        """Return where control is next, from an index in a block on: at an operation, or the end of a block."""
        seen: set[int] = set()
        while index >= len(self.blocks[id].ops) and self.blocks[id].end == "jump" and id not in seen:
            seen.add(id)
            id, index = self.blocks[id].successors[0], 0
        return id, index

    def is_duplicate(self, a: int, b: int, skip: int = 0, depth: int = 3) -> bool:
        """Return whether control does the same from ``a`` on as from ``b`` after its first ``skip`` operations.

        Then one is a copy of the other. (Small exits are copied; nothing longer than ``depth`` blocks is.)
        """
        if a == b and not skip:
            return True
        if not depth:
            return False
        x, y = self.blocks[a], self.blocks[b]
        return (
            x.end == y.end and x.arg == y.arg and len(x.ops) == len(y.ops) - skip
            and len(x.successors) == len(y.successors)
            and all(map(same_op, x.ops, y.ops[skip:]))
            and all(self.is_duplicate(s, t, 0, depth - 1) for s, t in zip(x.successors, y.successors))
        )

    def is_copy(self, a: int, b: int) -> bool:
        """Return whether one block is a copy that the compiler made of the other, or both are one.

        The compiler of 3.9 and before copies no exits: code that occurs twice was written twice. (Where paths to one
        operation were separated when the code was read, both copies have its place.)
        """
        if not self.is_duplicate(a, b):
            return False
        blocks = self.blocks[a], self.blocks[b]
        one, other = (block.ops[0] if block.ops else block.end_op for block in blocks)
        if blocks[0].end == "return" and one is not None and other is not None and (
                None not in (one.line, other.line) and one.line != other.line) and (
                one.kind, one.arg) != ("CONST", None):  # (copies of the implicit return have the line before them)
            return False
        return self.code.version >= (3, 10) or one is None or other is None or one.offset == other.offset


def straight(cfg: RegionCfg, id: int, limit: int = 12) -> tuple[list[Op], Block]:
    """Return the operations from a block on, over plain jumps, and the block they end in."""
    ops: list[Op] = []
    block = cfg.blocks[id]
    for _ in range(limit):
        ops += block.ops
        if block.end != "jump":
            break
        block = cfg.blocks[block.successors[0]]
    return ops, block


def is_leave(block: Block) -> bool:
    """Return whether a block begins by leaving a protected body."""
    return bool(block.ops) and block.ops[0].kind == "LEAVE"


#: What may come between the end of a protected body and a ``return`` of a constant in it.
UNWINDING = frozenset({"LEAVE", "POP", "SWAP", "POP_EXCEPT"})


def cleans_up(op: Op) -> bool:
    """Return whether an operation leaves a ``with`` or ``finally``, whose place a ``return`` after it has."""
    return op.kind == "LEAVE" and op.arg in ("with", "finally")


def handler_steps(block: Block) -> Iterator[int]:
    """Yield 1 for each handler that begins to run in a block, -1 for each that ends there, in order.

    ``LEAVE`` marks the end of ``except E as n`` where its clean-up was cut.
    """
    for op in block.ops:
        if op.kind == "PUSH_EXC_INFO":
            yield 1
        elif op.kind == "POP_EXCEPT" or (op.kind == "LEAVE" and op.arg == "named"):
            yield -1


def copied_op(a: Op, b: Op) -> bool:
    """Return whether one operation is a copy of the other: it is of the same place of the text, too."""
    return a.line == b.line and same_op(a, b)


def same_op(a: Op, b: Op) -> bool:
    """Return whether two operations are copies of one, as far as that can be known without their context."""
    return a.kind == b.kind and (a.arg is b.arg or type(a.arg) is type(b.arg) and bool(a.arg == b.arg))


# --- Which blocks control can come to ----------------------------------------------------------------
def reach(walker: Walker, starts: Iterable[int], avoid: Collection[int]) -> set[int]:
    """Return the blocks that control can come to from ``starts`` (these included) without passing one of ``avoid``."""
    return set(reached(walker, starts, avoid))


def reached(walker: Walker, starts: Iterable[int], avoid: Collection[int]) -> Iterator[int]:
    """Yield them, each once and the nearest first: for those who may know enough after a few."""
    seen: set[int] = set()
    work = deque(id for id in starts if id not in avoid)
    blocks = walker.cfg.blocks
    while work:
        id = work.popleft()
        if id in seen:
            continue
        seen.add(id)
        if len(seen) % 8 == 0:
            walker.spend(1)
        yield id
        work.extend(succ for succ in blocks[id].successors if succ not in seen and succ not in avoid)


class Analysis:
    """Dominators, loops and regions of a graph that no longer changes; all but loops are computed on first use.

    Attributes:
        cfg: the graph.
        loops: ``{head: the blocks of its loop}``, including those inside it that never lead back.
    """

    def __init__(self, cfg: RegionCfg) -> None:
        self.cfg = cfg
        blocks = cfg.blocks
        self._edges: dict[int, list[int]] = {
            id: block.successors if block.region is None else [*block.successors, block.region.handler]
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
        for id in reversed(order[1:]):  # (a block comes after its dominator in this order)
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
        for tail in self._back.get(head, ()) if chain else ():
            inside = self.cfg.handlers_around(self.cfg.blocks[tail].handler)
            chain = [region for region in chain if region in inside]
        return [region for region in chain if region not in self.cfg.in_loops.get(head, ())]

    def _whole_body(self, head: int, body: set[int]) -> set[int]:
        """Return the body of a loop, including the blocks inside it that never lead back.

        These are the rest of the protected bodies in it and their handlers (``except E: break``).
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
