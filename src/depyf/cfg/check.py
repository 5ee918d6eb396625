"""Invariants of a graph; the tests and ``scripts/check_canonical.py`` switch it on."""

from __future__ import annotations

from .graph import BRANCH, FOR_ITER, JUMP, RAISE, RERAISE, RETURN, Graph
from .stack import entry_depths

_WAYS = {JUMP: 1, BRANCH: 2, FOR_ITER: 2, RETURN: 0, RAISE: 0, RERAISE: 0}
#: What a handler can start with: see ``bytecode/operations.py``.
_HANDLER_STARTS = {"PUSH_EXC_INFO", "COPY", "CONST", "END_ASYNC_FOR", "SWAP", "ROT", "POP", "LIST_APPEND"}
_ENDS = {"JUMP", "BRANCH", "FOR_ITER", "RETURN", "RAISE", "RERAISE"}


class BrokenGraph(ValueError):
    """A graph that breaks an invariant."""


def check(graph: Graph) -> None:
    """Raise :class:`BrokenGraph` or :class:`~depyf.cfg.stack.StackMismatch` if something is wrong."""
    for block in graph.blocks.values():
        if len(block.successors) != _WAYS[block.end]:
            raise BrokenGraph(f"{block} has the wrong number of successors")
        for successor in block.successors:
            if successor not in graph.blocks:
                raise BrokenGraph(f"{block} goes to B{successor}, which is not there")
        for op in block.ops:
            if op.kind in _ENDS:
                raise BrokenGraph(f"{op!r} is in the middle of {block}")
        if block.region is None:
            continue
        handler = graph.blocks.get(block.region.handler)
        if handler is None:
            raise BrokenGraph(f"handler of {block} is not there")
        if not handler.ops or handler.ops[0].kind not in _HANDLER_STARTS:
            raise BrokenGraph(f"handler {handler} of {block} starts with {handler.ops[:1]}")
    if set(entry_depths(graph)) != set(graph.blocks):
        raise BrokenGraph("unreachable blocks")
