"""What repeats from layer to layer is written once, as an expression over the layers.

::

    f(self.layers[0].norm.weight, self.layers[0].proj.weight, self.layers[1].norm.weight, self.layers[1].proj.weight)

    f(*(value for layer in self.layers for value in (
        layer.norm.weight,
        layer.proj.weight,
    )))

and of a list of objects that differ only in the layer, or in which item of a graph's result they hold::

    [new(Layer, keys=out[1], values=out[0]), new(Layer, keys=out[3], values=out[2])]

    [new(Layer, keys=keys, values=values) for keys, values in zip(out[1:4:2], out[0:3:2])]

:mod:`.written_out` takes it back, and what it gives is proven. So a mistake here costs the folding, never the meaning.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from ..dynamo_names import GRAPH_RESULT
from ..names import free_name
from . import forms
from .live_paths import LivePaths

#: As many items of a graph, or elements of a list, in a row become a slice.
_SHORTEST_SLICE = 4


class _Index(NamedTuple):
    """``owner[number]`` somewhere in an expression."""

    owner: str
    number: int


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
    """What stands for more than it says in a text. A program may say the same and mean it.

    Attributes:
        loops: comprehensions, for what they give.
        lists: starred lists, for their elements: ``f(*xs)`` for ``f(xs[0], xs[1], xs[2], xs[3])``.
    """

    loops: bool = False
    lists: bool = False


def fold(tree: ast.Module, paths: LivePaths, taken: Collection[str]) -> Folded:
    """Folds what repeats in a function, in place.

    Args:
        tree: of the text.
        paths: which expressions are lists of modules.
        taken: names that new variables may not have.

    Returns:
        What the text has that stands for more.
    """
    nodes = list(ast.walk(tree))
    if any(isinstance(node, (ast.GeneratorExp, ast.ListComp)) for node in nodes):
        return Folded()  # what is folded is known by that there are no others
    folder = _Folder(paths, set(taken), may_star=not any(isinstance(node, ast.Starred) for node in nodes))
    folder.visit(tree)
    return Folded(True, folder.has_starred)


class _Folder(ast.NodeTransformer):
    def __init__(self, paths: LivePaths, taken: set[str], may_star: bool) -> None:
        self.paths = paths
        self.taken = taken
        #: Whether the elements of a list may become the starred list; whether some did.
        self.may_star, self.has_starred = may_star, False
        self.value: str = ""
        #: The texts of items, by their identity.
        self.texts: dict[int, tuple[ast.expr, str]] = {}

    # --- arguments ----------------------------------------------------------------------------------
    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        if len(node.args) > 1:
            inside = (part.target for part in ast.walk(node) if isinstance(part, ast.comprehension))
            node.args = self.over_layers(node.args, frozenset(
                name.id for target in inside for name in ast.walk(target) if isinstance(name, ast.Name)))
            node.args = self.slices(node.args)
        return node

    def over_layers(self, items: list[ast.expr], used: frozenset[str]) -> list[ast.expr]:
        """Items with runs that repeat from element to element of a list folded."""
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
                element = self.paths.of(_expression(f"{owner}[{run.first}]"))
                if element is not None:
                    self.paths.meanwhile[name] = element
            block = self.over_layers(block, used | set(names.values()))
            for name in names.values():
                self.paths.meanwhile.pop(name, None)
            result.append(self.repeated(run, names, block))
            at += run.size * run.turns
        return result

    def elements_in(self, item: ast.expr) -> list[_Index]:
        """The elements of lists that an expression goes through, outermost first."""
        found = []
        for node in ast.walk(item):
            if not (isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant)
                    and type(node.slice.value) is int):
                continue
            owner = self.paths.of(node.value)
            if owner is not None and self.paths.facts.length(owner):
                found.append(_Index(ast.unparse(node.value), node.slice.value))
        return sorted(found, key=lambda each: len(each.owner))

    def text(self, item: ast.expr) -> str:
        known = self.texts.get(id(item))
        if known is None or known[0] is not item:
            known = self.texts[id(item)] = item, ast.unparse(item)
        return known[1]

    def repeated(self, run: _Run, names: dict[str, str], block: list[ast.expr]) -> ast.Starred:
        lists = [self.part(owner, run.first, run.turns) for owner in run.owners]
        if run.is_list:
            self.has_starred = True
            return ast.Starred(lists[0], ast.Load())
        target, over = _loop([names[owner] for owner in run.owners], lists)
        loops = [ast.comprehension(target, over, [], 0)]
        if len(block) == 1 and not isinstance(block[0], ast.Starred):
            return ast.Starred(ast.GeneratorExp(block[0], loops), ast.Load())
        if not self.value:
            self.value = free_name("value", self.taken)
            self.taken.add(self.value)
        inner = ast.Tuple(block, ast.Load())
        loops.append(ast.comprehension(ast.Name(self.value, ast.Store()), inner, [], 0))
        return ast.Starred(ast.GeneratorExp(ast.Name(self.value, ast.Load()), loops), ast.Load())

    def part(self, owner: str, first: int, count: int) -> ast.expr:
        """A list, or those of its elements that are gone over."""
        whole = _expression(owner)
        path = self.paths.of(whole)
        if path is not None and not first and count == self.paths.facts.length(path):
            return whole
        return _slice(whole, first, first + count, 1)

    def name_for(self, owner: str, used: frozenset[str]) -> str:
        """``layer`` for ``self.model.layers``."""
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
        """Items with runs of ``out[3], out[4], out[5]`` as ``*out[3:6]``."""
        result: list[ast.expr] = []
        at = 0
        while at < len(items):
            start = _graph_item(items[at])
            count = 1
            while start is not None and at + count < len(items) and _graph_item(
                    items[at + count]) == (start[0], start[1] + count):
                count += 1
            if start is None or count < _SHORTEST_SLICE:
                result += items[at : at + count]
            else:
                sliced = _slice(_expression(start[0]), start[1], start[1] + count, 1)
                result.append(ast.Starred(sliced, ast.Load()))
            at += count
        return result

    # --- lists --------------------------------------------------------------------------------------
    def visit_List(self, node: ast.List) -> ast.expr:
        self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load) or len(node.elts) < 2:
            return node
        if all(isinstance(item, ast.Call) and len(item.args) + len(item.keywords) > 2 for item in node.elts):
            folded = self.alike(node.elts)
            if folded is not None:
                return folded
        node.elts = self.slices(node.elts)
        return node

    def visit_Tuple(self, node: ast.Tuple) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.ctx, ast.Load) and len(node.elts) > 1:
            node.elts = self.slices(node.elts)
        return node

    def alike(self, items: list[ast.expr]) -> ast.ListComp | None:
        """A list of expressions that are the same but for numbers that grow evenly."""
        differing: dict[tuple[str, int, int], str] = {}
        hints = _Hints()
        same = _compared(items, differing, hints, self)
        if same is None or not differing:
            return None
        sources = [_slice(_expression(owner), first, first + step * (len(items) - 1) + (1 if step > 0 else -1), step)
                   if not self.whole(owner, first, step, len(items)) else _expression(owner)
                   for owner, first, step in differing]
        target, over = _loop(list(differing.values()), sources)
        return ast.ListComp(same, [ast.comprehension(target, over, [], 0)])

    def whole(self, owner: str, first: int, step: int, count: int) -> bool:
        path = self.paths.of(_expression(owner))
        return path is not None and not first and step == 1 and self.paths.facts.length(path) == count


class _Runs:
    """Runs among items, from the first to the last.

    Args:
        folder: knows lists and texts.
        items: in which runs are looked for.
    """

    def __init__(self, folder: _Folder, items: Sequence[ast.expr]) -> None:
        self.folder = folder
        self.items = items
        self.places = [folder.elements_in(item) for item in items]
        self.indices = {place for places in self.places for place in places}
        #: Items in a row that go through one element: where they end, and the lists that they go through side by side.
        #: Kept until the end is passed, or many arguments would be looked at from each of them on.
        self.stretches: dict[tuple[_Index, bool], tuple[int, list[str]]] = {}

    def longest(self, at: int) -> _Run | None:
        """The run that begins at an item and covers most items."""
        best: _Run | None = None
        for place in self.places[at]:
            if _Index(place.owner, place.number + 1) not in self.indices:
                continue
            for alone in (False, True):
                end, owners = self.stretch(at, place, alone)
                run = self.run(at, end, owners, place.number) if end > at else None
                if run is not None and (best is None or run.size * run.turns > best.size * best.turns):
                    best = run
                if run is not None or len(owners) == 1:
                    break
        return best

    def stretch(self, at: int, place: _Index, alone: bool) -> tuple[int, list[str]]:
        """The end of the first turn, and the lists: as long as elements of one number are meant, the first of a list
        as before; or of one list alone."""
        known = self.stretches.get((place, alone))
        if known is not None and known[0] > at:
            return known
        owners, end = [place.owner], at
        for places in self.places[at:]:
            if alone and place not in places:
                break
            here = [each.owner for each in places if each.number == place.number]
            if not here or any(each.owner in owners and each.number != place.number for each in places):
                break  # (at the first item: it goes through two elements of one list)
            if not alone and not set(here) & set(owners):
                owners.append(here[0])
            end += 1
        self.stretches[place, alone] = end, owners
        return end, owners

    def run(self, at: int, end: int, owners: Sequence[str], number: int) -> _Run | None:
        """The run whose first turn is items in a row; ``None`` if there is no second turn."""
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
        """The text of an item with the elements of the lists taken out; empty if it goes through none."""
        text = self.folder.text(self.items[at])
        for index, owner in enumerate(owners):
            if f"{owner}[{number}]" in text:
                text = re.sub(_element(owner, number), _mark(index), text)
        return text if "\0" in text else ""


class _Hints:
    """Names for variables, from where their values stand."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def give(self, wanted: str, folder: _Folder) -> str:
        name = free_name(wanted, self.names | folder.taken)
        self.names.add(name)
        return name


def _compared(
    items: Sequence[ast.AST], differing: dict[tuple[str, int, int], str], hints: _Hints, folder: _Folder,
    wanted: str = "value",
) -> ast.expr | None:
    """The expression that all items are, with variables where they differ; ``None`` if they differ in another way."""
    first = items[0]
    if any(type(item) is not type(first) for item in items):
        return None
    if len({ast.dump(item) for item in items}) == 1:  # type: ignore[arg-type]
        return first  # type: ignore[return-value]
    numbered = [_numbered(item, folder) for item in items]  # type: ignore[arg-type]
    if all(each is not None for each in numbered) and len({each.owner for each in numbered}) == 1:  # type: ignore
        numbers = [each.number for each in numbered]  # type: ignore[union-attr]
        step = numbers[1] - numbers[0]
        if step and all(after - before == step for before, after in zip(numbers, numbers[1:])) and (
                step > 0 or numbers[-1] > 0):
            key = (numbered[0].owner, numbers[0], step)  # type: ignore[union-attr]
            if key not in differing:
                is_graph = _graph_item(first) is not None  # type: ignore[arg-type]
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
                    part = _compared(group, differing, hints, folder, hint)
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
            part = _compared(values, differing, hints, folder, _hint(first, field, 0, values[0]) or wanted)
            if part is None:
                return None
            setattr(made, field, part)
        elif any(type(value) is not type(values[0]) or value != values[0] for value in values):
            return None
        else:
            setattr(made, field, values[0])
    return made  # type: ignore[return-value]


def _hint(owner: ast.AST, field: str, place: int, part: ast.AST) -> str:
    """What a part is called where it stands: the keyword of an argument, the key of an entry."""
    if isinstance(owner, ast.keyword) and owner.arg:
        return owner.arg
    if isinstance(owner, ast.Dict) and field == "values":
        key = owner.keys[place]
        if isinstance(key, ast.Constant) and isinstance(key.value, str) and key.value.isidentifier():
            return key.value
    return ""


def _numbered(item: ast.expr, folder: _Folder) -> _Index | None:
    found = _graph_item(item)
    if found is not None:
        return _Index(*found)
    if isinstance(item, ast.Subscript) and isinstance(item.slice, ast.Constant) and type(item.slice.value) is int:
        path = folder.paths.of(item.value)
        if path is not None and folder.paths.facts.length(path):
            return _Index(ast.unparse(item.value), item.slice.value)
    return None


def _graph_item(node: ast.expr) -> tuple[str, int] | None:
    """``("graph_out_0", 3)`` of ``graph_out_0[3]``."""
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id.startswith(GRAPH_RESULT) \
            and isinstance(node.slice, ast.Constant) and type(node.slice.value) is int:
        return node.value.id, node.slice.value
    return None


def _mark(index: int) -> str:
    """What stands for an element of one of the lists of a run."""
    return f"\0{index}\0"


def _element(owner: str, number: int) -> str:
    """A pattern for an element of a list in the text of an expression."""
    return rf"(?<![\w.]){re.escape(f'{owner}[{number}]')}"


def _with_names(item: ast.expr, names: Mapping[str, str], number: int) -> ast.expr:
    text = ast.unparse(item)
    for owner, name in names.items():
        text = re.sub(_element(owner, number), name, text)
    return _expression(text)


def _loop(names: Sequence[str], lists: Sequence[ast.expr]) -> tuple[ast.expr, ast.expr]:
    """The target of a loop, and what it goes over."""
    if len(names) == 1:
        return ast.Name(names[0], ast.Store()), lists[0]
    target = ast.Tuple([ast.Name(name, ast.Store()) for name in names], ast.Store())
    return target, ast.Call(ast.Name(forms.SIDE_BY_SIDE, ast.Load()), list(lists), [])


def _expression(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _slice(owner: ast.expr, start: int, stop: int, step: int) -> ast.expr:
    lower = ast.Constant(start)
    return ast.Subscript(owner, ast.Slice(
        lower, ast.Constant(stop) if stop >= 0 else None, ast.Constant(step) if step != 1 else None), ast.Load())
