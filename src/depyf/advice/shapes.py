"""Operators whose result has a shape that only the data tells: with some of them torch makes a symbol of its size.

rows = x.nonzero()                  set torch._dynamo.config.capture_dynamic_output_shape_ops = True
loss = F.ctc_loss(lp, y, n, m)      call it outside of what is compiled: the setting does nothing there
"""

from __future__ import annotations

import ast
import re

from .branches import unparsed
from .later_tests import later_test, next_test, on_size
from .masks import with_mask
from .model import Advice
from .source import Site, called

#: The operator that torch names; without a namespace in front of it, it is of none that is known.
_OPERATOR = re.compile(r"Operator `(?P<namespace>\w+)\.(?P<name>\w+)\.(?P<overload>\w+)`")
#: Those of torch's that run without values and give a new symbol (torch/_subclasses/fake_impls.py, torch 2.13).
_GIVE_SYMBOLS = frozenset({
    "nonzero", "nonzero_numpy", "_unique", "_unique2", "unique_dim", "unique_consecutive", "unique_dim_consecutive",
    "repeat_interleave", "masked_select", "bincount", "index", "argwhere", "_pack_padded_sequence",
    "_padded_dense_to_jagged_forward"})
_SETTING = "torch._dynamo.config.capture_dynamic_output_shape_ops = True"


def on_shape(site: Site) -> Advice:
    """Return the advice on an operator whose result has a shape that depends on values in a tensor."""
    operator = _OPERATOR.search(site.broken.explanation)
    is_on = "no meta kernel" in site.broken.reason
    if operator is not None and (is_on or operator["namespace"] == "aten" and (
            operator["name"] not in _GIVE_SYMBOLS or operator["overload"] == "out")):
        return _outside(site, operator)
    next_one = next_test(site, on_size)
    with_all = with_mask(site, next_one) if next_one is not None else None
    if with_all is not None:
        return with_all
    test = later_test(site, on_size)
    cost = f"{test} depends on it, and breaks the graph next" if test else (
        "a branch that depends on the size of the result breaks the graph again")
    return Advice("capture_dynamic_output_shape_ops", f"set `{_SETTING}`",
                  "the size of the result is then a symbol of the graph", cost, settings=(_SETTING,), next_break=test)


def _outside(site: Site, operator: re.Match[str]) -> Advice:
    """Return the advice to call an operator outside of what is compiled."""
    named = operator["name"].strip("_").removeprefix("linalg_")
    inside = ast.walk(site.statement) if site.statement is not None else ()
    call = next((each for each in inside if isinstance(each, ast.Call) and called(each) == named), None)
    function = f"`{site.function.name}`" if site.function is not None else "the function"
    change = (f"have {function} return what `{unparsed(call.func)}` is given, and call that outside of what is compiled"
              if call is not None else f"keep the line out of {function}: run it outside of what is compiled")
    return Advice(
        "shape", change, f"torch cannot tell the shape of what `{operator['namespace']}.{operator['name']}` returns "
        "(`capture_dynamic_output_shape_ops` changes nothing there)", "what follows the line is no part of the graph")
