"""How far rounding alone may take each value of a call: a run with float64 values beside its own.

In ``with Reference() as reference:`` each operation of torch's runs as it would, so that branches, casts and random
numbers are the program's, and twice more beside that: in float64 throughout (``exact``), and in float64 with an error
put on each result as large as rounding in the result's own dtype makes (``disturbed``). How far a value is from its
exact one, and the exact one from the disturbed one, is what a correct compiler's other order of operations may change.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

#: Values beside the program's own: the exact ones, and two that are disturbed: one alone may be near by chance.
_COPIES = 3
_WIDE = {torch.float16: torch.float64, torch.bfloat16: torch.float64, torch.float32: torch.float64,
         torch.complex32: torch.complex128, torch.complex64: torch.complex128}
_HALF = (torch.float16, torch.bfloat16)
_READ = torch.ops.aten._local_scalar_dense.default
#: Exact values, then disturbed ones.
Values = tuple[torch.Tensor, ...]


@dataclass
class _Shadow:
    """The exact and the disturbed values of a storage, one for each of its elements."""

    storage: StorageWeakRef
    dtype: torch.dtype
    values: Values


class Reference(TorchDispatchMode):
    """Runs each operation in float64, too.

    Attributes:
        scalars: of each number that the program read out of a tensor: its exact and its disturbed values.
        incomplete: operations that could not be repeated in float64; what follows from them has no measured error.
    """

    def __init__(self) -> None:
        super().__init__()
        self.scalars: dict[float, tuple[float, ...]] = {}
        self.incomplete: set[str] = set()
        self._shadows: dict[int, _Shadow] = {}
        self._swept = 1000
        self._generator = torch.Generator().manual_seed(0)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        given = _tensors((args, kwargs))
        if not all(map(_is_plain, given)):
            return func(*args, **kwargs)
        drawn = torch.Tag.nondeterministic_seeded in func.tags
        before = torch.get_rng_state() if drawn else None
        if func is _READ and given[0].is_floating_point():
            result = func(*args, **kwargs)
            self.scalars[result] = tuple(each.item() for each in self._of(given[0]))
            return result
        for each in given:
            self._of(each)  # before the operation changes one
        result = func(*args, **kwargs)
        outputs = _tensors(result)
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
        """Give what an operation wrote or made its exact and disturbed values.

        Args:
            func, args, kwargs: the operation, which has run.
            given, outputs: tensors among its arguments and results.
            before: the state of random numbers before; ``None``: it draws none.
        """
        written = [each for each, writes in zip(given, _writes(func, args, kwargs)) if writes]
        memory = {each.untyped_storage()._cdata for each in written}
        outputs = [each for each in outputs if each.untyped_storage()._cdata not in memory]
        # (Of an operation that only draws, what it drew is exact.)
        depends = before is None or (outputs and any(
            each.is_floating_point() and each.device.type == "cpu" for each in given))
        wide = self._repeated(func, args, kwargs, before) if depends else []
        if before is not None and wide and not _same_draws(outputs, _tensors(wide[0])):
            wide = []
        if not wide:
            if before is None:
                self.incomplete.add(str(func))
            for each in (*outputs, *written):
                self._take(each, (each,) * _COPIES)
            return
        terms = _terms(func, given, outputs or written)
        for each in written:
            self._take(each, self._disturbed(self._of(each), each.dtype, terms))
        for each, *values in zip(outputs, *(
                [one for one in _tensors(each) if one.untyped_storage()._cdata not in memory] for each in wide)):
            self._take(each, self._disturbed(values, each.dtype, terms))
        self._sweep()

    def of(self, tensor: torch.Tensor) -> Values | None:
        """Return copies of the exact and the disturbed values of a tensor; ``None`` where no operation used it."""
        if not _is_plain(tensor) or self._known(tensor) is None:
            return None
        return tuple(each.detach().cpu().clone() for each in self._of(tensor))

    def _repeated(self, func: Any, args: Any, kwargs: Any, before: Any) -> list[Any]:
        """Return what an operation gives with shadows in place of its tensors; nothing: it cannot run so."""
        after = torch.get_rng_state() if before is not None else None
        try:
            results = []
            for number in range(_COPIES):
                if before is not None:
                    torch.set_rng_state(before)
                wide_args, wide_kwargs = tree_map_only(
                    (torch.Tensor, torch.dtype), lambda each, number=number: self._of(each)[number] if isinstance(
                        each, torch.Tensor) else _WIDE.get(each, each), (args, kwargs))
                results.append(func(*wide_args, **wide_kwargs))
            return results
        except Exception:  # an operation without a float64 form
            return []
        finally:
            if after is not None:
                torch.set_rng_state(after)

    def _disturbed(self, values: Sequence[torch.Tensor], dtype: torch.dtype, terms: float) -> Values:
        """Put a rounding error on an operation's results, but the exact one.

        Args:
            values: the results, exact and disturbed so far.
            dtype: in which the program has it.
            terms: how many numbers were added up for one element; halves are added up in float32.
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
        shadow = self._shadows.get(tensor.untyped_storage()._cdata)
        return shadow if shadow is not None and not shadow.storage.expired() and shadow.dtype == tensor.dtype else None

    def _of(self, tensor: torch.Tensor) -> Values:
        shadow = self._known(tensor) or self._new(tensor)
        views = [torch.as_strided(each, tensor.shape, tensor.stride(), tensor.storage_offset())
                 for each in shadow.values]
        if tensor.is_conj():
            views = [each.conj() for each in views]
        return tuple(torch._neg_view(each) for each in views) if tensor.is_neg() else tuple(views)

    def _new(self, tensor: torch.Tensor) -> _Shadow:
        storage = tensor.untyped_storage()
        flat = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
        flat.set_(storage, 0, (storage.nbytes() // tensor.element_size(),))
        wide = _WIDE.get(tensor.dtype, tensor.dtype)
        shadow = _Shadow(StorageWeakRef(storage), tensor.dtype, tuple(
            flat.to(wide, copy=True) for _ in range(_COPIES)))
        self._shadows[storage._cdata] = shadow
        return shadow

    def _take(self, tensor: torch.Tensor, values: Sequence[torch.Tensor]) -> None:
        """Give a tensor's part of its storage these values."""
        if self._known(tensor) is None:
            self._new(tensor)
        for mine, value in zip(self._of(tensor), values):
            mine.copy_(value)

    def _sweep(self) -> None:
        """Let go of the shadows of memory that is free."""
        if len(self._shadows) > self._swept:
            self._shadows = {key: each for key, each in self._shadows.items() if not each.storage.expired()}
            self._swept = 2 * len(self._shadows) + 1000


def _is_plain(tensor: torch.Tensor) -> bool:
    return type(tensor) in (torch.Tensor, torch.nn.Parameter) and tensor.layout is torch.strided \
        and not tensor.is_meta and not tensor.is_quantized


def _writes(func: Any, args: Any, kwargs: Any) -> list[bool]:
    """Return of each tensor among the arguments, in order, whether the operation writes to it."""
    written: list[bool] = []
    for number, parameter in enumerate(func._schema.arguments):
        value = args[number] if number < len(args) else kwargs.get(parameter.name)
        writes = parameter.alias_info is not None and parameter.alias_info.is_write
        written += [writes for each in tree_leaves(value) if isinstance(each, torch.Tensor)]
    return written


def _tensors(value: Any) -> list[torch.Tensor]:
    return [each for each in tree_leaves(value) if isinstance(each, torch.Tensor)]


def _same_draws(outputs: list[torch.Tensor], wide: list[torch.Tensor]) -> bool:
    """Return whether a random operation drew in float64 what it drew before: its mask is the same."""
    pairs = [(one, other) for one, other in zip(outputs, wide) if not one.is_floating_point()]
    return bool(pairs) and all(torch.equal(one, other) for one, other in pairs)


def _terms(func: Any, given: list[torch.Tensor], outputs: list[torch.Tensor]) -> float:
    """Return about how many products or numbers an operation adds up for one element of its result."""
    sizes = sorted((each.numel() for each in given if each.is_floating_point()), reverse=True)
    result = max((each.numel() for each in outputs), default=0)
    if torch.Tag.pointwise in func.tags or not sizes or not result:
        return 1.0
    return max(1.0, math.sqrt(sizes[0] * sizes[1] / result) if len(sizes) > 1 else sizes[0] / result)


# --- judging with it --------------------------------------------------------------------------------
def within_rounding(
    actual: torch.Tensor, expected: torch.Tensor, reference: Values, rtol: float = 0.0, atol: float = 0.0,
) -> bool:
    """Return whether each element is as near to its exact value as rounding lets it be.

    The measure is the error of eager Python's value and of the disturbed ones, among elements of about one size (within
    a factor of eight). An element may be off by eight times the largest (four times, where numbers have 16 bits), and
    all of them on average by three times the average (more where they are few, as one may be small by chance); and each
    by a few units of its last digit.

    Args:
        actual: of the run that is judged.
        expected: of eager Python, of the same shape and dtype.
        reference: the exact and the disturbed values.
        rtol, atol: what is allowed besides.
    """
    exact, *disturbed = (each.reshape(-1) for each in reference)
    actual, expected = actual.detach().cpu().reshape(-1), expected.detach().cpu().reshape(-1)
    if not expected.dtype.is_floating_point and not expected.dtype.is_complex:
        # A whole number or truth value that rounding decides is either.
        decided = torch.stack([each != expected for each in (exact, *disturbed)]).any(0)
        return bool(((actual == expected) | decided).all())
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
    digit = facts.eps * size + facts.smallest_normal
    _, band = torch.unique(torch.floor(torch.log2(size.clamp(min=1e-300)) / 3), return_inverse=True)
    bands = int(band.max()) + 1
    many = torch.bincount(band, minlength=bands)

    def mean(value: torch.Tensor) -> torch.Tensor:
        return (torch.zeros(bands, dtype=value.dtype).index_add_(0, band, value) / many).sqrt()

    largest = torch.zeros(bands, dtype=errors.dtype).scatter_reduce(0, band, errors.amax(0), "amax")
    besides = rtol * size + atol
    often = 1 if expected.dtype in _HALF else 2  # (a compiler rounds to these less often than eager Python)
    near = off <= 4 * often * largest[band] + 2 * often * digit + besides
    average = mean(off ** 2) <= (3 + 5 / many.sqrt()) * mean((errors ** 2).mean(0)) + mean((digit + besides) ** 2)
    return bool(near.all()) and bool(average.all())
