"""Which blocks control can come to."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .walk import Walker


def reach(walker: Walker, starts: Iterable[int], avoid: Collection[int]) -> set[int]:
    """Return the blocks that control can come to from ``starts`` (these included) without passing one of ``avoid``."""
    return set(reached(walker, starts, avoid))


def reached(walker: Walker, starts: Iterable[int], avoid: Collection[int]) -> Iterator[int]:
    """Yield them, each once and the nearest first: for those who may know enough after a few."""
    seen: set[int] = set()
    work = deque(id for id in starts if id not in avoid)
    blocks = walker.cfg.blocks
    while work:
        id = work.popleft()
        if id in seen:
            continue
        seen.add(id)
        if len(seen) % 8 == 0:
            walker.spend(1)
        yield id
        work.extend(succ for succ in blocks[id].successors if succ not in seen and succ not in avoid)
