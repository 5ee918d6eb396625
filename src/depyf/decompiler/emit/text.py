"""Syntax tree -> text, and the positions of the text written back into the tree."""

from __future__ import annotations

import ast

from ..errors import EMIT, CannotDecompile
from ..names import check
from ..nodes import AsText, OneItem, OnItsLine, at_line, line_of
from ..unparse import unparse
from .new_syntax import too_new


def number(stmts: list[ast.stmt]) -> None:
    """Give statements the line numbers that compilers require."""
    for stmt in stmts:
        at_line(stmt, line_of(stmt) or 1)
        for field in ("body", "orelse", "finalbody"):
            inner = getattr(stmt, field, None)
            if inner:
                number(inner)
        for handler in getattr(stmt, "handlers", None) or getattr(stmt, "cases", None) or ():
            number(handler.body)


class _Marks(ast.NodeTransformer):
    """A rewriting of marked expressions as names of their text in parentheses; some begin on a line of their own."""

    def visit(self, node: ast.AST) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node, OnItsLine) and node.begins_a_line:
            return AsText(f"(\n{unparse(node)})", ast.Load())
        return AsText(f"({unparse(node)})", ast.Load()) if isinstance(node, OneItem) else node


def emit(tree: ast.Module, has_marks: bool = False) -> tuple[str, ast.Module]:
    """Return the text of a tree, and the tree of that text.

    Args:
        tree: what to write.
        has_marks: expressions in it may be :class:`OneItem` or have ``begins_a_line``.

    Raises:
        CannotDecompile: there is no text, or it is not valid.
    """
    text = text_of(tree, has_marks)
    try:
        return text, ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError) as error:
        if isinstance(error, SyntaxError) and too_new(tree):
            number(tree.body)
            return text, tree
        raise CannotDecompile(EMIT, f"{type(error).__name__}: {error}") from error


def text_of(tree: ast.Module, has_marks: bool = False) -> str:
    """Return the text of a tree, which may not be valid: that is for the compiler to say.

    Args:
        tree: what to write.
        has_marks: as :func:`emit` has it.

    Raises:
        CannotDecompile: there is no text.
    """
    try:
        check(tree)
        if has_marks:
            _Marks().visit(tree)  # (changes the tree itself: no module is marked)
        return unparse(tree) + "\n"
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError) as error:
        raise CannotDecompile(EMIT, f"{type(error).__name__}: {error}") from error
