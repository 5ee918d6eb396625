"""The exact proof: two code objects are the same program.

A product walk: both canonical programs are followed together from their entries, and from every pair of
exception handlers that cover them.  At each step the operation, its resolved argument and the handler
that covers it must agree, and both edges of each branch are followed.  Only layout may differ:

* line numbers, and the order of blocks;
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

Where the bytes are the same and all that they refer to, there is nothing to follow.

The walk is independent of the lifting code: it reads bytecode and nothing that the decompiler made of
it.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

from ...bytecode import operations as o
from ...bytecode.canonical import canonicalise
from ...bytecode.code import Code
from ...bytecode.operations import CANNOT_RAISE, NO_FALL_THROUGH, ON_GLOBALS, ON_NAMES, Op, Program
from ..annotations import HIDDEN

#: CO_* flags that change what a code object does: OPTIMIZED, NEWLOCALS, VARARGS, VARKEYWORDS, GENERATOR,
#: COROUTINE, ITERABLE_COROUTINE, ASYNC_GENERATOR. (NESTED and the __future__ flags do not, once compiled.)
MEANINGFUL_FLAGS = 0x1 | 0x2 | 0x4 | 0x8 | 0x20 | 0x80 | 0x100 | 0x200

#: Operations whose argument is, or can turn out to be, a global name.
_PERHAPS_GLOBALS = ON_GLOBALS | ON_NAMES
#: Types whose values are the same when they are equal and of the same type.
_PLAIN = frozenset({int, bool, str, bytes, type(None), type(...)})

#: Two code objects to compare, and what messages call them.
Pair = tuple[Code | Program, Code | Program, str]


@dataclass
class Verdict:
    """Result of a comparison; true if the programs are the same.

    Attributes:
        where: what differs and at which byte offsets of both; empty if nothing does.
        walked: ``(original offset, recompiled offset)`` of the outermost code, in the order met.
        notes: simplifications that were assumed (none for :func:`same_program`).
        in_step: where the bytes are the same and nothing was walked: the operations of both.
    """

    same: bool
    where: str = ""
    walked: list[tuple[int, int]] = field(default_factory=list)
    notes: tuple[str, ...] = ()
    in_step: Sequence[Op] = ()

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """``(original offset, recompiled offset)`` of the operations of the outermost code."""
        return self.walked or [(op.offset, op.offset) for op in self.in_step]

    def __bool__(self) -> bool:
        return self.same


class _Different(Exception):
    """The programs differ; the message says where."""


def same_program(
    original: Code | Program,
    recompiled: Code | Program,
    *,
    ignore_name: bool = False,
    rename: Mapping[str, str] | None = None,
) -> Verdict:
    """Compare two code objects, or their canonical programs (see the module).

    ``ignore_name``: the outermost name may differ, and the order of its free variables. ``rename``: global names of the
    original -> of the recompiled.
    """
    if rename and (name := conflated(original, rename)):
        return Verdict(False, f"two globals are both called {name}")
    whole = Verdict(True)
    work: list[Pair] = [(original, recompiled, "")]
    outer: tuple[Code, Code] | None = None
    while work:
        left, right, path = work.pop()
        verdict, nested = same_code(left, right, path=path, outer=outer, ignore_name=ignore_name, rename=rename)
        if outer is None:
            whole = verdict
            outer = _code(left), _code(right)
        if not verdict:
            return Verdict(False, verdict.where, whole.walked, in_step=whole.in_step)
        work += nested
    return whole


def same_code(
    left: Code | Program,
    right: Code | Program,
    *,
    path: str = "",
    outer: tuple[Code, Code] | None = None,
    ignore_name: bool = False,
    rename: Mapping[str, str] | None = None,
) -> tuple[Verdict, list[Pair]]:
    """Compare two code objects, or their programs; return the verdict, and pairs of nested code to be compared.

    ``path``: what messages call it. ``outer``: the outermost code, if these are nested; else ``ignore_name``: names
    may differ, and the order of free variables. ``rename``: global names in the original -> in the recompiled.
    """
    pairs: list[tuple[int, int]] = []
    nested: list[Pair] = []
    in_step: Sequence[Op] = ()
    try:
        a, b = _code(left), _code(right)
        _compare_codes(a, b, path, outer, ignore_name)
        name = path or a.name
        if left is a and right is b and not rename and same_instructions(a, b):
            program = _program(left)
            in_step = program.ops
            others = {id(const): match for const, match in zip(program.code.consts, b.consts)} if a.holds_code else {}
            nested = [(op.arg, others[id(op.arg)], f"{name}.{op.arg.name}") for op in program.ops
                      if op.kind is o.CONST and isinstance(op.arg, Code)] if others else []
        else:
            _Walk(_program(left), _program(right), name, rename or {}, nested, pairs).run()
    except _Different as difference:
        return Verdict(False, str(difference), pairs), nested
    except IndexError:
        return Verdict(False, f"{path or _code(left).name}: control leaves the program", pairs), nested
    return Verdict(True, "", pairs, in_step=in_step), nested


def line_map(verdict: Verdict, recompiled: CodeType) -> dict[int, int]:
    """``{original byte offset: line of the recompiled code}``, for pairs of a successful comparison."""
    line_of: dict[int, int] = {}
    for start, end, line in recompiled.co_lines():
        if line is not None:
            for offset in range(start, end, 2):
                line_of[offset] = line
    return {a: line_of[b] for a, b in reversed(verdict.pairs) if b in line_of}


def same_instructions(a: Code, b: Code) -> bool:
    """Return whether two code objects have the same bytes, and tables that mean the same, nested code aside.

    Nine of ten functions do, recompiled: they need no walk. (Up to 3.10 the qualified name of nested code is a constant
    beside it, and the canonical program has one that knows its name.)
    """
    if not (a.bytecode == b.bytecode and a.version == b.version and a.exceptiontable == b.exceptiontable
            and a.names == b.names and a.varnames == b.varnames and a.cellvars == b.cellvars
            and a.freevars == b.freevars and len(a.consts) == len(b.consts)):
        return False
    code_is_named = a.version < (3, 11)
    for x, y in zip(a.consts, b.consts):
        if type(x) is type(y) is Code:
            if code_is_named:
                return False
        elif not (x is y and type(x) in _PLAIN or same_constant(x, y)):  # (most are one object: interned, or small)
            return False
    return True


def _program(code: Code | Program) -> Program:
    return code if isinstance(code, Program) else canonicalise(code)


def _code(code: Code | Program) -> Code:
    return code.code if isinstance(code, Program) else code


def conflated(code: Code | Program, rename: Mapping[str, str]) -> str:
    """Return a name that two globals would both have, so that nothing is proven; empty if there is none."""
    meaning: dict[str, str] = {}
    work = [code]
    while work:
        for op in _program(work.pop()).ops:
            if op.kind in _PERHAPS_GLOBALS:
                shown = rename.get(op.arg, op.arg) if op.kind in ON_GLOBALS else op.arg
                if meaning.setdefault(shown, op.arg) != op.arg:
                    return str(shown)
            elif op.kind is o.CONST and isinstance(op.arg, Code):
                work.append(op.arg)
    return ""


def _compare_codes(a: Code, b: Code, path: str, outer: tuple[Code, Code] | None, ignore_name: bool) -> None:
    one, other = ([
        ("number of positional parameters", code.argcount),
        ("number of positional-only parameters", code.posonlyargcount),
        ("number of keyword-only parameters", code.kwonlyargcount),
        ("flags", code.flags & MEANINGFUL_FLAGS),
        ("parameters", code.arguments),
        ("free variables", sorted(code.freevars)),
        ("cell variables", sorted(code.cellvars)),
        ("docstring", code.docstring if a.flags & 0x3 == 0x3 and not a.name.startswith("<") else None),
        # (A closure is a tuple of cells in the order of the free variables.)
        *([("order of free variables", code.freevars), ("name", code.name)] if outer or not ignore_name else ()),
        *([("qualified name", _inside(code.qualname, outer[at]))] if outer else ()),
    ] for at, code in enumerate((a, b)))
    if one != other:
        what, left, right = next((what, left, right) for (what, left), (_, right) in zip(one, other) if left != right)
        raise _Different(f"{path or a.name}: {what} {left!r} became {right!r}")


def _inside(qualname: str, outer: Code) -> tuple[bool, str]:
    """Return whether a qualified name starts with that of the outermost code, and the rest of it.

    Those in the scope of type parameters are named as in the scope around it (``compiler_set_qualname`` in compile.c).
    """
    start = outer.qualname[: -len(outer.name)] if outer.name.startswith(HIDDEN) else f"{outer.qualname}."
    return (True, qualname[len(start):]) if qualname.startswith(start) else (False, qualname)


def _follow_jumps(ops: list[Op], index: int) -> int:
    """Return the operation that control reaches from ``index`` through unconditional jumps."""
    seen = 0
    while ops[index].kind is o.JUMP:
        index = ops[index].target
        seen += 1
        if seen > len(ops):
            return index  # an empty endless loop
    return index


class _Walk:
    """The product walk through two programs; raises :class:`_Different` where they part."""

    def __init__(
        self, p: Program, q: Program, name: str, rename: Mapping[str, str], nested: list[Pair],
        pairs: list[tuple[int, int]],
    ) -> None:
        self.p, self.q = p, q
        self.ops, self.others = p.ops, q.ops
        self.name = name
        self.rename = rename
        self.nested = nested
        self.pairs = pairs
        self.visited: set[tuple[int, int]] = set()
        self.pending: list[tuple[int, int]] = [(0, 0)]

    def run(self) -> None:
        """Follow both from their entries."""
        if not self.ops or not self.others:
            if self.ops or self.others:
                raise _Different(f"{self.name}: one of them is empty")
            return
        while self.pending:
            self.follow(*self.pending.pop())

    def follow(self, i: int, j: int) -> None:
        """Follow one path until it ends, or meets one that was walked; what it leads to besides comes later."""
        ops, others, visited, pairs = self.ops, self.others, self.visited, self.pairs
        while True:
            if ops[i].kind is o.JUMP:
                i = _follow_jumps(ops, i)
            if others[j].kind is o.JUMP:
                j = _follow_jumps(others, j)
            if (i, j) in visited:
                return
            visited.add((i, j))
            a, b = ops[i], others[j]
            kind = a.kind
            if kind is o.JUMP or b.kind is o.JUMP:  # an empty endless loop on both sides
                if kind is not b.kind:
                    raise self.different(a, b)
                return
            if kind is not b.kind or kind is o.BRANCH:
                i, j = self.branch(i, j)
                continue
            pairs.append((a.offset, b.offset))
            if kind not in CANNOT_RAISE:
                self.pair_handlers(a, b)
            self.compare_arguments(i, j)
            if kind is o.FOR_ITER:
                self.pending.append((a.target, b.target))
            elif kind in NO_FALL_THROUGH:
                return
            i += 1
            j += 1

    def branch(self, i: int, j: int) -> tuple[int, int]:
        """Return where both go on if the test is true; where it is false comes later."""
        first, second = self.ops[i], self.others[j]
        negated = first.kind is not second.kind
        if negated:
            i, j = self._skip_not(i, j)
        a, b = self.ops[i], self.others[j]
        self.pairs.append((a.offset, b.offset))
        # A ``not`` that was skipped evaluates the truth of the value; its branch cannot raise.
        self.pair_handlers(first, second)
        true_a, false_a = (a.target, i + 1) if a.arg else (i + 1, a.target)
        true_b, false_b = (b.target, j + 1) if b.arg else (j + 1, b.target)
        if negated:
            true_b, false_b = false_b, true_b
        self.pending.append((false_a, false_b))
        return true_a, true_b

    def _skip_not(self, i: int, j: int) -> tuple[int, int]:
        """Return the branches of both, one of which is after a ``not``."""
        a, b = self.ops[i], self.others[j]
        branch, other = _branch_after_not(self.ops, i), _branch_after_not(self.others, j)
        if branch is not None and b.kind is o.BRANCH:
            return branch, j
        if other is not None and a.kind is o.BRANCH:
            return i, other
        raise self.different(a, b)

    def compare_arguments(self, i: int, j: int) -> None:
        """Raise unless the arguments of two operations of one kind are the same."""
        p, q, a, b = self.p, self.q, self.ops[i], self.others[j]
        if a.kind is not o.CONST:
            argument = self.rename.get(a.arg, a.arg) if a.kind in ON_GLOBALS else a.arg
            same = argument is b.arg or same_constant(argument, b.arg)
        else:
            same = same_constant(a.arg, b.arg, self.nested, f"{self.name}.") \
                or _of_class(p, i) == _of_class(q, j)
        if not same:
            raise self.different(a, b)

    def pair_handlers(self, a: Op, b: Op) -> None:
        """Raise unless both operations are under corresponding handlers, which are compared later."""
        if a.handler < 0 and b.handler < 0:
            return
        if a.handler < 0 or b.handler < 0:
            raise _Different(f"{self.different(a, b)}: only one of them lies under an exception handler")
        left, right = self.p.handlers[a.handler], self.q.handlers[b.handler]
        if left.depth != right.depth or left.lasti != right.lasti:
            raise _Different(f"{self.different(a, b)}: their handlers keep {left!r} and {right!r}")
        self.pending.append((left.target, right.target))

    def different(self, a: Op, b: Op) -> _Different:
        return _Different(f"{self.name}: {a!r} at offset {a.offset} became {b!r} at offset {b.offset}")


def _of_class(program: Program, index: int) -> tuple[str, Any]:
    """Return what 3.13 stores in a class body by itself: its line, and its attributes in a set's order."""
    code, name, value = program.code, program.ops[index + 1].arg, program.ops[index].arg
    if program.ops[index + 1].kind is o.STORE_NAME and code.version >= (3, 13) and not code.flags & 0x3 \
            and code.name != "<module>":
        if name == "__firstlineno__" and type(value) is int and value == code.firstlineno:
            return name, ()
        if name == "__static_attributes__" and type(value) is tuple and all(type(each) is str for each in value):
            return name, sorted(value)
    return "", (program, index)


def _branch_after_not(ops: list[Op], index: int) -> int | None:
    """Return the branch after a ``not`` at ``index``, if there is one."""
    if ops[index].kind is not o.UNARY or ops[index].arg != "not" or index + 1 >= len(ops):
        return None
    following = _follow_jumps(ops, index + 1)
    return following if ops[following].kind is o.BRANCH else None


def same_constant(
    a: Any, b: Any, work: list[Pair] | None = None, path: str = ""
) -> bool:
    """Return whether two constants are the same, types and signs included; nested code objects are put on ``work``."""
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
    return a is b  # an object that was put there: what its equality means is not known


def _bits(*values: float) -> bytes:
    """Return the bits of numbers: signs of zeros and of NaNs can be seen, and so can a NaN's other bits."""
    return struct.pack(f"{len(values)}d", *values)


def _typed(value: Any) -> Any:
    """Return a key that only the same constant has."""
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
