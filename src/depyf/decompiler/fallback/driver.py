"""Blocks and translated operations, put together as nested dispatch loops.

While a handler runs (between ``PUSH_EXC_INFO`` and ``POP_EXCEPT``) ``sys.exc_info()``, bare ``raise`` and implicit
exception chaining must see the exception that is being handled, so that code has to be inside an ``except`` suite.
Blocks are therefore sorted by *level*, the number of exceptions being handled while they run, and the loop of level
``n + 1`` is inside the ``except`` suite of level ``n``::

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
import itertools
from collections.abc import Callable
from copy import copy

from ... import budgets
from ...bytecode import operations as o
from ...bytecode.canonical import canonicalise
from ...bytecode.code import CO_ASYNC_GENERATOR, CO_GENERATOR, Code
from ...cfg import graph as g
from ...cfg.graph import Block, Cfg
from ..emit.literals import constant
from ..errors import FALLBACK, CannotDecompile
from ..nodes import Transformer, nodes_of
from . import helpers
from .rules import raise_again, translate
from .writer import LASTI, PLAIN, Writer


# --- levels ------------------------------------------------------------------------------------------
def cut(graph: Cfg) -> tuple[Cfg, list[list[Block]]]:
    """Return a graph in which each block runs at one exception level, and its blocks by level.

    ``PUSH_EXC_INFO`` raises the level (it begins its block, and counts for that), and ``POP_EXCEPT`` lowers it.
    """
    graph = Cfg(graph.code, {id: copy(block) for id, block in graph.blocks.items()}, graph.entry)
    for block in [*graph.blocks.values()]:
        cuts = {index for index, op in enumerate(block.ops) if op.kind is o.PUSH_EXC_INFO}
        cuts |= {index + 1 for index, op in enumerate(block.ops) if op.kind is o.POP_EXCEPT}
        for index in sorted(cuts, reverse=True):
            graph.split(block.id, index)
    levels = _levels(graph)
    by_level: list[list[Block]] = [[] for _ in range(1 + max(levels.values()))]
    for block in graph.blocks.values():
        if block.id in levels:
            by_level[levels[block.id]].append(block)
    return graph, by_level


def _levels(graph: Cfg) -> dict[int, int]:
    """Return the level of each block that can be reached, forward from the entry.

    Where edges of different level merge, the lowest counts: unwinding out of a handler ends the handling of its
    exception (the block stack of 3.7 to 3.10 does it implicitly).
    """
    levels: dict[int, int] = {}
    pending = [(graph.entry, 0)]
    while pending:
        id, level = pending.pop()
        block = graph.blocks[id]
        level += _enters(block)
        if levels.get(id, level + 1) <= level:
            continue
        levels[id] = level
        if block.handler is not None and (block.ops or block.end != g.JUMP):  # (a jump alone cannot raise)
            pending.append((block.handler, level))
        leaves = bool(block.ops) and block.ops[-1].kind is o.POP_EXCEPT
        if leaves > level:
            raise CannotDecompile(FALLBACK, "the handling of an exception ends where none is handled")
        pending += [(successor, level - leaves) for successor in block.successors]
    return levels


def _enters(block: Block) -> bool:
    return bool(block.ops) and block.ops[0].kind is o.PUSH_EXC_INFO


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
        self.nested = nested
        self.prefix = _free_prefix(graph)
        self.block = f"{self.prefix}block"
        self.graph, self.levels = cut(graph)
        #: The number of each block, its value of ``__block``; those of a level are consecutive.
        self.number = {block.id: number for number, block in enumerate(itertools.chain(*self.levels))}
        self.writer = Writer(self.prefix, graph.code, namespace, mangled)
        #: By block: the tags of the stack before it, and its text.
        self.tags: dict[int, list[str]] = {}
        self.text: dict[int, list[tuple[int, str]]] = {}
        #: The blocks that begin with ``PUSH_EXC_INFO`` and are jumped to.
        self.stubs: set[int] = set()

    # --- blocks -----------------------------------------------------------------------------------
    def _translate_all(self) -> None:
        pending: list[tuple[int, list[str]]] = [(self.graph.entry, [])]
        while pending:
            id, tags = pending.pop()
            if id in self.tags:
                continue
            self.tags[id] = list(tags)
            block = self.graph.blocks[id]
            if (region := block.region) is not None and region.handler in self.number:
                kept = (tags + [PLAIN] * region.depth)[: region.depth]
                pending.append((region.handler, kept + [LASTI] * region.lasti + [PLAIN]))
            writer = self.writer
            writer.lines, writer.tags = [], list(tags)
            for op in block.ops:
                translate(writer, op)
            pending.extend(self._end(block))
            self.text[id] = writer.lines

    def _end(self, block: Block) -> list[tuple[int, list[str]]]:
        """Write how a block ends; return where control goes, with the tags of the stack there."""
        w, targets = self.writer, block.successors
        # Into a handler one can only go by raising: ``_level`` writes that for ``stubs``.
        self.stubs.update(target for target in targets if _enters(self.graph.blocks[target]))
        go = [f"{self.block} = {self.number[target]}" for target in targets]
        if block.end == g.JUMP:
            w.write(go[0])
        elif block.end == g.BRANCH:
            w.write(f"if {w.slot(1)}:\n    {go[0]}\nelse:\n    {go[1]}")
            w.drop(1)
        elif block.end == g.FOR_ITER:
            iterator, before = w.slot(1), list(w.tags)
            w.new(f"{w.py}next({iterator}, {self.prefix}unbound)")
            w.write(f"if {w.slot(1)} is {self.prefix}unbound:\n    {go[1]}\nelse:\n    {go[0]}")
            return [(targets[0], w.tags), (targets[1], before[:-1])]
        elif block.end == g.RETURN:
            # an asynchronous generator only ever returns None, and must not say so
            w.write("return" if self.graph.code.flags & CO_ASYNC_GENERATOR else f"return {w.slot(1)}")
        elif block.end == g.RAISE:
            w.write(f"raise {' from '.join(w.slots(block.arg))}".rstrip())
        else:
            w.write(raise_again(self.prefix, w.slot(1)))
        return [(target, w.tags) for target in targets]

    # --- loops ------------------------------------------------------------------------------------
    def body(self) -> list[ast.stmt]:
        self._translate_all()
        entry = self.graph.blocks[self.graph.entry]
        lines: list[tuple[int, str]] = []
        if len(self.text) == 1 and not entry.successors and entry.region is None:
            lines += self.text[entry.id]
        else:
            lines.append((0, f"{self.block} = {self.number[entry.id]}"))
            self._level(0, 0, lines)
        return self._parse("\n".join("    " * indent + line for indent, line in lines))

    def _level(self, level: int, indent: int, lines: list[tuple[int, str]]) -> None:
        blocks, number, variable = self.levels[level], self.number, self.block
        outside = f"if not {number[blocks[0].id]} <= {variable} <= {number[blocks[-1].id]}"
        # Blocks of this level that can raise into a handler, by their regions (one a handler).
        raising: dict[int, list[Block]] = {}
        for block in blocks:
            if block.handler in number:
                raising.setdefault(block.handler, []).append(block)
        deeper = self.levels[level + 1] if level + 1 < len(self.levels) else []
        stubs = [block for block in deeper if block.id in self.stubs]
        protected = bool(raising or stubs)
        inner = indent
        if protected:
            lines += [(indent, "while True:"), (indent + 1, "try:")]
            inner = indent + 2
        lines.append((inner, "while True:"))
        for stub in stubs:
            again = raise_again(self.prefix, f"{self.prefix}s{len(self.tags[stub.id]) - 1}")
            lines.append((inner + 1, f"if {variable} == {number[stub.id]}:"))
            lines += [(inner + 2, line) for line in again.split("\n")]
        if level or protected:
            lines += [(inner + 1, f"{outside}:"), (inner + 2, "break")]
        self._cases(blocks, inner + 1, lines)
        if not protected:
            return
        exception = f"{self.prefix}exception"
        lines.append((indent + 1, f"except {self.prefix}py.BaseException as {exception}:"))
        word = "if"
        for handler, origins in raising.items():
            top = len(self.tags[handler]) - 1
            lines.append((indent + 2, f"{word} {variable} in {self._numbers(origins)}:"))
            if origins[0].region is not None and origins[0].region.lasti:
                lines.append((indent + 3, f"{self.prefix}s{top - 1} = None"))
            lines.append((indent + 3, f"{self.prefix}s{top} = {exception}"))
            lines.append((indent + 3, f"{variable} = {number[handler]}"))
            word = "elif"
        if stubs:
            lines += [(indent + 2, f"{word} {variable} in {self._numbers(stubs)}:"), (indent + 3, "pass")]
        lines += [(indent + 2, "else:"), (indent + 3, "raise")]
        if deeper:
            self._level(level + 1, indent + 2, lines)
        if level:
            but = f" and {variable} not in {self._numbers(stubs)}" if stubs else ""
            lines += [(indent + 1, f"{outside}{but}:"), (indent + 2, "break")]

    def _numbers(self, blocks: list[Block]) -> str:
        return f"({', '.join(str(self.number[block.id]) for block in blocks)},)"

    def _cases(self, blocks: list[Block], indent: int, lines: list[tuple[int, str]]) -> None:
        """Write blocks as a binary tree of ``if`` with a small depth."""
        if len(blocks) == 1:
            lines += [(indent + extra, text) for extra, text in self.text[blocks[0].id]]
            return
        half = len(blocks) // 2
        lines.append((indent, f"if {self.block} < {self.number[blocks[half].id]}:"))
        self._cases(blocks[:half], indent + 1, lines)
        lines.append((indent, "else:"))
        self._cases(blocks[half:], indent + 1, lines)

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
