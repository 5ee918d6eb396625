"""Segments and translated operations, put together as nested dispatch loops.

While a handler runs (between ``PUSH_EXC_INFO`` and ``POP_EXCEPT``) ``sys.exc_info()``, bare ``raise`` and implicit
exception chaining must see the exception that is being handled, so that code has to stand inside an ``except`` suite.
Blocks are therefore sorted by *level*, the number of exceptions being handled while they run (:mod:`.segments`), and
the loop of level ``n + 1`` stands inside the ``except`` suite of level ``n``::

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
from typing import Protocol

from ... import budgets
from ...bytecode.code import CO_ASYNC_GENERATOR, Code
from ...bytecode.operations import Op
from ...bytecode.opspec import effect
from ...cfg import graph as g
from ...cfg.graph import Cfg
from ..emit.literals import constant
from ..errors import FALLBACK, CannotDecompile
from ..trees import Transformer, nodes_of
from . import helpers, namespaces
from .rules import control, places
from .rules.control import raise_again
from .segments import FALL, Segment, cut
from .writer import LASTI, PLAIN, Rule, Writer


class Nested(Protocol):
    """Decompiles what a function holds; given by the caller so that nested code keeps its own fidelity."""

    def function(self, code: Code, name: str) -> list[ast.stmt]:
        """Return a definition of a function called ``name`` (no defaults, no annotations)."""

    def class_body(self, code: Code) -> list[ast.stmt]:
        """Return the statements of a class body."""


def dispatch(
    graph: Cfg, nested: Nested | None = None, *, namespace: bool = False, mangled: bool = False,
) -> list[ast.stmt]:
    """Return statements of a function body that do what the graph does.

    Args:
        graph: any graph, reducible or not.
        nested: decompiles nested functions and classes.
        namespace: it is the body of a module or class, to be run by a function (see :mod:`.namespaces`).
        mangled: it is put into a class, where the compiler mangles private names.

    Raises:
        CannotDecompile: an operation has no form in Python source (a closure of foreign cells, ...).
    """
    if too_many := budgets.DISPATCHED.exceeded(sum(len(block.ops) for block in graph.blocks.values())):
        raise CannotDecompile(FALLBACK, too_many)
    driver = _Driver(graph, nested, namespace, mangled)
    body = driver.body()
    return namespaces.run_in_function(body, graph.code, driver.prefix) if namespace else body


class _Driver:
    def __init__(self, graph: Cfg, nested: Nested | None, namespace: bool, mangled: bool) -> None:
        self.graph = graph
        self.nested = nested
        self.prefix = _free_prefix(graph)
        self.segments, self.first = cut(graph)
        self.writer = Writer(self.prefix, graph.code, namespace, mangled)
        self.entry_tags: dict[int, list[str]] = {}
        self.text: dict[int, list[tuple[int, str]]] = {}
        self.levels: list[list[Segment]] = []
        for segment in self.segments:
            while len(self.levels) <= segment.level:
                self.levels.append([])
            self.levels[segment.level].append(segment)
        self.stubs: set[int] = set()

    # --- segments -------------------------------------------------------------------------------
    def _translate_all(self) -> None:
        entry = self.segments[0]
        pending: list[tuple[Segment, list[str]]] = [(entry, [])]
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
            writer.lines, writer.tags, writer.indent = [], list(tags), 0
            for op in segment.ops:
                translate(writer, op)
            pending.extend(self._end(segment))
            self.text[segment.number] = writer.lines

    def _end(self, segment: Segment) -> list[tuple[Segment, list[str]]]:
        """Write how a segment ends; return where control goes, with the tags of the stack there."""
        w, targets = self.writer, segment.targets
        if segment.end in (FALL, g.JUMP):
            self._go(segment, targets[0])
            return [(targets[0], w.tags)]
        if segment.end == g.BRANCH:
            test = w.slot(1)
            w.drop(1)
            w.write(f"if {test}:")
            w.indent += 1
            self._go(segment, targets[0])
            w.indent -= 1
            w.write("else:")
            w.indent += 1
            self._go(segment, targets[1])
            w.indent -= 1
            return [(target, w.tags) for target in targets]
        if segment.end == g.FOR_ITER:
            iterator = w.slot(1)
            value = f"{self.prefix}s{len(w.tags)}"
            w.write(f"{value} = {w.py('next')}({iterator}, {self.prefix}unbound)")
            w.write(f"if {value} is {self.prefix}unbound:")
            w.indent += 1
            self._go(segment, targets[1])
            w.indent -= 1
            w.write("else:")
            w.indent += 1
            self._go(segment, targets[0])
            w.indent -= 1
            return [(targets[0], [*w.tags, PLAIN]), (targets[1], w.tags[:-1])]
        if segment.end == g.RETURN:
            # an asynchronous generator only ever returns None, and must not say so
            w.write("return" if self.graph.code.flags & CO_ASYNC_GENERATOR else f"return {w.slot(1)}")
        elif segment.end == g.RAISE:
            operands = " from ".join(w.slot(place) for place in range(segment.arg, 0, -1))
            w.write(f"raise {operands}".rstrip())
        else:
            raise_again(w, w.slot(1))
        return []

    def _go(self, origin: Segment, target: Segment) -> None:
        """Write a jump.

        Into a handler (``PUSH_EXC_INFO``) one can only go by raising: ``_level`` writes that for the numbers in
        ``stubs``.
        """
        if target.enters:
            self.stubs.add(target.number)
        self.writer.write(f"{self.prefix}block = {target.number}")

    # --- loops ----------------------------------------------------------------------------------
    def body(self) -> list[ast.stmt]:
        self._translate_all()
        lines: list[tuple[int, str]] = []
        if len(self.segments) == 1 and not self.segments[0].targets and self.segments[0].region is None:
            lines += self.text[0]
        else:
            lines.append((0, f"{self.prefix}block = 0"))
            self._level(0, 0, lines)
        return self._parse(self._preamble(lines) + lines)

    def _level(self, level: int, indent: int, lines: list[tuple[int, str]]) -> None:
        block = f"{self.prefix}block"
        segments = self.levels[level]
        low, high = segments[0].number, segments[-1].number
        # Handlers that a block of this level can raise into, by handler.
        raising: dict[int, list[Segment]] = {}
        for segment in segments:
            if segment.region is not None:
                raising.setdefault(segment.region.handler, []).append(segment)
        deeper = self.levels[level + 1] if level + 1 < len(self.levels) else []
        stubs = [s for s in deeper if s.number in self.stubs]
        protected = bool(raising or stubs)
        if protected:
            lines += [(indent, "while True:"), (indent + 1, "try:")]
            inner = indent + 2
        else:
            inner = indent
        lines.append((inner, "while True:"))
        for stub in stubs:
            exception = f"{self.prefix}s{len(self.entry_tags[stub.number]) - 1}"
            lines.append((inner + 1, f"if {block} == {stub.number}:"))
            saved = Writer(self.prefix, self.graph.code)
            raise_again(saved, exception)
            lines += [(inner + 2 + extra, text) for extra, text in saved.lines]
        if level or protected:
            lines += [(inner + 1, f"if not {low} <= {block} <= {high}:"), (inner + 2, "break")]
        self._cases(segments, inner + 1, lines)
        if not protected:
            return
        exception = f"{self.prefix}exception"
        lines.append((indent + 1, f"except {self.prefix}py.BaseException as {exception}:"))
        word = "if"
        for handler_id, origins in raising.items():
            handler = self.first[handler_id]
            numbers = ", ".join(str(s.number) for s in origins)
            lines.append((indent + 2, f"{word} {block} in ({numbers},):"))
            tags = self.entry_tags[handler.number]
            region = origins[0].region
            assert region is not None
            if region.lasti:
                lines.append((indent + 3, f"{self.prefix}s{len(tags) - 2} = None"))
            lines.append((indent + 3, f"{self.prefix}s{len(tags) - 1} = {exception}"))
            lines.append((indent + 3, f"{block} = {handler.number}"))
            word = "elif"
        if stubs:
            numbers = ", ".join(str(s.number) for s in stubs)
            lines += [(indent + 2, f"{word} {block} in ({numbers},):"), (indent + 3, "pass")]
        lines += [(indent + 2, "else:"), (indent + 3, "raise")]
        if deeper:
            self._level(level + 1, indent + 2, lines)
        if level:
            lines += [(indent + 1, f"if not {low} <= {block} <= {high}{self._stub_test(block, stubs)}:"),
                      (indent + 2, "break")]

    @staticmethod
    def _stub_test(block: str, stubs: list[Segment]) -> str:
        return f" and {block} not in ({', '.join(str(s.number) for s in stubs)},)" if stubs else ""

    def _cases(self, segments: list[Segment], indent: int, lines: list[tuple[int, str]]) -> None:
        """Segments as a binary tree of ``if``: its depth stays small, and so does the nesting."""
        if len(segments) == 1:
            lines += [(indent + extra, text) for extra, text in self.text[segments[0].number]]
            return
        if len(segments) == 2:
            lines.append((indent, f"if {self.prefix}block == {segments[0].number}:"))
        else:
            lines.append((indent, f"if {self.prefix}block < {segments[len(segments) // 2].number}:"))
        self._cases(segments[: len(segments) // 2], indent + 1, lines)
        lines.append((indent, "else:"))
        self._cases(segments[len(segments) // 2 :], indent + 1, lines)

    # --- around ---------------------------------------------------------------------------------
    def _preamble(self, lines: list[tuple[int, str]]) -> list[tuple[int, str]]:
        preamble = [(0, f"import builtins as {self.prefix}py")]
        if any(f"{self.prefix}unbound" in text for _, text in lines):
            preamble.append((0, f"{self.prefix}unbound = {self.prefix}py.object()"))
        if self.writer.has_names and not self.writer.namespace:
            preamble.append((0, f"{self.prefix}names = {{}}"))
        for name in sorted(self.writer.used):
            for line in helpers.SOURCES[name].format(p=self.prefix).strip("\n").split("\n"):
                preamble.append((0, line))
        return preamble

    def _parse(self, lines: list[tuple[int, str]]) -> list[ast.stmt]:
        text = "\n".join("    " * indent + line for indent, line in lines)
        tree = ast.parse(text)
        replaced = _Placeholders(self.prefix, self.writer, self.nested).visit(tree)
        body: list[ast.stmt] = replaced.body
        if self._is_generator() and not any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in nodes_of(tree)):
            body[:0] = ast.parse("if False:\n    yield").body
        return body

    def _is_generator(self) -> bool:
        return bool(self.graph.code.flags & 0x220)


class _Placeholders(Transformer):
    """Constants and nested definitions put where the text has placeholders for them."""

    def __init__(self, prefix: str, writer: Writer, nested: Nested | None) -> None:
        self.constant = f"{prefix}constant_"
        self.define = f"{prefix}define_"
        self.defined = f"{prefix}defined_"
        self.writer = writer
        self.nested = nested

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id.startswith(self.constant) and node.id[len(self.constant) :].isdecimal():
            value = self.writer.constants[int(node.id[len(self.constant) :])]
            literal = constant(value) if type(value) is int else ast.Constant(value)  # (large ones are written in hex)
            return ast.copy_location(literal, node)
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.stmt | list[ast.stmt]:
        value = node.value
        if isinstance(value, ast.Name) and value.id.startswith(self.define):
            if self.nested is None:
                raise CannotDecompile(FALLBACK, "nested functions without a decompiler for them")
            index = value.id[len(self.define) :]
            kind, code = self.writer.nested[int(index)]
            if kind == "class":
                return self.nested.class_body(code)
            return self.nested.function(code, self.defined + index)
        return self.generic_visit(node)


def _free_prefix(graph: Cfg) -> str:
    """Return a prefix for our names that no name of the code or of a pass begins with, but ``__dunder__`` ones."""
    code = graph.code
    names = {*code.names, *code.varnames, *code.cellvars, *code.freevars}
    names |= {op.arg for block in graph.blocks.values() for op in block.ops if type(op.arg) is str}
    prefix = "__"
    while any(name.startswith(prefix) and not name.endswith("__") for name in names):
        prefix += "_"
    return prefix


# --- One canonical operation -> statements on the slot variables, as text ----------------------------
# ``RULES[kind]`` is a function of a :class:`~depyf.decompiler.fallback.writer.Writer` and the op. The writer
# knows the depth of the stack and, for the few operations that need it, what kind of value a slot holds.
RULES: dict[str, Rule] = {
    **places.RULES,
    **control.RULES,
}


def translate(writer: Writer, op: Op) -> None:
    """Write one operation.

    Raises:
        CannotDecompile: it has no form in Python source.
    """
    rule = namespaces.RULES.get(op.kind) if writer.namespace else None
    rule = rule or RULES.get(op.kind)
    if rule is None:
        raise CannotDecompile(FALLBACK, f"{op!r} at offset {op.offset}")
    before = len(writer.tags)
    rule(writer, op)
    pops, pushes = effect(op)
    if len(writer.tags) - before != pushes - pops:
        raise CannotDecompile(FALLBACK, f"{op!r} at offset {op.offset} left {len(writer.tags)} values")
