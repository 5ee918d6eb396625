"""Values of JSON -> records, as the annotations of their fields say; what is of another type is refused."""

from __future__ import annotations

import dataclasses
import functools
import types
import typing
from collections.abc import Callable
from typing import Any

from . import model

#: Builds what a field holds of a value of JSON.
_Builder = Callable[[Any], Any]


def build(kind: Any, value: Any) -> Any:
    """Build from a value of JSON what an annotation says.

    Raises:
        TypeError, ValueError: it is of another type, or fields are missing.
    """
    return _builder(kind)(value)


@functools.cache
def _builder(kind: Any) -> _Builder:
    """Return a function that builds what an annotation says.

    (Made once for each: a large model has a hundred thousand values.)
    """
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return _record(kind)
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        inner = _builder(next(argument for argument in arguments if argument is not type(None)))
        return lambda value: None if value is None else inner(value)
    if origin is tuple:
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return _items(arguments[0])
        parts = [_builder(argument) for argument in arguments]
        return lambda value: tuple(part(item) for part, item in zip(parts, _of(list, "a list", value), strict=True))
    if origin is dict:
        build_item = _builder(arguments[1])
        return lambda value: {key: build_item(item) for key, item in _of(dict, "a dictionary", value).items()}
    if kind is float:
        return lambda value: float(value) if isinstance(value, int) else _of(float, "float", value)
    if isinstance(kind, type):
        return lambda value: _of(kind, kind.__name__, value)
    return lambda value: value


def _of(kind: type, called: str, value: Any) -> Any:
    """Return the value, which is of a type."""
    if not isinstance(value, kind):
        raise TypeError(f"{called} expected, not {type(value).__name__}")
    return value


def _items(kind: Any) -> _Builder:
    build_item = _builder(kind)

    def items(value: Any) -> tuple[Any, ...]:
        return tuple(map(build_item, _of(list, "a list", value)))

    if kind is not str:
        return items

    def texts(value: Any) -> tuple[str, ...]:
        return tuple(value) if type(value) is list and set(map(type, value)) <= {str} else items(value)

    return texts


def _record(cls: type) -> _Builder:
    hints = typing.get_type_hints(cls, vars(model))
    kinds = {field.name: hints[field.name] for field in dataclasses.fields(cls)}
    builders = {name: _builder(kind) for name, kind in kinds.items()}

    def record(value: Any) -> Any:
        if not isinstance(value, dict):
            raise TypeError(f"{cls.__name__} expected, not {type(value).__name__}")
        # A later version may add fields; what is not known here is left out.
        return cls(**{name: item if type(item) is kinds[name] else builders[name](item)
                      for name, item in value.items() if name in kinds})

    return record
