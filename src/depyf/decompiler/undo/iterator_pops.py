"""Exits of ``for`` loops: where the iterator is dropped, a ``break`` or a ``return`` leaves the loop.

Before (``for x in xs: ...; break``, then ``after()``)::

    B2 [POP; after()] jump B5

After :func:`mark_iterator_pops` and :func:`split_breaks`::

    B2 [POP 'iterator'] jump B6;  B6 [after()] jump B5
"""

from __future__ import annotations

from ...bytecode.operations import Op
from ...bytecode.opspec import FIXED_EFFECTS, KEPT, effect
from ...cfg.graph import Cfg
from ..structure.region_cfg import RegionCfg


def mark_iterator_pops(cfg: RegionCfg) -> None:
    """Mark every ``POP`` of an iterator (``POP "iterator"``): a ``break`` or ``return`` leaves a ``for`` loop there."""
    if _ITERATES.isdisjoint(cfg.present):
        return
    for id, ops in _marked(cfg).items():
        cfg.blocks[id].ops = ops


def _marked(graph: Cfg) -> dict[int, list[Op]]:
    """Return the operations of each block with their marks. Blocks that are not in the result have none."""
    marked: dict[int, list[Op]] = {}
    work: list[tuple[int, tuple[bool, ...]]] = [(graph.entry, ())]
    while work:
        id, entry = work.pop()
        if id in marked:
            continue
        block = graph.blocks[id]
        stack = list(entry)
        ops = block.ops
        changed: list[Op] | None = None
        marked[id] = ops
        for index, op in enumerate(ops):
            kind = op.kind
            if kind == "POP":
                if stack and stack.pop():
                    if changed is None:
                        changed = marked[id] = list(ops)
                    changed[index] = Op("POP", "iterator", op.offset, op.line, -1, op.handler)
                continue
            if kind in _ITERATES:
                if stack:
                    stack[-1] = True
                continue
            if kind == "COPY":
                stack.append(False)
                continue
            if kind == "SWAP":
                if len(stack) >= op.arg:
                    stack[-1], stack[-op.arg] = stack[-op.arg], stack[-1]
                continue
            if kind == "ROT":
                if len(stack) >= op.arg:
                    stack.insert(len(stack) - op.arg, stack.pop())
                continue
            popped, pushed = FIXED_EFFECTS.get(kind) or effect(op)
            if kind in KEPT:
                # these look at what lies below and leave it there
                stack.extend([False] * (pushed - popped))
                continue
            if popped:
                del stack[max(0, len(stack) - popped):]
            stack.extend([False] * pushed)
        if block.end == "branch" and stack:
            stack.pop()
        if block.end == "for":
            for succ, after in zip(block.successors, ([*stack, False], stack[:-1])):
                work.append((succ, tuple(after)))
        else:
            after_all = tuple(stack)
            work.extend((succ, after_all) for succ in block.successors)
        if block.region is not None:
            region = block.region
            kept = [*entry[: region.depth], *([False] * (1 + region.lasti))]
            work.append((region.handler, tuple(kept)))
    return marked


_ITERATES = frozenset({"GET_ITER", "GET_AITER"})


def split_breaks(cfg: RegionCfg) -> None:
    """Split blocks behind each marked ``POP``: what follows is the place a ``break`` leads to."""
    if _ITERATES.isdisjoint(cfg.present):
        return
    for id in list(cfg.blocks):
        while True:
            block = cfg.blocks[id]
            for index, op in enumerate(block.ops):
                if op.kind == "POP" and op.arg == "iterator" and index + 1 < len(block.ops):
                    id = cfg.split(id, index + 1)
                    break
            else:
                break
