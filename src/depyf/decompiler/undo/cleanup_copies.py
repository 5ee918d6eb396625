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
from ...cfg.graph import Block
from ..errors import STRUCTURE, CannotDecompile
from ..structure.analysis import NOWHERE, UNWINDING, RegionCfg, cleans_up, handler_steps, is_leave, same_op, straight

if TYPE_CHECKING:
    from ..bodies import Body


class _Members:
    """Blocks by region.

    While copies are cut blocks are added, but none moves to another region.
    """

    def __init__(self, cfg: RegionCfg) -> None:
        self.cfg = cfg
        self.by_region: dict[int | None, list[int]] = {}
        self.entered = 0  # ids below it are in
        #: regions that ``async with`` leads into
        self.asynchronous: set[int] = set()
        for block in cfg.blocks.values() if "BEFORE_ASYNC_WITH" in cfg.present else ():
            enters = next((op.kind for op in reversed(block.ops) if op.kind in _ENTERS), None)
            if enters == "BEFORE_ASYNC_WITH":
                regions = (cfg.blocks[succ].handler for succ in block.successors)
                self.asynchronous.update(region for region in regions if region is not None)

    def inside(self, region: int) -> set[int]:
        """Return the blocks in the region, or in one inside it."""
        cfg = self.cfg
        for id in range(self.entered, cfg.next_id):
            if id in cfg.blocks:
                self.by_region.setdefault(cfg.blocks[id].handler, []).append(id)
        self.entered = cfg.next_id
        result: set[int] = set()
        seen = {region}
        work = [region]
        while work:
            for id in self.by_region.get(work.pop(), ()):
                result.add(id)
                if id in self.by_region and id not in seen:  # a handler
                    seen.add(id)
                    work.append(id)
        return result


_ENTERS = ("BEFORE_WITH", "BEFORE_ASYNC_WITH")


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
    members = _Members(cfg)
    regions = sorted(around, key=lambda r: (cfg.kinds[r] == "finally", -len(around[r]), starts.get(r, 0.0)))
    for region in regions:
        kind = cfg.kinds[region]
        if kind == "async for":
            handler = blocks[region]
            if len(handler.ops) > 1 or handler.end != "jump":
                cfg.split(region, 1)
            continue
        inside = members.inside(region)
        parent = blocks[region].region
        if kind == "with":
            cfg.resumes[region] = _with_resume(cfg, region)
        leaves: dict[int, int] = {}
        for id in sorted(inside):
            block = blocks[id]
            for position, succ in enumerate(block.successors):
                if succ in inside or succ == region:
                    continue
                leave = leaves.get(succ)
                if leave is None:
                    continuation = _after_copy(cfg, kind, region, succ, region in members.asynchronous)
                    first = blocks[succ].ops[0] if blocks[succ].ops else None
                    offset = -1 if first is None else first.offset
                    leaving = cfg.add(block, [Op("LEAVE", kind, offset, None, region)], "jump", [continuation], parent)
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
        after = _after_fixed(cfg, "named", start, False)
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


def _with_resume(cfg: RegionCfg, region: int) -> int:
    """Lead the handler of a ``with`` to where control goes after an exception is swallowed, and return that block."""
    blocks = cfg.blocks
    block = blocks[region]
    hops = 0
    while block.end == "jump" and hops < 4:
        block = blocks[block.successors[0]]
        hops += 1
    if block.end != "branch":
        raise CannotDecompile(STRUCTURE, "the handler of a with statement")
    at = block.successors[0]
    wanted = ["POP", "POP_EXCEPT", "POP", "POP"]
    seen: set[int] = set()
    while wanted:
        block = blocks[at]
        if at in seen:  # a loop, or an end, where nothing is popped
            raise CannotDecompile(STRUCTURE, "the handler of a with statement")
        seen.add(at)
        index = 0
        while wanted and index < len(block.ops):
            if block.ops[index].kind != wanted.pop(0):
                raise CannotDecompile(STRUCTURE, "the handler of a with statement")
            index += 1
        if index < len(block.ops) or block.end != "jump":
            at = cfg.split(block.id, index)
        else:
            at = block.successors[0]
    # the handler is never walked: it leads straight to where control resumes
    handler = blocks[region]
    handler.ops = []
    handler.end, handler.successors = "jump", [at]
    return at


def _after_copy(cfg: RegionCfg, kind: str, region: int, start: int, asynchronous: bool) -> int:
    """Return the block that control goes to after the copy of the clean-up that starts at ``start``."""
    if kind == "except" or kind == "except*":
        return start
    if kind == "finally":
        return _after_finally(cfg, region, start)
    return _after_fixed(cfg, kind, start, asynchronous)


_EXIT = ("CONST", "CONST", "CONST", "CALL", "POP")
_ASYNC_EXIT = ("CONST", "CONST", "CONST", "CALL", "AWAIT", "POP")


def _after_fixed(cfg: RegionCfg, kind: str, start: int, asynchronous: bool) -> int:
    blocks = cfg.blocks
    at = start
    index = 0
    step = 0
    first = True
    while True:
        block = blocks[at]
        while index >= len(block.ops):
            if block.end != "jump":
                raise CannotDecompile(STRUCTURE, f"a way out of {kind}")
            at, index = block.successors[0], 0
            block = blocks[at]
        op = block.ops[index]
        if first and op.kind == "SWAP" and op.arg == 2:
            index += 1
            first = False
            continue
        first = False
        if kind == "with":
            wanted: tuple[str, ...] = _ASYNC_EXIT if asynchronous else _EXIT
            good = op.kind == wanted[step]
            if op.kind == "CALL" and op.arg != (3, ()):
                good = False
        else:
            wanted = ("POP_EXCEPT", "CONST", "STORE", "DELETE")
            good = op.kind.startswith(wanted[step])
        if not good:
            raise CannotDecompile(STRUCTURE, f"a way out of {kind}")
        index += 1
        step += 1
        if step == len(wanted):
            break
    block = blocks[at]
    if index >= len(block.ops) and block.end == "jump":
        return block.successors[0]
    return cfg.split(at, index)


def _after_finally(cfg: RegionCfg, region: int, start: int) -> int:
    """Return the block after the copy of the clean-up of a ``finally`` that starts at ``start``."""
    copy = _Copy(cfg, region)
    copy.compare(start)
    if not copy.ends:
        if not copy.leaves:
            raise CannotDecompile(STRUCTURE, "a way out of finally")
        if region not in cfg.nowhere:
            head = cfg.blocks[region]
            cfg.nowhere[region] = cfg.add(head, [], NOWHERE, [], head.region).id
        return cfg.nowhere[region]
    copy.ends.sort(key=lambda end: (cfg.order[end[0]], end[1]))
    id, index = copy.ends[-1]
    block = cfg.blocks[id]
    if index >= len(block.ops) and block.end == "jump":
        return block.successors[0]
    return cfg.split(id, index)


class _Copy:
    """The clean-up of a ``finally`` and a possible copy of it, walked in step.

    Attributes:
        ends: ``(block, index)`` of each place where the copy ends: the clean-up re-raises there.
        leaves: whether the clean-up can be left before its end: by ``return``, ``raise`` or a jump.
    """

    def __init__(self, cfg: RegionCfg, region: int) -> None:
        self.cfg = cfg
        self.blocks = cfg.blocks
        self.region = region
        self.around = cfg.blocks[region].handler
        self.ends: list[tuple[int, int]] = []
        self.leaves = False
        #: ``with`` statements in the clean-up and in its copy: if nothing else ends it, what they swallow may
        self._withs: set[tuple[int, int]] = set()
        self._pending: list[tuple[int, int, int, int]] = []
        self._steps = 0

    def compare(self, start: int) -> None:
        """Walk all paths through the clean-up and the copy.

        Raises:
            CannotDecompile: they are not copies.
        """
        self._pending.append((self.region, 1, start, 0))
        seen: set[tuple[int, int, int, int]] = set()
        while self._pending or (self._withs and not self.ends):
            if not self._pending:
                self._pending = [(one, 0, other, 0) for one, other in self._withs]
                self._withs = set()
            places = self._pending.pop()
            if places not in seen:
                seen.add(places)
                self._compare_from(*places)
            if len(seen) > 4000:
                raise CannotDecompile(STRUCTURE, "a finally that is too large")

    def _compare_from(self, h: int, i: int, c: int, j: int) -> None:
        """Compare the two until the path ends or parts.

        Args:
            h: block in the clean-up.
            i: index of the operation in it.
            c: block in the copy.
            j: index of the operation in it.
        """
        while True:
            self._steps += 1
            if self._steps > 20000:
                raise CannotDecompile(STRUCTURE, "a finally that is too large")
            self._note_with(self.blocks[h].handler, self.blocks[c].handler)
            h, i = self._over_jumps(h, i)
            handling = self.blocks[h]
            if i >= len(handling.ops) and handling.end == "reraise" and handling.handler == self.around:
                self.ends.append((c, j))
                return
            c, j = self._over_jumps(c, j)
            copied = self.blocks[c]
            skip = _unwinding(_ahead(self.cfg, h, i, 4))
            if skip:
                h, i = _further(self.cfg, h, i, skip)
                j += _dropping(copied.ops, j, self.blocks[h].ops, i)
            elif i < len(handling.ops) and j < len(copied.ops) and same_op(handling.ops[i], copied.ops[j]):
                i, j = i + 1, j + 1
            elif i < len(handling.ops) or j < len(copied.ops):
                raise CannotDecompile(STRUCTURE, "a way out of finally")
            else:
                self._part(handling, copied)
                return

    def _part(self, handling: Block, copied: Block) -> None:
        """Go on with the successors of two blocks that were walked to their ends."""
        if handling.end != copied.end or handling.arg != copied.arg:
            raise CannotDecompile(STRUCTURE, "a way out of finally")
        if handling.end in ("return", "raise"):
            self.leaves = True
        for one, other in zip(handling.successors, copied.successors):
            if one == other:
                self.leaves = True
            else:
                self._pending.append((one, 0, other, 0))

    def _note_with(self, one: int | None, other: int | None) -> None:
        if one is not None and other is not None and one != other and one in self.cfg.resumes \
                and other in self.cfg.resumes:
            self._withs.add((one, other))

    def _over_jumps(self, id: int, index: int) -> tuple[int, int]:
        block = self.blocks[id]
        while index >= len(block.ops) and block.end == "jump" and block.successors[0] != id:
            id, index = block.successors[0], 0
            block = self.blocks[id]
        return id, index


def _ahead(cfg: RegionCfg, id: int, index: int, count: int) -> list[Op]:
    """Return the next operations, over plain jumps."""
    block = cfg.blocks[id]
    ops = block.ops[index : index + count]
    for _ in range(count):
        if len(ops) >= count or block.end != "jump":
            break
        block = cfg.blocks[block.successors[0]]
        ops = [*ops, *block.ops[: count - len(ops)]]
    return ops


def _further(cfg: RegionCfg, id: int, index: int, count: int) -> tuple[int, int]:
    """Return the place so many operations on, over plain jumps."""
    while index + count > len(cfg.blocks[id].ops):
        count -= len(cfg.blocks[id].ops) - index
        id, index = cfg.blocks[id].successors[0], 0
    return id, index + count


def _unwinding(ops: list[Op]) -> int:
    """Count the next operations that take the exception of a ``finally`` off the stack."""
    kinds = [op.kind for op in ops]
    if kinds[:2] == ["POP", "POP_EXCEPT"]:
        return 2
    if kinds == ["SWAP", "POP", "SWAP", "POP_EXCEPT"]:
        return 4
    return 0


def _dropping(ops: list[Op], index: int, others: list[Op], other: int) -> int:
    """Count the operations that take off the value that was to be returned, where ``finally`` goes elsewhere."""
    kinds = [op.kind for op in ops[index : index + 2]]
    if kinds == ["SWAP", "POP"]:
        return 2
    if kinds[:1] == ["POP"] and ops[index].arg is None:
        if other >= len(others) or others[other].kind != "POP" or others[other].arg is not None:
            return 1
    return 0
