"""Loop inversion undone.

CPython (3.8 on) writes the test of a ``while`` twice: before the loop, and again at its end.
:func:`undo_loop_inversion` finds tests that do the same and lead to the same places and makes them one, so that the
test is the head of the loop again.

Before (``while x: body()``)::

    B0 [x] branch B1, B3;  B1 [body()] jump B2;  B2 [x] branch B1, B3;  B3 return

After::

    B0 [x] branch B1, B3;  B1 [body()] jump B0;  B3 return
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

from ...bytecode.operations import FIXED_EFFECTS, KEEPS, Op, effect
from ...cfg.graph import Block, Cfg
from ..structure.analysis import RegionCfg, cleans_up, copied_op

#: Operations that take values off the stack and end protected bodies.
_UNWINDS = frozenset({"POP", "SWAP", "LEAVE"})


def undo_loop_inversion(cfg: RegionCfg) -> None:
    """Make one of the copies of each loop's test."""
    if len(cfg.blocks) == 1:
        return
    _split_returns(cfg)
    again = True
    rounds = 0
    while again and rounds < 50:
        rounds += 1
        _merge_equal(cfg)
        again = _merge_comprehensions(cfg)
        groups = _alike(cfg)
        arms = _arms(cfg) if groups else set()
        for group in groups:
            group.sort(key=lambda n: cfg.order[n.id])
            if len({(n.successors[0], n.successors[1]) for n in group}) > 1 and not _loops(cfg, group):
                continue
            while group:
                first = group.pop(0)
                for other in group[:]:
                    size = _common(first, other)
                    if not size or frozenset((first.id, other.id)) in arms or size == len(other.ops) and (
                            other.id in cfg.kinds):  # (The beginnings of two handlers are not one.)
                        continue
                    first = cfg.blocks[cfg.share_end(first, other, size)]
                    group.remove(other)
                    again = True
    cfg.prune()


def _alike(cfg: RegionCfg) -> list[list[Block]]:
    """Return the groups of tests that lead to the same places."""
    groups: dict[tuple[object, ...], list[Block]] = {}
    for block in cfg.blocks.values():
        if block.end == "branch" and block.ops:
            key = (*[_place(cfg, id) for id in block.successors], block.handler)
            groups.setdefault(key, []).append(block)
    return [group for group in groups.values() if len(group) > 1]


def _merge_comprehensions(cfg: RegionCfg) -> bool:
    """Merge the copies of a comprehension that is inline (3.12 on) in the test of a loop.

    The rest of the test, after them, has been found before: both loops leave to it.
    """
    done = False
    loops = [block for block in cfg.blocks.values() if block.end == "for"]
    if len(loops) < 2:
        return False
    preds = cfg.predecessors()
    heads: dict[int, list[Block]] = {}
    for block in sorted(loops, key=lambda block: cfg.order[block.id]):
        if any(_fills(cfg.blocks[pred]) for pred in preds[block.id]):
            heads.setdefault(block.successors[1], []).append(block)
    for alike in heads.values():
        for first, other in itertools.combinations(alike, 2):
            if first.id in cfg.blocks and other.id in cfg.blocks and _same_graph(cfg, first.id, other.id):
                cfg.redirect(other.id, first.id)
                cfg.prune()
                merge_before(cfg, first.id, _common)
                done = True
    return done


def _fills(block: Block) -> bool:
    """Return whether a block ends in the empty list, set or dictionary that an inlined comprehension fills."""
    kinds = [op.kind for op in block.ops[-2:]]
    return block.end == "jump" and len(kinds) == 2 and kinds[0] in ("BUILD_LIST", "BUILD_SET", "BUILD_MAP") and (
        kinds[1] == "SWAP" and not block.ops[-2].arg)


def _same_graph(cfg: RegionCfg, a: int, b: int) -> bool:
    """Return whether the blocks from two places on do the same, on the same lines, until they lead to one place."""
    paired = {a: b}
    work = [a]
    while work:
        current = work.pop()
        left, right = cfg.blocks[current], cfg.blocks[paired[current]]
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


def merge_before(cfg: RegionCfg, id: int, common: Callable[[Block, Block], int]) -> None:
    """Make one of blocks that go on to one place after the same operations, from where these begin.

    Args:
        cfg: the graph.
        id: the place.
        common: counts the operations at the end of two blocks that are copies.
    """
    candidates = [cfg.blocks[pred] for pred in cfg.predecessors()[id]]
    candidates = sorted((n for n in candidates if n.end == "jump" and n.ops), key=lambda block: cfg.order[block.id])
    arms = _arms(cfg)
    while candidates:
        first = candidates.pop(0)
        for other in candidates:
            size = common(first, other) if first.handler == other.handler else 0
            if size and frozenset((first.id, other.id)) not in arms:
                shared = cfg.share_end(first, other, size)
                if other.id not in cfg.blocks:
                    merge_before(cfg, shared, common)
                candidates.remove(other)  # (It has one copy: what is alike after that was written twice.)
                break


def _arms(cfg: RegionCfg) -> set[frozenset[int]]:
    """Return the two edges of each test that nothing else leads to: they are no copies (``a if x else a``)."""
    preds = cfg.predecessors()
    return {
        frozenset(block.successors) for block in cfg.blocks.values()
        if block.end == "branch" and all(len(preds[succ]) == 1 and succ != cfg.entry for succ in block.successors)
    }


def _loops(cfg: RegionCfg, group: list[Block]) -> bool:
    """Return whether a test of the group leads back: only then are copies of its exits taken for one."""
    first = cfg.order[group[0].id]

    def leads_back(block: Block, succ: int) -> bool:
        goal = cfg.blocks[succ]
        if goal.end == "jump" and cfg.order[succ] > cfg.order[block.id]:
            succ = goal.successors[0]  # the rest of the test, which has been found before
        return first <= cfg.order[succ] <= cfg.order[block.id]

    return any(leads_back(block, succ) for block in group[1:] for succ in block.successors)


def _place(cfg: RegionCfg, id: int) -> object:
    """Return a key of the place that a test leads to.

    Copies of one ``return None`` are one place, and so are copies of the edges through a test that has conditions in it
    (``while (a or b) + c``), which merge in the rest of it.
    """
    block = cfg.blocks[id]
    if block.end == "jump" and block.ops and all(op.line is not None for op in block.ops):
        return ("exit", *[_key(op) for op in block.ops], block.handler, block.successors[0])
    if block.end == "return" and block.ops and block.ops[-1].kind == "CONST" and all(
        op.kind == "POP" and op.arg is None for op in block.ops[:-1]  # (what a chained comparison leaves)
    ):
        return ("return", len(block.ops), _key(block.ops[-1])[:3], block.handler)
    return id


def _key(op: Op) -> tuple[object, ...]:
    target = op.target if op.kind == "LEAVE" else -1
    return (op.kind, type(op.arg), id(op.arg) if op.kind == "CONST" else op.arg, op.line, target)


def _common(a: Block, b: Block) -> int:
    """Return the length of the longest common end of two blocks that is a whole expression."""
    longest = 0
    for size, needed, depth, _ in common_ends(a, b, copied_op):
        if size == len(a.ops) == len(b.ops) or not needed and depth >= 1:
            longest = size
    return longest


def common_ends(a: Block, b: Block, same: Callable[[Op, Op], bool]) -> Iterator[tuple[int, int, int, Op]]:
    """Yield the common ends of two blocks, the shortest first.

    Of each its number of operations, how many values they take that they do not push, how many more they push than
    they take, and the first of them.
    """
    needed = depth = 0
    for size, (x, y) in enumerate(zip(reversed(a.ops), reversed(b.ops)), 1):
        if not same(x, y):
            return
        popped, pushed = (len(a.ops), 0) if x.kind == "LEAVE" else effect(x)  # (No expression goes over that.)
        needed, depth = popped + max(needed - pushed, 0), depth + pushed - popped
        yield size, needed, depth, x


def _merge_equal(cfg: RegionCfg) -> None:
    """Merge the copies of one exit, on one line and leading to one place.

    CPython copies small blocks that leave the function to where a jump led to them (``inline_small_exit_blocks``),
    and writes the end of a protected body on each exit of it.  Merged are blocks that only take values off the
    stack, ends of bodies, whole ``return`` statements, and those of two arms of one expression.
    """
    blocks = cfg.blocks
    exits = [block for block in blocks.values()
             if block.end in ("jump", "return") and block.id != cfg.entry and block.id not in cfg.kinds]
    merged = _merge_exits(cfg, exits)
    while merged:  # (blocks that lead there may be equal now)
        merged = _merge_exits(cfg, [block for block in exits if block.id in blocks and (
            not block.ops or block.end == "jump" and block.successors[0] in merged)])


def _merge_exits(cfg: RegionCfg, exits: list[Block]) -> set[int]:
    """Merge the exits that are copies of one another, and return the ids of those merged into."""
    merged: set[int] = set()
    if len(exits) < 2:
        return merged
    seen: dict[tuple[object, ...], int] = {}
    before: dict[int, list[int]] = {}  # of the graph before anything is merged, computed on first use
    returning: dict[int, int] = {}
    if not all(block.ops for block in exits):
        before = cfg.predecessors()
        returning = _returning_arms(cfg, before)
    for block in sorted(exits, key=lambda block: cfg.order[block.id]):
        id = block.id
        if id not in cfg.blocks:
            continue
        if not block.ops:
            if id not in returning:
                continue
        elif block.end == "jump":
            if not _UNWINDS.issuperset([op.kind for op in block.ops]):
                continue
            if block.successors[0] in cfg.nowhere.values():
                continue  # (one of them may be a ``return``, with its value on the stack)
            if all(op.kind == "POP" and op.line is None for op in block.ops):
                continue  # no copy, which would have the line of its statement (3.12 and later)
        elif block.end != "return" or not _is_statement(block):
            continue
        else:
            before = before or cfg.predecessors()
            if all(_ends_in_clean_up(cfg.blocks[pred], block.ops[-1].line) for pred in before[id]):
                continue  # (Each ``return`` has a clean-up of its own, and all have the line of that.)
        key = (block.end, returning.get(id), *[_key(op) for op in block.ops], *block.successors, block.handler)
        first = seen.setdefault(key, id)
        if first == id:
            continue
        before = before or cfg.predecessors()
        is_arm = len(before[id]) == 1 and before[id] == before[first] and cfg.blocks[before[id][0]].end == "branch"
        if not is_arm:  # (see :func:`_arms`)
            cfg.redirect(id, first)
            merged.add(first)
    return merged


def _ends_in_clean_up(block: Block, line: int | None) -> bool:
    """Return whether a block ends in a clean-up on a line."""
    return bool(block.ops) and cleans_up(block.ops[-1]) and block.line == line


def _returning_arms(cfg: RegionCfg, preds: dict[int, list[int]]) -> dict[int, int]:
    """Return blocks that only return a value computed in the protected body they leave, each with a test.

    That is ``return (a, b if c else d)`` in a ``try``. Two of them on the line of one test are of one expression, as
    the arms of a statement begin on lines of their own.
    """
    blocks = cfg.blocks
    result: dict[int, int] = {}
    for id, block in blocks.items():
        if block.end != "return" or block.ops or len(preds[id]) != 1:
            continue
        leave = blocks[preds[id][0]]
        if [op.kind for op in leave.ops] != ["LEAVE"] or len(preds[leave.id]) != 1:
            continue
        arm = blocks[preds[leave.id][0]]
        if arm.end == "jump" and arm.ops and arm.ops[-1].line is not None and len(preds[arm.id]) == 1:
            test = blocks[preds[arm.id][0]]
            if test.ops and test.ops[-1].line == arm.ops[0].line:
                result[id] = test.id
    return result


def _split_returns(cfg: RegionCfg) -> None:
    """Put a ``return`` into a block of its own if it follows other statements and is alone elsewhere.

    Where CPython copies a ``return``, the copy is joined to the statements that led to it (see :func:`_merge_equal`).
    """
    returns = [block for block in cfg.blocks.values() if block.end == "return" and block.ops]
    if len({len(block.ops) for block in returns}) < 2:
        return
    whole = [block for block in returns if _is_statement(block)]
    alone = {(*[_key(op) for op in block.ops], block.handler) for block in whole}
    if not alone:
        return
    statements = {block.id for block in whole}
    sizes = {len(key) - 1 for key in alone}
    for id in list(cfg.blocks):
        block = cfg.blocks[id]
        if block.end != "return":
            continue
        for size in sizes:
            at = len(block.ops) - size
            if (
                at > 0 and (id in statements or all(op.kind == "POP" for op in block.ops[:at]))
                and block.ops[at - 1].line != block.ops[at].line
                and (*(_key(op) for op in block.ops[at:]), block.handler) in alone
            ):
                cfg.split(id, at)
                break


def _is_statement(block: Block) -> bool:
    """Return whether all operations of a ``return`` are in one block, on lines that show their statement."""
    depth = 0
    for op in block.ops:
        popped, pushed = effect(op)
        if op.line is None or depth < popped:
            return False
        depth += pushed - popped
    return depth == 1


# --- Exits of ``for`` loops: where the iterator is dropped, a ``break`` or a ``return`` leaves the loop ---
# Before (``for x in xs: ...; break``, then ``after()``)::
#
#     B2 [POP; after()] jump B5
#
# After :func:`mark_iterator_pops` and :func:`split_breaks`::
#
#     B2 [POP 'iterator'] jump B6;  B6 [after()] jump B5
def mark_iterator_pops(cfg: RegionCfg) -> None:
    """Mark every ``POP`` of an iterator (``POP "iterator"``): a ``break`` or ``return`` leaves a ``for`` loop there."""
    if _ITERATES.isdisjoint(cfg.present):
        return
    for id, ops in _marked(cfg).items():
        cfg.blocks[id].ops = ops


def _marked(graph: Cfg) -> dict[int, list[Op]]:
    """Return the operations of each block with their marks. Blocks that are not in the result have none."""
    marked: dict[int, list[Op]] = {}
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
            popped, pushed = FIXED_EFFECTS.get(kind) or effect(op)
            if kind in KEEPS:
                # these read the values below and leave them there
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


def split_breaks(cfg: RegionCfg) -> None:
    """Split blocks after each marked ``POP``: a ``break`` leads to the second part."""
    if _ITERATES.isdisjoint(cfg.present):
        return
    for id in list(cfg.blocks):
        while True:
            block = cfg.blocks[id]
            for index, op in enumerate(block.ops):
                if op.kind == "POP" and op.arg == "iterator" and index + 1 < len(block.ops):
                    id = cfg.split(id, index + 1)
                    break
            else:
                break
