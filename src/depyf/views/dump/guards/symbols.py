"""The meaning of the symbols in a graph: ``s77``, ``u0``, ``zf35``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from ....records.model import Compilation, SymbolDecision
from ....torch_text.size_names import SYMBOL
from ....torch_text.user_expressions import user_expression
from .sizes import in_shape_words
from .versions import Version

_BOUND = re.compile(r"(?P<symbol>\w+) (?P<sign><=|>=|<|>) (?P<value>-?\d+)")


@dataclass
class _Range:
    low: int | None = None
    high: int | None = None

    def narrow(self, sign: str, value: int) -> None:
        if sign in (">", ">="):
            low = value + (sign == ">")
            self.low = low if self.low is None else max(self.low, low)
        else:
            high = value - (sign == "<")
            self.high = high if self.high is None else min(self.high, high)

    def words(self) -> str:
        if self.low is None:
            return f", at most {self.high}" if self.high is not None else ""
        return f", {self.low} or more" if self.high is None else f", {self.low} to {self.high}"


def symbol_table(text: str, version: Version) -> list[str]:
    """Return comments that say what each symbol in the text of a graph is; none if there are no symbols."""
    if version.compilation is None:
        return []
    used = dict.fromkeys(SYMBOL.findall("\n".join(line.partition("#")[0] for line in text.splitlines())))
    meanings = _meanings(version, version.compilation)
    return [f"# {symbol}: {meanings[symbol]}" for symbol in used if symbol in meanings]


def _meanings(version: Version, compilation: Compilation) -> dict[str, str]:
    ranges = _ranges(compilation.symbols)
    result: dict[str, str] = {}
    for decision in compilation.symbols:
        if decision.kind == "created" and decision.source:
            expression = in_shape_words(user_expression(decision.source))
            size = version.sizes.open.get(expression)
            result[decision.symbol] = f"{expression}, {size.range_in_words()}" if size is not None else expression
        elif decision.kind == "unbacked":
            result[decision.symbol] = _origin(decision) + ranges.get(decision.symbol, _Range()).words()
    return result


def _origin(decision: SymbolDecision) -> str:
    """Return how a value came about that only the data tells."""
    where = decision.location
    if where is None or not where.text:
        return "known only when the graph runs"
    match = re.match(r"[A-Za-z_][\w, ]* = (.*)$", where.text)
    return f"what {match[1] if match else where.text} gives (line {where.line}), known only when the graph runs"


def _ranges(decisions: Iterable[SymbolDecision]) -> dict[str, _Range]:
    """Return the ranges that conditions leave to the values of unbacked symbols."""
    result: dict[str, _Range] = {}
    for decision in decisions:
        bound = _BOUND.fullmatch(decision.symbol) if decision.kind == "guarded" else None
        if bound is not None:
            result.setdefault(bound["symbol"], _Range()).narrow(bound["sign"], int(bound["value"]))
    return result
