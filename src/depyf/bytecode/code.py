"""A version-tagged, immutable view of a code object.

Everything downstream works on :class:`Code`, never on ``types.CodeType``, so that code of another
Python version (read from a ``.pyc``) and our own take the same path.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cache, cached_property
from types import CodeType
from typing import Any

from .versions import table

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


@dataclass(frozen=True, eq=False)
class Code:
    """A code object of Python ``version``.

    Attributes carry the meaning of their ``co_`` namesakes; ``consts`` contains nested :class:`Code` where
    CPython has nested code objects.  ``linetable`` is the version's own encoding (``co_lnotab`` up to
    3.9, ``co_linetable`` after); ``exceptiontable`` is empty before 3.11.  ``origin`` is the Python code
    object it was made from, if it was.
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
        """Convert a code object of the running interpreter, with those nested in it.

        One that is shared is converted once: as often as it is referred to would be exponentially often.

        Args:
            code: the code object.
            compiled: it comes from the compiler just now, so that its bytecode is whole.
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
            "version": _RUNNING,
            "name": code.co_name,
            "qualname": getattr(code, "co_qualname", code.co_name),
            "filename": code.co_filename,
            "firstlineno": code.co_firstlineno,
            "argcount": code.co_argcount,
            "posonlyargcount": code.co_posonlyargcount,
            "kwonlyargcount": code.co_kwonlyargcount,
            "flags": code.co_flags,
            "stacksize": code.co_stacksize,
            "bytecode": bytecode,
            "consts": consts,
            "holds_code": holds_code,
            "names": code.co_names,
            "varnames": code.co_varnames,
            "cellvars": code.co_cellvars,
            "freevars": code.co_freevars,
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
