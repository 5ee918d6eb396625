"""Ends that the compiler has copied, made one.

It copies small ends to every path that leads there (``inline_small_exit_blocks`` in flowgraph.c, compile.c before
3.12). Copies have one place in the source, by which those in a function are found.

Where control falls off the end of a module there is one ``LOAD_CONST None; RETURN_VALUE``, copied as well, together
with the clean-up before it (``duplicate_exits_without_lines``). In a function such a copy can be written as a
``return``; in a module or class there is none, so all are made one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...bytecode.operations import Op, effect
from ...cfg.graph import Block
from ..structure.analysis import RegionCfg, cleans_up, copied_op, handler_steps
from .loop_inversion import common_ends, merge_before

if TYPE_CHECKING:
    from ..bodies import Body
    from ..structure.evidence import Evidence


def merge_ends(cfg: RegionCfg) -> None:
    """Make one block of all ends, and of copies of the exits of handlers and bodies that lead to one place."""
    blocks = cfg.blocks
    ends: dict[tuple[object, ...], int] = {}
    for id in list(blocks):
        block = blocks[id]
        start = _epilogue(block)
        if start < 0:
            continue
        epilogue = tuple((op.kind, op.arg) for op in block.ops[start:])
        tail = cfg.split(id, start)
        last = ends.setdefault(epilogue, tail)
        if last == tail:
            continue
        if tail != id:
            block.successors = [last]
        else:
            cfg.redirect(id, last)
    for end in sorted(set(ends.values())):
        # (Where the last statements are short enough they are copied together with the end.)
        merge_before(cfg, end, _common_statements)
    _merge_exits(cfg)


def _common_statements(a: Block, b: Block) -> int:
    """Count the operations at the end of two blocks that are copies of whole statements, on lines of their own."""
    longest = 0
    for size, _, depth, first in common_ends(a, b, _is_copy):
        before = [block.ops[-size - 1].line if len(block.ops) > size else None for block in (a, b)]
        if not depth and first.line not in before:
            longest = size
    return longest


def _is_copy(x: Op, y: Op) -> bool:
    return x.line is not None and copied_op(x, y) and x.kind not in _LEAVES and x.arg != "iterator"


#: What ends a block that a function is left from.
_EXITS = ("return", "raise")


def merge_returns(body: Body) -> None:
    """Make one of the copies of a ``return`` or ``raise``, with the statements before it that were copied.

    Copies have one place in the source. (The compiler copies a small end to each jump to it:
    ``inline_small_exit_blocks``.)
    """
    cfg = body.cfg
    exits = [block for block in cfg.blocks.values() if block.end in _EXITS and block.end_op is not None]
    evidence = body.evidence if exits[1:] and not body.is_namespace else None
    if evidence is None:
        return
    ends: dict[tuple[object, ...], list[int]] = {}
    for block in sorted(exits, key=lambda block: cfg.order[block.id]):
        if block.end_op is not None and (place := evidence.position(block.end_op.offset)) is not None:
            ends.setdefault((place, block.end, block.handler), []).append(block.id)
    before = cfg.predecessors() if len(ends) < len(exits) else {}
    for first, *others in ends.values():
        for id in others:
            if id not in cfg.blocks or first not in cfg.blocks:
                continue
            common = _copied_statements(cfg, evidence, before, cfg.blocks[first], cfg.blocks[id])
            if common is not None:
                shared = cfg.share_end(*common)
                first = shared if cfg.blocks[shared].end in _EXITS else first
                cfg.prune()
                before = cfg.predecessors()


def _copied_statements(
    cfg: RegionCfg, evidence: Evidence, before: dict[int, list[int]], a: Block, b: Block
) -> tuple[Block, Block, int] | None:
    """Return where copies of the last statements begin: two blocks, and the number of operations at their end.

    Args:
        cfg: the graph.
        evidence: of its places in the source.
        before: the blocks before each.
        a, b: two blocks that end alike, by ``return`` or ``raise``.
    """
    depth, needed = 0, a.arg if a.end == "raise" else 1
    longest = None if needed else (a, b, 0)
    while True:
        for size, (x, y) in enumerate(zip(reversed(a.ops), reversed(b.ops)), 1):
            if not copied_op(x, y) or x.target != y.target or x.kind == "POP_EXCEPT" or x.arg == "iterator" or (
                    evidence.position(x.offset) != evidence.position(y.offset)):
                return longest
            if x.kind == "LEAVE":
                continue
            popped, pushed = effect(x)
            depth += pushed - popped
            if depth == needed and all(
                    _begins_copy(evidence, x, _op_before(cfg, before, block, size)) for block in (a, b)):
                longest = a, b, size
        if len(a.ops) != len(b.ops) or len(before[a.id]) != 1 or len(before[b.id]) != 1:
            return longest
        a, b = cfg.blocks[before[a.id][0]], cfg.blocks[before[b.id][0]]
        if a.end != "jump" or b.end != "jump" or a.handler != b.handler or a is b:
            return longest


def _begins_copy(evidence: Evidence, op: Op, before: Op | None) -> bool:
    """Return whether a copied statement can begin with an operation, by that before it (``None``: not known).

    Not right after a clean-up, whose place a ``return`` has; nor in the middle of a line, where only lines are known.
    """
    return before is None or not cleans_up(before) and (evidence.has_columns or before.line != op.line)


def _op_before(cfg: RegionCfg, before: dict[int, list[int]], block: Block, size: int) -> Op | None:
    """Return the operation before the last ``size`` of a block; ``None`` if there is none, or there are several."""
    if len(block.ops) > size:
        return block.ops[-size - 1]
    around = [cfg.blocks[id] for id in before[block.id]]
    return around[0].ops[-1] if len(around) == 1 and around[0].end == "jump" and around[0].ops else None


def merge_breaks(cfg: RegionCfg) -> None:
    """Merge the ``break`` and the end of a loop that is the last statement of a handler: they leave that in one place.

    So do the ``else`` and the handlers of a ``try`` that is its last statement.

    (Up to the end of the handler both are on one path, which the compiler copies as it copies other ends. Code that
    does not come from a ``break`` is unchanged: there is a ``continue`` or ``return`` for it.)
    """
    breaks = {
        block.successors[0] for block in cfg.blocks.values()
        if block.end == "jump" and block.ops and block.ops[-1].kind == "POP" and block.ops[-1].arg == "iterator"
    }
    if "POP_EXCEPT" in cfg.present:  # (After the end of a handler inside, 3.13 copies that of the one around.)
        breaks.update(block.successors[0] for block in cfg.blocks.values()
                      if block.end == "jump" and block.ops and block.ops[-1].kind == "POP_EXCEPT")
    wanted: set[tuple[int | None, int]] = set()
    for id in breaks:
        block = cfg.blocks[id]
        if block.end == "jump" and [op.kind for op in block.ops] == ["POP_EXCEPT"]:
            wanted.add((block.handler, block.successors[0]))
    if wanted:
        _merge_exits(cfg, wanted)


def _merge_exits(cfg: RegionCfg, wanted: set[tuple[int | None, int]] | None = None) -> None:
    """Make copies of the end of a handler or protected body that lead to one place one.

    Args:
        cfg: the graph.
        wanted: ``(region, place)`` of the ends of handlers that are looked at; all ends if ``None``.
    """
    blocks = cfg.blocks
    for id in list(blocks):
        block = blocks[id]
        if len(block.ops) > 1 and block.ops[-1].kind == "POP_EXCEPT" and (
            wanted is None or block.end == "jump" and (block.handler, block.successors[0]) in wanted
        ):
            cfg.split(id, len(block.ops) - 1)
    handlers = _running_handlers(cfg)
    again = True
    while again:
        again = False
        seen: dict[tuple[object, ...], int] = {}
        for id in sorted(blocks, key=cfg.order.__getitem__):
            block = blocks[id]
            if len(block.ops) != 1 or block.end != "jump" or id == cfg.entry or id in cfg.kinds:
                continue
            op = block.ops[0]
            if wanted is not None and (block.handler, block.successors[0]) not in wanted:
                continue
            if op.kind == "LEAVE" and wanted is None:
                key: tuple[object, ...] = ("LEAVE", op.arg, op.target, block.handler, block.successors[0])
            elif op.kind == "POP_EXCEPT" and handlers.get(id):
                key = ("POP_EXCEPT", handlers[id], block.handler, block.successors[0])
            else:
                continue
            first = seen.setdefault(key, id)
            if first != id:
                cfg.redirect(id, first)
                again = True
    cfg.prune()


def _epilogue(block: Block) -> int:
    """Return the index of a block's epilogue, which the compiler puts after the last statement; -1 if it has none.

    The value returned, and in a class before it ``__static_attributes__`` (3.13), ``__classdictcell__`` (3.12)
    and ``__classcell__`` (``compiler_class_body`` in compile.c, codegen.c).
    """
    ops = block.ops
    if block.end != "return" or not ops:
        return -1
    at = len(ops) - 1
    if ops[at].kind == "CONST" and ops[at].arg is None:
        pass
    elif ops[at].kind == "STORE_NAME" and ops[at].arg == "__classcell__" and at > 1 and ops[at - 1].kind == "COPY":
        at -= 2
    else:
        return -1
    while at > 1 and ops[at - 1].kind == "STORE_NAME" and ops[at - 1].arg in _OF_THE_CLASS:
        at -= 2
    return at


#: Operations that end a protected body or handler.
_LEAVES = frozenset({"LEAVE", "POP_EXCEPT"})
#: Names that a class body binds by itself at its end.
_OF_THE_CLASS = frozenset({"__static_attributes__", "__classdictcell__"})


def _running_handlers(cfg: RegionCfg) -> dict[int, tuple[int, ...]]:
    """Return the handlers that are running when control reaches a block, innermost last."""
    result: dict[int, tuple[int, ...]] = {}
    work: list[tuple[int, tuple[int, ...]]] = [(cfg.entry, ())]
    while work:
        id, running = work.pop()
        if id in result:
            continue
        result[id] = running
        block = cfg.blocks[id]
        if block.handler is not None:
            work.append((block.handler, running))
        for step in handler_steps(block):
            running = (*running, id) if step > 0 else running[:-1]
        work.extend((succ, running) for succ in block.successors)
    return result


# --- Jump threading: edges lead straight through empty blocks ----------------------------------------
# Before::
#
#     B1 jump B2;  B2 (nothing) jump B3
#
# After::
#
#     B1 jump B3
def thread_jumps(cfg: RegionCfg) -> None:
    """Lead edges straight through blocks that do nothing."""
    blocks = cfg.blocks
    empty = [id for id, block in blocks.items() if block.end == "jump" and not block.ops]
    if not empty:
        return
    final: dict[int, int] = {}
    for id in empty:
        at = id
        trail = []
        while at not in final and blocks[at].end == "jump" and not blocks[at].ops and at not in trail:
            trail.append(at)
            at = blocks[at].successors[0]
        at = final.get(at, at)
        for seen in trail:
            final[seen] = at
    cfg.entry = final.get(cfg.entry, cfg.entry)  # (A body in which nothing is done protects nothing.)
    for block in blocks.values():
        for succ in block.successors:
            if succ in final:
                # (The compiler forgets the region of a jump back that it puts after a branch: ``normalize_jumps``.)
                head = final[succ]
                if block.end == "jump" and cfg.order[head] <= cfg.order[block.id]:
                    around = cfg.handlers_around(blocks[succ].handler)
                    cfg.in_loops.setdefault(head, set()).update(
                        region for region in cfg.handlers_around(blocks[head].handler) if region not in around)
                block.successors = [final.get(each, each) for each in block.successors]
                break
