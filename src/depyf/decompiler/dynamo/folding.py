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
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from ..nodes import Transformer, copied, free_name, nodes_of
from .alike import Comparison, Index, Substitution, expression, graph_item, loop_over, sliced
from .live_paths import LivePaths, is_plain_path, text_of

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
#: As many statements become a loop.
_SHORTEST = 4


def fold_blocks(body: list[ast.stmt], folder: Folder) -> bool:
    """Fold what repeats in a body, in place; return whether anything was."""
    elements: dict[str, ast.expr] = {}
    for statement in body:
        if (name := _variable(statement, folder)) and isinstance(statement, ast.Assign) \
                and len(folder.elements_in(statement.value)) == 1:
            elements[name] = statement.value
    at, folded = 0, False
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
        if len(blocks) > 1 and count >= _SHORTEST and stored.keys() <= bound.keys() and uses == sum(stored.values()):
            loop = _loop(blocks, {name: elements[name] for name in stored}, folder)
        if loop is None:
            at += max(count, 1)
            continue
        body[at : at + count] = [loop]
        for index in sorted(map(bound.__getitem__, stored), reverse=True):
            del body[index]
        at += 1 - len(stored)
        folded = True
    return folded


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
    if not isinstance(same, ast.Module):
        return None
    folder.taken.update(comparison.differing.values())
    return ast.fix_missing_locations(ast.For(*folder.loop(comparison.differing, len(turns)), same.body, []))


#: As many items of a graph, or elements of a list, in a row become a slice.
_SHORTEST_SLICE = 4


class _Run(NamedTuple):
    """Items that repeat.

    Attributes:
        owners: the lists that are gone over side by side.
        first: the number of the elements in the first turn.
        turns: how often.
        size: items in each turn.
        is_list: the items are the elements themselves.
    """

    owners: tuple[str, ...]
    first: int
    turns: int
    size: int
    is_list: bool


class Folded(NamedTuple):
    """The forms in a text that are abbreviations. A program may contain the same forms literally.

    Attributes:
        loops: comprehensions, for what they give.
        lists: starred lists, for their elements: ``f(*xs)`` for ``f(xs[0], xs[1], xs[2], xs[3])``.
        blocks: ``for`` statements, for the statements in them, once for each element.
    """

    loops: bool = False
    lists: bool = False
    blocks: bool = False


def fold(tree: ast.Module, paths: LivePaths, taken: Collection[str]) -> Folded:
    """Fold what repeats in a function, in place.

    Returns:
        The forms in the text that are abbreviations.
    """
    nodes = list(nodes_of(tree))
    if any(isinstance(node, (ast.GeneratorExp, ast.ListComp)) for node in nodes):
        return Folded()  # what is folded is known by that there are no others
    folder = Folder(paths, set(taken), may_star=not any(isinstance(node, ast.Starred) for node in nodes))
    folder.visit(tree)
    function = tree.body[0]
    assert isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef))
    has_none = not any(isinstance(node, (ast.For, ast.AsyncFor)) for node in nodes)
    return Folded(True, folder.has_starred, has_none and fold_blocks(function.body, folder))


class Folder(Transformer):
    """A folding, in place, of arguments and displays that repeat from element to element of a list.

    Args:
        paths: which expressions are lists of modules.
        taken: names that new variables may not have.
        may_star: whether the elements of a list may become the starred list, which the text must not have already.
    """

    def __init__(self, paths: LivePaths, taken: set[str], may_star: bool) -> None:
        self.paths = paths
        self.taken = taken
        #: Whether the elements of a list may become the starred list; whether some did.
        self.may_star, self.has_starred = may_star, False
        self.value: str = ""
        #: Variables of comprehensions.
        self.variables: set[str] = set()
        #: The texts of items, by their identity.
        self.texts: dict[int, tuple[ast.expr, str]] = {}

    # --- arguments ----------------------------------------------------------------------------------
    def visit_Attribute(self, node: ast.Attribute | ast.Subscript) -> ast.expr:
        """Return a plain path unvisited: nothing in it can be folded."""
        return node if is_plain_path(node) else self.generic_visit(node)

    visit_Subscript = visit_Attribute

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Fold positional arguments that repeat from element to element, and runs of a graph's results."""
        self.generic_visit(node)
        if len(node.args) > 1:
            inside = (part.target for part in nodes_of(node) if isinstance(part, ast.comprehension)) \
                if self.variables else ()
            node.args = self.over_layers(node.args, frozenset(
                name.id for target in inside for name in nodes_of(target) if isinstance(name, ast.Name)))
            node.args = self.slices(node.args)
        return node

    def over_layers(self, items: list[ast.expr], used: frozenset[str]) -> list[ast.expr]:
        """Return items with the runs that repeat from element to element of a list folded."""
        runs = _Runs(self, items)
        result: list[ast.expr] = []
        at = 0
        while at < len(items):
            run = runs.longest(at)
            if run is None:
                result.append(items[at])
                at += 1
                continue
            names: dict[str, str] = {}
            for owner in run.owners:
                names[owner] = self.name_for(owner, used | set(names.values()))
            block = [_with_names(item, names, run.first) for item in items[at : at + run.size]]
            for owner, name in names.items():
                element = self.paths.of(expression(f"{owner}[{run.first}]"))
                if element is not None:
                    self.paths.meanwhile[name] = element
            block = self.over_layers(block, used | set(names.values()))
            for name in names.values():
                self.paths.meanwhile.pop(name, None)
            result.append(self.repeated(run, names, block))
            at += run.size * run.turns
        return result

    def elements_in(self, item: ast.expr) -> list[Index]:
        """Return the elements of lists that an expression goes through, outermost first."""
        elements = []
        for node in _owners(item) if is_plain_path(item) else nodes_of(item):
            if not (isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant)
                    and type(node.slice.value) is int):
                continue
            owner = self.paths.of(node.value)
            if owner is not None and self.paths.facts.length(owner):
                elements.append(Index(text_of(node.value), node.slice.value))
        return sorted(elements, key=lambda each: len(each.owner))

    def text(self, item: ast.expr) -> str:
        """Return the text of an item, unparsed once."""
        known = self.texts.get(id(item))
        if known is None or known[0] is not item:
            known = self.texts[id(item)] = item, text_of(item)
        return known[1]

    def repeated(self, run: _Run, names: dict[str, str], block: list[ast.expr]) -> ast.Starred:
        """Return a run as one starred item: the list itself, or a generator expression over its elements."""
        lists = [self.over(owner, run.first, 1, run.turns) for owner in run.owners]
        if run.is_list:
            self.has_starred = True
            return ast.Starred(lists[0], ast.Load())
        self.variables.update(names.values())
        target, over = loop_over([names[owner] for owner in run.owners], lists)
        loops = [ast.comprehension(target, over, [], 0)]
        if len(block) == 1 and not isinstance(block[0], ast.Starred):
            return ast.Starred(ast.GeneratorExp(block[0], loops), ast.Load())
        if not self.value:
            self.value = free_name("value", self.taken)
            self.taken.add(self.value)
        inner = ast.Tuple(block, ast.Load())
        loops.append(ast.comprehension(ast.Name(self.value, ast.Store()), inner, [], 0))
        return ast.Starred(ast.GeneratorExp(ast.Name(self.value, ast.Load()), loops), ast.Load())

    def name_for(self, owner: str, used: frozenset[str]) -> str:
        """Return a free name for elements of a list: ``layer`` for ``self.model.layers``."""
        parts = [re.sub(r"\W+", "_", part).strip("_") for part in re.split(r"[.\[]", re.sub(r"\[\d+\]", "", owner))]
        last = parts[-1]
        name = last[:-3] + "y" if last.endswith("ies") else last[:-1] if last.endswith("s") and len(last) > 2 else last
        if not name.isidentifier() or name == last and name in self.taken:
            name = "layer"
        if name in used and len(parts) > 1 and f"{parts[-2]}_{name}".isidentifier():
            name = f"{parts[-2]}_{name}"
        return free_name(f"inner_{name}" if name in used else name, self.taken | used)

    # --- items of graphs ----------------------------------------------------------------------------
    def slices(self, items: list[ast.expr]) -> list[ast.expr]:
        """Return items with runs of ``out[3], out[4], out[5]`` as ``*out[3:6]``."""
        result: list[ast.expr] = []
        at = 0
        while at < len(items):
            start = graph_item(items[at])
            count = 1
            while start is not None and at + count < len(items) and graph_item(
                    items[at + count]) == (start[0], start[1] + count):
                count += 1
            if start is None or count < _SHORTEST_SLICE:
                result += items[at : at + count]
            else:
                several = sliced(expression(start[0]), start[1], start[1] + count, 1)
                result.append(ast.Starred(several, ast.Load()))
            at += count
        return result

    # --- lists --------------------------------------------------------------------------------------
    def visit_List(self, node: ast.List | ast.Tuple) -> ast.expr:
        """Fold calls in a list that are the same but for numbers to a comprehension; runs of a graph's results."""
        self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load) or len(node.elts) < 2:
            return node
        if isinstance(node, ast.List) and all(
                isinstance(item, ast.Call) and len(item.args) + len(item.keywords) > 2 for item in node.elts):
            comparison = Comparison(self)
            same = comparison.common(node.elts)
            if isinstance(same, ast.expr):
                return ast.ListComp(same, [ast.comprehension(
                    *self.loop(comparison.differing, len(node.elts)), [], 0)])
        node.elts = self.slices(node.elts)
        return node

    visit_Tuple = visit_List

    def loop(self, differing: Mapping[tuple[str, int, int], str], turns: int) -> tuple[ast.expr, ast.expr]:
        """Return the target and the iterable of a loop."""
        sources = [self.over(owner, first, step, turns) for owner, first, step in differing]
        return loop_over(list(differing.values()), sources)

    def over(self, owner: str, first: int, step: int, count: int) -> ast.expr:
        """Return the list that a loop iterates over, or ``count`` elements of it, from ``first`` on by ``step``."""
        whole = expression(owner)
        path = self.paths.of(whole)
        if path is not None and not first and step == 1 and self.paths.facts.length(path) == count:
            return whole
        last = first + step * (count - 1)
        return sliced(whole, first, last + 1 if step > 0 else last - 1 if last + step >= 0 else -1, step)


class _Runs:
    """Runs among items, from the first to the last.

    Args:
        folder: knows lists and texts.
        items: in which runs are looked for.
    """

    def __init__(self, folder: Folder, items: Sequence[ast.expr]) -> None:
        self.folder = folder
        self.items = items
        self.places = [folder.elements_in(item) for item in items]
        self.indices = {place for places in self.places for place in places}
        #: Items in a row that go through one element: where they end, and the lists that they go through side by side.
        #: Kept until the end is passed, or many arguments would be looked at from each of them on.
        self.stretches: dict[tuple[Index, bool], tuple[int, list[str]]] = {}

    def longest(self, at: int) -> _Run | None:
        """Return the run that begins at an item and covers most items."""
        best: _Run | None = None
        for place in self.places[at]:
            if Index(place.owner, place.number + 1) not in self.indices:
                continue
            for alone in (False, True):
                end, owners = self.stretch(at, place, alone)
                run = self.run(at, end, owners, place.number) if end > at else None
                if run is not None and (best is None or run.size * run.turns > best.size * best.turns):
                    best = run
                if run is not None or len(owners) == 1:
                    break
        return best

    def stretch(self, at: int, place: Index, alone: bool) -> tuple[int, list[str]]:
        """Return the end of the first turn, and the lists that it goes through.

        The turn lasts as long as elements of one number are meant and the first of a list is as before; with ``alone``,
        as long as items go through that one element.
        """
        known = self.stretches.get((place, alone))
        if known is not None and known[0] > at:
            return known
        owners, end = [place.owner], at
        for places in self.places[at:]:
            if alone and place not in places:
                break
            matching = [each.owner for each in places if each.number == place.number]
            if not matching or any(each.owner in owners and each.number != place.number for each in places):
                break  # (at the first item: it goes through two elements of one list)
            if not alone and not set(matching) & set(owners):
                owners.append(matching[0])
            end += 1
        self.stretches[place, alone] = end, owners
        return end, owners

    def run(self, at: int, end: int, owners: Sequence[str], number: int) -> _Run | None:
        """Return the run whose first turn is the items up to ``end``; ``None`` if there is no second turn."""
        size, turns = end - at, 1
        template: list[str] = []
        while at + size * (turns + 1) <= len(self.items):
            for place in range(size):
                if place == len(template):
                    template.append(self.pattern(at + place, owners, number))
                if self.pattern(at + size * turns + place, owners, number + turns) != template[place]:
                    break
            else:
                turns += 1
                continue
            break
        is_list = template == [_mark(0)]
        if turns == 1 or not all(template) or is_list and (turns < _SHORTEST_SLICE or not self.folder.may_star):
            return None
        gone_over = tuple(owner for index, owner in enumerate(owners)
                          if any(_mark(index) in text for text in template))
        return _Run(gone_over, number, turns, size, is_list)

    def pattern(self, at: int, owners: Sequence[str], number: int) -> str:
        """Return the text of an item with the elements of the lists taken out; empty if it goes through none."""
        text = self.folder.text(self.items[at])
        for index, owner in enumerate(owners):
            if f"{owner}[{number}]" in text:
                text = re.sub(_element(owner, number), _mark(index), text)
        return text if "\0" in text else ""


def _mark(index: int) -> str:
    """Return the text for an element of one of the lists of a run."""
    return f"\0{index}\0"


def _owners(path: ast.expr) -> Iterator[ast.expr]:
    """Yield a path and those that it goes through, the longest first."""
    while isinstance(path, (ast.Attribute, ast.Subscript)):
        yield path
        path = path.value


def _element(owner: str, number: int) -> str:
    """Return a regular expression for an element of a list in the text of an expression."""
    return rf"(?<![\w.]){re.escape(f'{owner}[{number}]')}"


def _with_names(item: ast.expr, names: Mapping[str, str], number: int) -> ast.expr:
    """Return an expression with its elements of number ``number`` replaced by variables."""
    text = text_of(item)
    for owner, name in names.items():
        text = re.sub(_element(owner, number), name, text)
    return expression(text)
