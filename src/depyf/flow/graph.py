"""Basic blocks and the graph they form.

A :class:`Graph` is what ``build`` makes of a :class:`~depyf.bytecode.operations.Program`: blocks of
operations that run straight through, and how each one ends.  A block lies under exactly one
exception handler (blocks are split where the handler changes).  Unreachable blocks are dropped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..bytecode.code import Code
    from ..bytecode.operations import Op

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


from .build import build  # noqa: E402  (defined beside what it builds; imported here for one way in)

__all__ = ["Block", "Graph", "Region", "build"]
