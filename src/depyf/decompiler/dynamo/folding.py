"""Folding: what repeats from layer to layer is written once, as an expression over the layers.

::

    f(self.layers[0].norm.weight, self.layers[0].proj.weight, self.layers[1].norm.weight, self.layers[1].proj.weight)

    f(*(value for layer in self.layers for value in (
        layer.norm.weight,
        layer.proj.weight,
    )))

and of a list of objects that differ only in the layer, or in which item of a graph's result they contain::

    [new(Layer, keys=out[1], values=out[0]), new(Layer, keys=out[3], values=out[2])]

    [new(Layer, keys=keys, values=values) for keys, values in zip(out[1:4:2], out[0:3:2])]

and statements that are the same for each layer (a loop).

:mod:`.written_out` takes it back, and what it gives is proven. So a mistake here costs the folding, never the meaning.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ..nodes import KINDS, Transformer, copied, free_name, nodes_of
from . import global_names
from .facts import LivePaths, text_of
from .global_names import GRAPH_RESULT

#: As many statements become a loop.
_SHORTEST_LOOP = 4
#: As many items of a graph, or elements of a list, in a row become a slice.
_SHORTEST_SLICE = 4


#: The nodes that are abbreviations in a text that is folded.
_ABBREVIATIONS = frozenset[type[ast.AST]]({ast.GeneratorExp, ast.ListComp, ast.Starred, ast.For})


def fold(tree: ast.Module, paths: LivePaths, taken: Collection[str]) -> Collection[type[ast.AST]]:
    """Fold what repeats in a function, in place; return the kinds of nodes that are abbreviations in it.

    They are known by that the program has none of them: where it has comprehensions, nothing is folded.
    """
    folded = _ABBREVIATIONS.difference(map(type, nodes_of(tree)))
    if ast.GeneratorExp not in folded or ast.ListComp not in folded:
        return ()
    folder = Folder(paths, set(taken), may_star=ast.Starred in folded)
    folder.visit(tree)
    function = tree.body[0]
    assert isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef))
    if ast.For in folded:
        fold_blocks(function.body, folder)
    return folded


class Folder(Transformer):
    """A folding, in place, of arguments and displays that repeat from element to element of a list.

    ``taken``: names that new variables may not have. ``may_star``: whether the elements of a list may become ``*list``.
    """

    def __init__(self, paths: LivePaths, taken: set[str], may_star: bool) -> None:
        self.paths, self.taken, self.may_star = paths, taken, may_star
        self.value: str = ""
        #: Variables of comprehensions.
        self.variables: set[str] = set()

    # --- arguments ----------------------------------------------------------------------------------
    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Fold positional arguments that repeat from element to element, and runs of a graph's results."""
        self.generic_visit(node)
        if len(node.args) > 1:
            used = {part.id for part in nodes_of(node) if isinstance(part, ast.Name) and part.id in self.variables}
            node.args = self.slices(self.over_layers(node.args, used))
        return node

    def over_layers(self, items: list[ast.expr], used: set[str]) -> list[ast.expr]:
        """Return items with the runs that repeat from element to element of a list folded."""
        places = [self.elements_in(item) for item in items]
        found: defaultdict[Index, list[int]] = defaultdict(list)
        for at, indices in enumerate(places):
            for index in indices:
                found[index].append(at)
        result: list[ast.expr] = []
        at = 0
        while at < len(items):
            best = None
            for owner, number in places[at]:
                # (A turn ends where the next element begins.)
                end = next((each for each in found.get(Index(owner, number + 1), ()) if each > at), 0)
                run = self.run(items, at, end - at, used) if end else None
                if run is not None and (best is None or run.covers > best.covers):
                    best = run
            result.append(items[at] if best is None else self.repeated(best, used))
            at += 1 if best is None else best.covers
        return result

    def run(self, items: list[ast.expr], start: int, size: int, used: set[str]) -> _Run | None:
        """Return the run that begins at an item and has ``size`` of them in a turn; ``None`` if there is no second."""
        turns = [ast.Tuple(items[at : at + size], ast.Load()) for at in range(start, len(items) - size + 1, size)]
        count = 1
        while count < len(turns) and self.follows(*turns[count - 1 : count + 1]):
            count += 1
        comparison = Comparison(self, used)
        same = comparison.common(turns[:count]) if count > 1 else None
        names = set(comparison.differing.values())
        if same is None or not all(
                any(isinstance(node, ast.Name) and node.id in names for node in nodes_of(item)) for item in same.elts):
            return None
        run = _Run(same.elts, comparison.differing, count)
        return run if not run.is_list or self.may_star and count >= _SHORTEST_SLICE else None

    def follows(self, turn: ast.expr, following: ast.expr) -> bool:
        """Return whether a turn is that for the next elements."""
        comparison = Comparison(self)
        same = comparison.common((turn, following))
        return same is not None and all(step == 1 for _, _, step in comparison.differing)

    def elements_in(self, item: ast.expr) -> list[Index]:
        """Return the elements of lists that an expression goes through, outermost first."""
        elements = [index for node in nodes_of(item) if graph_item(node) is None and (index := self.element(node))]
        return sorted(elements, key=lambda each: len(each.owner))

    def element(self, node: ast.AST) -> Index | None:
        """Return the list and number of ``out[3]`` or ``self.layers[3]``; ``None`` for any other expression."""
        index = graph_item(node)
        if index is None and isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) \
                and type(node.slice.value) is int:
            path = self.paths.of(node.value)
            if path is not None and self.paths.facts.length(path):
                return Index(text_of(node.value), node.slice.value)
        return index

    def repeated(self, run: _Run, used: set[str]) -> ast.Starred:
        """Return a run as one starred item: the list itself, or a generator expression over its elements."""
        target, over = self.loop(run.differing, run.turns)
        if run.is_list:
            return ast.Starred(over, ast.Load())
        names = run.differing.values()
        for (owner, number, _), name in run.differing.items():
            element = self.paths.of(expression(f"{owner}[{number}]"))
            self.paths.known[name] = element
        block = self.over_layers(run.block, used.union(names))
        for name in names:
            del self.paths.known[name]
        self.variables.update(names)
        loops = [ast.comprehension(target, over, [], 0)]
        if len(block) == 1 and not isinstance(block[0], ast.Starred):
            return ast.Starred(ast.GeneratorExp(block[0], loops), ast.Load())
        if not self.value:
            self.value = free_name("value", self.taken)
            self.taken.add(self.value)
        inner = ast.Tuple(block, ast.Load())
        loops.append(ast.comprehension(ast.Name(self.value, ast.Store()), inner, [], 0))
        return ast.Starred(ast.GeneratorExp(ast.Name(self.value, ast.Load()), loops), ast.Load())

    def name_for(self, owner: str, used: Collection[str]) -> str:
        """Return a free name for elements of a list: ``layer`` for ``self.model.layers``."""
        parts = [re.sub(r"\W+", "_", part).strip("_") for part in re.split(r"[.\[]", re.sub(r"\[\d+\]", "", owner))]
        last = parts[-1]
        name = last[:-3] + "y" if last.endswith("ies") else last[:-1] if last.endswith("s") and len(last) > 2 else last
        if not name.isidentifier() or name == last and name in self.taken:
            name = "layer"
        if name in used and len(parts) > 1 and f"{parts[-2]}_{name}".isidentifier():
            name = f"{parts[-2]}_{name}"
        return free_name(f"inner_{name}" if name in used else name, self.taken.union(used))

    # --- items of graphs, lists -----------------------------------------------------------------------
    def slices(self, items: list[ast.expr]) -> list[ast.expr]:
        """Return items with runs of ``out[3], out[4], out[5]`` as ``*out[3:6]``."""
        result: list[ast.expr] = []
        at = 0
        while at < len(items):
            start = graph_item(items[at])
            count = 1
            while start is not None and at + count < len(items) and graph_item(
                    items[at + count]) == (start.owner, start.number + count):
                count += 1
            if start is None or count < _SHORTEST_SLICE:
                result += items[at : at + count]
            else:
                result.append(ast.Starred(self.over(*start, 1, count), ast.Load()))
            at += count
        return result

    def visit_List(self, node: ast.List | ast.Tuple) -> ast.expr:
        """Fold calls in a list that are the same but for numbers to a comprehension; runs of a graph's results."""
        self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load) or len(node.elts) < 2:
            return node
        if isinstance(node, ast.List) and all(
                isinstance(item, ast.Call) and len(item.args) + len(item.keywords) > 2 for item in node.elts):
            comparison = Comparison(self)
            same = comparison.common(node.elts)
            if same is not None:
                return ast.ListComp(same, [ast.comprehension(
                    *self.loop(comparison.differing, len(node.elts)), [], 0)])
        node.elts = self.slices(node.elts)
        return node

    visit_Tuple = visit_List

    def loop(self, differing: Mapping[tuple[str, int, int], str], turns: int) -> tuple[ast.expr, ast.expr]:
        """Return the target and the iterable of a loop over elements, of several lists side by side."""
        lists = [self.over(owner, first, step, turns) for owner, first, step in differing]
        names: list[ast.expr] = [ast.Name(name, ast.Store()) for name in differing.values()]
        if len(names) == 1:
            return names[0], lists[0]
        return ast.Tuple(names, ast.Store()), ast.Call(ast.Name(global_names.SIDE_BY_SIDE, ast.Load()), lists, [])

    def over(self, owner: str, first: int, step: int, count: int) -> ast.expr:
        """Return the list that a loop iterates over, or ``count`` elements of it, from ``first`` on by ``step``."""
        whole = expression(owner)
        path = self.paths.of(whole)
        if path is not None and not first and step == 1 and self.paths.facts.length(path) == count:
            return whole
        last = first + step * (count - 1)
        stop = None if last + step < 0 else ast.Constant(last + 1 if step > 0 else last - 1)
        return ast.Subscript(whole, ast.Slice(
            ast.Constant(first), stop, ast.Constant(step) if step != 1 else None), ast.Load())


class _Run(NamedTuple):
    """Items that repeat: those of one turn, the variables in them (:attr:`Comparison.differing`), and how often."""

    block: list[ast.expr]
    differing: Mapping[tuple[str, int, int], str]
    turns: int

    @property
    def covers(self) -> int:
        """How many items they are."""
        return len(self.block) * self.turns

    @property
    def is_list(self) -> bool:
        """Whether the items are the elements themselves."""
        return len(self.block) == 1 and isinstance(self.block[0], ast.Name)


# --- the same but for numbers that grow evenly -------------------------------------------------------
# ::
#
#     new(Layer, keys=out[1])
#     new(Layer, keys=out[3])     new(Layer, keys=keys), with keys from out[1:4:2]
class Index(NamedTuple):
    """``owner[number]`` somewhere in an expression."""

    owner: str
    number: int


class _Unlike(Exception):
    """The trees differ in more than the numbers of elements."""


class Comparison:
    """A comparison of trees that may be the same but for elements of lists at numbers that grow evenly.

    ``differing``: the variables for those elements, by owner, first number and step of each list.
    """

    def __init__(self, folder: Folder, taken: Iterable[str] = ()) -> None:
        self.folder = folder
        self.names = set(taken)
        self.differing: dict[tuple[str, int, int], str] = {}

    def common(self, items: Sequence[ast.AST]) -> Any:
        """Return the tree that all items are, with variables for the elements at numbers that grow evenly.

        ``None`` if they differ in another way, or not at all.
        """
        try:
            same = self._common(items, "value")
        except _Unlike:
            return None
        return same if self.differing else None

    def _common(self, items: Sequence[Any], wanted: str | Sequence[str]) -> Any:
        """Return one part for several that are alike: nodes, lists, or values of fields; ``wanted`` names variables."""
        first = items[0]
        kind = type(first)
        if any(type(item) is not kind for item in items):
            raise _Unlike
        if kind is list:
            if any(len(item) != len(first) for item in items):
                raise _Unlike
            names = [wanted] * len(first) if isinstance(wanted, str) else wanted
            return [self._common(group, name) for group, name in zip(zip(*items), names)]
        if not isinstance(first, ast.AST):
            if any(item != first for item in items):
                raise _Unlike
            return first
        if isinstance(first, KINDS):
            return first
        if kind is ast.Subscript:
            numbered = [index for item in items if (index := self.folder.element(item)) is not None]
            if len(numbered) == len(items) and len(set(numbered)) > 1 and len({index.owner for index in numbered}) == 1:
                return self._variable(numbered, str(wanted) if graph_item(first) is not None else "")
        result = kind()
        for field in kind._fields:
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
            name = free_name(wanted or self.folder.name_for(owner, self.names), self.names | self.folder.taken)
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
            return [key.value if isinstance(key, ast.Constant) and isinstance(key.value, str)
                    and key.value.isidentifier() else str(wanted) for key in keys]
    return wanted


def graph_item(node: ast.AST) -> Index | None:
    """Return ``("graph_out_0", 3)`` for ``graph_out_0[3]``; ``None`` for any other expression."""
    match node:
        case ast.Subscript(ast.Name(owner), ast.Constant(number)) if owner.startswith(GRAPH_RESULT) \
                and type(number) is int:
            return Index(owner, number)
    return None


class Substitution(Transformer):
    """A rewriting of variables as expressions."""

    def __init__(self, meant: Mapping[str, ast.expr]) -> None:
        self._meant = meant

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Return the expression for a name; the name itself if there is none."""
        return copied(self._meant.get(node.id, node))


def expression(text: str) -> ast.expr:
    """Return the tree of the text of an expression."""
    return ast.parse(text, mode="eval").body


# --- statements that are the same for each element: a loop -------------------------------------------
# ::
#
#     layers_0 = cache.layers[0]
#     layers_1 = cache.layers[1]
#     layers_1.keys = out[3]                  for layer, keys in zip(cache.layers[1::-1], out[3::-2]):
#     layers_1.is_initialized = True              layer.keys = keys
#     layers_0.keys = out[1]                      layer.is_initialized = True
#     layers_0.is_initialized = True
#
# The elements are read before the first turn, as a slice does.
def fold_blocks(body: list[ast.stmt], folder: Folder) -> None:
    """Fold what repeats in a body, in place."""
    elements: dict[str, ast.expr] = {}
    for statement in body:
        if (name := _variable(statement, folder)) and isinstance(statement, ast.Assign) \
                and len(folder.elements_in(statement.value)) == 1:
            elements[name] = statement.value
    at = 0
    while at < len(body):
        blocks = _blocks(body, at, elements, folder)
        stored = {name: len(block) for name, block in blocks.items() if name in elements}
        # (Variables that are bound directly before, with nothing observable between.)
        bound: dict[str, int] = {}
        before = at - 1
        while before >= 0 and (name := _variable(body[before], folder)):
            bound[name] = before
            before -= 1
        count = sum(map(len, blocks.values()))
        uses = sum(isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in stored
                   for node in nodes_of(*body))
        loop = None
        is_apart = stored.keys() <= bound.keys() and uses == sum(stored.values())
        if len(blocks) > 1 and count >= _SHORTEST_LOOP and is_apart:
            loop = _loop(blocks, {name: elements[name] for name in stored}, folder)
        if loop is None:
            at += max(count, 1)
            continue
        body[at : at + count] = [loop]
        for index in sorted(map(bound.__getitem__, stored), reverse=True):
            del body[index]
        at += 1 - len(stored)


def _variable(statement: ast.stmt, folder: Folder) -> str:
    """Return the variable that a statement assigns a known object to, and nothing else; else an empty string."""
    match statement:
        case ast.Assign([ast.Name(name)]) if folder.paths.of(ast.Name(name, ast.Load())) is not None:
            return name
    return ""


def _blocks(
    body: list[ast.stmt], at: int, elements: Collection[str], folder: Folder,
) -> dict[str, list[ast.stmt]]:
    """Return the stores in a row of attributes of elements, or buffers inside them, as blocks of one length.

    Returns:
        The blocks by the text of what they store to.
    """
    blocks: dict[str, list[ast.stmt]] = {}
    last = ""
    for statement in body[at:]:
        match statement:
            case ast.Assign([ast.Attribute(value) as target]):
                owner = text_of(value)
            case _:
                break
        is_inside = folder.paths.stored_buffer(target) is not None and folder.elements_in(value)
        if owner not in elements and not is_inside or owner != last and owner in blocks:
            break
        blocks.setdefault(owner, []).append(statement)
        last = owner
    size = len(next(iter(blocks.values()), ()))
    return dict(itertools.takewhile(lambda block: len(block[1]) == size, blocks.items()))


def _loop(blocks: dict[str, list[ast.stmt]], elements: dict[str, ast.expr], folder: Folder) -> ast.For | None:
    """Return one loop for blocks that are the same but for the element; ``None`` if they differ in another way."""
    turns = [ast.Module([Substitution(elements).visit(copied(statement)) for statement in block], [])
             for block in blocks.values()]
    comparison = Comparison(folder, folder.variables)
    same = comparison.common(turns)
    if same is None:
        return None
    folder.taken.update(comparison.differing.values())
    return ast.fix_missing_locations(ast.For(*folder.loop(comparison.differing, len(turns)), same.body, []))
