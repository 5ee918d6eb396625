"""Copies of values, and how far two of them are apart."""

from __future__ import annotations

import collections
import copy
import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

from ..capture.torch_private.quiet import without_side_effects

_DEPTH = 12


@dataclasses.dataclass(frozen=True)
class Tolerance:
    """The distance that two values may be apart; ``None``: ``torch.testing.assert_close``'s own, by dtype."""

    rtol: float | None = None
    atol: float | None = None


class Memo(dict[int, Any]):
    """Copies by the id of the original; originals are kept, so that ids stay taken."""

    def __init__(self) -> None:
        super().__init__()
        self.originals: list[Any] = []


def copied(value: Any, memo: Memo) -> Any:
    """Return the value with its tensors copied: leaves of autograd that require a gradient where the original does.

    One tensor in two places stays one. What is neither a tensor nor a container is the same object.

    Args:
        value: nested tuples, lists, dictionaries and dataclasses.
        memo: copies so far.
    """
    if id(value) in memo:
        return memo[id(value)]
    result: Any = value
    if isinstance(value, torch.Tensor):
        result = _tensor(value)
    elif type(value) in (list, set):
        result = type(value)(copied(item, memo) for item in value)
    elif type(value) is collections.deque:
        result = collections.deque((copied(item, memo) for item in value), value.maxlen)
    elif isinstance(value, tuple):
        items = [copied(item, memo) for item in value]
        if any(new is not old for new, old in zip(items, value)):
            result = type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    elif isinstance(value, dict):
        result = dict.__new__(type(value)) if type(value) is not dict else {}
        result.update((key, copied(item, memo)) for key, item in value.items())
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        try:
            result = dataclasses.replace(value, **{
                each.name: copied(getattr(value, each.name), memo) for each in dataclasses.fields(value) if each.init})
        except (TypeError, ValueError):
            result = value
    memo[id(value)] = result
    memo.originals.append(value)
    return result


def _tensor(value: torch.Tensor) -> torch.Tensor:
    if type(value) not in (torch.Tensor, torch.nn.Parameter):
        try:
            result = copy.deepcopy(value)
            result.grad = None
            return result
        except (RuntimeError, TypeError, AttributeError):
            pass  # not a leaf, or a subclass that cannot be copied so
    with torch.no_grad():
        result = value.detach().clone(memory_format=torch.preserve_format)
    if isinstance(value, torch.nn.Parameter):
        return torch.nn.Parameter(result, requires_grad=value.requires_grad)
    return result.requires_grad_(value.requires_grad) if value.requires_grad else result


def kept(value: Any) -> Any:
    """Return a copy to compare later: without gradients, numbers and tensors only."""
    with without_side_effects():
        if isinstance(value, torch.Tensor):
            return value.detach().clone()
        if isinstance(value, (tuple, list)):
            return tuple(kept(item) for item in value)
        return value


def named_leaves(value: Any, name: str, depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Tensors and numbers with their places: ``("result[0]['loss']", tensor)``."""
    if isinstance(value, (torch.Tensor, bool, int, float, complex, str)) or value is None:
        yield name, value
    elif depth < _DEPTH:
        if isinstance(value, (tuple, list)):
            for index, item in enumerate(value):
                yield from named_leaves(item, f"{name}[{index}]", depth + 1)
        elif isinstance(value, Mapping):
            for key, item in value.items():
                yield from named_leaves(item, f"{name}[{key!r}]", depth + 1)
        elif dataclasses.is_dataclass(value) and not isinstance(value, type):
            for each in dataclasses.fields(value):
                yield from named_leaves(getattr(value, each.name, None), f"{name}.{each.name}", depth + 1)


def difference(actual: Any, expected: Any, tolerance: Tolerance) -> tuple[bool, float]:
    """Return whether two values are equal within the tolerance, and how far they are apart.

    That is their largest absolute difference, infinite where they cannot be subtracted.
    """
    if isinstance(expected, torch.Tensor) and isinstance(actual, torch.Tensor):
        with without_side_effects():
            return _tensors(actual, expected, tolerance)
    if isinstance(expected, (tuple, list)) and isinstance(actual, (tuple, list)) and len(actual) == len(expected):
        results = [difference(one, other, tolerance) for one, other in zip(actual, expected)]
        return all(equal for equal, _ in results), max((apart for _, apart in results), default=0.0)
    if isinstance(expected, float) and isinstance(actual, float):
        wide = [torch.tensor(each, dtype=torch.float64) for each in (actual, expected)]
        return _tensors(wide[0], wide[1], tolerance)
    same = type(actual) is type(expected) and bool(actual == expected)
    return same, 0.0 if same else float("inf")


def _tensors(actual: torch.Tensor, expected: torch.Tensor, tolerance: Tolerance) -> tuple[bool, float]:
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        return False, float("inf")
    compare: Callable[..., None] = torch.testing.assert_close
    try:
        compare(actual, expected, rtol=tolerance.rtol, atol=tolerance.atol, equal_nan=True, check_stride=False,
                check_layout=False)
        equal = True
    except AssertionError:
        equal = False
    return equal, _largest(actual, expected)


def _largest(actual: torch.Tensor, expected: torch.Tensor) -> float:
    try:
        if not actual.numel():
            return 0.0
        if actual.dtype == torch.bool:
            return float((actual != expected).any())
        wide = torch.complex128 if actual.is_complex() else torch.float64
        one, other = actual.to(wide), expected.to(wide)
        same = (one == other) | (torch.isnan(one) & torch.isnan(other))
        apart = torch.where(same, torch.zeros_like(one), one - other).abs()
        return float(torch.nan_to_num(apart, nan=float("inf"), posinf=float("inf")).max())
    except (RuntimeError, NotImplementedError, TypeError):
        return float("nan")
