"""Blank lines between statements, where the line table of the code shows lines without code.

Their text is lost: an empty line, or a comment. The proof says which line of the text each instruction became,
and the line table where that was in the source; so the lines between two statements are known.

Example: ``a = 1`` on line 3 and ``b = 2`` on line 5 have a blank line between them in the text.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ...bytecode.linetable import positions

if TYPE_CHECKING:
    from ..result import Decompiled

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def with_blank_lines(result: Decompiled) -> str:
    """Return the text of a decompilation with blank lines where the source had lines that left nothing.

    One at most; two at most beside the functions and classes of a module. A text that was not proven is unchanged:
    nothing says where its statements were.
    """
    spans = _spans(result)
    if not spans:
        return result.text
    lines = result.text.split("\n")
    ends_known = all(part.code is None or part.code.version >= (3, 11) for part in result.parts)
    blank: dict[int, int] = {}
    for suite, is_module in _suites(ast.parse(result.text)):
        for one, other in zip(suite, suite[1:]):
            first = _first_text_line(other)
            room = _room(spans, one, other, ends_known)
            beside = isinstance(one, _DEFINITIONS) or isinstance(other, _DEFINITIONS)
            blank[first] = min(room, 2 if is_module and beside else 1)
    text: list[str] = []
    for number, line in enumerate(lines, 1):
        there = 0
        while there < len(text) and not text[-1 - there]:
            there += 1
        text += [""] * (blank.get(number, 0) - there)
        text.append(line)
    return "\n".join(text)


def _spans(result: Decompiled) -> dict[int, tuple[int, int]]:
    """Return the first and the last line of the source that each line of the text was made of."""
    spans: dict[int, tuple[int, int]] = {}
    for part in result.parts:
        if part.code is None:
            continue
        places = positions(part.code)
        for offset, line in part.line_map.items():
            place = places[offset // 2]
            if place is not None:
                first, last = spans.get(line, (place.line, 0))
                spans[line] = min(first, place.line), max(last, place.end_line)
    return spans


def _suites(tree: ast.Module) -> Iterator[tuple[list[ast.stmt], bool]]:
    """Yield the suites of a module, and whether it is the module's own."""
    yield tree.body, True
    for node in ast.walk(tree):
        if not isinstance(node, ast.Module):
            for field in ("body", "orelse", "finalbody"):
                suite = getattr(node, field, None)
                if isinstance(suite, list):
                    yield suite, False


def _first_text_line(stmt: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(stmt, "decorator_list", [])
    return min([stmt.lineno, *(each.lineno for each in decorators)])


def _room(spans: dict[int, tuple[int, int]], one: ast.stmt, other: ast.stmt, ends_known: bool) -> int:
    """Return how many lines of the source are between two statements; 0 where that is not known."""
    before, following = ([spans[line] for line in range(_first_text_line(stmt), (stmt.end_lineno or 0) + 1)
                          if line in spans] for stmt in (one, other))
    ends, begins = [last for _, last in before], [first for first, _ in following]
    if not ends or not begins:
        return 0
    # (Where only lines are known, a statement of several may go on after its last instruction: to a parenthesis.)
    beyond = not ends_known and not hasattr(one, "body") and max(ends) > min(first for first, _ in before)
    return max(min(begins) - max(ends) - 1 - beyond, 0)
