"""The sizes and numbers that a version holds for one value, though torch gave them symbols.

Torch says of some that it fixed them. Others stay open by name, while a condition on them leaves one value::

    s51 created, 1;  Eq(IntTrueDiv(-s51, 10), -0.1)       step / 10 was computed in Python, so step has to be 1
"""

from __future__ import annotations

import ast
from dataclasses import replace

from ..records.model import Compilation, SymbolDecision
from ..torch_text.parsed import parsed_expression
from ..torch_text.size_names import symbols_in
from ..torch_text.user_expressions import sources_in_words
from .dump.guards.versions import Version

#: Functions of sympy's and torch's that give another result for each value.
_ONE_TO_ONE = frozenset({"IntTrueDiv", "FloatTrueDiv", "ToFloat"})
_MEMBERS = (ast.Name, ast.Constant, ast.BinOp, ast.UnaryOp, ast.Call, ast.expr_context, ast.unaryop, ast.Add, ast.Sub,
            ast.Mult, ast.Div)


def fixed_symbols(compilation: Compilation, version: Version | None) -> list[SymbolDecision]:
    """Return the decisions that fix a symbol; for one that a condition fixes, such a decision is made."""
    fixed = [each for each in compilation.symbols if each.kind == "fixed"]
    known = {each.symbol for each in fixed}
    created = {each.symbol: each for each in compilation.symbols if each.kind == "created"}
    for each in compilation.symbols:
        symbol = specialized_symbol(each.symbol) if each.kind == "guarded" else ""
        if symbol in created and symbol not in known and holds(each, compilation, version):
            known.add(symbol)
            fixed.append(replace(created[symbol], kind="fixed", reason="a condition leaves one value",
                                 location=each.location))
    return fixed


def holds(condition: SymbolDecision, compilation: Compilation, version: Version | None) -> bool:
    """Return whether a condition that torch tested may hold for each call of the version."""
    # (A backend tests, for a backward graph, too, whether what is open equals the numbers of the first call, and drops
    # that again: such an equation is not among the guards.)
    if version is None or not _equals_number(condition.symbol):
        return True
    symbols = set(symbols_in(condition.symbol))
    return all(_is_fixed(version, each) for each in compilation.symbols
               if each.kind == "created" and each.symbol in symbols)


def _equals_number(condition: str) -> bool:
    match parsed_expression(condition):
        case ast.Call(ast.Name("Eq"), [_, right], []):
            return not any(isinstance(each, (ast.Name, ast.Call)) for each in ast.walk(right))
    return False


def _is_fixed(version: Version, created: SymbolDecision) -> bool:
    """Return whether the guards may leave one value of a size or number."""
    expressions = sources_in_words(created.source, {})
    return not any(each in version.sizes.names for each in expressions) or any(
        each in version.equations for each in expressions)


def specialized_symbol(condition: str) -> str:
    """Return the symbol of which a condition of torch's leaves one value, ``"s51"``; ``""`` where there is none."""
    symbols = set(symbols_in(condition))
    node = parsed_expression(condition) if len(symbols) == 1 else None
    match node:
        case ast.Call(ast.Name("Eq"), [left, right], []) if not symbols_in(ast.unparse(right)):
            if all(isinstance(each, _MEMBERS) for each in ast.walk(left)) and all(
                    isinstance(each.func, ast.Name) and each.func.id in _ONE_TO_ONE
                    for each in ast.walk(left) if isinstance(each, ast.Call)):
                return symbols.pop()
    return ""
