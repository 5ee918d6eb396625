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


class _Unlike(Exception):
    """The items differ in more than the numbers of elements."""


class Comparison:
    """A comparison of trees that may be the same but for elements of lists at numbers that grow evenly.

    Attributes:
        differing: the variables for those elements, by owner, first number and step of each list.
    """

    def __init__(self, folder: Folder, taken: Iterable[str] = ()) -> None:
        self.folder = folder
        self.names = set(taken)
        self.differing: dict[tuple[str, int, int], str] = {}

    def common(self, items: Sequence[ast.AST]) -> ast.AST | None:
        """Return the tree that all items are, with variables for the elements at numbers that grow evenly.

        Returns:
            ``None`` if the items differ in another way, or not at all.
        """
        try:
            same: ast.AST = self._common(items, "value")
        except _Unlike:
            return None
        return same if self.differing else None

    def _common(self, items: Sequence[Any], wanted: str | Sequence[str]) -> Any:
        """Return one part for several that are alike: nodes, lists, or values of fields; ``wanted`` names variables."""
        first = items[0]
        if any(type(item) is not type(first) for item in items):
            raise _Unlike
        if isinstance(first, list):
            if any(len(item) != len(first) for item in items):
                raise _Unlike
            names = [wanted] * len(first) if isinstance(wanted, str) else wanted
            return [self._common(group, name) for group, name in zip(zip(*items), names)]
        if not isinstance(first, ast.AST):
            if any(item != first for item in items):
                raise _Unlike
            return first
        if len(set(map(ast.dump, items))) == 1:
            return first
        numbered = [index for item in items if (index := numbered_element(item, self.folder)) is not None]
        if len(numbered) == len(items) and len({index.owner for index in numbered}) == 1:
            assert isinstance(wanted, str)
            return self._variable(numbered, wanted if graph_item(first) is not None else "")
        result = type(first)()
        for field in first._fields:
            setattr(result, field, self._common([getattr(item, field, None) for item in items],
                                                _hints(first, field, wanted)))
        return result

    def _variable(self, numbered: list[Index], wanted: str) -> ast.Name:
        """Return the variable for elements of one list; without a wanted name, it is called like the list."""
        owner, start = numbered[0]
        step = numbered[1].number - start
        if not step or any(index.number != start + step * at for at, index in enumerate(numbered)):
            raise _Unlike
        key = (owner, start, step)
        if key not in self.differing:
            name = free_name(wanted or self.folder.name_for(owner, frozenset(self.names)),
                             self.names | self.folder.taken)
            self.differing[key] = name
            self.names.add(name)
        return ast.Name(self.differing[key], ast.Load())


def _hints(owner: ast.AST, field: str, wanted: str | Sequence[str]) -> str | Sequence[str]:
    """Return the name of a field by its place, or those of its parts: the attribute stored to, a keyword, the key."""
    match owner:
        case ast.Assign([ast.Attribute(_, name)]) if field == "value":
            return name
        case ast.keyword(str(name)):
            return name
        case ast.Dict(keys) if field == "values":
            return [str(key.value) if isinstance(key, ast.Constant) and str(key.value).isidentifier()
                    and isinstance(key.value, str) else str(wanted) for key in keys]
    return wanted


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


def sliced(owner: ast.expr, start: int, stop: int, step: int) -> ast.expr:
    """Return ``owner[start:stop:step]``; a negative ``stop`` is left out."""
    lower = ast.Constant(start)
    return ast.Subscript(owner, ast.Slice(
        lower, ast.Constant(stop) if stop >= 0 else None, ast.Constant(step) if step != 1 else None), ast.Load())
