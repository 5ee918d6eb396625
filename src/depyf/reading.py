"""Opens every file that somebody else may have written: dumps, logs, ``.pyc`` and source files, caches.

    contents("a.pyc", budgets.CODE)                          all of its bytes
    for line in lines("dump/records.jsonl", budgets.RUN):    one line after the other
        json_value(line)

Only a regular file is read, and no more of it than its budget allows. Anything else raises :class:`CannotRead`, whose
message names the file, what is wrong with it and what to do. Nothing here waits for a pipe or a device.
"""

from __future__ import annotations

import io
import json
import linecache
import os
import stat
import time
import tokenize
from collections.abc import Iterator
from typing import Any, BinaryIO

from . import budgets
from .budgets import Budget

_FLAGS = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC", "O_BINARY"))
_KINDS = {stat.S_IFIFO: "a named pipe", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device", stat.S_IFDIR: "a folder",
          stat.S_IFSOCK: "a socket"}
_CHUNK = 1 << 20
#: Bytes after which the time is looked at again.
_CHECKED = 1 << 16


class CannotRead(OSError):
    """A file that is not read; the message names it, says what is wrong with it and what to do."""

    def __init__(self, path: str | os.PathLike[str], why: str) -> None:
        super().__init__(f"{os.fspath(path)!r} cannot be read: {why}")


def opened(path: str | os.PathLike[str], most: Budget) -> BinaryIO:
    """Open a regular file whose size is within its budget.

    Raises:
        CannotRead: it is something else, or larger.
        OSError: it is not there, or nobody here may read it.
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
        return open(number, "rb")
    except BaseException:
        os.close(number)
        raise


def contents(path: str | os.PathLike[str], most: Budget) -> bytes:
    """Return all bytes of a file.

    Raises:
        OSError: as :func:`opened`.
    """
    parts, size = [], 0
    with opened(path, most) as file:
        while part := file.read(_CHUNK):
            size += len(part)
            if too_many := most.exceeded(size):  # (it grows, or is of a file system that does not tell sizes)
                raise CannotRead(path, too_many)
            parts.append(part)
    return b"".join(parts)


def lines(path: str | os.PathLike[str], most: Budget) -> Iterator[bytes]:
    """Yield the lines of a file with their ends, which are ``\\n``.

    What is done with the lines between two of them counts as time for reading.

    Raises:
        OSError: as :func:`opened`; one line is too long, or reading takes too long.
    """
    longest, size, begun, next_check = budgets.LINE.allowed, 0, time.thread_time(), 0
    with opened(path, most) as file:
        while line := file.readline(longest + 1):
            size += len(line)
            if size >= next_check:
                next_check = size + _CHECKED
                seconds = time.thread_time() - begun - size / 1_000_000 * budgets.SECONDS_PER_MEGABYTE
                why = budgets.LINE.exceeded(len(line)) or most.exceeded(size) or budgets.SECONDS.exceeded(int(seconds))
                if why:
                    raise CannotRead(path, why)
            yield line[:-2] + b"\n" if line.endswith(b"\r\n") else line


def json_value(line: bytes | str) -> Any:
    """Return the value of JSON in a line.

    Raises:
        ValueError: there is none, or its parts nest too deeply for this Python.
    """
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
            text = contents(path, budgets.CODE)
            encoding, _ = tokenize.detect_encoding(io.BytesIO(text).readline)
            found = io.StringIO(text.decode(encoding) + "\n", newline=None).readlines()
            linecache.cache[path] = len(text), os.path.getmtime(path), found, path
        except (OSError, SyntaxError, UnicodeDecodeError):
            return []
    return linecache.getlines(path)
