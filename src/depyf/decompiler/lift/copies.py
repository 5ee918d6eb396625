"""Copies of one value: which expressions are the same, and one expression where there were two."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any, TypeGuard

from ..errors import LIFT, CannotDecompile
from .stack import AS_THEY_ARE, Assigning, Duplicate, Entry

if TYPE_CHECKING:
    from .executor import SymbolicExecutor


def same_node(a: Any, b: Any) -> bool:
    """Return whether two expressions are the same (duplicates of one value included)."""
    if a is b:
        return True
    if isinstance(a, Duplicate):
        a = a.value
    if isinstance(b, Duplicate):
        b = b.value
    if a is b:
        return True
    return type(a) is type(b) and isinstance(a, ast.AST) and ast.dump(a) == ast.dump(b)


def same_duplicate(a: Any, b: Any) -> bool:
    """Return whether two entries are the same one, or duplicates of one value."""
    return a is b or (isinstance(a, Duplicate) and isinstance(b, Duplicate) and a.value is b.value)


def same_target(target: ast.expr, left: Entry) -> TypeGuard[ast.Name | ast.Attribute | ast.Subscript]:
    """Return whether ``target``, which is stored to, is the place that ``left`` was read from."""
    if isinstance(target, ast.Name):
        return isinstance(left, ast.Name) and left.id == target.id
    if isinstance(target, ast.Attribute):
        return (
            isinstance(left, ast.Attribute) and left.attr == target.attr and same_node(left.value, target.value)
        )
    if isinstance(target, ast.Subscript):
        return (
            isinstance(left, ast.Subscript)
            and same_node(left.value, target.value)
            and same_node(left.slice, target.slice)
        )
    return False


def operand(executor: SymbolicExecutor, entry: Entry) -> Any:
    """Return the expression of an operand; a duplicate as it is, as it may belong to ``a.b += c``."""
    if entry.__class__ in AS_THEY_ARE or isinstance(entry, Duplicate):
        return entry
    return executor.resolve(entry)


def deduplicated(node: Any) -> Any:
    """Return an expression with each duplicate in it replaced by its value, in place."""
    if isinstance(node, Duplicate):
        return deduplicated(node.value)
    if isinstance(node, Assigning):  # a walrus, of whose value there are copies
        value = deduplicated(node.value)
        for target in node.targets:
            if not isinstance(target, ast.Name):
                raise CannotDecompile(LIFT, "an assignment inside an expression")
            value = ast.NamedExpr(target, value)
        return value
    if isinstance(node, ast.Attribute):
        node.value = deduplicated(node.value)
    elif isinstance(node, ast.Subscript):
        node.value = deduplicated(node.value)
        node.slice = deduplicated(node.slice)
    elif isinstance(node, ast.Slice):
        node.lower, node.upper, node.step = (
            deduplicated(part) for part in (node.lower, node.upper, node.step)
        )
    return node
