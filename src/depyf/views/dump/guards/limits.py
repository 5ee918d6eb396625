"""What guards demand of several open sizes, or of an expression over them, beyond a range for each.

::

    2 <= x.shape[2]    2 <= x.shape[3]               ranges, each for itself
    (x.shape[2] // 4)*(x.shape[3] // 4) == 36        an equation: few sizes are left
    2*x.shape[2]*x.shape[3] <= 4096                  a bound on what several sizes come to
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator

from ....torch_text.parsed import parsed_expression
from .arithmetic import polynomial
from .conditions import Condition
from .sizes import Sizes
from .versions import Version, kept

#: Of the operations on sizes, those whose results tell nearly each size from the others: no remainder does.
_TELLING = (ast.expr_context, ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.UnaryOp, ast.USub, ast.BinOp,
            ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Pow)


@kept
def equations(version: Version) -> dict[str, Condition]:
    """Return the open sizes of which an expression has to be one number, each with the equation.

    Of several equations it is the one on fewest sizes.
    """
    found: dict[str, Condition] = {}
    equated = [(sizes, one) for one in version.conditions if (sizes := _equated(one, version.sizes))]
    for sizes, one in sorted(equated, key=lambda each: len(each[0])):
        for size in sizes:
            found.setdefault(size, one)
    # (A size that is equal to another one has the name of that in shapes.)
    named = {version.sizes.names.get(size, ""): one for size, one in found.items()}
    return {**{size: named[name] for size, name in version.sizes.names.items() if name in named}, **found}


def _equated(condition: Condition, sizes: Sizes) -> set[str]:
    """Return the open sizes of an expression that a condition says has to be a number; none for another condition."""
    node = parsed_expression(condition.text) if " == " in condition.text and condition.tensor is None else None
    match node:
        case ast.Compare(left, [ast.Eq()], [right]) if _is_number(right) and all(
                isinstance(each, _TELLING) for each in ast.walk(left)):
            return {size for size in _sizes_in(left) if size in sizes.names}
    return set()


def _sizes_in(node: ast.expr) -> set[str]:
    """Return the sizes that an expression reads: ``x.shape[0]``."""
    return {ast.unparse(each) for each in ast.walk(node)
            if isinstance(each, ast.Subscript) and isinstance(each.value, ast.Attribute) and each.value.attr == "shape"}


def _is_number(node: ast.expr) -> bool:
    return not any(isinstance(each, (ast.Name, ast.Call)) for each in ast.walk(node))


@kept
def bounds(version: Version) -> dict[str, tuple[str, ...]]:
    """Return the open sizes that have an upper bound together with others, each with such bounds, as conditions.

    Of ``2*n*m <= 4096`` and ``n*m <= 4096`` the first says all.
    """
    least: dict[frozenset[tuple[tuple[str, ...], int]], tuple[float, str, set[str]]] = {}
    for text, left, most in _bounded(version):
        terms = polynomial(ast.unparse(left)) or {}
        divisor = math.gcd(*terms.values()) or 1
        key = frozenset((factors, coefficient // divisor) for factors, coefficient in terms.items())
        if key not in least or most / divisor < least[key][0]:
            least[key] = most / divisor, text, _sizes_in(left)
    found: dict[str, list[str]] = {}
    for _, text, sizes in least.values():
        alike = {version.sizes.names.get(size, size) for size in sizes}
        for size, name in version.sizes.names.items():
            if size in sizes or name in alike:
                found.setdefault(size, []).append(text)
    return {size: tuple(texts) for size, texts in found.items()}


def _bounded(version: Version) -> Iterator[tuple[str, ast.expr, int]]:
    """Yield conditions ``left <= most`` on several sizes: the text, the left side and the bound."""
    for one in version.conditions:
        node = parsed_expression(one.text) if " <" in one.text and one.tensor is None else None
        match node:
            case ast.Compare(left, [ast.Lt() | ast.LtE() as sign], [ast.Constant(int(most))]) if all(
                    isinstance(each, _TELLING) for each in ast.walk(left)) and len(_sizes_in(left)) > 1:
                yield one.text, left, most - isinstance(sign, ast.Lt)
