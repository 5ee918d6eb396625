"""Constants of ``co_consts`` as expressions that compile to them (those without such: ``constants``)."""

from __future__ import annotations

import ast
from typing import Any

from ..errors import LIFT, CannotDecompile
from ..lift import LOAD


class _Hexadecimal(int):
    """An integer that is written in base 16.

    In base 10 that takes quadratic time, and Python refuses it above 4300 digits.
    """

    def __repr__(self) -> str:
        return hex(self)


#: Larger integers are written in base 16.
_DECIMAL_BITS = 2000

#: Smaller whole numbers are the same as integers and as floats.
_EXACT = 2**53


def constant(value: Any) -> ast.expr:
    """Return a constant as an expression that compiles to it."""
    kind = type(value)
    if kind is int and value.bit_length() > _DECIMAL_BITS:
        positive = ast.Constant(_Hexadecimal(abs(value)))
        return ast.UnaryOp(ast.USub(), positive) if value < 0 else positive
    if kind in (int, float):
        if kind is float and value != value:
            return ast.BinOp(ast.Constant(1e309), ast.Sub(), ast.Constant(1e309))
        if value < 0 or (kind is float and str(value)[0] == "-"):
            return ast.UnaryOp(ast.USub(), ast.Constant(-value))
        return ast.Constant(value)
    if kind is complex:
        return complex_constant(value)
    if kind is tuple:
        return ast.Tuple([constant(v) for v in value], LOAD)
    if kind is frozenset:
        return ast.Set([constant(v) for v in sorted(value, key=repr)])
    if kind is slice:
        # 3.14 and later; only a subscript has a form for it
        lower, upper, step = (None if v is None else constant(v) for v in (value.start, value.stop, value.step))
        return ast.Slice(lower, upper, step)
    if value is None or value is Ellipsis or kind in (bool, str, bytes):
        return ast.Constant(value)
    raise CannotDecompile(LIFT, f"a constant of type {kind.__name__}")


def complex_constant(value: complex) -> ast.expr:
    """Return a complex number as an expression that preserves the signs of its zeros."""
    real, imag = value.real, value.imag
    imaginary: ast.expr = ast.Constant(complex(0, abs(imag)))
    negative = str(imag)[0] == "-"
    if real == 0 and str(real)[0] != "-" and not negative:
        return imaginary
    if negative and real == 0 and str(real)[0] == "-":
        return ast.UnaryOp(ast.USub(), imaginary)
    if imag == 0 and negative:
        return ast.UnaryOp(ast.USub(), complex_constant(-value))  # ``a - 0j`` has a zero without a sign
    whole = int(real) if real and abs(real) < _EXACT and real.is_integer() else real  # (``2 + 3j`` is more common)
    return ast.BinOp(constant(whole), ast.Sub() if negative else ast.Add(), imaginary)
