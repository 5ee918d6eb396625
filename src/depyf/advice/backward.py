"""Backward passes inside of what is compiled: torch traces one where its graph has all that the gradients flow through.

With torch 2.13 that is not checked: of a loss that comes into the graph from outside, as from the graph before a break,
``.backward()`` is traced as nothing. No gradient is computed, and no error is raised.
"""

from __future__ import annotations

import ast

from .model import Advice
from .source import Function, Site
from .uses import kept_parameters

_SETTING = "torch._dynamo.config.trace_autograd_ops = True"
_RULE = "trace_autograd_ops"
#: Methods of tensors whose result is one number.
_REDUCTIONS = frozenset({"sum", "mean", "max", "min", "norm", "item", "prod"})
_TRACED = "torch then traces the backward pass into the same graph"
_COST = "tensors of the same graph of gradients that are used after the call have to be detached first"


def on_gradients(site: Site) -> Advice:
    """Return the advice on ``torch.autograd.grad``."""
    if "create_graph=True" not in (site.where.text if site.where is not None else ""):
        return _with_setting(_TRACED, _COST)
    return _with_setting(
        f"{_TRACED}; a compiled graph of AOTAutograd (`aot_eager`, `inductor`) cannot be differentiated twice, which "
        "is an error (`double backward`) when the gradients of these gradients are computed",
        "the captured graph grows by the backward pass, which the backend then has to differentiate")


def on_backward(site: Site) -> Advice:
    """Return the advice on ``.backward()``: the setting, where the loss is made in the graph."""
    loss = _loss(site)
    if not _comes_from_outside(site, loss):
        # (Nothing that can be tried: where gradients are missing, the results may be the same.)
        return Advice(_RULE, f"set `{_SETTING}`", _TRACED, "where another tensor than a parameter comes into the graph "
                      "from outside, no gradient flows on through it, and no error is raised; "
                      + _COST)
    text = f"`{ast.unparse(loss)}`" if loss is not None else "the loss"
    return Advice(
        "backward", f"compile what computes {text} as a function of its own, which returns it, and call `.backward()` "
        "in plain Python",
        f"a backend that differentiates graphs has compiled the backward pass anyway; `{_SETTING}` is for a loss that "
        f"the same graph computes: where the graph broke between the two, or {text} is an argument, torch 2.13 can "
        "trace nothing for the line, and gradients are missing without an error",
        "what follows `.backward()`, as an optimizer's step, is then not in that function")


def on_requires_grad(site: Site) -> Advice:
    """Return the advice on a tensor that is made to require gradients inside, and leaves the graph."""
    why = "torch can then return what is computed of it"
    cost = "what else the caller computes with that tensor requires gradients, too"
    if _is_made(site):
        return Advice(
            "requires_grad", "make this tensor, and call `.requires_grad_()` on it, in plain Python, and compile what "
            "is computed of it as a function of its own, which takes it", why, cost)
    return Advice("requires_grad", "call `.requires_grad_()` on the tensor before the compiled function, and pass that",
                  why, cost)


def _with_setting(why: str, cost: str) -> Advice:
    return Advice(_RULE, f"set `{_SETTING}`", why, cost, settings=(_SETTING,))


def _comes_from_outside(site: Site, loss: ast.expr | None) -> bool:
    """Return whether what is differentiated may be computed of tensors that come into the graph from outside.

    Inside it is what the function itself makes by a call, ``loss = (weight * x).sum()``, without a break before.
    """
    if site.resumed or site.function is None or site.statement is None or not isinstance(loss, ast.Name):
        return True
    made = [each.value for each in ast.walk(site.function) if isinstance(each, ast.Assign)
            and each.lineno < site.statement.lineno
            and any(isinstance(target, ast.Name) and target.id == loss.id for target in each.targets)]
    match made[-1:]:
        case [ast.Call(ast.Attribute(owner, method))] if method in _REDUCTIONS:
            while isinstance(owner, (ast.Attribute, ast.Subscript)):
                owner = owner.value
            return _is_parameter(owner, site.function)
        case [ast.Call()]:
            return False
    return True


def _loss(site: Site) -> ast.expr | None:
    """Return what the line calls ``.backward()`` on; ``None`` where it is not told, or there are several."""
    calls = [each.func.value for each in ast.walk(site.statement or ast.Pass()) if isinstance(each, ast.Call)
             and isinstance(each.func, ast.Attribute) and each.func.attr == "backward"]
    return calls[0] if len(calls) == 1 else None


def _is_parameter(node: ast.expr, function: Function) -> bool:
    """Return whether an expression is a parameter that the function gives no other value."""
    return isinstance(node, ast.Name) and node.id in kept_parameters(function)


def _is_made(site: Site) -> bool:
    """Return whether the line calls ``requires_grad_`` on what the function itself makes."""
    if site.function is None:
        return False
    return any(
        not _is_parameter(each.func.value, site.function) for each in ast.walk(site.statement or ast.Pass())
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and each.func.attr == "requires_grad_")
