"""Copies of one value: which expressions are the same, and one expression where there were two.

Changes with what the compiler copies on the stack (augmented assignments, chained comparisons).
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any, TypeGuard

from .stack import Assigning, Entry, Shared, Unliftable

if TYPE_CHECKING:
    from .machine import Machine


def same_node(a: Any, b: Any) -> bool:
    """Return whether two expressions are the same (duplicates of one value included)."""
    if a is b:
        return True
    if isinstance(a, Shared):
        a = a.value
    if isinstance(b, Shared):
        b = b.value
    if a is b:
        return True
    return type(a) is type(b) and isinstance(a, ast.AST) and ast.dump(a) == ast.dump(b)


def same_shared(a: Any, b: Any) -> bool:
    return a is b or (isinstance(a, Shared) and isinstance(b, Shared) and a.value is b.value)


def same_target(target: ast.expr, left: Entry) -> TypeGuard[ast.Name | ast.Attribute | ast.Subscript]:
    """Return whether a place is stored to that was also read."""
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


def operand(machine: Machine, entry: Entry) -> Any:
    """The expression of an operand; a duplicate as it is, which may turn out to be that of ``a.b += c``."""
    return entry if isinstance(entry, Shared) else machine.resolve(entry)


def unshare(node: Any) -> Any:
    if isinstance(node, Shared):
        return unshare(node.value)
    if isinstance(node, Assigning):  # a walrus, of whose value there are copies
        value = unshare(node.value)
        for target in node.targets:
            if not isinstance(target, ast.Name):
                raise Unliftable("an assignment inside an expression")
            value = ast.NamedExpr(target, value)
        return value
    if isinstance(node, ast.Attribute):
        node.value = unshare(node.value)
    elif isinstance(node, ast.Subscript):
        node.value = unshare(node.value)
        node.slice = unshare(node.slice)
    elif isinstance(node, ast.Slice):
        node.lower, node.upper, node.step = (
            unshare(part) for part in (node.lower, node.upper, node.step)
        )
    return node
