"""``if`` statements: where the two ways of a branch meet, and how they are written.

Changes with how the compiler lays out an ``if``.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from ...cfg.graph import Block
from ..lift import Special, State, is_value, negate, same_node, values
from ..nodes import UntestedAssert, at_line, line_of
from .breaks import reach
from .frames import Frame, outer_ends
from .patterns import case_of
from .region_cfg import Untangled, is_leave

if TYPE_CHECKING:
    from .walk import Walker


def join_of(walker: Walker, at: int, follow: int, frame: Frame) -> int | None:
    """Return the join point of a branch's two edges; ``None`` if it has none."""
    best: int | None = None
    score: tuple[int, int] | None = None
    for child in walker.analysis.tree.children[at]:
        if len(walker.analysis.preds[child]) < 2 or child == follow or child in walker.cfg.kinds:
            continue
        if frame.jump(child) is not None or not lies_in(walker, child, frame.handler):
            continue
        mark = (walker.analysis.weight[child], walker.analysis.tree.number[child])
        if score is None or mark > score:
            best, score = child, mark
    if best is not None and (frame.jump(follow) is None or is_leave(walker.cfg.blocks[best])):
        # an exit that both ways may take is not where they meet, if one of them can go on without it
        arms = walker.cfg.blocks[at].successors
        if follow in reach(walker, arms, {best, *outer_ends(frame, follow)} - {follow}):
            return None
    return best


def lies_in(walker: Walker, id: int, region: int | None) -> bool:
    """Return whether a block is in a protected body or leaves it; an empty block counts too, and any without a body."""
    block = walker.cfg.blocks[id]
    return (
        region is None or not block.ops or region in walker.cfg.handlers_around(block.handler)
        or (is_leave(block) and block.ops[0].target == region)
    )


def branch(
    walker: Walker, at: int, block: Block, state: State, follow: int, frame: Frame
) -> tuple[list[ast.stmt], int | None, list[Any]]:
    done = len(state.stmts)
    test: Any = state.stack.pop() if state.stack else None
    if isinstance(test, Special):
        raise Untangled("a test of the compiler")
    test = walker.machine.resolve(test)
    stack = state.stack
    if walker.machine.spill and values(stack):
        stack.append(test)
        walker.machine.spill_pending(state)
        test = stack.pop()
    elif values(stack):
        raise Untangled("a value is pending across a branch")
    t, f = block.successors
    join = join_of(walker, at, follow, frame)
    target = follow if join is None else join
    positive = walker.cfg.order[t] <= walker.cfg.order[f]
    if positive and t == target and f != target:
        positive = False
    elif not positive and f == target and t != target:
        positive = True
    line = block.line
    pending = state.stmts[done:]
    a, b = (t, f) if positive else (f, t)
    body, falls_a, stack_a = walker.walk(a, stack[:], target, frame)
    orelse, falls_b, stack_b = walker.walk(b, stack[:], target, frame)
    for falls, after in ((falls_a, stack_a), (falls_b, stack_b)):
        if falls and values(after) > values(stack):
            raise Untangled("a value crosses a join")
    if falls_a and falls_b and len(stack_a) != len(stack_b):
        raise Untangled("different stacks at a join")
    stmts: list[ast.stmt] = pending
    made = make_if(test, positive, body, orelse, falls_a, falls_b, join is None and not falls_b)
    for stmt in made:
        if line_of(stmt) is None:
            at_line(stmt, line)
    stmts += made
    if not falls_a and not falls_b:
        return stmts, None, stack
    if falls_a and falls_b and values(stack_a):
        for one, other in zip(stack_a, stack_b):
            if is_value(one) and not same_node(one, other):
                raise Untangled("different values at a join")
    return stmts, target, stack_a if falls_a else stack_b


def make_if(
    test: ast.expr, positive: bool, body: list[ast.stmt], orelse: list[ast.stmt],
    falls_a: bool, falls_b: bool, flat: bool,
) -> list[ast.stmt]:
    # the rest of an ``assert``; one that tests a constant itself (3.9 and before) is complete
    if len(body) == 1 and isinstance(body[0], UntestedAssert):
        condition = negate(test) if positive else test
        return [ast.Assert(condition, body[0].msg), *orelse]
    if len(orelse) == 1 and isinstance(orelse[0], UntestedAssert):
        condition = test if positive else negate(test)
        return [ast.Assert(condition, orelse[0].msg), *body]
    if not positive and (not body or folds(test)):
        # ``not (a in b)`` would be compiled as ``a not in b``
        body, orelse, falls_a, falls_b, positive = orelse, body, falls_b, falls_a, True
    if not body and orelse and not folds(test) and positive:
        body, orelse, falls_a, falls_b, positive = orelse, body, falls_b, falls_a, False
    condition = test if positive else negate(test)
    if not falls_a and body and orelse:
        return [ast.If(condition, body, []), *orelse]
    return [ast.If(condition, body or [ast.Pass()], orelse)]


def folds(test: ast.expr) -> bool:
    """Return whether the compiler folds ``not`` into a test (``not a in b``), or the test has no ``not`` (a case)."""
    return (
        case_of(test) is not None
        or isinstance(test, ast.Compare) and len(test.ops) == 1
        and isinstance(test.ops[0], (ast.In, ast.Is, ast.NotIn, ast.IsNot))
    )
