"""A version-tagged, immutable view of a code object, and its instructions.

Everything downstream works on :class:`Code`, never on ``types.CodeType``, so that code of another
Python version (read from a ``.pyc``) and our own take the same path. What differs between versions is data,
``table(version)``: opcode numbers and sizes of inline caches, from the generated rows of
:mod:`.opcodes`::

    table((3, 11)).opcodes["RESUME"]      # 151
    table((3, 10)).opcodes["RESUME"]      # KeyError: 3.11 introduced it
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from types import CodeType
from typing import Any

from .. import budgets
from .errors import Unreadable, shown_name
from .linetable import positions
from .opcodes import TABLES

#: The version of the running interpreter.
_RUNNING = sys.version_info[:2]

CO_OPTIMIZED = 0x1
CO_NEWLOCALS = 0x2
CO_VARARGS = 0x4
CO_VARKEYWORDS = 0x8
CO_NESTED = 0x10
CO_GENERATOR = 0x20
CO_COROUTINE = 0x80
CO_ASYNC_GENERATOR = 0x200
CO_FUTURE_ANNOTATIONS = 0x1000000
CO_HAS_DOCSTRING = 0x4000000

#: Arguments are C ints.
_MAX_PREFIX = 0x7FFFFF00

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
        names: number -> name (``"<number>"`` for numbers that mean nothing).
        caches: number -> inline cache code units that follow the instruction.
        jumps: number -> how the instruction jumps (:func:`jump_of`).
        rows: number -> (name, bytes with caches, jump), which is asked of each instruction.
    """

    def __init__(self, version: tuple[int, int]) -> None:
        row = TABLES[version]
        opcodes = dict(table(row.base).opcodes) if row.base is not None else {}
        opcodes |= _numbered(row.opcodes, 1)
        opcodes = {name: number for name, number in opcodes.items() if name not in row.removed.split()}
        self.version = version
        self.opcodes: dict[str, int] = opcodes
        self.names = [f"<{number}>" for number in range(256)]
        for name, number in opcodes.items():
            self.names[number] = name
        self.caches = [0] * 256
        for name, count in _numbered(row.caches, 0).items():
            self.caches[opcodes[name]] = count
        self.jumps = [jump_of(name, version) for name in self.names]
        self.rows = list(zip(self.names, [2 + 2 * count for count in self.caches], self.jumps))


def _numbered(words: str, step: int) -> dict[str, int]:
    """Return names with their numbers: each that of the name before it plus ``step``, unless a number precedes it."""
    result: dict[str, int] = {}
    number = 0
    for word in words.split():
        if word.isdecimal():
            number = int(word)
        else:
            result[word] = number
            number += step
    return result


def jump_of(name: str, version: tuple[int, int]) -> int:
    """Return whether an instruction jumps: 0 (no), 1 (forward), -1 (backward), 2 (to an absolute place)."""
    if "JUMP" in name or name == "CONTINUE_LOOP":
        if version < (3, 11) and name != "JUMP_FORWARD":
            return 2
        return -1 if "BACKWARD" in name else 1
    is_block = name.startswith("SETUP_") and name != "SETUP_ANNOTATIONS"
    return int(is_block or name in ("FOR_ITER", "SEND", "CALL_FINALLY"))


@cache
def table(version: tuple[int, int]) -> Table:
    """Return the table of a version; raise :class:`UnsupportedVersion` if none is known."""
    if version not in TABLES:
        raise UnsupportedVersion(version)
    return Table(version)


#: Attributes of a :class:`Code`, with those of a code object of Python's that they are.
_SAME = [(name, f"co_{name}") for name in (
    "name", "filename", "firstlineno", "argcount", "posonlyargcount", "kwonlyargcount", "flags", "stacksize", "names",
    "varnames", "cellvars", "freevars")]


@dataclass(frozen=True, eq=False)
class Code:
    """A code object of Python ``version``, with the attributes of CPython's.

    ``consts`` contains nested :class:`Code`. ``linetable`` is the version's own encoding (``co_lnotab`` up to 3.9);
    ``exceptiontable`` is empty before 3.11. ``origin`` is the Python code object it was made from, if it was.
    """

    version: tuple[int, int]
    name: str
    qualname: str
    filename: str
    firstlineno: int
    argcount: int
    posonlyargcount: int
    kwonlyargcount: int
    flags: int
    stacksize: int
    bytecode: bytes
    consts: tuple[Any, ...]
    names: tuple[str, ...]
    varnames: tuple[str, ...]
    cellvars: tuple[str, ...]
    freevars: tuple[str, ...]
    linetable: bytes
    exceptiontable: bytes
    origin: CodeType | None = None

    @classmethod
    def of(cls, code: CodeType, compiled: bool = False) -> Code:
        """Convert a code object of the running interpreter, with those nested in it, each once.

        ``compiled``: it comes from the compiler just now, so that its bytecode is whole.
        """
        views: dict[int, Code] = {}
        if CodeType not in map(type, code.co_consts):  # (most)
            return cls._of(code, views, code.co_code if compiled else _bytecode(code))
        pending = [code]
        while pending:
            current = pending[-1]
            if CodeType in map(type, current.co_consts):
                inner = [c for c in current.co_consts if isinstance(c, CodeType) and id(c) not in views]
                if inner:
                    pending += inner
                    continue
            pending.pop()
            if id(current) not in views:
                views[id(current)] = cls._of(current, views, current.co_code if compiled else _bytecode(current))
        return views[id(code)]

    @classmethod
    def _of(cls, code: CodeType, views: dict[int, Code], bytecode: bytes) -> Code:
        self = cls.__new__(cls)
        consts = code.co_consts
        holds_code = CodeType in map(type, consts)
        if holds_code:
            consts = tuple([views[id(c)] if isinstance(c, CodeType) else c for c in consts])
        object.__setattr__(self, "__dict__", {  # (at once: the constructor of a frozen class makes a call for each)
            **{name: getattr(code, attribute) for name, attribute in _SAME},
            "version": _RUNNING,
            "qualname": getattr(code, "co_qualname", code.co_name),
            "bytecode": bytecode,
            "consts": consts,
            "holds_code": holds_code,
            "linetable": code.co_linetable if sys.version_info >= (3, 10) else code.co_lnotab,
            "exceptiontable": getattr(code, "co_exceptiontable", b""),
            "origin": code,
        })
        return self

    @property
    def arguments(self) -> tuple[str, ...]:
        """All parameter names in ``varnames`` order (``*args`` and ``**kwargs`` included)."""
        n = self.argcount + self.kwonlyargcount
        n += bool(self.flags & CO_VARARGS) + bool(self.flags & CO_VARKEYWORDS)
        return self.varnames[:n]

    @property
    def variables(self) -> tuple[str, ...]:
        """Arguments, locals, cells and free variables: one array from 3.11 on, which instructions index."""
        known = set(self.varnames)
        return (*self.varnames, *[cell for cell in self.cellvars if cell not in known], *self.freevars)

    @property
    def docstring(self) -> str | None:
        """The docstring of a function that is made of the code."""
        if self.version >= (3, 14) and not self.flags & CO_HAS_DOCSTRING:
            return None
        return self.consts[0] if self.consts and isinstance(self.consts[0], str) else None

    @cached_property
    def holds_code(self) -> bool:
        """Whether a code object is among the constants: most have none, and this says so at once."""
        return Code in map(type, self.consts)


#: More cache units than any instruction has.
_MOST_CACHES = 12


def _bytecode(code: CodeType) -> bytes:
    """``co_code``, where it can be read.

    From 3.11 on the attribute is computed, and writes beyond its end when the last instruction lacks some of
    its cache units (as ``code.replace`` lets it): what is stored is passed on then, and refused when it is read.
    """
    stored: bytes | None = getattr(code, "_co_code_adaptive", None)
    if stored is None:
        return code.co_code
    caches = _stored_caches()
    position, size = 0, len(stored)
    for count in range(min(size // 2, _MOST_CACHES + 1)):
        if caches[stored[size - 2 * count - 2]] > count:
            break
    else:
        return code.co_code  # whatever the last instruction is, it has its units
    while position < size:
        position += 2 + 2 * caches[stored[position]]
    return code.co_code if position == size else stored


@cache
def _stored_caches() -> list[int]:
    """Cache units after each opcode as the running interpreter stores it (specialised ones too)."""
    import dis

    caches = list(table(sys.version_info[:2]).caches)
    numbers: dict[str, int] = getattr(dis, "_all_opmap", {})
    for special, plain in getattr(dis, "deoptmap", {}).items():
        if special in numbers and plain in dis.opmap:
            caches[numbers[special]] = caches[dis.opmap[plain]]
    return caches


# --- instructions -----------------------------------------------------------------------------------
class UnsupportedBytecode(Unreadable):
    """An instruction, or a use of one, that is not understood; ``offset`` is in the bytecode."""

    def __init__(self, message: str, code: Code, opname: str, offset: int) -> None:
        version = ".".join(map(str, code.version))
        where = f"{shown_name(code.filename)}: {opname} at offset {offset} of {shown_name(code.qualname)}"
        super().__init__(f"{where} (Python {version}): {message}", code.filename, offset)
        self.opname = opname
        self.version = code.version


@dataclass(eq=False, slots=True)
class Instruction:
    """One instruction, as the version spells it.

    Attributes:
        offset: byte offset of the opcode itself (what ``f_lasti`` and tracebacks use), not of an ``EXTENDED_ARG``.
        start: byte offset of the first ``EXTENDED_ARG`` before it: where control may enter.
        arg: the whole argument; meaningless where the opcode takes none.
        target: for jumps the index of the target in the list of instructions; else -1.
    """

    offset: int
    opcode: int
    opname: str
    arg: int
    line: int | None
    start: int
    target: int = -1


def decode(code: Code) -> list[Instruction]:
    """Decode the instructions of a code object, in order; up to 3.10 they are cached on it: do not modify them."""
    known: list[Instruction] | None = code.__dict__.get("_instructions")
    if known is None:
        known = _decode(code)
        if code.version < (3, 11):
            code.__dict__["_instructions"] = known
    return known


def jump_targets(instructions: Sequence[Instruction]) -> set[int]:
    """Return the indexes of the instructions that jumps lead to."""
    return {instruction.target for instruction in instructions if instruction.target >= 0}


def _decode(code: Code) -> list[Instruction]:
    numbers = table(code.version)
    rows, extended, unit = numbers.rows, numbers.opcodes["EXTENDED_ARG"], 2 if code.version >= (3, 10) else 1
    raw = code.bytecode
    size = len(raw)
    places = positions(code)
    result: list[Instruction] = []
    jumps: list[tuple[Instruction, int]] = []
    append = result.append
    position = prefix = start = 0
    end = size - 1
    while position < end:
        opcode = raw[position]
        arg = raw[position + 1] | prefix
        if opcode == extended:
            prefix = arg << 8
            if prefix > _MAX_PREFIX:
                raise UnsupportedBytecode("the argument is too large to be one", code, "EXTENDED_ARG", position)
            position += 2
            continue
        prefix = 0
        name, length, jump = rows[opcode]
        place = places[position >> 1]
        instruction = Instruction(position, opcode, name, arg, None if place is None else place.line, start)
        append(instruction)
        position = start = position + length
        if jump:
            jumps.append((instruction, arg * unit if jump == 2 else position + arg * unit * jump))
    if too_many := budgets.INSTRUCTIONS.exceeded(len(result)):
        raise UnsupportedBytecode(too_many, code, result[-1].opname, result[-1].offset)
    if position > size:
        raise UnsupportedBytecode("is cut off in its caches", code, result[-1].opname, result[-1].offset)
    index_at = {instruction.start: index for index, instruction in enumerate(result)} if jumps else {}
    for instruction, target in jumps:
        if not 0 <= target < size:
            raise UnsupportedBytecode("jumps out of the code", code, instruction.opname, instruction.offset)
        index = index_at.get(target, -1)
        if index < 0:
            message = f"jumps to offset {target}, into the middle of an instruction"
            raise UnsupportedBytecode(message, code, instruction.opname, instruction.offset)
        instruction.target = index
    return result
