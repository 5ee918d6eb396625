"""What guards demand of expressions over open sizes, beyond a range for each.

::

    2 <= x.shape[2]    2 <= x.shape[3]               ranges, each for itself
    (x.shape[2] // 4)*(x.shape[3] // 4) == 36        an equation: few sizes are left
"""

from __future__ import annotations

import ast

from ....torch_text.parsed import parsed_expression
from .conditions import Condition
from .sizes import SIZE, Sizes
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
            return {size for size in SIZE.findall(condition.text) if size in sizes.names}
    return set()


def _is_number(node: ast.expr) -> bool:
    return not any(isinstance(each, (ast.Name, ast.Call)) for each in ast.walk(node))
