"""Facts about a place from the text of the user's files: which function it is in, which loop surrounds it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from ..advice.source import Function, Sources, blocks, loops_around, path_to
from ..records.model import SourceFile, SourceLocation
from ..torch_text.global_names import plain_name
from ..values import frozen


@frozen
class Definition:
    """A function of a file: its name with what it is defined in, its first line (of its first decorator), its last."""

    name: str
    first: int
    last: int
    node: Function


class UserSource(Sources):
    """Answers from the texts of files. One that this Python cannot read has no answers."""

    def __init__(self, sources: Iterable[SourceFile]) -> None:
        super().__init__(sources)
        self._definitions: dict[str, list[Definition]] = {}

    def function_at(self, place: SourceLocation) -> Definition | None:
        """Return the innermost function around a place; a decorator counts as a part of its function."""
        if place.filename not in self._definitions:
            self._definitions[place.filename] = list(definitions(self.tree(place.filename)))
        around = [each for each in self._definitions[place.filename] if each.first <= place.line <= each.last]
        return max(around, key=lambda each: each.first, default=None)

    def name_at(self, place: SourceLocation, name: str = "") -> str:
        """Return ``Block.forward`` for a place in that method; torch's name where the text names another or none."""
        definition = self.function_at(place)
        if definition is None or name and definition.name.rpartition(".")[2] != name:
            return name
        return definition.name

    def are_in_one_function(self, place: SourceLocation, other: SourceLocation) -> bool:
        """Return whether two places are in one function: by its name and file where the text does not say."""
        named = [(each.filename, plain_name(each.function)) for each in (place, other)]
        functions = [self.function_at(each) for each in (place, other)]
        return named[0] == named[1] and (None in functions or functions[0] is functions[1])

    def end_of_statement(self, place: SourceLocation) -> int:
        """Return the last line of the simple statement that a place is in; its own line where the text has none."""
        steps = list(path_to(self.tree(place.filename) or ast.Module([], []), place.line))
        return place.line if not steps or hasattr(steps[-1][-1], "body") else steps[-1][-1].end_lineno or place.line

    def loop_around(self, place: SourceLocation) -> int | None:
        """Return the line of the innermost loop of its function that a place is repeated in."""
        function = self.function_at(place)
        loops = loops_around(function.node, place.line) if function is not None else []
        return loops[-1].lineno if loops else None

    def statements_around(self, place: SourceLocation, *kinds: type[ast.Try | ast.With | ast.AsyncWith]) -> list[int]:
        """Return the lines of the statements of its function in whose body a place is, the outermost first."""
        function = self.function_at(place)
        return [] if function is None else [
            around.lineno for around, block, _ in path_to(function.node, place.line)
            if isinstance(around, kinds) and block is around.body]

    def line(self, place: SourceLocation) -> str:
        """Return the text of a line, without its indentation."""
        lines = self.text(place.filename).splitlines()
        return lines[place.line - 1].strip() if 0 < place.line <= len(lines) else ""


def definitions(tree: ast.Module | None) -> Iterator[Definition]:
    """Yield the functions of a file; none of one that this Python cannot read."""
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
        pending += [(child, inner) for block in blocks(node) for child in block]


def nodes_within(function: Function) -> Iterator[ast.AST]:
    """Yield the nodes of a function, those of functions and classes in it left out."""
    pending: list[ast.AST] = list(function.body)
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            pending += ast.iter_child_nodes(node)
