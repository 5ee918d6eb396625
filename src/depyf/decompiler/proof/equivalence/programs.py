"""Analyses of a program before it is evaluated. Changes with what may be known beforehand."""

from __future__ import annotations

from ....bytecode import operations as o
from ....bytecode.operations import Op, Program


def joins_of(program: Program) -> set[int]:
    """Indexes of operations that more than one way leads to (every loop goes through one)."""
    count = [0] * (len(program.ops) + 1)
    for index, op in enumerate(program.ops):
        if op.target >= 0:
            count[op.target] += 1
        if op.kind not in o.ENDS:
            count[index + 1] += 1
    return {index for index, ways in enumerate(count) if ways > 1}


def locals_of(program: Program) -> tuple[str, ...]:
    """Names of the locals that the program can give a value or ask for one."""
    kinds = (o.LOAD_FAST, o.STORE_FAST, o.DELETE_FAST, o.LOAD_FAST_AND_CLEAR)
    return tuple(sorted({*program.code.varnames, *(op.arg for op in program.ops if op.kind in kinds)}))


def cells_used(program: Program) -> set[str]:
    """Variables that the program reaches through cells (Dynamo's code carries cells that it does not use)."""
    kinds = (o.LOAD_DEREF, o.STORE_DEREF, o.DELETE_DEREF, o.LOAD_CLASSDEREF, o.LOAD_CLOSURE,
             o.LOAD_FROM_DICT_OR_DEREF, o.MAKE_CELL)
    return {op.arg for op in program.ops if op.kind in kinds}


def without_private_cells(program: Program) -> Program:
    """Cells that nobody else holds are plain locals.

    A cell variable whose cell is never handed out (``LOAD_CLOSURE``) is seen by this code only; Dynamo keeps
    such cells because the original function had them.
    """
    shared = {op.arg for op in program.ops if op.kind in (o.LOAD_CLOSURE, o.LOAD_CLASSDEREF, o.MAKE_CELL,
                                                          o.LOAD_FROM_DICT_OR_DEREF)}
    private = set(program.code.cellvars) - shared
    if not private:
        return program
    plain = {o.LOAD_DEREF: o.LOAD_FAST, o.STORE_DEREF: o.STORE_FAST, o.DELETE_DEREF: o.DELETE_FAST}
    ops = [
        Op(plain[op.kind], op.arg, op.offset, op.line, op.target, op.handler)
        if op.kind in plain and op.arg in private else op
        for op in program.ops
    ]
    return Program(program.code, ops, program.handlers)
