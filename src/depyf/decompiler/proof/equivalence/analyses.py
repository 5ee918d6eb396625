"""Facts about a program that are known before it is evaluated."""

from __future__ import annotations

from ....bytecode import operations as o
from ....bytecode.operations import Op, Program
from ....bytecode.opspec import NO_FALL_THROUGH, ON_CELLS, ON_LOCALS

#: Operations on what a cell holds, as the same on a local.
_PLAIN = {o.LOAD_DEREF: o.LOAD_FAST, o.STORE_DEREF: o.STORE_FAST, o.DELETE_DEREF: o.DELETE_FAST}


def merge_points(program: Program) -> set[int]:
    """Return the indexes of operations that more than one edge leads to (every loop goes through one)."""
    count = [0] * (len(program.ops) + 1)
    for index, op in enumerate(program.ops):
        if op.target >= 0:
            count[op.target] += 1
        if op.kind not in NO_FALL_THROUGH:
            count[index + 1] += 1
    return {index for index, edges in enumerate(count) if edges > 1}


def locals_of(program: Program) -> tuple[str, ...]:
    """Return the names of the locals that the program can give a value or ask for one."""
    return tuple(sorted({*program.code.varnames, *(op.arg for op in program.ops if op.kind in ON_LOCALS)}))


def cells_used(program: Program) -> set[str]:
    """Return the variables that the program reaches through cells (torch's code has cells that it does not use)."""
    return {op.arg for op in program.ops if op.kind in ON_CELLS}


def without_private_cells(program: Program) -> Program:
    """Return the program with the cells that nobody else holds as plain locals.

    A cell variable whose cell is never handed out (``LOAD_CLOSURE``) is seen by this code only; Dynamo keeps
    such cells because the original function had them.
    """
    shared = {op.arg for op in program.ops if op.kind in ON_CELLS and op.kind not in _PLAIN}
    private = set(program.code.cellvars) - shared
    if not private:
        return program
    ops = [
        Op(_PLAIN[op.kind], op.arg, op.offset, op.line, op.target, op.handler)
        if op.kind in _PLAIN and op.arg in private else op
        for op in program.ops
    ]
    return Program(program.code, ops, program.handlers)
