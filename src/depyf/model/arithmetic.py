"""Arithmetic on sizes.

Sums as people write them, :func:`plain`: ``(x.shape[2] - 1) // 2 + 1`` for sympy's ``1 + (((-1) + x.shape[2]) // 2)``.
Polynomials, which show that ``3*n*n`` and ``n*(3*n)`` are the same size. Intervals.
"""

from __future__ import annotations

import ast
import operator
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from ..torch_text.parsed import AsOperators, parsed_expression
from ..values import frozen

_COMPUTED = re.compile(r"[*+]|\(-| - |\b[A-Z]\w+\(")  #: A sum, a product or a function of sympy's.


def plain(text: str, integers: bool = True) -> str:
    """Return a condition or size in the one form that all views show, from the text of any of torch's printers.

    ``64 - max(0, 64 - n)`` for ``64 - Max(0, 64 - n)`` and for ``-1*max(0, -1*n + 64) + 64``: Python's operators; in
    sums what is added by name, then what is subtracted, numbers last. Text that is not Python is returned as it is.

    Args:
        integers: its numbers are integers, so that the order in which they are added does not matter.
    """
    node = parsed_expression(text)
    return text if node is None else ast.unparse(_Plain(integers).visit(AsOperators().visit(node)))


def plain_sizes(text: str) -> str:
    """Return the same for a condition in the user's words; most of them compute nothing, and need not be parsed."""
    return plain(text) if _COMPUTED.search(text) else text


class _Plain(ast.NodeTransformer):
    def __init__(self, integers: bool) -> None:
        self._integers = integers

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.op, ast.Mult):
            is_negative, product = _signed(node)
            return _negative(product) if is_negative else product
        return _sum(node) if self._integers and isinstance(node.op, (ast.Add, ast.Sub)) else node


def _signed(node: ast.expr) -> tuple[bool, ast.expr]:
    """Return whether a product has a sign, and the product without it: ``n * m`` of ``-1 * n * m``."""
    match node:
        case ast.UnaryOp(ast.USub(), operand):
            is_negative, inner = _signed(operand)
            return not is_negative, inner
        case ast.BinOp(left, ast.Mult(), right):
            is_negative, first = _signed(left)
            return is_negative, right if number(first) == 1 else ast.BinOp(first, ast.Mult(), right)
    return False, node


def _negative(node: ast.expr) -> ast.expr:
    match node:
        case ast.BinOp(left, ast.Mult(), right):
            return ast.BinOp(_negative(left), ast.Mult(), right)
    return ast.UnaryOp(ast.USub(), node)


def _sum(node: ast.expr) -> ast.expr:
    terms = list(_terms(node, False))
    total = sum(-value if is_negative else value for is_negative, term in terms if (value := number(term)) is not None)
    ordered = sorted(((is_negative, term) for is_negative, term in terms if number(term) is None),
                     key=lambda each: (each[0], ast.unparse(each[1])))
    if total or not ordered:
        # (A number comes first where nothing else is without a sign: `64 - n`.)
        first = total >= 0 and all(is_negative for is_negative, _ in ordered)
        ordered.insert(0 if first else len(ordered), (total < 0, ast.Constant(abs(total))))
    is_negative, term = ordered.pop(0)
    result = _negative(term) if is_negative else term
    for is_negative, term in ordered:
        result = ast.BinOp(result, ast.Sub() if is_negative else ast.Add(), term)
    return result


def _terms(node: ast.expr, is_negative: bool) -> Iterator[tuple[bool, ast.expr]]:
    """Yield the terms of a sum, each with whether it is subtracted."""
    match node:
        case ast.BinOp(left, ast.Add() | ast.Sub() as sign, right):
            yield from _terms(left, is_negative)
            yield from _terms(right, is_negative != isinstance(sign, ast.Sub))
        case ast.UnaryOp(ast.USub(), ast.BinOp(_, ast.Add() | ast.Sub()) as inner):
            yield from _terms(inner, not is_negative)
        case _:
            has_sign, term = _signed(node)
            yield is_negative != has_sign, term


def number(node: ast.expr | None) -> int | None:
    """Return a whole number, which may have a sign; ``None`` for anything else."""
    match node:
        case ast.Constant(int(value)) if not isinstance(value, bool):
            return value
        case ast.UnaryOp(ast.USub(), ast.Constant(int(value))):
            return -value
    return None


def computes(node: ast.expr | None) -> bool:
    """Return whether an expression has a sum, a product or the like."""
    return node is not None and any(isinstance(each, ast.BinOp) for each in ast.walk(node))


def is_number(node: ast.expr | None) -> bool:
    """Return whether an expression is of numbers alone."""
    return node is not None and not any(isinstance(each, (ast.Name, ast.Call)) for each in ast.walk(node))


#: By the factors of each term, sorted, its coefficient: ``3*n*n + 1`` is ``{("n", "n"): 3, (): 1}``.
Polynomial = Mapping[tuple[str, ...], int]
_LARGEST_POWER = 8  #: The largest exponent that is multiplied out.


def polynomial(text: str, same: Mapping[str, str] | None = None) -> Polynomial | None:
    """Return an expression on integers multiplied out; ``None`` where the text is none.

    What is no sum, product or power counts as a variable. ``same`` has expressions that variables are equal to.
    """
    node = parsed_expression(text)
    return None if node is None else _multiplied_out(node, same or {})


def _multiplied_out(node: ast.expr, same: Mapping[str, str]) -> Polynomial:
    match node:
        case ast.Constant(int(value)) if not isinstance(value, bool):
            return _cleaned({(): value})
        case ast.UnaryOp(ast.USub(), operand):
            return _times({(): -1}, _multiplied_out(operand, same))
        case ast.BinOp(left, ast.Add() | ast.Sub() as sign, right):
            terms = Counter(_multiplied_out(left, same))
            for factors, coefficient in _multiplied_out(right, same).items():
                terms[factors] += coefficient if isinstance(sign, ast.Add) else -coefficient
            return _cleaned(terms)
        case ast.BinOp(left, ast.Mult(), right):
            return _times(_multiplied_out(left, same), _multiplied_out(right, same))
        case ast.BinOp(base, ast.Pow(), ast.Constant(int(exponent))) if 0 <= exponent <= _LARGEST_POWER:
            result: Polynomial = {(): 1}
            for _ in range(exponent):
                result = _times(result, _multiplied_out(base, same))
            return result
    variable = ast.unparse(node)
    if variable in same:
        # (What a size is equal to is said by sizes that are open: it is not looked up again.)
        return polynomial(same[variable]) or {}
    return {(variable,): 1}


def _times(first: Polynomial, second: Polynomial) -> Polynomial:
    terms: Counter[tuple[str, ...]] = Counter()
    for factors, coefficient in first.items():
        for others, other in second.items():
            terms[tuple(sorted((*factors, *others)))] += coefficient * other
    return _cleaned(terms)


def _cleaned(terms: Mapping[tuple[str, ...], int]) -> Polynomial:
    return {factors: coefficient for factors, coefficient in terms.items() if coefficient}


#: What is computed of two numbers, by the classes of syntax trees.
_OF_TWO: dict[type, Callable[[float, float], float]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
    ast.Eq: operator.eq, ast.NotEq: operator.ne}


def least(node: ast.expr, lows: Mapping[str, int]) -> float | None:
    """Return the value of an expression of numbers, the least one of another that never falls as its sizes grow.

    ``None`` for any other. ``lows``: the least value of each size.
    """
    match node:
        case ast.Constant(int() | float() as value) if not isinstance(value, bool):
            return value
        case ast.UnaryOp(ast.USub(), operand) if is_number(operand) and (inner := least(operand, lows)) is not None:
            return -inner
        case ast.BinOp(left, sign, right) | ast.Compare(left, [sign], [right]) if type(sign) in _OF_TWO:
            first, second = least(left, lows), least(right, lows)
            if first is None or second is None or not second and isinstance(sign, ast.FloorDiv | ast.Mod):
                return None
            rising: dict[type, bool] = {ast.Add: True, ast.Sub: is_number(right), ast.Mult: min(first, second) >= 0,
                                        ast.FloorDiv: is_number(right) and second > 0}
            return _OF_TWO[type(sign)](first, second) if rising.get(type(sign)) or is_number(node) else None
    return lows.get(ast.unparse(node))


def sizes_in(node: ast.AST | None) -> set[str]:
    """Return the sizes that an expression reads: ``x.shape[0]``."""
    return {ast.unparse(each) for each in (ast.walk(node) if node is not None else ())
            if isinstance(each, ast.Subscript) and isinstance(each.value, ast.Attribute) and each.value.attr == "shape"}


def substituted(text: str, names: Mapping[str, str]) -> str:
    """Return an expression with others in place of some of its parts: ``2*batch`` for ``2*x.shape[0]``."""
    replaced: list[tuple[int, int, str]] = []
    pending: list[ast.AST] = [node] if (node := parsed_expression(text)) is not None else []
    while pending:
        part = pending.pop()
        if isinstance(part, ast.Name | ast.Subscript) and (known := names.get(ast.unparse(part))) is not None:
            replaced.append((part.col_offset, part.end_col_offset or 0, known))
        else:
            pending += ast.iter_child_nodes(part)
    data = text.encode()
    for start, end, known in sorted(replaced, reverse=True):
        data = data[:start] + known.encode() + data[end:]
    return data.decode()


_RANGE = re.compile(r"(?:VR)?\[(-?\d+|-(?:int_)?oo), (-?\d+|(?:int_)?oo)\]")


@frozen
class Interval:
    """The whole numbers from one to another; ``None`` where there is no bound."""

    low: int | None = None
    high: int | None = None

    @classmethod
    def read(cls, text: str) -> Interval | None:
        """Return a range as torch prints it: ``"VR[2, int_oo]"``; ``None`` for one of other numbers."""
        match = _RANGE.fullmatch(text)
        return match and cls(*(None if bound.endswith("oo") else int(bound) for bound in match.groups()))

    def narrowed(self, sign: str, value: int, factor: int = 1) -> Interval:
        """Return the numbers of which a multiple compares like this with a value: ``16*n >= 2``."""
        if sign in (">", ">="):
            low = -(-value // factor) if sign == ">=" else value // factor + 1
            return replace(self, low=low if self.low is None else max(self.low, low))
        if sign in ("<", "<="):
            high = value // factor if sign == "<=" else -(-value // factor) - 1
            return replace(self, high=high if self.high is None else min(self.high, high))
        return self

    def in_words(self) -> str:
        """Return ``"2 to 256"``, ``"2"``, ``"2 or more"``, ``"at most 8"``, ``"any"``."""
        if self.low is None:
            return "any" if self.high is None else f"at most {self.high}"
        if self.low == self.high:
            return str(self.low)
        return f"{self.low} or more" if self.high is None else f"{self.low} to {self.high}"

    def in_sentence(self) -> str:
        """Return ``"from 2 to 256"``, ``"from 2 on"``, ``"up to 8"``; ``""`` where there is no bound."""
        if self.low is None:
            return f"up to {self.high}" if self.high is not None else ""
        if self.low == self.high:
            return f"that is {self.low}"
        return f"from {self.low} on" if self.high is None else f"from {self.low} to {self.high}"
