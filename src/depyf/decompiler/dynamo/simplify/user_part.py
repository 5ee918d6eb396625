"""The part of a resume function, or of code behind a graph break, that is the user's own.

A resume function is the user's bytecode behind a few operations of torch's, which put on the stack what lay there when
the graph broke, enter the contexts again that were open, and jump to the operation behind the break
(torch/_dynamo/resume_execution.py). Only these need simplifying. The others are left as they are, at their places in
the line table, which then tells how their statements were written.

From 3.11 on torch's operations have the line of the break and no columns, the user's have both. Where there are no
columns, all but the first block is taken for the user's.

Example: in ``CONST True`` / ``STORE_FAST __is_tracing_resume_prologue`` / ``LOAD_FAST ___stack0`` / ``JUMP`` and
``POP`` / ``LOAD_FAST x`` / ``RETURN`` (behind ``print(...)``), the last two are the user's part. The ``POP`` goes with
what it drops.
"""

from __future__ import annotations

from ....bytecode import operations as o
from ....bytecode.code import Code
from ....bytecode.linetable import positions
from ....bytecode.operations import Op
from ....cfg import graph as g
from ....cfg.graph import Block, Cfg


def user_part(graph: Cfg, is_resumed: bool) -> tuple[Cfg, frozenset[int]]:
    """Return a graph with what torch's part takes moved into it, and the user's blocks.

    Args:
        graph: of code that torch wrote.
        is_resumed: of a resume function. Without columns nothing tells the user's part of any other code.
    """
    places = _Places(graph.code)
    torchs = {id for id, block in graph.blocks.items() if id == graph.entry or places.has_torchs(block)}
    if not is_resumed:
        if not places.has_torchs(graph.blocks[graph.entry]):
            return graph, frozenset()
        # (The operation that breaks the graph is the user's, too: behind it torch's code goes on.)
        while leading := {id for id, block in graph.blocks.items()
                          if id not in torchs and not torchs.isdisjoint(g.all_successors(block))}:
            torchs |= leading
    blocks = dict(graph.blocks)
    for id in sorted(torchs):
        block = blocks[id]
        if block.end == g.JUMP and block.successors[0] not in torchs:
            blocks[id] = _joined(block, blocks)
    return Cfg(graph.code, blocks, graph.entry), frozenset(blocks) - torchs


class _Places:
    """The places of operations in the source, as far as they have columns."""

    def __init__(self, code: Code) -> None:
        known = positions(code)
        self._columns = [position is not None and position.column is not None for position in known]
        self._any = any(self._columns)

    def has_torchs(self, block: Block) -> bool:
        """Return whether a block has operations that torch added."""
        ops = [*block.ops, *([block.end_op] if block.end_op is not None else [])]
        return self._any and any(0 <= op.offset // 2 < len(self._columns) and not self._columns[op.offset // 2]
                                 for op in ops)


def _joined(block: Block, blocks: dict[int, Block]) -> Block:
    """Return torch's last block, which leads to the user's part.

    A value that is dropped first there is dropped in this block instead. What lies on the stack has the place of the
    operation that follows: the statement begins there.
    """
    ops, (target,) = list(block.ops), block.successors
    following = blocks[target]
    dropped = 0
    while dropped < len(following.ops) and following.ops[dropped].kind is o.POP:
        dropped += 1
    if dropped:
        ops += following.ops[:dropped]
        rest = Block(max(blocks) + 1, following.ops[dropped:], following.end, following.successors, following.arg,
                     following.end_op, following.region)
        blocks[rest.id], target, following = rest, rest.id, rest
    first = next(iter(following.ops), following.end_op)
    end = Op(o.JUMP, None, first.offset, None) if first is not None else block.end_op
    return Block(block.id, ops, g.JUMP, (target,), None, end, block.region)
