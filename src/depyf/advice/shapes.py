"""Operators whose result has a shape that only the data tells: with some of them torch makes a symbol of its size.

rows = x.nonzero()                  set torch._dynamo.config.capture_dynamic_output_shape_ops = True
loss = F.ctc_loss(lp, y, n, m)      call it outside of what is compiled: the setting does nothing there

ids = torch.unique_consecutive(x)   leave both lines out of what is compiled: with the setting torch 2.13 raises an
words = [V[i] for i in ids.tolist()]    error at the second one
"""

from __future__ import annotations

import ast
import re

from .branches import unparsed
from .later_tests import later_test, next_test, on_size
from .masks import with_mask
from .model import Advice
from .source import Site, called
from .uses import names_set

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
    taken = on_numbers_taken(site)
    if taken is not None:
        return taken
    if isinstance(site.statement, ast.For):
        return Advice(
            "turn", f"compile what one turn of the loop at line {site.statement.lineno} computes: a function of its "
            "own with `@torch.compile`, called in the loop; the loop stays in plain Python",
            "how often the loop turns depends on values in a tensor", "one call of compiled code for each turn")
    next_one = next_test(site, on_size)
    with_all = with_mask(site, next_one) if next_one is not None else None
    if with_all is not None:
        return with_all
    test = later_test(site, on_size)
    cost = f"{test} depends on it, and breaks the graph next" if test else (
        "a branch that depends on the size of the result breaks the graph again")
    return Advice("capture_dynamic_output_shape_ops", f"set `{_SETTING}`",
                  "the size of the result is then a symbol of the graph", cost, settings=(_SETTING,), next_break=test)


def on_numbers_taken(site: Site) -> Advice | None:
    """Return the advice on a line whose result ``.tolist()`` takes apart, though only the data tells its size.

    ``None`` where nothing does.
    """
    call = _taken_apart(site)
    return _taken_outside(site, call) if call is not None else None


def on_refused_numbers(site: Site) -> Advice | None:
    """Return the advice on a ``.tolist()`` at which torch raised an error since only the data tells the size."""
    inside = ast.walk(site.statement) if site.statement is not None and " in unbind)" in site.broken.reason else ()
    calls = [each for each in inside if isinstance(each, ast.Call) and called(each) == "tolist"]
    return _taken_outside(site, calls[0]) if len(calls) == 1 else None


def _taken_outside(site: Site, call: ast.Call) -> Advice:
    """Return the advice to take the numbers of a tensor outside of what is compiled."""
    return Advice(
        "numbers_of_unknown_size", "have the compiled function return what this line needs, and run the line and what "
        "depends on it outside of what is compiled",
        f"only the data tells how many numbers `{unparsed(call, site.text)}` (line {call.lineno}) takes, and where "
        "torch has a symbol for that it raises an error there", "what follows the line is no part of the graph")


def _gives_unknown_size(node: ast.AST) -> bool:
    """Return whether the result of an operator whose size only the data tells is all of an expression, by its text.

    It may be an item of that, or another view or type: ``x.nonzero().flatten()``, ``torch.where(m)[0]``, ``x[x > 0]``.
    """
    match node:
        case ast.Subscript(_, ast.Compare() | ast.UnaryOp(ast.Invert())):
            return True
        case ast.Subscript(owner) | ast.Call(ast.Attribute(owner, "flatten" | "squeeze" | "view" | "reshape" | "cpu"
                                                           | "long" | "int" | "float" | "detach" | "clone" | "to")):
            return _gives_unknown_size(owner)
        case ast.Call(ast.Attribute(ast.Name("torch"), "where"), [_], []):
            return True
        case ast.Call(ast.Attribute(ast.Name("torch"), name)):
            return name in _GIVE_SYMBOLS | {"unique"}
        case ast.Call(ast.Attribute(_, name)):
            return name in _GIVE_SYMBOLS | {"unique"} and name != "index"
    return False


def _taken_apart(site: Site) -> ast.Call | None:
    """Return the first ``.tolist()`` of what a line computes; ``None`` where there is none.

    That is one in the line itself, or the next one of a variable that the line assigns.
    """
    statement = site.statement
    if statement is None:
        return None
    for node in ast.walk(statement):
        match node:
            case ast.Call(ast.Attribute(inner, "tolist"), [], []) if _gives_unknown_size(inner):
                return node
    if not isinstance(statement, ast.Assign) or site.function is None or not _gives_unknown_size(statement.value):
        return None
    names = {each.id for target in statement.targets for each in (
        target.elts if isinstance(target, ast.Tuple) else [target]) if isinstance(each, ast.Name)}
    behind = (each for each in ast.walk(site.function) if isinstance(each, ast.stmt)
              and not hasattr(each, "body") and each.lineno > (statement.end_lineno or statement.lineno))
    for each in sorted(behind, key=lambda each: each.lineno):
        for node in ast.walk(each):
            match node:
                case ast.Call(ast.Attribute(ast.Name(name), "tolist"), [], []) if name in names:
                    return node
        names -= names_set(each)
    return None


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
