"""A loop that goes on while a tensor says so, written as one operation of the graph.

    while x.sum() < 10:     ->   x, n = torch._higher_order_ops.while_loop(
        x = x + 1                    lambda x, n: x.sum() < 10, lambda x, n: (x + 1, n + 1), (x.clone(), n))
        n += 1

Numbers that it counts are carried along; names that only one turn needs are put in their places.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterable, Mapping

from .branches import condition, is_plain, unparsed, with_lines
from .model import Advice
from .source import Function, Site

_WHY = "the loop is then an operation of the graph"
_COST = "each turn has to leave shapes and dtypes as they are"
#: (Torch 2.13: "all carried_inputs must be tensors".)
_NUMBERS = "where gradients flow through it, the numbers that it carries have to be tensors: {}"


def on_while(site: Site) -> Advice | None:
    """Return the rewriting of a loop over names that it assigns; ``None`` where it does anything else."""
    node = site.statement
    if not isinstance(node, ast.While) or node.orelse:
        return None
    truth, values = condition(node.test), _one_turn(node)
    if truth is None or not values or not any(
            isinstance(each, ast.Name) and each.id in values for each in ast.walk(node.test)):
        return None
    for name in [name for name in values if not _is_read(name, (*values.values(), node.test))]:
        if site.function is None or _is_read_after(name, site.function, node):
            return None  # (what it is before the loop is not known, and `while_loop` needs it)
        del values[name]
    names = ", ".join(values)
    numbers = [name for name in values if _is_number(name, site.function, node)]
    given = ", ".join(name if name in numbers else f"{name}.clone()" for name in values)
    results = ", ".join(unparsed(value, site.text) + (".clone()" if isinstance(value, ast.Name) else "")
                        for value in values.values())  # (no result may be an argument itself)
    one = "," if len(values) == 1 else ""
    line = (f"{names}{one} = torch._higher_order_ops.while_loop(lambda {names}: {unparsed(truth, site.text)}, "
            f"lambda {names}: ({results}{one}), ({given}{one}))")
    cost = f"{_COST}; {_NUMBERS.format(', '.join(f'`{name}`' for name in numbers))}" if numbers else _COST
    return with_lines(site, "while", [line], _WHY, cost)


def _one_turn(node: ast.While) -> dict[str, ast.expr] | None:
    """Return what one turn gives each name, in terms of what the names are before it."""
    values: dict[str, ast.expr] = {}
    for statement in node.body:
        match statement:
            case ast.Assign([ast.Name(name)], value):
                pass
            case ast.AugAssign(ast.Name(name), operator, right):
                value = ast.BinOp(ast.Name(name, ast.Load()), operator, right)
            case _:
                return None
        if not is_plain(value):
            return None
        values[name] = _Put(values).visit(copy.deepcopy(value))
    return values


class _Put(ast.NodeTransformer):
    """Puts what names were set to in this turn in their place."""

    def __init__(self, values: Mapping[str, ast.expr]) -> None:
        self.values = dict(values)

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return copy.deepcopy(self.values.get(node.id, node))


def _is_read(name: str, nodes: Iterable[ast.AST]) -> bool:
    return any(isinstance(each, ast.Name) and each.id == name for node in nodes for each in ast.walk(node))


def _is_read_after(name: str, function: Function, loop: ast.While) -> bool:
    """Return whether a name is read behind a loop, or in one around it."""
    if any(isinstance(each, (ast.For, ast.While)) and each is not loop and loop in ast.walk(each)
           for each in ast.walk(function)):
        return True
    return any(isinstance(each, ast.Name) and each.id == name and isinstance(each.ctx, ast.Load)
               and each.lineno > (loop.end_lineno or loop.lineno) for each in ast.walk(function))


def _is_number(name: str, function: Function | None, loop: ast.While) -> bool:
    """Return whether the function sets a name to a number before the loop."""
    return function is not None and any(
        isinstance(each, ast.Assign) and isinstance(each.value, ast.Constant) and each.lineno < loop.lineno
        and any(isinstance(target, ast.Name) and target.id == name for target in each.targets)
        for each in ast.walk(function))
