"""Syntax nodes that know more than :mod:`ast` has fields for, lines of statements, copies of trees.

A *refinement* is a node of ``ast`` with declared fields of its own, which lifting and structuring use and the text does
not show: an ``assert`` whose test is still to be found, a ``match`` with its subject. It is in the tree as the node
that it refines: nothing is converted when the tree is written.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Container, Iterator
from typing import Any, TypeVar

Node = TypeVar("Node", bound=ast.AST)
Statement = TypeVar("Statement", bound=ast.stmt)

#: The classes of refinements.
REFINEMENTS: set[type[ast.AST]] = set()


def refinement(kind: type[Node]) -> type[Node]:
    """Give a class of nodes the name of the one that it refines, by which visitors and ``ast.unparse`` go."""
    kind.__name__ = kind.__bases__[0].__name__
    REFINEMENTS.add(kind)
    return kind


def refined(node: ast.AST, kind: type[Node]) -> Node:
    """Return a node with the fields of another, as a refinement of its class. They share what is below them."""
    result = kind.__new__(kind)
    result.__dict__.update(node.__dict__)
    return result


# --- lines of statements ----------------------------------------------------------------------------
def at_line(stmt: Statement, line: int | None) -> Statement:
    """Give a statement its line of the source, unless that is ``None``, and return it."""
    if line is not None:
        stmt.lineno = line
    return stmt


def line_of(stmt: ast.stmt | ast.ExceptHandler) -> int | None:
    """Return the line of the source that a statement, or a handler, came from."""
    return getattr(stmt, "lineno", None)


def from_ops(stmt: Statement, first: int, last: int) -> Statement:
    """Give a statement the byte offsets of its first and last operation, as its columns, and return it."""
    stmt.col_offset, stmt.end_col_offset = first, last
    return stmt


def ops_of(stmt: ast.stmt) -> tuple[int, int] | None:
    """Return the offsets that :func:`from_ops` gave a statement."""
    last = getattr(stmt, "end_col_offset", None)
    return None if last is None else (stmt.col_offset, last)


#: Statements whose bodies are code objects of their own.
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
#: The fields of statements that are suites, or lists of what has one; not of definitions.
_SUITES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("For", "AsyncFor", "While", "If"), ("body", "orelse")),
    **dict.fromkeys(("With", "AsyncWith"), ("body",)),
    **dict.fromkeys(("Try", "TryStar"), ("body", "handlers", "orelse", "finalbody")),
    "Match": ("cases",),
}


def suites_of(stmt: ast.stmt) -> list[list[ast.stmt]]:
    """Return the suites of a statement that is not a definition, in the order of the text."""
    suites: list[list[ast.stmt]] = []
    for field in _SUITES.get(stmt.__class__.__name__, ()):
        value: list[Any] = getattr(stmt, field)
        if field in ("handlers", "cases"):
            suites += [part.body for part in value]
        elif value or field == "body":
            suites.append(value)
    return suites


def compound_places(stmts: list[ast.stmt]) -> list[int]:
    """Return the indices of statements with suites, the last first: most passes have nothing to do with the others."""
    return [at for at in range(len(stmts) - 1, -1, -1) if stmts[at].__class__.__name__ in _SUITES]


def all_statements(stmts: list[ast.stmt]) -> list[ast.stmt]:
    """Return the statements of a suite and of all suites inside, the outer ones first."""
    result = list(stmts)
    for stmt in result:  # (grows on the way)
        for suite in suites_of(stmt):
            result += suite
    return result


# --- order of expressions ---------------------------------------------------------------------------
def order_of(expr: ast.expr) -> int:
    """Return an expression's place in the order of evaluation, which is in its column; 0 if it has none."""
    return getattr(expr, "col_offset", 0)


def offset_of(expr: ast.expr) -> int:
    """Return the byte offset of the operation that made an expression; -1 where none did by itself."""
    offset: int | None = getattr(expr, "end_col_offset", None)
    return -1 if offset is None else offset


# --- constants --------------------------------------------------------------------------------------
class Literal:
    """An expression for one constant, ``(1, -2)``, which the compiler folds with others beside it."""

    literal: Any


#: The kinds of expressions for one constant (a set: of a frozenset; a slice: 3.14), with their refinements.
_LITERALS: dict[type[ast.expr], type[ast.expr]] = {
    kind: refinement(type(f"Literal{kind.__name__}", (kind, Literal), {}))
    for kind in (ast.Constant, ast.UnaryOp, ast.BinOp, ast.Tuple, ast.Set, ast.Slice)}
LiteralConstant: Any = _LITERALS[ast.Constant]


def as_literal(expr: ast.expr, value: Any) -> ast.expr:
    """Return the expression as a :class:`Literal` of the constant ``value``."""
    # (Most are plain constants, and a program has many.)
    literal: Any = LiteralConstant(expr.value) if type(expr) is ast.Constant else refined(expr, _LITERALS[type(expr)])
    literal.literal = value
    result: ast.expr = literal
    return result


def decided(node: ast.expr) -> ast.expr:
    """Return a constant as a condition that it decides: from 3.10 on only the constant is left of it."""
    assert isinstance(node, Literal)
    return ast.BoolOp(ast.Or() if node.literal else ast.And(), [node, ast.Constant(0)])


# --- tuples and dictionaries ------------------------------------------------------------------------
@refinement
class BuiltTuple(ast.Tuple):
    """``(a, b)``, built at run time of these items: ``BUILD_TUPLE``."""


@refinement
class JoinedTuple(ast.Tuple):
    """``(*a, b)``, a tuple of its own, not the arguments of a call: ``BUILD_UNPACK`` (3.8 and before)."""


@refinement
class UnfoldedCompare(ast.Compare):
    """``a in b`` or ``a is b`` of 3.14, whose ``not`` is a jump where a jump follows it, as that of any other test."""


@refinement
class MergedDict(ast.Dict):
    """A dictionary made for ``f(a=1, **b)``: ``parts`` has its keys with their values, and mappings, in order."""

    parts: list[list[tuple[ast.expr | None, ast.expr]] | ast.expr]


# --- texts with fields ------------------------------------------------------------------------------
class Formatted:
    """A text with fields that may be part of a longer one; written with ``percent``, if known."""

    fields: list[ast.expr]
    percent: bool | None


@refinement
class FormattedText(ast.JoinedStr, Formatted):
    """``f"{a!r} of {b!r}"``."""

    def __init__(self, fields: list[ast.expr], percent: bool | None) -> None:
        super().__init__(fields)
        self.fields, self.percent = fields, percent


@refinement
class PercentText(ast.BinOp, Formatted):
    """``"%r of %r" % (a, b)``."""

    def __init__(self, text: str, values: list[ast.expr], fields: list[ast.expr], percent: bool | None) -> None:
        super().__init__(ast.Constant(text), ast.Mod(), ast.Tuple(values, ast.Load()))
        self.fields, self.percent = fields, percent


# --- expressions with branches in them --------------------------------------------------------------
@refinement
class FoldedBool(ast.BoolOp):
    """``a and b`` made of a branch.

    Attributes:
        folded: a further operand on the right, ``a and b and c``, becomes one of this.
        merged: it is a value, known where its edges merge, not only a test.
        tested_again: the merged value is tested once more: as an operand it is separate.
        begins_a_line: it must be the first on a line.
    """

    folded = True
    merged = False
    tested_again = False
    begins_a_line = False


Operation = TypeVar("Operation", bound=ast.BoolOp)


def with_operands(test: Operation, values: list[ast.expr]) -> Operation:
    """Return ``and`` or ``or`` with other operands."""
    result = refined(test, type(test))
    result.values = values
    return result


def part_of(test: ast.BoolOp, start: int, end: int | None = None) -> ast.expr:
    """Return some operands of ``and`` or ``or`` as a test."""
    values = test.values[start:end]
    return values[0] if len(values) == 1 else with_operands(test, values)


class Comprehension:
    """A comprehension, which may be awaited by the program alone, and the variables that it has restored."""

    awaited = False
    restored: tuple[str, ...] | None = None


#: Comprehensions in brackets, by what they refine.
IN_BRACKETS: dict[type[ast.expr], Callable[..., ast.expr]] = {
    kind: refinement(type(f"{kind.__name__}rehension", (kind, Comprehension), {}))
    for kind in (ast.ListComp, ast.SetComp, ast.DictComp)}


# --- names ------------------------------------------------------------------------------------------
@refinement
class TemporaryName(ast.Name):
    """The name that depyf gave a value on the stack (``value_1``), so that a statement can come before its use."""


@refinement
class BuildClassName(ast.Name):
    """``__build_class__`` as the compiler loads it for a ``class`` statement, whatever the program calls so."""

    def __init__(self) -> None:
        super().__init__("__build_class__", ast.Load())


# --- assert -----------------------------------------------------------------------------------------
@refinement
class AssertionErrorName(ast.Name):
    """``AssertionError`` as the compiler loads it for an ``assert``, whatever the program calls so."""

    def __init__(self) -> None:
        super().__init__("AssertionError", ast.Load())


@refinement
class UntestedAssert(ast.Assert):
    """``assert False, message``: the failing edge of an ``assert``, until the branch to it brings the test."""

    def __init__(self, message: ast.expr | None) -> None:
        super().__init__(ast.Constant(False), message)


# --- annotations ------------------------------------------------------------------------------------
@refinement
class NumberedAnnotation(ast.AnnAssign):
    """``name: annotation`` that may not be reached (3.14): ``if c: x: int`` adds ``number`` to a set."""

    def __init__(self, target: ast.Name, annotation: ast.expr, value: ast.expr | None, number: int) -> None:
        super().__init__(target, annotation, value, 1)
        self.number = number


@refinement
class AnnotateDefinition(ast.Pass):
    """The store of ``__annotate__`` (3.14), which no source says: the annotations in it say so."""


# --- match ------------------------------------------------------------------------------------------
@refinement
class MatchOf(ast.Match):
    """``match`` with the :class:`~depyf.decompiler.lift.stack.Subject` by which further cases find it."""

    def __init__(self, subject: ast.expr, cases: list[ast.match_case], of: object) -> None:
        super().__init__(subject, cases)
        self.of = of


# --- expressions as text ----------------------------------------------------------------------------
@refinement
class AsText(ast.Name):
    """An expression as text, in the place of a name, which is written unchanged."""


# --- newer syntax -----------------------------------------------------------------------------------
class Newer:
    """A node whose name is text that Pythons before ``since`` cannot read."""

    since: tuple[int, int]


@refinement
class NewerName(AsText, Newer):
    """An expression as text, ``t"{x}"``."""


#: Definitions with text after their names: ``def f[T](x): ...``.
NEWER: dict[type[ast.stmt], type[ast.stmt]] = {
    kind: refinement(type(f"Newer{kind.__name__}", (kind, Newer), {})) for kind in SCOPES}


# --- copies of trees, and walks through them ---------------------------------------------------------
# ``copy.deepcopy`` keeps account of what it met, and ``ast.walk`` asks each node for the fields of its class; trees
# that live for one compilation need neither.
Tree = TypeVar("Tree", bound=ast.AST)

#: Nodes that say nothing but their kind. ``ast.parse`` shares them between trees as well: what others put on one of
#: them (``executing``, which IPython and pytest use for tracebacks, its ``parent``) leads into another tree.
KINDS = (ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop)


def copied(tree: Tree, lines: int = 0) -> Tree:
    """Return a copy that shares no node with a place, and no list; ``lines``: added to line numbers."""
    if isinstance(tree, KINDS):
        return tree
    new = tree.__class__.__new__(tree.__class__)
    fields = new.__dict__
    for name, value in tree.__dict__.items():
        if isinstance(value, ast.AST):
            fields[name] = copied(value, lines)
        elif isinstance(value, list):
            fields[name] = _copied(value, lines)
        else:
            fields[name] = value
    if lines and "lineno" in fields:
        fields["lineno"] += lines
        if fields.get("end_lineno") is not None:
            fields["end_lineno"] += lines
    return new


def _copied(items: list[Any], lines: int) -> list[Any]:
    return [copied(item, lines) if isinstance(item, ast.AST) else
            _copied(item, lines) if isinstance(item, list) else item for item in items]


def nodes_of(*trees: ast.AST) -> Iterator[ast.AST]:
    """Yield the trees and all nodes in them that have a place or fields, in no particular order."""
    pending: list[ast.AST] = list(trees)
    while pending:
        node = pending.pop()
        yield node
        kind = type(node)
        if kind is ast.Name or kind is ast.Constant:
            continue
        for name in ("value",) if kind is ast.Attribute else kind._fields:
            value = getattr(node, name, None)
            if isinstance(value, list):
                pending += [item for item in value if isinstance(item, ast.AST) and not isinstance(item, KINDS)]
            elif isinstance(value, ast.AST) and not isinstance(value, KINDS):
                pending.append(value)


def dotted_name(expression: ast.AST | None) -> str:
    """Return a dotted name as text, ``"torch.ops.aten.mm.default"``; empty for anything else."""
    parts = []
    while isinstance(expression, ast.Attribute):
        parts.append(expression.attr)
        expression = expression.value
    return ".".join([expression.id, *reversed(parts)]) if isinstance(expression, ast.Name) else ""


class Transformer(ast.NodeTransformer):
    """``ast.NodeTransformer`` that does not visit contexts and operators, several times as fast."""

    def expression(self, node: ast.expr) -> ast.expr:
        """Visit an expression, in whose place another may come."""
        result = self.visit(node)
        assert isinstance(result, ast.expr)
        return result

    def generic_visit(self, node: Tree) -> Tree:
        """Visit the fields of a node that contain nodes."""
        kind = type(node)
        if kind is ast.Name or kind is ast.Constant:
            return node
        for name in kind._fields:
            value = getattr(node, name, None)
            if isinstance(value, list):
                items: list[Any] = []
                for item in value:
                    if isinstance(item, ast.AST) and not isinstance(item, KINDS):
                        item = self.visit(item)
                        if item is None:
                            continue
                        if not isinstance(item, ast.AST):
                            items += item
                            continue
                    items.append(item)
                value[:] = items
            elif isinstance(value, ast.AST) and not isinstance(value, KINDS):
                new = self.visit(value)
                if new is None:
                    delattr(node, name)
                elif new is not value:
                    setattr(node, name, new)
        return node


def free_name(wanted: str, taken: Container[str], first: int = 1) -> str:
    """Return the wanted name, or that with the first free number from ``first`` on, so that it is not taken."""
    name = wanted
    for number in itertools.count(first):
        if name not in taken:
            break
        name = f"{wanted}_{number}"
    return name
