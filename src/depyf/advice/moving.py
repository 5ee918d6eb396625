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
from .made import changed_from, made_for
from .model import Advice
from .source import Function, Site, path_to

_WHY = "torch does not trace what it calls"


def moved(site: Site, call: ast.Call) -> Advice:
    """Return the advice to make a call, which is the whole statement, outside of the compiled function."""
    shown, function, statement = unparsed(call), site.function, site.statement
    somewhere = Advice("skipped", f"move `{shown}` out of what is compiled", _WHY, "it runs at another time")
    in_another = site.compiled_site is not None and site.compiled_site.function is not function
    tests = _tests_around(function, statement) if function is not None and statement is not None else None
    if function is None or statement is None or tests is None or in_another or loops_of(site):
        return somewhere
    needed = [each for node in (call, *tests) for each in made_for(node, function, before=statement.lineno)]
    if changed_from(function, statement, needed):
        if tests:
            return somewhere
        return Advice(
            "skipped", f"divide `{function.name}` here: compile what comes before this line and what comes after it as "
            f"functions of their own, and call `{shown}` between them", f"{_WHY}, and `{function.name}` changes what "
            "the call reads, before the line and after it", "two compiled functions in place of one; what both need is "
            "returned by the first")
    condition = f", under the same condition ({' and '.join(f'`{unparsed(each)}`' for each in tests)})" if tests else ""
    unless = f", unless `{function.name}` ended before this line" if ends_before(function, statement) else ""
    variables = " and ".join(f"`{each}`" for each in dict.fromkeys(needed) if each.isidentifier())
    if variables:
        return Advice(
            "skipped", f"move `{shown}` after the call of `{function.name}`{condition}{unless}, and have that return "
            f"{variables}", _WHY, "it then runs after all of the function")
    place, when = _place(function, statement)
    return Advice("skipped", f"move `{shown}` {place}{condition}{unless}{when}", _WHY,
                  "it then runs before or after all of the function")


def ends_before(function: Function, statement: ast.stmt) -> bool:
    """Return whether a call of a function may end on a line before a statement."""
    return any(isinstance(each, (ast.Return, ast.Raise)) and each.lineno < statement.lineno
               for each in ast.walk(function))


def _place(function: Function, statement: ast.stmt) -> tuple[str, str]:
    """Return where a call can be made, and when that is the same program, as far as its place tells."""
    body = [each for each in function.body if not (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))]
    if statement is body[0]:
        return f"before the call of `{function.name}`", ""
    last = body[-2:-1] if _returns_names(body[-1]) else body[-1:]
    if statement in last:
        return f"after the call of `{function.name}`", ""
    return f"out of `{function.name}`", (": before its call, if nothing on the lines above has to come first, or after "
                                         "it, if nothing on those below needs what it does")


def _returns_names(statement: ast.stmt) -> bool:
    """Return whether a statement returns variables or constants as they are."""
    match statement:
        case ast.Return(None | ast.Name() | ast.Constant()):
            return True
        case ast.Return(ast.Tuple(elements)):
            return all(isinstance(each, (ast.Name, ast.Constant)) for each in elements)
    return False


def _tests_around(function: Function, statement: ast.stmt) -> list[ast.expr] | None:
    """Return the tests of a function on which a statement in it depends, the outermost first.

    ``None`` where it depends on something else: an error that is caught, a context, a pattern.
    """
    tests: list[ast.expr] = []
    for around, block, _ in path_to(function, statement.lineno):
        match around:
            case ast.If(test):
                tests.append(test if block is around.body else ast.UnaryOp(ast.Not(), test))
            case _ if around is not function:
                return None
    return tests
