"""Syntax trees of texts: conditions as sympy prints them, subscripts as people write them."""

from __future__ import annotations

import ast
from typing import Any, TypeVar

from ..decompiler.nodes import nodes_of

#: Errors of ``ast.parse`` and ``compile``: the text is no Python, or too large for this one.
UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)


def parsed_expression(text: str) -> ast.expr | None:
    """Return the syntax tree of an expression; ``None`` where the text is none, or one too large for this Python."""
    try:
        return ast.parse(text, mode="eval").body
    except UNREADABLE:
        return None


def parsed_file(text: str) -> ast.Module | None:
    """Return the syntax tree of a file; ``None`` where this Python cannot read it."""
    try:
        return ast.parse(text)
    except UNREADABLE:
        return None


def literal(source: str | ast.expr, otherwise: Any = ...) -> Any:
    """Return the value of a literal; ``otherwise`` for what is none."""
    try:
        return ast.literal_eval(source)
    except (TypeError, *UNREADABLE):
        return otherwise


# --- conditions as sympy prints them -----------------------------------------------------------------
#: Names of comparisons and of operators, sympy's and torch's (torch/utils/_sympy/functions.py).
_COMPARISONS = {"Ne": ast.NotEq, "Eq": ast.Eq}
_OPERATORS = {"PythonMod": ast.Mod, "Mod": ast.Mod, "FloorDiv": ast.FloorDiv, "IntTrueDiv": ast.Div,
              "FloatTrueDiv": ast.Div, "FloatPow": ast.Pow, "PowByNatural": ast.Pow, "LShift": ast.LShift,
              "RShift": ast.RShift, "BitwiseFn_bitwise_and": ast.BitAnd, "BitwiseFn_bitwise_or": ast.BitOr,
              "BitwiseFn_bitwise_xor": ast.BitXor}
_FUNCTIONS = {"Max": "max", "Min": "min", "Abs": "abs", "TruncToInt": "int", "RoundToInt": "round", "ToFloat": "float"}


class AsOperators(ast.NodeTransformer):
    """Changes ``Ne(PythonMod(s2, 2), 0)`` into ``s2 % 2 != 0``, ``Max(1, s0)`` into ``max(1, s0)``."""

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Return the comparison or the operation that a call represents."""
        self.generic_visit(node)
        match node:
            case ast.Call(ast.Name(name), [left, right], []) if name in _COMPARISONS:
                return ast.Compare(left, [_COMPARISONS[name]()], [right])
            case ast.Call(ast.Name(name), [left, right], []) if name in _OPERATORS:
                return ast.BinOp(left, _OPERATORS[name](), right)
            case ast.Call(ast.Name(name), arguments, []) if name in _FUNCTIONS:
                return ast.Call(ast.Name(_FUNCTIONS[name], ast.Load()), arguments, [])
        return node


# --- subscripts of a graph ---------------------------------------------------------------------------
# Torch prints a slice by its ``repr``. :func:`as_printed` is the exact way back: what runs calls ``slice`` as torch's
# code does.
_Tree = TypeVar("_Tree", bound=ast.AST)


def with_slices(code: str) -> str:
    """Return a statement of torch's print with ``a:b`` for ``slice(a, b, None)`` and ``...`` for ``Ellipsis``."""
    if "slice(" not in code and "Ellipsis" not in code or not code.isascii():
        return code
    head, annotated, value = code.rpartition('" = ')  # (an annotation stays as it is)
    try:
        tree = ast.parse(value)
        written = ast.unparse(_AsWritten().visit(ast.parse(value)))
        is_same = ast.dump(as_printed(ast.parse(written))) == ast.dump(tree)
    except UNREADABLE:
        return code
    return head + annotated + written if is_same and ast.dump(ast.parse(written)) != ast.dump(tree) else code


class _AsWritten(ast.NodeTransformer):
    """Writes subscripts as people do."""

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.slice, ast.Tuple) and len(node.slice.elts) > 1:
            node.slice.elts = list(map(_written, node.slice.elts))
        else:
            node.slice = _written(node.slice)
        return node


def _written(node: ast.expr) -> ast.expr:
    match node:
        case ast.Name("Ellipsis"):
            return ast.Constant(...)
        case ast.Call(ast.Name("slice"), [_, _, _] as parts, []):
            return ast.Slice(*(None if isinstance(part, ast.Constant) and part.value is None else part
                               for part in parts))
    return node


def as_printed(tree: _Tree) -> _Tree:
    """Change a tree to have ``slice(a, b, None)`` for ``a:b`` and ``Ellipsis`` for ``...`` in subscripts; return it."""
    for node in nodes_of(tree):
        if isinstance(node, ast.Subscript):
            if isinstance(node.slice, ast.Tuple):
                node.slice.elts = [_printed(item) for item in node.slice.elts]
            else:
                node.slice = _printed(node.slice)
    return tree


def _printed(node: ast.expr) -> ast.expr:
    result = node
    if isinstance(node, ast.Slice):
        result = ast.Call(ast.Name("slice", ast.Load()), [
            part or ast.copy_location(ast.Constant(None), node) for part in (node.lower, node.upper, node.step)], [])
        ast.copy_location(result.func, node)
    elif isinstance(node, ast.Constant) and node.value is ...:
        result = ast.Name("Ellipsis", ast.Load())
    return ast.copy_location(result, node)
