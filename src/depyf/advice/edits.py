"""The change of ``print``: torch prints when the graph is done, with arguments that it can keep until then."""

from __future__ import annotations

import ast
from dataclasses import replace

from .branches import unparsed, with_lines
from .facts import Facts
from .model import Advice

#: Torch's setting for calls that it makes after the graph, as the beginning of a line of a program.
REORDER = "torch._dynamo.config.reorderable_logging_functions.add"
#: Types of arguments that torch can print after the graph (``LoggingFunction.can_reorder_logs``).
_PRINTABLE = frozenset({"str", "bool", "NoneType", "Tensor", "dtype", "device"})
#: Types of numbers that torch may leave open, and of containers of them, which torch can format after the graph.
_FORMATTED = frozenset({"int", "float", "Size", "tuple", "list", "dict"})
_WHY = "torch then prints after the graph instead of ending it here"
_COST = ("the text comes when the graph is done, so after other output, and shows tensors that are changed in place as "
         "they are then")


def printed(at: Facts) -> Advice | None:
    """Return the advice to let torch print after the graph; ``None`` where it does not tell the types of arguments.

    (What a function prints that the compiled one calls is lost then: torch 2.13.)
    """
    match at.statement:
        case ast.Expr(ast.Call(ast.Name("print"), given, []) as call) if (
                len(at.met.types) == len(given) and not at.is_inlined and not at.is_generator
                and not any(isinstance(each, ast.Starred) for each in given)):
            setting = f"{REORDER}(print)"
            shown = [_shown(each, kind) for each, kind in zip(given, at.met.types)]
            if shown == given:
                return Advice("print", f"set `{setting}`", _WHY, _COST, settings=(setting,))
            line = unparsed(ast.Expr(ast.Call(call.func, shown, [])), at.site.text)
            advice = with_lines(at.site, "print", [line], _WHY, _COST)
            return replace(advice, change=f"{advice.change}, and set `{setting}`", settings=(setting,))
    return None


def _shown(argument: ast.expr, kind: str) -> ast.expr:
    """Return an argument of a type as torch can print it after the graph."""
    if kind in _PRINTABLE or isinstance(argument, ast.Constant):
        return argument
    if kind in _FORMATTED:  # (an f-string of an open number would make torch fix it)
        return ast.Call(ast.Attribute(ast.Constant("{}"), "format", ast.Load()), [argument], [])
    return ast.Call(ast.Name("str", ast.Load()), [argument], [])
