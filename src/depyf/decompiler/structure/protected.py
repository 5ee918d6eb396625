"""``try`` and ``with``: protected bodies, their handlers, and what follows.

Changes with how the compiler leaves a protected body.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ..emit.new_syntax import TRY, try_star
from ..lift import Caught, Exit, Slot, Special, State, Target, values
from ..nodes import at_line, line_of
from .breaks import reach
from .frames import Frame, outer_ends
from .region_cfg import Untangled, handler_steps

if TYPE_CHECKING:
    from .walk import Walker


def way_out(walker: Walker, target: int, follow: int, frame: Frame) -> str:
    """Classify an edge out of a protected body: ``return``, ``jump`` (break, continue) or ``normal``."""
    blocks = walker.cfg.blocks
    at = target
    for _ in range(50):
        if at == follow:
            return "normal"
        if frame.jump(at) is not None:
            return "jump"
        block = blocks[at]
        if any(op.kind not in ("CONST", "POP", "SWAP", "POP_EXCEPT", "LEAVE") for op in block.ops):
            return "normal"
        if block.end == "return":
            return "return"
        if block.end != "jump":
            return "normal"
        at = block.successors[0]
    return "normal"


def best_normal(walker: Walker, targets: list[int], follow: int, frame: Frame) -> int | None:
    """The way out that statements behind the protected body continue."""
    normal = [t for t in targets if t != follow and way_out(walker, t, follow, frame) == "normal"]
    if follow in targets and (not normal or frame.jump(follow) is None):
        return follow  # else those that lead there do so by ``continue``
    if not normal:
        return None
    return max(normal, key=lambda t: (walker.analysis.weight[t], len(walker.analysis.preds[t])))


def protected(
    walker: Walker, region: int, at: int, stack: list[Any], follow: int, frame: Frame, entered: int
) -> tuple[list[ast.stmt], int | None, list[Any]]:
    kind = walker.cfg.kinds[region]
    blocks = walker.cfg.blocks
    leaves = walker.analysis.leaves.get(region, [])
    targets: list[int] = []
    for id in leaves:
        if blocks[id].successors[0] not in targets:
            targets.append(blocks[id].successors[0])
    inner = Frame(kind, frame, region)
    if kind == "with":
        # where control goes on when the exception is swallowed is what follows the statement
        resume = blocks[region].successors[0]
        unify(walker, leaves, resume)
        return with_(walker, region, at, stack, resume, frame, inner, entered)
    if kind == "finally":
        join = best_normal(walker, targets, follow, frame)
        unify(walker, leaves, join)
        body, falls, after = walker.walk(at, stack[:], -2 if join is None else join, inner, entered)
        end = walker.cfg.ends[region]
        final, _, _ = walker.walk(region, [*stack, Caught(False)], end, Frame("handler", frame, blocks[region].handler))
        made: ast.stmt | None = body[0] if len(body) == 1 else None
        if isinstance(made, TRY) and made.handlers and not made.finalbody:
            made.finalbody = final or [ast.Pass()]
        else:
            made = ast.Try(body or [ast.Pass()], [], [], final or [ast.Pass()])
        at_line(made, first_line(body))
        if not falls or join == walker.cfg.nowhere.get(region, -1):
            return [made], None, stack
        return [made], join, after
    if kind == "except" or kind == "except*":
        return try_except(walker, region, at, stack, follow, frame, inner, entered, leaves, targets)
    raise Untangled(f"a region of kind {kind}")


def first_line(stmts: list[ast.stmt]) -> int | None:
    return line_of(stmts[0]) if stmts else None


def unify(walker: Walker, leaves: list[int], join: int | None) -> None:
    """Ways out that do the same as ``join`` lead there."""
    if join is None:
        return
    unify_edges(walker, leaves, join)


def unify_edges(walker: Walker, sources: Iterable[int], join: int) -> None:
    blocks = walker.cfg.blocks
    for id in sources:
        for position, succ in enumerate(blocks[id].successors):
            if succ != join and walker.cfg.same_way(succ, join):
                blocks[id].successors[position] = join


def with_(
    walker: Walker, region: int, at: int, stack: list[Any], join: int | None, frame: Frame, inner: Frame, entered: int
) -> tuple[list[ast.stmt], int | None, list[Any]]:
    if len(stack) < 2 or not isinstance(stack[-2], Exit) or not isinstance(stack[-1], Slot):
        raise Untangled("a with statement that starts elsewhere")
    exit_ = stack[-2]
    owner = Target("value")
    body_stack = [*stack[:-1], Slot(owner)]
    body, falls, after = walker.walk(at, body_stack, -2 if join is None else join, inner, entered)
    item = ast.withitem(exit_.manager, owner.target)
    if owner.target is None and isinstance(exit_.manager, ast.Tuple) and exit_.manager.elts:
        walker.machine.scope.is_one_item(exit_.manager)
    kind = ast.AsyncWith if exit_.asynchronous else ast.With
    return [at_line(kind([item], body or [ast.Pass()]), first_line(body))], join, stack[:-2]


def try_except(
    walker: Walker, region: int, at: int, stack: list[Any], follow: int, frame: Frame, inner: Frame, entered: int,
    leaves: list[int], targets: list[int],
) -> tuple[list[ast.stmt], int | None, list[Any]]:
    blocks = walker.cfg.blocks
    outs = handler_ways(walker, region)
    handler_targets: list[int] = []
    for id in outs:
        if blocks[id].successors[0] not in handler_targets:
            handler_targets.append(blocks[id].successors[0])
    normal = best_normal(walker, targets, follow, frame)
    star = walker.cfg.kinds[region] == "except*"
    # no clause of ``except*`` can return or jump: that is what follows, whatever it does
    after_handlers = handler_targets[0] if star and handler_targets else best_normal(walker,
        handler_targets, follow, frame)
    start_else = normal
    if star and normal is not None and after_handlers is not None and normal != after_handlers:
        # the end of ``else`` may be a copy of what the clauses lead to
        rest = reach(walker, [normal], outer_ends(frame, follow) - {normal})
        unify_edges(walker, rest, after_handlers)
    if normal is None:
        join = after_handlers
    elif after_handlers is None or after_handlers == normal or walker.cfg.same_way(after_handlers, normal):
        join = normal
    elif after_handlers == follow:
        join = follow
    else:
        ends = outer_ends(frame, follow)
        reached = reach(walker, [normal], ends - {normal})
        back = reach(walker, [after_handlers], ends - {after_handlers})
        if after_handlers in reached:
            join = after_handlers
        elif normal in back:
            join = normal
        else:
            common = [id for id in reached & back if walker.analysis.dominates(at, id)]
            join = min(common, key=lambda id: walker.analysis.tree.number[id]) if common else after_handlers
    unify(walker, leaves, start_else)
    unify(walker, leaves, join)
    unify(walker, outs, join)
    body, falls, stack_after = walker.walk(at, stack[:], -2 if start_else is None else start_else, inner, entered)
    orelse: list[ast.stmt] = []
    if falls and start_else is not None and start_else != join:
        orelse, falls, stack_after = walker.walk(
            start_else, stack_after, -2 if join is None else join, frame
        )
    handlers, handler_falls = handler_clauses(walker, region, stack, -2 if join is None else join, frame)
    make = try_star if star else ast.Try
    made = at_line(make(body or [ast.Pass()], handlers, orelse, []), first_line(body))
    if falls and values(stack_after) > values(stack):
        raise Untangled("a value crosses the end of a try")
    return [made], join if falls or handler_falls else None, stack


def handler_ways(walker: Walker, region: int) -> list[int]:
    """Blocks in which a running handler of ``region`` ends. (Other handlers may run inside it.)"""
    blocks = walker.cfg.blocks
    around = walker.cfg.handlers_around(blocks[region].handler)
    found = []
    seen = set()
    work = [(region, 0)]
    while work:
        id, depth = work.pop()
        if id in seen:
            continue
        seen.add(id)
        block = blocks[id]
        if block.handler is not None and block.handler not in around:
            work.append((block.handler, depth))
        depth += sum(handler_steps(block))
        if not depth:
            found.append(id)
            continue
        work.extend((succ, depth) for succ in block.successors)
    return found


def handler_clauses(
    walker: Walker, region: int, stack: list[Any], join: int, frame: Frame
) -> tuple[list[ast.ExceptHandler], bool]:
    blocks = walker.cfg.blocks
    inner = Frame("handler", frame, blocks[region].handler)
    handlers: list[ast.ExceptHandler] = []
    any_falls = False
    at = region
    current: list[Any] = [*stack, Caught(False)]
    while True:
        walker.spend(1)
        block = blocks[at]
        state = State(current[:])
        match = any(op.kind == "CHECK_EXC_MATCH" for op in block.ops) and block.end == "branch"
        if not match:
            if block.end == "reraise" and not block.ops:
                break
            # a bare except
            body, falls, _ = walker.walk(at, state.stack, join, inner)
            handler = ast.ExceptHandler(None, None, body or [ast.Pass()])
            handlers.append(handler)
            any_falls |= falls
            break
        walker.machine.run(state, block.ops)
        if state.stmts:
            raise Untangled("statements before a handler")
        test = state.stack.pop()
        if not isinstance(test, Special) or test.kind != "match":
            raise Untangled("a handler that tests something else")
        t, f = block.successors
        caught = walker.machine.caught = Target("e")
        body, falls, _ = walker.walk(t, state.stack[:], join, inner)
        name = caught.target
        if name is not None and not isinstance(name, ast.Name):
            raise Untangled("an exception that is stored to no name")
        handlers.append(ast.ExceptHandler(test.value, None if name is None else name.id, body or [ast.Pass()]))
        any_falls |= falls
        at = f
        current = state.stack
    return handlers, any_falls
