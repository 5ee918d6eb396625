"""An item of a list of tensors, chosen by a value in a tensor.

    options[int(x.argmax())]    ->    torch.stack(options).index_select(0, x.argmax())[0]

A graph has no numbers of the data, so none to index a list with.
"""

from __future__ import annotations

import ast
from dataclasses import replace

from .branches import unparsed, with_lines
from .keys import IN_A_TENSOR
from .model import Advice
from .scalars import without_scalar
from .source import Site


def on_index(site: Site) -> Advice | None:
    """Return the rewriting of the only item that a simple statement takes so; ``None`` where it is of no such form."""
    node = site.statement
    if not isinstance(node, (ast.Assign, ast.Return, ast.Expr, ast.AugAssign)):
        return None
    found = [each for each in ast.walk(node) if isinstance(each, ast.Subscript) and _tensor(each) is not None]
    if len(found) != 1 or not isinstance(found[0].ctx, ast.Load) or not isinstance(
            found[0].value, (ast.Name, ast.Attribute, ast.List, ast.Tuple)):
        return None
    item, index = unparsed(found[0], site.text), _tensor(found[0])
    text = unparsed(node, site.text)
    if index is None or text.count(item) != 1:
        return None
    chosen = (f"torch.stack({unparsed(found[0].value, site.text)}).index_select(0, "
              f"{unparsed(index, site.text)})[0]")
    advice = with_lines(
        site, "index", [text.replace(item, chosen)], "a graph can choose a row of a tensor, but no item of a list",
        "the items are copied together, and have to be tensors of one shape and dtype")
    owner, there = found[0].value, f"values.index_select(0, {unparsed(index, site.text)})[0]"
    return advice if isinstance(owner, (ast.List, ast.Tuple)) else replace(
        advice, change=f"where `{unparsed(owner, site.text)}` is a list of tensors, {advice.change}; for numbers "
                       f"{IN_A_TENSOR.format(there)}; for modules or functions leave the line as it is")


def _tensor(node: ast.Subscript) -> ast.expr | None:
    """Return the tensor whose value is the index."""
    match node.slice:
        case ast.Call(ast.Name("int"), [inner], []):
            return without_scalar(inner)
        case ast.Call(ast.Attribute(inner, "item"), [], []):
            return inner
    return None
