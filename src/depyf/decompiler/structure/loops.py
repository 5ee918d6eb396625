"""Loop inversion undone.

CPython (3.8 on) writes the test of a ``while`` twice: before the loop, and again at its end.
:func:`rotate` finds tests that do the same and lead to the same places and makes them one, so that the
test is the head of the loop again.
"""

from __future__ import annotations

import itertools

from ...bytecode.operations import Op
from ...cfg.graph import Block, Cfg
from ...cfg.stack import effect
from .regions import RegionCfg


def mark_breaks(cfg: RegionCfg) -> None:
    """Mark every ``POP`` of an iterator (``POP "iterator"``): a ``break`` or ``return`` leaves a ``for`` loop there."""
    for id, ops in _marked(cfg).items():
        cfg.blocks[id].ops = ops


def _marked(graph: Cfg) -> dict[int, list[Op]]:
    """Return the operations of each block with their marks. Blocks that are not in the result have none."""
    marked: dict[int, list[Op]] = {}
    if not any(op.kind in _ITERATES for block in graph.blocks.values() for op in block.ops):
        return marked
    work: list[tuple[int, tuple[bool, ...]]] = [(graph.entry, ())]
    while work:
        id, entry = work.pop()
        if id in marked:
            continue
        block = graph.blocks[id]
        stack = list(entry)
        ops = block.ops
        changed: list[Op] | None = None
        marked[id] = ops
        for index, op in enumerate(ops):
            kind = op.kind
            if kind == "POP":
                if stack and stack.pop():
                    if changed is None:
                        changed = marked[id] = list(ops)
                    changed[index] = Op("POP", "iterator", op.offset, op.line, -1, op.handler)
                continue
            if kind in _ITERATES:
                if stack:
                    stack[-1] = True
                continue
            if kind == "COPY":
                stack.append(False)
                continue
            if kind == "SWAP":
                if len(stack) >= op.arg:
                    stack[-1], stack[-op.arg] = stack[-op.arg], stack[-1]
                continue
            if kind == "ROT":
                if len(stack) >= op.arg:
                    stack.insert(len(stack) - op.arg, stack.pop())
                continue
            popped, pushed = effect(op)
            if kind in _KEEP:
                # these look at what lies below and leave it there
                stack.extend([False] * (pushed - popped))
                continue
            if popped:
                del stack[max(0, len(stack) - popped):]
            stack.extend([False] * pushed)
        if block.end == "branch" and stack:
            stack.pop()
        if block.end == "for":
            for succ, after in zip(block.successors, ([*stack, False], stack[:-1])):
                work.append((succ, tuple(after)))
        else:
            after_all = tuple(stack)
            work.extend((succ, after_all) for succ in block.successors)
        if block.region is not None:
            region = block.region
            kept = [*entry[: region.depth], *([False] * (1 + region.lasti))]
            work.append((region.handler, tuple(kept)))
    return marked


_ITERATES = frozenset({"GET_ITER", "GET_AITER"})
_KEEP = frozenset({
    "IMPORT_FROM", "GET_LEN", "MATCH_MAPPING", "MATCH_SEQUENCE", "MATCH_KEYS", "WITH_EXCEPT_START",
    "GET_ANEXT_AWAIT", "CHECK_EXC_MATCH",
})


def split_breaks(cfg: RegionCfg) -> None:
    """Split nodes behind each marked ``POP``: what follows is the place a ``break`` leads to."""
    for id in list(cfg.blocks):
        while True:
            node = cfg.blocks[id]
            for index, op in enumerate(node.ops):
                if op.kind == "POP" and op.arg == "iterator" and index + 1 < len(node.ops):
                    id = cfg.split(id, index + 1)
                    break
            else:
                break


def rotate(cfg: RegionCfg) -> None:
    """Makes the copies of each loop's test one."""
    _split_returns(cfg)
    again = True
    rounds = 0
    while again and rounds < 50:
        again = False
        rounds += 1
        again |= _merge_equal(cfg)
        again |= _merge_comprehensions(cfg)
        groups: dict[tuple[object, ...], list[Block]] = {}
        for node in cfg.blocks.values():
            if node.end == "branch" and node.ops and node.id not in cfg.kinds:
                groups.setdefault(
                    (_place(cfg, node.successors[0]), _place(cfg, node.successors[1]), node.handler), []
                ).append(node)
        arms = _arms(cfg)
        for group in groups.values():
            if len(group) < 2:
                continue
            group.sort(key=lambda n: cfg.order[n.id])
            if len({(n.successors[0], n.successors[1]) for n in group}) > 1 and not _loops(cfg, group):
                continue
            while group:
                first = group.pop(0)
                for other in group[:]:
                    size = _common(first, other)
                    if not size or frozenset((first.id, other.id)) in arms:
                        continue
                    start = len(first.ops) - size
                    if start:
                        head = cfg.blocks[cfg.split(first.id, start)]
                    else:
                        head = first
                    cut = len(other.ops) - size
                    if cut:
                        other.ops = other.ops[:cut]
                        other.end, other.successors, other.arg = "jump", [head.id], None
                    else:
                        cfg.redirect(other.id, head.id)
                    group.remove(other)
                    first = head
                    again = True
    cfg.prune()


def _merge_comprehensions(cfg: RegionCfg) -> bool:
    """Copies of a comprehension that stands inline (3.12 on) in the test of a loop are one.

    The rest of the test, behind them, has been found before: both loops leave to it.
    """
    done = False
    preds = cfg.predecessors()
    heads: dict[int, list[Block]] = {}
    for node in sorted(cfg.blocks.values(), key=lambda node: cfg.order[node.id]):
        if node.end == "for" and any(_fills(cfg.blocks[pred]) for pred in preds[node.id]):
            heads.setdefault(node.successors[1], []).append(node)
    for alike in heads.values():
        for first, other in itertools.combinations(alike, 2):
            if first.id in cfg.blocks and other.id in cfg.blocks and _same_graph(cfg, first.id, other.id):
                cfg.redirect(other.id, first.id)
                cfg.prune()
                _merge_before(cfg, first.id)
                done = True
    return done


def _fills(node: Block) -> bool:
    """Return whether a node ends in the empty list, set or dictionary that an inlined comprehension fills."""
    kinds = [op.kind for op in node.ops[-2:]]
    return node.end == "jump" and len(kinds) == 2 and kinds[0] in ("BUILD_LIST", "BUILD_SET", "BUILD_MAP") and (
        kinds[1] == "SWAP" and not node.ops[-2].arg)


def _same_graph(cfg: RegionCfg, a: int, b: int) -> bool:
    """Return whether the nodes from two places on do the same, on the same lines, until they lead to one place."""
    paired = {a: b}
    work = [a]
    while work:
        here = work.pop()
        left, right = cfg.blocks[here], cfg.blocks[paired[here]]
        if left.end != right.end or left.handler != right.handler or left.arg != right.arg:
            return False
        if [_key(op) for op in left.ops] != [_key(op) for op in right.ops]:
            return False
        for x, y in zip(left.successors, right.successors):
            if x != y and x not in paired:
                paired[x] = y
                work.append(x)
            elif x != y and paired[x] != y:
                return False
    return True


def _merge_before(cfg: RegionCfg, id: int) -> None:
    """Two nodes that go on to one place after the same operations are one from where these begin."""
    ways = [cfg.blocks[pred] for pred in cfg.predecessors()[id]]
    ways = sorted((n for n in ways if n.end == "jump" and n.ops), key=lambda node: cfg.order[node.id])
    arms = _arms(cfg)
    while ways:
        first = ways.pop(0)
        for other in ways:
            size = _common(first, other) if first.handler == other.handler else 0
            if not size or frozenset((first.id, other.id)) in arms:
                continue
            if size == len(first.ops) == len(other.ops):
                cfg.redirect(other.id, first.id)
                _merge_before(cfg, first.id)
            else:
                head = cfg.split(first.id, len(first.ops) - size)
                other.ops = other.ops[: len(other.ops) - size]
                if other.ops:
                    other.successors = [head]
                else:
                    cfg.redirect(other.id, head)
            ways.remove(other)
            break


def _arms(cfg: RegionCfg) -> set[frozenset[int]]:
    """The two ways of each test that nothing else leads to: they are no copies (``a if x else a``)."""
    preds = cfg.predecessors()
    return {
        frozenset(node.successors) for node in cfg.blocks.values()
        if node.end == "branch" and all(len(preds[succ]) == 1 and succ != cfg.entry for succ in node.successors)
    }


def _loops(cfg: RegionCfg, group: list[Block]) -> bool:
    """Return whether a test of the group leads back: only then are copies of its exits taken for one."""
    first = cfg.order[group[0].id]

    def leads_back(node: Block, succ: int) -> bool:
        goal = cfg.blocks[succ]
        if goal.end == "jump" and cfg.order[succ] > cfg.order[node.id]:
            succ = goal.successors[0]  # the rest of the test, which has been found before
        return first <= cfg.order[succ] < cfg.order[node.id]

    return any(leads_back(node, succ) for node in group[1:] for succ in node.successors)


def _place(cfg: RegionCfg, id: int) -> object:
    """Return a key of the place that a test leads to: copies of one ``return None`` are one place, and so are copies of
    the ways through a test that has conditions in it (``while (a or b) + c``), which merge in the rest of it."""
    node = cfg.blocks[id]
    if node.end == "jump" and node.ops and all(op.line is not None for op in node.ops):
        return ("way", *(_key(op) for op in node.ops), node.handler, node.successors[0])
    if node.end == "return" and node.ops and node.ops[-1].kind == "CONST" and all(
        op.kind == "POP" and op.arg is None for op in node.ops[:-1]  # (what a chained comparison leaves)
    ):
        return ("return", len(node.ops), _key(node.ops[-1])[:3], node.handler)
    return id


def _key(op: Op) -> tuple[object, ...]:
    target = op.target if op.kind == "LEAVE" else -1
    return (op.kind, type(op.arg), id(op.arg) if op.kind == "CONST" else op.arg, op.line, target)


def _common(a: Block, b: Block) -> int:
    """Length of the longest common end of two blocks that is an expression by itself."""
    limit = min(len(a.ops), len(b.ops))
    size = 0
    while size < limit:
        x, y = a.ops[-1 - size], b.ops[-1 - size]
        if x.kind != y.kind or x.line != y.line or type(x.arg) is not type(y.arg) or x.arg != y.arg:
            break
        size += 1
    if size == len(a.ops) == len(b.ops):
        return size
    while size:
        depth = 0
        good = True
        for op in a.ops[len(a.ops) - size:]:
            popped, pushed = effect(op)
            if depth < popped:
                good = False
                break
            depth += pushed - popped
        if good and depth >= 1:
            return size
        size -= 1
    return 0


def _merge_equal(cfg: RegionCfg) -> bool:
    """Copies of what a way out does, on one line and leading to one place, are one.

    CPython copies small blocks that leave the function to where a jump led to them (``inline_small_exit_blocks``),
    and writes the end of a protected body on each way out of it.  Merged are blocks that only take values off the
    stack, ends of bodies, whole ``return`` statements, and those of two arms of one expression.
    """
    seen: dict[tuple[object, ...], int] = {}
    done = False
    arms = _arms(cfg)
    returning = _returning_arms(cfg)
    for id in sorted(cfg.blocks, key=cfg.order.__getitem__):
        node = cfg.blocks.get(id)
        if node is None or id == cfg.entry or id in cfg.kinds:
            continue
        if not node.ops:
            if id not in returning:
                continue
        elif node.end == "jump":
            if any(op.kind not in ("POP", "SWAP", "LEAVE") for op in node.ops):
                continue
            if node.successors[0] in cfg.nowhere.values():
                continue  # (one of them may be a ``return``, with its value on the stack)
            if all(op.kind == "POP" and op.line is None for op in node.ops):
                continue  # no copy, which would have the line of its statement (3.12 and later)
        elif node.end != "return" or not _is_statement(node):
            continue
        key = (node.end, returning.get(id), *(_key(op) for op in node.ops), *node.successors, node.handler)
        first = seen.setdefault(key, id)
        if first != id and frozenset((first, id)) not in arms:
            cfg.redirect(id, first)
            done = True
    return done


def _returning_arms(cfg: RegionCfg) -> dict[int, tuple[object, ...]]:
    """Nodes that only return what was computed in the protected body they leave (``return (a, b if c else d)`` in a
    ``try``), with what tells that two of them are of one expression: its test, and what both arms end in."""
    nodes = cfg.blocks
    preds = cfg.predecessors()
    found: dict[int, tuple[object, ...]] = {}
    for id, node in nodes.items():
        if node.end != "return" or node.ops or len(preds[id]) != 1:
            continue
        leave = nodes[preds[id][0]]
        if [op.kind for op in leave.ops] != ["LEAVE"] or len(preds[leave.id]) != 1:
            continue
        arm = nodes[preds[leave.id][0]]
        if arm.end == "jump" and arm.ops and arm.ops[-1].line is not None and len(preds[arm.id]) == 1:
            test = nodes[preds[arm.id][0]]
            if test.ops and test.ops[-1].line == arm.ops[0].line:  # (arms of a statement begin on lines of their own)
                found[id] = (test.id, _key(arm.ops[-1]))
    return found


def _split_returns(cfg: RegionCfg) -> None:
    """A ``return`` that stands behind other statements and alone elsewhere becomes a block of its own.

    Where CPython copies a ``return``, the copy is joined to the statements that led to it (see :func:`_merge_equal`).
    """
    alone = {
        (*(_key(op) for op in node.ops), node.handler)
        for node in cfg.blocks.values() if node.end == "return" and node.ops and _is_statement(node)
    }
    if not alone:
        return
    sizes = {len(key) - 1 for key in alone}
    for id in list(cfg.blocks):
        node = cfg.blocks[id]
        if node.end != "return":
            continue
        whole = _is_statement(node)
        for size in sizes:
            at = len(node.ops) - size
            if (
                at > 0 and (whole or all(op.kind == "POP" for op in node.ops[:at]))
                and node.ops[at - 1].line != node.ops[at].line
                and (*(_key(op) for op in node.ops[at:]), node.handler) in alone
            ):
                cfg.split(id, at)
                break


def _is_statement(node: Block) -> bool:
    """Return whether all that a ``return`` does stands in one block, on lines that say which statement it is of."""
    depth = 0
    for op in node.ops:
        popped, pushed = effect(op)
        if op.line is None or depth < popped:
            return False
        depth += pushed - popped
    return depth == 1
