"""Syntax trees of expressions in torch's texts; conditions as sympy prints them, with Python's operators."""

from __future__ import annotations

import ast


def parsed_expression(text: str) -> ast.expr | None:
    """Return the syntax tree of an expression; ``None`` where the text is none, or one too large for this Python."""
    try:
        return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


# --- conditions as sympy prints them -----------------------------------------------------------------
#: Names of comparisons and of operators, sympy's and torch's (torch/utils/_sympy/functions.py).
_COMPARISONS = {"Ne": ast.NotEq, "Eq": ast.Eq}
_OPERATORS = {"PythonMod": ast.Mod, "Mod": ast.Mod, "FloorDiv": ast.FloorDiv, "IntTrueDiv": ast.Div,
              "FloatTrueDiv": ast.Div}
_FUNCTIONS = {"Max": "max", "Min": "min", "Abs": "abs"}


class _AsPython(ast.NodeTransformer):
    """Writes operators in place of their names."""

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Return the comparison or the operation that a call stands for."""
        self.generic_visit(node)
        match node:
            case ast.Call(ast.Name(name), [left, right], []) if name in _COMPARISONS:
                return ast.Compare(left, [_COMPARISONS[name]()], [right])
            case ast.Call(ast.Name(name), [left, right], []) if name in _OPERATORS:
                return ast.BinOp(left, _OPERATORS[name](), right)
            case ast.Call(ast.Name(name), arguments, []) if name in _FUNCTIONS:
                return ast.Call(ast.Name(_FUNCTIONS[name], ast.Load()), arguments, [])
        return node


def as_python(condition: str) -> str:
    """Return ``s2 % 2 != 0`` for ``Ne(PythonMod(s2, 2), 0)``, ``8 * (s0 // 2) <= 9`` for ``8*((s0//2)) <= 9``."""
    node = parsed_expression(condition)
    return condition if node is None else ast.unparse(_AsPython().visit(node))
