"""``@frozen``: what ``@dataclass(frozen=True)`` gives, at a quarter of its cost when a program imports us.

``dataclasses`` compiles six methods for each class, of which five are the same for all. Here one is compiled.
"""

from __future__ import annotations

import dataclasses
import operator
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:
    def dataclass_transform(**_):
        """Tell type checkers alone of a decorator."""
        return lambda decorator: decorator

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field,))
def frozen(cls: type[T]) -> type[T]:
    """Make a class of annotated fields a dataclass whose instances cannot be changed, compared by their values."""
    made: Any = dataclasses.dataclass(init=False, repr=False, eq=False)(cls)
    fields = dataclasses.fields(made)
    values = operator.attrgetter(*(field.name for field in fields if field.compare))

    def same(self: object, other: object) -> bool:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    def hash_of(self: object) -> int:
        return hash(values(self))

    made.__init__ = _compiled_when_called(made, fields)
    made.__eq__, made.__hash__ = same, hash_of
    made.__repr__, made.__setattr__, made.__delattr__ = _shown, _refuse_to_set, _refuse_to_delete
    result: type[T] = made
    return result


def _compiled_when_called(made: type, fields: tuple[dataclasses.Field[Any], ...]) -> Any:
    """Return an ``__init__`` that compiles the real one at its first call: few classes are instantiated."""

    def __init__(self: Any, *values: Any, **named: Any) -> None:
        if vars(made)["__init__"] is __init__:
            made.__init__ = _initializer(made.__qualname__, fields)  # type: ignore[misc]
        made.__init__(self, *values, **named)  # type: ignore[misc]

    return __init__


def _initializer(name: str, fields: tuple[dataclasses.Field[Any], ...]) -> Any:
    """Return the ``__init__`` of a class of that name with these fields."""
    names: dict[str, Any] = {"_set": object.__setattr__, "_default": dataclasses.MISSING}
    parameters, body = [], []
    for field in fields:
        value = field.name
        if field.default_factory is not dataclasses.MISSING:
            names[f"_make_{field.name}"] = field.default_factory
            value = f"_make_{field.name}() if {field.name} is _default else {field.name}"
            parameters.append(f"{field.name}=_default")
        elif field.default is not dataclasses.MISSING:
            names[f"_default_{field.name}"] = field.default
            parameters.append(f"{field.name}=_default_{field.name}")
        else:
            parameters.append(field.name)
        body.append(f"    _set(self, {field.name!r}, {value})")
    exec("\n".join([f"def __init__(self, {', '.join(parameters)}):", *body]), names)
    names["__init__"].__qualname__ = f"{name}.__init__"
    return names["__init__"]


def _shown(self: Any) -> str:
    shown = (f"{field.name}={getattr(self, field.name)!r}" for field in dataclasses.fields(self) if field.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _refuse_to_set(self: object, name: str, value: object) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(self: object, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
