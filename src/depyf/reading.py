"""Opens every file that others may have written: dumps, logs, ``.pyc`` and source files.

    contents("a.pyc", budgets.CODE)                          all of its bytes
    for line in lines("dump/records.jsonl", budgets.RUN):    one line after the other
        json_value(line)

Only a regular file is read, up to its budget; anything else raises :class:`CannotRead`. Nothing waits for a pipe or a
device.
"""

from __future__ import annotations

import errno
import functools
import io
import json
import linecache
import os
import stat
import tokenize
from collections.abc import Iterator
from typing import Any, BinaryIO

from . import budgets
from .budgets import Budget

_FLAGS = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC", "O_BINARY"))
_KINDS = {stat.S_IFIFO: "a named pipe", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device", stat.S_IFDIR: "a folder",
          stat.S_IFSOCK: "a socket"}
_CHUNK = 1 << 20
_opened: dict[tuple[int, int], int] = {}  #: Sizes of the files that were opened in this process, by device and inode.


class CannotRead(OSError):
    """A file that is not read; the message names it, says what is wrong with it and what to do."""

    def __init__(self, path: str | os.PathLike[str], why: str) -> None:
        super().__init__(errno.EINVAL, why, os.fspath(path))

    def __str__(self) -> str:
        return f"{self.filename!r} cannot be read: {self.strerror}"


def opened(path: str | os.PathLike[str], most: Budget) -> BinaryIO:
    """Open a regular file whose size is within its budget.

    Raises:
        CannotRead: it is something else, or larger.
        OSError: it is not there, or must not be read.
    """
    try:
        number = os.open(path, _FLAGS)
    except ValueError as error:  # (a null byte)
        raise CannotRead(path, str(error)) from None
    try:
        status = os.fstat(number)
        kind = stat.S_IFMT(status.st_mode)
        if kind != stat.S_IFREG:
            raise CannotRead(path, f"it is {_KINDS.get(kind, 'something else')}; give a regular file")
        if too_many := most.exceeded(status.st_size):
            raise CannotRead(path, too_many)
        _opened[status.st_dev, status.st_ino] = status.st_size
        return open(number, "rb")
    except BaseException:
        os.close(number)
        raise


def opened_bytes() -> int:
    """Return the size of all files that were opened in this process."""
    return sum(_opened.values())


def contents(path: str | os.PathLike[str], most: Budget) -> bytes:
    """Return all bytes of a file, or raise as :func:`opened`."""
    return b"".join(parts(path, most))


def parts(path: str | os.PathLike[str], most: Budget) -> Iterator[bytes]:
    """Yield the bytes of a file in parts of a megabyte, or raise as :func:`opened`."""
    size = 0
    with opened(path, most) as file:
        while part := file.read(_CHUNK):
            size += len(part)
            if too_many := most.exceeded(size):  # (it grows, or its file system gives no size)
                raise CannotRead(path, too_many)
            yield part


def text(path: str | os.PathLike[str], most: Budget, errors: str = "strict") -> str:
    """Return the text of a file, with single line feeds; raise as :func:`opened`, or ``UnicodeDecodeError``."""
    return io.StringIO(contents(path, most).decode(errors=errors), newline=None).read()


def lines(path: str | os.PathLike[str], most: Budget) -> Iterator[bytes]:
    """Yield the lines of a file with single line feeds; raise as :func:`opened`, or where a line is too long."""
    longest, size = budgets.LINE.allowed, 0
    with opened(path, most) as file:
        while line := file.readline(longest + 1):
            size += len(line)
            if why := budgets.LINE.exceeded(len(line)) or most.exceeded(size):
                raise CannotRead(path, why)
            yield line[:-2] + b"\n" if line.endswith(b"\r\n") else line


def json_value(line: bytes | str) -> Any:
    """Return the value of JSON in a line; raise ``ValueError`` where there is none, or it is nested too deeply."""
    try:
        return json.loads(line)
    except RecursionError:
        raise ValueError("lists or objects are nested too deeply") from None


def source_lines(path: str) -> list[str]:
    """Return the lines of a source file, which may be a cell of a notebook; none where it cannot be read.

    As ``linecache`` does, which would wait for a pipe.
    """
    if path not in linecache.cache and os.path.exists(path):
        try:
            data = contents(path, budgets.CODE)
            encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
            found = io.StringIO(data.decode(encoding), newline=None).readlines()
            found[-1:] = [line.removesuffix("\n") + "\n" for line in found[-1:]]
            linecache.cache[path] = len(data), os.path.getmtime(path), found, path
        except (OSError, SyntaxError, UnicodeDecodeError):
            return []
    return linecache.getlines(path)


@functools.cache
def own_text(name: str) -> str:
    """Return a text that is a part of the package: ``own_text("views/repro.py.txt")``."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), name), encoding="utf-8") as file:
        return file.read()
