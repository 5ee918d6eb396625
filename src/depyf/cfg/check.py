"""Invariants of a graph; the tests and ``scripts/check_canonical.py`` switch it on."""

from __future__ import annotations

from ..bytecode.opspec import TERMINATORS, effect
from .graph import BRANCH, FOR_ITER, JUMP, RAISE, RERAISE, RETURN, Block, Cfg

#: The number of successors by terminator.
_SUCCESSORS = {JUMP: 1, BRANCH: 2, FOR_ITER: 2, RETURN: 0, RAISE: 0, RERAISE: 0}
#: What a handler can start with: see ``bytecode/operations.py``.
_HANDLER_STARTS = {"PUSH_EXC_INFO", "COPY", "CONST", "END_ASYNC_FOR", "SWAP", "ROT", "POP", "LIST_APPEND"}


class BrokenGraph(ValueError):
    """A graph that breaks an invariant."""


def check(cfg: Cfg) -> None:
    """Check a graph as it was built.

    Raises:
        BrokenGraph, StackMismatch: an invariant does not hold.
    """
    check_edges(cfg)
    for block in cfg.blocks.values():
        if block.handler is not None:
            handler = cfg.blocks[block.handler]
            if not handler.ops or handler.ops[0].kind not in _HANDLER_STARTS:
                raise BrokenGraph(f"handler {handler} of {block} starts with {handler.ops[:1]}")
    if set(entry_depths(cfg)) != set(cfg.blocks):
        raise BrokenGraph("unreachable blocks")


def check_edges(cfg: Cfg) -> None:
    """Check that the edges of a graph lead to its blocks and fit their terminators; it holds after every pass.

    Raises:
        BrokenGraph: they do not.
    """
    if cfg.entry not in cfg.blocks:
        raise BrokenGraph(f"the entry B{cfg.entry} is not there")
    for id, block in cfg.blocks.items():
        if id != block.id:
            raise BrokenGraph(f"{block} has the id {id}")
        if len(block.successors) != _SUCCESSORS.get(block.end, 0):
            raise BrokenGraph(f"{block} has the wrong number of successors")
        for successor in block.successors:
            if successor not in cfg.blocks:
                raise BrokenGraph(f"{block} goes to B{successor}, which is not there")
        for op in block.ops:
            if op.kind in TERMINATORS:
                raise BrokenGraph(f"{op!r} is in the middle of {block}")
        if block.handler is not None and block.handler not in cfg.blocks:
            raise BrokenGraph(f"handler of {block} is not there")


# --- The number of values on the stack at the entry of each block ------------------------------------
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
