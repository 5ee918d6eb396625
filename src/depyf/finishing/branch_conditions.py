"""The branch that a resume function continues: the condition that broke the graph, and whether it held.

Behind a break at a branch torch calls one of two resume functions, named by the offsets at which they go on::

    36  COMPARE_OP            x.sum() > 0
    40  POP_JUMP_IF_FALSE     to 96
    42  LOAD_FAST x           <- __resume_at_42_1: the condition held
    96  LOAD_FAST x           <- __resume_at_96_2: it did not

Offsets are those of the code that Dynamo traces. Another break on the line of the condition may go on within a branch.

The operation that gave the tested value has the place of the condition (``co_positions``, Python 3.11 and later): of
``not (a and b)`` that is ``a`` or ``b``, whichever broke.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from ..bytecode.canonical import canonicalise
from ..bytecode.code import Code
from ..bytecode.linetable import Position, positions
from ..cfg.graph import BRANCH, Block, build
from ..torch_text.resumes import offset_in
from .stack_values import text_at


def branch_condition(code: Code, resume_name: str, line: int) -> tuple[str, bool] | None:
    """Return the condition and whether it held: ``("x.sum() > 0", False)``.

    Args:
        code: that broke, as Dynamo traces it.
        resume_name: by which it calls the resume function: ``__resume_at_96_2``.
        line: of the break.

    Returns:
        ``None`` where the function continues behind no branch, or where the condition is not known.
    """
    offset = offset_in(resume_name)
    if offset is None or code.version < (3, 11):
        return None
    blocks = build(canonicalise(code)).blocks
    wanted = _reached(blocks, offset)
    places = positions(code)
    ways: set[tuple[str, bool]] = set()
    for block in blocks.values():
        tested = next((op for op in reversed(block.ops) if op.kind != "COPY"), None) if block.end == BRANCH else None
        if tested is None:
            continue
        place = places[tested.offset // 2]
        if place is None or not place.line <= line <= place.end_line:
            continue
        ways |= {(_condition(code.filename, place), held) for successor, held in zip(block.successors, (True, False))
                 if successor == wanted}
    return ways.pop() if len(ways) == 1 and all(text for text, _ in ways) else None


def _reached(blocks: Mapping[int, Block], offset: int) -> int | None:
    """Return the block that begins where code continues, or that it continues in.

    ``None`` where that says nothing, as several edges lead to the block that it continues in.
    """
    at, block = max(((first, number) for number, block in blocks.items() if 0 <= (first := _first(block)) <= offset),
                    default=(-1, None))
    if block is None or at != offset and _last(blocks[block]) < offset:
        # (What begins a block may be left out of it.)
        return min(((first, number) for number, block in blocks.items() if (first := _first(block)) >= offset),
                   default=(-1, None))[1]
    return block if at == offset or sum(each.successors.count(block) for each in blocks.values()) == 1 else None


def _condition(filename: str, place: Position) -> str:
    """Return the expression at a place; ``""`` for ``a < b < c``, of which a jump tests a part."""
    text = text_at(filename, place)
    node = ast.parse(f"({text or 0})", mode="eval").body
    return "" if isinstance(node, ast.Compare) and len(node.ops) > 1 else text


def _last(block: Block) -> int:
    """Return the offset of a block's last operation; -1 where it has none."""
    op = block.end_op or (block.ops[-1] if block.ops else None)
    return op.offset if op is not None else -1


def _first(block: Block) -> int:
    """Return the offset of a block's first operation; -1 where it has none."""
    op = block.ops[0] if block.ops else block.end_op
    return op.offset if op is not None else -1
