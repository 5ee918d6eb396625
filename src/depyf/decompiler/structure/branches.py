"""``if`` statements: where the two edges of a branch meet, and how they are written.

Example: ``B1 [x] branch B2, B3; B2 jump B4; B3 jump B4`` is ``if x: (B2) else: (B3)`` with the join point ``B4``.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ...cfg.graph import Block
from ..errors import STRUCTURE, CannotDecompile
from ..lift import Special, State, folds_not, is_value, negate, same_node, values
from ..nodes import UntestedAssert, at_line, from_ops, line_of, refined
from .frames import Construct, Cursor, Suite, outer_ends
from .region_cfg import is_leave, reach

if TYPE_CHECKING:
    from .walk import Walker


def join_point(walker: Walker, cursor: Cursor) -> int | None:
    """Return the block in which the two edges of a branch meet; ``None`` where there is none inside what follows."""
    analysis, frame, follow = walker.analysis, cursor.frame, cursor.follow
    candidates = [
        child for child in analysis.tree.children[cursor.at]
        if len(analysis.preds[child]) > 1 and child != follow and child not in walker.cfg.kinds
        and frame.jump(child) is None and lies_in(walker, child, frame.handler)]
    if len(candidates) > 1:
        candidates.sort(key=lambda id: (analysis.weight[id], analysis.tree.number[id]), reverse=True)
    ranked: list[int | None] = [*candidates, None]
    if candidates and follow is not None and (
            frame.jump(follow) is None or is_leave(walker.cfg.blocks[candidates[0]])):
        # an exit that both edges may take is not where they meet, if one of them can go on without it
        arms = walker.cfg.blocks[cursor.at].successors
        if follow in reach(walker, arms, {candidates[0], *outer_ends(frame, follow)} - {follow}):
            ranked = [None, *candidates]
    return walker.search.choose(ranked)


def lies_in(walker: Walker, id: int, region: int | None) -> bool:
    """Return whether a block is in a protected body or leaves it; an empty one counts too, and any without a body."""
    block = walker.cfg.blocks[id]
    return (
        region is None or not block.ops or region in walker.cfg.handlers_around(block.handler)
        or (is_leave(block) and block.ops[0].target == region)
    )


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
    body = walker.walk(Cursor(t if positive else f, stack[:], target, cursor.frame))
    orelse = walker.walk(Cursor(f if positive else t, stack[:], target, cursor.frame))
    for arm in (body, orelse):
        if arm.falls and arm.stack and values(arm.stack) > values(stack):
            raise CannotDecompile(STRUCTURE, "a value crosses a join")
    written = make_if(test, positive, body, orelse, block.line)
    for stmt in written:
        if not hasattr(stmt, "lineno"):  # (asked of all that follows a guard: a call of ours would be a slow answer)
            at_line(stmt, block.line)
            if block.end_op is not None:
                from_ops(stmt, since, block.end_op.offset)
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
    """Return the ``if`` with its two arms, or what is shorter.

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
        if isinstance(only, UntestedAssert) and not stands_below(only, line) and not (
            raises_if_true and folds_not(test)
        ):
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


def stands_below(failing: UntestedAssert, line: int | None) -> bool:
    """Return whether the failing edge of an ``assert`` stands below a test, which is none of its own then.

    ``assert False`` has no test of its own (``compiler_assert`` in compile.c); its operations have the line on which it
    begins.
    """
    begins = line_of(failing)
    return begins is not None and line is not None and begins > line
