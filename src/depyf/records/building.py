"""Values of JSON -> records, as the annotations of their fields say; what is of another type is refused.

A name or message of absurd length is cut: views work on it many times. Only texts of code may be as long as their line.
"""

from __future__ import annotations

import dataclasses
import functools
import types
import typing
from collections.abc import Callable
from typing import Any

from .. import budgets
from . import model

#: The fields that hold texts of code.
_CODE = {
    model.CodeText: {"text"}, model.GraphStage: {"text"}, model.Kernel: {"text"}, model.SourceFile: {"text"},
    model.GuardsOfEntry: {"text"}, model.Bytecode: {"facts"}, model.PackedCode: {"data"}}
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
        return lambda value: {_text(key): build_item(item) for key, item in _of(dict, "a dictionary", value).items()}
    if kind is float:
        return _number
    if kind is str:
        return _text
    if isinstance(kind, type):
        return lambda value: _of(kind, kind.__name__, value)
    return lambda value: value


def _of(kind: type, called: str, value: Any) -> Any:
    """Return the value, which is of a type."""
    if not isinstance(value, kind):
        raise TypeError(f"{called} expected, not {type(value).__name__}")
    return value


def _text(value: Any) -> str:
    text: str = _of(str, "str", value)
    if len(text) <= budgets.TEXT.most or len(text) <= budgets.TEXT.allowed:
        return text
    return f"{text[: budgets.TEXT.allowed]} ... (cut: {budgets.TEXT.exceeded(len(text))})"


def _number(value: Any) -> float:
    if not isinstance(value, (int, float)) or not -1e300 < value < 1e300:
        raise TypeError(f"float expected, not {value if isinstance(value, float) else type(value).__name__}")
    return float(value)


def _items(kind: Any) -> _Builder:
    build_item = _builder(kind)

    def items(value: Any) -> tuple[Any, ...]:
        return tuple(map(build_item, _of(list, "a list", value)))

    if kind is not str:
        return items

    def texts(value: Any) -> tuple[str, ...]:
        plain = type(value) is list and set(map(type, value)) <= {str}
        return tuple(value) if plain and max(map(len, value), default=0) <= budgets.TEXT.most else items(value)

    return texts


def _record(cls: type) -> _Builder:
    hints = typing.get_type_hints(cls, vars(model))
    kinds = {field.name: hints[field.name] for field in dataclasses.fields(cls)}
    code = _CODE.get(cls, set())
    builders = {name: (lambda value: _of(str, "str", value)) if name in code else _builder(kind)
                for name, kind in kinds.items()}
    as_it_is = {name: kind for name, kind in kinds.items() if kind in (int, bool) or name in code}
    texts = {name for name, kind in kinds.items() if kind is str}
    short = budgets.TEXT.most

    def record(value: Any) -> Any:
        if not isinstance(value, dict):
            raise TypeError(f"{cls.__name__} expected, not {type(value).__name__}")
        # A later version may add fields; what is not known here is left out.
        return cls(**{
            name: item if type(item) is as_it_is.get(name) or type(item) is str and name in texts and len(item) <= short
            else builders[name](item) for name, item in value.items() if name in kinds})

    return record
