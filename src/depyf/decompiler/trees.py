"""Copies of syntax trees, and walks through them.

``copy.deepcopy`` keeps account of what it met, and ``ast.walk`` asks each node for the fields of its class; trees that
live for one compilation need neither.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any, TypeVar

Tree = TypeVar("Tree", bound=ast.AST)

#: Nodes that say nothing but their kind. ``ast.parse`` shares them between trees as well: what others put on one of
#: them (``executing``, which IPython and pytest ask for tracebacks, its ``parent``) leads into another tree.
KINDS = (ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop)


def copied(tree: Tree, lines: int = 0) -> Tree:
    """Return a copy that shares no node with a place, and no list, with the tree.

    Args:
        tree: what is copied.
        lines: added to all line numbers of the copy.
    """
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
        """Visit the fields of a node that hold nodes."""
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
