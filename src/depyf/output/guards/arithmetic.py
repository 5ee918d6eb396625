"""Sums as people write them: ``(x.shape[2] - 1) // 2 + 1`` for sympy's ``1 + (((-1) + x.shape[2]) // 2)``."""

from __future__ import annotations

import ast

from ...capture.user_expressions import parsed_expression


def plain_sums(condition: str) -> str:
    """Return a condition on sizes with numbers behind what they are added to, and differences written as such.

    Sizes are integers, so that the order in which they are added does not matter.
    """
    node = parsed_expression(condition)
    return condition if node is None else ast.unparse(_Sums().visit(node))


class _Sums(ast.NodeTransformer):
    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.op, ast.Add) and _number(node.left) is not None and _number(node.right) is None:
            node.left, node.right = node.right, node.left
        number = _number(node.right) if isinstance(node.op, ast.Add) else None
        if number is not None and number < 0:
            return ast.BinOp(node.left, ast.Sub(), ast.Constant(-number))
        return node


def _number(node: ast.expr) -> int | None:
    match node:
        case ast.Constant(int(value)) if not isinstance(value, bool):
            return value
        case ast.UnaryOp(ast.USub(), ast.Constant(int(value))):
            return -value
    return None
