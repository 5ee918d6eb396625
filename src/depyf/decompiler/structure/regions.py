"""Exception regions: what each handler is, and clean-up code put back where it was written once.

CPython compiles the clean-up of a ``finally``, of a ``with`` and of ``except E as n`` once for the
exception and once more on every way out of the protected body.  :func:`prepare` finds those copies by
walking the handler and the way out in step, and replaces each by a single ``LEAVE`` operation, so that
what is left is a graph in which each body and each clean-up stands once.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...bytecode.operations import Op
from ...cfg.graph import Block, Cfg

TRANSPARENT = "cleanup"
RERAISE = "reraise"
#: The end of a node that control never comes to.
NOWHERE = "nowhere"


class Untangled(Exception):
    """The regions are not those of compiled statements."""


class RegionCfg(Cfg):
    """A control-flow graph with what is known of its exception handlers.

    Attributes:
        groups: ids of the handlers of ``except*``.
        kinds: ``{handler id: "with" | "finally" | "except" | "except*" | "named" | "async for"}``.
        resumes: ``{handler id of a with: where control goes when the exception is swallowed}``.
        ends: ``{handler id of a finally: where its clean-up ends}``.
        nowhere: ``{handler id of a finally that never ends: where its ways out lead instead}``.
    """

    def __init__(self, graph: Cfg) -> None:
        """Copy a graph, to change it."""
        super().__init__(graph.code, {
            id: Block(id, list(block.ops), block.end, block.successors, block.arg, block.end_op, block.region)
            for id, block in graph.blocks.items()}, graph.entry)
        self.groups: set[int] = set()
        self.kinds: dict[int, str] = {}
        self.resumes: dict[int, int | None] = {}
        self.ends: dict[int, int] = {}
        self.nowhere: dict[int, int] = {}

    def redirect(self, old: int, new: int) -> None:
        super().redirect(old, new)
        for region, resume in self.resumes.items():
            if resume == old:
                self.resumes[region] = new

    def same_way(self, a: int, b: int, skip: int = 0, depth: int = 3) -> bool:
        """Return whether control does the same from ``a`` on as from ``b`` after its first ``skip`` operations: one is
        a copy of the other. (Small exits are copied; what is longer than ``depth`` blocks is not.)"""
        if a == b and not skip:
            return True
        if not depth:
            return False
        x, y = self.blocks[a], self.blocks[b]
        return (
            x.end == y.end and x.arg == y.arg and len(x.ops) == len(y.ops) - skip
            and len(x.successors) == len(y.successors)
            and all(map(same_op, x.ops, y.ops[skip:]))
            and all(self.same_way(s, t, 0, depth - 1) for s, t in zip(x.successors, y.successors))
        )


def is_leave(node: Block) -> bool:
    return bool(node.ops) and node.ops[0].kind == "LEAVE"


def handler_steps(node: Block) -> Iterator[int]:
    """1 for each handler that begins to run in a node, -1 for each that ends there, in order. (``LEAVE`` stands for
    the end of ``except E as n`` where its clean-up was cut.)"""
    for op in node.ops:
        if op.kind == "PUSH_EXC_INFO":
            yield 1
        elif op.kind == "POP_EXCEPT" or (op.kind == "LEAVE" and op.arg == "named"):
            yield -1


def enclose_tests(cfg: RegionCfg) -> None:
    """Put a test into the region where its value is computed: 3.13 leaves some jumps out of the region around them."""
    nodes = cfg.blocks
    for node in nodes.values():
        for succ in node.successors:
            other = nodes[succ]
            if not other.ops and other.end == "branch" and other.handler != node.handler:
                other.region = node.region


def thread(cfg: RegionCfg) -> None:
    """Lead edges straight through blocks that do nothing."""
    nodes = cfg.blocks
    final: dict[int, int] = {}
    for id in nodes:
        at = id
        trail = []
        while at not in final and nodes[at].end == "jump" and not nodes[at].ops and at not in trail:
            trail.append(at)
            at = nodes[at].successors[0]
        at = final.get(at, at)
        for seen in trail:
            final[seen] = at
        final.setdefault(id, at)
    for node in nodes.values():
        node.successors = [final[s] for s in node.successors]


def _straight(cfg: RegionCfg, id: int, limit: int = 12) -> tuple[list[Op], Block]:
    """Operations from a node on, over plain jumps, and the node they end in."""
    ops: list[Op] = []
    node = cfg.blocks[id]
    for _ in range(limit):
        ops += node.ops
        if node.end != "jump":
            break
        node = cfg.blocks[node.successors[0]]
    return ops, node


def _kind(cfg: RegionCfg, id: int) -> str:
    ops, last = _straight(cfg, id)
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
        raise Untangled("an unknown handler")
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
        node = cfg.blocks[at]
        for op in node.ops:
            if op.kind == "CHECK_EXC_MATCH":
                return "except"
        work.extend(node.successors)
    return "finally"


def classify_handlers(cfg: RegionCfg) -> None:
    nodes = cfg.blocks
    handlers = sorted({n.handler for n in nodes.values() if n.handler is not None})
    transparent = set()
    for id in handlers:
        kind = _kind(cfg, id)
        if kind == TRANSPARENT:
            transparent.add(id)
        else:
            cfg.kinds[id] = "except*" if id in cfg.groups else kind
    for node in nodes.values():
        hops = 0
        while node.handler is not None and node.handler in transparent:
            node.region = nodes[node.handler].region
            hops += 1
            if hops > 100:
                raise Untangled("regions go round")


class _Members:
    """Nodes by region. (While copies are cut nodes are added, but none moves to another region.)"""

    def __init__(self, cfg: RegionCfg) -> None:
        self.cfg = cfg
        self.by_region: dict[int | None, list[int]] = {}
        self.entered = 0  # ids below it are in
        #: regions that ``async with`` leads into
        self.asynchronous: set[int] = set()
        for node in cfg.blocks.values():
            enters = next((op.kind for op in reversed(node.ops) if op.kind in _ENTERS), None)
            if enters == "BEFORE_ASYNC_WITH":
                regions = (cfg.blocks[succ].handler for succ in node.successors)
                self.asynchronous.update(region for region in regions if region is not None)

    def inside(self, region: int) -> set[int]:
        """Nodes that lie in the region, or in one inside it."""
        cfg = self.cfg
        for id in range(self.entered, cfg.next_id):
            if id in cfg.blocks:
                self.by_region.setdefault(cfg.blocks[id].handler, []).append(id)
        self.entered = cfg.next_id
        found: set[int] = set()
        seen = {region}
        work = [region]
        while work:
            for id in self.by_region.get(work.pop(), ()):
                found.add(id)
                if id in self.by_region and id not in seen:  # a handler
                    seen.add(id)
                    work.append(id)
        return found


_ENTERS = ("BEFORE_WITH", "BEFORE_ASYNC_WITH")


def cut_cleanup_copies(cfg: RegionCfg) -> None:
    """Replace each copy of a clean-up by ``LEAVE``."""
    nodes = cfg.blocks
    # inside out: a region comes before those around it
    # clean-up code may hold statements with clean-up of their own: those are cut in all copies first, and
    # of two ``finally`` on one level, the one that starts first holds copies of the other
    starts: dict[int | None, float] = {}
    for id, node in nodes.items():
        for around in cfg.handlers_around(node.handler):
            starts[around] = min(starts.get(around, 1e9), cfg.order[id])
    members = _Members(cfg)
    regions = sorted(
        cfg.kinds,
        key=lambda r: (cfg.kinds[r] == "finally", -len(cfg.handlers_around(r)), starts.get(r, 0.0)),
    )
    for region in regions:
        kind = cfg.kinds[region]
        if kind == "async for":
            handler = nodes[region]
            if len(handler.ops) > 1 or handler.end != "jump":
                cfg.split(region, 1)
            continue
        inside = members.inside(region)
        parent = nodes[region].region
        if kind == "with":
            cfg.resumes[region] = _with_resume(cfg, region)
        leaves: dict[int, int] = {}
        for id in sorted(inside):
            node = nodes[id]
            for position, succ in enumerate(node.successors):
                if succ in inside or succ == region:
                    continue
                leave = leaves.get(succ)
                if leave is None:
                    continuation = _after_copy(cfg, kind, region, succ, region in members.asynchronous)
                    made = cfg.add(node, [Op("LEAVE", kind, -1, None, region)], "jump", [continuation], parent)
                    made.line = nodes[succ].ops[0].line if nodes[succ].ops else nodes[succ].line
                    leave = leaves[succ] = made.id
                node.successors[position] = leave
        if kind == "finally":
            _end_finally(cfg, region)
    _leave_empty_named(cfg)
    # a running handler ends at POP_EXCEPT: what follows is a node of its own
    for id in list(nodes):
        node = nodes[id]
        for index, op in enumerate(node.ops):
            if op.kind == "POP_EXCEPT":
                if index + 1 < len(node.ops) or node.end != "jump":
                    cfg.split(id, index + 1)
                break
    cfg.prune()


def _leave_empty_named(cfg: RegionCfg) -> None:
    """``except E as n: pass``: no instruction is left that the region of the body could cover, only its clean-up."""
    nodes = cfg.blocks
    for test in list(nodes.values()):
        if test.end != "branch" or not test.ops or test.ops[-1].kind != "CHECK_EXC_MATCH":
            continue
        body = nodes[test.successors[0]]
        ops, _ = _straight(cfg, body.id)
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
    """All ends of the clean-up of a ``finally`` lead to one node."""
    nodes = cfg.blocks
    head = nodes[region]
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
        node = nodes[at]
        if node.handler is not None and node.handler != head.handler and node.handler not in seen:
            work.append((node.handler, depth))
        depth += sum(handler_steps(node))
        if node.end == "reraise" and depth == 1:
            node.end, node.successors, node.arg = "jump", [end.id], None
            if not node.ops:
                copies.add(at)
        else:
            work.extend((succ, depth) for succ in node.successors)
    # 3.13 copies the ``RERAISE`` to each way out of a loop: they are one place
    for node in nodes.values():
        if not copies.isdisjoint(node.successors):
            node.successors = [end.id if succ in copies else succ for succ in node.successors]


def _with_resume(cfg: RegionCfg, region: int) -> int:
    """Lead the handler of a ``with`` to where control goes after an exception is swallowed, and return that node."""
    nodes = cfg.blocks
    node = nodes[region]
    hops = 0
    while node.end == "jump" and hops < 4:
        node = nodes[node.successors[0]]
        hops += 1
    if node.end != "branch":
        raise Untangled("the handler of a with statement")
    at = node.successors[0]
    wanted = ["POP", "POP_EXCEPT", "POP", "POP"]
    seen: set[int] = set()
    while wanted:
        node = nodes[at]
        if at in seen:  # a loop, or an end, where nothing is popped
            raise Untangled("the handler of a with statement")
        seen.add(at)
        index = 0
        while wanted and index < len(node.ops):
            if node.ops[index].kind != wanted.pop(0):
                raise Untangled("the handler of a with statement")
            index += 1
        if index < len(node.ops) or node.end != "jump":
            at = cfg.split(node.id, index)
        else:
            at = node.successors[0]
    # the handler is never walked: it leads straight to where control resumes
    handler = nodes[region]
    handler.ops = []
    handler.end, handler.successors = "jump", [at]
    return at


def _after_copy(cfg: RegionCfg, kind: str, region: int, start: int, asynchronous: bool) -> int:
    """Return the node that control goes to after the copy of the clean-up that starts at ``start``."""
    if kind == "except" or kind == "except*":
        return start
    if kind == "finally":
        return _after_finally(cfg, region, start)
    return _after_fixed(cfg, kind, start, asynchronous)


_EXIT = ("CONST", "CONST", "CONST", "CALL", "POP")
_ASYNC_EXIT = ("CONST", "CONST", "CONST", "CALL", "AWAIT", "POP")


def _after_fixed(cfg: RegionCfg, kind: str, start: int, asynchronous: bool) -> int:
    nodes = cfg.blocks
    at = start
    index = 0
    step = 0
    first = True
    while True:
        node = nodes[at]
        while index >= len(node.ops):
            if node.end != "jump":
                raise Untangled(f"a way out of {kind}")
            at, index = node.successors[0], 0
            node = nodes[at]
        op = node.ops[index]
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
            raise Untangled(f"a way out of {kind}")
        index += 1
        step += 1
        if step == len(wanted):
            break
    node = nodes[at]
    if index >= len(node.ops) and node.end == "jump":
        return node.successors[0]
    return cfg.split(at, index)


def _after_finally(cfg: RegionCfg, region: int, start: int) -> int:
    nodes = cfg.blocks
    ends: list[tuple[int, int]] = []
    seen: set[tuple[int, int, int, int]] = set()
    head = nodes[region]
    work = [(region, 1, start, 0)]
    reached_return = False
    steps = 0
    #: ``with`` statements in the clean-up and in its copy: if nothing else ends it, what they swallow may
    withs: set[tuple[int, int]] = set()
    resumes = cfg.resumes
    while work or (withs and not ends):
        if not work:
            work = [(with_, 0, copy, 0) for with_, copy in withs]
            withs = set()
        h, i, c, j = work.pop()
        if (h, i, c, j) in seen:
            continue
        seen.add((h, i, c, j))
        hn, cn = nodes[h], nodes[c]
        while True:
            steps += 1
            if steps > 20000:
                raise Untangled("a finally that is too large")
            one, other = hn.handler, cn.handler
            if one != other and one is not None and other is not None and one in resumes and other in resumes:
                withs.add((one, other))
            while i >= len(hn.ops) and hn.end == "jump" and hn.successors[0] != h:
                h, i = hn.successors[0], 0
                hn = nodes[h]
            if i >= len(hn.ops) and hn.end == "reraise" and hn.handler == head.handler:
                ends.append((c, j))
                break
            while j >= len(cn.ops) and cn.end == "jump" and cn.successors[0] != c:
                c, j = cn.successors[0], 0
                cn = nodes[c]
            skip = _unwinding(_ahead(cfg, h, i, 4))
            if skip:
                h, i = _further(cfg, h, i, skip)
                hn = nodes[h]
                j += _dropping(cn.ops, j, hn.ops, i)
                continue
            if i < len(hn.ops) and j < len(cn.ops):
                a, b = hn.ops[i], cn.ops[j]
                if same_op(a, b):
                    i += 1
                    j += 1
                    continue
            if i >= len(hn.ops) and j >= len(cn.ops) and hn.end == cn.end and hn.arg == cn.arg:
                if hn.end in ("return", "raise"):
                    reached_return = True
                for s, t in zip(hn.successors, cn.successors):
                    if s == t:
                        reached_return = True
                    else:
                        work.append((s, 0, t, 0))
                break
            raise Untangled("a way out of finally")
        if len(seen) > 4000:
            raise Untangled("a finally that is too large")
    if not ends:
        if reached_return:
            if region not in cfg.nowhere:
                cfg.nowhere[region] = cfg.add(head, [], NOWHERE, [], head.region).id
            return cfg.nowhere[region]
        raise Untangled("a way out of finally")
    ends.sort(key=lambda e: (cfg.order[e[0]], e[1]))
    c, j = ends[0] if len(set(ends)) == 1 else ends[-1]
    node = nodes[c]
    if j >= len(node.ops) and node.end == "jump":
        return node.successors[0]
    return cfg.split(c, j)


def _ahead(cfg: RegionCfg, id: int, index: int, count: int) -> list[Op]:
    """The next operations, over plain jumps."""
    node = cfg.blocks[id]
    ops = node.ops[index : index + count]
    for _ in range(count):
        if len(ops) >= count or node.end != "jump":
            break
        node = cfg.blocks[node.successors[0]]
        ops = [*ops, *node.ops[: count - len(ops)]]
    return ops


def _further(cfg: RegionCfg, id: int, index: int, count: int) -> tuple[int, int]:
    """The place so many operations on, over plain jumps."""
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


def copied_op(a: Op, b: Op) -> bool:
    """Return whether one operation is a copy of the other: it is of the same place of the text, too."""
    return a.line == b.line and same_op(a, b)


def same_op(a: Op, b: Op) -> bool:
    """Return whether two operations are copies of one, as far as that can be told without their context."""
    return a.kind == b.kind and (a.arg is b.arg or type(a.arg) is type(b.arg) and bool(a.arg == b.arg))
