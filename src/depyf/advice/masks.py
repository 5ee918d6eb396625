"""Tests for how many rows a mask chooses, which only the data tells.

    pos = pred[target > 0]
    if pos.numel() > 0:            ->    loss = loss + torch.where(target > 0, pred, 0).sum() / (
        loss = loss + pos.mean()             (target > 0).sum().clamp(min=1))

With ``capture_dynamic_output_shape_ops`` the number is a symbol, on which a graph has no branch either.
"""

from __future__ import annotations

import ast

from .branches import unparsed
from .model import Advice
from .source import Function, Site, called

#: Methods and functions that give a truth value for each element.
_MASKS = frozenset({"isnan", "isinf", "isfinite", "eq", "ne", "lt", "le", "gt", "ge", "logical_not", "logical_and",
                    "logical_or", "isclose", "signbit", "bool"})
#: Methods after which the rows are still one for each that the mask chose.
_SAME_ROWS = frozenset({"squeeze", "flatten", "view", "reshape", "to", "long", "t", "detach"})


def on_number_of_chosen(site: Site) -> Advice | None:
    """Return the advice on a branch on how many rows a mask chose; ``None`` for any other statement."""
    return with_mask(site, site.statement.test) if isinstance(site.statement, ast.If) else None


def with_mask(site: Site, test: ast.expr) -> Advice | None:
    """Return the advice to compute with the mask, where a test is of the number of rows that one chose.

    Only where the other outcome is nothing or zero, as with the mask.
    """
    if site.function is None or not _is_zero_without(test, site.function):
        return None
    name = _tested_for_any(test)
    mask = _chosen(site.function).get(name)
    reductions = _reductions(name, test, site.function)
    if mask is None or not reductions:
        return None
    shown = unparsed(mask, site.text)
    inside = shown if isinstance(mask, (ast.Name, ast.Attribute, ast.Call)) else f"({shown})"
    told = " and ".join(f"the {each} of what `{shown}` chooses of `value` is `torch.where({shown}, value, 0).sum()"
                        f"{f' / {inside}.sum().clamp(min=1)' if each == 'mean' else ''}`" for each in reductions)
    return Advice(
        "mask", f"if both outcomes have one dtype: compute with the mask in place of what it chooses, without the test "
        f"`{unparsed(test, site.text)}`: {told}, and 0 where that is nothing",
        "no size depends on values in a tensor then, and nothing has to be tested",
        "all of `value` is computed, not only what the mask chooses; the mask needs its shape; where `value` is not "
        "finite for the others (as of `log`), put a harmless number in before, or gradients become nan")


def _is_zero_without(test: ast.expr, function: Function) -> bool:
    """Return whether nothing but a zero comes of the outcome of a test that there are no rows."""
    for node in ast.walk(function):
        if isinstance(node, ast.If) and node.test is test:
            match node.body if _is_for_none(test) else node.orelse:
                case []:
                    return True
                case [ast.Return(ast.expr() as value)] | [ast.Assign([ast.Name()], value)]:
                    return _is_zero(value)
            return False
    return False


def _is_for_none(test: ast.expr) -> bool:
    """Return whether a test is true where there are no rows."""
    match test:
        case ast.UnaryOp(ast.Not(), inner):
            return not _is_for_none(inner)
        case ast.Compare(_, [ast.Eq() | ast.Lt()]):
            return True
    return False


def _is_zero(value: ast.expr) -> bool:
    """Return whether an expression is zero by its text: ``0.0``, ``x.sum() * 0``, ``torch.zeros(())``."""
    match value:
        case ast.Constant(0):
            return True
        case ast.BinOp(left, ast.Mult(), right):
            return _is_zero(left) or _is_zero(right)
        case ast.Call(_, [inner, *_]) if called(value) in ("tensor", "as_tensor"):
            return _is_zero(inner)
        case ast.Call():
            return called(value) in ("zeros", "zeros_like", "new_zeros")
    return False


def _tested_for_any(test: ast.expr) -> str:
    """Return the variable of which a test asks whether it has any rows or none; ``""`` for any other test."""
    match test:
        case ast.UnaryOp(ast.Not(), inner):
            return _tested_for_any(inner)
        case ast.Compare(number, [ast.Gt() | ast.Eq() | ast.NotEq()], [ast.Constant(0)]) | ast.Compare(
                number, [ast.GtE() | ast.Lt()], [ast.Constant(1)]):
            return _counted(number)
    return _counted(test)


def _counted(number: ast.expr) -> str:
    """Return the variable of which an expression is the number of rows or elements; ``""`` for any other."""
    match number:
        case ast.Call(ast.Attribute(ast.Name(name), "numel" | "nelement"), []) | ast.Call(
                ast.Name("len"), [ast.Name(name)]) | ast.Call(
                ast.Attribute(ast.Name(name), "size"), [ast.Constant(0)]) | ast.Subscript(
                ast.Attribute(ast.Name(name), "shape"), ast.Constant(0)):
            return name
    return ""


def _reductions(name: str, test: ast.expr, function: Function) -> list[str]:
    """Return which of mean and sum a variable is used for; nothing where it is in a loop, or used for something else.

    (Functions of losses average, too, but of them the mask needs the terms.)
    """
    found: dict[str, set[ast.AST]] = {}
    for node in ast.walk(function):
        if isinstance(node, (ast.For, ast.While)) and any(each is test for each in ast.walk(node)):
            return []
        if isinstance(node, ast.Call) and called(node) in ("mean", "sum"):
            found.setdefault(called(node), set()).update(ast.walk(node))
    uses = {each for each in ast.walk(function)
            if isinstance(each, ast.Name) and each.id == name and isinstance(each.ctx, ast.Load)}
    uses -= set(ast.walk(test))
    return [each for each, inside in found.items() if uses & inside] if uses <= set().union(*found.values()) else []


def _chosen(function: Function) -> dict[str, ast.expr]:
    """Return the variables of a function to which only what a mask chooses is assigned, with the mask.

    (Not where a variable of the mask is set again further down: there it says something else.)
    """
    values: dict[str, list[ast.expr]] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            values.setdefault(node.targets[0].id, []).append(node.value)
    stores = [each for each in ast.walk(function) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)]
    found: dict[str, ast.expr] = {}
    for name, assigned in values.items():
        mask = _mask(assigned[0], values) if len(assigned) == 1 else None
        read = {each.id for each in ast.walk(mask) if isinstance(each, ast.Name)} if mask is not None else set()
        if mask is not None and not any(each.id in read and each.lineno > mask.lineno for each in stores):
            found[name] = mask
    return found


def _mask(value: ast.expr, values: dict[str, list[ast.expr]]) -> ast.expr | None:
    """Return the mask by which rows are chosen: ``m`` of ``x[m]``, ``torch.nonzero(m)``, ``m.nonzero().squeeze(1)``."""
    match value:
        case ast.Call(ast.Attribute(ast.Name("torch"), "nonzero" | "argwhere"), [mask, *_]) | ast.Call(
                ast.Attribute(ast.Name("torch"), "masked_select"), [_, mask]) | ast.Call(
                ast.Attribute(_, "masked_select"), [mask]) | ast.Call(
                ast.Attribute(mask, "nonzero" | "argwhere"), []):
            return mask if _is_mask(mask, values) else None
        case ast.Subscript(ast.Call(ast.Attribute(ast.Name("torch"), "where"), [mask], []), ast.Constant(0)):
            return mask if _is_mask(mask, values) else None
        case ast.Call(ast.Attribute(inner, name)) if name in _SAME_ROWS:
            return _mask(inner, values)
        case ast.Subscript(inner, ast.Tuple([ast.Slice(None, None, None), ast.Constant()])):
            return _mask(inner, values)
        case ast.Subscript(_, mask) if _is_mask(mask, values):
            return mask
    return None


def _is_mask(node: ast.expr, values: dict[str, list[ast.expr]]) -> bool:
    """Return whether an expression is a tensor of truth values by its text, or a variable that is set to one."""
    match node:
        case ast.Compare():
            return True
        case ast.UnaryOp(ast.Invert(), inner):
            return _is_mask(inner, values)
        case ast.BinOp(left, ast.BitAnd() | ast.BitOr(), right):
            return _is_mask(left, values) or _is_mask(right, values)
        case ast.Call(ast.Attribute(_, name)) if name in _MASKS:
            return True
        case ast.Name(name):
            assigned = values.get(name, [])
            return len(assigned) == 1 and not isinstance(assigned[0], ast.Name) and _is_mask(assigned[0], values)
    return False
