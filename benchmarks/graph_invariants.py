"""Invariants of control-flow graphs, for tests and scripts."""

from depyf.bytecode.operations import TERMINATORS
from depyf.cfg.graph import BRANCH, FOR_ITER, JUMP, RAISE, RERAISE, RETURN, Cfg, entry_depths

#: The number of successors by terminator.
_SUCCESSORS = {JUMP: 1, BRANCH: 2, FOR_ITER: 2, RETURN: 0, RAISE: 0, RERAISE: 0}
#: What a handler can start with: see ``bytecode/operations.py``.
_HANDLER_STARTS = {"PUSH_EXC_INFO", "COPY", "CONST", "END_ASYNC_FOR", "SWAP", "ROT", "POP", "LIST_APPEND"}


class BrokenGraph(ValueError):
    """A graph that breaks an invariant."""


def check(cfg: Cfg) -> None:
    """Check a graph as it was built.

    Raises:
        BrokenGraph, StackMismatch: an invariant is violated.
    """
    check_edges(cfg)
    for block in cfg.blocks.values():
        if block.handler is not None:
            handler = cfg.blocks[block.handler]
            if not handler.ops or handler.ops[0].kind not in _HANDLER_STARTS:
                raise BrokenGraph(f"handler {handler} of {block} starts with {handler.ops[:1]}")
    if set(entry_depths(cfg)) != set(cfg.blocks):
        raise BrokenGraph("unreachable blocks")


def check_edges(cfg: Cfg) -> None:
    """Check that the edges of a graph lead to its blocks and fit their terminators; they do after every pass.

    Raises:
        BrokenGraph: they do not.
    """
    if cfg.entry not in cfg.blocks:
        raise BrokenGraph(f"the entry B{cfg.entry} is not there")
    for id, block in cfg.blocks.items():
        if id != block.id:
            raise BrokenGraph(f"{block} has the id {id}")
        if len(block.successors) != _SUCCESSORS.get(block.end, 0):
            raise BrokenGraph(f"{block} has the wrong number of successors")
        for successor in block.successors:
            if successor not in cfg.blocks:
                raise BrokenGraph(f"{block} goes to B{successor}, which is not there")
        for op in block.ops:
            if op.kind in TERMINATORS:
                raise BrokenGraph(f"{op!r} is in the middle of {block}")
        if block.handler is not None and block.handler not in cfg.blocks:
            raise BrokenGraph(f"handler of {block} is not there")
