"""Answers for lists of sizes: ``x.0=1,2,8`` (or ``x.shape[0]``) is dimension 0 of ``x``, ``n=1`` a number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..torch_text.parsed import parsed_expression
from .conditions import Undecided, value_of
from .given import Given
from .values import TensorValue
from .written import NotAValue

if TYPE_CHECKING:
    from .oracle import Fit


class NotGiven(NotAValue):
    """A name in a list of sizes is of nothing that the call has: ``path`` is ``x`` of ``x.0``."""

    def __init__(self, name: str, path: str) -> None:
        super().__init__(f"{name}: the call has no {path}; give {path} to it, or name what it has")
        self.path = path


def answers_by_size(
    texts: Sequence[str], given: Given, ask: Callable[[Given], Fit]
) -> dict[str, dict[int, Fit]]:
    """Return the answers for lists of sizes, by the names of each list and by size.

    Args:
        texts: ``"x.0,y.0=1,2,8"``.
        given: the call that is changed.
        ask: gives the answer for a changed call.

    Raises:
        NotAValue: a text is no list of sizes, or a tensor has no such dimension.
        NotGiven: a name is of no tensor or number of the call.
    """
    lists = [numbers(text) for text in texts]
    return {",".join(names): {size: ask(given.changed(_resized(names, size, given))) for size in sizes}
            for names, sizes in lists}


def numbers(text: str) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Return the names and the sizes of a list of sizes: ``"x.0,y.0=1,2,8"``."""
    names, _, sizes = text.partition("=")
    try:
        found = tuple(int(size) for size in sizes.split(","))
    except ValueError:
        found = ()
    if not found or not all(name.strip() for name in names.split(",")):
        raise NotAValue(f"{text!r} is no list of sizes: write it like x.0=1,2,8,16 (dimension 0 of x), n=1,2 (a "
                        "number) or x.0,y.0=1,2 (both at once)")
    return tuple(name.strip() for name in names.split(",")), found


def _resized(names: Sequence[str], size: int, given: Given) -> dict[str, Any]:
    """Return the values that change if all these names are of a size."""
    changed: dict[str, Any] = {}
    for name in names:
        path, _, last = name.rpartition(".")
        index = last.removeprefix("size()[").removeprefix("shape[").removesuffix("]")
        if not path or not index.removeprefix("-").isdecimal():
            _value(name, name, given)
            changed[name] = size
            continue
        value = changed.get(path, _value(path, name, given))
        if not isinstance(value, TensorValue) or not -len(value.shape) <= int(index) < len(value.shape):
            raise NotAValue(f"{name}: {path} has no dimension {index}; it is {value}")
        shape = list(value.shape)
        shape[int(index)] = size
        changed[path] = value.with_shape(shape)
    return changed


def _value(path: str, name: str, given: Given) -> Any:
    tree = parsed_expression(path)
    try:
        if tree is not None:
            return value_of(tree, given)
    except (Undecided, LookupError, TypeError):
        pass
    raise NotGiven(name, path)
