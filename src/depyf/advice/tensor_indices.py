"""An item of a tensor, chosen by numbers in other tensors.

    for t, p in zip(ys, zs):    ->    counts.index_put_((ys, zs), torch.tensor(1, dtype=counts.dtype), accumulate=True)
        counts[t, p] += 1

    counts[t.item(), p.item()] += 1    ->    counts[t.item()][p.item()] += 1
    table[:, t.item()]                 ->    table.select(1, t.item())

    counts[t[0], p[0]] += 1            ->    counts[t[0].view(1), p[0].view(1)] += 1
    i = order[0]; best = boxes[i]      ->    i = order[0]; best = boxes[i.view(1)][0]

Of an index that is an element of a tensor torch wants the number, and has none while it captures a graph: with
``capture_scalar_outputs`` as well, since a symbol is no number. (Of a list it says something else: it asks the tensor
for its number, ``Tensor.item()``.) A number that the line takes out of a tensor is a
symbol with that setting, which may be an index alone. Beside other indices torch refuses it, and the program sees the
error (torch 2.13): "only integers, slices ... are valid indices (got SymInt)".
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Set

from .branches import rewritten, unparsed
from .loops import loops_of
from .model import Advice
from .source import Function, Site, called

#: Functions of torch that take tensors alone, where they get no numbers of Python's.
_OF_TENSORS = frozenset({
    "stack", "cat", "where", "maximum", "minimum", "max", "min", "sum", "mean", "abs", "exp", "log", "sqrt", "argmax",
    "argmin", "matmul", "dot", "add", "sub", "mul", "div"})


def is_indexed_by_tensors(site: Site) -> bool:
    """Return whether nothing in a simple statement can need a number of the data but an index."""
    if not isinstance(site.statement, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return, ast.Expr)):
        return False
    nodes = list(ast.walk(site.statement))
    if any(isinstance(each, ast.Call) and not _takes_no_number(each, site) or isinstance(each, ast.Slice) and not all(
            map(_is_constant, (each.lower, each.upper, each.step))) for each in nodes):
        return False
    return any(not _is_constant(index) and not isinstance(index, ast.Slice) for each in nodes
               if isinstance(each, ast.Subscript) for index in _indices(each))


def _takes_no_number(call: ast.Call, site: Site) -> bool:
    """Return whether a call cannot need a number of the data itself."""
    match call.func:
        case ast.Attribute(_, "item" | "tolist"):
            return False
        case ast.Attribute(_, "append") | ast.Attribute(ast.Name("self"), _):
            return True  # (What `self.net` does torch traces: a break in it is at a line of its own.)
        case ast.Name(name) if site.module is not None and any(
                isinstance(each, (ast.FunctionDef, ast.ClassDef)) and each.name == name for each in site.module.body):
            return True
        case ast.Attribute(ast.Name("torch"), name) if name in _OF_TENSORS:
            return True
        case ast.Attribute():
            return all(map(_is_constant, (*call.args, *(each.value for each in call.keywords))))
    return False


def _is_constant(node: ast.expr | None) -> bool:
    match node:
        case ast.UnaryOp(ast.USub(), inner):
            return _is_constant(inner)
        case ast.Tuple(parts):
            return all(map(_is_constant, parts))
    return node is None or isinstance(node, ast.Constant)


def numbers_among_indices(node: ast.AST, names: Set[str] = frozenset()) -> list[ast.Subscript]:
    """Return the items that are chosen by several indices of which one is a number out of a tensor.

    Args:
        node: what is looked through.
        names: variables that are such numbers.
    """
    return [each for each in ast.walk(node) if isinstance(each, ast.Subscript) and isinstance(each.slice, ast.Tuple)
            and any(_is_number(index, names) for index in each.slice.elts)]


def in_steps(node: ast.stmt, names: Set[str] = frozenset()) -> ast.stmt | None:
    """Return a statement with such numbers apart: ``c[i][j]`` for ``c[i, j]``, ``c.select(1, i)`` for ``c[:, i]``.

    ``None`` where one stands behind an index that may be anything but a whole number or ``:``.
    """
    steps = _InSteps(names)
    changed: ast.stmt = steps.visit(copy.deepcopy(node))
    return None if steps.is_refused else changed


class _InSteps(ast.NodeTransformer):
    def __init__(self, names: Set[str]) -> None:
        self.names = names
        self.is_refused = False

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        self.generic_visit(node)
        if not isinstance(node.slice, ast.Tuple) or not any(_is_number(each, self.names) for each in node.slice.elts):
            return node
        item, indices = node.value, list(node.slice.elts)
        while any(_is_number(each, self.names) for each in indices):
            step = self._step(item, indices)
            if step is None:
                self.is_refused = True
                return node
            item = step
        if indices and not (isinstance(node.ctx, ast.Load) and all(map(_is_whole, indices))):
            item = ast.Subscript(item, ast.Tuple(indices, ast.Load()) if indices[1:] else indices[0], ast.Load())
        if isinstance(item, ast.Subscript):
            item.ctx = node.ctx
        return item

    def _step(self, item: ast.expr, indices: list[ast.expr]) -> ast.expr | None:
        """Take the first index that is a number from the others; return what it chooses, ``None`` if unknown."""
        first = indices[0]
        if _is_number(first, self.names) or isinstance(first, ast.Constant) and type(first.value) is int:
            return ast.Subscript(item, indices.pop(0), ast.Load())
        dimension = next(place for place, each in enumerate(indices) if not _is_whole(each))
        if not dimension or not _is_number(indices[dimension], self.names):
            return None
        return ast.Call(
            ast.Attribute(item, "select", ast.Load()), [ast.Constant(dimension), indices.pop(dimension)], [])


def _is_whole(index: ast.expr) -> bool:
    """Return whether an index is ``:``, which chooses all of a dimension."""
    return isinstance(index, ast.Slice) and index.lower is index.upper is index.step is None


def _is_number(index: ast.expr, names: Set[str]) -> bool:
    match index:
        case ast.Call(ast.Attribute(_, "item"), [], []):
            return True
        case ast.Call(ast.Name("int"), [inner], []):
            return not isinstance(inner, ast.Constant)
        case ast.Name(name):
            return name in names
        case ast.BinOp(left, _, right):
            sides = [each for each in (left, right) if not isinstance(each, ast.Constant)]
            return bool(sides) and all(_is_number(each, names) for each in sides)
    return False


def on_count(site: Site) -> Advice | None:
    """Return the advice on a loop that counts in a tensor at the places that tensors say; ``None`` for any other."""
    loop, node = next(reversed(loops_of(site)), None), site.statement
    if not isinstance(loop, ast.For) or loop.orelse or loop.body != [node]:
        return None
    match node:
        case ast.AugAssign(ast.Subscript(ast.Name() | ast.Attribute() as counts) as item, ast.Add(), ast.Constant(
                int() | float() as step)) if not isinstance(step, bool):
            places = _gone_over(loop)
            names = [each.id if isinstance(each, ast.Name) else "" for each in _indices(item)]
            if sorted(names) != sorted(places) or len(set(names)) < len(names):
                return None
            tensors = [unparsed(places[name], site.text) for name in names]
            return _at_once(loop, unparsed(counts, site.text), step, tensors)
    return None


def on_elements(site: Site, *, wants_number: bool = True) -> Advice | None:
    """Return the advice on a simple statement whose items are chosen by elements of tensors: ``c[t[0], p[0]] += 1``.

    Args:
        site: of the break.
        wants_number: torch wants a number out of a tensor here: a variable is one if nothing else can be.
    """
    node = site.statement
    if node is None or not is_indexed_by_tensors(site):
        return None
    names = _elements_by_name(site.function)
    elements = _Elements(names)
    changed = elements.visit(copy.deepcopy(node))
    unknown = {index.id for each in ast.walk(node) if isinstance(each, ast.Subscript) for index in _indices(each)
               if isinstance(index, ast.Name)}
    if wants_number and len(unknown) == 1 and not elements.found and not elements.is_refused:
        elements = _Elements(unknown)
        changed = elements.visit(copy.deepcopy(node))
    if elements.is_refused or not elements.found:
        return None
    return rewritten(
        site, [changed], rule="elements_as_indices",
        why="a graph can index with a tensor of one element, and has no number to index with",
        cost="what is indexed has to be a tensor, and so has each index that is changed"
             + ("; what is read is then a copy" if elements.reads else ""))


class _Elements(ast.NodeTransformer):
    """Makes tensors of one dimension of the elements of tensors that are indices.

    Attributes:
        names: variables that are elements of tensors.
        found: there are such indices.
        reads: one of them chooses what is read.
        is_refused: what does the same is not known.
    """

    def __init__(self, names: Set[str] = frozenset()) -> None:
        self.names = names
        self.found = self.reads = self.is_refused = False

    def visit_Call(self, node: ast.Call) -> ast.expr:
        function = self.visit(node.func)
        if self.reads and called(node).endswith("_"):
            self.is_refused = True  # (What is changed in place may be a copy then.)
        node.func, node.args = function, [self.visit(each) for each in node.args]
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        owner = self.visit(node.value)
        if owner is not node.value and not isinstance(node.ctx, ast.Load):
            self.is_refused = True  # (What a tensor of indices chooses is a copy: nothing is stored through it.)
        node.value = owner
        indices = _indices(node)
        if not any(_is_element(each, self.names) for each in indices):
            node.slice = self.visit(node.slice)
            return node  # (an element itself, or an item that is chosen by variables, which may be numbers)
        if any(not _is_fixed(each) and not _is_element(each, self.names) or _is_chosen_by_element(each, self.names)
               for each in indices):
            self.is_refused = True
            return node
        self.found = True
        changed: list[ast.expr] = [
            each if _is_fixed(each) else
            ast.Call(ast.Attribute(each, "view", ast.Load()), [ast.Constant(1)], []) for each in indices]
        item = ast.Subscript(node.value, ast.Tuple(changed, ast.Load()) if changed[1:] else changed[0], node.ctx)
        if not isinstance(node.ctx, ast.Load):
            return item
        self.reads = True
        return ast.Subscript(item, ast.Constant(0), ast.Load())


def _elements_by_name(function: Function | None) -> set[str]:
    """Return the variables of a function to which nothing is assigned but elements of tensors."""
    if function is None:
        return set()
    bound = [each.id for each in ast.walk(function) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)]
    elements = [each.targets[0].id for each in ast.walk(function) if isinstance(each, ast.Assign)
                and isinstance(each.targets[0], ast.Name) and len(each.targets) == 1 and _is_first(each.value)]
    given = {each.arg for each in ast.walk(function.args) if isinstance(each, ast.arg)}
    return {name for name in elements if bound.count(name) == elements.count(name)} - given


def _is_first(value: ast.expr) -> bool:
    """Return whether an expression is one element by its text: ``order[0]``, ``t.argmax()``."""
    match value:
        case ast.Subscript(ast.Name(), index):
            return _is_constant(index) and not isinstance(index, ast.Tuple)
        case ast.Call(ast.Attribute(ast.Name("torch"), "argmax" | "argmin"), [_], []):
            return True
        case ast.Call(ast.Attribute(owner, "argmax" | "argmin"), [], []):
            return not isinstance(owner, ast.Name) or owner.id not in ("torch", "np", "numpy")
    return False


def _is_element(index: ast.expr, names: Set[str]) -> bool:
    """Return whether an index is an element of a tensor, where variables of some names are."""
    if isinstance(index, ast.Name):
        return index.id in names
    if isinstance(index, ast.Subscript):
        return not _is_fixed(index) and not any(isinstance(each, (ast.Slice, ast.Compare)) for each in ast.walk(index))
    return isinstance(index, ast.Call) and _is_first(index)


def _is_chosen_by_element(index: ast.expr, names: Set[str]) -> bool:
    return isinstance(index, ast.Subscript) and any(
        isinstance(each, ast.Subscript) or isinstance(each, ast.Name) and each.id in names for each in _indices(index))


def _is_fixed(index: ast.expr) -> bool:
    """Return whether an index is a number of Python's, by its text: a constant, or a size."""
    match index:
        case ast.Constant() | ast.Subscript(ast.Attribute(_, "shape")):
            return True
    return False


def _at_once(loop: ast.For, counts: str, step: float, tensors: list[str]) -> Advice:
    places = ", ".join(tensors) + ("," if len(tensors) == 1 else "")
    call = f"{counts}.index_put_(({places}), torch.tensor({step}, dtype={counts}.dtype), accumulate=True)"
    named = " and ".join(f"`{each}`" for each in tensors)
    return Advice(
        "count", f"count all at once, in place of the loop at line {loop.lineno}: `{call}`",
        "a graph adds at places that a tensor says, but has no number to index with",
        f"{named} have to be tensors of the same length" if len(tensors) > 1 else f"{named} has to be a tensor")


def _indices(node: ast.Subscript) -> list[ast.expr]:
    return node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]


def _gone_over(loop: ast.For) -> dict[str, ast.expr]:
    """Return what each variable of a loop goes over: ``{"t": target, "p": predicted}``; empty for another loop."""
    match loop.target, loop.iter:
        case ast.Name(name), ast.Name() | ast.Attribute() as values:
            return {name: values}
        case ast.Tuple(targets), ast.Call(ast.Name("zip"), values) if len(targets) == len(values):
            found: dict[str, ast.expr] = {
                target.id: value for target, value in zip(targets, values)
                if isinstance(target, ast.Name) and isinstance(value, (ast.Name, ast.Attribute))}
            return found if len(found) == len(targets) else {}
    return {}
