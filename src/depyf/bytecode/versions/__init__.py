"""Differences between CPython versions, as data: ``table(version)``.

In comes ``(3, 11)``; out come opcode numbers, sizes of inline caches and which opcodes jump. One module a version
says what differs from the version before; ``scripts/generate_opcode_tables.py`` writes it from that interpreter::

    table((3, 11)).opcodes["RESUME"]      # 151
    table((3, 10)).opcodes["RESUME"]      # KeyError: 3.11 introduced it
"""

from __future__ import annotations

from functools import cache
from importlib import import_module

from ..errors import Unreadable

#: Versions whose code can be read, oldest first.
SUPPORTED: tuple[tuple[int, int], ...] = ((3, 7), (3, 8), (3, 9), (3, 10), (3, 11), (3, 12), (3, 13),
                                         (3, 14))


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
        have_argument: opcodes below it have no argument.
        jumps: number -> 0 (no jump), 1 (forward), -1 (backward), 2 (absolute).
        rows: number -> (name, bytes with caches, jump), which is asked of each instruction.
        jump_unit: bytes per unit of a jump's argument (1 up to 3.9, 2 after).
        extended_arg: number of ``EXTENDED_ARG``.
    """

    def __init__(self, version: tuple[int, int]) -> None:
        module = import_module(f"{__name__}.v{version[0]}_{version[1]}")
        opcodes: dict[str, int] = {}
        if module.BASE:
            base: Table = _load((version[0], int(module.BASE.partition("_")[2])))
            opcodes.update(base.opcodes)
            for name in module.REMOVED:
                del opcodes[name]
        opcodes.update(module.OPCODES)
        self.version = version
        self.opcodes: dict[str, int] = opcodes
        self.names = [f"<{number}>" for number in range(256)]
        for name, number in opcodes.items():
            self.names[number] = name
        self.caches = [0] * 256
        for name, count in module.CACHES.items():
            self.caches[opcodes[name]] = count
        self.have_argument: int = module.HAVE_ARGUMENT
        self.jumps = [0] * 256
        for name in module.RELATIVE_JUMPS:
            self.jumps[opcodes[name]] = -1 if "BACKWARD" in name else 1
        for name in module.ABSOLUTE_JUMPS:
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
