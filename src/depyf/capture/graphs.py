"""torch's print of a graph -> Python."""

from __future__ import annotations

import ast
import re


def legal_graph(text: str) -> str:
    """Torch's print of a graph as Python: some of its classes are called ``<lambda>``.

    What is not Python even then is kept as a comment.
    """
    text = re.sub(r"(?m)^(\s*)class <(\w+)>", r"\1class \2_", text).strip("\n") + "\n"
    try:
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        text = "# (torch printed this graph in a form that is not Python)\n" + "".join(
            f"# {line}\n" for line in text.splitlines())
    return text
