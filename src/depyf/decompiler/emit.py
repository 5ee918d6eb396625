"""Syntax tree -> text, and the positions of the text written back into the tree."""

from __future__ import annotations

import ast

from .newer import too_new


class Unwritable(Exception):
    """The tree has no text."""


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
    """The text of a tree, and the tree of that text (the tree itself if it is of a newer Python than this)."""
    try:
        number(tree.body)
        text = ast.unparse(tree) + "\n"
        return text, tree if too_new(tree) else ast.parse(text)
    except (SyntaxError, ValueError, AttributeError, TypeError, RecursionError, KeyError) as error:
        raise Unwritable(f"{type(error).__name__}: {error}") from error
