"""Writes code objects of any version as ``.pyc`` files, what no compiler makes as well."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Any

from depyf.bytecode.code import Code
from depyf.bytecode.pyc import MAGIC_NUMBERS

_LOCAL, _CELL, _FREE = 0x20, 0x40, 0x80
_MAGIC = {version: number for number, version in MAGIC_NUMBERS.items()}
#: Bytes of a constant. (Tuples that hold one tuple twice, inside each other, double with each level.)
LARGEST = 10_000_000
_SINGLE = {None: b"N", True: b"T", False: b"F"}


class CannotWriteError(ValueError):
    """A value that marshalled files do not hold."""


def written(code: Code) -> bytes:
    """Return the contents of the ``.pyc`` file of a module's code object.

    Raises:
        CannotWriteError: if it holds a constant that such a file cannot.
    """
    return struct.pack("<H", _MAGIC[code.version]) + b"\r\n" + bytes(12) + marshalled(code)


def marshalled(value: Any) -> bytes:
    """Return a constant as a file holds it.

    Raises:
        CannotWriteError: if it cannot.
    """
    if isinstance(value, Code):
        return _code(value)
    if value is None or isinstance(value, bool):
        return _SINGLE[value]
    if value is ...:
        return b"."
    if isinstance(value, int):
        return b"i" + struct.pack("<i", value) if -(2**31) <= value < 2**31 else _long(value)
    if isinstance(value, float):
        return b"g" + struct.pack("<d", value)
    if isinstance(value, complex):
        return b"y" + struct.pack("<dd", value.real, value.imag)
    if isinstance(value, bytes):
        return b"s" + _sized(value)
    if isinstance(value, str):
        return b"u" + _sized(value.encode("utf-8", "surrogatepass"))
    if isinstance(value, (tuple, frozenset)):
        return (b"(" if isinstance(value, tuple) else b">") + _number(len(value)) + _items(value)
    if isinstance(value, slice):
        return b":" + _items((value.start, value.stop, value.step))
    raise CannotWriteError(f"{type(value).__name__} is not in marshalled files")


def _items(values: Iterable[Any]) -> bytes:
    """Return what a tuple or set holds, each object written once: one in another may well be there twice."""
    known: dict[int, bytes] = {}
    parts, size = [], 0
    for value in values:
        data = known[id(value)] = known[id(value)] if id(value) in known else marshalled(value)
        parts.append(data)
        size += len(data)
        if size > LARGEST:
            raise CannotWriteError(f"a constant of more than {LARGEST:,} bytes")
    return b"".join(parts)


def _number(value: int) -> bytes:
    return struct.pack("<I", value & 0xFFFFFFFF)


def _sized(data: bytes) -> bytes:
    return _number(len(data)) + data


def _long(value: int) -> bytes:
    """Return a large number: its digits have 15 bits each, their count has its sign."""
    rest, digits = abs(value), []
    while rest:
        digits.append(rest & 0x7FFF)
        rest >>= 15
    return b"l" + _number(-len(digits) if value < 0 else len(digits)) + struct.pack(f"<{len(digits)}H", *digits)


def _code(code: Code) -> bytes:
    """Return a code object; its variables are in three tuples up to 3.10, from 3.11 on in one, with their kinds."""
    version = code.version
    numbers = [code.argcount, *[code.posonlyargcount] * (version >= (3, 8)), code.kwonlyargcount,
               *[len(code.varnames)] * (version < (3, 11)), code.stacksize, code.flags]
    parts = [b"c", *map(_number, numbers), marshalled(code.bytecode), marshalled(code.consts), marshalled(code.names)]
    if version >= (3, 11):
        cells = set(code.cellvars)
        only_cells = [name for name in code.cellvars if name not in code.varnames]
        names = (*code.varnames, *only_cells, *code.freevars)
        kinds = [_LOCAL | _CELL * (name in cells) for name in code.varnames]
        kinds += [_CELL] * len(only_cells) + [_FREE] * len(code.freevars)
        parts += [marshalled(names), marshalled(bytes(kinds))]
    else:
        parts += [marshalled(code.varnames), marshalled(code.freevars), marshalled(code.cellvars)]
    parts += [marshalled(code.filename), marshalled(code.name), *[marshalled(code.qualname)] * (version >= (3, 11)),
              _number(code.firstlineno), marshalled(code.linetable)]
    parts += [marshalled(code.exceptiontable)] * (version >= (3, 11))
    return b"".join(parts)
