"""Numbers of Python's that torch holds as tensors while it traces: those that ``random`` draws, above all.

    width = random.randint(1, 3)                         width = random.randint(1, 3)
    y = x[width:]                (inside of `crop`)  ->   y = crop(x, width)

In plain Python they are numbers all the same, so that no operation on tensors takes their place.
"""

from __future__ import annotations

import ast

from .branches import unparsed
from .calls import test_of_call
from .calls_in_loops import on_call_in_loop
from .model import Advice
from .source import Function, Site

#: Functions of ``random``, and methods of a generator, of which torch keeps the calls (``call_random_fn``).
_DRAWS = frozenset({"random", "randint", "randrange", "uniform"})
#: So many draws of a function are named.
_NAMED = 3


def is_number(site: Site) -> bool:
    """Return whether what broke the graph is a number of Python's that torch holds as a tensor."""
    return "UnspecializedPythonVariable" in site.broken.context


def on_drawn(site: Site) -> Advice | None:
    """Return the advice on a line for which torch would need a random number that the function draws."""
    if site.statement is None or site.function is None or not site.editable:
        return None
    here = [each for each in ast.walk(site.statement) if _draws(each)]
    if not here and not (is_number(site) and _reads_drawn(site.statement, site.function)):
        return None
    name = site.function.name
    why = "torch holds a random number as a tensor while it traces; a number from outside is an input of the graph"
    in_loop = on_call_in_loop(site, here[0], "drawn", why) if len(here) == 1 and isinstance(here[0], ast.Call) else None
    if in_loop is not None:
        return in_loop
    if isinstance(site.statement, ast.If) and len(here) == 1 and isinstance(here[0], ast.Call):
        test = test_of_call(site.statement.test, here[0], site.function)
        if test is not None:
            return Advice(
                "drawn", f"evaluate `{unparsed(test, site.text)}` before the compiled function is called, and pass the "
                f"result to `{name}`: `True` or `False`", why, f"a version for each of the two; `{name}`, and each "
                "compiled function that calls it, has one more parameter")
    drawn = list(dict.fromkeys(f"`{unparsed(each, site.text)}`" for each in ast.walk(site.function) if _draws(each)))
    shown = ", ".join(drawn[:_NAMED]) + (f" and {len(drawn) - _NAMED} more" if len(drawn) > _NAMED else "")
    them = "its result" if len(drawn) == 1 else "the results"
    return Advice(
        "drawn", f"call {shown} before the compiled function is called, and pass {them} to `{name}`", why,
        f"`{name}`, and each compiled function that calls it, has one more parameter for each; torch compiles again "
        "when such a number changes")


def _draws(node: ast.AST) -> bool:
    """Return whether a node is a call that draws a random number of Python's, as far as its text tells."""
    match node:
        case ast.Call(ast.Attribute(ast.Name(owner), name)) if name in _DRAWS:
            return owner not in ("torch", "np", "numpy")
    return False


def _reads_drawn(statement: ast.stmt, function: Function) -> bool:
    """Return whether a statement reads a name that the function gives to a random number, or to what is made of one."""
    drawn: set[str] = set()
    for node in sorted((each for each in ast.walk(function) if isinstance(each, (ast.Assign, ast.AugAssign))),
                       key=lambda each: each.lineno):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if any(_draws(each) or isinstance(each, ast.Name) and each.id in drawn for each in ast.walk(node.value)):
            drawn.update(each.id for each in targets if isinstance(each, ast.Name))
    return any(isinstance(each, ast.Name) and each.id in drawn for each in ast.walk(statement))
