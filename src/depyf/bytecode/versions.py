"""Differences between CPython versions, as data: ``table(version)``.

Opcode numbers, sizes of inline caches and which opcodes jump, from the generated rows of :mod:`.opcodes`::

    table((3, 11)).opcodes["RESUME"]      # 151
    table((3, 10)).opcodes["RESUME"]      # KeyError: 3.11 introduced it
"""

from __future__ import annotations

from functools import cache

from .errors import Unreadable
from .opcodes import TABLES

#: Versions whose code can be read, oldest first.
SUPPORTED: tuple[tuple[int, int], ...] = tuple(TABLES)


class UnsupportedVersion(Unreadable):
    """Code of a Python version that there is no table for."""

    def __init__(self, version: tuple[int, int]) -> None:
        known = ", ".join(f"{major}.{minor}" for major, minor in SUPPORTED)
        super().__init__(f"bytecode of Python {version[0]}.{version[1]} is not supported (supported: {known})", "", 0)
        self.version = version


class Table:
    """The numbers of one version.

    Attributes:
        version: ``(major, minor)``.
        opcodes: name -> number.
        names: number -> name (``"<number>"`` for numbers that mean nothing).
        caches: number -> inline cache code units that follow the instruction.
        jumps: number -> 0 (no jump), 1 (forward), -1 (backward), 2 (absolute).
        rows: number -> (name, bytes with caches, jump), which is asked of each instruction.
        jump_unit: bytes per unit of a jump's argument (1 up to 3.9, 2 after).
        extended_arg: number of ``EXTENDED_ARG``.
    """

    def __init__(self, version: tuple[int, int]) -> None:
        row = TABLES[version]
        opcodes = {**_load(row.base).opcodes, **row.opcodes} if row.base is not None else row.opcodes
        opcodes = {name: number for name, number in opcodes.items() if name not in row.removed}
        self.version = version
        self.opcodes: dict[str, int] = opcodes
        self.names = [f"<{number}>" for number in range(256)]
        for name, number in opcodes.items():
            self.names[number] = name
        self.caches = [0] * 256
        for name, count in row.caches.items():
            self.caches[opcodes[name]] = count
        self.jumps = [0] * 256
        for name in row.relative_jumps:
            self.jumps[opcodes[name]] = -1 if "BACKWARD" in name else 1
        for name in row.absolute_jumps:
            self.jumps[opcodes[name]] = 2
        self.rows = list(zip(self.names, [2 + 2 * count for count in self.caches], self.jumps))
        self.jump_unit = 2 if version >= (3, 10) else 1
        self.extended_arg = opcodes["EXTENDED_ARG"]


def table(version: tuple[int, int]) -> Table:
    """Return the table of a version.

    Raises:
        UnsupportedVersion: none is known.
    """
    if version not in SUPPORTED:
        raise UnsupportedVersion(version)
    return _load(version)


@cache
def _load(version: tuple[int, int]) -> Table:
    return Table(version)
