"""Facts about a place from the text of the user's files: which function it is in, which loop surrounds it."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Sequence

from ..advice.source import Function, Sources, blocks, last_name, loops_around, names_set, path_to
from ..records.model import CacheEntry, Compilation, SourceFile, SourceLocation
from ..torch_text.global_names import plain_name
from ..torch_text.libraries import is_library
from ..torch_text.parsed import parsed_file
from ..torch_text.user_expressions import user_expression
from ..values import frozen
from .markdown import code


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


# --- Numbers in compiled code where the program has text: an error of torch 2.13 ----------------------
# (2.15 raises an internal error.) Torch takes an f-string of nothing but a number that it leaves open for that number:
#
#     self.msg = f"{n:.3f}"     the program
#     self.msg = n              the transformed code
#
# Where a graph breaks inside an f-string, the number is passed to what makes the text, which raises:
#
#     print(f"{n}: {loss.item()}")                                  the program
#     return __resume_at_20_1(print, n, ': ', loss.item())          the transformed code
#
# It is reported only where both are certain: the transformed code has an open number, and all lines that torch traced
# have such a text.
#: What may set an attribute without naming it.
_INDIRECT = frozenset({"setattr", "vars", "__setattr__", "__dict__"})


@frozen
class NumberForText:
    """A number that compiled code has in place of a text."""

    where: str  # what is set to it, `"self.msg"`; `""` where it is returned or passed on
    number: str
    text: str  # the f-string, as in the program
    place: SourceLocation
    # the part of an f-string with a graph break for which the number is passed on, which raises, `"{n}"`; else `""`
    piece: str = ""

    @property
    def sentence(self) -> str:
        """Return what compiled code does in place of the program, without the function.

        ``sets self.msg to the number n, where your program has the text f"{n:.3f}"``, as Markdown.
        """
        if self.piece:
            return f"hands the number {code(self.number)} on over the graph break in {code(self.text)}, where your " \
                f"program has the text of {code(self.piece)}"
        does = f"sets {code(self.where)} to" if self.where else "returns"
        return f"{does} the number {code(self.number)}, where your program has the text {code(self.text)}"


def numbers_for_text(entry: CacheEntry, compilation: Compilation, source: UserSource) -> list[NumberForText]:
    """Return the numbers that a version sets attributes to, or returns, where the program has text."""
    numbers = {user_expression(each.source) for each in compilation.symbols
               if each.kind == "created" and each.source and ".size()" not in each.source}
    if not numbers:
        return []
    body = _body(entry.transformed.source.text)
    traced = _Traced(compilation, source)
    found = []
    for statement in body:
        match statement:
            case ast.Assign([target], value) if (number := _place(value)) in numbers:
                if (where := _attribute(target)) and (text := traced.only_text_set_to(where.rpartition(".")[2])):
                    found.append(NumberForText(where, number, *text))
            case ast.Return(value) if value is not None:
                found += [NumberForText("", *each) for each in traced.returned_text(value, numbers)]
    return found + traced.handed_on(body, numbers.difference(*map(names_set, body)))


def _body(text: str) -> list[ast.stmt]:
    match parsed_file(text[max(text.find("def "), 0):]):
        case ast.Module([ast.FunctionDef(body=body)]):
            return body
    return []


def _place(node: ast.expr) -> str:
    """Return a variable, attribute or item as text; ``""`` for what is computed, which may be of any depth."""
    return ast.unparse(node) if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) else ""


def _attribute(target: ast.expr) -> str:
    """Return the attribute that is set: of ``self.msg``, and of ``vars(self)['msg']``; ``""`` for anything else."""
    match target:
        case ast.Attribute():
            return ast.unparse(target)
        case ast.Subscript(ast.Call(ast.Name("vars"), [owner]), ast.Constant(str(name))):
            return f"{ast.unparse(owner)}.{name}"
    return ""


class _Traced:
    """The user's lines that torch traced in a compilation, as syntax."""

    def __init__(self, compilation: Compilation, source: UserSource) -> None:
        self.compilation, self.source = compilation, source
        self._lines = {each.filename: frozenset(each.lines) for each in compilation.traced
                       if not is_library(each.filename)}

    def only_text_set_to(self, attribute: str) -> tuple[str, SourceLocation] | None:
        """Return the text that these lines set an attribute to, of whatever object; ``None`` if not that alone."""
        texts: dict[ast.AST, tuple[str, SourceLocation]] = {}
        sets: list[ast.Attribute] = []
        for filename, lines in self._lines.items():
            if (tree := self.source.tree(filename)) is None:
                return None
            for node in ast.walk(tree):
                if getattr(node, "lineno", 0) not in lines:
                    continue
                if isinstance(node, (ast.Name, ast.Attribute)) and last_name(node) in _INDIRECT:
                    return None
                if isinstance(node, ast.Attribute) and node.attr == attribute and not isinstance(node.ctx, ast.Load):
                    sets.append(node)
                if isinstance(node, ast.Assign) and _is_number_as_text(node.value):
                    texts |= dict.fromkeys(node.targets, self._text(filename, node.value))
        return texts[sets[0]] if sets and all(each in texts for each in sets) else None

    def returned_text(self, value: ast.expr, numbers: Collection[str]) -> list[tuple[str, str, SourceLocation]]:
        """Return the numbers of what transformed code returns for which the one ``return`` of the function has text."""
        where = self.compilation.location
        definition = self.source.function_at(where) if where is not None else None
        if where is None or definition is None:
            return []
        lines = self._lines.get(where.filename, frozenset())
        returns = [each.value for each in nodes_within(definition.node)
                   if isinstance(each, ast.Return) and each.lineno in lines]
        if len(returns) != 1 or returns[0] is None:
            return []
        found, written = (each.elts if isinstance(each, ast.Tuple) else [each] for each in (value, returns[0]))
        return [(number, *self._text(where.filename, text)) for one, text in zip(found, written)
                if len(found) == len(written) and _is_number_as_text(text) and (number := _place(one)) in numbers]

    def handed_on(self, body: Sequence[ast.stmt], numbers: Collection[str]) -> list[NumberForText]:
        """Return the numbers that transformed code passes on for pieces of the f-strings in which its graph breaks."""
        places = {(place.filename, place.line) for broken in self.compilation.breaks
                  for place in broken.stack[-broken.depth:] if not is_library(place.filename)}
        texts = [(filename, node) for filename, line in sorted(places)
                 for node in ast.walk(self.source.tree(filename) or ast.Module([], []))
                 if isinstance(node, ast.JoinedStr) and node.lineno <= line <= (node.end_lineno or 0)]
        if not texts:
            return []
        handed = [each.args if isinstance(each, ast.Call) else each.elts for statement in body
                  for each in ast.walk(statement) if isinstance(each, (ast.Call, ast.List, ast.Tuple))]
        found = []
        for filename, text in texts:
            begins = [_handed_on(text.values, given[at:]) for given in handed for at in range(len(given))]
            for piece, one in (each for begin in begins for each in begin):
                if (number := _place(one)) in numbers and number == ast.unparse(piece.value):
                    shown = ast.get_source_segment(self.source.text(filename), piece) or ""
                    shown = shown if shown.startswith("{") else f"{{{number}}}"  # (up to Python 3.11: of the whole)
                    found.append(NumberForText("", number, *self._text(filename, text), shown))
        return found

    def _text(self, filename: str, node: ast.expr) -> tuple[str, SourceLocation]:
        text = ast.get_source_segment(self.source.text(filename), node) or ""
        written = text if text and "\n" not in text else ast.unparse(node)
        return written, SourceLocation(filename, node.lineno)


def _handed_on(pieces: Sequence[ast.expr], given: Sequence[ast.expr]) -> list[tuple[ast.FormattedValue, ast.expr]]:
    """Return what is passed on for the values of an f-string whose first pieces ``given`` are; else nothing."""
    values, has_text = [], False
    for piece, one in zip(pieces, given):
        if isinstance(piece, ast.FormattedValue):
            values.append((piece, one))
        elif isinstance(piece, ast.Constant) and isinstance(one, ast.Constant) and one.value == piece.value:
            has_text = True
        else:  # (The value before it may be the value at which the graph breaks, or none of this text at all.)
            return values[:-1] if has_text else []
    return values if has_text else []


def _is_number_as_text(node: ast.expr) -> bool:
    """Return whether an expression is an f-string of one value and nothing else."""
    return isinstance(node, ast.JoinedStr) and len(node.values) == 1 and isinstance(node.values[0], ast.FormattedValue)
