"""``while``, ``for``, ``async for``, and their ``else``, as the compiler lays them out."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ...cfg.graph import Block
from ..errors import STRUCTURE, CannotDecompile
from ..lift import Iter, PendingTarget, State, Target, negate, values
from ..nodes import at_line
from .branches import folds
from .frames import Construct, Frame, Here, LoopFrame, outer_ends
from .loop_exits import Loop, first_of, loop_exit

if TYPE_CHECKING:
    from .walk import Walker


def loop(walker: Walker, here: Here) -> Construct:
    """Write the loop whose head control is at."""
    at, frame = here.at, here.frame
    block = walker.cfg.blocks[at]
    around: Frame | None = frame
    while around is not None:
        if isinstance(around, LoopFrame) and around.head == at and around.handler == frame.handler:
            raise CannotDecompile(STRUCTURE, "a jump to the head of an outer loop")
        around = around.parent
    body = walker.analysis.loops.get(at) or body_without_return(walker, at)
    if block.end == "for":
        return for_loop(walker, here, block, body)
    natural = _end_of_test(walker, here, block, body)
    exit_ = loop_exit(walker, Loop(at, body, natural, here.follow, frame))
    inner = LoopFrame(frame, frame.handler, at, exit_)
    if natural is not None and exit_ is not None and is_else(walker, natural, exit_, body, frame):
        return while_else(walker, here, block, natural, exit_, inner)
    suite = walker.walk(Here(at, here.stack[:], at, inner), entered=at)
    if suite.falls and values(suite.stack) > values(here.stack):
        raise CannotDecompile(STRUCTURE, "a value crosses a loop")
    made = make_while(suite.statements)
    for stmt in made:
        at_line(stmt, block.line)
    return Construct(made, exit_, here.stack)


def _end_of_test(walker: Walker, here: Here, block: Block, body: set[int]) -> int | None:
    """Return where a loop goes when the test at its head ends it; ``None`` where the head is no test alone."""
    out = [succ for succ in block.successors if succ not in body]
    if block.end != "branch" or len(out) != 1:
        return None
    probe = State(here.stack[:])
    try:
        walker.executor.run(probe, block.ops)
    except CannotDecompile:
        return None
    return None if probe.stmts else out[0]


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


def is_else(walker: Walker, natural: int, exit_: int, body: set[int], frame: Frame) -> bool:
    """Return whether the statements at ``natural`` can only be an ``else`` clause: they go on in a loop around."""
    if natural == exit_:
        return False
    ends = outer_ends(frame, None) - {exit_}
    return bool(ends) and bool(first_of(walker, ends, [natural], body | {exit_}))


def while_else(
    walker: Walker, here: Here, block: Block, natural: int, exit_: int, inner: LoopFrame
) -> Construct:
    """Write a ``while`` with an ``else``."""
    state = State(here.stack[:])
    walker.executor.run(state, block.ops)
    test = walker.executor.pop(state)
    t, f = block.successors
    body = walker.walk(Here(f if t == natural else t, here.stack[:], here.at, inner)).statements
    if body and isinstance(body[-1], ast.Continue):
        body.pop()
    orelse = walker.walk(Here(natural, here.stack[:], exit_, here.frame)).statements
    made = ast.While(negate(test) if t == natural else test, body or [ast.Pass()], orelse)
    return Construct([at_line(made, block.line)], exit_, here.stack)


def make_while(stmts: list[ast.stmt]) -> list[ast.stmt]:
    """Write ``while True: if not c: break ...`` as ``while c: ...``."""
    if stmts and isinstance(stmts[-1], ast.Continue):
        stmts = stmts[:-1]
    first = stmts[0] if stmts else None
    if isinstance(first, ast.If):
        if len(first.body) == 1 and isinstance(first.body[0], ast.Break):
            if not first.orelse and not folds(first.test):
                return [ast.While(negate(first.test), stmts[1:] or [ast.Pass()], [])]
            if first.orelse and not folds(first.test) and len(stmts) == 1:
                return [ast.While(negate(first.test), first.orelse, [])]
        elif len(first.orelse) == 1 and isinstance(first.orelse[0], ast.Break):
            return [ast.While(first.test, [*first.body, *stmts[1:]], [])]
        elif len(stmts) == 2 and isinstance(stmts[1], ast.Break) and not first.orelse:
            if isinstance(first.body[-1], ast.Continue):
                return [ast.While(first.test, first.body[:-1] or [ast.Pass()], [])]
    return [ast.While(ast.Constant(True), stmts or [ast.Pass()], [])]


def for_loop(walker: Walker, here: Here, block: Block, body: set[int]) -> Construct:
    """Write a ``for``."""
    out: list[ast.stmt] = []
    stack = here.stack
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
    start, natural = block.successors
    exit_ = loop_exit(walker, Loop(here.at, body, natural, here.follow, here.frame))
    target, statements = _items(walker, here, start, stack, natural if exit_ is None else exit_)
    made = at_line(ast.For(target, iterable, statements, []), block.line)
    at_line(made, line)
    return _with_else(walker, here, made, out, natural, exit_, stack[:-1])


def _items(
    walker: Walker, here: Here, start: int, stack: list[object], exit_: int
) -> tuple[ast.expr, list[ast.stmt]]:
    """Write what is done with each item, from ``start`` on; its target and the statements."""
    inner = LoopFrame(here.frame, here.frame.handler, here.at, exit_)
    owner = Target()
    statements = walker.walk(Here(start, [*stack, PendingTarget(owner)], here.at, inner)).statements
    if owner.target is None:
        raise CannotDecompile(STRUCTURE, "an item that is not stored")
    if statements and isinstance(statements[-1], ast.Continue):
        statements.pop()
    return owner.target, statements or [ast.Pass()]


def _with_else(
    walker: Walker, here: Here, loop: ast.For | ast.AsyncFor, out: list[ast.stmt], natural: int, exit_: int | None,
    rest: list[object],
) -> Construct:
    """Write what the loop does when it ends by itself, if a ``break`` leads elsewhere."""
    out.append(loop)
    if exit_ is None or exit_ == natural:
        return Construct(out, natural, rest)
    loop.orelse = walker.walk(Here(natural, rest[:], exit_, here.frame)).statements
    return Construct(out, exit_, rest)


def async_for(walker: Walker, region: int, here: Here) -> Construct:
    """Write an ``async for``, which ends by an exception."""
    block = walker.cfg.blocks[here.at]
    stack = here.stack
    iterator = stack[-1] if stack else None
    if not isinstance(iterator, Iter) or [op.kind for op in block.ops] != ["GET_ANEXT_AWAIT"] or block.end != "jump":
        raise CannotDecompile(STRUCTURE, "an async for loop")
    natural = walker.cfg.blocks[region].successors[0]
    body = walker.analysis.loops.get(here.at) or body_without_return(walker, here.at)
    exit_ = loop_exit(walker, Loop(here.at, body, natural, here.follow, here.frame))
    target, statements = _items(walker, here, block.successors[0], stack, natural if exit_ is None else exit_)
    made = at_line(ast.AsyncFor(target, iterator.value, statements, []), block.ops[0].line)
    return _with_else(walker, here, made, [], natural, exit_, stack[:-1])
