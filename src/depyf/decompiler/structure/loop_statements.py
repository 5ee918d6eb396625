"""``while``, ``for``, ``async for``, and their ``else``. Changes with how the compiler lays out a loop."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from ...cfg.graph import Block
from ..lift import Iter, Slot, State, Target, Unliftable, negate, values
from ..nodes import at_line
from .branches import folds
from .breaks import first_of, loop_exit
from .frames import Frame, outer_ends
from .region_cfg import Untangled

if TYPE_CHECKING:
    from .walk import Walker


def loop(
    walker: Walker, at: int, stack: list[Any], follow: int, frame: Frame
) -> tuple[list[ast.stmt], int | None, list[Any]]:
    block = walker.cfg.blocks[at]
    body = walker.analysis.loops.get(at) or body_without_return(walker, at)
    around: Frame | None = frame
    while around is not None:
        if around.kind == "loop" and around.head == at and around.handler == frame.handler:
            raise Untangled("a jump to the head of an outer loop")
        around = around.parent
    if block.end == "for":
        return for_loop(walker, at, block, body, stack, follow, frame)
    natural: int | None = None
    if block.end == "branch":
        out = [s for s in block.successors if s not in body]
        if len(out) == 1:
            natural = out[0]
            probe = State(stack[:])
            try:
                walker.machine.run(probe, block.ops)
                if probe.stmts:
                    natural = None
            except Unliftable:
                natural = None
    exit_ = loop_exit(walker, at, body, natural, follow, frame)
    inner = Frame("loop", frame, frame.handler, at, -1 if exit_ is None else exit_)
    if natural is not None and exit_ is not None and is_else(walker, natural, exit_, body, frame):
        return while_else(walker, at, block, stack, natural, exit_, frame, inner)
    stmts, falls, after = walker.walk(at, stack[:], at, inner, entered=at)
    if falls and values(after) > values(stack):
        raise Untangled("a value crosses a loop")
    made = make_while(stmts)
    for stmt in made:
        at_line(stmt, block.line)
    return made, exit_, stack


def body_without_return(walker: Walker, head: int) -> set[int]:
    """Return the blocks that handle the item of a ``for`` that no edge leads back to: all until its iterator is
    dropped."""
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
    ends = {end for end in outer_ends(frame, -1) if end >= 0} - {exit_}
    return bool(ends) and bool(first_of(walker, ends, [natural], body | {exit_}))


def while_else(
    walker: Walker, at: int, block: Block, stack: list[Any], natural: int, exit_: int, frame: Frame, inner: Frame
) -> tuple[list[ast.stmt], int | None, list[Any]]:
    state = State(stack[:])
    walker.machine.run(state, block.ops)
    test = walker.machine.pop(state)
    t, f = block.successors
    stmts, _, _ = walker.walk(f if t == natural else t, stack[:], at, inner)
    if stmts and isinstance(stmts[-1], ast.Continue):
        stmts.pop()
    orelse, _, _ = walker.walk(natural, stack[:], exit_, frame)
    made = ast.While(negate(test) if t == natural else test, stmts or [ast.Pass()], orelse)
    return [at_line(made, block.line)], exit_, stack


def make_while(stmts: list[ast.stmt]) -> list[ast.stmt]:
    """``while True: if not c: break ...`` is ``while c: ...``."""
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


def for_loop(
    walker: Walker, at: int, block: Block, body: set[int], stack: list[Any], follow: int, frame: Frame
) -> tuple[list[ast.stmt], int | None, list[Any]]:
    out: list[ast.stmt] = []
    if block.ops:
        state = State(stack)
        walker.machine.run(state, block.ops)
        out += state.stmts
        stack = state.stack
    iterator = stack[-1] if stack else None
    if isinstance(iterator, Iter):
        iterable = iterator.value
    else:
        raise Untangled("a for loop over something that is on the stack")
    line = walker.machine.line if block.ops else block.line
    start, natural = block.successors
    exit_ = loop_exit(walker, at, body, natural, follow, frame)
    inner = Frame("loop", frame, frame.handler, at, natural if exit_ is None else exit_)
    owner = Target()
    stmts, falls, after = walker.walk(start, [*stack, Slot(owner)], at, inner)
    if owner.target is None:
        raise Untangled("an item that is not stored")
    if stmts and isinstance(stmts[-1], ast.Continue):
        stmts.pop()
    loop = at_line(ast.For(owner.target, iterable, stmts or [ast.Pass()], []), block.line)
    at_line(loop, line)
    rest = stack[:-1]
    return with_else(walker, loop, out, natural, exit_, rest, follow, frame)


def with_else(
    walker: Walker, loop: ast.For | ast.AsyncFor, out: list[ast.stmt], natural: int, exit_: int | None,
    rest: list[Any], follow: int, frame: Frame,
) -> tuple[list[ast.stmt], int | None, list[Any]]:
    out.append(loop)
    if exit_ is None or exit_ == natural:
        return out, natural, rest
    orelse, falls, _ = walker.walk(natural, rest[:], exit_, frame)
    loop.orelse = orelse
    return out, exit_, rest


def async_for(
    walker: Walker, region: int, at: int, stack: list[Any], follow: int, frame: Frame
) -> tuple[list[ast.stmt], int | None, list[Any]]:
    block = walker.cfg.blocks[at]
    iterator = stack[-1] if stack else None
    if not isinstance(iterator, Iter) or [op.kind for op in block.ops] != ["GET_ANEXT_AWAIT"] or block.end != "jump":
        raise Untangled("an async for loop")
    natural = walker.cfg.blocks[region].successors[0]
    body = walker.analysis.loops.get(at) or body_without_return(walker, at)
    exit_ = loop_exit(walker, at, body, natural, follow, frame)
    inner = Frame("loop", frame, frame.handler, at, natural if exit_ is None else exit_)
    owner = Target()
    stmts, falls, after = walker.walk(block.successors[0], [*stack, Slot(owner)], at, inner)
    if owner.target is None:
        raise Untangled("an item that is not stored")
    if stmts and isinstance(stmts[-1], ast.Continue):
        stmts.pop()
    loop = at_line(ast.AsyncFor(owner.target, iterator.value, stmts or [ast.Pass()], []), block.ops[0].line)
    return with_else(walker, loop, [], natural, exit_, stack[:-1], follow, frame)
