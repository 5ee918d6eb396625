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

_NO_LINE_310 = -128
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
def line_ranges(code: Code) -> Iterable[Range]:
    """Return ``(start, end, line)`` byte ranges that cover the code in order; line ``None`` for "no line"."""
    if code.version >= (3, 11):
        origin = code.origin
        if origin is not None and origin.co_linetable is code.linetable and origin.co_firstlineno == code.firstlineno:
            # (Of lines the interpreter reads no more than is there, whatever the table says; of columns it would.)
            return origin.co_lines()
        return _ranges(_locations(code))
    if code.version >= (3, 10):
        return _read_linetable_310(code.linetable, code.firstlineno)
    return _read_lnotab(code.linetable, code.firstlineno, len(code.bytecode))


class Position(NamedTuple):
    """A span of the source, as ``co_positions`` gives it; columns are counted in bytes of UTF-8, from 0.

    The columns are ``None`` where the table has none (before 3.11, and under ``-X no_debug_ranges``).
    """

    line: int
    end_line: int
    column: int | None
    end_column: int | None


#: Nine of ten positions are made here: without the function in Python that a class of this kind makes them by.
_position: Callable[[Sequence[Any]], Position] = partial(tuple.__new__, Position)


def positions(code: Code) -> list[Position | None]:
    """Return the position of each code unit; ``None`` for one that belongs to no line.

    They are read once, and cached on the code object; do not modify them. A table that is malformed gives none.
    """
    known: list[Position | None] | None = code.__dict__.get("_positions")
    if known is None:
        units = len(code.bytecode) // 2
        try:
            known = _read_positions(code)
        except MalformedTable:
            known = []
        if len(known) != units:
            known = known[:units] + [None] * (units - len(known))
        code.__dict__["_positions"] = known
        code.__dict__.pop("_locations", None)
    return known


def _read_positions(code: Code) -> list[Position | None]:
    result: list[Position | None] = []
    if code.version < (3, 11):
        for start, end, number in line_ranges(code):
            result += [None if number is None else Position(number, number, None, None)] * ((end - start) // 2)
        return result
    locations = _locations(code)
    if not locations.is_whole:
        raise MalformedTable("line table ends in the middle of an entry")
    for count, place in zip(locations.units, locations.places):
        if count == 1:
            result.append(place)
        else:
            result += [place] * count
    return result


class _Locations(NamedTuple):
    """The entries of a location table: code units and position of each, and whether all of the last is there."""

    units: list[int]
    places: list[Position | None]
    is_whole: bool


def _locations(code: Code) -> _Locations:
    """Return the entries of a code object's location table, which lines and positions are made of, mostly both."""
    known: _Locations | None = code.__dict__.get("_locations")
    if known is None:
        known = code.__dict__["_locations"] = _read_locations(code.linetable, code.firstlineno)
    return known


def _read_locations(data: bytes, line: int) -> _Locations:
    """Read a location table (``Objects/locations.md`` of CPython)."""
    counts: list[int] = []
    places: list[Position | None] = []
    count, place = counts.append, places.append
    at = units = 0
    size = len(data)
    try:
        while at < size:
            first = data[at]
            units, kind = _FIRST_BYTES[first]
            if kind < _KIND_ONE_LINE:
                second = data[at + 1]
                column = first & 0x78 | second >> 4
                place(_position((line, line, column, column + (second & 15))))
                at += 2
            elif kind < _KIND_NO_COLUMNS:
                line += kind - _KIND_ONE_LINE
                place(_position((line, line, data[at + 1], data[at + 2])))
                at += 3
            elif kind == _KIND_NONE:
                place(None)
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
                place(_position((line, line + lines, column - 1 if column else None, end - 1 if end else None)))
            elif kind == _KIND_NO_COLUMNS:
                delta, at = _read_location_number(data, at + 1)
                line += _signed(delta)
                place(_position((line, line, None, None)))
            else:
                raise MalformedTable("line table has an entry that does not start where one can")
            count(units)
    except IndexError:
        place(_position((line, line, None, None)))
        count(units)
        return _Locations(counts, places, False)
    return _Locations(counts, places, True)


def _ranges(locations: _Locations) -> list[Range]:
    """Return the ranges of neighbours on one line."""
    result: list[Range] = []
    shown: int | None = None
    since = start = 0
    for count, place in zip(locations.units, locations.places):
        line = None if place is None else place.line
        if line != shown:
            if start > since:
                result.append((since, start, shown))
            since, shown = start, line
        start += 2 * count
    if start > since:
        result.append((since, start, shown))
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


def _read_linetable_310(data: bytes, line: int) -> list[Range]:
    result: list[Range] = []
    start = 0
    for position in range(0, len(data) - 1, 2):
        end = start + data[position]
        delta = data[position + 1]
        if delta > 127:
            delta -= 256
        entry_line: int | None = None
        if delta != _NO_LINE_310:
            entry_line = line = line + delta
        if end > start:
            result.append((start, end, entry_line))
        start = end
    return result


def _read_lnotab(data: bytes, line: int, size: int) -> list[Range]:
    result: list[Range] = []
    start = offset = 0
    for position in range(0, len(data) - 1, 2):
        offset += data[position]
        delta = data[position + 1]
        if offset > start and delta:
            result.append((start, offset, line))
            start = offset
            if start >= size:  # (a long table of a short code)
                break
        line += delta - 256 if delta > 127 else delta
    if size > start:
        result.append((start, size, line))
    return result


# --- writing lines ---------------------------------------------------------------------------------
def encode_linetable(version: tuple[int, int], firstlineno: int, ranges: Iterable[Range]) -> bytes:
    """Encode ``ranges`` (ordered, without gaps, byte offsets) as the line table of ``version``.

    3.10 and later. Columns are not written: they would point into another text.
    """
    if version >= (3, 11):
        return _write_locations(firstlineno, ranges)
    if version >= (3, 10):
        return _write_linetable_310(firstlineno, ranges)
    raise ValueError(f"line tables of Python {version[0]}.{version[1]} cannot be written")


def _write_locations(line: int, ranges: Iterable[Range]) -> bytes:
    out = bytearray()
    for start, end, entry_line in ranges:
        units = (end - start) >> 1
        while units > 0:
            length = min(units, 8)
            units -= length
            if entry_line is None:
                out.append(0x80 | _KIND_NONE << 3 | length - 1)
                continue
            out.append(0x80 | _KIND_NO_COLUMNS << 3 | length - 1)
            delta = entry_line - line
            line = entry_line
            value = (-delta << 1 | 1) if delta < 0 else delta << 1
            while value >= 64:
                out.append(value & 63 | 64)
                value >>= 6
            out.append(value)
    return bytes(out)


def _write_linetable_310(line: int, ranges: Iterable[Range]) -> bytes:
    out = bytearray()
    for start, end, entry_line in ranges:
        length = end - start
        if entry_line is None:
            delta = _NO_LINE_310
        else:
            delta, line = entry_line - line, entry_line
            while delta > 127:
                out += bytes((0, 127))
                delta -= 127
            while delta < -127:
                out += bytes((0, 129))
                delta += 127
        while length > 254:
            out += bytes((254, delta & 255))
            delta = delta if entry_line is None else 0
            length -= 254
        out += bytes((length, delta & 255))
    return bytes(out)


def relocate(code: CodeType, lines: Mapping[int, int], filename: str, firstlineno: int) -> CodeType:
    """Return the same code object, saying that it comes from other lines of another file.

    Args:
        code: a code object of the running interpreter (3.10 or later). Nested ones are left alone.
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
    """Decode the entries of a ``co_exceptiontable``, in order.

    3.11 and later; CPython 3.11 describes the format in Objects/exception_handling_notes.txt.
    """
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


def encode_exception_table(entries: Iterable[TableEntry]) -> bytes:
    """Encode entries as a ``co_exceptiontable``: the inverse of :func:`parse_exception_table`."""
    out = bytearray()
    for entry in entries:
        marker = 128  # set on the first byte of an entry, so that a search can find entry borders
        values = (entry.start // 2, (entry.end - entry.start) // 2, entry.target // 2,
                  entry.depth << 1 | entry.lasti)
        for value in values:
            groups = [value & 63]
            while value := value >> 6:
                groups.append(value & 63 | 64)
            groups[-1] |= marker
            out += bytes(reversed(groups))
            marker = 0
    return bytes(out)
