"""Jumps as they were before the compiler led them past each other: empty blocks and tests out of their region.

Before::

    B1 jump B2;  B2 (nothing) jump B3

After::

    B1 jump B3
"""

from __future__ import annotations

from ..structure.region_cfg import RegionCfg


def thread_jumps(cfg: RegionCfg) -> None:
    """Lead edges straight through blocks that do nothing."""
    blocks = cfg.blocks
    final: dict[int, int] = {}
    for id in blocks:
        at = id
        trail = []
        while at not in final and blocks[at].end == "jump" and not blocks[at].ops and at not in trail:
            trail.append(at)
            at = blocks[at].successors[0]
        at = final.get(at, at)
        for seen in trail:
            final[seen] = at
        final.setdefault(id, at)
    for block in blocks.values():
        block.successors = [final[s] for s in block.successors]


def enclose_tests(cfg: RegionCfg) -> None:
    """Put a test into the region where its value is computed: 3.13 leaves some jumps out of the region around them."""
    blocks = cfg.blocks
    for block in blocks.values():
        for succ in block.successors:
            other = blocks[succ]
            if not other.ops and other.end == "branch" and other.handler != block.handler:
                other.region = block.region
