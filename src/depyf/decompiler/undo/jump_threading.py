"""Jump threading: edges lead straight through empty blocks.

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
    for block in blocks.values():
        for succ in block.successors:
            if succ in final:
                block.successors = [final.get(each, each) for each in block.successors]
                break
