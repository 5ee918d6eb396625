"""``records.jsonl`` while a run is in progress: records are appended, and read by their place in the file.

    place = log.append(CompiledGraph("__compiled_fn_1", ...))   # another line
    log.read(place)                                             # the record again

A process that is killed leaves the lines that it appended. A record need not stay in memory.
"""

from __future__ import annotations

import io
import os
import threading
from collections.abc import Callable, Iterable
from typing import TypeAlias, TypeVar

from . import store
from .environment import environment
from .model import EndOfRecording
from .run_directory import first_line, line_of

R = TypeVar("R")
#: The number of bytes, of those appended last, whose records are in memory, too: most that are read are new.
RECENT = 200_000
_CHUNK = 1 << 16
#: The place of a record that was appended, its first byte; the record itself where that failed.
Recorded: TypeAlias = R | int


class RecordLog:
    """The file. It is created for the first record, and stays open: its folder may be removed meanwhile.

    Args:
        folder: of the dump.
        failed: called with the reason why a record could not be written.
    """

    def __init__(self, folder: str, failed: Callable[[OSError], None]) -> None:
        self._path = os.path.join(folder, store.FILE)
        self._failed = failed
        self._lock = threading.Lock()
        self._file: io.FileIO | None = None
        self._recent: dict[int, tuple[object, int]] = {}  # by place; with their lengths
        self._size = 0  # of those
        self._complete = True

    def append(self, record: R) -> Recorded[R]:
        """Write a record as a line and return its place; the record itself where that cannot be done."""
        data = store.line(record).encode()  # (before the file is created)
        try:
            with self._lock:
                place = self._written(data)
                self._recent[place] = record, len(data)
                self._size += len(data)
                while self._size > RECENT:
                    self._size -= self._recent.pop(next(iter(self._recent)))[1]
        except OSError as error:
            self._complete = False
            self._failed(error)
            return record
        return place

    def end(self, record: EndOfRecording, notes: Iterable[str]) -> None:
        """Write the notes on the run and its end; where a record is missing no end, so that the file says so."""
        lines = [line_of({"record": "note", "text": note}) for note in notes]
        if self._complete:
            lines.append(store.line(record))
        try:
            with self._lock:
                self._written("".join(lines).encode())
        except OSError as error:
            self._failed(error)

    def _written(self, data: bytes) -> int:
        if self._file is None:
            self._file = open(self._path, "a+b", buffering=0)
        begin = self._file.seek(0, os.SEEK_END)
        first = b"" if begin else first_line(environment()).encode()
        rest = memoryview(first + data)
        try:
            while rest:
                rest = rest[self._file.write(rest):]
        except OSError:
            self._file.truncate(begin)  # half a line would corrupt the next one
            raise
        return begin + len(first)

    def read(self, recorded: Recorded[R]) -> R:
        """Return the record that :meth:`append` returned a place for, or returned as it is.

        Raises:
            OSError, RecordsError: it cannot be read.
        """
        if not isinstance(recorded, int):
            return recorded
        with self._lock:
            record, _ = self._recent.get(recorded) or (store.read_line(self._line_at(recorded)), 0)
        return record  # type: ignore[return-value]  # what was appended there

    def _line_at(self, place: int) -> str:
        if self._file is None:
            raise OSError(f"{self._path} is closed")
        self._file.seek(place)
        parts: list[bytes] = []
        while not parts or b"\n" not in parts[-1]:
            parts.append(self._file.read(_CHUNK))
            if not parts[-1]:
                raise OSError("a record ends early")
        return b"".join(parts).partition(b"\n")[0].decode()

    def close(self) -> None:
        """Close the file; the whole run is written again, in its final form."""
        with self._lock:
            self._recent.clear()
            file, self._file = self._file, None
        try:
            if file is not None:
                file.close()
        except OSError as error:
            self._failed(error)
