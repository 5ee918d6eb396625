"""Syntax trees of expressions in torch's texts."""

from __future__ import annotations

import ast


def parsed_expression(text: str) -> ast.expr | None:
    """Return the syntax tree of an expression; ``None`` where the text is none, or one too large for this Python."""
    try:
        return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
