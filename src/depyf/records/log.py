"""``records.jsonl`` while a run goes on: records are appended, and read back by their place in the file.

    extent = log.append(CompiledGraph("__compiled_fn_1", ...))   # a line more: a killed process leaves it
    log.read(extent)                                             # the record again; it need not stay in memory
"""

from __future__ import annotations

import io
import os
import threading
from collections.abc import Callable
from typing import NamedTuple, TypeAlias, TypeVar

from . import store
from .environment import environment

R = TypeVar("R")
#: So many bytes of what was appended last are records in memory, too: what is asked for is mostly new.
RECENT = 8_000_000


class Extent(NamedTuple):
    """The place of a line, in bytes."""

    begin: int
    length: int


#: A record that was appended, or the record itself where that failed.
Recorded: TypeAlias = R | Extent


class RecordLog:
    """The file. It is made when the first record comes, and stays open: its folder may be taken away meanwhile.

    Args:
        folder: of the dump.
        failed: told why a record could not be written.
    """

    def __init__(self, folder: str, failed: Callable[[OSError], None]) -> None:
        self._path = os.path.join(folder, store.FILE)
        self._failed = failed
        self._lock = threading.Lock()
        self._file: io.FileIO | None = None
        self._recent: dict[Extent, object] = {}
        self._size = 0  # of those

    def append(self, record: R) -> Recorded[R]:
        """Write a record as a line and return its place; the record itself where that cannot be done: keep it."""
        data = store.line(record).encode()  # (made before there is a file)
        try:
            with self._lock:
                extent = self._written(data)
                self._recent[extent] = record
                self._size += extent.length
                while self._size > RECENT:
                    oldest = next(iter(self._recent))
                    self._size -= oldest.length
                    del self._recent[oldest]
        except OSError as error:
            self._failed(error)
            return record
        return extent

    def _written(self, data: bytes) -> Extent:
        if self._file is None:
            self._file = open(self._path, "a+b", buffering=0)
        begin = self._file.seek(0, os.SEEK_END)
        first = b"" if begin else store.first_line(environment()).encode()
        rest = memoryview(first + data)
        try:
            while rest:
                rest = rest[self._file.write(rest):]
        except OSError:
            self._file.truncate(begin)  # half a line would spoil those that come after it
            raise
        return Extent(begin + len(first), len(data))

    def read(self, recorded: Recorded[R]) -> R:
        """Return the record that :meth:`append` gave a place for; one that it gave back, as it is.

        Raises:
            OSError, RecordsError: it cannot be read.
        """
        if not isinstance(recorded, Extent):
            return recorded
        with self._lock:
            found = self._recent.get(recorded)
            if found is None:
                if self._file is None:
                    raise OSError(f"{self._path} is closed")
                self._file.seek(recorded.begin)
                found = store.read_line(self._read(self._file, recorded.length).decode())
        return found  # type: ignore[return-value]  # what was appended there

    @staticmethod
    def _read(file: io.FileIO, length: int) -> bytes:
        parts = []
        while length:
            part = file.read(length)
            if not part:
                raise OSError("a record ends early")
            parts.append(part)
            length -= len(part)
        return b"".join(parts)

    def close(self) -> None:
        """Let go of the file. The whole run is written once more, in its final form."""
        with self._lock:
            self._recent.clear()
            file, self._file = self._file, None
        try:
            if file is not None:
                file.close()
        except OSError as error:
            self._failed(error)
