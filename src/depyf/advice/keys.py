"""Numbers by which items are looked up: out of a tensor, put into a set or a dictionary; and what only is a key.

    tokens.append(t.item())    ->    tokens.append(t)          # the tensor leaves the compiled function,
    seen.add(t.item())                                         # and where it is called: seen.add(t.item())

To hash a number needs its value. With ``capture_scalar_outputs`` torch has a symbol for it, which has none.
"""

from __future__ import annotations

import ast

from ..torch_text.parsed import parsed_expression
from .branches import unparsed
from .later_tests import on_number
from .made import made_for, reads_made
from .model import Advice
from .source import Function, Site, called, last_name, parsed_statement
from .uses import names_set

#: Methods of sets that hash what they are given, and return nothing.
_OF_SETS = ("add", "discard", "remove")


#: What looks an item up by a number of the data inside of a graph.
IN_A_TENSOR = ("keep the values in a tensor that is made before the call, each at the place that its key says, and "
               "look it up there: `{}`")


def on_key(site: Site) -> Advice | None:
    """Return the advice on a statement that hashes such a number, or looks something up by it; else ``None``."""
    return _on_stored(site) or _on_membership(site) or _on_item(site)


def _on_membership(site: Site) -> Advice | None:
    """Return the advice on a test for whether such a number is in a set, list or dictionary."""
    node = site.statement.test if isinstance(site.statement, (ast.If, ast.Assert, ast.While)) else site.statement
    for each in ast.walk(node) if node is not None else ():
        match each:
            case ast.Compare(key, [ast.In() | ast.NotIn()], [owner]) if _is_number(
                    key, site.function) and _is_given(owner, site):
                number, held = unparsed(key, site.text), unparsed(owner, site.text)
                return Advice(
                    "membership", f"keep what `{held}` holds in a tensor that is made before the call, and test in "
                    f"torch: `(values == {number}).any()`, with `torch.where` in place of a branch on it",
                    "to look a number up Python needs its value, which a graph does not have",
                    f"it is compared with all of `{held}`, which has to hold numbers")
    return None


def _on_item(site: Site) -> Advice | None:
    """Return the advice on an item of a dictionary or list that is looked up by such a number."""
    if not isinstance(site.statement, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return, ast.Expr)):
        return None
    for each in ast.walk(site.statement):
        match each:
            case ast.Subscript(owner, key, ast.Load()) if _is_number(key, site.function) and _is_given(owner, site):
                there = IN_A_TENSOR.format(f"values[{unparsed(key, site.text)}]")
                return Advice(
                    "item", f"{there} for `{unparsed(each, site.text)}`",
                    "a graph can choose a row of a tensor by a number of the data, but no item of a dictionary or list",
                    "the keys have to be whole numbers from 0 on, not too large, and the values of one shape and dtype")
    return None


def _on_stored(site: Site) -> Advice | None:
    """Return the advice on a statement that only puts such a number into a set or dictionary; else ``None``."""
    match site.statement:
        case ast.Expr(ast.Call(ast.Attribute(owner, method), [key], [])) if method in _OF_SETS:
            value: ast.expr = key
        case ast.Assign([ast.Subscript(owner, ast.Name() | ast.Call() as key)], value):
            pass
        case _:
            return None
    if site.statement is None or site.function is None or not _is_number(key, site.function):
        return None
    if _is_bound(owner, site.function) or set(made_for(value, site.function)) - {ast.unparse(key)}:
        return None  # (where the function is called there is no such thing)
    line = unparsed(site.statement, site.text)
    return Advice(
        "key", f"do it behind the compiled function: have that return the tensor that `{unparsed(key, site.text)}` is "
        f"taken out of, and run `{line}` with its number where it is called",
        "outside of a graph the number has a value",
        "what the compiled function itself looks up there does not hold the number yet")


def is_only_key(subject: str, line: str) -> bool:
    """Return whether a line uses a value as a key or an index, or a part of one, and for nothing else.

    ``self.seen[self.step] = x`` does of ``self.step``, and ``self.seen[self.step] = self.step`` does not.

    Args:
        subject: the value, as another frame may name it: ``self.scheduler.step``.
        line: as far as it is known.
    """
    statement = parsed_statement(line)
    name = last_name(expression) if (expression := parsed_expression(subject)) is not None else ""
    if statement is None or not name:
        return False
    keys = [key for each in ast.walk(statement) if isinstance(each, ast.Subscript) for key in _parts(each.slice)]
    uses = [each for each in ast.walk(statement)
            if isinstance(each, (ast.Name, ast.Attribute)) and last_name(each) == name]
    return bool(uses) and all(any(use is key for key in keys) for use in uses)


def _parts(key: ast.expr) -> list[ast.expr]:
    """Return the parts of a key: ``layer`` and ``expert`` of ``counts[layer, expert]``."""
    return [part for each in key.elts for part in _parts(each)] if isinstance(key, ast.Tuple) else [key]


def _is_number(key: ast.expr, function: Function | None) -> bool:
    """Return whether a key is a number out of a tensor, by the text: ``t.item()``, or a variable that is set to it."""
    if not isinstance(key, ast.Name):
        return _takes_number(key)
    for each in ast.walk(function) if function is not None else ():
        match each:
            case ast.Assign([target, *_], value) if on_number(target, {key.id}) and _takes_number(value):
                return True
            case ast.For(target, ast.Call() as values) if on_number(target, {key.id}) and called(values) == "tolist":
                return True
    return False


def _is_given(owner: ast.expr, site: Site) -> bool:
    """Return whether what items are looked up in is the same before the call: no line of the function fills it."""
    return site.function is not None and not reads_made(owner, site.function)


def _is_bound(owner: ast.expr, function: Function) -> bool:
    """Return whether a line of the function binds a variable of an expression."""
    names = {each.id for each in ast.walk(owner) if isinstance(each, ast.Name)}
    return not names_set(function).isdisjoint(names)


def _takes_number(value: ast.expr) -> bool:
    match value:
        case ast.Call(ast.Attribute(_, "item"), [], []) | ast.Call(ast.Name("int" | "float"), [_], []):
            return True
    return False
