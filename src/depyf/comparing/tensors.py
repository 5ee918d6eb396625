"""Copies of values to compare later, and by how much two of them differ."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import torch

from ..capture.torch_private.operations import without_side_effects


@dataclasses.dataclass(frozen=True)
class Tolerance:
    """The largest distance of equal values; ``None``: ``torch.testing.assert_close``'s own, by dtype."""

    rtol: float | None = None
    atol: float | None = None


def snapshot(value: Any) -> Any:
    """Return a copy to compare later, without gradients."""
    with without_side_effects():
        if isinstance(value, torch.Tensor):
            return value.detach().clone()
        if isinstance(value, (tuple, list)):
            return tuple(snapshot(item) for item in value)
        return value


def difference(actual: Any, expected: Any, tolerance: Tolerance) -> tuple[bool, float]:
    """Return whether two values are equal within the tolerance, and their largest absolute difference.

    It is infinite where they cannot be subtracted.
    """
    if isinstance(expected, torch.Tensor) and isinstance(actual, torch.Tensor):
        with without_side_effects():
            return _tensors(actual, expected, tolerance)
    if isinstance(expected, (tuple, list)) and isinstance(actual, (tuple, list)) and len(actual) == len(expected):
        results = [difference(one, other, tolerance) for one, other in zip(actual, expected)]
        return all(equal for equal, _ in results), max((distance for _, distance in results), default=0.0)
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
        distance = torch.where(same, torch.zeros_like(one), one - other).abs()
        return float(torch.nan_to_num(distance, nan=float("inf"), posinf=float("inf")).max())
    except (RuntimeError, NotImplementedError, TypeError):
        return float("nan")
