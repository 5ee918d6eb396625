"""Globals and attributes that source cannot name: ``globals()['@py_builtins']``, ``getattr(x, 'a b')``.

A name in a code object can be any string. The code is decompiled, and proven, with a name in its place that source can
have (:func:`~depyf.decompiler.names.renamed`):

========================  ==========================================================
the text that is proven   the text that is read
========================  ==========================================================
``_py_ar.explain(x)``     ``globals()['@py_ar'].explain(x)``
``x._a_b``                ``getattr(x, 'a b')``
``import ast as _py_ar``  ``import ast as _py_ar``
                          ``globals()['@py_ar'] = globals().pop('_py_ar')``
``global _py_ar``
========================  ==========================================================
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from ..errors import EMIT, CannotDecompile
from ..nodes import Transformer, nodes_of
from .text import unparse


class CannotEscape(CannotDecompile):
    """A name is bound where no expression can be."""


def escaped(tree: ast.Module, names: Mapping[str, str]) -> tuple[str, ast.Module]:
    """Return the text that is read, and the tree of the text that is proven, ``tree``, with the places of that.

    ``names``: ``{name in the code: name in its place}``.
    """
    try:
        text = unparse(_Escapes(names).visit(tree)) + "\n"
        return text, _Expansion(names).visit(ast.parse(text))
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError) as error:
        raise CannotEscape(EMIT, str(error)) from error


class _Escapes(Transformer):
    def __init__(self, names: Mapping[str, str]) -> None:
        self.old = {new: old for old, new in names.items()}
        self.imported: set[str] = set()

    def visit_Module(self, node: ast.Module) -> ast.Module:
        self.scope(node)
        for each in nodes_of(node):
            if isinstance(each, (ast.alias, ast.Global, ast.Constant)):
                continue
            names = [name for value in vars(each).values() for name in (value if isinstance(value, list) else [value])]
            if any(isinstance(name, str) and name in self.old for name in names) \
                    or isinstance(each, ast.NamedExpr) and not isinstance(each.target, ast.Name):
                raise CannotEscape(EMIT, f"a {type(each).__name__} binds a name that cannot be written")
        return node

    def scope(self, node: ast.Module | ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        around, self.imported = self.imported, {
            alias.asname or alias.name for each in nodes_of(node)
            if isinstance(each, (ast.Import, ast.ImportFrom)) for alias in each.names}
        self.generic_visit(node)
        self.imported = around
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = scope

    def visit_Name(self, node: ast.Name) -> ast.expr:
        old = self.old.get(node.id)
        if old is None:
            return node
        return ast.Subscript(ast.Call(ast.Name("globals", ast.Load()), [], []), ast.Constant(old), node.ctx)

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        self.generic_visit(node)
        old = self.old.get(node.attr)
        if old is None or not isinstance(node.ctx, ast.Load):
            return node
        return ast.Call(ast.Name("getattr", ast.Load()), [node.value, ast.Constant(old)], [])

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> list[ast.stmt]:
        bound = [alias.asname or alias.name for alias in node.names]
        return [node, *(stmt for name in bound if name in self.old for stmt in ast.parse(
            f"globals()[{self.old[name]!r}] = globals().pop({name!r})").body)]

    visit_ImportFrom = visit_Import

    def visit_Global(self, node: ast.Global) -> ast.Global | None:
        node.names = [name for name in node.names if name not in self.old or name in self.imported]
        return node if node.names else None


class _Expansion(Transformer):
    """The inverse of :class:`_Escapes`, so that what is proven is what is read."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self.names = names
        self.stored: set[str] = set()

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        match node:
            case ast.Subscript(ast.Call(ast.Name("globals"), [], []), ast.Constant(str(old))) if old in self.names:
                if not isinstance(node.ctx, ast.Load):
                    self.stored.add(self.names[old])
                return ast.copy_location(ast.Name(self.names[old], node.ctx), node)
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        match self.generic_visit(node):
            case ast.Call(ast.Name("getattr"), [value, ast.Constant(str(old))], []) if old in self.names:
                return ast.copy_location(ast.Attribute(value, self.names[old], ast.Load()), node)
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.Assign | None:
        match node.value:
            case ast.Call(ast.Attribute(ast.Call(ast.Name("globals"), [], []), "pop"), [ast.Constant(name)], []) \
                    if name in self.names.values():
                return None  # (it is bound by the import before it)
        return self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.stmt:
        around, self.stored = self.stored, set()
        self.generic_visit(node)
        if self.stored:
            place = 1 if ast.get_docstring(node, clean=False) is not None else 0
            node.body.insert(place, ast.copy_location(ast.Global(sorted(self.stored)), node.body[0]))
        self.stored = around
        return node

    visit_AsyncFunctionDef = visit_FunctionDef
