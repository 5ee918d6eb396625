"""A graph's blocks, cut into segments that run at one exception level.

A *level* is the number of exceptions being handled.  ``PUSH_EXC_INFO`` raises it, ``POP_EXCEPT``
lowers it, so blocks are cut behind every ``POP_EXCEPT`` and before every ``PUSH_EXC_INFO`` that is not
at the start of its block.  Numbers are given so that the segments of a level are consecutive.
"""

from __future__ import annotations

from typing import Any

from ...bytecode import operations as o
from ...bytecode.operations import Op
from ...cfg import graph as g
from ...cfg.graph import Block, Cfg, Region
from ..errors import FALLBACK, CannotDecompile

FALL = "fall"  # end of a segment that was cut: goes on with the next one


class Segment:
    """Part of a block that runs at one exception level.

    Attributes:
        number: value of ``__block`` that selects it.
        level: exception level its ops run at (those after a leading ``PUSH_EXC_INFO``).
        enters: it starts with ``PUSH_EXC_INFO``.
        ops, end, arg, region: as in :class:`~depyf.cfg.graph.Block` (``end`` may be ``"fall"``).
        targets: segments that control goes to.
    """

    __slots__ = ("arg", "end", "enters", "level", "number", "ops", "region", "targets")

    def __init__(self, ops: list[Op], region: Region | None) -> None:
        self.ops = ops
        self.region = region
        self.end: str = FALL
        self.arg: Any = None
        self.targets: list[Segment] = []
        self.level = -1
        self.number = -1
        self.enters = bool(ops) and ops[0].kind is o.PUSH_EXC_INFO


def _cut(block: Block) -> list[Segment]:
    pieces: list[list[Op]] = [[]]
    for op in block.ops:
        if op.kind is o.PUSH_EXC_INFO and pieces[-1]:
            pieces.append([])
        pieces[-1].append(op)
        if op.kind is o.POP_EXCEPT:
            pieces.append([])
    segments = [Segment(ops, block.region) for ops in pieces]
    for segment, following in zip(segments, segments[1:]):
        segment.targets = [following]
    segments[-1].end, segments[-1].arg = block.end, block.arg
    return segments


def cut(graph: Cfg) -> tuple[list[Segment], dict[int, Segment]]:
    """Return all segments in order of their numbers, and the first segment of each block id.

    The first segment of the list is the entry (number 0).
    """
    by_block = {id: _cut(block) for id, block in graph.blocks.items()}
    first = {id: segments[0] for id, segments in by_block.items()}
    for id, block in graph.blocks.items():
        by_block[id][-1].targets = [first[successor] for successor in block.successors]
    _assign_levels(first[graph.entry], first)
    reachable = [s for segments in by_block.values() for s in segments if s.level >= 0]
    reachable.sort(key=lambda s: (s.level, s is not first[graph.entry]))
    for number, segment in enumerate(reachable):
        segment.number = number
    return reachable, first


def _assign_levels(entry: Segment, first: dict[int, Segment]) -> None:
    """Give each segment its level, forward from the entry.

    Where edges of different level merge, the lowest counts: unwinding out of a handler ends the handling of its
    exception (the block stack of 3.7 to 3.10 does it implicitly).
    """
    pending = [(entry, 0)]
    while pending:
        segment, level = pending.pop()
        level += segment.enters
        if 0 <= segment.level <= level:
            continue
        segment.level = level
        if segment.region is not None and _raises(segment):
            pending.append((first[segment.region.handler], level))
        leaves = bool(segment.ops) and segment.ops[-1].kind is o.POP_EXCEPT
        if leaves > level:
            raise CannotDecompile(FALLBACK, "the handling of an exception ends where none is handled")
        pending.extend((target, level - leaves) for target in segment.targets)


def _raises(segment: Segment) -> bool:
    """Return whether an exception can come from a segment: not from the empty one that a ``POP_EXCEPT`` leaves."""
    return bool(segment.ops) or segment.end not in (FALL, g.JUMP)
