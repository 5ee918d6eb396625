"""The user's statement at a place: found in the text of the file, with what surrounds it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cached_property

from ..records.model import GraphBreak, SourceFile, SourceLocation
from ..torch_text.libraries import is_library
from ..torch_text.met import met
from ..torch_text.parsed import parsed_file
from ..values import frozen

Function = ast.FunctionDef | ast.AsyncFunctionDef
Loop = ast.For | ast.AsyncFor | ast.While


@frozen
class Site:
    """A break with the statement that it is in."""

    broken: GraphBreak  # torch's record
    where: SourceLocation | None  # the last place of its stack that is the user's
    statement: ast.stmt | None = None  # the innermost statement there; `None` where the file cannot be read
    following: ast.stmt | None = None  # the statement after it in the same block
    function: Function | None = None  # the function around it
    text: str = ""  # the text of the file, `""` where it is not known
    module: ast.Module | None = None  # the syntax tree of the file
    editable: bool = False  # the file is the user's own: not installed
    is_tried: bool = True  # `depyf fix` tries changes of it: the break is in a compilation's list, and made none fail

    @cached_property
    def lines(self) -> list[str]:
        """The lines of the file."""
        return self.text.splitlines()


def last_name(node: ast.AST) -> str:
    """Return the last name of a variable or attribute, ``seen`` of ``self.seen``; ``""`` for another expression."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


class Sources:
    """The user's files, parsed when they are asked for."""

    def __init__(self, files: Iterable[SourceFile]) -> None:
        self._texts = {file.path: file.text for file in files}
        self._trees: dict[str, ast.Module | None] = {}

    def text(self, filename: str) -> str:
        """Return the text of a file; ``""`` where it is not known."""
        return self._texts.get(filename, "")

    def tree(self, filename: str) -> ast.Module | None:
        """Return the syntax tree of a file; ``None`` where there is none."""
        if filename not in self._trees:
            self._trees[filename] = parsed_file(self.text(filename)) if self.text(filename) else None
        return self._trees[filename]

    def site(self, broken: GraphBreak) -> Site:
        """Return the statement that a break is in, as far as the text is known."""
        where = next((place for place in reversed(broken.stack) if not is_library(place.filename)), None)
        tree = self.tree(where.filename) if where is not None else None
        if where is None or tree is None:  # (the line is all that is known)
            return Site(broken, where, parsed_statement(where.text) if where is not None else None)
        steps = [(block, each) for _, block, each in path_to(tree, where.line)]
        # (Of `if x.any(): break` both statements are on the line.)
        tests = [(block, each) for block, each in steps if isinstance(each, (ast.If, ast.While))
                 and each.lineno == where.line and met(broken).kind.startswith("branch")]
        statement = following = None
        for block, statement in tests[:1] or steps[-1:]:
            following = next(iter(block[block.index(statement) + 1:]), None)
        return Site(broken, where, statement, following, function_at(tree, where.line), self.text(where.filename), tree,
                    is_own(where.filename))


def is_own(filename: str) -> bool:
    """Return whether a file is the user's to change: neither torch's nor installed."""
    return not is_library(filename) and "site-packages" not in filename and "dist-packages" not in filename \
        and not filename.startswith("<")


def parsed_statement(line: str) -> ast.stmt | None:
    """Return the statement that a line is, or begins; ``None`` where it is none."""
    tree = parsed_file(line.strip()) or parsed_file(f"{line.strip()} pass")
    return tree.body[0] if tree is not None and len(tree.body) == 1 else None


def blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """Yield the blocks of statements of a node, in order."""
    for name in ("body", "handlers", "cases", "orelse", "finalbody"):
        block = getattr(node, name, None)
        if isinstance(block, list) and block:
            yield from [block] if isinstance(block[0], ast.stmt) else (each.body for each in block)


def path_to(tree: ast.AST, line: int) -> Iterator[tuple[ast.AST, list[ast.stmt], ast.stmt]]:
    """Yield the steps from a tree down to a line: the node around the next statement, its block, and itself."""
    around: ast.AST | None = tree
    while around is not None:
        step = next(((block, statement) for block in blocks(around) for statement in block
                     if statement.lineno <= line <= (statement.end_lineno or statement.lineno)), None)
        if step is None:
            return
        yield around, *step
        around = step[1]


def function_at(tree: ast.Module, line: int) -> Function | None:
    """Return the innermost function around a line."""
    return next((inner for *_, inner in reversed(list(path_to(tree, line))) if isinstance(inner, Function)), None)


def parameters(function: Function) -> list[str]:
    """Return the names of a function's parameters."""
    return [each.arg for each in ast.walk(function.args) if isinstance(each, ast.arg)]


def variables(function: Function) -> list[str]:
    """Return the variables of a function, its parameters first."""
    return list(dict.fromkeys((*parameters(function), *sorted(names_set(function)))))


def called(call: ast.Call) -> str:
    """Return the name that a call is written with, without what it is an attribute of."""
    return last_name(call.func)


def stored_names(nodes: Iterable[ast.AST]) -> set[str]:
    """Return the variables that some of the nodes set."""
    return {each.id for each in nodes if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}


def names_set(tree: ast.AST) -> set[str]:
    """Return the variables that are set somewhere in a tree."""
    return stored_names(ast.walk(tree))


def own_parts(statement: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a statement without those of the statements in it."""
    for child in ast.iter_child_nodes(statement):
        if not isinstance(child, (ast.stmt, ast.excepthandler, ast.match_case)):
            yield from ast.walk(child)


def loops_around(function: Function, line: int) -> list[Loop]:
    """Return the loops of a function that repeat a line of it, the outermost first.

    The iterable of a ``for`` is evaluated once, and so is an ``else``.
    """
    steps = list(path_to(function, line))
    found: list[Loop] = [around for around, block, _ in steps if isinstance(around, Loop) and block is around.body]
    last = steps[-1][-1] if steps else None
    if isinstance(last, ast.While) and line < last.body[0].lineno:
        found.append(last)
    return found
