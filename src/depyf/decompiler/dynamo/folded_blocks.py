"""Statements that are the same for each element of a list are written once, as a loop.

::

    layers_0 = cache.layers[0]
    layers_1 = cache.layers[1]
    layers_1.keys = out[3]                  for layer, keys in zip(cache.layers[1::-1], out[3::-2]):
    layers_1.is_initialized = True              layer.keys = keys
    layers_0.keys = out[1]                      layer.is_initialized = True
    layers_0.is_initialized = True

The elements are read before the first turn, as a slice does.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from ..trees import Transformer, copied, nodes_of
from .alike import Comparison
from .live_paths import text_of

if TYPE_CHECKING:
    from .folding import Folder

#: As many statements become a loop.
_SHORTEST = 4


def fold_blocks(body: list[ast.stmt], folder: Folder, stores: Collection[int] = ()) -> bool:
    """Fold what repeats in a body, in place; return whether anything was."""
    elements = dict(_elements(body, folder))
    at, folded = 0, False
    while at < len(body):
        blocks = _stores(body, at, folder, stores)
        if blocks:
            count = sum(map(len, blocks.values()))
            loop = _loop(blocks, {}, folder) if len(blocks) > 1 and count >= _SHORTEST else None
            if loop is not None:
                body[at : at + count] = [loop]
                folded = True
            at += 1 if loop is not None else count
            continue
        blocks = _blocks(body, at, elements)
        count = sum(map(len, blocks.values()))
        if len(blocks) < 2 or count < _SHORTEST:
            at += max(count, 1)
            continue
        held = {name: index for index in _held_before(body, at, folder) if (name := _bound(body[index])) in blocks}
        uses = sum(isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in blocks
                   for node in nodes_of(ast.Module(body, [])))
        loop = _loop(blocks, elements, folder) if held.keys() == blocks.keys() and uses == count else None
        if loop is None:
            at += count
            continue
        body[at : at + count] = [loop]
        for index in sorted(held.values(), reverse=True):
            del body[index]
        at += 1 - len(held)
        folded = True
    return folded


def _elements(body: list[ast.stmt], folder: Folder) -> Iterator[tuple[str, ast.expr]]:
    """Yield variables that hold elements of lists, each with the expression of the element."""
    for statement in body:
        name = _bound(statement)
        if name and folder.paths.of(ast.Name(name, ast.Load())) is not None:
            assert isinstance(statement, ast.Assign)
            if len(folder.elements_in(statement.value)) == 1:
                yield name, statement.value


def _bound(statement: ast.stmt) -> str:
    """Return the variable that a statement assigns to alone; else an empty string."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1 \
            and isinstance(statement.targets[0], ast.Name):
        return statement.targets[0].id
    return ""


def _held_before(body: list[ast.stmt], at: int, folder: Folder) -> list[int]:
    """Return the indices of the statements that bind variables directly before one, with nothing observable between."""
    begin = at
    while begin and folder.paths.of(ast.Name(_bound(body[begin - 1]), ast.Load())) is not None and _bound(
            body[begin - 1]):
        begin -= 1
    return list(range(begin, at))


def _blocks(body: list[ast.stmt], at: int, elements: dict[str, ast.expr]) -> dict[str, list[ast.stmt]]:
    """Return the stores in a row of attributes of elements, as blocks of one length by the variable of the element."""
    blocks: dict[str, list[ast.stmt]] = {}
    last = ""
    for statement in body[at:]:
        target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
        name = target.value.id if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) else ""
        if name not in elements or name != last and name in blocks:
            break
        blocks.setdefault(name, []).append(statement)
        last = name
    return _of_one_length(blocks)


def _stores(body: list[ast.stmt], at: int, folder: Folder, stores: Collection[int]) -> dict[str, list[ast.stmt]]:
    """Return the stores in a row of buffers inside elements, as blocks of one length by the text of the module."""
    blocks: dict[str, list[ast.stmt]] = {}
    last = ""
    for statement in body[at:]:
        if id(statement) not in stores:
            break
        assert isinstance(statement, ast.Assign) and isinstance(target := statement.targets[0], ast.Attribute)
        owner = text_of(target.value)
        if owner != last and owner in blocks or not folder.elements_in(target.value):
            break
        blocks.setdefault(owner, []).append(statement)
        last = owner
    return _of_one_length(blocks)


def _of_one_length(blocks: dict[str, list[ast.stmt]]) -> dict[str, list[ast.stmt]]:
    """Return the leading blocks that are as long as the first."""
    size = len(next(iter(blocks.values()), ()))
    same: dict[str, list[ast.stmt]] = {}
    for name, block in blocks.items():
        if len(block) != size:
            break
        same[name] = block
    return same


def _loop(blocks: dict[str, list[ast.stmt]], elements: dict[str, ast.expr], folder: Folder) -> ast.For | None:
    """Return one loop for blocks that are the same but for the element; ``None`` if they differ in another way."""
    turns = [ast.Module([_Elements(elements).visit(copied(statement)) for statement in block], [])
             for block in blocks.values()]
    comparison = Comparison(folder, folder.variables)
    same = comparison.common(turns)
    if not isinstance(same, ast.Module) or not comparison.differing:
        return None
    target, over = folder.loop(comparison.differing, len(turns))
    folder.taken.update(comparison.differing.values())
    return ast.fix_missing_locations(ast.For(target, over, same.body, [], lineno=1, col_offset=0))


class _Elements(Transformer):
    """A rewriting of variables as the elements that they hold."""

    def __init__(self, elements: dict[str, ast.expr]) -> None:
        self._elements = elements

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return copied(self._elements.get(node.id, node))
