"""A call that torch does not trace, which each turn of a loop makes anew: one result in its place is another program.

::

    for t in range(n):                                 picks = [random.random() < p for _ in range(n)]
        if random.random() < p:                   ->   f(x, picks)
            ...                 (inside of `f`)             if picks[t]: ...
"""

from __future__ import annotations

import ast

from .branches import unparsed
from .loops import Loop, loops_of
from .made import reads_made
from .model import Advice
from .source import Site

_PARAMETER = "`{}`, and each compiled function that calls it, has one more parameter"


def on_call_in_loop(site: Site, call: ast.Call, rule: str, why: str, as_what: str = "") -> Advice | None:
    """Return the advice on a call in a loop; ``None`` outside of loops.

    Args:
        rule: name of the rule.
        why: a result from outside helps.
        as_what: clause on what the results are passed as, where no test needs them.
    """
    loops = loops_of(site)
    if not loops or site.function is None:
        return None
    name = site.function.name
    test = site.statement.test if isinstance(site.statement, ast.If) and _is_part(call, site.statement.test) else None
    counted = all(isinstance(each, ast.For) for each in loops)
    if not counted or reads_made(call if test is None else test, site.function):
        return Advice(
            rule, f"compile what one turn of the loop at line {loops[-1].lineno} computes: a function of its own with "
            f"`@torch.compile`, called in the loop; `{unparsed(call, site.text)}` and `{name}` itself stay in plain "
            "Python", "each turn calls it anew, and torch does not trace what it calls; a turn without it is a graph",
            "one call of compiled code for each turn")
    if test is None:
        return Advice(
            rule, f"call `{unparsed(call, site.text)}` before the compiled function is called, once for each "
            f"{_turn(loops)}, and pass the results to `{name}`{as_what}", why, _PARAMETER.format(name))
    return Advice(
        rule, f"evaluate `{unparsed(test, site.text)}` before the compiled function is called, once for each "
        f"{_turn(loops)}, and pass the outcomes to `{name}`: a list of `True` and `False`", why,
        "a version for each combination of outcomes (where these are many, compute both sides in each turn, and choose "
        f"by a tensor of outcomes, with `torch.where`); {_PARAMETER.format(name)}")


def _turn(loops: list[Loop]) -> str:
    """Return how often a line runs: ``turn of the loop at line 3, in each turn of that at line 2``."""
    *outer, inner = loops
    around = "".join(f", in each turn of that at line {each.lineno}" for each in reversed(outer))
    return f"turn of the loop at line {inner.lineno}{around}"


def _is_part(node: ast.expr, whole: ast.expr) -> bool:
    return any(each is node for each in ast.walk(whole))
