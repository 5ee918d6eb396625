"""Instructions of a compiled function replaced by others of the same size.

Source cannot express some instructions of Dynamo's code: to pass a variable's value on and unbind it at once, and
constants that are objects (``torch.float32``). Source with a placeholder is compiled, and its instruction is
overwritten in place: no jump, no handler and no line moves.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Mapping
from types import CodeType
from typing import Any

from ..bytecode.code import Code, Instruction, decode, table
from ..decompiler.constants import CellOf
from .graph_code import nested_codes

_OPERATIONS = {ast.Invert: "UNARY_INVERT", ast.USub: "UNARY_NEGATIVE"}

#: Loads of one variable -> how to read its index from the argument.
_LOADS = {"LOAD_FAST": 0xFF, "LOAD_FAST_CHECK": 0xFF, "LOAD_FAST_BORROW": 0xFF, "LOAD_FAST_LOAD_FAST": 15,
          "LOAD_FAST_BORROW_LOAD_FAST_BORROW": 15, "STORE_FAST_LOAD_FAST": 15}
#: From 3.14 a load may borrow its reference from the variable, which a move unbinds.
_OWNING = {"LOAD_FAST_BORROW": "LOAD_FAST", "LOAD_FAST_BORROW_LOAD_FAST_BORROW": "LOAD_FAST_LOAD_FAST"}


class CannotStandIn(Exception):
    """No code can be made of the source that takes the place of Dynamo's."""


def with_moves(code: CodeType, mark: type[ast.unaryop]) -> CodeType:
    """Replace each ``mark(variable)``: the value is on the stack, and the variable is unbound.

    Args:
        code: a function of the running interpreter in which ``mark`` is applied to nothing else.
        mark: a unary operator.

    Raises:
        CannotStandIn: an operator is applied to something else, or to a variable whose index needs two bytes.
    """
    raw = bytearray(code.co_code)
    numbers = table(sys.version_info[:2]).opcodes
    instructions = decode(Code.of(code))
    previous: Instruction | None = None
    for instruction in instructions:
        if instruction.opname == _OPERATIONS[mark]:
            if previous is None or previous.opname not in _LOADS or previous.arg > 0xFF:
                raise CannotStandIn("a moved value does not come from a variable")
            raw[instruction.offset] = numbers["DELETE_FAST"]
            raw[instruction.offset + 1] = previous.arg & _LOADS[previous.opname]
        elif instruction.opname in _OWNING:
            raw[instruction.offset] = numbers[_OWNING[instruction.opname]]
        previous = instruction
    return code.replace(co_code=bytes(raw))


def with_constants(code: CodeType, values: Mapping[str, Any]) -> CodeType:
    """Replace each read of a global that is the name of a constant by a read of that constant.

    Args:
        values: ``{name: constant}``; a :class:`~depyf.decompiler.constants.CellOf` for the cell of a variable.

    Raises:
        CannotStandIn: a name is also bound, is used by a function inside, or there is no room for the index.
    """
    if any(values.keys() & inner.co_names for inner in nested_codes(code)):
        raise CannotStandIn("a function inside uses such a constant")
    raw = bytearray(code.co_code)
    version = table(sys.version_info[:2])
    numbers = version.opcodes
    consts = list(code.co_consts)
    places: dict[str, int] = {}
    for instruction in decode(Code.of(code)):
        if not instruction.opname.endswith(("_GLOBAL", "_NAME")):
            continue
        called = sys.version_info >= (3, 11) and instruction.opname == "LOAD_GLOBAL" and bool(instruction.arg & 1)
        index = instruction.arg >> 1 if sys.version_info >= (3, 11) and instruction.opname == "LOAD_GLOBAL" \
            else instruction.arg
        name = code.co_names[index]
        if name not in values:
            continue
        if instruction.opname != "LOAD_GLOBAL":
            raise CannotStandIn(f"{name} is more than read")
        value = values[name]
        if isinstance(value, CellOf):
            load = _extended("LOAD_FAST" if sys.version_info >= (3, 13) else "LOAD_CLOSURE", _cell(code, value))
        else:
            if name not in places:
                places[name] = len(consts)
                consts.append(value)
            load = _extended("LOAD_CONST", places[name])
        if called:
            null = [(numbers["PUSH_NULL"], 0)]
            load = load + null if sys.version_info >= (3, 13) else null + load
        room = (instruction.offset - instruction.start) // 2 + 1 + version.caches[instruction.opcode]
        if len(load) > room:
            raise CannotStandIn(f"no room for {name}")
        load += [(numbers["NOP"], 0)] * (room - len(load))
        raw[instruction.start : instruction.start + 2 * room] = bytes(part for unit in load for part in unit)
    return code.replace(co_code=bytes(raw), co_consts=tuple(consts))


def _extended(opname: str, arg: int) -> list[tuple[int, int]]:
    """Return an instruction in code units, ``EXTENDED_ARG`` before it where it is needed."""
    numbers = table(sys.version_info[:2]).opcodes
    units = [(numbers[opname], arg & 0xFF)]
    while arg := arg >> 8:
        units.insert(0, (numbers["EXTENDED_ARG"], arg & 0xFF))
    return units


def _cell(code: CodeType, name: str) -> int:
    """Return the index by which instructions of this version reach a cell."""
    if name not in (*code.co_cellvars, *code.co_freevars):
        raise CannotStandIn(f"{name} is no cell")
    if sys.version_info < (3, 11):
        return (*code.co_cellvars, *code.co_freevars).index(name)
    # One row of variables: locals (some of them cells), other cells, free variables.
    others = [cell for cell in code.co_cellvars if cell not in code.co_varnames]
    return (*code.co_varnames, *others, *code.co_freevars).index(name)
