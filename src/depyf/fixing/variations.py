"""Other inputs for a call that a program made: the same list in each process, since it depends on the call only.

f(x [3, 2] float32, n 4)   ->   as recorded; x all zeros; x with NaN; x [3, 0]; x float16; n 0; ...
"""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

#: Tensors and numbers of one call that are also varied alone, while the others are as recorded.
MOST_ALONE = 4

Change = Callable[[Any], Any]


@dataclass(frozen=True)
class Variation:
    """One input.

    Attributes:
        name: what differs from the recorded call, in words.
        args, kwargs: of the call.
        training: the mode to set on the module that is called; ``None``: as it is.
    """

    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    training: bool | None = None


def variations(function: Callable[..., Any], module: Any, args: tuple[Any, ...], kwargs: dict[str, Any],
               ) -> Iterator[Variation]:
    """Yield the inputs, each once: first the recorded one, then others with containers and tensors of their own."""
    seen: set[str] = set()
    for each in _all(function, module, args, kwargs):
        contents = repr((each.training, [_contents(value) for _, value in _leaves((each.args, each.kwargs))]))
        if contents not in seen:
            seen.add(contents)
            yield each


def _contents(value: Any) -> Any:
    if not isinstance(value, torch.Tensor) or value.numel() > 4096:
        return value if isinstance(value, (bool, int, float, str, type(None))) else id(value)
    return value.dtype, value.requires_grad, value.shape, value.detach().tolist()


def _all(function: Callable[..., Any], module: Any, args: tuple[Any, ...], kwargs: dict[str, Any],
         ) -> Iterator[Variation]:
    yield Variation("as recorded", args, kwargs)
    if isinstance(module, torch.nn.Module):
        mode = "training" if not module.training else "evaluation"
        yield Variation(f"in {mode} mode", args, kwargs, not module.training)
    places = [place for place, value in _leaves((args, kwargs)) if isinstance(value, torch.Tensor)]
    for name, change in _on_all(args, kwargs):
        yield _changed(name, args, kwargs, functools.partial(_everywhere, change))
    for one in places[:MOST_ALONE] if len(places) > 1 else ():
        for name, change in (*_VALUES[:4], *_TYPES, *_SHAPES):
            yield _changed(f"only {_place(one)}: {name}", args, kwargs, _only_at(one, change))
    yield from _numbers(args, kwargs)
    yield from _missing(function, args, kwargs)


def _on_all(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[tuple[str, Change]]:
    yield from ((f"tensors {name}", change) for name, change in (*_VALUES, *_TYPES, *_GRADIENTS))
    sizes = dict.fromkeys(size for _, value in _leaves((args, kwargs)) if isinstance(value, torch.Tensor)
                          for size in value.shape)
    for size in list(sizes)[:MOST_ALONE]:
        for other in dict.fromkeys((0, 1, size + 1, 2 * size, size - 1)):
            if other not in (size, -1):
                yield f"size {other} in the place of {size}", functools.partial(
                    _resized, functools.partial(_replaced, size, other))


def _replaced(size: int, other: int, shape: Sequence[int]) -> list[int]:
    return [other if each == size else each for each in shape]


def _everywhere(change: Change, place: Any, value: Any) -> Any:
    return change(value)


def _instead(other: Any, value: Any) -> Any:
    return other


def _only_at(wanted: Any, change: Change) -> Callable[[Any, Any], Any]:
    return lambda place, value: change(value) if place == wanted else value


# --- tensors --------------------------------------------------------------------------------------
def _of(applies: Callable[[torch.Tensor], bool], change: Callable[[torch.Tensor], torch.Tensor]) -> Change:
    """Return a change of tensors to which it applies: others, and what is no tensor, are left as they are."""
    def changed(value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or not applies(value):
            return value
        new = change(value.detach().clone()).detach()
        return new.requires_grad_((value.requires_grad or new.requires_grad) and new.is_floating_point())

    return changed


def _number(value: torch.Tensor) -> bool:
    return value.dtype != torch.bool and not value.is_complex()


def _with_first(number: float) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda value: value.flatten().index_fill(0, torch.zeros(
        min(1, value.numel()), dtype=torch.long, device=value.device), number).reshape(value.shape)


def _random(seed: int, scale: float) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda value: (torch.randn(value.shape, generator=torch.Generator().manual_seed(seed)) * scale).to(value)


#: Name, what it applies to, what it makes of a tensor.
_ROWS: tuple[tuple[str, Callable[[torch.Tensor], bool], Callable[[torch.Tensor], torch.Tensor]], ...] = (
    ("all zeros", _number, torch.zeros_like), ("all negative", _number, lambda value: -value.abs() - 1),
    ("all ones", _number, torch.ones_like), ("with a zero", _number, _with_first(0)),
    ("random", torch.is_floating_point, _random(0, 1.0)),
    ("random, wide", torch.is_floating_point, _random(1, 10.0)),
    ("with NaN", torch.is_floating_point, _with_first(float("nan"))),
    ("all NaN", torch.is_floating_point, lambda value: torch.full_like(value, float("nan"))),
    ("with inf", torch.is_floating_point, _with_first(float("inf"))),
    ("with -inf", torch.is_floating_point, _with_first(float("-inf"))),
    ("large", torch.is_floating_point, lambda value: value * 1e6),
    ("tiny", torch.is_floating_point, lambda value: value * 1e-6),
    ("large negative", _number, lambda value: -value.abs() * 1000 - 1),
    ("random, narrow", torch.is_floating_point, _random(2, 0.01)),
    ("whole numbers", torch.is_floating_point, torch.round),
    ("opposite", _number, torch.neg), ("plus one", _number, lambda value: value + 1),
)
_VALUES = tuple((name, _of(applies, change)) for name, applies, change in _ROWS)
_TYPES = tuple((str(dtype).removeprefix("torch."), _of(_number, functools.partial(torch.Tensor.to, dtype=dtype)))
               for dtype in (torch.float64, torch.float16, torch.int64))


def _graded(change: Change) -> Change:
    def graded(value: Any) -> Any:
        floating = isinstance(value, torch.Tensor) and value.is_floating_point()
        return change(value).detach().clone().requires_grad_() if floating else value

    return graded


_GRADIENTS = tuple((f"{name} that require a gradient".lstrip(), _graded(change))
                   for name, change in (("", lambda value: value), *_VALUES[:6]))


def _resized(shape_of: Callable[[Sequence[int]], list[int]], value: Any) -> Any:
    """Return a tensor of another shape with the same values, repeated."""
    def resized(value: torch.Tensor) -> torch.Tensor:
        shape = shape_of(value.shape)
        for dimension, size in enumerate(shape):
            if size != value.shape[dimension]:
                if not value.shape[dimension]:
                    return value.new_ones(shape)
                value = value.index_select(
                    dimension, torch.arange(size, device=value.device) % value.shape[dimension])
        return value

    return _of(lambda value: True, resized)(value)


_SHAPES: tuple[tuple[str, Change], ...] = tuple((name, functools.partial(_resized, shape_of)) for name, shape_of in (
    ("of one element in each dimension", lambda shape: [1] * len(shape)),
    ("with a first dimension of 1", lambda shape: [1, *shape[1:]][:len(shape)]),
    ("with a last dimension of 1", lambda shape: [*shape[:-1], 1][:len(shape)])))


def _numbers(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[Variation]:
    numbers = [(place, value) for place, value in _leaves((args, kwargs)) if isinstance(value, (bool, int, float))]
    for one, number in numbers[:MOST_ALONE]:
        others = (not number,) if isinstance(number, bool) else (
            type(number)(0), type(number)(1), type(number)(-1), type(number)(1000), -number, number + 1)
        for other in dict.fromkeys(others):
            put = functools.partial(_instead, other)
            yield _changed(f"{_place(one)} is {other!r}", args, kwargs, _only_at(one, put))


def _missing(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[Variation]:
    """Yield the call with each given argument as ``None`` whose default that is."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return
    for number, (name, parameter) in enumerate(parameters.items()):
        if parameter.default is None:
            without = tuple(None if n == number else each for n, each in enumerate(args))
            yield _changed(f"{name} is None", without, {**kwargs, **({name: None} if name in kwargs else {})},
                           lambda place, value: value)


# --- values in containers -------------------------------------------------------------------------
def _changed(name: str, args: tuple[Any, ...], kwargs: dict[str, Any], change: Callable[[Any, Any], Any]) -> Variation:
    return Variation(name, *_mapped((args, kwargs), (), change))


def _leaves(value: Any) -> list[tuple[tuple[Any, ...], Any]]:
    """Return what containers hold, each with its place in them."""
    found: list[tuple[tuple[Any, ...], Any]] = []
    _mapped(value, (), lambda place, each: found.append((place, each)))
    return found


def _mapped(value: Any, place: tuple[Any, ...], change: Callable[[Any, Any], Any]) -> Any:
    if isinstance(value, (list, tuple)):
        items = [_mapped(each, (*place, number), change) for number, each in enumerate(value)]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if type(value) is dict:
        return {key: _mapped(each, (*place, key), change) for key, each in value.items()}
    return change(place, copy.copy(value) if isinstance(value, set) else value)


def _place(place: tuple[Any, ...]) -> str:
    kind, first, *rest = place
    name = f"argument {first + 1}" if kind == 0 else f"argument {first}"
    return name + "".join(f"[{each!r}]" for each in rest)
