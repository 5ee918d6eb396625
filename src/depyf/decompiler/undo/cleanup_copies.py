"""Clean-up code put back where it was written once.

CPython compiles the clean-up of a ``finally``, of a ``with`` and of ``except E as n`` once for the
exception and once more on every exit of the protected body.  :func:`outline_cleanups` finds those copies by
walking the handler and the exit in step, and replaces each by a single ``LEAVE`` operation, so that
the resulting graph contains each body and each clean-up once.

Before (``try: a() finally: b()``, then ``c()``)::

    B1 [a()] jump B2, handled by B3;  B2 [b(); c()] return;  B3 [PUSH_EXC_INFO; b()] reraise

After::

    B1 [a()] jump B4, handled by B3;  B4 [LEAVE finally B3] jump B2;  B2 [c()] return;  B3 [PUSH_EXC_INFO; b()] ...
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...bytecode.operations import Op
from ..errors import STRUCTURE, CannotDecompile
from ..structure.analysis import NOWHERE, UNWINDING, RegionCfg, cleans_up, handler_steps, is_leave, same_op, straight

if TYPE_CHECKING:
    from ..bodies import Body


def outline_cleanups(cfg: RegionCfg) -> None:
    """Replace each copy of a clean-up by ``LEAVE``."""
    blocks = cfg.blocks
    # inside out: a region comes before those around it
    # clean-up code may contain statements with clean-up of their own: those are cut in all copies first, and
    # of two ``finally`` on one level, the one that starts first contains copies of the other
    around = {region: cfg.handlers_around(region) for region in cfg.kinds}
    begins: dict[int, float] = {}
    for id, block in blocks.items():
        if block.handler is not None:
            begins[block.handler] = min(begins.get(block.handler, 1e9), cfg.order[id])
    starts: dict[int, float] = {}
    for region, begin in begins.items():
        for outer in around[region]:
            starts[outer] = min(starts.get(outer, 1e9), begin)
    members: dict[int | None, list[int]] = {}  # blocks by region: none moves to another while copies are cut
    entered = 0  # ids below it are in
    regions = sorted(around, key=lambda r: (cfg.kinds[r] == "finally", -len(around[r]), starts.get(r, 0.0)))
    for region in regions:
        kind = cfg.kinds[region]
        if kind == "async for":
            handler = blocks[region]
            if len(handler.ops) > 1 or handler.end != "jump":
                cfg.split(region, 1)
            continue
        for id in range(entered, cfg.next_id):
            if id in blocks:
                members.setdefault(blocks[id].handler, []).append(id)
        entered = cfg.next_id
        inside: set[int] = set()
        handlers = [region]
        while handlers:
            found = [id for id in members.get(handlers.pop(), ()) if id not in inside]
            inside.update(found)
            handlers += [id for id in found if id in members]
        parent = blocks[region].region
        if kind == "with":
            test = straight(cfg, region)[1]
            if test.end != "branch":
                raise CannotDecompile(STRUCTURE, "the handler of a with statement")
            resume = _after(cfg, test.successors[0], _SWALLOWED, "the handler of a with statement")
            # (The handler is never walked: it leads straight to where control resumes.)
            handler, cfg.resumes[region] = blocks[region], resume
            handler.ops, handler.end, handler.successors = [], "jump", [resume]
        leaves: dict[int, int] = {}
        for id in sorted(inside):
            block = blocks[id]
            for position, succ in enumerate(block.successors):
                if succ in inside or succ == region:
                    continue
                leave = leaves.get(succ)
                if leave is None:
                    after = (_after_finally(cfg, region, succ) if kind == "finally" else succ if kind not in _EXITS else
                             _after(cfg, succ, _EXITS[kind], f"a way out of {kind}"))
                    first = blocks[succ].ops[0] if blocks[succ].ops else None
                    offset = -1 if first is None else first.offset
                    leaving = cfg.add(block, [Op("LEAVE", kind, offset, None, region)], "jump", [after], parent)
                    leaving.line = blocks[succ].line if first is None else first.line
                    leave = leaves[succ] = leaving.id
                block.successors[position] = leave
        if kind == "finally":
            _end_finally(cfg, region)
    _leave_empty_named(cfg)
    # a running handler ends at POP_EXCEPT: the rest is a block of its own
    for id in list(blocks) if "POP_EXCEPT" in cfg.present else ():
        block = blocks[id]
        for index, op in enumerate(block.ops):
            if op.kind == "POP_EXCEPT":
                if index + 1 < len(block.ops) or block.end != "jump":
                    cfg.split(id, index + 1)
                break


def place_returns(body: Body) -> None:
    """Give each ``return`` of a constant after a clean-up the place at which it was written.

    What comes after a clean-up has the place of that. Before it the compiler leaves a ``NOP``, or what drops an
    iterator or ends a handler, with the place of the ``return`` (``compiler_return`` in compile.c).
    """
    cfg = body.cfg
    evidence = body.evidence if cfg.handles else None
    if evidence is None or not evidence.has_columns:
        return
    found: dict[int, int] = {}
    for block in cfg.blocks.values():
        if not is_leave(block) or not cleans_up(block.ops[0]):
            continue
        ops, end = straight(cfg, block.id)
        if end.end == "return" and end.end_op is not None and end.ops and end.ops[-1].kind == "CONST" and all(
                op.kind in UNWINDING for op in ops[:-1]) and not evidence.is_of_exit(end.end_op.offset):
            place = evidence.return_before(block.ops[0].offset, end.ops[-1].arg)
            if place is not None or end.id not in found:
                found[end.id] = -1 if place is None else place
    for id, offset in found.items():
        end = cfg.blocks[cfg.split(id, len(cfg.blocks[id].ops) - 1)]
        position = evidence.position(offset)
        end.line = None if position is None else position.line
        end.ops = [Op("CONST", end.ops[0].arg, offset, end.line)]
        end.end_op = Op("RETURN", None, offset, end.line)


def _leave_empty_named(cfg: RegionCfg) -> None:
    """Cut the clean-up of ``except E as n: pass``: no instruction is left that its region could cover."""
    blocks = cfg.blocks
    for test in list(blocks.values()):
        if test.end != "branch" or not test.ops or test.ops[-1].kind != "CHECK_EXC_MATCH":
            continue
        body = blocks[test.successors[0]]
        ops, _ = straight(cfg, body.id)
        if [op.kind.partition("_")[0] for op in ops[:5]] != ["STORE", "POP", "CONST", "STORE", "DELETE"]:
            continue
        stored, pop, none, cleared, deleted = ops[:5]
        if pop.kind != "POP_EXCEPT" or none.arg is not None or not stored.arg == cleared.arg == deleted.arg:
            continue
        start = cfg.split(body.id, 1) if len(body.ops) > 1 else body.successors[0]
        after = _after(cfg, start, _EXITS["named"], "a way out of named")
        leave = cfg.add(body, [Op("LEAVE", "named", -1, pop.line, -1)], "jump", [after], body.region)
        body.successors = [leave.id]
    cfg.prune()


def _end_finally(cfg: RegionCfg, region: int) -> None:
    """Lead all ends of the clean-up of a ``finally`` to one block."""
    blocks = cfg.blocks
    head = blocks[region]
    end = cfg.add(head, [], "reraise", [], head.region)
    cfg.ends[region] = end.id
    # the clean-up ends where it re-raises with only its own exception being handled
    copies: set[int] = set()
    seen = set()
    work = [(region, 0)]
    while work:
        at, depth = work.pop()
        if at in seen or at == end.id:
            continue
        seen.add(at)
        block = blocks[at]
        if block.handler is not None and block.handler != head.handler and block.handler not in seen:
            work.append((block.handler, depth))
        depth += sum(handler_steps(block))
        if block.end == "reraise" and depth == 1:
            block.end, block.successors, block.arg = "jump", [end.id], None
            if not block.ops:
                copies.add(at)
        else:
            work.extend((succ, depth) for succ in block.successors)
    # 3.13 copies the ``RERAISE`` to each exit of a loop: they are one place
    for block in blocks.values() if copies else ():
        if not copies.isdisjoint(block.successors):
            block.successors = [end.id if succ in copies else succ for succ in block.successors]


#: The operations of the clean-up of a ``with`` (AWAIT: of an ``async with``), and of ``except E as n``, on a way out.
_EXITS = {
    "with": ("CONST", "CONST", "CONST", "CALL", "AWAIT", "POP"),
    "named": ("POP_EXCEPT", "CONST", "STORE_", "DELETE_"),
}
#: What takes an exception that a ``with`` has swallowed off the stack, and that of a ``finally``.
_SWALLOWED = ("POP", "POP_EXCEPT", "POP", "POP")
_OF_FINALLY = (("POP", "POP_EXCEPT"), ("SWAP", "POP", "SWAP", "POP_EXCEPT"))


def _over(cfg: RegionCfg, at: int, index: int, kinds: tuple[str, ...]) -> tuple[int, int] | None:
    """Return the place after operations of these kinds, over plain jumps; ``None`` where others are."""
    for kind in kinds:
        at, index = cfg.settled(at, index)
        ops = cfg.blocks[at].ops
        actual = ops[index].kind if index < len(ops) else ""
        if kind == "AWAIT" and actual != kind:
            continue  # (It is no ``async with``.)
        if actual != kind and not (kind[-1] == "_" and actual.startswith(kind)) or (
                kind == "CALL" and ops[index].arg != (3, ())):
            return None
        index += 1
    return at, index


def _after(cfg: RegionCfg, start: int, kinds: tuple[str, ...], what: str) -> int:
    """Return the block that control goes to after operations of these kinds; ``what`` they are, for the error."""
    at, _ = cfg.settled(start)
    # (Below a value that is to be returned.)
    swaps = [(op.kind, op.arg) for op in cfg.blocks[at].ops[:1]] == [("SWAP", 2)]
    place = _over(cfg, at, int(swaps), kinds)
    if place is None:
        raise CannotDecompile(STRUCTURE, what)
    return _block_at(cfg, *place)


def _block_at(cfg: RegionCfg, id: int, index: int) -> int:
    """Return the block that begins at a place."""
    block = cfg.blocks[id]
    return block.successors[0] if index >= len(block.ops) and block.end == "jump" else cfg.split(id, index)


def _after_finally(cfg: RegionCfg, region: int, start: int) -> int:
    """Return the block after the copy of the clean-up of a ``finally`` that starts at ``start``.

    All paths through the clean-up and the copy are walked in step.

    Raises:
        CannotDecompile: they are not copies.
    """
    blocks = cfg.blocks
    around = blocks[region].handler
    ends: list[tuple[int, int]] = []  # places in the copy where the clean-up re-raises
    leaves = False  # whether it can be left before: by ``return``, ``raise`` or a jump
    #: ``with`` statements in the clean-up and in its copy: if nothing else ends it, what they swallow may
    withs: set[tuple[int, int]] = set()
    pending = [(region, 1, start, 0)]  # block and index in the clean-up, and in the copy
    seen: set[tuple[int, int, int, int]] = set()
    while pending or withs and not ends:
        if not pending:
            pending, withs = [(one, 0, other, 0) for one, other in withs], set()
        places = pending.pop()
        if places in seen:
            continue
        seen.add(places)
        if len(seen) > 20000:
            raise CannotDecompile(STRUCTURE, "a finally that is too large")
        h, i, c, j = places
        one, other = blocks[h].handler, blocks[c].handler
        if one is not None and other is not None and one != other and one in cfg.resumes and other in cfg.resumes:
            withs.add((one, other))
        h, i = cfg.settled(h, i)
        handling = blocks[h]
        if i >= len(handling.ops) and handling.end == "reraise" and handling.handler == around:
            ends.append((c, j))
            continue
        c, j = cfg.settled(c, j)
        copied = blocks[c]
        unwound = next(filter(None, (_over(cfg, h, i, kinds) for kinds in _OF_FINALLY)), None)
        if unwound is not None:
            h, i = unwound
            pending.append((h, i, c, j + _dropping(copied.ops, j, blocks[h].ops, i)))
        elif i < len(handling.ops) and j < len(copied.ops) and same_op(handling.ops[i], copied.ops[j]):
            pending.append((h, i + 1, c, j + 1))
        elif i < len(handling.ops) or j < len(copied.ops) or handling.end != copied.end or handling.arg != copied.arg:
            raise CannotDecompile(STRUCTURE, "a way out of finally")
        else:
            leaves = leaves or handling.end in ("return", "raise")
            for succ, copy in zip(handling.successors, copied.successors):
                if succ == copy:
                    leaves = True
                else:
                    pending.append((succ, 0, copy, 0))
    if ends:
        return _block_at(cfg, *max(ends, key=lambda end: (cfg.order[end[0]], end[1])))
    if not leaves:
        raise CannotDecompile(STRUCTURE, "a way out of finally")
    if region not in cfg.nowhere:
        head = blocks[region]
        cfg.nowhere[region] = cfg.add(head, [], NOWHERE, [], head.region).id
    return cfg.nowhere[region]


def _dropping(ops: list[Op], index: int, others: list[Op], other: int) -> int:
    """Count the operations that take off the value that was to be returned, where ``finally`` goes elsewhere."""
    if [op.kind for op in ops[index : index + 2]] == ["SWAP", "POP"]:
        return 2
    drops, drops_other = ([(op.kind, op.arg) for op in one] == [("POP", None)]
                          for one in (ops[index : index + 1], others[other : other + 1]))
    return int(drops and not drops_other)
