"""How far rounding alone may take each value of a call: a run with float64 values besides its own.

In ``with Reference() as reference:`` each torch operation runs as usual, so that branches, casts and random numbers are
the program's, and again in float64 throughout (``exact``), and in float64 with an error on each result as large as
rounding in the result's own dtype (``disturbed``). The distance of a value from its exact one, and of the exact one
from the disturbed ones, is what a correct compiler's other order of operations may change.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ..capture.torch_private import operations
from ..capture.torch_private.operations import without_side_effects
from ..capture.torch_private.private_api import MissingPrivateApi
from ..values import frozen


@frozen
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
    """Return whether two values are equal within the tolerance, and their largest difference, which may be infinite."""
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
    equal, distance = False, float("nan")
    with contextlib.suppress(AssertionError):
        compare(actual, expected, rtol=tolerance.rtol, atol=tolerance.atol, equal_nan=True, check_stride=False,
                check_layout=False)
        equal = True
    with contextlib.suppress(RuntimeError, NotImplementedError, TypeError):
        if actual.dtype == torch.bool or not actual.numel():
            return equal, float((actual != expected).any())
        wide = torch.complex128 if actual.is_complex() else torch.float64
        one, other = actual.to(wide), expected.to(wide)
        same = (one == other) | (torch.isnan(one) & torch.isnan(other))
        off = torch.where(same, torch.zeros_like(one), one - other).abs()
        distance = float(torch.nan_to_num(off, nan=float("inf"), posinf=float("inf")).max())
    return equal, distance


# --- The reference run -------------------------------------------------------------------------------
#: Values besides the program's own: the exact ones, and two that are disturbed: one alone may be near by chance.
_COPIES = 3
_WIDE = {torch.float16: torch.float64, torch.bfloat16: torch.float64, torch.float32: torch.float64,
         torch.complex32: torch.complex128, torch.complex64: torch.complex128}
_HALF = (torch.float16, torch.bfloat16)
Values = tuple[torch.Tensor, ...]  #: Exact values, then disturbed ones.


@dataclass
class _Shadow:
    """The exact and the disturbed values of a storage, one for each of its elements."""

    memory: operations.Memory
    dtype: torch.dtype
    values: Values


class Reference:
    """Inside, runs each operation in float64, too."""

    def __init__(self) -> None:
        #: The exact and the disturbed values of each number that the program read out of a tensor.
        self.scalars: dict[float, tuple[float, ...]] = {}
        #: Operations that could not be repeated in float64; what follows from them has no measured error.
        self.incomplete: set[str] = set()
        self._shadows: dict[int, _Shadow] = {}
        self._swept = 1000
        self._mode: contextlib.AbstractContextManager[Any] = contextlib.nullcontext()
        self._generator = torch.Generator().manual_seed(0)

    def __enter__(self) -> Reference:
        try:
            self._mode = operations.watched(self._run)
        except MissingPrivateApi as error:
            self.incomplete.add(str(error))
        self._mode.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._mode.__exit__(*error)

    def _run(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        given = operations.tensors((args, kwargs))
        if not all(map(_is_plain, given)):
            return func(*args, **kwargs)
        before = torch.get_rng_state() if torch.Tag.nondeterministic_seeded in func.tags else None
        if func is torch.ops.aten._local_scalar_dense.default and given[0].is_floating_point():
            result = func(*args, **kwargs)
            self.scalars[result] = tuple(each.item() for each in self._of(given[0]))
            return result
        for each in given:
            self._of(each)  # before the operation changes one
        result = func(*args, **kwargs)
        outputs = operations.tensors(result)
        if func.is_view or not all(map(_is_plain, outputs)):
            return result  # the storage's shadow is a view's, too
        try:
            self._follow(func, args, kwargs, given, outputs, before)
        except Exception:  # what is measured here must not be in the way of what is judged
            self.incomplete.add(str(func))
        return result

    def _follow(
        self, func: Any, args: Any, kwargs: Any, given: list[torch.Tensor], outputs: list[torch.Tensor], before: Any,
    ) -> None:
        """Store the exact and disturbed values of what an operation wrote; ``before``: random numbers that it draws."""
        written = operations.written(func, args, kwargs)
        memory = set(map(operations.Memory.key, written))
        new = [number for number, each in enumerate(outputs) if operations.Memory.key(each) not in memory]
        outputs = [outputs[number] for number in new]
        # (Of an operation that only draws, what it drew is exact.)
        depends = before is None or (outputs and any(
            each.is_floating_point() and each.device.type == "cpu" for each in given))
        wide = [[operations.tensors(each)[number] for number in new]
                for each in (self._repeated(func, args, kwargs, before) if depends else ())]
        masks = [(one, other) for one, other in zip(outputs, wide[0] if wide else ()) if not one.is_floating_point()]
        if before is not None and not (masks and all(torch.equal(one, other) for one, other in masks)):
            wide = []  # (it is not known to have drawn in float64 what it drew before)
        if not wide:
            if before is None:
                self.incomplete.add(str(func))
            for each in (*outputs, *written):
                self._take(each, (each,) * _COPIES)
            return
        terms = _terms(func, given, outputs or written)
        for each in written:
            self._take(each, self._disturbed(self._of(each), each.dtype, terms))
        for each, *values in zip(outputs, *wide):
            self._take(each, self._disturbed(values, each.dtype, terms))
        if len(self._shadows) > self._swept:  # shadows of memory that is free
            self._shadows = {key: each for key, each in self._shadows.items() if not each.memory.is_free}
            self._swept = 2 * len(self._shadows) + 1000

    def of(self, tensor: torch.Tensor) -> Values | None:
        """Return copies of the exact and the disturbed values of a tensor; ``None`` where no operation used it."""
        if not _is_plain(tensor) or self._known(tensor) is None:
            return None
        return tuple(each.detach().cpu().clone() for each in self._of(tensor))

    def _repeated(self, func: Any, args: Any, kwargs: Any, before: Any) -> list[Any]:
        """Return the results of an operation on shadows of its tensors; ``[]``: it has no float64 form."""
        after = torch.get_rng_state() if before is not None else None
        try:
            results = []
            for number in range(_COPIES):
                def shadow(each: Any, number: int = number) -> Any:
                    return self._of(each)[number] if isinstance(each, torch.Tensor) else _WIDE.get(each, each)

                if before is not None:
                    torch.set_rng_state(before)
                wide_args, wide_kwargs = operations.replaced((args, kwargs), shadow)
                results.append(func(*wide_args, **wide_kwargs))
            return results
        except Exception:
            return []
        finally:
            if after is not None:
                torch.set_rng_state(after)

    def _disturbed(self, values: Sequence[torch.Tensor], dtype: torch.dtype, terms: float) -> Values:
        """Put a rounding error on an operation's results, exact and disturbed so far, but the exact one.

        Each element is a sum of so many terms; halves are added up in float32.
        """
        if not dtype.is_floating_point:
            return tuple(values)
        single = torch.finfo(torch.float32 if dtype in _HALF else dtype).eps
        size = max(torch.finfo(dtype).eps, single * math.sqrt(terms) / 4)
        return values[0], *(each * (1 + size * (torch.rand(
            each.shape, generator=self._generator, dtype=torch.float64) * 2 - 1).to(each.device))
            for each in values[1:])

    # --- shadows by storage, so that views share them as they share memory ---------------------------
    def _known(self, tensor: torch.Tensor) -> _Shadow | None:
        shadow = self._shadows.get(operations.Memory.key(tensor))
        return shadow if shadow is not None and not shadow.memory.is_free and shadow.dtype == tensor.dtype else None

    def _of(self, tensor: torch.Tensor) -> Values:
        shadow = self._known(tensor) or self._new(tensor)
        return tuple(operations.as_read(torch.as_strided(
            each, tensor.shape, tensor.stride(), tensor.storage_offset()), tensor) for each in shadow.values)

    def _new(self, tensor: torch.Tensor) -> _Shadow:
        storage = tensor.untyped_storage()
        flat = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
        flat.set_(storage, 0, (storage.nbytes() // tensor.element_size(),))
        wide = _WIDE.get(tensor.dtype, tensor.dtype)
        shadow = _Shadow(operations.Memory(tensor), tensor.dtype, tuple(
            flat.to(wide, copy=True) for _ in range(_COPIES)))
        self._shadows[operations.Memory.key(tensor)] = shadow
        return shadow

    def _take(self, tensor: torch.Tensor, values: Sequence[torch.Tensor]) -> None:
        """Write these values to the shadow of a tensor."""
        if self._known(tensor) is None:
            self._new(tensor)
        for mine, value in zip(self._of(tensor), values):
            mine.copy_(value)


def _is_plain(tensor: torch.Tensor) -> bool:
    return type(tensor) in (torch.Tensor, torch.nn.Parameter) and tensor.layout is torch.strided \
        and not tensor.is_meta and not tensor.is_quantized


def _terms(func: Any, given: list[torch.Tensor], outputs: list[torch.Tensor]) -> float:
    """Return the approximate number of terms that an operation adds up for one element of its result."""
    sizes = sorted((each.numel() for each in given if each.is_floating_point()), reverse=True)
    result = max((each.numel() for each in outputs), default=0)
    if torch.Tag.pointwise in func.tags or not sizes or not result:
        return 1.0
    return max(1.0, math.sqrt(sizes[0] * sizes[1] / result) if len(sizes) > 1 else sizes[0] / result)


# --- judging with it --------------------------------------------------------------------------------
def within_rounding(actual: torch.Tensor, expected: torch.Tensor, reference: Values) -> bool:
    """Return whether each element is as near to its exact value as rounding lets it be.

    The measure is the error of eager Python's value and of the disturbed ones, among elements of about one size (within
    a factor of eight). An element may be off by eight times the largest (four times, where numbers have 16 bits), and
    all of them on average by three times the average (more where they are few, as one may be small by chance); and each
    by a few units of its last digit, and of the last digit of numbers as large as the tensor's on average (at most 1).
    """
    exact, *disturbed = (each.reshape(-1) for each in reference)
    actual, expected = actual.detach().cpu().reshape(-1), expected.detach().cpu().reshape(-1)
    if not expected.dtype.is_floating_point and not expected.dtype.is_complex:
        # A whole number or truth value that rounding decides is one of these.
        return bool(torch.stack([actual == each for each in (expected, exact, *disturbed)]).any(0).all())
    one, other = actual.to(exact.dtype), expected.to(exact.dtype)
    same = (one == other) | (one.isnan() & other.isnan())
    if bool(same.all()):
        return True
    off = torch.where(same, 0.0, (one - exact).abs())
    if not bool(off.isfinite().all()):
        return False
    errors = torch.stack([(each - exact).abs() for each in (other, *disturbed)])
    errors = torch.where(errors.isfinite(), errors, 0.0)  # (where its dtype overflows, a compiler may compute wider)
    size = torch.where(exact.isfinite(), exact.abs(), 0.0)
    facts = torch.finfo(expected.dtype)
    # Inductor's erf and expm1 are a few digits off beside 1, however near to 0 their value is.
    scale = min(facts.eps, torch.finfo(torch.float32).eps) * (size ** 2).mean().sqrt().clamp(max=1.0)
    digit = facts.eps * size + facts.smallest_normal
    _, band = torch.unique(torch.floor(torch.log2(size.clamp(min=1e-300)) / 3), return_inverse=True)
    many = torch.bincount(band)

    def average(value: torch.Tensor) -> torch.Tensor:
        return (torch.zeros(len(many), dtype=value.dtype).index_add_(0, band, value ** 2) / many).sqrt()

    largest = torch.zeros(len(many), dtype=errors.dtype).scatter_reduce(0, band, errors.amax(0), "amax")
    often = 1 if expected.dtype in _HALF else 2  # (a compiler rounds to these less often than eager Python)
    near = off <= 4 * often * largest[band] + 2 * often * digit + 16 * scale
    usual = average((errors ** 2).mean(0).sqrt())
    on_average = average(off) <= (3 + 5 / many.sqrt()) * usual + average(digit) + 8 * scale
    return bool(near.all()) and bool(on_average.all())
