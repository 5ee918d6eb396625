"""``except*``: its handlers are given the shape that those of ``except`` have.

The compiler splits the exception group before each clause, goes on to the next clause with the rest, collects
in a list what the clauses raise, and combines that after the last one::

    PUSH_EXC_INFO; BUILD_LIST 0; COPY 2                 previous, original, raised, rest
    <types>; CHECK_EG_MATCH; COPY 1; if None: POP; to the next clause
    STORE e; <body>; CONST None; STORE e; DELETE e; to the next clause
    handler of the body: CONST None; STORE e; DELETE e; LIST_APPEND 3; POP; to the next clause
    ...
    LIST_APPEND 1; PREP_RERAISE_STAR; COPY 1; if not None: SWAP 2; POP_EXCEPT; RERAISE
    POP; POP_EXCEPT; to what follows

As statements the clauses are alternatives all the same: each has a test, a body, and an end from which control goes
to what follows.  :func:`desugar_except_star` writes the graph like that, so everything that knows ``except`` knows
``except*`` too.  That the text means the first form again is for the proof to say, which never sees the second.
"""

from __future__ import annotations

from ...bytecode.operations import Op
from ...cfg.graph import Block, Region
from ..errors import STRUCTURE, CannotDecompile
from ..structure.analysis import RegionCfg, straight
from .duplicate_ends import thread_jumps

#: What follows CHECK_EG_MATCH: whether anything matched.
_MATCHED = ["COPY", "CONST", "IS"]
_STARTS = (["BUILD_LIST", "COPY"], ["COPY", "BUILD_LIST", "SWAP"])
_FORGET = ["CONST", "STORE", "DELETE"]


def desugar_except_star(cfg: RegionCfg) -> None:
    """Rewrite all ``except*`` in a graph; ``cfg.groups`` has the ids of their handlers."""
    if "CHECK_EG_MATCH" not in cfg.present or not any(_start(block) for block in cfg.blocks.values()):
        return
    cfg.prune()
    _merge_list_appends(cfg)
    for id in {block.handler for block in cfg.blocks.values()}:
        if id is not None and _start(cfg.blocks[id]):
            _Statement(cfg, id).rewrite()
            cfg.groups.add(id)
    if cfg.groups:
        cfg.prune()


def _start(block: Block) -> int:
    """Count the operations after ``PUSH_EXC_INFO`` that set the stack up for ``except*``; 0 for other handlers."""
    kinds = [op.kind for op in block.ops[:4]]
    for wanted in _STARTS:
        if kinds[: 1 + len(wanted)] == ["PUSH_EXC_INFO", *wanted]:
            if kinds[2] == "COPY" and block.ops[2].arg == 1:
                return 0  # ``except (types := [])``: copied is the list, not the exception
            return len(wanted)
    return 0


def _merge_list_appends(cfg: RegionCfg) -> None:
    """Merge the copies of ``LIST_APPEND 1`` after the last clause: 3.13 puts one on each edge there."""
    predecessors = cfg.predecessors()
    for id, block in cfg.blocks.items():
        if not block.ops or block.ops[0].kind != "PREP_RERAISE_STAR":
            continue
        before = [cfg.blocks[p] for p in predecessors[id]]
        if not all(n.end == "jump" and n.ops and n.ops[-1].kind == "LIST_APPEND" for n in before):
            raise CannotDecompile(STRUCTURE, "what a clause of except* leaves is not kept")
        block.ops = [before[0].ops[-1], *block.ops]
        for other in before:
            other.ops = other.ops[:-1]
    thread_jumps(cfg)


def _check(block: Block) -> int:
    """Return the index at which a block tests the types of a clause; -1 if it does not."""
    ops = block.ops
    if block.end == "branch" and [op.kind for op in ops[-4:]] == ["CHECK_EG_MATCH", *_MATCHED] and ops[-2].arg is None:
        return len(ops) - 4
    return -1


def _on_none(block: Block) -> tuple[int, int]:
    """Return the two targets of a test for ``None``: if it is, and if it is not."""
    true, false = block.successors
    return (false, true) if block.ops[-1].arg else (true, false)


def _forgets(ops: list[Op]) -> bool:
    """Return whether operations are ``e = None; del e``."""
    return (
        [op.kind.partition("_")[0] for op in ops] == _FORGET
        and ops[0].arg is None and ops[1].arg == ops[2].arg
    )


class _Statement:
    """One ``except*`` while it is rewritten.

    Args:
        cfg: the graph.
        handler: id of its handler.
    """

    def __init__(self, cfg: RegionCfg, handler: int) -> None:
        self.cfg = cfg
        self.handler = handler

    def rewrite(self) -> None:
        blocks = self.cfg.blocks
        clauses: list[tuple[Block, int, int, int]] = []
        at = self.handler
        while True:
            test = self.test(at)
            missed, matched = _on_none(test)
            at = self.after_first(missed, "POP")
            clauses.append((test, matched, missed, at))
            if [op.kind for op in blocks[at].ops] == ["LIST_APPEND", "PREP_RERAISE_STAR", *_MATCHED]:
                break
        region, outside = self.outside(blocks[at])
        for test, matched, missed, following in clauses:
            self.end_body(matched, missed, following, region, outside)
            index = _check(test)
            check = test.ops[index]
            test.ops[index:] = [Op("CHECK_EXC_MATCH", None, check.offset, check.line)]
            test.successors = [matched, following]
        del blocks[self.handler].ops[1 : 1 + _start(blocks[self.handler])]
        end = blocks[at]
        end.ops, end.end, end.successors, end.arg = [], "reraise", [], None

    def test(self, start: int) -> Block:
        """Return the test of the clause that starts there; its types may be any expression."""
        blocks = self.cfg.blocks
        seen: set[int] = set()
        work = [start]
        while work:
            id = work.pop()
            if _check(blocks[id]) >= 0:
                return blocks[id]
            if id not in seen:
                seen.add(id)
                work.extend(blocks[id].successors)
        raise CannotDecompile(STRUCTURE, "a clause of except* without a test")

    def after_first(self, id: int, kind: str) -> int:
        """Return the block after the first operation of one, which must be of that kind."""
        block = self.cfg.blocks[id]
        if not block.ops or block.ops[0].kind != kind:
            raise CannotDecompile(STRUCTURE, "a way through except*")
        if len(block.ops) > 1 or block.end != "jump":
            return self.cfg.split(id, 1)
        return block.successors[0]

    def outside(self, end: Block) -> tuple[Region | None, int]:
        """Return the region, and the id of the block, in which control goes on when nothing is left to raise."""
        after, _ = _on_none(end)
        after = self.after_first(after, "POP")
        return self.cfg.blocks[after].region, self.after_first(after, "POP_EXCEPT")

    def end_body(self, matched: int, missed: int, following: int, region: Region | None, outside: int) -> None:
        """Lead the body of a clause out of the statement, no longer to what follows the clause."""
        cfg = self.cfg
        first = cfg.blocks[matched].ops[0]
        ends: list[Block] = []
        for id, block in list(cfg.blocks.items()):
            if id == missed or following not in block.successors:
                continue
            if [op.kind for op in block.ops[-2:]] == ["LIST_APPEND", "POP"] and block.ops[-2].arg == 3:
                self.end_handler(id, block)
            else:
                ends.append(block)
        if first.kind != "POP":
            for block in ends:
                if block.end != "jump" or not _forgets(block.ops[-3:]) or block.ops[-1].arg != first.arg:
                    raise CannotDecompile(STRUCTURE, "a body of except* that keeps its exception")
                block.ops.insert(len(block.ops) - 3, Op("POP_EXCEPT", None, -1, block.ops[-1].line))
                block.successors = [outside]
        elif ends:
            left = cfg.add(ends[0], [Op("POP_EXCEPT", None, -1, None)], "jump", [outside], region)
            for block in ends:
                block.successors = [left.id if succ == following else succ for succ in block.successors]

    def end_handler(self, id: int, block: Block) -> None:
        """End the handler of a clause's body: one that forgets the name, or none."""
        if _forgets(block.ops[:-2]):
            block.ops, block.end, block.successors = block.ops[:-2], "reraise", []
            return
        if len(block.ops) > 2:
            raise CannotDecompile(STRUCTURE, "the handler of a body of except*")
        for other in self.cfg.blocks.values():
            if other.handler == id:
                other.region = block.region
        block.end, block.successors = "reraise", []


# --- kinds of exception handlers ---------------------------------------------------------------------
# A handler is recognised by its first operations: ``PUSH_EXC_INFO; WITH_EXCEPT_START`` begins that of a ``with``,
# ``PUSH_EXC_INFO; ...; CHECK_EXC_MATCH`` that of an ``except``, ``CONST None; STORE e; DELETE e; RERAISE`` the clean-up
# of ``except E as e``. Handlers of handlers, which only restore the exception that was handled before, are transparent:
# the region around them counts.
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
    """Record the kind of each handler in ``cfg.kinds``, and remove the regions of transparent ones."""
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
