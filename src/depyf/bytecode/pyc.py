"""Reads ``.pyc`` files of every supported version. Never executes anything.

A ``.pyc`` is 16 bytes of header and a marshalled code object. :mod:`marshal` only reads the host's own
format, and is documented to be unsafe with bad input; this reader checks every length against the rest,
does not recurse, and says where in which file something is wrong. It reads the types that compilers write.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Generator
from typing import Any

from .. import budgets
from ..reading import contents
from .code import Code
from .errors import Unreadable

#: First two bytes of the files that released versions write.
MAGIC_NUMBERS = {
    3394: (3, 7), 3413: (3, 8), 3425: (3, 9), 3439: (3, 10), 3495: (3, 11), 3531: (3, 12), 3571: (3, 13),
    3627: (3, 14),
}
#: Those of versions that are named, but not read.
_NOT_READ = {62211: "2.7", 3230: "3.3", 3310: "3.4", 3350: "3.5", 3351: "3.5", 3379: "3.6"}
HEADER_SIZE = 16
#: Objects nested deeper than this are refused, as CPython does.
MAX_DEPTH = 2000

_LOCAL, _CELL, _FREE = 0x20, 0x40, 0x80
_ORDER = {_LOCAL: 0, _LOCAL | _CELL: 0, _CELL: 1, _FREE: 2}
_UNFINISHED = object()


class PycError(Unreadable):
    """A file that is not a ``.pyc`` we can read, with the place in it that says so."""

    def __init__(self, message: str, filename: str, offset: int) -> None:
        super().__init__(f"{filename}, byte {offset}: {message}", filename, offset)


def read_pyc(path: str | os.PathLike[str], version: tuple[int, int] | None = None) -> Code:
    """Read the module code in a ``.pyc`` file; ``version`` as for :func:`load_pyc`."""
    return load_pyc(contents(path, budgets.CODE), os.fspath(path), version)


def load_pyc(data: bytes, filename: str = "<bytes>", version: tuple[int, int] | None = None) -> Code:
    """Read the module code in the contents of a ``.pyc`` file.

    Args:
        data: the contents.
        filename: for messages.
        version: of the Python whose ``marshal`` wrote the data, where that has no header (archives of PyInstaller's).
    """
    start = HEADER_SIZE if data[2:4] == b"\r\n" else 0
    if start and len(data) >= HEADER_SIZE:
        magic = int.from_bytes(data[:2], "little")
        version = MAGIC_NUMBERS.get(magic)
        if version is None:
            raise PycError(f"magic number {magic} {_owner(magic)}", filename, 0)
    elif start or version is None:
        raise PycError("is not a .pyc file (code without its header needs a version: --python 3.11)", filename, 0)
    code = loads(data, version, filename, start)
    if not isinstance(code, Code):
        raise PycError(f"contains a {type(code).__name__}, not a code object", filename, start)
    return code


def _owner(magic: int) -> str:
    """Say whose files have a magic number that is not in the table. From 3.11 on, 3.x counts from 2900 + 50 * x."""
    known = ", ".join(f"{major}.{minor}" for major, minor in MAGIC_NUMBERS.values())
    if magic in _NOT_READ:
        return f"is of Python {_NOT_READ[magic]}, which is not supported (supported: {known})"
    minor = (magic - 2900) // 50
    if 11 <= minor < 50:
        if (3, minor) in MAGIC_NUMBERS.values():
            return f"is of a pre-release of Python 3.{minor} (supported are the releases of {known})"
        return f"is of Python 3.{minor}, which is not supported (supported: {known})"
    return f"belongs to no released Python that is known here (supported: {known})"


def loads(data: bytes, version: tuple[int, int], filename: str = "<bytes>", start: int = 0) -> Any:
    """Read the object that Python ``version`` marshalled into ``data``."""
    return _Reader(data, version, filename, start).read()


#: A step of reading: yields whenever it needs a nested object, and is sent that object.
_Step = Generator[None, Any, Any]


class _Reader:
    def __init__(self, data: bytes, version: tuple[int, int], filename: str, start: int) -> None:
        self.data = data
        self.version = version
        self.filename = filename
        self.at = start
        self.references: list[Any] = []
        self.objects = 0

    def error(self, message: str) -> PycError:
        return PycError(message, self.filename, self.at)

    def read(self) -> Any:
        """Nested objects are put on a list, not on Python's stack."""
        steps: list[_Step] = [self.item()]
        value: Any = None
        while steps:
            try:
                steps[-1].send(value)
            except StopIteration as stop:
                value = stop.value
                steps.pop()
            else:
                if len(steps) >= MAX_DEPTH:
                    raise self.error("objects are nested too deeply")
                steps.append(self.item())
                value = None
        return value

    # --- numbers and bytes -------------------------------------------------------------------------
    def take(self, count: int) -> bytes:
        if count < 0 or count > len(self.data) - self.at:
            raise self.error("the file ends too early" if count >= 0 else "negative size")
        self.at += count
        return self.data[self.at - count : self.at]

    def byte(self) -> int:
        return self.take(1)[0]

    def int32(self) -> int:
        return int.from_bytes(self.take(4), "little", signed=True)

    def size(self) -> int:
        """Read a number of things that take at least a byte each, so no more than the file has bytes left."""
        count = self.int32()
        if not 0 <= count <= len(self.data) - self.at:
            raise self.error(f"size {count} is larger than the file")
        return count

    # --- objects -----------------------------------------------------------------------------------
    def item(self) -> _Step:
        start = self.at
        self.objects += 1
        if self.objects > budgets.OBJECTS.most and (too_many := budgets.OBJECTS.exceeded(self.objects)):
            raise self.error(too_many)
        first = self.byte()
        kind = chr(first & 0x7F)
        slot = -1
        if first & 0x80:
            slot = len(self.references)
            self.references.append(_UNFINISHED)
        simple = _SIMPLE.get(kind)
        if simple is not None:
            value = simple(self)
        elif kind == "r":
            number = self.int32()
            if not 0 <= number < len(self.references):
                raise self.error(f"reference {number} to nothing")
            value = self.references[number]
            if value is _UNFINISHED:
                raise self.error(f"reference {number} to an object that contains it")
        else:
            if kind == "c":
                value = yield from self.code()
            elif kind in _CONTAINERS:
                count, make = _CONTAINERS[kind]
                items = yield from self.items(count(self))
                try:
                    value = make(items)
                except (TypeError, RecursionError) as error:
                    raise self.error(f"the items of a set cannot be in one ({error})") from None
            else:
                self.at = start
                raise self.error(f"unknown type {kind!r}")
        if slot >= 0:
            self.references[slot] = value
        return value

    def long(self) -> int:
        count = self.int32()
        digits = abs(count)
        if digits * 2 > len(self.data) - self.at:
            raise self.error("the file ends in the middle of a number")
        raw = self.take(2 * digits)
        if any(byte & 128 for byte in raw[1::2]):
            raise self.error("a digit of a number is too large")
        # Eight digits of 15 bits are 15 bytes; putting bytes together takes linear time.
        chunks = []
        for start in range(0, len(raw), 16):
            chunk = 0
            for index, (digit,) in enumerate(struct.iter_unpack("<H", raw[start : start + 16])):
                chunk |= digit << 15 * index
            chunks.append(chunk.to_bytes(15, "little"))
        value = int.from_bytes(b"".join(chunks), "little")
        return -value if count < 0 else value

    def float_(self) -> float:
        value: float = struct.unpack("<d", self.take(8))[0]
        return value

    def text(self) -> str:
        try:
            return self.take(self.size()).decode("utf-8", "surrogatepass")
        except UnicodeDecodeError as error:
            raise self.error(f"text is not UTF-8 ({error.reason})") from None

    def items(self, count: int) -> Generator[None, Any, list[Any]]:
        result = []
        for _ in range(count):
            result.append((yield))
        return result

    def code(self) -> _Step:
        version = self.version
        origin = self.at
        argcount = self.int32()
        posonly = self.int32() if version >= (3, 8) else 0
        kwonly = self.int32()
        if version < (3, 11):
            self.int32()  # number of locals: that of varnames
        stacksize, flags = self.int32(), self.int32()
        bytecode, consts, names, varnames = yield from self.items(4)
        if version >= (3, 11):
            (kinds,) = yield from self.items(1)
            self.expect(origin, (kinds, bytes), (varnames, tuple))
            if len(kinds) != len(varnames):
                raise self.error("a kind is missing for a local variable")
            pairs = [*zip(varnames, kinds, strict=True)]
            # Locals (some of them cells), cells, free variables: instructions index all of them as one.
            order = [_ORDER.get(kind & (_LOCAL | _CELL | _FREE), -1) for kind in kinds]
            if order != sorted(order) or -1 in order:
                raise self.error("local variables are in an order or of a kind that no compiler writes")
            freevars = tuple(name for name, kind in pairs if kind & _FREE)
            cellvars = tuple(name for name, kind in pairs if kind & _CELL)
            varnames = tuple(name for name, kind in pairs if kind & _LOCAL)
        else:
            freevars, cellvars = yield from self.items(2)
        filename, name = yield from self.items(2)
        qualname = name
        if version >= (3, 11):
            (qualname,) = yield from self.items(1)
        firstlineno = self.int32()
        (linetable,) = yield from self.items(1)
        exceptiontable = b""
        if version >= (3, 11):
            (exceptiontable,) = yield from self.items(1)
        self.expect(
            origin, (bytecode, bytes), (consts, tuple), (names, tuple), (varnames, tuple), (cellvars, tuple),
            (freevars, tuple), (filename, str), (name, str), (qualname, str), (linetable, bytes),
            (exceptiontable, bytes),
        )
        for group in (names, varnames, cellvars, freevars):
            self.expect(origin, *((item, str) for item in group))
        return Code(
            version=version, name=name, qualname=qualname, filename=filename, firstlineno=firstlineno,
            argcount=argcount, posonlyargcount=posonly, kwonlyargcount=kwonly, flags=flags,
            stacksize=stacksize, bytecode=bytecode, consts=consts, names=names, varnames=varnames,
            cellvars=cellvars, freevars=freevars, linetable=linetable, exceptiontable=exceptiontable,
        )

    def expect(self, offset: int, *pairs: tuple[Any, type]) -> None:
        for value, wanted in pairs:
            if not isinstance(value, wanted):
                actual = type(value).__name__
                message = f"code object has a {actual} instead of a {wanted.__name__}"
                raise PycError(message, self.filename, offset)


_SIMPLE: dict[str, Callable[[_Reader], Any]] = {
    "N": lambda _: None,
    "F": lambda _: False,
    "T": lambda _: True,
    ".": lambda _: Ellipsis,
    "i": _Reader.int32,
    "l": _Reader.long,
    "g": _Reader.float_,
    "y": lambda r: complex(r.float_(), r.float_()),
    "s": lambda r: r.take(r.size()),
    "u": _Reader.text,
    "t": _Reader.text,
    **dict.fromkeys("aA", lambda r: r.take(r.size()).decode("latin-1")),
    **dict.fromkeys("zZ", lambda r: r.take(r.byte()).decode("latin-1")),
}

#: How many items a container has, and what makes it of them.
_CONTAINERS: dict[str, tuple[Callable[[_Reader], int], Callable[[list[Any]], Any]]] = {
    "(": (_Reader.size, tuple),
    ")": (_Reader.byte, tuple),
    ">": (_Reader.size, frozenset),
    ":": (lambda _: 3, lambda items: slice(*items)),
}
