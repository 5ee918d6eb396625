"""Raw bytes -> instructions: caches skipped, ``EXTENDED_ARG`` folded in, jump targets resolved."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from .. import budgets
from .errors import Unreadable, shown_name
from .linetable import MalformedTable, Range, line_ranges
from .versions import table

if TYPE_CHECKING:
    from .code import Code


#: The entry after the end of a line table.
_NO_LINE: Range = (0, sys.maxsize, None)
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

    Those of 3.10 and before are cached on the code object, as they are read once more for the form of its statements
    (``leftovers.py``); do not modify them.
    """
    return decode_with_targets(code)[0]


def decode_with_targets(code: Code) -> tuple[list[Instruction], set[int]]:
    """Decode the instructions of a code object; with them come the indexes of those that jumps lead to."""
    known: tuple[list[Instruction], set[int]] | None = code.__dict__.get("_instructions")
    if known is None:
        known = _decode(code)
        if code.version < (3, 11):
            code.__dict__["_instructions"] = known
    return known


def jump_targets(instructions: Sequence[Instruction]) -> set[int]:
    """Return the indexes of the instructions that jumps lead to."""
    return {instruction.target for instruction in instructions if instruction.target >= 0}


def _decode(code: Code) -> tuple[list[Instruction], set[int]]:
    numbers = table(code.version)
    rows, extended, unit = numbers.rows, numbers.extended_arg, numbers.jump_unit
    raw = code.bytecode
    size = len(raw)
    lines = _lines(code)
    line: int | None = None
    end_of_line = 0
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
        while position >= end_of_line:
            _, end_of_line, line = next(lines, _NO_LINE)
        instruction = Instruction(position, opcode, name, arg, line, start)
        append(instruction)
        position = start = position + length
        if jump:
            jumps.append((instruction, arg * unit if jump == 2 else position + arg * unit * jump))
    if too_many := budgets.INSTRUCTIONS.exceeded(len(result)):
        raise UnsupportedBytecode(too_many, code, result[-1].opname, result[-1].offset)
    if position > size:
        raise UnsupportedBytecode("is cut off in its caches", code, result[-1].opname, result[-1].offset)
    targets: set[int] = set()
    index_at = {instruction.start: index for index, instruction in enumerate(result)} if jumps else {}
    for instruction, target in jumps:
        if not 0 <= target < size:
            raise UnsupportedBytecode("jumps out of the code", code, instruction.opname, instruction.offset)
        index = index_at.get(target, -1)
        if index < 0:
            message = f"jumps to offset {target}, into the middle of an instruction"
            raise UnsupportedBytecode(message, code, instruction.opname, instruction.offset)
        instruction.target = index
        targets.add(index)
    return result, targets


def _lines(code: Code) -> Iterator[Range]:
    """Return the ranges of the code that are on one line, in order."""
    try:
        return iter(line_ranges(code))
    except MalformedTable:  # lines change nothing that a program does
        return iter(())
