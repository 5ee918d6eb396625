"""Raw bytes -> instructions: caches skipped, ``EXTENDED_ARG`` folded in, jump targets resolved."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .linetable import line_ranges
from .versions import table

if TYPE_CHECKING:
    from .code import Code


class UnsupportedBytecode(ValueError):
    """An instruction, or a use of one, that is not understood.

    Attributes:
        opname: the instruction.
        version: the Python version of the code.
        offset: byte offset of the instruction.
    """

    def __init__(self, message: str, code: Code, opname: str, offset: int) -> None:
        version = ".".join(map(str, code.version))
        super().__init__(f"{opname} at offset {offset} of {code.qualname!r} (Python {version}): {message}")
        self.opname = opname
        self.version = code.version
        self.offset = offset


class Instruction:
    """One instruction, as the version spells it.

    Attributes:
        offset: byte offset of the opcode itself (what ``f_lasti`` and tracebacks use), not of an
            ``EXTENDED_ARG`` before it.
        opcode, opname: number and name.
        arg: the whole argument; meaningless where the opcode takes none.
        target: for jumps the index of the target in the list of instructions; else -1.
        line: source line, or ``None``.
    """

    __slots__ = ("arg", "line", "offset", "opcode", "opname", "target")

    def __init__(self, offset: int, opcode: int, opname: str, arg: int, line: int | None) -> None:
        self.offset = offset
        self.opcode = opcode
        self.opname = opname
        self.arg = arg
        self.target = -1
        self.line = line

    def __repr__(self) -> str:
        jump = f" -> #{self.target}" if self.target >= 0 else ""
        return f"{self.offset} {self.opname} {self.arg}{jump}"


def decode(code: Code) -> list[Instruction]:
    """The instructions of a code object, in order."""
    return decode_indexed(code)[0]


def decode_indexed(code: Code) -> tuple[list[Instruction], list[int]]:
    """The instructions, and for each code unit the index of the instruction that it belongs to.

    A unit of an ``EXTENDED_ARG`` belongs to the instruction it extends; a cache unit to the
    instruction *after* it, so that ends of ranges (exclusive offsets) can be looked up too. The list has
    one entry more than there are units.
    """
    numbers = table(code.version)
    names, caches, jumps, extended = numbers.names, numbers.caches, numbers.jumps, numbers.extended_arg
    unit = numbers.jump_unit
    raw = code.bytecode
    size = len(raw)
    lines = _line_of_units(code, size)
    result: list[Instruction] = []
    index_of: list[int] = []
    pending: list[tuple[Instruction, int]] = []
    append = result.append
    position = prefix = 0
    while position < size - 1:
        opcode = raw[position]
        arg = raw[position + 1] | prefix
        index_of.append(len(result))
        if opcode == extended:
            prefix = arg << 8
            position += 2
            continue
        prefix = 0
        instruction = Instruction(position, opcode, names[opcode], arg, lines[position >> 1])
        append(instruction)
        skipped = caches[opcode]
        position += 2
        if skipped:
            index_of.extend([len(result)] * skipped)
            position += 2 * skipped
        jump = jumps[opcode]
        if jump:
            pending.append((instruction, arg * unit if jump == 2 else position + arg * unit * jump))
    index_of.append(len(result))
    for instruction, target in pending:
        if not 0 <= target < size:
            raise UnsupportedBytecode("jumps out of the code", code, instruction.opname, instruction.offset)
        instruction.target = index_of[target >> 1]
    return result, index_of


def _line_of_units(code: Code, size: int) -> list[int | None]:
    lines: list[int | None] = []
    for start, end, line in line_ranges(code):
        lines.extend([line] * ((end - start) >> 1))
    missing = (size >> 1) - len(lines)
    if missing > 0:
        lines.extend([None] * missing)
    return lines
