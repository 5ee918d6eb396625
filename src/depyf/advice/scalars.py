"""Numbers that are taken out of tensors, and the tensors in their place.

float(x.sum().item()) > 0     ->    x.sum() > 0
x / x.max().item()            ->    x / x.max().detach()
"""

from __future__ import annotations

import ast
import copy
from typing import TypeVar

Node = TypeVar("Node", bound=ast.AST)

#: Methods of a tensor that give no tensor.
_NO_TENSOR = frozenset({"size", "dim", "numel", "item", "tolist", "stride", "data_ptr", "nelement", "ndimension"})


def without_scalar(node: ast.expr) -> ast.expr:
    """Return the tensor that a number is taken from: ``x.sum()`` for ``float(x.sum().item())``."""
    match node:
        case ast.Call(ast.Attribute(inner, "item"), [], []):
            return without_scalar(inner)
        case ast.Call(ast.Name("float" | "bool"), [inner], []) if not isinstance(inner, ast.Constant):
            return without_scalar(inner)
    return node


def in_arithmetic(node: Node) -> Node:
    """Return a copy with tensors in the place of their numbers, where these meet that tensor in arithmetic.

    (Of any other operand nothing tells that it is a tensor.) No gradient flows through a number, nor through a tensor
    that is detached.
    """
    result: Node = _InArithmetic().visit(copy.deepcopy(node))
    return result


def has_scalars(node: ast.AST) -> bool:
    """Return whether a number may be taken out of a tensor in it."""
    for each in ast.walk(node):
        match each:
            case ast.Call(ast.Attribute(_, "item"), [], []):
                return True
            case ast.Call(ast.Name("float" | "bool" | "int"), [inner], []) if not isinstance(inner, ast.Constant):
                return True
    return False


class _InArithmetic(ast.NodeTransformer):
    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        node.left, node.right = _beside(node.left, node.right), _beside(node.right, node.left)
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:
        self.generic_visit(node)
        node.value = _beside(node.value, node.target)
        return node


def _beside(number: ast.expr, other: ast.expr) -> ast.expr:
    """Return an operand of arithmetic, as a tensor where it is a number of the tensor that the other is made of."""
    tensor = without_scalar(number)
    if tensor is number or not _is_made_of(other, _root(tensor)):
        return number
    match tensor:
        case ast.Call(ast.Attribute(_, "detach"), [], []):
            return tensor
    return ast.Call(ast.Attribute(tensor, "detach", ast.Load()), [], [])


def _root(tensor: ast.expr) -> str:
    """Return what a tensor is computed of: ``self.x`` for ``self.x.abs().max()`` and ``torch.max(self.x)``."""
    match tensor:
        case ast.Call(ast.Attribute(ast.Name("torch"), _), [first, *_]):
            return _root(first)
        case ast.Call(ast.Attribute(inner, _)):
            return _root(inner)
    return ast.unparse(tensor)


def _is_made_of(node: ast.expr, root: str) -> bool:
    """Return whether an expression is a tensor computed of another one, as far as its text tells."""
    if ast.unparse(node) == root:
        return True
    match node:
        case ast.BinOp(left, _, right):
            return _is_made_of(left, root) or _is_made_of(right, root)
        case ast.UnaryOp(_, inner) | ast.Subscript(inner):
            return _is_made_of(inner, root)
        case ast.Call(ast.Attribute(ast.Name("torch"), _), arguments):
            return any(_is_made_of(each, root) for each in arguments)
        case ast.Call(ast.Attribute(inner, name)) if name not in _NO_TENSOR:
            return _is_made_of(inner, root)
    return False
