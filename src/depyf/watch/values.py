"""Is there a NaN, or an infinity, in a value of a graph?"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

import torch

from ..capture.torch_private.quiet import holds_data, inner_tensors, without_side_effects

#: What ``stop_on`` may be.
StopOn = Literal["nan", "inf"] | Callable[[str, Any], bool]
_DEPTH = 12


class Condition:
    """The condition on which a value counts as bad.

    Args:
        stop_on: ``"nan"``, ``"inf"`` (of either sign), or ``(name, value) -> bool``, asked for each tensor and number.

    Raises:
        ValueError: it is none of these.
    """

    def __init__(self, stop_on: StopOn) -> None:
        if not callable(stop_on) and stop_on not in ("nan", "inf"):
            raise ValueError(f'stop_on={stop_on!r} is not known; give "nan", "inf" or a function (name, value) -> bool')
        self.stop_on = stop_on
        #: Kinds of values that could not be looked at, with the reason.
        self.unknown: dict[str, str] = {}

    @property
    def name(self) -> str:
        """Return the name of what is looked for, in words."""
        if callable(self.stop_on):
            return f"a value for which {getattr(self.stop_on, '__name__', 'stop_on')} is true"
        return "a NaN" if self.stop_on == "nan" else "an infinity"

    def is_literal(self, literals: frozenset[str]) -> bool:
        """Return whether constants in the text of a line are such values themselves."""
        return not callable(self.stop_on) and self.stop_on in literals

    def holds(self, name: str, value: Any) -> bool:
        """Return whether a value, or a part of it, is bad."""
        with without_side_effects():
            return any(self._leaf(name, leaf) for leaf in leaves(value))

    def _leaf(self, name: str, leaf: Any) -> bool:
        if callable(self.stop_on):
            if isinstance(leaf, torch.Tensor) and not holds_data(leaf):
                return False
            return bool(self.stop_on(name, leaf))
        if isinstance(leaf, torch.Tensor):
            return any(bool(mask.any()) for mask in self.masks(leaf))
        if isinstance(leaf, complex):
            return any(map(_NUMBERS[self.stop_on], (leaf.real, leaf.imag)))
        return isinstance(leaf, float) and _NUMBERS[self.stop_on](leaf)

    def masks(self, tensor: torch.Tensor) -> list[torch.Tensor]:
        """Return masks of where the tensor (or each tensor that it is made of) is bad. None for other values."""
        result: list[torch.Tensor] = []
        if callable(self.stop_on):
            return result
        for part in inner_tensors(tensor):
            if not (part.is_floating_point() or part.is_complex()) or not part.numel() or not holds_data(part):
                continue
            try:
                result.append(self._mask(part))
            except (RuntimeError, NotImplementedError, TypeError) as error:
                self.unknown.setdefault(f"{part.dtype} on {part.device.type}", str(error).split("\n")[0])
        return result

    def _mask(self, part: torch.Tensor) -> torch.Tensor:
        if part.is_complex():
            part = torch.view_as_real(part.resolve_conj())
        if part.dtype.itemsize < 2 or part.is_complex():
            part = part.to(torch.float32)  # torch compares no floats of eight bits
        return torch.isnan(part) if self.stop_on == "nan" else torch.isinf(part)


_NUMBERS: dict[Any, Callable[[float], bool]] = {"nan": math.isnan, "inf": math.isinf}


def leaves(value: Any, depth: int = 0) -> Iterator[Any]:
    """Tensors and numbers in nested tuples, lists and dictionaries."""
    if isinstance(value, (torch.Tensor, int, float, complex)):
        yield value
    elif depth < _DEPTH:
        if isinstance(value, (tuple, list)):
            for item in value:
                yield from leaves(item, depth + 1)
        elif isinstance(value, Mapping):
            for item in value.values():
                yield from leaves(item, depth + 1)


def described(name: str, value: Any, condition: Condition | None = None) -> str:
    """Return one line on a value: ``x: float32[4, 4], 3 of 16 elements, the first at [0, 2]``."""
    parts = []
    with without_side_effects():
        for leaf in leaves(value):
            if not isinstance(leaf, torch.Tensor):
                parts.append(repr(leaf))
                continue
            text = f"{str(leaf.dtype).removeprefix('torch.')}{list(leaf.shape)}"
            try:
                text += _counted(leaf, condition) if condition is not None else _range(leaf)
            except (RuntimeError, NotImplementedError, TypeError):
                pass  # only a description
            parts.append(text)
    shown = "; ".join(parts[:4]) + ("; ..." if len(parts) > 4 else "")
    return f"{name}: {shown}" if shown else f"{name}: {type(value).__name__}"


def _counted(tensor: torch.Tensor, condition: Condition) -> str:
    for mask in condition.masks(tensor):
        if mask.dim() > tensor.dim():  # real and imaginary parts
            mask = mask.any(-1)
        bad = int(mask.sum())
        if bad:
            first = [int(index) for index in mask.nonzero()[0]]
            return f", {bad} of {mask.numel()} elements" + (f", the first at {first}" if first else "")
    return ""


def _range(tensor: torch.Tensor) -> str:
    if not holds_data(tensor) or tensor.is_complex() or not tensor.numel():
        return ""
    smallest, largest = torch.aminmax(tensor)
    if tensor.numel() == 1:
        return f", {smallest.item():.6g}"
    return f", from {smallest.item():.6g} to {largest.item():.6g}"
