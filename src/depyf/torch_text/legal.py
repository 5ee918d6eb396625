"""torch's print of a graph -> Python."""

from __future__ import annotations

import re

#: Above a graph that is a comment.
NOT_PYTHON = "# (torch printed this graph in a form that is not Python)"


def legal_graph(text: str) -> str:
    """Torch's print of a graph as Python: some of its classes are called ``<lambda>``.

    What is not Python even then is kept as a comment.
    """
    if "class <" in text:
        text = re.sub(r"(?m)^(\s*)class <(\w+)>", r"\1class \2_", text)
    text = text.strip("\n") + "\n"
    try:
        # (A tree of a large graph is half a million objects, among which the collector then looks for cycles.)
        compile(text, "<graph>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return f"{NOT_PYTHON}\n" + "".join(f"# {line}\n" for line in text.splitlines())
    return text
