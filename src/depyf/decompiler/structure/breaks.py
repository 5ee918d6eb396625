"""The target of ``break``: which of the edges out of a loop leads to the place behind it.

Nothing in the code says so. Changes with how that is guessed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...cfg.graph import Block
from .frames import Frame, outer_ends

if TYPE_CHECKING:
    from .walk import Walker


def reach(walker: Walker, starts: list[int], avoid: set[int]) -> set[int]:
    """Blocks that control can come to from ``starts`` (these included) without passing one of ``avoid``."""
    seen: set[int] = set()
    work = [s for s in starts if s not in avoid]
    blocks = walker.cfg.blocks
    while work:
        id = work.pop()
        if id in seen:
            continue
        seen.add(id)
        work.extend(s for s in blocks[id].successors if s not in seen and s not in avoid)
    walker.spend(len(seen) // 8)
    return seen


def skip_unwinding(walker: Walker, id: int, head: int) -> int:
    """Return where an edge out of the loop at ``head`` leads once iterators, handlers and bodies inside it are left."""
    blocks = walker.cfg.blocks
    around = walker.analysis.around_loop(head)
    for _ in range(20):
        block = blocks[id]
        if block.end != "jump":
            return id
        for op in block.ops:
            if op.kind == "POP":
                continue
            if op.kind == "LEAVE" and op.target not in around:
                continue
            if op.kind == "POP_EXCEPT":
                handler = walker.analysis.handler_of(id)
                if handler is not None and not walker.analysis.dominates(handler, head):
                    continue
            return id
        id = block.successors[0]
    return id


def late_breaks(walker: Walker, head: int, body: set[int], natural: int) -> list[int]:
    """Return the targets of breaks that come after other statements (``if x: y = 1; break``)."""
    blocks = walker.cfg.blocks
    found: list[int] = []
    inner = set()
    for other, loop in walker.analysis.loops.items():
        if other != head and other in body:
            # what leaves an inner loop drops that one's iterator first
            inner |= loop - {other}
    starts = [s for id in body - inner for s in blocks[id].successors if s not in body and s != natural]
    for start in starts:
        seen: set[int] = set()
        work = [start]
        while work and len(seen) < 50:
            id = work.pop()
            if id in seen or not walker.analysis.dominates(start, id):
                continue
            seen.add(id)
            block = blocks[id]
            if block.ops and block.ops[-1].kind == "POP" and block.ops[-1].arg == "iterator":
                target = block.successors[0] if block.end == "jump" else id
                goal = blocks[target]
                constant = goal.end == "return" and len(goal.ops) <= 1
                returns = len(block.ops) > 1 and block.ops[-2].kind == "SWAP"
                if (
                    (len(block.ops) > 1 or id != start) and not constant and not returns
                    and goal.end != "reraise" and block.end == "jump"
                ):
                    found.append(target)
            elif block.end in ("jump", "branch") and not any(
                op.arg == "iterator" and op.kind == "POP" or op.kind == "GET_ITER" for op in block.ops
            ):
                work.extend(block.successors)
    return found


def returns_through(block: Block) -> bool:
    """Return whether an iterator is dropped below the value to return."""
    return any(
        op.kind == "SWAP" and under.kind == "POP" and under.arg == "iterator"
        for op, under in zip(block.ops, block.ops[1:])
    )


def ends_in_break(block: Block) -> bool:
    """Return whether the last thing a block does is to drop an iterator."""
    return block.end == "jump" and bool(block.ops) and block.ops[-1].kind == "POP" and block.ops[-1].arg == "iterator"


def drops_iterator(walker: Walker, id: int, target: int) -> bool:
    """Return whether the path from ``id`` to ``target`` drops an iterator."""
    blocks = walker.cfg.blocks
    while id != target:
        if any(op.kind == "POP" and op.arg == "iterator" for op in blocks[id].ops):
            return True
        id = blocks[id].successors[0]
    return False


def loop_exit(walker: Walker, head: int, body: set[int], natural: int | None, follow: int, frame: Frame) -> int | None:
    """Return the target of ``break``. ``natural``: the loop's normal exit, where it goes when it ends by itself."""
    chosen = likely_exit(walker, head, body, natural, follow, frame)
    # From inside, only ``break`` leads to the ends of the loop around this one; or a ``return`` of its own.
    ends = {
        end for end in outer_ends(frame, -1)
        if end >= 0 and end not in body and not (walker.cfg.blocks[end].end == "return" and small_exit(walker, end))
    }
    if not ends or chosen in ends:
        return chosen
    starts = [s for id in body for s in walker.cfg.blocks[id].successors if s not in body and s != natural]
    missed = first_of(walker, ends, starts, body | {-1 if chosen is None else chosen})
    return missed.pop() if len(missed) == 1 else chosen


def first_of(walker: Walker, ends: set[int], starts: list[int], avoid: set[int]) -> set[int]:
    """Return those of ``ends`` that control can come to first."""
    on_the_way = reach(walker, starts, avoid | ends)
    found = ends.intersection(starts)
    for id in on_the_way:
        found.update(ends.intersection(walker.cfg.blocks[id].successors))
    return found


def likely_exit(
    walker: Walker, head: int, body: set[int], natural: int | None, follow: int, frame: Frame
) -> int | None:
    blocks = walker.cfg.blocks
    targets: list[int] = []
    strong: list[int] = []
    inner = [other for other in walker.analysis.loops if other != head and other in body and blocks[other].end == "for"]
    for id in body:
        for succ in blocks[id].successors:
            if succ not in body:
                target = skip_unwinding(walker, succ, head)
                if blocks[target].end == "reraise" and target != follow:  # (a ``finally`` ends in one)
                    continue
                if blocks[target].end == "return" and (
                    not blocks[target].ops or returns_through(blocks[target])
                ):
                    continue  # the value to return is on the stack already: no ``break`` carries one
                # (in a loop that never comes round, what ends in a ``break`` is in the body)
                breaks_here = target == succ and ends_in_break(blocks[id])
                if breaks_here or target != succ and drops_iterator(walker, succ, target):
                    # ``return`` computes its value before it drops the iterator, unless it is a constant
                    goal = blocks[target]
                    if natural is not None and target != natural and walker.cfg.same_way(target, natural):
                        # a copy of what follows the loop
                        at = id if breaks_here else succ
                        while blocks[at].successors[0] != target:
                            at = blocks[at].successors[0]
                        blocks[at].successors[0] = natural
                        continue
                    if goal.end != "return" or [op.kind for op in goal.ops] not in ([], ["CONST"]):
                        strong.append(target)
                elif any(id in walker.analysis.loops[other] and succ != blocks[other].successors[1] for other in inner):
                    continue  # the iterator of a loop in this one is still there
                elif target != succ and blocks[head].end == "branch" and (
                    blocks[target].end != "return" or len(blocks[target].ops) > 1
                ):
                    strong.append(target)  # no statement stands on the way out of a body, or of a handler
                if target not in targets and not (id == head and succ == natural):
                    targets.append(target)
    if walker.late and natural is not None and blocks[head].end == "for":
        for found in late_breaks(walker, head, body, natural):
            if found not in targets:
                targets.append(found)
            if found not in strong:
                strong.append(found)
    ends = outer_ends(frame, follow)
    if natural is not None:
        others = [t for t in targets if t != natural]
        if not others:
            return natural
        avoid = body | (ends - {natural})
        if natural in ends:
            # the loop falls through to something outside: a break may lead there, too
            mine = {natural}
        else:
            mine = reach(walker, [natural], avoid)
        lone = [t for t in others if t in ends]
        reached = reach(walker, [t for t in others if t not in ends], avoid - {natural})
        if natural in reached:
            # statements behind a ``break`` that lead where the loop does: ``else: continue``
            behind = [t for t in others if t in strong and t not in ends] if natural in ends else []
            return max(behind, key=lambda id: walker.analysis.weight[id]) if behind else natural
        common = mine & reached
        if not common and lone:
            # a break out of the loop that skips the else clause
            if follow in lone:
                return follow
            sure = [t for t in lone if t in strong]
            if sure:
                return sure[0]
            return lone[0] if frame.jump(lone[0]) is None else natural
        if common:
            return min(common, key=lambda id: walker.analysis.tree.number[id])
        breaks = [t for t in strong if t != natural]
        if breaks:
            return max(breaks, key=lambda id: walker.analysis.weight[id])
        return natural
    if not targets:
        return None
    if follow in targets:
        return follow
    candidates = [t for t in targets if t not in ends]
    if not candidates:
        return targets[0]
    merged = [
        id for id in reach(walker, candidates, body | ends)
        if id not in candidates and len(walker.analysis.preds[id]) > 1 and walker.analysis.dominates(head, id)
    ]
    pool = candidates + merged
    ways = [reach(walker, [id], body | ends) for id in candidates]
    analysis = walker.analysis

    def rank(id: int) -> tuple[bool, bool, bool, int, int, int]:
        reached = reach(walker, [id], body | (ends - {id}))
        goes_on = any(
            not walker.analysis.dominates(head, n) or any(s in ends for s in blocks[n].successors) for n in reached
        )
        leading = sum(id in way for way in ways)
        small = small_exit(walker, id)
        return goes_on, blocks[id].end != "raise", not small, leading, analysis.weight[id], -analysis.tree.number[id]

    return max(pool, key=rank)


def small_exit(walker: Walker, id: int) -> bool:
    block = walker.cfg.blocks[id]
    return block.end == "reraise" or (block.end in ("return", "raise") and len(block.ops) <= 3)
