"""Expressions and statements that are the same but for numbers that grow evenly.

::

    new(Layer, keys=out[1])
    new(Layer, keys=out[3])     new(Layer, keys=keys), with keys from out[1:4:2]
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..nodes import Transformer, copied, free_name
from . import global_names
from .global_names import GRAPH_RESULT

if TYPE_CHECKING:
    from .folding import Folder


class Index(NamedTuple):
    """``owner[number]`` somewhere in an expression."""

    owner: str
    number: int


class Comparison:
    """A comparison of trees that may be the same but for elements of lists at numbers that grow evenly.

    Attributes:
        differing: the variables for those elements, by owner, first number and step of each list.
    """

    def __init__(self, folder: Folder, taken: Iterable[str] = ()) -> None:
        self.folder = folder
        self.names = set(taken)
        self.differing: dict[tuple[str, int, int], str] = {}

    def common(self, items: Sequence[ast.AST], wanted: str = "value") -> ast.AST | None:
        """Return the tree that all items are, with variables for the elements at numbers that grow evenly.

        Returns:
            ``None`` if the items differ in another way.
        """
        first = items[0]
        kind = type(first)
        if any(type(item) is not kind for item in items):
            return None
        if len(set(map(ast.dump, items))) == 1:
            return first
        numbered = [index for item in items if (index := numbered_element(item, self.folder)) is not None]
        if len(numbered) == len(items) and len({index.owner for index in numbered}) == 1:
            return self._variable(numbered, wanted, is_graph=graph_item(first) is not None)
        result = kind()
        for field in kind._fields:
            values: list[Any] = [getattr(item, field, None) for item in items]
            if isinstance(values[0], list):
                same: Any = self._lists(first, field, values, wanted)
            elif isinstance(values[0], ast.AST):
                if None in values:
                    return None
                same = self.common(values, _hint(first, field, 0, values[0]) or wanted)
            elif all(type(value) is type(values[0]) and value == values[0] for value in values):
                setattr(result, field, values[0])
                continue
            else:
                return None
            if same is None:
                return None
            setattr(result, field, same)
        return result

    def _lists(self, owner: ast.AST, field: str, lists: list[Any], wanted: str) -> list[Any] | None:
        """Return the list that a field of all items is, with variables as in :meth:`common`, or ``None``."""
        if any(len(each) != len(lists[0]) for each in lists):
            return None
        parts: list[Any] = []
        for place, group in enumerate(zip(*lists)):
            if isinstance(group[0], ast.AST):
                part = self.common(group, _hint(owner, field, place, group[0]) or wanted)
                if part is None:
                    return None
                parts.append(part)
            elif len(set(group)) > 1:
                return None
            else:
                parts.append(group[0])
        return parts

    def _variable(self, numbered: list[Index], wanted: str, is_graph: bool) -> ast.Name | None:
        """Return the variable for elements of one list; ``None`` if their numbers do not grow evenly."""
        owner, start = numbered[0]
        step = numbered[1].number - start
        if not step or any(index.number != start + step * at for at, index in enumerate(numbered)):
            return None
        key = (owner, start, step)
        if key not in self.differing:
            name = wanted if is_graph else self.folder.name_for(owner, frozenset(self.names))
            self.differing[key] = name = free_name(name, self.names | self.folder.taken)
            self.names.add(name)
        return ast.Name(self.differing[key], ast.Load())


def _hint(owner: ast.AST, field: str, place: int, part: ast.AST) -> str:
    """Return the name of a part by its place: the attribute that it is stored to, a keyword, the key of an entry.

    ``""`` where it has none.
    """
    if isinstance(owner, ast.Assign) and field == "value" and isinstance(owner.targets[0], ast.Attribute):
        return owner.targets[0].attr
    if isinstance(owner, ast.keyword) and owner.arg:
        return owner.arg
    if isinstance(owner, ast.Dict) and field == "values":
        key = owner.keys[place]
        if isinstance(key, ast.Constant) and isinstance(key.value, str) and key.value.isidentifier():
            return key.value
    return ""


def numbered_element(item: ast.AST, folder: Folder) -> Index | None:
    """Return the list and number of ``out[3]`` or ``self.layers[3]``; ``None`` for any other expression."""
    pair = graph_item(item)
    if pair is not None:
        return Index(*pair)
    if isinstance(item, ast.Subscript) and isinstance(item.slice, ast.Constant) and type(item.slice.value) is int:
        path = folder.paths.of(item.value)
        if path is not None and folder.paths.facts.length(path):
            return Index(ast.unparse(item.value), item.slice.value)
    return None


def graph_item(node: ast.AST) -> tuple[str, int] | None:
    """Return ``("graph_out_0", 3)`` for ``graph_out_0[3]``; ``None`` for any other expression."""
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id.startswith(GRAPH_RESULT) \
            and isinstance(node.slice, ast.Constant) and type(node.slice.value) is int:
        return node.value.id, node.slice.value
    return None


class Substitution(Transformer):
    """A rewriting of variables as expressions."""

    def __init__(self, meant: Mapping[str, ast.expr]) -> None:
        self._meant = meant

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Return the expression for a name; the name itself if there is none."""
        return copied(self._meant.get(node.id, node))


def loop_over(names: Sequence[str], lists: Sequence[ast.expr]) -> tuple[ast.expr, ast.expr]:
    """Return the target and the iterable of a loop over lists side by side."""
    if len(names) == 1:
        return ast.Name(names[0], ast.Store()), lists[0]
    target = ast.Tuple([ast.Name(name, ast.Store()) for name in names], ast.Store())
    return target, ast.Call(ast.Name(global_names.SIDE_BY_SIDE, ast.Load()), list(lists), [])


def expression(text: str) -> ast.expr:
    """Return the tree of the text of an expression."""
    return ast.parse(text, mode="eval").body


def every(owner: ast.expr, first: int, step: int, count: int) -> ast.expr:
    """Return the slice of ``count`` elements of ``owner``, from ``first`` on by ``step``."""
    last = first + step * (count - 1)
    stop = last + 1 if step > 0 else last - 1 if last + step >= 0 else -1
    return sliced(owner, first, stop, step)


def sliced(owner: ast.expr, start: int, stop: int, step: int) -> ast.expr:
    """Return ``owner[start:stop:step]``; a negative ``stop`` is left out."""
    lower = ast.Constant(start)
    return ast.Subscript(owner, ast.Slice(
        lower, ast.Constant(stop) if stop >= 0 else None, ast.Constant(step) if step != 1 else None), ast.Load())
