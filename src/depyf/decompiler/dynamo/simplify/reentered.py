"""``with`` blocks that torch enters again behind a graph break.

A resume function begins by entering the contexts that were open at the break, and then jumps to the middle of
the user's ``with`` body.  Where such a context swallows an exception, torch's own code cannot go on: it leaves
the other contexts and executes ``raise None`` (torch/_dynamo/resume_execution.py, ``ReenterWith``).  People
write no such thing; the source shows an ordinary ``with``, and the proof says so.
"""

from __future__ import annotations

from ....bytecode import operations as o
from ....bytecode.operations import Op
from ....cfg import graph as g
from ....cfg.graph import Block, Cfg, reachable

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
    """Return the block behind the one that leaves the context, which is split if it does more."""
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
