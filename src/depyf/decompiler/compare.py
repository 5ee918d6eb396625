"""A small product walk over two programs, used until (and beside) :mod:`depyf.decompiler.verify`.

Two programs are the same when, walked in step from the entry, every operation and resolved argument,
both ways out of each branch and every handler agree.  Layout (lines, block order, duplicated blocks,
jumps) does not count.
"""

from __future__ import annotations

from typing import Any

from ..bytecode.canonical import canonicalise
from ..bytecode.code import Code
from ..flow.graph import Block, Graph, build

#: flags that change what a function does (optimised, new locals, varargs, generators, coroutines)
_FLAGS = 0x2AF
#: operations that cannot raise: under which handler they lie does not matter
_SAFE = frozenset({"CONST", "POP", "COPY", "SWAP", "ROT", "POP_EXCEPT", "PUSH_EXC_INFO", "return", "branch"})


class Difference(Exception):
    """Where two programs differ."""


class Comparison:
    """The result: ``same``, ``where`` it is not, and the pairs of offsets that were walked in step."""

    def __init__(self, same: bool, where: str, pairs: list[tuple[int, int]], code: Code | None) -> None:
        self.same = same
        self.where = where
        self.pairs = pairs
        self.code = code

    def __bool__(self) -> bool:
        return self.same


def compare(original: Code, recompiled: Code) -> Comparison:
    pairs: list[tuple[int, int]] = []
    try:
        _walk(original, recompiled, pairs)
    except Difference as difference:
        where, code = difference.args
        return Comparison(False, where, [], code)
    return Comparison(True, "", pairs, None)


def _settle(graph: Graph, block: Block, index: int) -> tuple[Block, int]:
    hops = 0
    while index >= len(block.ops) and block.end == "jump":
        block, index = graph.blocks[block.successors[0]], 0
        hops += 1
        if hops > 100000:
            break
    return block, index


def _same(x: Any, y: Any, pairs: list[tuple[int, int]]) -> bool:
    if isinstance(x, Code):
        if not isinstance(y, Code):
            return False
        _walk(x, y, [])
        return True
    if type(x) is not type(y):
        return False
    if isinstance(x, tuple):
        return len(x) == len(y) and all(_same(a, b, pairs) for a, b in zip(x, y))
    if isinstance(x, (float, complex)):
        return repr(x) == repr(y)
    return bool(x == y)


def _walk(a: Code, b: Code, pairs: list[tuple[int, int]]) -> None:
    if (a.argcount, a.posonlyargcount, a.kwonlyargcount, a.arguments) != (
        b.argcount, b.posonlyargcount, b.kwonlyargcount, b.arguments
    ):
        raise Difference(f"{a.name}: parameters", a)
    if (a.flags ^ b.flags) & _FLAGS:
        raise Difference(f"{a.name}: flags {a.flags:#x}, {b.flags:#x}", a)
    if a.freevars != b.freevars or set(a.cellvars) != set(b.cellvars):
        raise Difference(f"{a.name}: closure {a.freevars} {a.cellvars}, {b.freevars} {b.cellvars}", a)
    left, right = build(canonicalise(a)), build(canonicalise(b))
    seen: set[tuple[int, int, int, int]] = set()
    work = [(left.blocks[left.entry], 0, right.blocks[right.entry], 0)]
    while work:
        x, i, y, j = work.pop()
        while True:
            x, i = _settle(left, x, i)
            y, j = _settle(right, y, j)
            key = (x.id, i, y.id, j)
            if key in seen:
                break
            seen.add(key)
            p = x.ops[i] if i < len(x.ops) else None
            q = y.ops[j] if j < len(y.ops) else None
            if p is None or q is None:
                if p is not q or x.end != y.end or x.arg != y.arg or len(x.successors) != len(y.successors):
                    raise Difference(f"{a.name}: {p or x.end} / {q or y.end}", a)
                kind = x.end
                if x.end_op is not None and y.end_op is not None:
                    pairs.append((x.end_op.offset, y.end_op.offset))
            else:
                if p.kind != q.kind or not _same(p.arg, q.arg, pairs):
                    raise Difference(f"{a.name}: {p!r} / {q!r} (line {p.line})", a)
                kind = p.kind
                pairs.append((p.offset, q.offset))
            if kind not in _SAFE:
                if (x.region is None) != (y.region is None):
                    raise Difference(f"{a.name}: {kind} is protected in one (line {p.line if p else None})", a)
                if x.region is not None and y.region is not None:
                    if (x.region.depth, x.region.lasti) != (y.region.depth, y.region.lasti):
                        raise Difference(f"{a.name}: stack kept for a handler", a)
                    work.append((left.blocks[x.region.handler], 0, right.blocks[y.region.handler], 0))
            if p is None:
                work.extend(
                    (left.blocks[s], 0, right.blocks[t], 0) for s, t in zip(x.successors, y.successors)
                )
                break
            i += 1
            j += 1
