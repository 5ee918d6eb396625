"""What torch adds to resume functions and to code after a graph break, beside the part that is the user's own.

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
from ....bytecode.linetable import positions
from ....bytecode.operations import Op
from ....cfg import graph as g
from ....cfg.graph import Block, Cfg, Region, StackMismatch, entry_depths, reachable


def user_part(graph: Cfg, is_resumed: bool) -> tuple[Cfg, frozenset[int]]:
    """Return a graph with what torch's part takes moved into it, and the user's blocks."""
    has_columns = [place is not None and place.column is not None for place in positions(graph.code)]

    def has_torchs(block: Block) -> bool:
        ops = [*block.ops, *([block.end_op] if block.end_op is not None else [])]
        return any(has_columns) and not all(
            has_columns[op.offset // 2] for op in ops if 0 <= op.offset // 2 < len(has_columns))

    torchs = {id for id, block in graph.blocks.items() if id == graph.entry or has_torchs(block)}
    if not is_resumed:
        if not has_torchs(graph.blocks[graph.entry]):
            return graph, frozenset()
        # (The operation that breaks the graph is the user's, too: after it torch's code goes on.)
        while leading := {id for id, block in graph.blocks.items()
                          if id not in torchs and not torchs.isdisjoint(g.all_successors(block))}:
            torchs |= leading
    graph = graph.copy()
    for id in sorted(torchs):
        block = graph.blocks[id]
        if block.end == g.JUMP and block.successors[0] not in torchs:
            _lead_on(graph, block)
    return graph, frozenset(graph.blocks) - torchs


def _lead_on(graph: Cfg, block: Block) -> None:
    """Move the drops that the user's part begins with into torch's last block, which leads to it."""
    following = graph.blocks[block.successors[0]]
    dropped = 0
    while dropped < len(following.ops) and following.ops[dropped].kind is o.POP:
        dropped += 1
    if dropped:
        block.ops = [*block.ops, *following.ops[:dropped]]
        end_op = following.end_op
        following = graph.add(following, following.ops[dropped:], following.end, following.successors,
                              following.region, following.arg)
        following.end_op = end_op
    first = next(iter(following.ops), following.end_op)
    block.successors = [following.id]
    block.end_op = Op(o.JUMP, None, first.offset, None) if first is not None else block.end_op


# --- ``with`` blocks that torch enters again after a graph break -------------------------------------
# A resume function begins by entering the contexts that were open at the break, and then jumps to the middle of
# the user's ``with`` body.  Where such a context swallows an exception, torch's own code cannot go on: it leaves
# the other contexts and executes ``raise None`` (torch/_dynamo/resume_execution.py, ``ReenterWith``).  People
# write no such thing; the source shows an ordinary ``with``, and the proof says so.
_LEAVES = [(o.CONST, None)] * 3 + [(o.CALL, (3, ())), (o.POP, None)]
_HARMLESS = frozenset({o.POP, o.POP_EXCEPT, o.CONST, o.CALL})


def ordinary_with(graph: Cfg) -> Cfg:
    """Return the graph with each re-entered ``with`` made ordinary; the given one if there is none."""
    if not any(op.kind is o.WITH_EXCEPT_START for block in graph.blocks.values() for op in block.ops):
        return graph
    graph = graph.copy()
    for _ in range(len(graph.blocks)):
        handlers = {block.handler for block in graph.blocks.values() if block.handler is not None}
        # Inner ones first make the outer ones plain.
        if not any(_make_ordinary(graph, handler) for handler in sorted(handlers)):
            break
        _drop_nothing(graph)
    return graph


def _make_ordinary(graph: Cfg, handler: int) -> bool:
    """Make the ``with`` of a handler ordinary; return whether it is a re-entered one."""
    start = graph.blocks[handler]
    if start.end != g.BRANCH or not start.ops or start.ops[-1].kind is not o.WITH_EXCEPT_START:
        return False
    kept, targets = _doomed(graph, start.successors[0]), _after_body(graph, handler)
    if kept is None or len(targets) > 1:
        return False
    if not targets:  # (only ``return`` leads out of it: what follows returns nothing, in place of ``raise None``)
        while kept.end not in (g.RAISE, g.RETURN):
            kept = graph.blocks[kept.successors[0]]
        if kept.end == g.RAISE and kept.end_op is not None:
            kept.end_op = Op(o.RETURN, None, kept.end_op.offset, None)
        kept.end, kept.arg = g.RETURN, None
        return True
    ops = kept.ops[: [op.kind for op in kept.ops].index(o.POP_EXCEPT) + 3]
    if [op.kind for op in ops[-3:]] != [o.POP_EXCEPT, o.POP, o.POP]:
        return False
    leaving = graph.blocks[targets.pop()]
    if len(leaving.ops) > len(_LEAVES):
        graph.split(leaving.id, len(_LEAVES))
    kept.ops, kept.end, kept.successors, kept.arg, kept.end_op = ops, g.JUMP, leaving.successors, None, None
    graph.prune()
    return True


def _drop_nothing(graph: Cfg) -> None:
    """Remove constants that are dropped at once, or after a merge, which torch's handlers have."""
    blocks = graph.blocks
    for block in blocks.values():
        kept: list[Op] = []
        for op in block.ops:
            if op.kind is o.POP and kept and kept[-1].kind is o.CONST:
                kept.pop()
            else:
                kept.append(op)
        block.ops = kept
    for id, sources in graph.predecessors().items():
        leaving = [blocks[source] for source in sources]
        if sources and blocks[id].ops and blocks[id].ops[0].kind is o.POP and all(
            block.end == g.JUMP and block.ops and block.ops[-1].kind is o.CONST for block in leaving
        ):
            blocks[id].ops = blocks[id].ops[1:]
            for block in leaving:
                block.ops = block.ops[:-1]


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


def _after_body(graph: Cfg, handler: int) -> set[int]:
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


# --- Handlers that only clean up and raise again do not need the values under them -------------------
# Around a call after a graph break Dynamo enters the user's contexts again, with a handler for each that leaves the
# context and raises again. Such a handler finds the values that were on the stack when its region was entered, and
# never looks at them. Left out of its region, they can be known by name like any others.
def forget_under_cleanups(graph: Cfg) -> Cfg:
    """Return the graph without values that only handlers which clean up use; the same graph if there are none."""
    normal = reachable(graph.blocks, [graph.entry], lambda block: block.successors)
    primary = {
        block.region.handler: block.region.depth
        for number in normal if (block := graph.blocks[number]).region is not None
    }
    shift: dict[int, int] = {}
    for handler, depth in primary.items():
        inside = reachable(graph.blocks, [handler], lambda block: block.successors)
        if inside.isdisjoint(normal) and all(graph.blocks[id].end not in (g.RETURN, g.FOR_ITER) for id in inside):
            shift |= dict.fromkeys(inside, depth)
    if not any(shift.values()):
        return graph
    regions: dict[int, Region] = {}
    given, graph = graph, graph.copy()
    for number, block in graph.blocks.items():
        region = block.region
        if region is not None:
            less = shift.get(region.handler if region.handler in primary else number, 0)
            block.region = regions.setdefault(id(region), Region(region.handler, region.depth - less, region.lasti))
    try:
        entry_depths(graph)
    except StackMismatch:  # one of them looks at these values
        return given
    return graph
