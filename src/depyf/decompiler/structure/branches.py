"""``if`` statements: where the two edges of a branch meet, and how they are written; then loops.

Example: ``B1 [x] branch B2, B3; B2 jump B4; B3 jump B4`` is ``if x: (B2) else: (B3)`` with the join point ``B4``.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ...cfg.graph import Block
from ..errors import STRUCTURE, CannotDecompile
from ..lift.spelling import folds_not, negate
from ..lift.stack import CaseTest, Iter, PendingTarget, Special, State, Target, is_value, same_node, values
from ..nodes import UntestedAssert, at_line, from_ops, line_of, refined
from .analysis import is_leave, reached
from .frames import Construct, Cursor, Frame, LoopFrame, Suite, outer_ends
from .loop_exits import Loop, first_of, loop_exit

if TYPE_CHECKING:
    from .walk import Walker


#: In more suites than these, one in the other, guards are written one after the other, whatever the author may have
#: written: Python's stack is not deep enough for hundreds of them.
_DEEP = 100


def join_point(walker: Walker, cursor: Cursor) -> int | None:
    """Return the block in which the two edges of a branch meet; ``None`` where there is none inside what follows."""
    analysis, frame, follow = walker.analysis, cursor.frame, cursor.follow
    candidates = [
        child for child in analysis.tree.children[cursor.at]
        if sum(pred not in analysis.loops.get(child, ()) for pred in analysis.preds[child]) > 1
        and child != follow and child not in walker.cfg.kinds
        and frame.jump(child) is None]
    if len(candidates) > 1:
        candidates.sort(key=lambda id: (analysis.weight[id], analysis.tree.number[id]), reverse=True)
    ranked: list[int | None] = [*candidates, None]
    if candidates and follow is not None and (
            frame.jump(follow) is None or is_leave(walker.cfg.blocks[candidates[0]])):
        # an exit that both edges may take is not where they meet, if one of them can go on without it
        arms = walker.cfg.blocks[cursor.at].successors
        if follow in reached(walker, arms, {candidates[0], *outer_ends(frame, follow)} - {follow}):
            ranked = [None, *candidates]
    return walker.search.choose(ranked)


def branch(walker: Walker, cursor: Cursor, block: Block, state: State) -> Construct:
    """Write the ``if`` that a block ends in.

    Args:
        walker: writes the arms.
        cursor: where the block is.
        block: ends in the branch.
        state: after the block's operations, with the tested value on the stack.
    """
    done, since = len(state.stmts), walker.executor.since
    test = _tested(walker, state)
    stack = state.stack
    t, f = block.successors
    join = join_point(walker, cursor)
    target = cursor.follow if join is None else join
    positive = walker.cfg.order[t] <= walker.cfg.order[f]
    if positive and t == target and f != target:
        positive = False
    elif not positive and f == target and t != target:
        positive = True
    out = state.stmts[done:]
    may_go_on = walker.depth > _DEEP and join is None and not folds_not(test)
    jump = cursor.frame.jump(target) if may_go_on and target is not None and target in (t, f) else None
    if jump is not None:
        body, positive = Suite([jump], False, stack), target == t
    else:
        body = walker.walk(Cursor(t if positive else f, stack[:], target, cursor.frame))
    other = f if positive else t
    if may_go_on and not body.falls:  # (a guard: what follows it is not written within it)
        orelse, target = Suite([], True, stack[:]), other
    else:
        orelse = walker.walk(Cursor(other, stack[:], target, cursor.frame))
    for arm in (body, orelse):
        if arm.falls and arm.stack and values(arm.stack) > values(stack):
            raise CannotDecompile(STRUCTURE, "a value crosses a join")
    written = make_if(test, positive, body, orelse, block.line)
    if not hasattr(written[0], "lineno"):  # (The others are statements of an arm.)
        at_line(written[0], block.line)
        if block.end_op is not None:
            from_ops(written[0], since, block.end_op.offset)
    out += written
    if not body.falls and not orelse.falls:
        return Construct(out, None, stack)
    if body.falls and orelse.falls:
        _check_same(body, orelse)
    return Construct(out, target, body.stack if body.falls else orelse.stack)


def _tested(walker: Walker, state: State) -> ast.expr:
    """Take the tested value; others that are waiting get names where that is allowed."""
    executor = walker.executor
    entry = state.pop()
    if isinstance(entry, Special):
        raise CannotDecompile(STRUCTURE, "a test of the compiler")
    test = executor.resolve(entry)
    if state.stack and values(state.stack):
        if not executor.spill:
            raise CannotDecompile(STRUCTURE, "a value is pending across a branch")
        state.stack.append(test)
        executor.spill_pending(state)
        test = executor.resolve(state.stack.pop())
    return test


def _check_same(body: Suite, orelse: Suite) -> None:
    """Check that both arms leave the same values."""
    if len(body.stack) != len(orelse.stack):
        raise CannotDecompile(STRUCTURE, "different stacks at a join")
    if body.stack and values(body.stack):
        for one, other in zip(body.stack, orelse.stack):
            if is_value(one) and not same_node(one, other):
                raise CannotDecompile(STRUCTURE, "different values at a join")


def make_if(test: ast.expr, positive: bool, body: Suite, orelse: Suite, line: int | None) -> list[ast.stmt]:
    """Return the ``if`` with its two arms, or a shorter form.

    Args:
        test: the tested value.
        positive: whether ``body`` runs where it is true.
        body: the arm that is written first.
        orelse: the other arm.
        line: of the test.
    """
    # the rest of an ``assert``; one that tests a constant itself (3.9 and before) is complete
    for arm, other, raises_if_true in ((body, orelse, positive), (orelse, body, not positive)):
        only = arm.statements[0] if len(arm.statements) == 1 else None
        # (``assert not a is b`` would be compiled as ``assert a is not b``.)
        # (``assert False`` has no test: ``compiler_assert`` in compile.c. It begins on a line below that of another.)
        is_below = line is not None and only is not None and (line_of(only) or 0) > line
        if isinstance(only, UntestedAssert) and not is_below and not (raises_if_true and folds_not(test)):
            statement = refined(only, ast.Assert)
            statement.test = negate(test) if raises_if_true else test
            return [statement, *other.statements]
    if not positive and (not body.statements or folds_not(test)):
        # ``not (a in b)`` would be compiled as ``a not in b``
        body, orelse, positive = orelse, body, True
    if not body.statements and orelse.statements and not folds_not(test) and positive:
        body, orelse, positive = orelse, body, False
    condition = test if positive else negate(test)
    if not body.falls and body.statements and orelse.statements:
        return [ast.If(condition, body.statements, []), *orelse.statements]
    return [ast.If(condition, body.statements or [ast.Pass()], orelse.statements)]


# --- loops -------------------------------------------------------------------------------------------
def loop(walker: Walker, cursor: Cursor) -> Construct:
    """Write the loop whose head control is at."""
    at, frame = cursor.at, cursor.frame
    block = walker.cfg.blocks[at]
    around: Frame | None = frame
    while around is not None:
        if isinstance(around, LoopFrame) and around.head == at and around.handler == frame.handler:
            raise CannotDecompile(STRUCTURE, "a jump to the head of an outer loop")
        around = around.parent
    body = walker.analysis.loops.get(at) or body_without_return(walker, at)
    if block.end == "for":
        return for_loop(walker, cursor, block, body)
    normal_exit = _end_of_test(walker, cursor, block, body)
    found = Loop(at, body, normal_exit, cursor.follow, frame)
    exit_ = loop_exit(walker, found)
    inner = LoopFrame(frame, frame.handler, at, exit_)
    if normal_exit not in (None, exit_) and exit_ is not None and (
            found.has_else or is_else(walker, normal_exit, exit_, body, frame)):
        return while_else(walker, cursor, block, normal_exit, exit_, inner)
    suite = walker.walk(Cursor(at, cursor.stack[:], at, inner), entered=at)
    if suite.falls and values(suite.stack) > values(cursor.stack):
        raise CannotDecompile(STRUCTURE, "a value crosses a loop")
    written = make_while(suite.statements, _is_endless(walker, block))
    for stmt in written:
        at_line(stmt, block.line)
    return Construct(written, exit_, cursor.stack)


def _is_endless(walker: Walker, head: Block) -> bool:
    """Return whether the line table shows ``while True`` before the block that a loop begins with."""
    evidence = walker.evidence()
    return bool(head.ops) and evidence is not None and evidence.endless(head.ops[0].offset) is not None


def _end_of_test(walker: Walker, cursor: Cursor, block: Block, body: set[int]) -> int | None:
    """Return where a loop goes when the test at its head ends it; ``None`` where the head is no test alone."""
    out = [succ for succ in block.successors if succ not in body]
    if block.end != "branch" or len(out) != 1 or _is_endless(walker, block):
        return None
    probe = State(cursor.stack[:])
    try:
        walker.executor.run(probe, block.ops, to_statement=True)
    except CannotDecompile:
        return None
    test = probe.stack[-1] if probe.stack else None
    first = test.values[0] if isinstance(test, ast.BoolOp) else test
    return None if probe.stmts or isinstance(first, CaseTest) else out[0]


def body_without_return(walker: Walker, head: int) -> set[int]:
    """Return the blocks that handle the item of a ``for`` that no edge leads back to.

    These are all until its iterator is dropped.
    """
    blocks = walker.cfg.blocks
    body = {head}
    work = [(blocks[head].successors[0], 1)] if blocks[head].end == "for" else []
    while work:
        id, iterators = work.pop()
        if id in body or not walker.analysis.dominates(blocks[head].successors[0], id):
            continue
        body.add(id)
        block = blocks[id]
        iterators -= sum(op.kind == "POP" and op.arg == "iterator" for op in block.ops)
        if iterators:
            work += [(succ, iterators + (block.end == "for" and succ == block.successors[0]))
                     for succ in block.successors]
    return body


def is_else(walker: Walker, normal_exit: int, exit_: int, body: set[int], frame: Frame) -> bool:
    """Return whether the statements at ``normal_exit`` can only be an ``else`` clause: they go on in a loop around."""
    if normal_exit == exit_:
        return False
    ends = outer_ends(frame, None) - {exit_}
    return bool(ends) and bool(first_of(walker, ends, [normal_exit], body | {exit_}))


def while_else(
    walker: Walker, cursor: Cursor, block: Block, normal_exit: int, exit_: int, inner: LoopFrame
) -> Construct:
    """Write a ``while`` with an ``else``."""
    state = State(cursor.stack[:])
    walker.executor.run(state, block.ops)
    test = walker.executor.pop(state)
    t, f = block.successors
    body = walker.walk(Cursor(f if t == normal_exit else t, cursor.stack[:], cursor.at, inner)).statements
    orelse = walker.walk(Cursor(normal_exit, cursor.stack[:], exit_, cursor.frame)).statements
    statement = ast.While(negate(test) if t == normal_exit else test, body or [ast.Pass()], orelse)
    return Construct([at_line(statement, block.line)], exit_, cursor.stack)


def make_while(stmts: list[ast.stmt], is_endless: bool) -> list[ast.stmt]:
    """Write ``while True: if not c: break ...`` as ``while c: ...``, unless it is known to be endless."""
    if stmts and isinstance(stmts[-1], ast.Continue):
        stmts = stmts[:-1]
    first = stmts[0] if stmts and not is_endless else None
    if isinstance(first, ast.If):
        if len(first.body) == 1 and isinstance(first.body[0], ast.Break):
            if not first.orelse and not folds_not(first.test):
                return [ast.While(negate(first.test), stmts[1:] or [ast.Pass()], [])]
        elif len(first.orelse) == 1 and isinstance(first.orelse[0], ast.Break):
            return [ast.While(first.test, [*first.body, *stmts[1:]], [])]
    return [ast.While(ast.Constant(True), stmts or [ast.Pass()], [])]


def for_loop(walker: Walker, cursor: Cursor, block: Block, body: set[int]) -> Construct:
    """Write a ``for``."""
    out: list[ast.stmt] = []
    stack = cursor.stack
    if block.ops:
        state = State(stack)
        walker.executor.run(state, block.ops)
        out += state.stmts
        stack = state.stack
    iterator = stack[-1] if stack else None
    if not isinstance(iterator, Iter):
        raise CannotDecompile(STRUCTURE, "a for loop over something that is on the stack")
    line = walker.executor.line if block.ops else None
    iterable = iterator.value
    start, normal_exit = block.successors
    exit_ = loop_exit(walker, Loop(cursor.at, body, normal_exit, cursor.follow, cursor.frame))
    target, statements = _items(walker, cursor, start, stack, normal_exit if exit_ is None else exit_)
    statement = at_line(ast.For(target, iterable, statements, []), block.line)
    at_line(statement, line)
    return _with_else(walker, cursor, statement, out, normal_exit, exit_, stack[:-1])


def _items(
    walker: Walker, cursor: Cursor, start: int, stack: list[object], exit_: int
) -> tuple[ast.expr, list[ast.stmt]]:
    """Return the target and the statements of a loop whose body begins at ``start``."""
    inner = LoopFrame(cursor.frame, cursor.frame.handler, cursor.at, exit_)
    owner = Target()
    statements = walker.walk(Cursor(start, [*stack, PendingTarget(owner)], cursor.at, inner)).statements
    if owner.target is None:
        raise CannotDecompile(STRUCTURE, "an item that is not stored")
    return owner.target, statements or [ast.Pass()]


def _with_else(
    walker: Walker, cursor: Cursor, loop: ast.For | ast.AsyncFor, out: list[ast.stmt], normal_exit: int,
    exit_: int | None, rest: list[object],
) -> Construct:
    """Write the ``else`` of a loop, for its normal exit, if a ``break`` leads elsewhere."""
    out.append(loop)
    if exit_ is None or exit_ == normal_exit:
        return Construct(out, normal_exit, rest)
    loop.orelse = walker.walk(Cursor(normal_exit, rest[:], exit_, cursor.frame)).statements
    return Construct(out, exit_, rest)


def async_for(walker: Walker, region: int, cursor: Cursor) -> Construct:
    """Write an ``async for``, which ends by an exception."""
    block = walker.cfg.blocks[cursor.at]
    stack = cursor.stack
    iterator = stack[-1] if stack else None
    if not isinstance(iterator, Iter) or [op.kind for op in block.ops] != ["GET_ANEXT_AWAIT"] or block.end != "jump":
        raise CannotDecompile(STRUCTURE, "an async for loop")
    normal_exit = walker.cfg.blocks[region].successors[0]
    body = walker.analysis.loops.get(cursor.at) or body_without_return(walker, cursor.at)
    exit_ = loop_exit(walker, Loop(cursor.at, body, normal_exit, cursor.follow, cursor.frame))
    target, statements = _items(walker, cursor, block.successors[0], stack, normal_exit if exit_ is None else exit_)
    statement = at_line(ast.AsyncFor(target, iterator.value, statements, []), block.ops[0].line)
    return _with_else(walker, cursor, statement, [], normal_exit, exit_, stack[:-1])
