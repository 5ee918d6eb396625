"""An item of a tensor, chosen by numbers in other tensors.

    for t, p in zip(ys, zs):    ->    counts.index_put_((ys, zs), torch.tensor(1, dtype=counts.dtype), accumulate=True)
        counts[t, p] += 1

Of an index that is an element of a tensor torch wants the number, and has none while it captures a graph: with
``capture_scalar_outputs`` as well, since a symbol is no number.
"""

from __future__ import annotations

import ast

from .branches import unparsed
from .data_loops import loop_around
from .model import Advice
from .source import Site


def is_indexed_by_tensors(site: Site) -> bool:
    """Return whether nothing in a simple statement can need a number of the data but an index."""
    if not isinstance(site.statement, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return, ast.Expr)):
        return False
    nodes = list(ast.walk(site.statement))
    if any(isinstance(each, (ast.Call, ast.Slice)) for each in nodes):
        return False
    return any(not isinstance(index, ast.Constant) for each in nodes if isinstance(each, ast.Subscript)
               for index in _indices(each))


def on_count(site: Site) -> Advice | None:
    """Return the advice on a loop that counts in a tensor at the places that tensors say; ``None`` for any other."""
    loop, node = loop_around(site), site.statement
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
