"""Files of records that say the same, found without reading most of them: thousands of ranks do the same.

Two processes that do the same write lines that differ in times, addresses, ids, numbers of devices::

    {"record":"compilation", ... "seconds":0.92495, ... "expression":"___check_obj_id(L['f'], 140084081999072)" ...}
    {"record":"compilation", ... "seconds":1.09615, ... "expression":"___check_obj_id(L['f'], 139784071912096)" ...}

The first line becomes a *template*: the pieces between what differs. To test whether another line has these pieces
costs little more than to read it; to normalise each line costs 80 times as much.
"""

from __future__ import annotations

import functools
import os
import re

from .. import budgets
from ..reading import lines
from .run_directory import FILE

#: Parts of a line of records that differ between processes which do the same.
_VARIES = re.compile(
    rb'(?<="start":)[-+.\deE]+|(?<="seconds":)[-+.\deE]+|(?<="guard_microseconds":)\d+|(?<="date":)"[^"]*"'
    rb'|(?<="rank":)"\d+"|(?<="path":)"[^"]*torchinductor_[^"]*"|0x[0-9a-f]+|(?<=cuda:)\d+|(?<=index=)\d+'
    rb"|(?<=__compiled_fn_)\d+(?:_[0-9a-f_]{36,})?|(?<=/rank_)\d+"
    # (ids of objects; not the digits of a fraction)
    rb"|(?<![\d.])\d{9,}(?:_\d{9,})*(?:_c\w+)?(?!\d|\.\d)")
#: How long a compilation took; only its first: spans of its timeline follow.
_SECONDS = re.compile(rb'"start":[-+.\deE]+,"seconds":([-+.\deE]+)')
_COMPILATION = b'{"record":"compilation",'
#: How many templates of a line are tried, the latest first.
_TRIED = 16


class _Template:
    """A line of records without what differs between ranks; lines that say the same have one number."""

    def __init__(self, line: bytes, number: int) -> None:
        self.line, self.number = line, number

    @functools.cached_property
    def _pieces(self) -> list[bytes]:
        return _VARIES.split(self.line)

    def fits(self, line: bytes) -> bool:
        """Return whether a line says the same."""
        if line == self.line:
            return True
        *pieces, last = self._pieces
        at = 0
        for piece in pieces:
            part = _VARIES.match(line, at + len(piece)) if line.startswith(piece, at) else None
            if part is None:
                return False
            at = part.end()
        return line[at:] == last


class AlikeFiles:
    """Finds files of records that are alike; files are added one by one."""

    def __init__(self) -> None:
        self._templates: dict[int, list[_Template]] = {}  # by the number of the line in its file
        self._count = 0

    def add(self, directory: str) -> tuple[tuple[int, ...], float]:
        """Return a key that is equal for files that are alike, and how many seconds the compilations of a run took.

        Raises:
            OSError: there is no file of records, or it cannot be read.
        """
        key = []
        took: dict[bytes, float] = {}
        for number, line in enumerate(lines(os.path.join(directory, FILE), budgets.RUN)):
            key.append(self._number(number, line))
            if line.startswith(_COMPILATION) and (seconds := _SECONDS.search(line)) is not None:
                # (A compilation is written again when its backward graph was compiled: the last line counts.)
                took[line[: line.find(b"}")]] = float(seconds[1])
        return tuple(key), sum(took.values())

    def _number(self, at: int, line: bytes) -> int:
        known = self._templates.setdefault(at, [])
        for template in reversed(known[-_TRIED:]):
            if template.fits(line):
                return template.number
        self._count += 1
        known.append(_Template(line, self._count))
        return self._count
