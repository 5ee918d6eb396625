"""Segments and translated operations, put together as nested dispatch loops.

While a handler runs (between ``PUSH_EXC_INFO`` and ``POP_EXCEPT``) ``sys.exc_info()``, bare ``raise`` and implicit
exception chaining must see the exception that is being handled, so that code has to be inside an ``except`` suite.
Blocks are therefore sorted by *level*, the number of exceptions being handled while they run (segments), and
the loop of level ``n + 1`` is inside the ``except`` suite of level ``n``::

    while True:
        try:
            while True:                       # level 0
                ...
        except BaseException as __exception:
            if __block in (3, 4):             # the blocks under the handler that starts at block 7
                __s1 = __exception; __block = 7
            else:
                raise
            while True:                       # level 1: block 7 and what follows, up to POP_EXCEPT
                ...
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from ... import budgets
from ...bytecode import operations as o
from ...bytecode.canonical import canonicalise
from ...bytecode.code import CO_ASYNC_GENERATOR, CO_GENERATOR, Code
from ...bytecode.operations import Op
from ...cfg import graph as g
from ...cfg.graph import Block, Cfg, Region
from ..emit.literals import constant
from ..errors import FALLBACK, CannotDecompile
from ..nodes import Transformer, nodes_of
from . import helpers
from .rules import raise_again, translate
from .writer import LASTI, PLAIN, Writer

# --- segments: blocks that run at one exception level ------------------------------------------------
# A *level* is the number of exceptions being handled.  ``PUSH_EXC_INFO`` raises it, ``POP_EXCEPT``
# lowers it, so blocks are cut after every ``POP_EXCEPT`` and before every ``PUSH_EXC_INFO`` that is not
# at the start of its block.  Numbers are given so that the segments of a level are consecutive.
FALL = "fall"  # end of a segment that was cut: goes on with the next one


class Segment:
    """Part of a block that runs at one exception level.

    Attributes:
        number: value of ``__block`` that selects it.
        level: exception level its ops run at (those after a leading ``PUSH_EXC_INFO``).
        enters: it starts with ``PUSH_EXC_INFO``.
        ops, end, arg, region: as in :class:`~depyf.cfg.graph.Block` (``end`` may be ``"fall"``).
        targets: segments that control goes to.
    """

    __slots__ = ("arg", "end", "enters", "level", "number", "ops", "region", "targets")

    def __init__(self, ops: list[Op], region: Region | None) -> None:
        self.ops = ops
        self.region = region
        self.end: str = FALL
        self.arg: Any = None
        self.targets: list[Segment] = []
        self.level = -1
        self.number = -1
        self.enters = bool(ops) and ops[0].kind is o.PUSH_EXC_INFO


def _cut(block: Block) -> list[Segment]:
    pieces: list[list[Op]] = [[]]
    for op in block.ops:
        if op.kind is o.PUSH_EXC_INFO and pieces[-1]:
            pieces.append([])
        pieces[-1].append(op)
        if op.kind is o.POP_EXCEPT:
            pieces.append([])
    segments = [Segment(ops, block.region) for ops in pieces]
    for segment, following in zip(segments, segments[1:]):
        segment.targets = [following]
    segments[-1].end, segments[-1].arg = block.end, block.arg
    return segments


def cut(graph: Cfg) -> tuple[list[Segment], dict[int, Segment]]:
    """Return all segments in order of their numbers, and the first segment of each block id.

    The first segment of the list is the entry (number 0).
    """
    by_block = {id: _cut(block) for id, block in graph.blocks.items()}
    first = {id: segments[0] for id, segments in by_block.items()}
    for id, block in graph.blocks.items():
        by_block[id][-1].targets = [first[successor] for successor in block.successors]
    _assign_levels(first[graph.entry], first)
    reachable = [s for segments in by_block.values() for s in segments if s.level >= 0]
    reachable.sort(key=lambda s: (s.level, s is not first[graph.entry]))
    for number, segment in enumerate(reachable):
        segment.number = number
    return reachable, first


def _assign_levels(entry: Segment, first: dict[int, Segment]) -> None:
    """Give each segment its level, forward from the entry.

    Where edges of different level merge, the lowest counts: unwinding out of a handler ends the handling of its
    exception (the block stack of 3.7 to 3.10 does it implicitly).
    """
    pending = [(entry, 0)]
    while pending:
        segment, level = pending.pop()
        level += segment.enters
        if 0 <= segment.level <= level:
            continue
        segment.level = level
        if segment.region is not None and _raises(segment):
            pending.append((first[segment.region.handler], level))
        leaves = bool(segment.ops) and segment.ops[-1].kind is o.POP_EXCEPT
        if leaves > level:
            raise CannotDecompile(FALLBACK, "the handling of an exception ends where none is handled")
        pending.extend((target, level - leaves) for target in segment.targets)


def _raises(segment: Segment) -> bool:
    """Return whether an exception can come from a segment: not from the empty one that a ``POP_EXCEPT`` leaves."""
    return bool(segment.ops) or segment.end not in (FALL, g.JUMP)


#: Writes a nested code object: its kind ("function", "class"), the code, and the name for a function.
Nested = Callable[[str, Code, str], list[ast.stmt]]


def dispatch(graph: Cfg, nested: Nested, namespace: bool, mangled: bool) -> list[ast.stmt]:
    """Return statements of a function body equivalent to the graph.

    Args:
        graph: any graph, reducible or not.
        nested: writes nested functions (without defaults and annotations) and the bodies of nested classes.
        namespace: it is the body of a module or class, to be run by a function.
        mangled: it is put into a class, where the compiler mangles private names.

    Raises:
        CannotDecompile: an operation has no form in Python source (a closure of foreign cells, ...).
    """
    if too_many := budgets.DISPATCHED.exceeded(sum(len(block.ops) for block in graph.blocks.values())):
        raise CannotDecompile(FALLBACK, too_many)
    driver = _Driver(graph, nested, namespace, mangled)
    body = driver.body()
    return _run_in_function(body, graph.code, driver.prefix) if namespace else body


class _Driver:
    def __init__(self, graph: Cfg, nested: Nested, namespace: bool, mangled: bool) -> None:
        self.graph = graph
        self.nested = nested
        self.prefix = _free_prefix(graph)
        self.block = f"{self.prefix}block"
        self.segments, self.first = cut(graph)
        self.writer = Writer(self.prefix, graph.code, namespace, mangled)
        self.entry_tags: dict[int, list[str]] = {}
        self.text: dict[int, list[tuple[int, str]]] = {}
        self.levels: list[list[Segment]] = [[] for _ in range(1 + max(segment.level for segment in self.segments))]
        for segment in self.segments:
            self.levels[segment.level].append(segment)
        #: Numbers of the segments that begin with ``PUSH_EXC_INFO`` and are jumped to.
        self.stubs: set[int] = set()

    # --- segments -------------------------------------------------------------------------------
    def _translate_all(self) -> None:
        pending: list[tuple[Segment, list[str]]] = [(self.segments[0], [])]
        while pending:
            segment, tags = pending.pop()
            if segment.number in self.entry_tags:
                continue
            self.entry_tags[segment.number] = list(tags)
            if segment.region is not None:
                handler = self.first[segment.region.handler]
                kept = tags[: segment.region.depth]
                kept += [PLAIN] * (segment.region.depth - len(kept))
                pending.append((handler, kept + [LASTI] * segment.region.lasti + [PLAIN]))
            writer = self.writer
            writer.lines, writer.tags = [], list(tags)
            for op in segment.ops:
                translate(writer, op)
            pending.extend(self._end(segment))
            self.text[segment.number] = writer.lines

    def _end(self, segment: Segment) -> list[tuple[Segment, list[str]]]:
        """Write how a segment ends; return where control goes, with the tags of the stack there."""
        w, targets = self.writer, segment.targets
        # Into a handler one can only go by raising: ``_level`` writes that for the numbers in ``stubs``.
        self.stubs.update(target.number for target in targets if target.enters)
        go = [f"{self.block} = {target.number}" for target in targets]
        if segment.end in (FALL, g.JUMP):
            w.write(go[0])
        elif segment.end == g.BRANCH:
            w.write(f"if {w.slot(1)}:\n    {go[0]}\nelse:\n    {go[1]}")
            w.drop(1)
        elif segment.end == g.FOR_ITER:
            iterator, before = w.slot(1), list(w.tags)
            w.new(f"{w.py}next({iterator}, {self.prefix}unbound)")
            w.write(f"if {w.slot(1)} is {self.prefix}unbound:\n    {go[1]}\nelse:\n    {go[0]}")
            return [(targets[0], w.tags), (targets[1], before[:-1])]
        elif segment.end == g.RETURN:
            # an asynchronous generator only ever returns None, and must not say so
            w.write("return" if self.graph.code.flags & CO_ASYNC_GENERATOR else f"return {w.slot(1)}")
        elif segment.end == g.RAISE:
            w.write(f"raise {' from '.join(w.slots(segment.arg))}".rstrip())
        else:
            w.write(raise_again(self.prefix, w.slot(1)))
        return [(target, w.tags) for target in targets]

    # --- loops ----------------------------------------------------------------------------------
    def body(self) -> list[ast.stmt]:
        self._translate_all()
        lines: list[tuple[int, str]] = []
        if len(self.segments) == 1 and not self.segments[0].targets and self.segments[0].region is None:
            lines += self.text[0]
        else:
            lines.append((0, f"{self.block} = 0"))
            self._level(0, 0, lines)
        return self._parse("\n".join("    " * indent + line for indent, line in lines))

    def _level(self, level: int, indent: int, lines: list[tuple[int, str]]) -> None:
        block = self.block
        segments = self.levels[level]
        outside = f"if not {segments[0].number} <= {block} <= {segments[-1].number}"
        # Handlers that a block of this level can raise into, by handler.
        raising: dict[int, list[Segment]] = {}
        for segment in segments:
            if segment.region is not None:
                raising.setdefault(segment.region.handler, []).append(segment)
        deeper = self.levels[level + 1] if level + 1 < len(self.levels) else []
        stubs = [s for s in deeper if s.number in self.stubs]
        protected = bool(raising or stubs)
        inner = indent
        if protected:
            lines += [(indent, "while True:"), (indent + 1, "try:")]
            inner = indent + 2
        lines.append((inner, "while True:"))
        for stub in stubs:
            lines.append((inner + 1, f"if {block} == {stub.number}:"))
            again = raise_again(self.prefix, f"{self.prefix}s{len(self.entry_tags[stub.number]) - 1}")
            lines += [(inner + 2, line) for line in again.split("\n")]
        if level or protected:
            lines += [(inner + 1, f"{outside}:"), (inner + 2, "break")]
        self._cases(segments, inner + 1, lines)
        if not protected:
            return
        exception = f"{self.prefix}exception"
        lines.append((indent + 1, f"except {self.prefix}py.BaseException as {exception}:"))
        word = "if"
        for handler_id, origins in raising.items():
            handler = self.first[handler_id]
            lines.append((indent + 2, f"{word} {block} in {_numbers(origins)}:"))
            tags = self.entry_tags[handler.number]
            region = origins[0].region
            assert region is not None
            if region.lasti:
                lines.append((indent + 3, f"{self.prefix}s{len(tags) - 2} = None"))
            lines.append((indent + 3, f"{self.prefix}s{len(tags) - 1} = {exception}"))
            lines.append((indent + 3, f"{block} = {handler.number}"))
            word = "elif"
        if stubs:
            lines += [(indent + 2, f"{word} {block} in {_numbers(stubs)}:"), (indent + 3, "pass")]
        lines += [(indent + 2, "else:"), (indent + 3, "raise")]
        if deeper:
            self._level(level + 1, indent + 2, lines)
        if level:
            but = f" and {block} not in {_numbers(stubs)}" if stubs else ""
            lines += [(indent + 1, f"{outside}{but}:"), (indent + 2, "break")]

    def _cases(self, segments: list[Segment], indent: int, lines: list[tuple[int, str]]) -> None:
        """Write segments as a binary tree of ``if`` with a small depth."""
        if len(segments) == 1:
            lines += [(indent + extra, text) for extra, text in self.text[segments[0].number]]
            return
        half = len(segments) // 2
        test = f"== {segments[0].number}" if len(segments) == 2 else f"< {segments[half].number}"
        lines.append((indent, f"if {self.block} {test}:"))
        self._cases(segments[:half], indent + 1, lines)
        lines.append((indent, "else:"))
        self._cases(segments[half:], indent + 1, lines)

    # --- the whole ------------------------------------------------------------------------------
    def _preamble(self, text: str) -> str:
        """Return the imports, variables and helpers that the text uses."""
        preamble = f"import builtins as {self.prefix}py\n"
        if f"{self.prefix}unbound" in text:
            preamble += f"{self.prefix}unbound = {self.prefix}py.object()\n"
        if self.writer.names in text and not self.writer.namespace:
            preamble += f"{self.prefix}names = {{}}\n"
        return preamble + "".join(
            helpers.SOURCES[name].format(p=self.prefix).lstrip("\n") for name in helpers.needed(text, self.prefix))

    def _parse(self, text: str) -> list[ast.stmt]:
        tree = ast.parse(self._preamble(text) + text)
        replaced = _Placeholders(self.prefix, self.writer, self.nested).visit(tree)
        body: list[ast.stmt] = replaced.body
        is_generator = self.graph.code.flags & (CO_GENERATOR | CO_ASYNC_GENERATOR)
        if is_generator and not any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in nodes_of(tree)):
            body[:0] = ast.parse("if False:\n    yield").body
        return body


def _numbers(segments: list[Segment]) -> str:
    return f"({', '.join(str(segment.number) for segment in segments)},)"


class _Placeholders(Transformer):
    """Constants and nested definitions put where the text has placeholders for them."""

    def __init__(self, prefix: str, writer: Writer, nested: Nested) -> None:
        self.constant = f"{prefix}constant_"
        self.define = f"{prefix}define_"
        self.defined = f"{prefix}defined_"
        self.writer = writer
        self.nested = nested

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id.startswith(self.constant) and node.id[len(self.constant) :].isdecimal():
            return constant(self.writer.constants[int(node.id[len(self.constant) :])])
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.stmt | list[ast.stmt]:
        value = node.value
        if isinstance(value, ast.Name) and value.id.startswith(self.define):
            index = value.id[len(self.define) :]
            kind, code = self.writer.nested[int(index)]
            return self.nested(kind, code, self.defined + index)
        return self.generic_visit(node)


def _free_prefix(graph: Cfg) -> str:
    """Return a prefix for the loop's names that no name of the code or of a pass begins with, but ``__dunder__``."""
    code = graph.code
    names = {*code.names, *code.varnames, *code.cellvars, *code.freevars}
    names |= {op.arg for block in graph.blocks.values() for op in block.ops if type(op.arg) is str}
    prefix = "__"
    while any(name.startswith(prefix) and not name.endswith("__") for name in names):
        prefix += "_"
    return prefix


def _run_in_function(body: list[ast.stmt], code: Code, prefix: str) -> list[ast.stmt]:
    """Return statements that run the body of a module or class in its namespace.

    Such a body has no ``return``, its names are items of a mapping (``locals()``), and what a loop needs for itself
    would become attributes of the module or class. So its loop is the body of a function that is given the mapping::

        def __body(__names):
            ...
            __names['x'] = __s0
        __body(locals())
        del __body

    What the compiler puts into fast locals there (the variables of inlined comprehensions, 3.12+) is local to that
    function, cells of functions around a class and ``__class__`` are reached through it.
    """
    statements = ast.parse(
        f"def {prefix}body({prefix}names): pass\n"
        f"{prefix}body(__import__('builtins').locals())\n"
        f"del {prefix}body"
    ).body
    stored = {op.arg for op in canonicalise(code).ops if op.kind in (o.STORE_DEREF, o.DELETE_DEREF)}
    free = [name for name in code.freevars if name in stored and not name.startswith("__class")]
    function = statements[0]
    assert isinstance(function, ast.FunctionDef)
    function.body = [*([ast.Nonlocal(free)] if free else []), *body]
    return statements
