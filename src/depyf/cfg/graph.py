"""Basic blocks and the graph they form.

A :class:`Graph` is what ``build`` makes of a :class:`~depyf.bytecode.operations.Program`: blocks of
operations that run straight through, and how each one ends.  A block lies under exactly one
exception handler (blocks are split where the handler changes).  Unreachable blocks are dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ..bytecode.instructions import UnsupportedBytecode

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


class Region:
    """An exception region: control goes to ``handler`` when an op of a block with this region raises.

    Attributes:
        handler: id of the block that the handler starts with (see ``Program`` on its first op).
        depth: stack values kept.
        lasti: whether a ``lasti`` value is pushed below the exception.
    """

    __slots__ = ("depth", "handler", "lasti")

    def __init__(self, handler: int, depth: int, lasti: bool) -> None:
        self.handler = handler
        self.depth = depth
        self.lasti = lasti

    def __repr__(self) -> str:
        return f"Region(-> B{self.handler}, depth={self.depth}, lasti={self.lasti})"


class Block:
    """Operations that run straight through.

    Attributes:
        id: key in ``Graph.blocks``; follows code order in a freshly built graph.
        ops: the operations, without the jump that ends the block (``BRANCH``, ``FOR_ITER``, ``RETURN``,
            ``RAISE``, ``RERAISE`` are in ``end``, not in ``ops``).
        end: one of the constants above.
        arg: operand of the end (``RAISE``, ``RERAISE``).
        end_op: the op that ends the block (for its line and offset), ``None`` for falling through.
        successors: ids of the blocks control goes to, as listed beside each end.
        region: innermost exception region, or ``None``.
    """

    __slots__ = ("arg", "end", "end_op", "id", "ops", "region", "successors")

    def __init__(
        self, id: int, ops: list[Op], end: str, successors: tuple[int, ...] = (),
        arg: Any = None, end_op: Op | None = None, region: Region | None = None,
    ) -> None:
        self.id = id
        self.ops = ops
        self.end = end
        self.successors = successors
        self.arg = arg
        self.end_op = end_op
        self.region = region

    @property
    def floor(self) -> int:
        """The number of values at the bottom of the stack that the block's exception region keeps."""
        return self.region.depth if self.region else 0

    def __repr__(self) -> str:
        return f"B{self.id}({len(self.ops)} ops, {self.end} {self.successors})"


class Graph:
    """Blocks by id, and where to start.

    Attributes:
        code: the code object the graph was built from.
        blocks: ``{id: Block}`` in code order.
        entry: id of the first block.
    """

    __slots__ = ("blocks", "code", "entry")

    def __init__(self, code: Code, blocks: dict[int, Block], entry: int) -> None:
        self.code = code
        self.blocks = blocks
        self.entry = entry


def ways_on(block: Block) -> list[int]:
    """Ids of the blocks that may run after it, an exception handler included."""
    return [*block.successors, *([block.region.handler] if block.region else [])]


def reachable(
    blocks: Mapping[int, Block], start: Iterable[int], ways: Callable[[Block], Iterable[int]] = ways_on
) -> set[int]:
    """Ids of the blocks that the ways lead to, the first ones included."""
    found: set[int] = set()
    pending = list(start)
    while pending:
        id = pending.pop()
        if id not in found:
            found.add(id)
            pending.extend(ways(blocks[id]))
    return found


_END_OF = {
    "JUMP": JUMP, "BRANCH": BRANCH, "FOR_ITER": FOR_ITER,
    "RETURN": RETURN, "RAISE": RAISE, "RERAISE": RERAISE,
}


def build(program: Program) -> Graph:
    """The graph of a program. Blocks are numbered in code order; unreachable ones are dropped.

    An op that ends a block without a jump (``RETURN`` ...) is ``Block.end_op``; falling through into the
    next block is a ``jump`` without ``end_op``.

    Raises:
        UnsupportedBytecode: the code has no instructions.
    """
    ops, handlers = program.ops, program.handlers
    count = len(ops)
    if not count:
        raise UnsupportedBytecode("the code has no instructions", program.code, "(nothing)", 0)
    leader = bytearray(count + 1)
    leader[0] = 1
    before = ops[0].handler
    for index, op in enumerate(ops):
        if op.handler != before:
            leader[index] = 1
            before = op.handler
        if op.kind in _END_OF:
            leader[index + 1] = 1
            if op.target >= 0:
                leader[op.target] = 1
    for handler in handlers:
        leader[handler.target] = 1

    starts = [index for index in range(count) if leader[index]]
    id_at = [-1] * (count + 1)
    for number, start in enumerate(starts):
        id_at[start] = number
    starts.append(count)
    regions = [Region(id_at[h.target], h.depth, h.lasti) for h in handlers]

    blocks: dict[int, Block] = {}
    pending = [0] if count else []
    while pending:
        number = pending.pop()
        if number in blocks:
            continue
        start, end = starts[number], starts[number + 1]
        last = ops[end - 1]
        region = regions[ops[start].handler] if ops[start].handler >= 0 else None
        kind = _END_OF.get(last.kind)
        if kind is None:
            block = Block(number, ops[start:end], JUMP, (number + 1,), None, None, region)
        else:
            block = Block(number, ops[start : end - 1], kind, (), None, last, region)
            if kind == JUMP:
                block.successors = (id_at[last.target],)
            elif kind == BRANCH:
                ways = (id_at[last.target], number + 1)
                block.successors = ways if last.arg else ways[::-1]
            elif kind == FOR_ITER:
                block.successors = (number + 1, id_at[last.target])
            else:
                block.arg = last.arg
        blocks[number] = block
        pending.extend(block.successors)
        if region is not None:
            pending.append(region.handler)
    return Graph(program.code, dict(sorted(blocks.items())), 0)
