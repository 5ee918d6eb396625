"""Are two code objects the same program?

A product walk: both canonical programs are followed together from their entries, and from every pair of
exception handlers met on the way.  At each step the operation, its resolved argument and the handler
that covers it must agree, and both ways out of each branch are followed.  Only layout may differ:

* line numbers, and the order in which blocks stand;
* unconditional jumps, so also blocks that are duplicated, merged or reached through other jumps;
* instructions that a version fuses (already split in the canonical program);
* the sense of a branch (``if not a: x else: y`` against ``if a: y else: x``), with the ``not`` that
  goes with it;
* handlers of operations that cannot raise.

What is compared of the code object itself: parameters, the flags that change its meaning, free variables
(of nested code in their order: closures are tuples), the set of cell variables, its name and docstring, and
nested code objects in the same way, these with their qualified names inside the outermost one.

What a program could see and is not compared: ``co_firstlineno`` and other places of the text, the order of
constants, names and locals (so of ``locals()``), the iteration order of constant sets and of
``__static_attributes__`` (3.13, a set of strings, too), and the ``__future__`` flags that an ``exec`` inside
would inherit.

The walk is independent of the lifting code: it reads bytecode and nothing that the decompiler made of
it.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

from ...bytecode import operations as o
from ...bytecode.canonical import canonicalise
from ...bytecode.code import Code
from ...bytecode.operations import Op, Program
from ..generics import HIDDEN

#: CO_* flags that change what a code object does: OPTIMIZED, NEWLOCALS, VARARGS, VARKEYWORDS, GENERATOR,
#: COROUTINE, ITERABLE_COROUTINE, ASYNC_GENERATOR. (NESTED and the __future__ flags do not, once compiled.)
MEANINGFUL_FLAGS = 0x1 | 0x2 | 0x4 | 0x8 | 0x20 | 0x80 | 0x100 | 0x200

#: Operations that never raise, so that it does not matter which handler covers them.  (MemoryError and
#: asynchronous exceptions such as KeyboardInterrupt apart: they come anywhere.)
SILENT = frozenset({
    o.CONST, o.LOAD_CLOSURE, o.STORE_FAST, o.STORE_DEREF, o.POP, o.COPY, o.SWAP, o.ROT, o.JUMP, o.RETURN,
    o.PUSH_EXC_INFO, o.POP_EXCEPT, o.BUILD_TUPLE, o.BUILD_LIST, o.BUILD_SLICE, o.LIST_APPEND,
    o.LOAD_FAST_AND_CLEAR, o.MAKE_CELL, o.LIST_TO_TUPLE,
})

#: Operations whose argument is a global name.
_GLOBALS = frozenset({o.LOAD_GLOBAL, o.STORE_GLOBAL, o.DELETE_GLOBAL})
#: Operations whose argument is, or can turn out to be, a global name.
_PERHAPS_GLOBALS = _GLOBALS | {o.LOAD_NAME, o.STORE_NAME, o.DELETE_NAME, o.LOAD_FROM_DICT_OR_GLOBALS}
#: Types whose values are the same when they are equal and of the same type.
_PLAIN = frozenset({int, bool, str, bytes, type(None), type(...)})

#: Two code objects to compare, and what messages call them.
Pair = tuple[Code | Program, Code | Program, str]


@dataclass
class Verdict:
    """Result of a comparison; true if the programs are the same.

    Attributes:
        same: the answer.
        where: what differs and at which byte offsets of both; empty if nothing does.
        pairs: ``(original offset, recompiled offset)`` of the outermost code, in the order met.
        notes: simplifications that were assumed (none for :func:`same_program`).
    """

    same: bool
    where: str = ""
    pairs: list[tuple[int, int]] = field(default_factory=list)
    notes: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.same


class _Different(Exception):
    pass


def same_program(
    original: Code | Program,
    recompiled: Code | Program,
    *,
    ignore_name: bool = False,
    rename: Mapping[str, str] | None = None,
) -> Verdict:
    """Compares two code objects as programs (see the module).

    Args:
        original: code, or its canonical program where that is at hand.
        recompiled: the same.
        ignore_name: the outermost name may differ, and the order of its free variables.
        rename: ``{global name in the original: name in the recompiled}``.

    Raises:
        UnsupportedBytecode: one of them cannot be read.
    """
    pairs: list[tuple[int, int]] = []
    if rename and (name := conflated(original, rename)):
        return Verdict(False, f"two globals are both called {name}")
    work: list[Pair] = [(original, recompiled, "")]
    outer: tuple[Code, Code] | None = None
    while work:
        left, right, path = work.pop()
        verdict, nested = same_code(left, right, path=path, outer=outer, ignore_name=ignore_name, rename=rename)
        if outer is None:
            pairs = verdict.pairs
            outer = _code(left), _code(right)
        if not verdict:
            return Verdict(False, verdict.where, pairs)
        work += nested
    return Verdict(True, "", pairs)


def same_code(
    left: Code | Program,
    right: Code | Program,
    *,
    path: str = "",
    outer: tuple[Code, Code] | None = None,
    ignore_name: bool = False,
    rename: Mapping[str, str] | None = None,
) -> tuple[Verdict, list[Pair]]:
    """Compares two code objects without what they hold.

    Args:
        left: code, or its canonical program where that is at hand.
        right: the same.
        path: what messages call it.
        outer: the outermost code objects, if these lie inside.
        ignore_name: the outermost name may differ, and the order of its free variables.
        rename: ``{global name in the original: name in the recompiled}``; see :func:`conflated`.

    Returns:
        The verdict, and the pairs of nested code objects that have still to be compared.
    """
    pairs: list[tuple[int, int]] = []
    nested: list[Pair] = []
    try:
        p, q = _program(left), _program(right)
        _compare_codes(p.code, q.code, path, outer, ignore_name)
        _walk(p, q, path, rename or {}, nested, pairs)
    except _Different as difference:
        return Verdict(False, str(difference), pairs), nested
    except IndexError:
        return Verdict(False, f"{path or _code(left).name}: control leaves the program", pairs), nested
    return Verdict(True, "", pairs), nested


def line_map(verdict: Verdict, recompiled: CodeType) -> dict[int, int]:
    """``{original byte offset: line of the recompiled code}``, for pairs of a successful comparison."""
    line_of: dict[int, int] = {}
    for start, end, line in recompiled.co_lines():
        if line is not None:
            for offset in range(start, end, 2):
                line_of[offset] = line
    return {a: line_of[b] for a, b in reversed(verdict.pairs) if b in line_of}


def _program(code: Code | Program) -> Program:
    return code if isinstance(code, Program) else canonicalise(code)


def _code(code: Code | Program) -> Code:
    return code.code if isinstance(code, Program) else code


def docstring(code: Code) -> str | None:
    """The docstring a function made of the code would have."""
    if code.version >= (3, 14) and not code.flags & 0x4000000:
        return None
    first = code.consts[0] if code.consts else None
    return first if isinstance(first, str) else None


def conflated(code: Code | Program, rename: Mapping[str, str]) -> str:
    """A name that two globals of the code, and of what it holds, would both have; empty if there is none.
    Where there is one, no comparison under that renaming proves anything."""
    meaning: dict[str, str] = {}
    work = [code]
    while work:
        for op in _program(work.pop()).ops:
            if op.kind in _PERHAPS_GLOBALS:
                shown = rename.get(op.arg, op.arg) if op.kind in _GLOBALS else op.arg
                if meaning.setdefault(shown, op.arg) != op.arg:
                    return str(shown)
            elif op.kind is o.CONST and isinstance(op.arg, Code):
                work.append(op.arg)
    return ""


def _compare_codes(a: Code, b: Code, path: str, outer: tuple[Code, Code] | None, ignore_name: bool) -> None:
    here = path or a.name
    ignore_name = ignore_name and outer is None

    def check(what: str, left: Any, right: Any) -> None:
        if left != right:
            raise _Different(f"{here}: {what} {left!r} became {right!r}")

    check("number of positional parameters", a.argcount, b.argcount)
    check("number of positional-only parameters", a.posonlyargcount, b.posonlyargcount)
    check("number of keyword-only parameters", a.kwonlyargcount, b.kwonlyargcount)
    check("flags", a.flags & MEANINGFUL_FLAGS, b.flags & MEANINGFUL_FLAGS)
    check("parameters", a.arguments, b.arguments)
    check("free variables", sorted(a.freevars), sorted(b.freevars))
    check("cell variables", sorted(a.cellvars), sorted(b.cellvars))
    is_function = a.flags & 0x3 == 0x3 and not a.name.startswith("<")
    if is_function:
        check("docstring", docstring(a), docstring(b))
    if ignore_name:
        return
    # A closure is a tuple of cells in the order of the free variables.
    check("order of free variables", a.freevars, b.freevars)
    check("name", a.name, b.name)
    if outer is not None:
        check("qualified name", _inside(a.qualname, outer[0]), _inside(b.qualname, outer[1]))


def _inside(qualname: str, outer: Code) -> tuple[bool, str]:
    """Return whether a qualified name starts with that of the outermost code, and the rest of it.

    What stands in the scope of type parameters has names as if it stood around that scope
    (``compiler_set_qualname`` in compile.c).
    """
    start = outer.qualname[: -len(outer.name)] if outer.name.startswith(HIDDEN) else f"{outer.qualname}."
    return (True, qualname[len(start):]) if qualname.startswith(start) else (False, qualname)


def _settle(ops: list[Op], index: int) -> int:
    """The operation that control reaches from ``index`` through unconditional jumps."""
    seen = 0
    while ops[index].kind is o.JUMP:
        index = ops[index].target
        seen += 1
        if seen > len(ops):
            return index  # an empty endless loop
    return index


def _walk(
    p: Program, q: Program, path: str, rename: Mapping[str, str],
    work: list[Pair], pairs: list[tuple[int, int]],
) -> None:
    ops, others = p.ops, q.ops
    name = path or p.code.name
    if not ops or not others:
        if ops or others:
            raise _Different(f"{name}: one of them is empty")
        return
    visited: set[tuple[int, int]] = set()
    pending = [(0, 0)]
    while pending:
        i, j = pending.pop()
        while True:
            if ops[i].kind is o.JUMP:
                i = _settle(ops, i)
            if others[j].kind is o.JUMP:
                j = _settle(others, j)
            if (i, j) in visited:
                break
            visited.add((i, j))
            a, b = ops[i], others[j]
            kind = a.kind
            if kind is o.JUMP or b.kind is o.JUMP:  # an empty endless loop on both sides
                if kind is not b.kind:
                    raise _Different(_at(name, a, b))
                break
            negated = False
            tests = a, b  # what may raise
            if kind is not b.kind:
                # ``not x`` tested one way is ``x`` tested the other way.
                i2, j2 = _skip_not(ops, i), _skip_not(others, j)
                if i2 is None and j2 is None:
                    raise _Different(_at(name, a, b))
                if i2 is not None and b.kind is o.BRANCH:
                    i, a, negated = i2, ops[i2], True
                elif j2 is not None and kind is o.BRANCH:
                    j, b, negated = j2, others[j2], True
                else:
                    raise _Different(_at(name, a, b))
                kind = o.BRANCH
            pairs.append((a.offset, b.offset))
            if kind not in SILENT:
                # A ``not`` that was skipped is what asks for the truth of the value; its branch cannot raise.
                _pair_handlers(p, q, *tests, name, pending)
            if kind is o.BRANCH:
                true_a, false_a = (a.target, i + 1) if a.arg else (i + 1, a.target)
                true_b, false_b = (b.target, j + 1) if b.arg else (j + 1, b.target)
                if negated:
                    true_b, false_b = false_b, true_b
                pending.append((false_a, false_b))
                i, j = true_a, true_b
                continue
            if kind is o.CONST:
                if not same_constant(a.arg, b.arg, work, f"{name}.") \
                        and not (_is_line(p, i) and _is_line(q, j)) \
                        and not (_is_attributes(p, i) and _is_attributes(q, j) and sorted(a.arg) == sorted(b.arg)):
                    raise _Different(_at(name, a, b))
            else:
                argument = rename.get(a.arg, a.arg) if kind in _GLOBALS else a.arg
                if argument is not b.arg and not same_constant(argument, b.arg):
                    raise _Different(_at(name, a, b))
            if kind is o.FOR_ITER:
                pending.append((a.target, b.target))
            elif kind in o.ENDS:
                break
            i += 1
            j += 1


def _is_line(program: Program, index: int) -> bool:
    """Return whether a constant is the ``__firstlineno__`` that the compiler gives a class (3.13+)."""
    value = program.ops[index].arg
    return _is_of_class(program, index, "__firstlineno__") and type(value) is int and value == program.code.firstlineno


def _is_attributes(program: Program, index: int) -> bool:
    """Return whether a constant is the ``__static_attributes__`` of a class (3.13+): made of a set, in whose order."""
    value = program.ops[index].arg
    return (_is_of_class(program, index, "__static_attributes__") and type(value) is tuple
            and all(type(name) is str for name in value))


def _is_of_class(program: Program, index: int, name: str) -> bool:
    """Return whether a constant is stored under a name that the compiler of 3.13+ binds in a class body."""
    code, following = program.code, program.ops[index + 1]
    return (following.kind is o.STORE_NAME and following.arg == name and code.version >= (3, 13)
            and not code.flags & 0x3 and code.name != "<module>")


def _skip_not(ops: list[Op], index: int) -> int | None:
    """The branch behind a ``not`` at ``index``, if that is what stands there."""
    if ops[index].kind is not o.UNARY or ops[index].arg != "not" or index + 1 >= len(ops):
        return None
    following = _settle(ops, index + 1)
    return following if ops[following].kind is o.BRANCH else None


def _pair_handlers(p: Program, q: Program, a: Op, b: Op, name: str, pending: list[tuple[int, int]]) -> None:
    if a.handler < 0 and b.handler < 0:
        return
    if a.handler < 0 or b.handler < 0:
        raise _Different(f"{_at(name, a, b)}: only one of them lies under an exception handler")
    left, right = p.handlers[a.handler], q.handlers[b.handler]
    if left.depth != right.depth or left.lasti != right.lasti:
        raise _Different(f"{_at(name, a, b)}: their handlers keep {left!r} and {right!r}")
    pending.append((left.target, right.target))


def _at(name: str, a: Op, b: Op) -> str:
    return f"{name}: {a!r} at offset {a.offset} became {b!r} at offset {b.offset}"


def same_constant(
    a: Any, b: Any, work: list[Pair] | None = None, path: str = ""
) -> bool:
    """Return whether two constants are the same, types and signs included (``1``, ``1.0`` and ``True`` differ).

    Nested code objects are put on ``work`` to be compared in their turn.
    """
    if type(a) is not type(b):
        return False
    if isinstance(a, Code):
        if work is None:
            return bool(same_program(a, b))
        work.append((a, b, f"{path}{a.name}"))
        return True
    kind = type(a)
    if kind in _PLAIN:
        return bool(a == b)
    if kind is float:
        return _bits(a) == _bits(b)
    if kind is complex:
        return _bits(a.real, a.imag) == _bits(b.real, b.imag)
    if kind is tuple:
        return len(a) == len(b) and all(same_constant(x, y, work, path) for x, y in zip(a, b))
    if kind is frozenset:
        return len(a) == len(b) and set(map(_typed, a)) == set(map(_typed, b))
    if kind is slice:
        return all(same_constant(getattr(a, n), getattr(b, n)) for n in ("start", "stop", "step"))
    return a is b  # an object that someone put there: what its equality means is not known


def _bits(*values: float) -> bytes:
    """Signs of zeros and of NaNs can be seen, and so can a NaN's other bits."""
    return struct.pack(f"{len(values)}d", *values)


def _typed(value: Any) -> Any:
    """A key that only the same constant has."""
    kind = type(value)
    if kind is tuple:
        return (kind, tuple(map(_typed, value)))
    if kind is frozenset:
        return (kind, frozenset(map(_typed, value)))
    if kind in _PLAIN:
        return (kind, value)
    if kind is float:
        return (kind, _bits(value))
    if kind is complex:
        return (kind, _bits(value.real, value.imag))
    return (kind, id(value))
