"""Other inputs for a call that a program made: the same list in each process, since it depends on the call only.

f(x [3, 2] float32, n 4)   ->   as recorded; x all zeros; x with NaN; x [3, 0]; x float16; n 0; ...
"""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable, Iterator
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
        yield _changed(name, args, kwargs, _everywhere(change))
    for one in places[:MOST_ALONE] if len(places) > 1 else ():
        for name, change in (*_VALUES[:4], *_TYPES, *_alone()):
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
                yield f"size {other} in the place of {size}", functools.partial(_with_size, size, other)


def _everywhere(change: Change) -> Callable[[Any, Any], Any]:
    return lambda place, value: change(value)


def _only_at(wanted: Any, change: Change) -> Callable[[Any, Any], Any]:
    return lambda place, value: change(value) if place == wanted else value


def _always(other: Any) -> Change:
    return lambda value: other


def _with_size(size: int, other: int, value: Any) -> Any:
    shape = value.shape if isinstance(value, torch.Tensor) else ()
    return _resized(value, [other if each == size else each for each in shape])


def _floating(change: Callable[[torch.Tensor], torch.Tensor]) -> Change:
    """Return a change of the values of floating-point tensors; the rest is left as it is."""
    return lambda value: _like(value, change(value.detach().clone())) if isinstance(value, torch.Tensor) and (
        value.is_floating_point()) else value


def _numeric(change: Callable[[torch.Tensor], torch.Tensor]) -> Change:
    return lambda value: _like(value, change(value.detach().clone())) if isinstance(value, torch.Tensor) and (
        value.dtype != torch.bool and not value.is_complex()) else value


def _like(value: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """Return values as a tensor that requires a gradient where another does."""
    values = values.detach()
    return values.requires_grad_(value.requires_grad and values.is_floating_point())


def _with_first(value: torch.Tensor, number: float) -> torch.Tensor:
    if value.numel():
        value.reshape(-1)[0] = number
    return value


def _random(seed: int, scale: float) -> Callable[[torch.Tensor], torch.Tensor]:
    def drawn(value: torch.Tensor) -> torch.Tensor:
        generator = torch.Generator().manual_seed(seed)
        return (torch.randn(value.shape, generator=generator, dtype=torch.float32) * scale).to(value)

    return drawn


_VALUES: tuple[tuple[str, Change], ...] = (
    ("all zeros", _numeric(torch.zeros_like)), ("all negative", _numeric(lambda value: -value.abs() - 1)),
    ("all ones", _numeric(torch.ones_like)), ("with a zero", _numeric(lambda value: _with_first(value, 0))),
    ("with NaN", _floating(lambda value: _with_first(value, float("nan")))),
    ("all NaN", _floating(lambda value: torch.full_like(value, float("nan")))),
    ("with inf", _floating(lambda value: _with_first(value, float("inf")))),
    ("with -inf", _floating(lambda value: _with_first(value, float("-inf")))),
    ("large", _floating(lambda value: value * 1e6)), ("tiny", _floating(lambda value: value * 1e-6)),
    ("large negative", _numeric(lambda value: -value.abs() * 1000 - 1)), ("random", _floating(_random(0, 1.0))),
    ("random, wide", _floating(_random(1, 10.0))), ("random, narrow", _floating(_random(2, 0.01))),
    ("whole numbers", _floating(lambda value: value.round())),
    ("opposite", _numeric(lambda value: -value)), ("plus one", _numeric(lambda value: value + 1)),
)


def _cast(dtype: torch.dtype) -> Change:
    return lambda value: _like(value, value.detach().clone().to(dtype)) if isinstance(value, torch.Tensor) and (
        value.dtype not in (torch.bool, dtype) and not value.is_complex()) else value


_TYPES: tuple[tuple[str, Change], ...] = tuple(
    (str(dtype).removeprefix("torch."), _cast(dtype)) for dtype in (torch.float64, torch.float16, torch.int64))


def _graded(change: Change) -> Change:
    def graded(value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or not value.is_floating_point():
            return value
        return change(value).detach().clone().requires_grad_()

    return graded


_GRADIENTS: tuple[tuple[str, Change], ...] = tuple(
    (f"{name} that require a gradient".lstrip(), _graded(change))
    for name, change in (("", lambda value: value), *_VALUES[:4], _VALUES[11], _VALUES[12]))


def _alone() -> Iterator[tuple[str, Change]]:
    yield "of one element in each dimension", lambda value: _resized(value, [1] * value.ndim)
    yield "with a first dimension of 1", lambda value: _resized(value, [1, *value.shape[1:]]) if value.ndim else value
    yield "with a last dimension of 1", lambda value: _resized(value, [*value.shape[:-1], 1]) if value.ndim else value


def _resized(value: Any, shape: list[int]) -> Any:
    """Return a tensor of another shape with the same values, repeated."""
    if not isinstance(value, torch.Tensor):
        return value
    result = value.detach()
    for dimension, size in enumerate(shape):
        if size != result.shape[dimension]:
            if not result.shape[dimension]:
                return _like(value, value.new_ones(shape))
            result = result.index_select(
                dimension, torch.arange(size, device=value.device) % result.shape[dimension])
    return _like(value, result.clone())


def _numbers(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[Variation]:
    numbers = [(place, value) for place, value in _leaves((args, kwargs)) if isinstance(value, (bool, int, float))]
    for one, number in numbers[:MOST_ALONE]:
        others = (not number,) if isinstance(number, bool) else (
            type(number)(0), type(number)(1), type(number)(-1), type(number)(1000), -number, number + 1)
        for other in dict.fromkeys(others):
            yield _changed(f"{_place(one)} is {other!r}", args, kwargs, _only_at(one, _always(other)))


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
