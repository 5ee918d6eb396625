"""Expressions and statements that are the same but for numbers that grow evenly.

::

    new(Layer, keys=out[1])
    new(Layer, keys=out[3])     new(Layer, keys=keys), with keys from out[1:4:2]
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..names import free_name
from . import forms
from .global_names import GRAPH_RESULT

if TYPE_CHECKING:
    from .folding import Folder


class Index(NamedTuple):
    """``owner[number]`` somewhere in an expression."""

    owner: str
    number: int


class Hints:
    """Names for variables, from where their values stand."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self.names = set(taken)

    def give(self, wanted: str, folder: Folder) -> str:
        name = free_name(wanted, self.names | folder.taken)
        self.names.add(name)
        return name


def compared(
    items: Sequence[ast.AST], differing: dict[tuple[str, int, int], str], hints: Hints, folder: Folder,
    wanted: str = "value",
) -> ast.AST | None:
    """The node that all items are, with variables where they differ; ``None`` if they differ in another way."""
    first = items[0]
    if any(type(item) is not type(first) for item in items):
        return None
    if len({ast.dump(item) for item in items}) == 1:  # type: ignore[arg-type]
        return first  # type: ignore[return-value]
    numbered = [numbered_element(item, folder) for item in items]  # type: ignore[arg-type]
    if all(each is not None for each in numbered) and len({each.owner for each in numbered}) == 1:  # type: ignore
        numbers = [each.number for each in numbered]  # type: ignore[union-attr]
        step = numbers[1] - numbers[0]
        if step and all(after - before == step for before, after in zip(numbers, numbers[1:])):
            key = (numbered[0].owner, numbers[0], step)  # type: ignore[union-attr]
            if key not in differing:
                is_graph = graph_item(first) is not None  # type: ignore[arg-type]
                name = wanted if is_graph else folder.name_for(key[0], frozenset(hints.names))
                differing[key] = hints.give(name, folder)
            return ast.Name(differing[key], ast.Load())
        return None
    made = type(first)()
    for field in first._fields:
        values: list[Any] = [getattr(item, field, None) for item in items]
        if isinstance(values[0], list):
            if any(len(value) != len(values[0]) for value in values):
                return None
            parts = []
            for place, group in enumerate(zip(*values)):
                if isinstance(group[0], ast.AST):
                    hint = _hint(first, field, place, group[0]) or wanted
                    part = compared(group, differing, hints, folder, hint)
                    if part is None:
                        return None
                    parts.append(part)
                elif len(set(group)) > 1:
                    return None
                else:
                    parts.append(group[0])
            setattr(made, field, parts)
        elif isinstance(values[0], ast.AST):
            if any(value is None for value in values):
                return None
            part = compared(values, differing, hints, folder, _hint(first, field, 0, values[0]) or wanted)
            if part is None:
                return None
            setattr(made, field, part)
        elif any(type(value) is not type(values[0]) or value != values[0] for value in values):
            return None
        else:
            setattr(made, field, values[0])
    return made  # type: ignore[return-value]


def _hint(owner: ast.AST, field: str, place: int, part: ast.AST) -> str:
    """Return the name that a part has where it stands: the keyword of an argument, the key of an entry, an attribute;
    ``""`` where it has none."""
    if isinstance(owner, ast.Assign) and field == "value" and isinstance(owner.targets[0], ast.Attribute):
        return owner.targets[0].attr
    if isinstance(owner, ast.keyword) and owner.arg:
        return owner.arg
    if isinstance(owner, ast.Dict) and field == "values":
        key = owner.keys[place]
        if isinstance(key, ast.Constant) and isinstance(key.value, str) and key.value.isidentifier():
            return key.value
    return ""


def numbered_element(item: ast.expr, folder: Folder) -> Index | None:
    found = graph_item(item)
    if found is not None:
        return Index(*found)
    if isinstance(item, ast.Subscript) and isinstance(item.slice, ast.Constant) and type(item.slice.value) is int:
        path = folder.paths.of(item.value)
        if path is not None and folder.paths.facts.length(path):
            return Index(ast.unparse(item.value), item.slice.value)
    return None


def graph_item(node: ast.expr) -> tuple[str, int] | None:
    """``("graph_out_0", 3)`` of ``graph_out_0[3]``."""
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id.startswith(GRAPH_RESULT) \
            and isinstance(node.slice, ast.Constant) and type(node.slice.value) is int:
        return node.value.id, node.slice.value
    return None


def loop_over(names: Sequence[str], lists: Sequence[ast.expr]) -> tuple[ast.expr, ast.expr]:
    """The target of a loop, and what it goes over."""
    if len(names) == 1:
        return ast.Name(names[0], ast.Store()), lists[0]
    target = ast.Tuple([ast.Name(name, ast.Store()) for name in names], ast.Store())
    return target, ast.Call(ast.Name(forms.SIDE_BY_SIDE, ast.Load()), list(lists), [])


def expression(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def every(owner: ast.expr, first: int, step: int, count: int) -> ast.expr:
    """The slice of so many elements."""
    last = first + step * (count - 1)
    stop = last + 1 if step > 0 else last - 1 if last + step >= 0 else -1
    return sliced(owner, first, stop, step)


def sliced(owner: ast.expr, start: int, stop: int, step: int) -> ast.expr:
    lower = ast.Constant(start)
    return ast.Subscript(owner, ast.Slice(
        lower, ast.Constant(stop) if stop >= 0 else None, ast.Constant(step) if step != 1 else None), ast.Load())
