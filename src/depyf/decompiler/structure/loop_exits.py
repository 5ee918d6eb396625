"""The target of ``break``: which of the edges out of a loop leads to the place after it.

Nothing in the code says so. :func:`loop_exit` examines the edges out of the loop (:class:`_Edges`), ranks the
places they lead to, and leaves the choice to the search.

Example: ``for x in xs: if x: break`` with ``else: a()``, then ``b()``. The normal exit is ``a()``; the other
edge drops the iterator before ``b()``, which only a ``break`` does. The candidates are ``b()``, then ``a()``.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...bytecode.operations import Op
from ...cfg.graph import Block
from .analysis import reach, reached, straight
from .evidence import INDENTATION, Evidence
from .fold_expressions import effect_of
from .frames import Frame, outer_ends

if TYPE_CHECKING:
    from .walk import Walker


@dataclass(slots=True, eq=False)
class Loop:
    """A loop whose exit is looked for.

    Attributes:
        head: its first block.
        body: its blocks, with those in it that never lead back.
        normal_exit: where it goes when it ends normally; ``None`` where it does not.
        follow: where the statements around it end.
        frame: the construct around it.
        has_else: whether the code at its normal exit is known to be indented: an ``else``.
    """

    head: int
    body: set[int]
    normal_exit: int | None
    follow: int | None
    frame: Frame
    has_else: bool = False


def loop_exit(walker: Walker, loop: Loop) -> int | None:
    """Return the target of ``break``; ``None`` where nothing leads out."""
    edges = _Edges(walker, loop)
    likeliest = _outermost(walker, loop, _likeliest(walker, loop, edges))
    others = [] if loop.normal_exit is None else [loop.normal_exit]
    others += sorted(edges.targets, key=lambda id: -walker.analysis.weight[id])
    ranked = [likeliest, *(id for id in dict.fromkeys(others) if id != likeliest)]
    if likeliest is not None and ranked == others == [loop.normal_exit]:
        return walker.search.choose(ranked)  # (Most loops have no ``break``.)
    inside, _ = in_loop(walker, loop, ranked, outer_ends(loop.frame, None))
    if inside.issuperset(ranked) and walker.cfg.blocks[loop.head].end != "for":  # (No ``break`` leads anywhere.)
        last = loop.normal_exit if loop.normal_exit is not None else _after_breaks(walker, loop, edges.targets)
        return walker.search.choose([last, *(id for id in ranked if id != last)])
    loop.has_else = loop.normal_exit in inside
    return walker.search.choose(sorted(ranked, key=lambda id: id in inside))


def _after_breaks(walker: Walker, loop: Loop, targets: list[int]) -> int | None:
    """Return the first block that is known to be after a loop, where the places that it leads to are all in it.

    These are the statements before a ``break``. ``None`` where none is after it, or a ``return`` to which several ways
    lead by one ``break``: written in the loop, it shows by its column where that is.
    """
    follow, ends = loop.follow, outer_ends(loop.frame, None)
    region = reach(walker, targets, loop.body | outer_ends(loop.frame, follow))
    inside, after = in_loop(walker, loop, region if follow is None else {*region, follow}, ends)
    if follow is not None and any(follow in walker.cfg.blocks[id].successors for id in region):
        return follow if inside == region else None
    found = min(after, key=lambda id: walker.analysis.tree.number[id], default=None)
    if found is None or walker.cfg.blocks[found].end != "return" or len(walker.analysis.preds[found]) == 1:
        return found
    lines = [op.line for id in (loop.head, found) for op in walker.cfg.blocks[id].ops[:1] if op.line is not None]
    evidence = walker.evidence()
    assert evidence is not None
    breaks = [each for each in evidence.exits if each.kind == "break" and lines and lines[0] <= each.line <= lines[-1]]
    return None if len(breaks) == 1 else found


def first_of(walker: Walker, ends: set[int], starts: Collection[int], avoid: set[int]) -> set[int]:
    """Return those of ``ends`` that control can come to first."""
    result = ends.intersection(starts)
    for id in reach(walker, starts, avoid | ends):
        result.update(ends.intersection(walker.cfg.blocks[id].successors))
    return result


# --- evidence from the edges out of a loop --------------------------------------------------------------
class _Edges:
    """The places that the edges out of a loop lead to, once control has left the constructs inside.

    Attributes:
        targets: all of them.
        strong: those that only a ``break`` leads to, as far as the path there shows.
    """

    def __init__(self, walker: Walker, loop: Loop) -> None:
        self.walker = walker
        self.loop = loop
        self.targets: list[int] = []
        self.strong: list[int] = []
        blocks = walker.cfg.blocks
        for id in loop.body:
            for succ in blocks[id].successors:
                if succ not in loop.body:
                    self._follow(id, succ)
        if walker.late_breaks and loop.normal_exit is not None and blocks[loop.head].end == "for":
            for target in late_breaks(walker, loop.head, loop.body, loop.normal_exit):
                self._add(self.targets, target)
                self._add(self.strong, target)

    @staticmethod
    def _add(places: list[int], target: int) -> None:
        if target not in places:
            places.append(target)

    def _follow(self, id: int, succ: int) -> None:
        """Follow an edge out of the loop to where it leads."""
        walker, loop = self.walker, self.loop
        blocks = walker.cfg.blocks
        target = skip_unwinding(walker, succ, loop.head)
        goal = blocks[target]
        if goal.end == "reraise" and target != loop.follow:  # (a ``finally`` ends in one)
            return
        ops, last = straight(walker.cfg, target)
        if last.end == "return" and not last.ops and all(op.kind == "LEAVE" for op in ops):
            return  # the value to return is on the stack already: no ``break`` carries one
        at_once = _returns_at_once(walker, goal)
        if at_once and was_return(walker, last.end_op):
            return
        # (an exit of a body or handler has no statement)
        leaves_body = target != succ and blocks[loop.head].end == "branch" and (
            goal.end != "return" or len(goal.ops) > 1)
        if leaves_body or target != succ and drops_iterator(walker, succ, target):
            normal_exit = loop.normal_exit
            if normal_exit not in (None, target) and walker.cfg.is_copy(target, normal_exit):
                while blocks[succ].successors[0] != target:  # (from a copy of the code after the loop to the original)
                    succ = blocks[succ].successors[0]
                blocks[succ].successors[0] = normal_exit
                return
            if leaves_body or not at_once:
                self.strong.append(target)
        if not (id == loop.head and succ == loop.normal_exit):
            self._add(self.targets, target)


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


def late_breaks(walker: Walker, head: int, body: set[int], normal_exit: int) -> Iterator[int]:
    """Yield the targets of breaks that come after other statements (``if x: y = 1; break``)."""
    inner: set[int] = set()
    for other in body & walker.analysis.loops.keys():
        # an edge out of an inner loop drops that one's iterator first
        if other != head:
            inner |= walker.analysis.loops[other] - {other}
    blocks = walker.cfg.blocks
    for start in [succ for id in body - inner for succ in blocks[id].successors if succ not in body]:
        if start != normal_exit:
            yield from _late_breaks_from(walker, start)


def _late_breaks_from(walker: Walker, start: int) -> Iterator[int]:
    """Yield the targets of breaks after the statements that only the edge to ``start`` leads to."""
    blocks = walker.cfg.blocks
    seen: set[int] = set()
    work = [start]
    while work and len(seen) < 50:
        id = work.pop()
        if id in seen or not walker.analysis.dominates(start, id):
            continue
        seen.add(id)
        block = blocks[id]
        if block.ops and (block.ops[-1].kind, block.ops[-1].arg) == ("POP", "iterator"):
            goal = blocks[block.successors[0]] if block.end == "jump" and (len(block.ops) > 1 or id != start) else None
            if goal is not None and not _returns_at_once(walker, goal) and goal.end != "reraise" and not (
                    len(block.ops) > 1 and block.ops[-2].kind == "SWAP" or was_return(walker, block.ops[-1])):
                yield goal.id
        elif block.end in ("jump", "branch") and not any(
            op.arg == "iterator" and op.kind == "POP" or op.kind == "GET_ITER" for op in block.ops
        ):
            work.extend(block.successors)


def was_return(walker: Walker, op: Op | None) -> bool:
    """Return whether an operation is known to be of a ``return`` of nothing."""
    evidence = walker.evidence()
    return evidence is not None and op is not None and evidence.word_at(op.offset) in ("return", "return None")


def _returns_at_once(walker: Walker, goal: Block) -> bool:
    """Return whether a ``return`` may have dropped the iterator before this block, which perhaps leaves bodies.

    It computes its value before that, unless it is a constant.
    """
    ops, last = straight(walker.cfg, goal.id)
    return last.end == "return" and [op.kind for op in ops if op.kind != "LEAVE"] in ([], ["CONST"])


def drops_iterator(walker: Walker, id: int, target: int) -> bool:
    """Return whether the path from ``id`` to ``target`` drops an iterator."""
    blocks = walker.cfg.blocks
    while id != target:
        if any(op.kind == "POP" and op.arg == "iterator" for op in blocks[id].ops):
            return True
        id = blocks[id].successors[0]
    return False


def is_small_exit(walker: Walker, id: int) -> bool:
    """Return whether a block leaves the function after few operations, so that the compiler copies it."""
    block = walker.cfg.blocks[id]
    return block.end == "reraise" or (block.end in ("return", "raise") and len(block.ops) <= 3)


# --- the likeliest -------------------------------------------------------------------------------------
def _outermost(walker: Walker, loop: Loop, chosen: int | None) -> int | None:
    """Return the chosen exit, or an end of the loop around.

    To those only ``break`` leads from inside, or a ``return`` of its own.
    """
    blocks, body = walker.cfg.blocks, loop.body
    ends = {
        end for end in outer_ends(loop.frame, None)
        if end not in body and not (blocks[end].end == "return" and is_small_exit(walker, end))
    }
    if not ends or chosen in ends:
        return chosen
    starts = [succ for id in body for succ in blocks[id].successors if succ not in body and succ != loop.normal_exit]
    missed = first_of(walker, ends, starts, body if chosen is None else body | {chosen})
    return missed.pop() if len(missed) == 1 else chosen


def _likeliest(walker: Walker, loop: Loop, edges: _Edges) -> int | None:
    if loop.normal_exit is not None:
        return _beside_normal_exit(walker, loop, loop.normal_exit, edges)
    if not edges.targets:
        return None
    if loop.follow in edges.targets:
        return loop.follow
    ends = outer_ends(loop.frame, loop.follow)
    candidates = [target for target in edges.targets if target not in ends]
    blocks, weight = walker.cfg.blocks, walker.analysis.weight
    return max(candidates or edges.targets,
               key=lambda id: (blocks[id].end != "raise", not is_small_exit(walker, id), weight[id]))


def _first_common(
    walker: Walker, one: int, others: Collection[int], avoid: Collection[int], goes_on: bool,
) -> int | None:
    """Return the first block, in reverse postorder, that control can come to from ``one`` and from one of the others.

    Args:
        walker: has the graph; its budget is charged.
        one, others: where control begins; they count themselves.
        avoid: blocks that control does not pass.
        goes_on: whether what comes after ``one`` counts, too.
    """
    number, blocks = walker.analysis.tree.number, walker.cfg.blocks
    sides: dict[int, int] = {one: 1}  # (1: from ``one``, 2: from the others, 3: from both)
    for id in others:
        sides[id] = sides.get(id, 0) | 2
    pending = [(number[id], id) for id in sides if id not in avoid]
    heapq.heapify(pending)
    done: set[int] = set()
    while pending:
        _, id = heapq.heappop(pending)
        if id in done:
            continue
        if sides[id] == 3:
            return id
        done.add(id)
        if len(done) % 8 == 0:
            walker.spend(1)
        for succ in blocks[id].successors if goes_on or id != one else ():
            if succ not in avoid and succ not in done:
                sides[succ] = sides.get(succ, 0) | sides[id]
                heapq.heappush(pending, (number[succ], succ))
    return None


def _beside_normal_exit(walker: Walker, loop: Loop, normal_exit: int, edges: _Edges) -> int:
    """Return the exit of a loop that can end normally: the join after an ``else``, or the normal exit."""
    others = [target for target in edges.targets if target != normal_exit]
    if not others:
        return normal_exit
    analysis = walker.analysis
    ends = outer_ends(loop.frame, loop.follow)
    # (where the loop falls through to something outside, a break may lead there, too)
    common = _first_common(walker, normal_exit, [target for target in others if target not in ends],
                           loop.body | (ends - {normal_exit}), goes_on=normal_exit not in ends)
    if common == normal_exit:
        # statements after a ``break`` that lead where the loop does: ``else: continue``
        beyond = [target for target in others if target in edges.strong and target not in ends] \
            if normal_exit in ends else []
        return max(beyond, key=lambda id: analysis.weight[id]) if beyond else normal_exit
    if common is not None:
        return common
    lone = [target for target in others if target in ends]
    if lone:
        return lone[0]
    breaks = [target for target in edges.strong if target != normal_exit]
    return max(breaks, key=lambda id: analysis.weight[id]) if breaks else normal_exit


# --- Where loops are, and the places that they lead to ---------------------------------------
# The statements of a loop are indented, and so are those of its ``else``. The next statement is not: it begins
# left of them. Without columns, statements with lines between those of the loop are in it.
#
# Example: ``while True:`` / ``    x = f()`` / ``    if x: return x``. The ``return`` is indented like the loop body,
# so no ``break`` leads there.
#: Operations that leave loops, handlers and ``with``: they have the indentation of that statement.
_UNWINDING = frozenset({
    "POP_EXCEPT", "LEAVE", "SWAP", "COPY", "PUSH_EXC_INFO", "WITH_EXCEPT_START", "END_ASYNC_FOR"})
#: Ends of blocks that are no part of a statement: the jump back of a loop has its span.
_NOT_WRITTEN = ("jump", "reraise")
#: The kinds of handlers whose protected bodies are indented.
_INDENTED = ("except", "except*", "finally", "with")
#: Operations that begin a compound statement, after its head.
_HEADS = ("GET_ITER", "GET_AITER", "BEFORE_WITH", "BEFORE_ASYNC_WITH")


def in_loop(
    walker: Walker, loop: Loop, candidates: Collection[int | None], ends: set[int],
) -> tuple[set[int], set[int]]:
    """Return the blocks among ``candidates`` that are in a loop or in its ``else``, and those known to be left of it.

    Args:
        walker: knows the graph, and the facts.
        loop: the loop.
        candidates: blocks that it leads to.
        ends: where the loops around it begin and end.
    """
    evidence, blocks, body = walker.evidence(), walker.cfg.blocks, loop.body
    if evidence is None or not evidence.has_lines:
        return set(), set()
    head = blocks[loop.head]
    endless = evidence.endless(head.ops[0].offset) if head.ops else None
    iterating = head.end_op if head.end in ("for", "branch") and endless is None else None  # (It has the loop's span.)
    places = [place for id in body for op in _before_leaving(blocks[id])
              if op is not iterating and (place := evidence.place(op.offset)) is not None]
    if not places:
        return set(), set()
    lines = [line for line, _ in places]
    first, last = min(lines), max(lines)
    indentation = min([column for _, column in places if column is not None], default=None)
    if endless is not None and indentation is not None:  # (The tests in it begin further right.)
        indentation = min(indentation, endless + INDENTATION)
    elif head.end == "branch" and indentation is not None:  # (So may those of a loop of nothing but tests.)
        test = [place[1] for op in head.ops if (place := evidence.place(op.offset)) is not None]
        indentation = min([indentation, *(each - len("while ") + INDENTATION for each in test if each is not None)])
    around = set.intersection(*(set(walker.cfg.handlers_around(blocks[id].handler)) for id in body))
    inside, after = set(), set()
    for id in candidates:
        if id is None:
            continue
        line, column = _start(walker, evidence, id, body | ends, indentation)
        if column is not None and any(walker.cfg.kinds.get(handler) in _INDENTED[:3] for handler in
                                      walker.cfg.handlers_around(blocks[id].handler) if handler not in around):
            column -= INDENTATION
        if line is None or line < first or line == first and not _fails(blocks[id]):
            continue
        if line <= last if column is None or indentation is None else column >= indentation:
            inside.add(id)
        elif column is not None and indentation is not None:
            after.add(id)
    return inside, after


def _fails(block: Block) -> bool:
    """Return whether a block is the end of an ``assert`` that fails."""
    return bool(block.ops) and block.ops[0].kind == "LOAD_ASSERTION_ERROR"


def _before_leaving(block: Block) -> list[Op]:
    """Return the operations of a block up to where a handler or protected body is left."""
    ops: list[Op] = []
    for op in block.ops:
        if op.kind in _UNWINDING:
            if op.kind in ("POP_EXCEPT", "LEAVE"):
                return ops
        else:
            ops.append(op)
    if block.end_op is not None and block.end not in _NOT_WRITTEN:
        ops.append(block.end_op)
    return ops


def _start(
    walker: Walker, evidence: Evidence, id: int, avoid: set[int], indentation: int | None,
) -> tuple[int | None, int | None]:
    """Return the line and column at which the first statement of a block begins; of ``try``, of the first in it.

    Args:
        walker: knows the graph.
        evidence: the facts.
        id: of the block.
        avoid: blocks that are no part of the statement.
        indentation: any column left of it does for those that are (``None``: no bound), so that not all code after a
            loop is examined.
    """
    block = walker.cfg.blocks[id]
    ops = _statement_ops(block)
    while not ops and block.end == "jump" and block.ops and block.successors[0] not in avoid:
        block = walker.cfg.blocks[block.successors[0]]
        id, ops = block.id, _statement_ops(block)
    if [op.kind for op in ops] == ["CONST", "RETURN"]:
        # (Both have the span of the constant, or that of the ``return`` where there is none.)
        return evidence.start_of_return(ops[0].arg, ops[1].offset)
    places = [(op, place) for op in ops if (place := evidence.place(op.offset)) is not None]
    if not places:
        return None, None
    line = min(place[0] for _, place in places)
    on_it = [(op, column) for op, (at, column) in places if at == line and column is not None]
    is_compound = any(op.kind in _HEADS for op, _ in on_it) or block.end == "for" or block.end == "branch" and not any(
        op.kind.startswith(("STORE", "DEL")) or op.kind in ("POP", "SETITEM") for op, _ in on_it)
    if not is_compound:
        # (``del`` has the span of its target. ``while True:`` has no operation: the first statement in it has.)
        step = INDENTATION if id in walker.analysis.loops else len("return ") * _is_returned(walker, block)
        columns = [column - len("del ") * op.kind.startswith("DEL") for op, column in on_it]
        return line, min(columns) - step if columns else None
    if indentation is None or not evidence.has_columns:
        return line, None
    test = [column for op, column in on_it if op is not block.end_op]
    begin = min(test, default=0) if block.end == "branch" else 0
    jump = min((column for op, column in on_it if op is block.end_op), default=begin)
    if jump < begin:  # (It has the span of the statement.)
        return line, jump
    if any(_fails(walker.cfg.blocks[succ]) for succ in block.successors):
        return line, begin - len("assert ")
    least: int | None = None
    around = walker.cfg.handlers_around(block.handler)
    for each in reached(walker, [id], avoid):
        part = walker.cfg.blocks[each]
        bodies = sum(walker.cfg.kinds.get(handler) in _INDENTED and handler not in around
                     for handler in walker.cfg.handlers_around(part.handler))
        for op in _statement_ops(part):
            place = evidence.place(op.offset)
            if place is not None and place[1] is not None and place[0] > line and place[1] >= begin - INDENTATION:
                column = place[1] - INDENTATION * bodies
                least = column if least is None else min(least, column)
        if least is not None and least - INDENTATION < indentation:
            break
    return line, None if least is None else least - INDENTATION


def _is_returned(walker: Walker, block: Block) -> bool:
    """Return whether a block computes the value of a ``return`` that protected bodies are left before, and no more."""
    ops, last = straight(walker.cfg, block.id)
    rest = ops[len(block.ops):]
    depths = list(itertools.accumulate(pushed - popped for popped, pushed in map(effect_of, block.ops)))
    return block.end == "jump" and last.end == "return" and not last.ops and bool(rest) and all(
        op.kind == "LEAVE" for op in rest) and depths[-1:] == [1] and 0 not in depths


def _statement_ops(block: Block) -> list[Op]:
    ops = [op for op in block.ops if op.kind not in _UNWINDING and (op.kind, op.arg) != ("POP", "iterator")]
    return ops if block.end_op is None or block.end in _NOT_WRITTEN else [*ops, block.end_op]
