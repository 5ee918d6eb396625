"""Line tables and exception tables, read and written.

CPython has had three line tables: ``co_lnotab`` (to 3.9: increments, a line applies until the next),
``co_linetable`` of 3.10 (PEP 626: pairs, "no line" can be said) and the location table of 3.11
(line and columns of every instruction). The exception table came in 3.11 in place of the block stack.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from types import CodeType
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from .code import Code

_NO_LINE_310 = 128
#: Of this and the next two kinds are entries one, two lines on; those before are on the same line.
_KIND_ONE_LINE = 10
_KIND_NO_COLUMNS = 13
_KIND_LONG = 14
_KIND_NONE = 15

Range = tuple[int, int, "int | None"]


#: Numbers in tables are C ints: 6 groups of 6 bits. More would also take quadratic time to read.
_MAX_SHIFT = 36


class MalformedTable(ValueError):
    """A line table or exception table that is truncated, or contains numbers that are invalid in one."""


# --- reading lines ---------------------------------------------------------------------------------
class Position(NamedTuple):
    """A span of the source, as ``co_positions`` gives it; columns are in bytes of UTF-8, from 0, or ``None``."""

    line: int
    end_line: int
    column: int | None
    end_column: int | None


#: Nine of ten positions are made here: without the function in Python that a class of this kind makes them by.
_position: Callable[[Sequence[Any]], Position] = partial(tuple.__new__, Position)


def positions(code: Code) -> list[Position | None]:
    """Return the position of each code unit; ``None`` for one that belongs to no line.

    They are read once, and cached on the code object; do not modify them. A table that is malformed gives none: lines
    change nothing that a program does.
    """
    known: list[Position | None] | None = code.__dict__.get("_positions")
    if known is None:
        units = len(code.bytecode) // 2
        try:
            known = (_read_locations(code.linetable, code.firstlineno) if code.version >= (3, 11) else
                     _read_lines(code.linetable, code.firstlineno, units, code.version >= (3, 10)))[:units]
        except MalformedTable:
            known = []
        known += [None] * (units - len(known))
        code.__dict__["_positions"] = known
    return known


def _read_locations(data: bytes, line: int) -> list[Position | None]:
    """Read a location table (``Objects/locations.md`` of CPython)."""
    result: list[Position | None] = []
    append = result.append
    at = 0
    size = len(data)
    try:
        while at < size:
            first = data[at]
            count, kind = _FIRST_BYTES[first]
            place: Position | None = None
            if kind < _KIND_ONE_LINE:
                second = data[at + 1]
                column = first & 0x78 | second >> 4
                place = _position((line, line, column, column + (second & 15)))
                at += 2
            elif kind < _KIND_NO_COLUMNS:
                line += kind - _KIND_ONE_LINE
                place = _position((line, line, data[at + 1], data[at + 2]))
                at += 3
            elif kind == _KIND_NONE:
                at += 1
            elif kind == _KIND_LONG:
                numbers = data[at + 1:at + 5]
                if len(numbers) == 4 and max(numbers) < 64:  # (of one byte each: nearly all)
                    delta, lines, column, end = numbers
                    at += 5
                else:
                    delta, at = _read_location_number(data, at + 1)
                    lines, at = _read_location_number(data, at)
                    column, at = _read_location_number(data, at)
                    end, at = _read_location_number(data, at)
                line += _signed(delta)
                place = _position((line, line + lines, column - 1 if column else None, end - 1 if end else None))
            elif kind == _KIND_NO_COLUMNS:
                delta, at = _read_location_number(data, at + 1)
                line += _signed(delta)
                place = _position((line, line, None, None))
            else:
                raise MalformedTable("line table has an entry that does not start where one can")
            if count == 1:
                append(place)
            else:
                result += [place] * count
    except IndexError:
        raise MalformedTable("line table ends in the middle of an entry") from None
    return result


#: The code units of an entry and its kind, by its first byte; 16 for a byte that none begins with.
_FIRST_BYTES = tuple([((first & 7) + 1, (first >> 3) & 15 if first >= 128 else 16) for first in range(256)])


def _read_location_number(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if position >= len(data):
            raise MalformedTable("line table ends in the middle of a number")
        byte = data[position]
        position += 1
        value |= (byte & 63) << shift
        shift += 6
        if shift > _MAX_SHIFT:
            raise MalformedTable("line table holds a number that is too large")
        if not byte & 64:
            return value, position


def _signed(value: int) -> int:
    return -(value >> 1) if value & 1 else value >> 1


def _read_lines(data: bytes, line: int, units: int, is_310: bool) -> list[Position | None]:
    """Read a table of pairs: steps of offsets, and of lines after them (3.10: before them, or none)."""
    result: list[Position | None] = []
    offset = 0
    for step, delta in zip(data[::2], data[1::2]):
        offset += step
        has_line = not is_310 or delta != _NO_LINE_310
        change = (delta - 256 if delta > 127 else delta) if has_line else 0
        line += change if is_310 else 0
        result += [Position(line, line, None, None) if has_line else None] * (offset // 2 - len(result))
        line += 0 if is_310 else change
        if len(result) >= units:  # (a long table of a short code)
            return result
    return result if is_310 else result + [Position(line, line, None, None)] * (units - len(result))


# --- writing lines ---------------------------------------------------------------------------------
def encode_linetable(version: tuple[int, int], firstlineno: int, ranges: Iterable[Range]) -> bytes:
    """Encode ``ranges`` (ordered, without gaps, byte offsets) as the line table of ``version``, 3.10 or later."""
    out = bytearray()
    line = firstlineno
    for start, end, entry_line in ranges:
        delta = 0 if entry_line is None else entry_line - line
        line += delta
        length = end - start
        if version >= (3, 11):
            kind = _KIND_NONE if entry_line is None else _KIND_NO_COLUMNS
            for done in range(0, length, 16):
                out.append(0x80 | kind << 3 | min((length - done) >> 1, 8) - 1)
                value = (-delta << 1 | 1) if delta < 0 else delta << 1
                while value >= 64:
                    out.append(value & 63 | 64)
                    value >>= 6
                out += bytes((value,)) * (entry_line is not None)
                delta = 0
        else:
            while abs(delta) > 127:
                step = 127 if delta > 0 else -127
                out += bytes((0, step & 255))
                delta -= step
            while length > 0:
                out += bytes((min(length, 254), _NO_LINE_310 if entry_line is None else delta & 255))
                length, delta = length - 254, 0
    return bytes(out)


def relocate(code: CodeType, lines: Mapping[int, int], filename: str, firstlineno: int) -> CodeType:
    """Return the same code object, saying that it comes from other lines of another file; nested ones are left alone.

    Args:
        code: a code object of the running interpreter (3.10 or later).
        lines: byte offset of an instruction -> line. An instruction that is not listed has the line of
            the listed one before it in code order; before the first, "no line".
        filename: what ``co_filename`` shall be.
        firstlineno: what ``co_firstlineno`` shall be.
    """
    size = len(code.co_code)
    starts = sorted(offset for offset in lines if 0 <= offset < size)
    ranges: list[Range] = []
    if not starts or starts[0] > 0:
        ranges.append((0, starts[0] if starts else size, None))
    for start, end in zip(starts, [*starts[1:], size]):
        if ranges and ranges[-1][2] == lines[start]:
            ranges[-1] = (ranges[-1][0], end, lines[start])
        else:
            ranges.append((start, end, lines[start]))
    return code.replace(
        co_filename=filename,
        co_firstlineno=firstlineno,
        co_linetable=encode_linetable(sys.version_info[:2], firstlineno, ranges),
    )


# --- exception tables ------------------------------------------------------------------------------
class TableEntry(NamedTuple):
    """Instructions in ``[start, end)`` (byte offsets) are covered by the handler at ``target``."""

    start: int
    end: int
    target: int
    depth: int
    lasti: bool


def parse_exception_table(data: bytes) -> list[TableEntry]:
    """Decode a ``co_exceptiontable`` (Objects/exception_handling_notes.txt of CPython 3.11)."""
    numbers: list[int] = []
    value = byte = 0
    for byte in data:
        value = value << 6 | byte & 63
        if value >> _MAX_SHIFT:
            raise MalformedTable("exception table holds a number that is too large")
        if not byte & 64:
            numbers.append(value)
            value = 0
    if byte & 64 or len(numbers) % 4:
        raise MalformedTable("exception table ends in the middle of an entry")
    each = iter(numbers)
    return [TableEntry(start * 2, (start + length) * 2, target * 2, packed >> 1, bool(packed & 1))
            for start, length, target, packed in zip(each, each, each, each)]
