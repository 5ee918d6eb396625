"""Basic blocks and the graph they form.

A :class:`Cfg` is what ``build`` makes of a :class:`~depyf.bytecode.operations.Program`: blocks of
operations that run straight through, and how each one ends.  All of a block is under the same
exception handler, if any (blocks are split where the handler changes).  Unreachable blocks are dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import compress
from typing import TYPE_CHECKING, Any

from ..bytecode.code import UnsupportedBytecode
from ..bytecode.operations import effect

if TYPE_CHECKING:
    from ..bytecode.code import Code
    from ..bytecode.operations import Op, Program


# How a block ends.
JUMP = "jump"  # successors = (next,)
BRANCH = "branch"  # successors = (if_true, if_false); pops the tested value
FOR_ITER = "for"  # successors = (body, exit); body: value pushed above the iterator; exit: iterator popped
RETURN = "return"  # pops the returned value
RAISE = "raise"  # arg: number of operands popped
RERAISE = "reraise"  # arg: has_lasti


@dataclass(eq=False, slots=True)
class Region:
    """An exception region: control goes to ``handler`` when an op of a block with this region raises.

    ``depth`` stack values remain, and if ``lasti``, that is pushed below the exception.
    """

    handler: int
    depth: int
    lasti: bool

    def __repr__(self) -> str:
        return f"Region(-> B{self.handler}, depth={self.depth}, lasti={self.lasti})"


@dataclass(eq=False, slots=True)
class Block:
    """A basic block: operations that run straight through, and the terminator after them.

    Attributes:
        id: key in ``Cfg.blocks``; follows code order in a freshly built graph.
        ops: the operations, without the jump, return or raise that ends the block.
        end: the terminator, one of the constants above.
        arg: operand of the terminator (``RAISE``, ``RERAISE``).
        end_op: the op that ends the block (for its offset), ``None`` for falling through.
        line: of the terminator in the source.
        successors: ids of the blocks control goes to, as listed beside each terminator.
        region: the innermost exception region, or ``None``.
    """

    id: int
    ops: list[Op]
    end: str
    successors: list[int]
    arg: Any = None
    end_op: Op | None = None
    region: Region | None = None
    line: int | None = None

    @property
    def handler(self) -> int | None:
        """The id of the block that control goes to when an operation raises; ``None`` for out of the function."""
        return self.region.handler if self.region is not None else None

    @property
    def floor(self) -> int:
        """The number of values at the bottom of the stack that the block's exception region keeps."""
        return self.region.depth if self.region else 0

    def __repr__(self) -> str:
        return f"B{self.id}({len(self.ops)} ops, {self.end} {tuple(self.successors)})"


class Cfg:
    """A control-flow graph: basic blocks by id, in code order when built, and where to start.

    ``order``: the position of each block in the code; a block that was split off follows what it was split from.
    """

    def __init__(
        self, code: Code, blocks: dict[int, Block], entry: int, order: dict[int, float] | None = None,
    ) -> None:
        self.code = code
        self.blocks = blocks
        self.entry = entry
        self.order: dict[int, float] = dict(zip(blocks, map(float, blocks))) if order is None else order
        self.next_id = max(blocks, default=-1) + 1

    # --- questions --------------------------------------------------------------------------------
    def predecessors(self) -> dict[int, list[int]]:
        """Return the blocks that control comes from, by jumps and falling through, for each block."""
        result: dict[int, list[int]] = {id: [] for id in self.blocks}
        for id, block in self.blocks.items():
            for successor in block.successors:
                result[successor].append(id)
        return result

    def handlers_around(self, handler: int | None) -> list[int]:
        """Return the handlers of the regions that enclose each other, from the given one outwards."""
        result: list[int] = []
        while handler is not None and handler not in result:
            result.append(handler)
            block = self.blocks.get(handler)
            handler = block.handler if block is not None else None
        return result

    @property
    def has_regions(self) -> bool:
        """True if a block has an exception handler."""
        return any(block.region is not None for block in self.blocks.values())

    def copy(self) -> Cfg:
        """Return a graph with copies of the blocks."""
        return Cfg(self.code, {id: copy(block) for id, block in self.blocks.items()}, self.entry)

    # --- edits ------------------------------------------------------------------------------------
    def add(self, like: Block, ops: list[Op], end: str, successors: Sequence[int], region: Region | None,
            arg: Any = None) -> Block:
        """Add a block after another in the code, with that one's line."""
        block = Block(self.next_id, ops, end, list(successors), arg, None, region, like.line)
        self.next_id += 1
        self.order[block.id] = self.order[like.id] + 1e-4 * (1 + len(like.ops))
        self.blocks[block.id] = block
        return block

    def split(self, id: int, index: int) -> int:
        """Make the part of a block from ``index`` on a block of its own, and return its id."""
        if index == 0:
            return id
        block = self.blocks[id]
        tail = self.add(block, block.ops[index:], block.end, block.successors, block.region, block.arg)
        tail.end_op, block.end_op = block.end_op, None
        block.ops = block.ops[:index]
        block.end, block.successors, block.arg = JUMP, [tail.id], None
        return tail.id

    def share_end(self, first: Block, other: Block, size: int) -> int:
        """Make one block of the last ``size`` operations of two, where what follows is the same; return its id."""
        shared = self.split(first.id, len(first.ops) - size)
        copy = self.split(other.id, len(other.ops) - size)
        self.redirect(copy, shared)
        return shared

    def redirect(self, old: int, new: int) -> None:
        """Lead all edges to ``old`` to ``new``, and remove ``old``."""
        for block in self.blocks.values():
            if old in block.successors:
                block.successors = [new if successor == old else successor for successor in block.successors]
        if self.entry == old:
            self.entry = new
        del self.blocks[old]

    def prune(self) -> None:
        """Remove blocks that cannot be reached."""
        reached = reachable(self.blocks, [self.entry])
        if len(reached) != len(self.blocks):
            for id in [id for id in self.blocks if id not in reached]:
                del self.blocks[id]


def all_successors(block: Block) -> list[int]:
    """Return the ids of the blocks that may run after a block, an exception handler included."""
    return block.successors if block.region is None else [*block.successors, block.region.handler]


def reachable(
    blocks: Mapping[int, Block], start: Iterable[int], edges: Callable[[Block], Iterable[int]] = all_successors
) -> set[int]:
    """Return the ids of the blocks that edges lead to, the first ones included."""
    result: set[int] = set()
    pending = list(start)
    while pending:
        id = pending.pop()
        if id not in result:
            result.add(id)
            pending.extend(edges(blocks[id]))
    return result


_END_OF = {
    "JUMP": JUMP, "BRANCH": BRANCH, "FOR_ITER": FOR_ITER,
    "RETURN": RETURN, "RAISE": RAISE, "RERAISE": RERAISE,
}


def build(program: Program) -> Cfg:
    """Build the graph of a program. Blocks are numbered in code order; unreachable ones are dropped.

    An op that ends a block (``RETURN`` ...) is ``Block.end_op``; falling through is a ``jump`` without it.
    """
    ops = program.ops
    if not ops:
        raise UnsupportedBytecode("the code has no instructions", program.code, "(nothing)", 0)
    starts = _leaders(program)
    id_at = [-1] * (len(ops) + 1)
    for number, start in enumerate(starts):
        id_at[start] = number
    starts.append(len(ops))
    regions = [Region(id_at[handler.target], handler.depth, handler.lasti) for handler in program.handlers]
    blocks: dict[int, Block] = {}
    pending = [0]
    while pending:
        number = pending.pop()
        if number in blocks:
            continue
        inside = ops[starts[number] : starts[number + 1]]
        region = regions[inside[0].handler] if inside[0].handler >= 0 else None
        blocks[number] = block = _block(number, inside, id_at, region)
        pending += block.successors
        if region is not None:
            pending.append(region.handler)
    return Cfg(program.code, dict(sorted(blocks.items())) if len(blocks) > 1 else blocks, 0)


def _leaders(program: Program) -> list[int]:
    """Return the indices of the operations that begin a block."""
    ops = program.ops
    leader = bytearray(len(ops) + 1)
    leader[0] = 1
    for index in [index for index, op in enumerate(ops) if op.kind in _END_OF]:
        leader[index + 1] = 1
        if ops[index].target >= 0:
            leader[ops[index].target] = 1
    if program.handlers:
        before = ops[0].handler
        for index, op in enumerate(ops):
            if op.handler != before:
                leader[index] = 1
                before = op.handler
        for handler in program.handlers:
            leader[handler.target] = 1
    return list(compress(range(len(ops)), leader))


def _block(number: int, ops: list[Op], id_at: list[int], region: Region | None) -> Block:
    """Return the block of these operations; where it goes on depends on the last."""
    last = ops[-1]
    end = _END_OF.get(last.kind)
    if end is None:
        return Block(number, ops, JUMP, [number + 1], None, None, region)
    successors: list[int] = []
    if end == JUMP:
        successors = [id_at[last.target]]
    elif end == BRANCH:
        successors = [id_at[last.target], number + 1] if last.arg else [number + 1, id_at[last.target]]
    elif end == FOR_ITER:
        successors = [number + 1, id_at[last.target]]
    arg = last.arg if end in (RETURN, RAISE, RERAISE) else None
    return Block(number, ops[:-1], end, successors, arg, last, region, last.line)


# --- stack depths at the entry of each block ---------------------------------------------------------
class StackMismatch(ValueError):
    """Two edges into a block bring stacks of different depths, or an operation finds too few values."""


def entry_depths(graph: Cfg) -> dict[int, int]:
    """Stack depth at the entry of each block (handlers: with ``lasti`` and the exception)."""
    depths = {graph.entry: 0}
    pending = [graph.entry]

    def arrive(target: int, depth: int, origin: Block) -> None:
        known = depths.get(target)
        if known is None:
            depths[target] = depth
            pending.append(target)
        elif known != depth:
            raise StackMismatch(f"depth at B{target} is {known}, but {depth} from {origin}")

    while pending:
        block = graph.blocks[pending.pop()]
        depth = depths[block.id]
        floor = block.floor
        if block.region:
            arrive(block.region.handler, floor + block.region.lasti + 1, block)
            if depth < floor:
                raise StackMismatch(f"handler of {block} keeps {floor} of {depth} values")
        for op in block.ops:
            pops, pushes = effect(op)
            if pops > depth:
                raise StackMismatch(f"{op!r} at offset {op.offset} in {block} finds {depth} values")
            depth += pushes - pops
        end = block.end
        if end in (BRANCH, FOR_ITER, RETURN) and depth < 1:
            raise StackMismatch(f"{end} in {block} finds no value")
        if end == RAISE and depth < block.arg or end == RERAISE and depth < 1 + block.arg:
            raise StackMismatch(f"{end} in {block} finds {depth} values")
        if end == FOR_ITER:
            body, leave = block.successors
            arrive(body, depth + 1, block)
            arrive(leave, depth - 1, block)
        else:
            for successor in block.successors:
                arrive(successor, depth - (end == BRANCH), block)
    return depths


# --- dominators and natural loops ------------------------------------------------------------------
# Over edges given as ``{id: ids of successors}``. The dominator tree is computed by the algorithm of Cooper, Harvey and
# Kennedy, "A Simple, Fast Dominance Algorithm" (2001). A natural loop is what leads to a back edge without passing its
# head (Aho, Lam, Sethi and Ullman, *Compilers*, section 9.6.6).
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
    return all(order[target] > order[id] for id, targets in edges.items() for target in targets)


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
        order: ids in reverse postorder; ``number``: their places in it.
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

    def dominates(self, above: int, below: int) -> bool:
        """Return whether every path to ``below`` leads through ``above``."""
        while self.number[below] > self.number[above]:
            below = self.parent[below]
        return below == above


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
