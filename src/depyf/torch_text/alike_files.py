"""Files of ranks that say the same, found without parsing most of them: thousands of ranks do the same.

Two processes that do the same write records, or logs of ``TORCH_TRACE``, that differ in times, addresses, ids, numbers
of devices::

    {"record":"compilation", ... "seconds":0.92495, ... "expression":"___check_obj_id(L['f'], 140084081999072)" ...}
    {"record":"compilation", ... "seconds":1.09615, ... "expression":"___check_obj_id(L['f'], 139784071912096)" ...}

The first file becomes a *template*: the pieces between what differs. To test whether another file has these pieces
costs little more than to read it; to normalise each file costs 40 times as much.
"""

from __future__ import annotations

import functools
import re

from .run_ids import IDS_OF_RANK

#: Parts of records that differ between processes which do the same.
_IN_RECORDS = (
    rb'(?<="start":)[-+.\deE]+|(?<="seconds":)[-+.\deE]+|(?<="guard_microseconds":)\d+|(?<="date":)"[^"]*"'
    rb'|(?<="rank":)"\d+"|(?<="path":)"[^"]*torchinductor_[^"]*"')
#: The same of logs: the beginnings of lines, digests of payloads, times, variables of the environment, keys of caches.
_IN_LOGS = (
    rb'^[VDIWEF]\d{4} [\d:.]+ \d+ |(?<="rank": )\d+|(?<="has_payload": ")[0-9a-f]{32}|(?<="ts": )[\d.]+'
    rb'|(?:(?<=_us": )|(?<=_ms": )|(?<=_s": )|(?<=_time": ))(?:[-+.\de]+|null)|(?<="time_taken_ns": )\d+'
    rb'|(?<=_us": ")(?:[^"\\\n]|\\.)*|(?<=Guard latency = )[\d.]+'
    rb"|(?<=os\.environ\[)[^\n]+|\b[a-z0-9]{2}/(?=[a-z0-9]{40,}\.)|\b[a-z0-9]{40,}\b")
_VARIES = re.compile(b"|".join((_IN_RECORDS, _IN_LOGS, IDS_OF_RANK.encode())), re.M)
#: How many templates are tried.
_TRIED = 16


class _Template:
    """A file without what differs between ranks; files that say the same have its number."""

    def __init__(self, data: bytes, number: int) -> None:
        self.data, self.number = data, number

    @functools.cached_property
    def _pieces(self) -> list[bytes]:
        return _VARIES.split(self.data)

    def fits(self, data: bytes) -> bool:
        """Return whether a file says the same."""
        if data == self.data:
            return True
        *pieces, last = self._pieces
        at = 0
        for piece in pieces:
            part = _VARIES.match(data, at + len(piece)) if data.startswith(piece, at) else None
            if part is None:
                return False
            at = part.end()
        return data[at:] == last


class AlikeFiles:
    """Finds files that are alike; they are added one by one."""

    def __init__(self) -> None:
        self._templates: dict[int, list[_Template]] = {}  # by their numbers of lines
        self._count = 0

    def add(self, data: bytes) -> int:
        """Return a number that is equal for files that are alike."""
        known = self._templates.setdefault(data.count(b"\n"), [])
        template = next((each for each in known[:_TRIED] if each.fits(data)), None)
        if template is not None:  # the most likely one comes first
            known.remove(template)
            known.insert(0, template)
            return template.number
        known.insert(1, _Template(data, self._count))
        self._count += 1
        return self._count - 1
