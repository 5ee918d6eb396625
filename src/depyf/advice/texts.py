"""Texts of numbers that torch keeps open: f-strings and ``%`` need their values, ``.format`` does not.

    print(f"step {step}: {loss:.3f}")     ->    print("step {}: {:.3f}".format(step, loss))

The text of a graph's number is made when the graph is done (``StringFormatVariable`` in torch).
"""

from __future__ import annotations

import ast
import copy

from .branches import rewritten, unparsed
from .calls import of_statement, printed_after
from .model import Advice
from .source import Site

_WHY = "torch makes the text of `.format` when the graph is done; an f-string and `%` need the number before that"


def on_text(site: Site) -> Advice | None:
    """Return the advice on a text of what has no value while torch traces; ``None`` where it has another cause."""
    if site.statement is None or not needs_value(site.broken.reason, site.broken.context):
        return None
    changed = _WithFormat().visit(copy.deepcopy(site.statement))
    if unparsed(changed, site.text) == unparsed(site.statement, site.text):
        by_percent = any(isinstance(each, ast.Mod) for each in ast.walk(site.statement))
        in_words = Advice("text", "format the text with `.format(...)` in place of `%`", _WHY, "none")
        return in_words if by_percent else None
    call = of_statement(site, "print")
    if call is not None and not call.keywords and isinstance(changed, ast.Expr) and isinstance(changed.value, ast.Call):
        return printed_after(site, call, changed.value.args)
    return rewritten(site, [changed], rule="text", why=_WHY, cost="none")


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
