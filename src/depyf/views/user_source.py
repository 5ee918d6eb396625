"""Facts about a place from the text of the user's files: which function it is in, which loop surrounds it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ..advice.source import Loop, Sources, blocks, loops_around
from ..records.model import SourceFile, SourceLocation
from ..torch_text.global_names import plain_name

_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Definition:
    """A function of a file: its name with what it is defined in, its first line (of its first decorator), its last."""

    name: str
    first: int
    last: int
    node: _Function


class UserSource(Sources):
    """Answers from the texts of files. One that this Python cannot read has no answers."""

    def __init__(self, sources: Iterable[SourceFile]) -> None:
        super().__init__(sources)
        self._definitions: dict[str, list[Definition]] = {}

    def _of(self, filename: str) -> list[Definition]:
        if filename not in self._definitions:
            self._definitions[filename] = list(_definitions(self.tree(filename)))
        return self._definitions[filename]

    def function_at(self, place: SourceLocation) -> Definition | None:
        """Return the innermost function around a place; a decorator counts as a part of its function."""
        around = [each for each in self._of(place.filename) if each.first <= place.line <= each.last]
        return max(around, key=lambda each: each.first, default=None)

    def name_at(self, place: SourceLocation, name: str = "") -> str:
        """Return ``Block.forward`` for a place in that method.

        ``name`` (torch's) where the text does not tell, or tells of another function.
        """
        definition = self.function_at(place)
        if definition is None or name and definition.name.rpartition(".")[2] != name:
            return name
        return definition.name

    def are_in_one_function(self, place: SourceLocation, other: SourceLocation) -> bool:
        """Return whether two places are in one function: by its name and file where the text does not tell."""
        named = [(each.filename, plain_name(each.function)) for each in (place, other)]
        functions = [self.function_at(each) for each in (place, other)]
        return named[0] == named[1] and (None in functions or functions[0] is functions[1])

    def end_of_statement(self, place: SourceLocation) -> int:
        """Return the last line of the simple statement that a place is in; its own line where the text tells none."""
        function = self.function_at(place)
        ends = [each.end_lineno or 0 for each in (nodes_within(function.node) if function is not None else ())
                if isinstance(each, ast.stmt) and not hasattr(each, "body")
                and each.lineno <= place.line <= (each.end_lineno or 0)]
        return min(ends, default=place.line)

    def end_of_rest(self, place: SourceLocation) -> int:
        """Return the last line that can run behind the statement of a place; that of its end where nothing does.

        Behind ``return`` and ``raise`` nothing runs but what a ``try`` around them still does.
        """
        function = self.function_at(place)
        return self.end_of_statement(place) if function is None else max(
            _end_behind(function.node, place.line)[0], self.end_of_statement(place))

    def loop_around(self, place: SourceLocation) -> int | None:
        """Return the line of the innermost loop of its function that a place is repeated in."""
        function = self.function_at(place)
        loops = loops_around(function.node, place.line) if function is not None else []
        return loops[-1].lineno if loops else None

    def tries_around(self, place: SourceLocation) -> list[int]:
        """Return the lines of the ``try`` statements of its function in whose body a place is, the outermost first."""
        function = self.function_at(place)
        return [] if function is None else sorted(
            each.lineno for each in nodes_within(function.node) if isinstance(each, ast.Try)
            and each.body[0].lineno <= place.line <= (each.body[-1].end_lineno or place.line))

    def contexts_of(self, place: SourceLocation, line: int) -> list[str]:
        """Return what the ``with`` statement at a line enters, around a place in the same function."""
        function = self.function_at(place)
        return [] if function is None else [
            ast.unparse(item.context_expr) for each in nodes_within(function.node)
            if isinstance(each, (ast.With, ast.AsyncWith)) and each.lineno <= line <= each.body[0].lineno
            and place.line <= (each.end_lineno or place.line) for item in each.items]

    def line(self, place: SourceLocation) -> str:
        """Return the text of a line, without its indentation."""
        lines = self.text(place.filename).splitlines()
        return lines[place.line - 1].strip() if 0 < place.line <= len(lines) else ""


def _definitions(tree: ast.Module | None) -> Iterator[Definition]:
    pending: list[tuple[ast.AST, str]] = [(tree, "")] if tree is not None else []
    while pending:
        node, owner = pending.pop()
        inner = owner
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            name = f"{owner}{node.name}"
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            yield Definition(name, first, node.end_lineno or node.lineno, node)
            inner = f"{name}."
        elif isinstance(node, ast.ClassDef):
            inner = f"{owner}{node.name}."
        pending += [(child, inner) for child in ast.iter_child_nodes(node)]


def nodes_within(function: _Function) -> Iterator[ast.AST]:
    """Yield the nodes of a function, those of functions and classes in it left out."""
    pending: list[ast.AST] = list(function.body)
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            pending += ast.iter_child_nodes(node)


def _end_behind(around: ast.AST, line: int) -> tuple[int, bool]:
    """Return the last line inside of a node that can run behind the statement at a line, and whether more can follow.

    0 for a line that no statement in the node has.
    """
    for block in blocks(around):
        for number, statement in enumerate(block):
            if not statement.lineno <= line <= (statement.end_lineno or statement.lineno):
                continue
            end, goes_on = _end_behind(statement, line)
            if not end:  # (it is the statement itself, or a test in its head)
                end, goes_on = statement.end_lineno or statement.lineno, not _leaves(statement)
            for each in block[number + 1 :] if goes_on else ():
                end, goes_on = each.end_lineno or each.lineno, not _leaves(each)
                if not goes_on:
                    break
            return _behind_block(around, block, end, goes_on)
    return 0, True


def _behind_block(around: ast.AST, block: list[ast.stmt], end: int, goes_on: bool) -> tuple[int, bool]:
    """Return the same for what a block is of: a loop may repeat all of itself, a ``try`` takes what leaves it."""
    if isinstance(around, Loop) and goes_on:
        return around.end_lineno or end, True
    if isinstance(around, ast.Try) and not goes_on:
        if around.handlers and block is around.body and any(
                isinstance(node, ast.Raise) for each in block for node in ast.walk(each)):
            return around.end_lineno or end, True
        return (around.finalbody[-1].end_lineno or end) if around.finalbody else end, False
    return end, goes_on


def _leaves(statement: ast.stmt) -> bool:
    """Return whether no statement behind one in its block can run next."""
    if isinstance(statement, ast.If):
        return bool(statement.orelse) and all(any(map(_leaves, block)) for block in blocks(statement))
    return isinstance(statement, (ast.Return, ast.Raise))
