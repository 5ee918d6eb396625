"""The part of a resume function, or of code after a graph break, that is the user's own.

A resume function is the user's bytecode after a few operations of torch's, which put on the stack what was there when
the graph broke, enter the contexts again that were open, and jump to the operation after the break
(torch/_dynamo/resume_execution.py). Only these need simplifying. The others are left as they are, at their places in
the line table, which then shows how their statements were written.

From 3.11 on torch's operations have the line of the break and no columns, the user's have both. Where there are no
columns, all but the first block is taken for the user's.

Example: in ``CONST True`` / ``STORE_FAST __is_tracing_resume_prologue`` / ``LOAD_FAST ___stack0`` / ``JUMP`` and
``POP`` / ``LOAD_FAST x`` / ``RETURN`` (after ``print(...)``), the last two are the user's part. The ``POP`` goes with
what it drops.
"""

from __future__ import annotations

from ....bytecode import operations as o
from ....bytecode.code import Code
from ....bytecode.linetable import positions
from ....bytecode.operations import Op
from ....cfg import graph as g
from ....cfg.graph import Block, Cfg, reachable


def user_part(graph: Cfg, is_resumed: bool) -> tuple[Cfg, frozenset[int]]:
    """Return a graph with what torch's part takes moved into it, and the user's blocks.

    Args:
        graph: of code that torch wrote.
        is_resumed: of a resume function. In other code, only columns identify the user's part.
    """
    places = _Places(graph.code)
    torchs = {id for id, block in graph.blocks.items() if id == graph.entry or places.has_torchs(block)}
    if not is_resumed:
        if not places.has_torchs(graph.blocks[graph.entry]):
            return graph, frozenset()
        # (The operation that breaks the graph is the user's, too: after it torch's code goes on.)
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

    A value that is dropped first there is dropped in this block instead. A value on the stack has the place of the
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


# --- ``with`` blocks that torch enters again after a graph break -------------------------------------
# A resume function begins by entering the contexts that were open at the break, and then jumps to the middle of
# the user's ``with`` body.  Where such a context swallows an exception, torch's own code cannot go on: it leaves
# the other contexts and executes ``raise None`` (torch/_dynamo/resume_execution.py, ``ReenterWith``).  People
# write no such thing; the source shows an ordinary ``with``, and the proof says so.
_LEAVES = [(o.CONST, None)] * 3 + [(o.CALL, (3, ())), (o.POP, None)]
_HARMLESS = frozenset({o.POP, o.POP_EXCEPT, o.CONST, o.CALL})


def ordinary_with(graph: Cfg) -> Cfg:
    """Return the graph with each re-entered ``with`` made ordinary; the given one if there is none."""
    for _ in range(len(graph.blocks)):
        handlers = {block.region.handler for block in graph.blocks.values() if block.region}
        # Inner ones first make the outer ones plain.
        changed = next((candidate for h in sorted(handlers) if (candidate := _one(graph, h)) is not None), None)
        if changed is None:
            break
        graph = changed
        _drop_nothing(graph)
    return graph


def _one(graph: Cfg, handler: int) -> Cfg | None:
    """Return the graph with the ``with`` of a handler made ordinary; ``None`` if it is not a re-entered one."""
    start = graph.blocks[handler]
    if start.end != g.BRANCH or not start.ops or start.ops[-1].kind is not o.WITH_EXCEPT_START:
        return None
    kept, targets = _doomed(graph, start.successors[0]), _behind(graph, handler)
    if kept is None or len(targets) > 1:
        return None
    blocks = dict(graph.blocks)
    if not targets:
        _return_nothing(blocks, kept)
        return Cfg(graph.code, blocks, graph.entry)
    ops = kept.ops[: [op.kind for op in kept.ops].index(o.POP_EXCEPT) + 3]
    if [op.kind for op in ops[-3:]] != [o.POP_EXCEPT, o.POP, o.POP]:
        return None
    blocks[kept.id] = Block(kept.id, ops, g.JUMP, (_split(blocks, targets.pop()),), None, None, kept.region)
    kept_blocks = reachable(blocks, [graph.entry])
    return Cfg(graph.code, {id: blocks[id] for id in sorted(kept_blocks)}, graph.entry)


def _split(blocks: dict[int, Block], target: int) -> int:
    """Return the block after the one that leaves the context, which is split if it does more."""
    leaving = blocks[target]
    if len(leaving.ops) > len(_LEAVES):
        rest = Block(max(blocks) + 1, leaving.ops[len(_LEAVES) :], leaving.end, leaving.successors, leaving.arg,
                     leaving.end_op, leaving.region)
        blocks[rest.id] = rest
        blocks[target] = leaving = Block(
            target, leaving.ops[: len(_LEAVES)], g.JUMP, (rest.id,), None, None, leaving.region)
    return leaving.successors[0]


def _return_nothing(blocks: dict[int, Block], kept: Block) -> None:
    """Let what follows a ``with`` out of which only ``return`` leads return nothing, in place of ``raise None``."""
    block = kept
    while True:
        end, end_op = block.end, block.end_op
        if end == g.RAISE:
            end, end_op = g.RETURN, Op(o.RETURN, None, end_op.offset, None) if end_op is not None else None
        blocks[block.id] = Block(block.id, block.ops, end, block.successors, None, end_op, block.region)
        if end == g.RETURN:
            return
        block = blocks[block.successors[0]]


def _drop_nothing(graph: Cfg) -> None:
    """Remove constants that are dropped at once, and those that all blocks before one leave it to drop.

    (Torch's own handling of an exception that is swallowed has both.)
    """
    blocks = graph.blocks
    before: dict[int, list[int]] = {id: [] for id in blocks}
    for id, block in blocks.items():
        for successor in block.successors:
            before[successor].append(id)
        kept: list[Op] = []
        for op in block.ops:
            if op.kind is o.POP and kept and kept[-1].kind is o.CONST:
                kept.pop()
            else:
                kept.append(op)
        if len(kept) < len(block.ops):
            blocks[id] = _with_ops(block, kept)
    for id, sources in before.items():
        leaving = [blocks[source] for source in sources]
        if sources and blocks[id].ops and blocks[id].ops[0].kind is o.POP and all(
            block.end == g.JUMP and block.ops and block.ops[-1].kind is o.CONST for block in leaving
        ):
            blocks[id] = _with_ops(blocks[id], blocks[id].ops[1:])
            blocks.update({block.id: _with_ops(block, block.ops[:-1]) for block in leaving})


def _with_ops(block: Block, ops: list[Op]) -> Block:
    return Block(block.id, ops, block.end, block.successors, block.arg, block.end_op, block.region)


def _doomed(graph: Cfg, id: int) -> Block | None:
    """Return the block that ends the handling, if nothing but leaving contexts and ``raise None`` follows."""
    ending: Block | None = None
    for _ in range(len(graph.blocks)):
        block = graph.blocks[id]
        if any(op.kind not in _HARMLESS for op in block.ops):
            return None
        if ending is None and any(op.kind is o.POP_EXCEPT for op in block.ops):
            ending = block
        if block.end == g.RAISE:
            last: Op | None = block.ops[-1] if block.ops else None
            return ending if block.arg == 1 and last is not None and last.kind is o.CONST and last.arg is None else None
        if block.end != g.JUMP:
            return None
        (id,) = block.successors
    return None


def _behind(graph: Cfg, handler: int) -> set[int]:
    """Return the blocks that leave the context after a body without exception and go on."""
    targets: set[int] = set()
    for block in graph.blocks.values():
        if block.region is None or block.region.handler != handler:
            continue
        for successor in block.successors:
            other = graph.blocks[successor]
            outside = other.region is None or other.region.handler != handler
            leaves = [(op.kind, op.arg) for op in other.ops[: len(_LEAVES)]] == _LEAVES
            # ``return`` in the body leaves the context too, with the value under the call; nothing comes after.
            if outside and leaves and (other.end == g.JUMP or len(other.ops) > len(_LEAVES)):
                targets.add(successor)
    return targets
