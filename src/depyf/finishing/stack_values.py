"""The values on the stack at a graph break, as expressions of the user's program.

A resume function takes them as ``___stack0``, ``___stack1``, ... For ``self.log.append(y.sum().item())``, which breaks
at ``.item()``, they are the method that is about to be called and the result of the break::

    offset  instruction            stack
       ...  LOAD_METHOD append     self.log.append
       ...  CALL item              self.log.append, y.sum().item()
       184  CALL                   <- continues here: ___stack0 and ___stack1 are these two

Each value is the expression at the source position (``co_positions``, Python 3.11 and later) of what pushed it.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Mapping, Sequence

from ..bytecode.canonical import canonicalise
from ..bytecode.code import Code
from ..bytecode.linetable import Position, positions
from ..bytecode.operations import CONST, LOAD_FAST, Op, effect
from ..cfg.graph import BRANCH, FOR_ITER, JUMP, Block, Cfg, build
from ..reading import source_lines
from ..torch_text.global_names import offset_in

#: The offsets of the operations that pushed the values; ``None`` where that depends on the path taken.
_Stack = tuple[int | None, ...]
#: An argument of a resume function that is a value from the stack.
_GIVEN = re.compile(r"___stack(\d+)")


def expressions_on_stack(code: Code, resume_name: str, given: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the expressions of the values that a resume function takes from the stack, the lowest first.

    Args:
        code: that broke, as Dynamo traces it.
        resume_name: by which it calls the resume function: ``__resume_at_184_3``.
        given: of a resume function that broke, the expressions of the values that it took from the stack itself.

    Returns:
        ``""`` for an unknown value; nothing where all are unknown.
    """
    offset = offset_in(resume_name)
    if offset is None or code.version < (3, 11):
        return ()
    graph = build(canonicalise(code))
    taken = {op.offset: int(place[1]) for block in graph.blocks.values() for op in block.ops
             if op.kind == LOAD_FAST and (place := _GIVEN.fullmatch(op.arg))}
    places = positions(code)

    def text_of(pushed: int | None) -> str:
        if pushed is None or pushed not in taken:
            return text_at(code.filename, places[pushed // 2]) if pushed is not None else ""
        return given[taken[pushed]] if taken[pushed] < len(given) else ""

    texts = tuple(map(text_of, _stack_at(graph, offset)))
    return texts if any(texts) else ()


def _stack_at(graph: Cfg, offset: int) -> _Stack:
    """Return the stack before the first operation from an offset on."""
    wanted, number = min(((op.offset, block.id) for block in graph.blocks.values()
                          for op in (*block.ops, block.end_op) if op is not None and op.offset >= offset),
                         default=(-1, -1))
    stacks = _stacks(graph)
    if number not in stacks:
        return ()
    block = graph.blocks[number]
    before = [op for op in block.ops if op.offset < wanted]
    if not before:
        return _stack_after_break(graph, block, stacks)
    stack = list(stacks[number])
    for op in before:
        _apply(op, stack)
    return tuple(stack)


def _stacks(graph: Cfg) -> dict[int, _Stack]:
    """Return the stack at the beginning of each block that is reachable from the entry."""
    stacks: dict[int, _Stack] = {graph.entry: ()}
    pending = [graph.entry]
    while pending:
        block = graph.blocks[pending.pop()]
        for successor, arriving in _after(block, _at_end(block, stacks)):
            known = stacks.get(successor)
            merged = arriving if known is None else _merged(known, arriving)
            if merged != known:
                stacks[successor] = merged
                pending.append(successor)
    return stacks


def _stack_after_break(graph: Cfg, block: Block, stacks: Mapping[int, _Stack]) -> _Stack:
    """Return the stack at the beginning of a block, where the graph broke right before it.

    In ``n = t.item() if t.ndim == 0 else -1`` both branches lead to the assignment, and the graph broke in one of them:
    not in that which only loads a constant.
    """
    arriving = [
        (before, stack) for number in stacks for before in (graph.blocks[number],)
        for successor, stack in _after(before, _at_end(before, stacks)) if successor == block.id]
    broke = [stack for before, stack in arriving if not _only_loads(before)] or [stack for _, stack in arriving]
    return functools.reduce(_merged, broke) if broke else stacks[block.id]


def _only_loads(block: Block) -> bool:
    """Return whether a block ends with an operation at which no graph breaks, and then jumps."""
    return block.end == JUMP and bool(block.ops) and block.ops[-1].kind in (CONST, LOAD_FAST)


def _merged(one: _Stack, other: _Stack) -> _Stack:
    """Return what is the same on two edges that lead to a block."""
    if len(one) != len(other):
        return other
    return tuple(mine if mine == theirs else None for mine, theirs in zip(one, other))


def _at_end(block: Block, stacks: Mapping[int, _Stack]) -> list[int | None]:
    stack = list(stacks[block.id])
    for op in block.ops:
        _apply(op, stack)
    return stack


def _apply(op: Op, stack: list[int | None]) -> None:
    if op.kind == "COPY":
        stack.append(stack[-op.arg])
    elif op.kind == "SWAP":
        stack[-1], stack[-op.arg] = stack[-op.arg], stack[-1]
    elif op.kind == "ROT":
        stack.insert(len(stack) - op.arg, stack.pop())
    else:
        popped, pushed = effect(op)
        del stack[len(stack) - popped :]
        stack += [op.offset] * pushed


def _after(block: Block, stack: list[int | None]) -> list[tuple[int, _Stack]]:
    """Return the successors with the stack that each finds."""
    if block.end == FOR_ITER and block.end_op is not None:
        body, leave = block.successors
        return [(body, (*stack, block.end_op.offset)), (leave, tuple(stack[:-1]))]
    left = tuple(stack[:-1] if block.end == BRANCH else stack)
    return [(successor, left) for successor in block.successors]


def text_at(filename: str, place: Position | None) -> str:
    """Return the expression at a place of a file, on one line; ``""`` where there is none."""
    if place is None or place.column is None or place.end_column is None:
        return ""
    first, last, begin, end = place.line, place.end_line, place.column, place.end_column
    lines = [line.encode() for line in source_lines(filename)[first - 1 : last]]
    if not lines:
        return ""
    lines[-1] = lines[-1][:end]
    lines[0] = lines[0][begin:]
    try:
        text = b"".join(lines).decode()
        node = ast.parse(f"({text})", mode="eval").body
        if isinstance(node, ast.Tuple) and not node.col_offset:
            text = f"({text})"  # (``x[i, j]``: these parentheses make it one)
        return ast.unparse(node) if "\n" in text else text
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
