"""Numbers in compiled code where the program has text: an error of torch 2.13 (2.15 raises an internal error).

Torch takes an f-string of nothing but a number that it leaves open for that number::

    self.msg = f"{n:.3f}"     the program
    self.msg = n              the transformed code

Where a graph breaks inside an f-string, the number is passed to what makes the text, which raises::

    print(f"{n}: {loss.item()}")                                  the program
    return __resume_at_20_1(print, n, ': ', loss.item())          the transformed code

It is reported only where both are certain: the transformed code has an open number, and all lines that torch traced
have such a text.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Sequence

from ..advice.source import last_name, names_set
from ..records.model import CacheEntry, Compilation, SourceLocation
from ..torch_text.libraries import is_library
from ..torch_text.parsed import parsed_file
from ..torch_text.user_expressions import user_expression
from ..values import frozen
from .markdown import code
from .user_source import UserSource, nodes_within

#: What may set an attribute without naming it.
_INDIRECT = frozenset({"setattr", "vars", "__setattr__", "__dict__"})


@frozen
class NumberForText:
    """A number that compiled code has in place of a text.

    Attributes:
        where: what is set to it, ``"self.msg"``; ``""`` where it is returned or passed on.
        text: the f-string, as in the program.
        piece: the part of an f-string with a graph break for which the number is passed on, which raises, ``"{n}"``;
            else ``""``.
    """

    where: str
    number: str
    text: str
    place: SourceLocation
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


def _handed_on(
    pieces: Sequence[ast.expr], given: Sequence[ast.expr],
) -> list[tuple[ast.FormattedValue, ast.expr]]:
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
