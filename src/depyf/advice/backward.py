"""Backward passes inside of what is compiled: torch traces one where its graph has all that the gradients flow through.

With torch 2.13 that is not checked: of a loss that comes into the graph from outside, as from the graph before a break,
``.backward()`` is traced as nothing. No gradient is computed, and no error is raised.
"""

from __future__ import annotations

import ast

from .model import Advice
from .source import Site

_SETTING = "torch._dynamo.config.trace_autograd_ops = True"
_RULE = "trace_autograd_ops"
_TRACED = "torch then traces the backward pass into the same graph"


def on_gradients(site: Site) -> Advice:
    """Return the advice on ``torch.autograd.grad``."""
    if "create_graph=True" not in (site.where.text if site.where is not None else ""):
        return _with_setting(_TRACED, "tensors of the same graph of gradients that are used after the call have to be "
                                      "detached first")
    return _with_setting(
        f"{_TRACED}; a compiled graph of AOTAutograd (`aot_eager`, `inductor`) cannot be differentiated twice, which "
        "is an error (`double backward`) when the gradients of these gradients are computed",
        "the captured graph grows by the backward pass, which the backend then has to differentiate")


def on_backward(site: Site) -> Advice:
    """Return the advice on ``.backward()``: the setting, where the loss is made in the graph."""
    loss = _loss(site)
    if not _comes_from_outside(site, loss):
        return _with_setting(_TRACED, "tensors of the same graph of gradients that are used after the call have to be "
                                      "detached first")
    text = f"`{ast.unparse(loss)}`" if loss is not None else "the loss"
    return Advice(
        "backward", f"compile what computes {text} as a function of its own, which returns it, and call `.backward()` "
        "in plain Python",
        f"a backend that differentiates graphs has compiled the backward pass anyway; `{_SETTING}` is for a loss that "
        f"the same graph computes: where the graph broke between the two, or {text} is an argument, torch 2.13 can "
        "trace nothing for the line, and gradients are missing without an error",
        "what follows `.backward()`, as an optimizer's step, is then not in that function")


def on_requires_grad(site: Site) -> Advice:
    """Return the advice on a tensor that is told inside to ask for gradients, and leaves the graph."""
    why = "torch can then return what is computed of it"
    cost = "what else the caller computes with that tensor asks for gradients, too"
    if _is_made(site):
        return Advice(
            "requires_grad", "make this tensor, and call `.requires_grad_()` on it, in plain Python, and compile what "
            "is computed of it as a function of its own, which takes it", why, cost)
    return Advice("requires_grad", "call `.requires_grad_()` on the tensor before the compiled function, and pass that",
                  why, cost)


def _with_setting(why: str, cost: str) -> Advice:
    return Advice(_RULE, f"set `{_SETTING}`", why, cost, settings=(_SETTING,))


def _comes_from_outside(site: Site, loss: ast.expr | None) -> bool:
    """Return whether what is differentiated may not be computed in the graph that ends here: an earlier one did it."""
    return site.resumed or loss is not None and site.function is not None and _is_parameter(loss, site.function)


def _loss(site: Site) -> ast.expr | None:
    """Return what the line calls ``.backward()`` on; ``None`` where it is not told, or there are several."""
    calls = [each.func.value for each in ast.walk(site.statement or ast.Pass()) if isinstance(each, ast.Call)
             and isinstance(each.func, ast.Attribute) and each.func.attr == "backward"]
    return calls[0] if len(calls) == 1 else None


def _is_parameter(node: ast.expr, function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Return whether an expression is a parameter that the function gives no other value."""
    stored = {each.id for each in ast.walk(function) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
    parameters = {each.arg for each in ast.walk(function.args) if isinstance(each, ast.arg)}
    return isinstance(node, ast.Name) and node.id in parameters - stored


def _is_made(site: Site) -> bool:
    """Return whether the line calls ``requires_grad_`` on what the function itself makes."""
    if site.function is None:
        return False
    return any(
        not _is_parameter(each.func.value, site.function) for each in ast.walk(site.statement or ast.Pass())
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and each.func.attr == "requires_grad_")
