"""Raw bytes -> instructions: caches skipped, ``EXTENDED_ARG`` folded in, jump targets resolved."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from . import budgets
from .errors import Unreadable, shown_name
from .linetable import MalformedTable, lines_of_units
from .versions import table

if TYPE_CHECKING:
    from .code import Code


#: Arguments are C ints.
_MAX_PREFIX = 0x7FFFFF00


class UnsupportedBytecode(Unreadable):
    """An instruction, or a use of one, that is not understood.

    Attributes:
        opname: the instruction.
        version: the Python version of the code.
        filename: the file that the code says it comes from.
        offset: byte offset of the instruction.
    """

    def __init__(self, message: str, code: Code, opname: str, offset: int) -> None:
        version = ".".join(map(str, code.version))
        where = f"{shown_name(code.filename)}: {opname} at offset {offset} of {shown_name(code.qualname)}"
        super().__init__(f"{where} (Python {version}): {message}", code.filename, offset)
        self.opname = opname
        self.version = code.version


class Instruction:
    """One instruction, as the version spells it.

    Attributes:
        offset: byte offset of the opcode itself (what ``f_lasti`` and tracebacks use), not of an
            ``EXTENDED_ARG`` before it.
        start: byte offset of the first ``EXTENDED_ARG`` before it: where control may enter.
        opcode, opname: number and name.
        arg: the whole argument; meaningless where the opcode takes none.
        target: for jumps the index of the target in the list of instructions; else -1.
        line: source line, or ``None``.
    """

    __slots__ = ("arg", "line", "offset", "opcode", "opname", "start", "target")

    def __init__(self, offset: int, opcode: int, opname: str, arg: int, line: int | None, start: int) -> None:
        self.offset = offset
        self.start = start
        self.opcode = opcode
        self.opname = opname
        self.arg = arg
        self.target = -1
        self.line = line

    def __repr__(self) -> str:
        jump = f" -> #{self.target}" if self.target >= 0 else ""
        return f"{self.offset} {self.opname} {self.arg}{jump}"


def decode(code: Code) -> list[Instruction]:
    """Decode the instructions of a code object, in order.

    Those of 3.10 and before are kept with the code object, as they are read once more for the form of its statements
    (``leftovers.py``); nobody changes them.
    """
    known: list[Instruction] | None = code.__dict__.get("_instructions")
    if known is None:
        known = _decode(code)
        if code.version < (3, 11):
            code.__dict__["_instructions"] = known
    return known


def jump_targets(instructions: Sequence[Instruction]) -> set[int]:
    """Return the indexes of the instructions that jumps lead to."""
    return {instruction.target for instruction in instructions if instruction.target >= 0}


def _decode(code: Code) -> list[Instruction]:
    numbers = table(code.version)
    rows, extended, unit = numbers.rows, numbers.extended_arg, numbers.jump_unit
    raw = code.bytecode
    size = len(raw)
    lines = _line_of_units(code, size)
    result: list[Instruction] = []
    jumps: list[tuple[Instruction, int]] = []
    append = result.append
    position = prefix = start = 0
    end = size - 1
    while position < end:
        opcode = raw[position]
        arg = raw[position + 1] | prefix
        if opcode == extended:
            prefix = arg << 8
            if prefix > _MAX_PREFIX:
                raise UnsupportedBytecode("the argument is too large to be one", code, "EXTENDED_ARG", position)
            position += 2
            continue
        prefix = 0
        name, length, jump = rows[opcode]
        instruction = Instruction(position, opcode, name, arg, lines[position >> 1], start)
        append(instruction)
        position = start = position + length
        if jump:
            jumps.append((instruction, arg * unit if jump == 2 else position + arg * unit * jump))
    if too_many := budgets.INSTRUCTIONS.exceeded(len(result)):
        raise UnsupportedBytecode(too_many, code, result[-1].opname, result[-1].offset)
    if position > size:
        raise UnsupportedBytecode("is cut off in its caches", code, result[-1].opname, result[-1].offset)
    index_at = {instruction.start: index for index, instruction in enumerate(result)} if jumps else {}
    for instruction, target in jumps:
        if not 0 <= target < size:
            raise UnsupportedBytecode("jumps out of the code", code, instruction.opname, instruction.offset)
        index = index_at.get(target, -1)
        if index < 0:
            message = f"jumps to offset {target}, into the middle of an instruction"
            raise UnsupportedBytecode(message, code, instruction.opname, instruction.offset)
        instruction.target = index
    return result


def _line_of_units(code: Code, size: int) -> list[int | None]:
    try:
        lines = lines_of_units(code)
    except MalformedTable:  # lines change nothing that a program does
        lines = []
    missing = (size >> 1) - len(lines)
    if missing > 0:
        lines.extend([None] * missing)
    return lines
