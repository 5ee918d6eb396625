"""A call by itself that torch does not trace: it is made outside of what is compiled, if its order allows that.

::

    loss.backward()                       step(x)
    if last:                      ->      if last:
        optimizer.zero_grad()                 optimizer.zero_grad()
"""

from __future__ import annotations

import ast

from .branches import unparsed
from .loops import loops_of
from .made import made_for
from .model import Advice
from .source import Function, Site, blocks

_WHY = "torch does not trace what it calls"


def moved(site: Site, call: ast.Call) -> Advice:
    """Return the advice to make a call, which is the whole statement, outside of the compiled function."""
    shown, name = unparsed(call), site.function.name if site.function is not None else "the function"
    if site.function is None or site.statement is None or loops_of(site):
        return Advice("skipped", f"move `{shown}` out of what is compiled", _WHY,
                      "what it does comes at another time than now")
    tests = _tests_around(site.function, site.statement)
    condition = f", under the same condition ({' and '.join(f'`{each}`' for each in tests)})" if tests else ""
    variables = " and ".join(f"`{each}`" for each in made_for(call, site.function) if each.isidentifier())
    if variables:
        return Advice(
            "skipped", f"move `{shown}` after the call of `{name}`{condition}, and have that return {variables}", _WHY,
            "it then runs after all of the function")
    place, when = _place(site.function, site.statement, name)
    return Advice("skipped", f"move `{shown}` {place}{condition}{when}", _WHY,
                  "it then runs before or after all of the function")


def _place(function: Function, statement: ast.stmt, name: str) -> tuple[str, str]:
    """Return where a call can be made, and when that is the same program, as far as its place tells."""
    body = [each for each in function.body if not (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))]
    if statement is body[0]:
        return f"before the call of `{name}`", ""
    last = body[-2:-1] if _returns_names(body[-1]) else body[-1:]
    if statement in last:
        return f"after the call of `{name}`", ""
    return f"out of `{name}`", (": before its call, if nothing on the lines above has to come first, or after it, if "
                                "nothing on those below needs what it does")


def _returns_names(statement: ast.stmt) -> bool:
    """Return whether a statement returns variables or constants as they are."""
    match statement:
        case ast.Return(None | ast.Name() | ast.Constant()):
            return True
        case ast.Return(ast.Tuple(elements)):
            return all(isinstance(each, (ast.Name, ast.Constant)) for each in elements)
    return False


def _tests_around(function: Function, statement: ast.stmt) -> list[str]:
    """Return the tests of a function on which a statement in it depends, the outermost first."""
    tests: list[str] = []
    around: ast.AST | None = function
    while around is not None and around is not statement:
        inner, block = next(((each, block) for block in blocks(around) for each in block
                             if each.lineno <= statement.lineno <= (each.end_lineno or each.lineno)), (None, None))
        if isinstance(around, ast.If) and inner is not None:
            text = unparsed(around.test)
            tests.append(text if block is around.body else f"not ({text})")
        around = inner
    return tests
