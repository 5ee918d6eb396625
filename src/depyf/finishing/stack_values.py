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
from collections.abc import Iterable, Sequence

from ..bytecode.canonical import canonicalise
from ..bytecode.code import Code
from ..bytecode.linetable import Position, positions
from ..bytecode.operations import CONST, LOAD_FAST, Op, effect
from ..cfg.graph import BRANCH, FOR_ITER, JUMP, Block, Cfg, build
from ..reading import source_lines
from ..torch_text.global_names import offset_in

#: The offsets of the operations that pushed the values; ``None`` where that depends on the path taken.
_Stack = tuple[int | None, ...]
_GIVEN = re.compile(r"___stack(\d+)")  #: An argument of a resume function that is a value from the stack.


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


def operation_at(graph: Cfg, offset: int) -> tuple[int, int, bool]:
    """Return the offset of the first operation from an offset on, its block, and whether it begins that.

    (What begins a block may be left out of it.) -1 where there is none.
    """
    return min(((op.offset, block.id, not index) for block in graph.blocks.values()
                for index, op in enumerate((*block.ops, block.end_op)) if op is not None and op.offset >= offset),
               default=(-1, -1, True))


def _stack_at(graph: Cfg, offset: int) -> _Stack:
    """Return the stack before the first operation from an offset on, where the graph broke right before it."""
    wanted, number, _ = operation_at(graph, offset)
    arriving = _arriving(graph).get(number)
    if arriving is None:
        return ()
    before = [op for op in graph.blocks[number].ops if op.offset < wanted]
    if not before:
        # In ``n = t.item() if t.ndim == 0 else -1`` both branches lead to the assignment, and the graph broke in one of
        # them: not in that which only loads a constant.
        arriving = {block: stack for block, stack in arriving.items()
                    if block < 0 or not _only_loads(graph.blocks[block])} or arriving
    return _after(before, functools.reduce(_merged, arriving.values()))


def _arriving(graph: Cfg) -> dict[int, dict[int, _Stack]]:
    """Return the stacks with which blocks are reached, by the block that control comes from (-1: the entry)."""
    result: dict[int, dict[int, _Stack]] = {graph.entry: {-1: ()}}
    pending = [graph.entry]
    while pending:
        number = pending.pop()
        block = graph.blocks[number]
        stack = _after(block.ops, functools.reduce(_merged, result[number].values()))
        for successor in block.successors:
            left = stack[:-1] if block.end in (BRANCH, FOR_ITER) else stack
            if block.end == FOR_ITER and block.end_op is not None and successor == block.successors[0]:
                left = (*stack, block.end_op.offset)
            known = result.setdefault(successor, {})
            if known.get(number) != left:
                known[number] = left
                pending.append(successor)
    return result


def _only_loads(block: Block) -> bool:
    """Return whether a block ends with an operation at which no graph breaks, and then jumps."""
    return block.end == JUMP and bool(block.ops) and block.ops[-1].kind in (CONST, LOAD_FAST)


def _merged(one: _Stack, other: _Stack) -> _Stack:
    """Return what is the same on two edges that lead to a block."""
    if len(one) != len(other):
        return other
    return tuple(mine if mine == theirs else None for mine, theirs in zip(one, other))


def _after(ops: Iterable[Op], before: _Stack) -> _Stack:
    stack = list(before)
    for op in ops:
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
    return tuple(stack)


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
