"""Other inputs for a call that a program made: the same list in each process, since it depends on the call only.

f(x [3, 2] float32, n 4)   ->   as recorded; x all zeros; x with NaN; x [3, 0]; x float16; n 0; ...
"""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import torch

MOST_ALONE = 4  #: Tensors and numbers of one call that are also varied alone, while the others are as recorded.

#: The keys and indices that lead to a value in (args, kwargs).
_Place = tuple[Any, ...]
_Call = tuple[tuple[Any, ...], dict[str, Any]]
_Change = Callable[[Any], Any]
_OfTensor = Callable[[torch.Tensor], torch.Tensor]


class Variation(NamedTuple):
    """One input: what differs from the recorded call, its arguments, the mode of the module (``None``: as it is)."""

    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    training: bool | None = None


def variations(function: Callable[..., Any], module: Any, args: tuple[Any, ...], kwargs: dict[str, Any],
               ) -> Iterator[Variation]:
    """Yield the inputs, each once: first the recorded one, then others with new containers and tensors."""
    def contents(value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or value.numel() > 4096:
            return value if isinstance(value, (bool, int, float, str, type(None))) else id(value)
        return value.dtype, value.requires_grad, value.shape, value.detach().tolist()

    seen: set[str] = set()
    for name, call, training in _all(function, module, (args, kwargs)):
        key = repr((training, [contents(value) for _, value in _leaves(call)]))
        if key not in seen:
            seen.add(key)
            yield Variation(name, *call, training)


def _all(function: Callable[..., Any], module: Any, call: _Call) -> Iterator[tuple[str, _Call, bool | None]]:
    yield "as recorded", call, None
    if isinstance(module, torch.nn.Module):
        yield f"in {'evaluation' if module.training else 'training'} mode", call, not module.training
    for name, change, place in _changes(list(_leaves(call))):
        yield name, _mapped(call, change, place), None
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return
    for number, (name, parameter) in enumerate(parameters.items()):
        if parameter.default is None:
            for place in (0, number), (1, name):
                yield f"{name} is None", _mapped(call, lambda value: None, place), None


def _changes(leaves: Sequence[tuple[_Place, Any]]) -> Iterator[tuple[str, _Change, _Place | None]]:
    """Yield changes of all tensors, of all sizes, of one tensor, of one number, with the place of the latter two."""
    for name, change in (*_VALUES, *_TYPES, *_GRADIENTS):
        yield f"tensors {name}", change, None
    tensors = [(place, value) for place, value in leaves if isinstance(value, torch.Tensor)]
    for size in list(dict.fromkeys(size for _, value in tensors for size in value.shape))[:MOST_ALONE]:
        for other in dict.fromkeys((0, 1, size + 1, 2 * size, size - 1)):
            if other not in (size, -1):
                yield f"size {other} in the place of {size}", _resized(functools.partial(
                    lambda old, new, shape: [new if each == old else each for each in shape], size, other)), None
    for place, _ in tensors[:MOST_ALONE] if len(tensors) > 1 else ():
        for name, change in (*_VALUES[:4], *_TYPES, *_SHAPES):
            yield f"only {_in_words(place)}: {name}", change, place
    numbers = [(place, value) for place, value in leaves if isinstance(value, (bool, int, float))]
    for place, number in numbers[:MOST_ALONE]:
        others = (not number,) if isinstance(number, bool) else (
            type(number)(0), type(number)(1), type(number)(-1), type(number)(1000), -number, number + 1)
        for new in dict.fromkeys(others):
            yield f"{_in_words(place)} is {new!r}", functools.partial(lambda new, _: new, new), place


# --- tensors --------------------------------------------------------------------------------------
def _of(applies: Callable[[torch.Tensor], bool], change: _OfTensor, gradient: bool = False) -> _Change:
    """Return a change of the tensors to which it applies; ``gradient``: they then require one."""
    def changed(value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or not applies(value):
            return value
        new = change(value.detach().clone()).detach()
        return new.requires_grad_((gradient or value.requires_grad) and new.is_floating_point())

    return changed


def _is_number(value: torch.Tensor) -> bool:
    return value.dtype != torch.bool and not value.is_complex()


def _with_first(number: float) -> _OfTensor:
    return lambda value: value.flatten().index_fill(0, torch.zeros(
        min(1, value.numel()), dtype=torch.long, device=value.device), number).reshape(value.shape)


def _random(seed: int, scale: float) -> _OfTensor:
    return lambda value: (torch.randn(value.shape, generator=torch.Generator().manual_seed(seed)) * scale).to(value)


def _resized(shape_of: Callable[[Sequence[int]], list[int]]) -> _Change:
    """Return a change to another shape with the same values, repeated."""
    def resized(value: torch.Tensor) -> torch.Tensor:
        shape = shape_of(value.shape)
        for dimension, size in enumerate(shape):
            if size != value.shape[dimension]:
                if not value.shape[dimension]:
                    return value.new_ones(shape)
                value = value.index_select(
                    dimension, torch.arange(size, device=value.device) % value.shape[dimension])
        return value

    return _of(lambda value: True, resized)


_FLOAT, _ANY = torch.is_floating_point, torch.is_tensor
#: Name, the tensors to which it applies, change.
_ROWS: tuple[tuple[str, Callable[[torch.Tensor], bool], _OfTensor], ...] = (
    ("all zeros", _ANY, torch.zeros_like), ("all negative", _is_number, lambda value: -value.abs() - 1),
    ("all ones", _ANY, torch.ones_like), ("with a zero", _is_number, _with_first(0)),
    ("random", _FLOAT, _random(0, 1.0)), ("random, wide", _FLOAT, _random(1, 10.0)),
    ("with NaN", _FLOAT, _with_first(float("nan"))), ("with inf", _FLOAT, _with_first(float("inf"))),
    ("with -inf", _FLOAT, _with_first(float("-inf"))),
    ("all NaN", _FLOAT, lambda value: torch.full_like(value, float("nan"))),
    ("large", _FLOAT, lambda value: value * 1e6), ("tiny", _FLOAT, lambda value: value * 1e-6),
    ("large negative", _is_number, lambda value: -value.abs() * 1000 - 1),
    ("whole numbers", _FLOAT, torch.round), ("opposite", _is_number, torch.neg),
)
_VALUES = tuple((name, _of(applies, change)) for name, applies, change in _ROWS)
# (A tensor of integers cannot require a gradient: that would be another program. A mask may come as numbers, too.)
_TYPES = (*((str(dtype).removeprefix("torch."), _of(applies, functools.partial(torch.Tensor.to, dtype=dtype)))
            for dtype, applies in ((torch.float64, _is_number), (torch.float16, _is_number),
                                   (torch.int64, lambda value: _is_number(value) and not value.requires_grad))),
          *((f"{dtype} in the place of bool{name}", _of(lambda value: value.dtype == torch.bool, functools.partial(
              change, dtype=getattr(torch, dtype)))) for dtype in ("int64", "float32") for name, change in (
                  ("", torch.Tensor.to), (", all zeros", torch.zeros_like), (", all ones", torch.ones_like))))
_GRADIENTS = tuple((f"{name} that require a gradient".lstrip(), _of(torch.is_floating_point, change, gradient=True))
                   for name, _, change in (("", None, torch.clone), *_ROWS[:6]))
_SHAPES = tuple((name, _resized(shape_of)) for name, shape_of in (
    ("of one element in each dimension", lambda shape: [1] * len(shape)),
    ("with a first dimension of 1", lambda shape: [1, *shape[1:]][:len(shape)]),
    ("with a last dimension of 1", lambda shape: [*shape[:-1], 1][:len(shape)])))


# --- values in containers -------------------------------------------------------------------------
def _leaves(value: Any, place: _Place = ()) -> Iterator[tuple[_Place, Any]]:
    """Yield the values in containers, each with its place."""
    if not isinstance(value, (list, tuple)) and type(value) is not dict:
        yield place, value
        return
    for key, each in value.items() if type(value) is dict else enumerate(value):
        yield from _leaves(each, (*place, key))


def _mapped(value: Any, change: _Change, only_at: _Place | None = None, place: _Place = ()) -> Any:
    """Return a copy of containers in which each value, or the one at a place, is changed."""
    if place and place == only_at:
        return change(value)
    if isinstance(value, (list, tuple)):
        items = [_mapped(each, change, only_at, (*place, number)) for number, each in enumerate(value)]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if type(value) is dict:
        return {key: _mapped(each, change, only_at, (*place, key)) for key, each in value.items()}
    value = copy.copy(value) if isinstance(value, set) else value
    return value if only_at else change(value)


def _in_words(place: _Place) -> str:
    kind, first, *rest = place
    name = f"argument {first + 1}" if kind == 0 else f"argument {first}"
    return name + "".join(f"[{each!r}]" for each in rest)
