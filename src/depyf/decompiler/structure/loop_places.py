"""Where loops and the places that they lead to stand: facts that tell what is behind a loop from what is in it.

The statements of a loop are indented, and so are those of its ``else``. What stands behind it is not: it begins left of
them. Without columns, what has a line between those of the loop is in it.

Example: ``while True:`` / ``    x = f()`` / ``    if x: return x``. The ``return`` is indented as what is in the loop,
so no ``break`` leads there.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from ...bytecode.operations import Op
from ...cfg.graph import Block
from .evidence import INDENTATION, Evidence
from .reaching import reached

if TYPE_CHECKING:
    from .walk import Walker

#: What leaves loops, handlers and ``with``: it stands where what is left does.
_UNWINDING = frozenset({
    "POP_EXCEPT", "LEAVE", "SWAP", "COPY", "PUSH_EXC_INFO", "WITH_EXCEPT_START", "END_ASYNC_FOR"})
#: Ends of blocks that are no part of a statement: the jump back of a loop has its span.
_NOT_WRITTEN = ("jump", "reraise")
#: What begins a compound statement, behind its head.
_HEADS = ("GET_ITER", "GET_AITER", "BEFORE_WITH", "BEFORE_ASYNC_WITH")


def in_loop(walker: Walker, body: set[int], candidates: Collection[int | None], ends: set[int]) -> set[int]:
    """Return the blocks among ``candidates`` that stand in a loop or in its ``else``.

    Args:
        walker: knows the graph, and the facts.
        body: the blocks of the loop.
        candidates: blocks that it leads to.
        ends: where the loops around it begin and end.
    """
    evidence, blocks = walker.evidence(), walker.cfg.blocks
    if evidence is None or not evidence.has_lines:
        return set()
    places = [place for id in body for op in _before_leaving(blocks[id])
              if (place := evidence.place(op.offset)) is not None]
    if not places:
        return set()
    lines = [line for line, _ in places]
    first, last = min(lines), max(lines)
    indentation = min([column for _, column in places if column is not None], default=None)
    around = set.intersection(*(set(walker.cfg.handlers_around(blocks[id].handler)) for id in body))
    inside = set()
    for id in candidates:
        if id is None:
            continue
        line, column = _start(walker, evidence, id, body | ends, indentation)
        if column is not None and _begins_try(walker, blocks[id], around):
            column -= INDENTATION
        if line is None or line <= first:
            continue
        if line <= last if column is None or indentation is None else column >= indentation:
            inside.add(id)
    return inside


def _begins_try(walker: Walker, block: Block, around: set[int]) -> bool:
    """Return whether a block outside of a loop begins with the body of a ``try`` that the loop is not in."""
    return any(walker.cfg.kinds.get(handler) in ("except", "except*", "finally")
               for handler in walker.cfg.handlers_around(block.handler) if handler not in around)


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
        indentation: any column left of it does for those that are (``None``: none is asked for), so that not all that
            comes behind a loop is looked at.
    """
    block = walker.cfg.blocks[id]
    ops = _statement_ops(block)
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
        # (``del`` has the span of what it deletes. ``while True:`` has no operation: the first statement in it has.)
        step = INDENTATION if id in walker.analysis.loops else 0
        columns = [column - len("del ") * op.kind.startswith("DEL") for op, column in on_it]
        return line, min(columns) - step if columns else None
    if indentation is None or not evidence.has_columns:
        return line, None
    least: int | None = None
    for each in reached(walker, [id], avoid):
        for op in _statement_ops(walker.cfg.blocks[each]):
            place = evidence.place(op.offset)
            if place is not None and place[1] is not None and place[0] > line and (least is None or place[1] < least):
                least = place[1]
        if least is not None and least - INDENTATION < indentation:
            break
    return line, None if least is None else least - INDENTATION


def _statement_ops(block: Block) -> list[Op]:
    ops = [op for op in block.ops if op.kind not in _UNWINDING and (op.kind, op.arg) != ("POP", "iterator")]
    return ops if block.end_op is None or block.end in _NOT_WRITTEN else [*ops, block.end_op]
