"""Sizes of a call that are asked for: ``x.0`` (or ``x.shape[0]``) is dimension 0 of ``x``, ``n`` a number."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from typing import Any

from ..torch_text.parsed import parsed_expression
from .conditions import Undecided, value_of
from .given import Given
from .values import TensorValue
from .written import NotAValue

_DIMENSION = re.compile(r"(?P<path>.+?)\.(?:(?:shape|size\(\))\[(?=-?\d+\]$))?(?P<index>-?\d+)\]?$")


class NotGiven(NotAValue):
    """A name in a list of sizes is of nothing that the call has.

    Attributes:
        path: what is missing, ``x`` of ``x.0``.
    """

    def __init__(self, name: str, path: str) -> None:
        super().__init__(f"{name}: the call has no {path}; give {path} to it, or name what it has")
        self.path = path


def resized(names: Sequence[str], size: int, given: Given) -> dict[str, Any]:
    """Return the values that change if all these names are of a size.

    Raises:
        NotGiven: a name is of no tensor or number that was given.
        NotAValue: a tensor has no such dimension.
    """
    changed: dict[str, Any] = {}
    for name in names:
        dimension = _DIMENSION.match(name)
        path = dimension["path"] if dimension else name
        value = changed.get(path, _value(path, name, given))
        if not dimension:
            changed[path] = size
            continue
        index = int(dimension["index"])
        if not isinstance(value, TensorValue) or not -len(value.shape) <= index < len(value.shape):
            raise NotAValue(f"{name}: {path} has no dimension {index}; it is {value}")
        shape = list(value.shape)
        shape[index] = size
        changed[path] = value.with_shape(shape)
    return changed


def _value(path: str, name: str, given: Given) -> Any:
    tree: ast.expr | None = parsed_expression(path)
    try:
        if tree is not None:
            return value_of(tree, given)
    except (Undecided, LookupError, TypeError):
        pass
    raise NotGiven(name, path)
