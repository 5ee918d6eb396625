"""Texts of numbers that torch keeps open: f-strings and ``%`` need their values, ``.format`` does not.

    print(f"step {step}: {loss:.3f}")     ->    print("step {}: {:.3f}".format(step, loss))

The text of a graph's number is made when the graph is done (``StringFormatVariable`` in torch). Before that no
dictionary finds it, and torch 2.13 goes on as if it were not there: the compiled function then computes something else.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator

from .branches import rewritten, unparsed
from .edits import of_statement, printed_after
from .model import Advice
from .source import Site, names_set

#: Methods of dictionaries that look up what they are given first.
_LOOKING_UP = frozenset({"get", "pop", "setdefault"})
_WHY = "torch makes the text of `.format` when the graph is done; an f-string and `%` need the number before that"
_COST = "nothing in the compiled function finds the text in a dictionary"


def on_text(site: Site) -> Advice | None:
    """Return the advice on a text of what has no value while torch traces; ``None`` where it has another cause."""
    if site.statement is None or not needs_value(site.broken.reason, site.broken.context):
        return None
    looked_up = on_looked_up(site)
    if looked_up is not None:
        return looked_up
    changed = _WithFormat().visit(copy.deepcopy(site.statement))
    if unparsed(changed, site.text) == unparsed(site.statement, site.text):
        by_percent = any(isinstance(each, ast.Mod) for each in ast.walk(site.statement))
        in_words = Advice("text", "format the text with `.format(...)` in place of `%`", _WHY, _COST)
        return in_words if by_percent else None
    call = of_statement(site, "print")
    if call is not None and not call.keywords and isinstance(changed, ast.Expr) and isinstance(changed.value, ast.Call):
        return printed_after(site, call, changed.value.args)
    return rewritten(site, [changed], rule="text", why=_WHY, cost=_COST)


def on_looked_up(site: Site) -> Advice | None:
    """Return the advice on a text of a number that a dictionary or the like is searched for; ``None`` where none is.

    (A symbol for the number would be no help, nor would ``.format``: torch would look up what has no text yet.)
    """
    search = _search_by_text(site)
    if search is None or site.function is None:
        return None
    return Advice(
        "text_as_key", f"make the text, and do `{unparsed(search, site.text)}`, in plain Python, where "
        f"`{site.function.name}` is called", "outside of a graph the number has a value; inside, torch makes its text "
        "only when the graph is done, and would look up what is no text yet",
        "what the compiled function itself needs of what is looked up has to be passed to it")


def _search_by_text(site: Site) -> ast.expr | None:
    """Return what looks something up by a text that the statement makes, or that is made of its number further down."""
    statement, function = site.statement, site.function
    if statement is None or function is None:
        return None
    later = [each for each in ast.walk(function) if getattr(each, "lineno", 0) > statement.lineno]
    set_here = names_set(statement)
    texts = [each for each in ast.walk(statement) if _is_text(each)]
    names = set_here if texts else set()
    texts = texts or [each for each in later if _is_text(each) and _reads(each, set_here)]
    for each in later:
        if isinstance(each, ast.Assign) and any(inner in texts for inner in ast.walk(each.value)):
            names |= names_set(each)
    return next((search for search, key in _searches([*ast.walk(statement), *later])
                 if key in texts or isinstance(key, ast.Name) and key.id in names), None)


def _is_text(node: ast.AST) -> bool:
    """Return whether an expression is a text with places for values."""
    match node:
        case ast.JoinedStr(values):
            return any(isinstance(each, ast.FormattedValue) for each in values)
        case ast.Call(ast.Attribute(ast.Constant(str()), "format")) | ast.BinOp(ast.Constant(str()), ast.Mod()):
            return True
    return False


def _reads(node: ast.AST, names: set[str]) -> bool:
    return any(isinstance(each, ast.Name) and each.id in names for each in ast.walk(node))


def _searches(nodes: list[ast.AST]) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield the expressions that look something up, with the keys."""
    for node in nodes:
        match node:
            case ast.AugAssign(ast.Subscript(_, key) as item) | (ast.Subscript(_, key, ast.Load()) as item):
                yield item, key
            case ast.Call(ast.Attribute(_, method), [key, *_]) if method in _LOOKING_UP:
                yield node, key
            case ast.Compare(key, [ast.In() | ast.NotIn()]):
                yield node, key


def needs_value(reason: str, context: str) -> bool:
    """Return whether a graph broke as a text needs the value of a number that torch keeps open.

    Args:
        reason: torch's heading.
        context: torch's account of what it met. (In plain Python ``%`` of a text and a tuple never raises this error.)
    """
    return reason.startswith("BUILD_STRING type error") and context.startswith("SymNodeVariable") or (
        "TypeError(\"unsupported operand type(s) for %: 'str' and " in context)


class _WithFormat(ast.NodeTransformer):
    """Writes ``"{:.3f}".format(x)`` for ``f"{x:.3f}"``."""

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.expr:
        text, given = "", []
        for part in node.values:
            match part:
                case ast.Constant(str(value)):
                    text += value.replace("{", "{{").replace("}", "}}")
                case ast.FormattedValue(value, conversion, spec) if (written := _written(spec)) is not None:
                    text += "{" + (f"!{chr(conversion)}" if conversion != -1 else "") + written + "}"
                    given.append(value)
                case _:
                    return node  # (what a placeholder says of the format is computed, too)
        return ast.Call(ast.Attribute(ast.Constant(text), "format", ast.Load()), given, []) if given else node


def _written(spec: ast.expr | None) -> str | None:
    """Return a format as it stands in a placeholder, ``":.3f"``; ``None`` where it is computed, too."""
    match spec:
        case None | ast.JoinedStr([]):
            return ""
        case ast.JoinedStr([ast.Constant(str(text))]):
            return f":{text}"
    return None
