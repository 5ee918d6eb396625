"""A canonical program -> its graph of basic blocks."""

from __future__ import annotations

from ..bytecode.operations import Op, Program


def build(program: Program) -> Graph:
    """The graph of a program. Blocks are numbered in code order; unreachable ones are dropped.

    An op that ends a block without a jump (``RETURN`` ...) is ``Block.end_op``; falling through into the
    next block is a ``jump`` without ``end_op``.
    """
    ops, handlers = program.ops, program.handlers
    count = len(ops)
    leader = bytearray(count + 1)
    leader[0] = 1
    before = ops[0].handler if count else -1
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


from .graph import BRANCH, FOR_ITER, JUMP, RAISE, RERAISE, RETURN, Block, Graph, Region  # noqa: E402

_END_OF = {
    "JUMP": JUMP, "BRANCH": BRANCH, "FOR_ITER": FOR_ITER, "RETURN": RETURN, "RAISE": RAISE, "RERAISE": RERAISE,
}

__all__ = ["Op", "build"]
