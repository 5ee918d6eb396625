"""``ast.unparse``, with f-strings that every Python can read.

From 3.12 on, ``ast.unparse`` uses the quotes of an f-string inside its fields too: ``f'{a['b']}'``. Before 3.12 that is
a syntax error, so code of an older Python could not be written on a newer one. Here a field decides which quotes remain
for the f-string around it: ``f"{a['b']}"``.
"""

from __future__ import annotations

import ast
import functools
import sys
from typing import Any

#: Whether the host repeats quotes in fields.
_REPEATS_QUOTES = sys.version_info >= (3, 12)
_QUOTES = ("'", '"', '"""', "'''")


def unparse(tree: ast.AST) -> str:
    """Return the text of a tree, whose statements need no line numbers."""
    return str(_unparser()().visit(tree))


@functools.cache
def _unparser() -> Any:
    """Return the visitor of ``ast.unparse``, with other f-strings."""
    Host: Any
    if sys.version_info >= (3, 14):
        from _ast_unparse import Unparser as Host
    else:
        Host = ast._Unparser  # type: ignore[attr-defined]

    class Unparser(Host):  # type: ignore[misc]
        def get_type_comment(self, node: ast.stmt) -> None:
            """Return nothing: bytecode has no type comments, which are looked up by line."""

        def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
            if not _REPEATS_QUOTES:
                super().visit_JoinedStr(node)
                return
            parts = []
            for value in node.values:
                with self.buffered() as buffer:
                    self._write_fstring_inner(value)
                parts.append((isinstance(value, ast.Constant), "".join(buffer)))
            text = join_parts(parts)
            if text is None:
                super().visit_JoinedStr(node)
            else:
                self.write(text)

    return Unparser


def join_parts(parts: list[tuple[bool, str]]) -> str | None:
    """Return an f-string that Pythons before 3.12 can read; ``None`` if no quotes allow it.

    Args:
        parts: in their order; of each, whether it is text (with braces doubled), and it or the field in braces.
    """
    fields = "".join(part for is_text, part in parts if not is_text)
    if "\\" in fields or "\n" in fields:
        return None
    quotes = [quote for quote in _QUOTES if quote not in fields]
    texts = [
        (quote, "".join(_escaped(part, quote) if is_text else part for is_text, part in parts)) for quote in quotes]
    if not texts:
        return None
    quote, text = min(texts, key=lambda each: len(each[1]))  # (the first of those with as few escapes)
    return f"f{quote}{text}{quote}"


def _escaped(text: str, quote: str) -> str:
    """Return literal text as it is written between these quotes."""
    text = "".join(c if c.isprintable() and c != "\\" else c.encode("unicode_escape").decode() for c in text)
    if quote in text or text.endswith(quote[0]):
        text = text.replace(quote[0], "\\" + quote[0])
    return text
