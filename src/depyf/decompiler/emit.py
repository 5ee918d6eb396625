"""Syntax tree -> text, and the positions of the text written back into the tree."""

from __future__ import annotations

import ast


class Unwritable(Exception):
    """The tree has no text."""


def visible(tree: ast.Module) -> ast.Module:
    """The tree without statements marked ``_depyf_hidden``."""
    if not any(getattr(node, "_depyf_hidden", False) for node in ast.walk(tree)):
        return tree
    return _Hide().visit(_copy(tree))


class _Hide(ast.NodeTransformer):
    def generic_visit(self, node: ast.AST) -> ast.AST:
        for field in ("body", "orelse", "finalbody"):
            stmts = getattr(node, field, None)
            if isinstance(stmts, list):
                kept = [self.visit(s) for s in stmts if not getattr(s, "_depyf_hidden", False)]
                if field == "body" and stmts and not kept and isinstance(stmts[0], ast.stmt):
                    kept = [ast.Pass()]
                setattr(node, field, kept)
        for handler in getattr(node, "handlers", None) or ():
            self.visit(handler)
        return node


def _copy(node: ast.AST) -> ast.AST:
    """A copy of the statements; expressions are shared."""
    made = type(node)(**{name: getattr(node, name) for name in node._fields if hasattr(node, name)})
    for field in ("body", "orelse", "finalbody", "handlers"):
        stmts = getattr(node, field, None)
        if isinstance(stmts, list):
            setattr(made, field, [_copy(s) if isinstance(s, (ast.stmt, ast.excepthandler)) else s for s in stmts])
    if getattr(node, "_depyf_hidden", False):
        made._depyf_hidden = True  # type: ignore[attr-defined]
    return made


def number(stmts: list[ast.stmt]) -> None:
    """Give statements the line numbers that ``ast.unparse`` asks for."""
    for stmt in stmts:
        stmt.lineno = getattr(stmt, "line", None) or 1
        for field in ("body", "orelse", "finalbody"):
            inner = getattr(stmt, field, None)
            if inner:
                number(inner)
        for handler in getattr(stmt, "handlers", None) or getattr(stmt, "cases", None) or ():
            number(handler.body)


def emit(tree: ast.Module) -> tuple[str, ast.Module]:
    """The text of a tree, and the tree of that text."""
    try:
        number(tree.body)
        text = ast.unparse(visible(tree)) + "\n"
        return text, ast.parse(text)
    except (SyntaxError, ValueError, AttributeError, TypeError, RecursionError, KeyError) as error:
        raise Unwritable(f"{type(error).__name__}: {error}") from error
