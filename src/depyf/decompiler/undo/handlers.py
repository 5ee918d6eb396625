"""Exception handlers classified: what statement each is of.

A handler is recognised by its first operations: ``PUSH_EXC_INFO; WITH_EXCEPT_START`` begins that of a ``with``,
``PUSH_EXC_INFO; ...; CHECK_EXC_MATCH`` that of an ``except``, ``CONST None; STORE e; DELETE e; RERAISE`` the clean-up
of ``except E as e``. Handlers of handlers, which only restore the exception that was handled before, are transparent:
the region around them counts.
"""

from __future__ import annotations

from ..errors import STRUCTURE, CannotDecompile
from ..structure.region_cfg import RegionCfg, straight

#: The kind of handlers that only restore the exception that was handled before.
TRANSPARENT = "cleanup"


def _kind(cfg: RegionCfg, id: int) -> str:
    ops, last = straight(cfg, id)
    kinds = [op.kind for op in ops[:8]]
    if kinds[:2] == ["COPY", "POP_EXCEPT"]:
        return TRANSPARENT
    if kinds[:1] == ["END_ASYNC_FOR"]:
        return "async for"
    if kinds[:2] == ["SWAP", "POP"] and last.end == "reraise":
        return TRANSPARENT
    if kinds[:1] == ["CONST"] and len(kinds) == 3 and last.end == "reraise":
        return "named"
    if kinds[:1] != ["PUSH_EXC_INFO"]:
        raise CannotDecompile(STRUCTURE, "an unknown handler")
    if kinds[1:2] == ["WITH_EXCEPT_START"]:
        return "with"
    if kinds[1:2] == ["POP"]:
        return "except"
    seen = set()
    work = [id]
    while work:
        at = work.pop()
        if at in seen:
            continue
        seen.add(at)
        block = cfg.blocks[at]
        for op in block.ops:
            if op.kind == "CHECK_EXC_MATCH":
                return "except"
        work.extend(block.successors)
    return "finally"


def classify_handlers(cfg: RegionCfg) -> None:
    """Tell what each handler is of, in ``cfg.kinds``, and take regions of transparent ones away."""
    blocks = cfg.blocks
    handlers = sorted({n.handler for n in blocks.values() if n.handler is not None})
    transparent = set()
    for id in handlers:
        kind = _kind(cfg, id)
        if kind == TRANSPARENT:
            transparent.add(id)
        else:
            cfg.kinds[id] = "except*" if id in cfg.groups else kind
    for block in blocks.values():
        hops = 0
        while block.handler is not None and block.handler in transparent:
            block.region = blocks[block.handler].region
            hops += 1
            if hops > 100:
                raise CannotDecompile(STRUCTURE, "regions go round")
