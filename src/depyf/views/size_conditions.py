"""Conditions on open sizes: those that Inductor made, and those that leave one value.

Where Inductor generates other code for a short reduction than for a long one, each range of sizes has a version. No
line of the program requires it::

    s77 <= 4096     asked for at _inductor/codegen/cpp.py:2273, need_use_acc_helper

A graph that comes from torch's compile cache brings its conditions along; where they were made is not known then.

Torch says of some sizes and numbers that it fixed them, though they had symbols. Others remain open by name, while a
condition on them leaves one value::

    s51 created, 1;  Eq(IntTrueDiv(-s51, 10), -0.1)       step / 10 was computed in Python, so step has to be 1
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ..model.arithmetic import is_number, plain
from ..model.guards import Condition, Range
from ..records.model import Compilation, GuardFailure, SourceLocation, SymbolDecision
from ..torch_text.guard_failures import number
from ..torch_text.libraries import is_of, short_path_of_torch
from ..torch_text.parsed import parsed_expression
from ..torch_text.size_names import bound_of_symbol, is_float, symbols_in, with_symbols
from ..torch_text.user_expressions import sources_in_words, sources_of, with_stack_names
from .changes import in_words
from .formatting import place_in_torch

if TYPE_CHECKING:
    from .dump.guards.versions import Version

_SIGNS: dict[type[ast.cmpop], Callable[[float, float], bool]] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Eq: operator.eq,
    ast.NotEq: operator.ne}
_OPERATORS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod}


def is_made_by_inductor(decision: SymbolDecision) -> bool:
    """Return whether Inductor added a condition, rather than a user's line."""
    return decision.kind == "guarded" and decision.location is not None and is_of("backend", decision.location.filename)


def how_made(place: SourceLocation) -> str:
    """Return how a condition of Inductor's came about, as a clause of Markdown."""
    if is_of("caches", place.filename):
        return "which came with the compiled graph from torch's cache"
    return f"which Inductor asked for when it compiled the graph ({place_in_torch(place)})"


def condition_of_inductor(
    failure: GuardFailure, compilation: Compilation | None, names: Mapping[str, str]
) -> SymbolDecision | None:
    """Return the condition of Inductor's for which a version did not fit a call; ``None`` if unknown."""
    if compilation is None:
        return None
    known = {each.symbol: in_words(sources_of(each.source)[0], names)
             for each in compilation.symbols if each.kind == "created" and each.source}
    subject, text = in_words(failure.subject, names), in_words(failure.text.partition(" # ")[0], names)
    failed = [each for each in compilation.symbols if each.kind == "guarded" and (
        _is_about(each, known, subject) and holds_at(each.symbol, failure.seen) is False
        or condition_in_words(each, compilation, names) == text)]
    return failed[0] if failed and all(map(is_made_by_inductor, failed)) else None


def condition_in_words(decision: SymbolDecision, compilation: Compilation, names: Mapping[str, str]) -> str:
    """Return a condition with sizes in place of their symbols: ``x.shape[0] <= 4096``; of equal sizes the first."""
    known = {each.symbol: in_words(sources_of(each.source)[0], {}) for each in compilation.symbols if each.source}
    integers = not any(map(is_float, symbols_in(decision.symbol)))
    return with_stack_names(
        plain(with_symbols(decision.symbol, lambda symbol: known.get(symbol, symbol)), integers), names)


def with_causes(
    conditions: Sequence[Condition], compilation: Compilation | None, names: Mapping[str, str]
) -> Sequence[Condition]:
    """Return the conditions of a version, those whose upper bound is Inductor's with its place as their cause.

    (Torch names one line for a range: that at which its lower bound became known.)
    """
    bounds: dict[tuple[str, int], SourceLocation] = {}
    for each in compilation.symbols if compilation is not None else ():
        symbol, sign, bound = bound_of_symbol(each.symbol) or ("", "", 0)
        if sign in ("<", "<=") and compilation is not None and each.location is not None and is_made_by_inductor(each):
            size = condition_in_words(replace(each, symbol=symbol), compilation, names)
            bounds[size, bound - (sign == "<")] = replace(
                each.location, filename=short_path_of_torch(each.location.filename))
    return [replace(one, cause=place) if isinstance(one, Range) and one.high is not None and (
        place := bounds.get((one.left, one.high))) else one for one in conditions]


def _is_about(decision: SymbolDecision, known: Mapping[str, str], subject: str) -> bool:
    """Return whether a condition is on one size alone, the one of a name."""
    symbols = set(symbols_in(decision.symbol))
    return len(symbols) == 1 and known.get(symbols.pop()) == subject


def holds_at(condition: str, value: str) -> bool | None:
    """Return whether a condition on one symbol is true for a number; ``None`` if unknown."""
    is_one = number(value) is not None and len({*symbols_in(condition)}) == 1
    node = parsed_expression(plain(with_symbols(condition, lambda _: f"({value})"), False)) if is_one else None
    match node:
        case ast.Compare(left, [sign], [right]) if type(sign) in _SIGNS:
            one, other = _number(left), _number(right)
            return None if one is None or other is None else bool(_SIGNS[type(sign)](one, other))
    return None


def _number(node: ast.expr) -> float | None:
    """Return the number that an expression of numbers gives; ``None`` where it is another one."""
    match node:
        case ast.Constant(int() | float() as constant):
            return constant
        case ast.UnaryOp(ast.USub(), operand):
            inner = _number(operand)
            return None if inner is None else -inner
        case ast.BinOp(left, sign, right) if type(sign) in _OPERATORS:
            one, other = _number(left), _number(right)
            if one is None or other is None or not other and type(sign) in (ast.FloorDiv, ast.Mod):
                return None
            return _OPERATORS[type(sign)](one, other)
    return None


# --- Sizes and numbers that a version fixes ----------------------------------------------------------
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
    """Return whether a condition that torch tested may be true for each call of the version."""
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
            return is_number(right)
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
