"""Spill files, for what is not needed now: a program may compile for days while it is watched."""

from __future__ import annotations

import io
import itertools
import os
import pickle
import struct
import tempfile
from collections.abc import Callable, Iterator, MutableMapping
from typing import Any, Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")

#: So many values of a kind stay in memory: compilations nest, and a backward graph follows its forward graph.
AT_HAND = 8
_LENGTH = struct.Struct("<Q")


class Shelf:
    """The file: without a name, so that a killed process leaves nothing. It is made when the first value comes.

    Args:
        folder: on whose disk it is; ``None``: where temporary files are.
    """

    def __init__(self, folder: str | None = None) -> None:
        self._folder = folder
        self._file: io.FileIO | None = None

    def put(self, value: Any) -> int | None:
        """Writes a value and says where it is, in bytes; ``None`` if that cannot be done: keep it."""
        try:
            data = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
            if self._file is None:
                # (No buffer: what a full disk did not take is forgotten.)
                self._file = tempfile.TemporaryFile(buffering=0, dir=self._folder)
            place = self._file.seek(0, os.SEEK_END)
            rest = memoryview(_LENGTH.pack(len(data)) + data)
            while rest:
                rest = rest[self._file.write(rest):]
        except Exception:  # nothing is lost by it
            return None
        return place

    def take(self, place: int) -> Any:
        """The value that lies there.

        Raises:
            OSError, EOFError: it cannot be read.
        """
        if self._file is None:
            raise EOFError("the shelf is closed")
        self._file.seek(place)
        (length,) = _LENGTH.unpack(self._read(_LENGTH.size))
        return pickle.loads(self._read(length))

    def _read(self, length: int) -> bytes:
        assert self._file is not None
        parts = []
        while length:
            part = self._file.read(length)
            if not part:
                raise EOFError("a value on the shelf ends early")
            parts.append(part)
            length -= len(part)
        return b"".join(parts)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


class Kept(MutableMapping[K, V], Generic[K, V]):
    """Values by key, in the order in which the keys came. Those that were not asked for lately lie on the shelf.

    A value that was asked for may be changed until :data:`AT_HAND` others were asked for.

    Args:
        shelf: ``None``: all stay in memory.
        complete: whether a value can be put away; others stay in memory.
    """

    def __init__(self, shelf: Shelf | None = None, complete: Callable[[V], bool] = lambda value: True) -> None:
        self._shelf = shelf
        self._complete = complete
        self._places: dict[K, int | None] = {}  # of all
        self._at_hand: dict[K, V] = {}  # the latest at the end

    def __getitem__(self, key: K) -> V:
        if key in self._at_hand:
            value = self._at_hand.pop(key)
            self._at_hand[key] = value
            return value
        value = self._away(key)
        self[key] = value  # it may be changed
        return value

    def _away(self, key: K) -> V:
        place = self._places[key]
        assert self._shelf is not None and place is not None
        value: V = self._shelf.take(place)
        return value

    def __setitem__(self, key: K, value: V) -> None:
        self._places.setdefault(key, None)
        self._at_hand.pop(key, None)
        self._at_hand[key] = value
        if self._shelf is not None and len(self._at_hand) > AT_HAND:
            self._put_away(self._shelf)

    def _put_away(self, shelf: Shelf) -> None:
        """Those that were asked for longest ago: two, so that their number falls again after many had to stay."""
        for key in list(itertools.islice(self._at_hand, min(2, len(self._at_hand) - AT_HAND))):
            value = self._at_hand.pop(key)
            place = shelf.put(value) if self._complete(value) else None
            if place is None:
                self._at_hand[key] = value
            else:
                self._places[key] = place

    def __delitem__(self, key: K) -> None:
        del self._places[key]
        self._at_hand.pop(key, None)

    def __contains__(self, key: object) -> bool:
        return key in self._places

    def __iter__(self) -> Iterator[K]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def looked_at(self, key: K) -> V:
        """The value, to be read only: it stays where it is."""
        return self._at_hand[key] if key in self._at_hand else self._away(key)

    def all(self) -> Iterator[V]:
        """Every value, to be read only."""
        return map(self.looked_at, list(self._places))
