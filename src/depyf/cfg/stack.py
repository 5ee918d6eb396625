"""The number of values on the stack at the entry of each block."""

from __future__ import annotations

from ..bytecode.opspec import effect
from .graph import BRANCH, FOR_ITER, RAISE, RERAISE, RETURN, Block, Cfg


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
