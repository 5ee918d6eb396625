"""A loop that the data ends: what one turn computes is a graph, the loop is none.

    for _ in range(most):                        @torch.compile
        token = model(ids).argmax(-1)     ->     def turn(ids): ...
        if token.item() == eos:
            break

A graph break inside of a loop gives up the whole function, since torch cannot continue there.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from .branches import unparsed
from .loops import loops_of
from .model import Advice
from .source import Site, called
from .uses import names_set


def on_turn(site: Site) -> Advice | None:
    """Return the advice on a test in a loop that ends it or a turn of it, or that is the loop's own test."""
    node, loops = site.statement, loops_of(site)
    if not isinstance(node, (ast.If, ast.While)) or isinstance(node, ast.If) and not _leaves_turn(node) or not loops \
            or site.function is None:
        return None
    loop = loops[-1]
    head = unparsed(node.test, site.text)
    grown = next((unparsed(each.func.value, site.text) for statement in loop.body for each in ast.walk(statement)
                  if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute)
                  and each.func.attr in ("append", "extend")), "")
    kept = (f"; so does what adds to `{grown}` or takes all of it: each length of it would be another graph"
            if grown else "")
    way = (f"`@torch.compile`, called in the loop; the test `{head}` and `{site.function.name}` itself stay in plain "
           f"Python{kept}")
    if isinstance(node, ast.If) and isinstance(node.body[-1], ast.Continue):
        return Advice(
            "rest", f"compile what follows the test in a turn of the loop at line {loop.lineno}: a function of its own "
            f"with {way}", "whether a turn goes on depends on values in a tensor; what it then computes is a "
            "graph by itself", "one call of compiled code for each turn that goes on")
    return Advice(
        "turn", f"compile what one turn of the loop at line {loop.lineno} computes: a function of its own with "
        f"{way}", "how often the loop turns depends on values in a tensor; a turn is a graph by itself",
        "one call of compiled code for each turn")


def on_shrinking(site: Site) -> Advice | None:
    """Return the advice on a line that sets what the test of its ``while`` loop asks for the size of."""
    loops = loops_of(site)
    if site.statement is None or not loops or not isinstance(loops[-1], ast.While):
        return None
    tested = {each.id for each in ast.walk(loops[-1].test) if isinstance(each, ast.Name)}
    if not tested & names_set(site.statement):
        return None
    return Advice(
        "turn", f"compile what one turn of the loop at line {loops[-1].lineno} computes: a function of its own with "
        f"`@torch.compile`, called in the loop; the test `{unparsed(loops[-1].test, site.text)}` stays in plain Python",
        "how often the loop turns depends on values in a tensor; a turn is compiled by itself",
        "one call of compiled code for each turn")


def _leaves_turn(node: ast.If) -> bool:
    """Return whether a branch may end a turn of a loop, or the loop."""
    return isinstance(node.body[-1], ast.Continue) or any(
        isinstance(each, (ast.Break, ast.Return)) for statement in node.body for each in ast.walk(statement))


def on_numbers(site: Site) -> Advice | None:
    """Return the advice on a loop over the numbers of a tensor that chooses by them; ``None`` for any other loop."""
    loop = site.statement
    if not isinstance(loop, ast.For) or site.function is None or not any(
            isinstance(each, ast.Call) and called(each) == "tolist" for each in ast.walk(loop.iter)):
        return None
    numbers = {each.id for each in ast.walk(loop.target) if isinstance(each, ast.Name)}
    chosen = next((each for each in _choices(loop) if numbers & {
        inner.id for inner in ast.walk(each) if isinstance(inner, ast.Name)}), None)
    if chosen is None:
        return None
    name, test = site.function.name, unparsed(chosen, site.text)
    return Advice(
        "numbers", f"end what is compiled before the loop at line {loop.lineno}: have `{name}` return the tensor, and "
        "go through its numbers where that is called",
        f"`{test}` depends on each number, and a graph has none while it is captured", "the loop stays in plain Python")


def _choices(loop: ast.For) -> Iterator[ast.expr]:
    """Yield what chooses in the body of a loop: tests, keys and indices."""
    for statement in loop.body:
        for each in ast.walk(statement):
            if isinstance(each, (ast.If, ast.While, ast.IfExp)):
                yield each.test
            elif isinstance(each, ast.Subscript) and not isinstance(each.slice, ast.Slice):
                yield each.slice
