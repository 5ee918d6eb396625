"""The status of each line of the user's files."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ...records.model import SourceLocation

#: What can be said of a line, the weightiest first; docs/page.md says what each means.
BREAK, GRAPH, PYTHON, FOLDED, UNREACHED, UNKNOWN = "break", "graph", "python", "folded", "unreached", "unknown"


@dataclass
class _File:
    graphs: dict[int, set[int]] = field(default_factory=dict)  # line -> graphs
    breaks: dict[int, list[str]] = field(default_factory=dict)
    traced: set[int] = field(default_factory=set)
    python: dict[int, str] = field(default_factory=dict)  # first line of a function -> why
    compiled: set[int] = field(default_factory=set)  # first lines of functions


class Statuses:
    """Collects what is known of lines, then returns the status of each line of a file."""

    def __init__(self) -> None:
        self._files: dict[str, _File] = {}

    def _of(self, name: str) -> _File:
        return self._files.setdefault(name, _File())

    def in_graph(self, place: SourceLocation, graph: int) -> None:
        """Note that a line is in a graph."""
        self._of(place.filename).graphs.setdefault(place.line, set()).add(graph)

    def at_break(self, place: SourceLocation, reason: str) -> None:
        """Note that a graph breaks at a line."""
        self._of(place.filename).breaks.setdefault(place.line, []).append(reason)

    def traced(self, filename: str, lines: Iterable[int]) -> None:
        """Note lines that torch traced."""
        self._of(filename).traced.update(lines)

    def in_python(self, function: SourceLocation, why: str) -> None:
        """Note a function that torch gave up, by its first line."""
        self._of(function.filename).python[function.line] = why

    def compiled(self, function: SourceLocation) -> None:
        """Note a function that was compiled, by its first line."""
        self._of(function.filename).compiled.add(function.line)

    def of(self, filename: str, text: str) -> list[list[Any]]:
        """Return ``[line, status, graphs, why]`` for each line with a status, in order.

        Args:
            filename: as in the records.
            text: of the file. Where this Python cannot read it, only what torch said of single lines is known.
        """
        known = self._files.get(filename)
        if known is None:
            return []
        rows: dict[int, list[Any]] = {}

        def say(line: int, status: str, why: str = "") -> None:
            if line not in rows or _weight(status) < _weight(rows[line][1]):
                rows[line] = [line, status, sorted(known.graphs.get(line, ())), why]

        for line, reasons in known.breaks.items():
            say(line, BREAK, reasons[0])
        for line in known.graphs:
            say(line, GRAPH)
        functions = list(_functions(text))
        heads = {line for function in functions for line in range(function.first, function.body)}
        for function in functions:
            self._function(function, known, say)
        for line in known.traced:
            if line not in heads:
                say(line, FOLDED)
        last = text.count("\n") + 1
        for function in functions:
            for first, end in function.statements:
                own = [rows[line] for line in range(first, end + 1) if line in rows]
                if own:
                    best = min(own, key=lambda item: _weight(item[1]))
                    for line in range(first, end + 1):
                        rows.setdefault(line, [line, best[1], best[2], best[3]])
        return [rows[line] for line in sorted(rows) if 0 < line <= last]

    def _function(self, function: _Function, known: _File, say: Any) -> None:
        begins = range(function.first, function.body)
        why = next((known.python[line] for line in begins if line in known.python), "")
        compiled = any(line in known.compiled for line in begins)
        lines = {line for first, end in function.statements for line in range(first, end + 1)}
        for first, end in function.statements:
            if any(line in known.graphs or line in known.traced or line in known.breaks
                   for line in range(first, end + 1)):
                continue
            if why and not compiled:
                say(first, PYTHON, why)
            elif lines & known.traced:
                say(first, UNREACHED)
            elif compiled or lines & known.graphs.keys():  # (nothing says which lines were traced)
                say(first, UNKNOWN)


def _weight(status: str) -> int:
    return (BREAK, GRAPH, PYTHON, FOLDED, UNREACHED, UNKNOWN).index(status)


@dataclass
class _Function:
    """A function of a file: its first line, with decorators, that of its body, and the lines of its statements."""

    first: int
    body: int
    statements: list[tuple[int, int]]


def _functions(text: str) -> Iterator[_Function]:
    """Yield the functions of a file; none where this Python cannot read it."""
    try:
        pending: list[ast.AST] = [ast.parse(text)]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    while pending:
        node = pending.pop()
        pending += _inner(node)  # (only statements contain functions: expressions are most of a tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            yield _Function(first, node.body[0].lineno, list(_statements(node.body)))


def _inner(node: ast.AST) -> list[ast.stmt]:
    if not hasattr(node, "body") and not isinstance(node, ast.Match):
        return []
    result: list[ast.stmt] = []
    for name in ("body", "handlers", "cases", "orelse", "finalbody"):
        for item in getattr(node, name, ()) if isinstance(node, (ast.Module, ast.stmt)) else ():
            result += item.body if isinstance(item, (ast.ExceptHandler, ast.match_case)) else [item]
    return result


def _statements(body: list[ast.stmt]) -> Iterator[tuple[int, int]]:
    pending = list(reversed(body))
    while pending:
        node = pending.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue  # (what is in it runs when it is called)
        if isinstance(node, (ast.Pass, ast.Global, ast.Nonlocal)) or (
                isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            continue  # leaves no code
        inner = _inner(node)
        if isinstance(node, ast.Try) or type(node).__name__ == "TryStar":
            pending += reversed(inner)
            continue  # `try:` itself does nothing
        end = node.end_lineno or node.lineno
        if inner:
            head = [value for name in ("test", "iter", "subject") if (value := getattr(node, name, None)) is not None]
            head += [item.context_expr for item in getattr(node, "items", ())]
            end = head[-1].end_lineno if head else max(node.lineno, min(item.lineno for item in inner) - 1)
        yield node.lineno, end
        pending += reversed(inner)
