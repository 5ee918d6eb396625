"""``@frozen``: what ``@dataclass(frozen=True)`` gives, at a small part of its cost when a program imports us.

``dataclasses`` reads the fields of each class and compiles six methods for it. Here fields are read when somebody needs
them, as a program that is watched makes records of few of the classes that there are; and nothing is compiled, as that
takes as long as making hundreds of them. To make, compare and write records :func:`fields_of` is enough, which takes a
seventh of the time that ``dataclasses`` does.
"""

from __future__ import annotations

import dataclasses
import functools
import operator
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:
    def dataclass_transform(**_):
        """Tell type checkers alone of a decorator."""
        return lambda decorator: decorator

T = TypeVar("T")
#: What ``dataclasses`` tells of a class: its fields, and their names for ``match``.
_TOLD = ("__dataclass_fields__", "__match_args__")
_MISSING: Any = dataclasses.MISSING
_reading = threading.RLock()


@dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field,))
def frozen(cls: type[T]) -> type[T]:
    """Make a class of annotated fields a dataclass whose instances cannot be changed, compared by their values."""
    made: Any = cls
    for name in _TOLD:
        setattr(made, name, _WhenAsked(made, name))
    made.__init__ = _initializer(made)
    made.__eq__, made.__hash__ = _compared_when_called(made)
    made.__repr__, made.__setattr__, made.__delattr__ = _shown, _refuse_to_set, _refuse_to_delete
    result: type[T] = made
    return result


class _WhenAsked:
    """What ``dataclasses`` tells of a class: found out when somebody asks, and then in the place of this."""

    def __init__(self, cls: type, name: str) -> None:
        self._cls = cls
        self._name = name

    def __get__(self, instance: object, owner: type) -> Any:
        with _reading:  # (It can be found out once only: fields are taken out of the class.)
            if vars(self._cls)[self._name] is self:
                for name in _TOLD:
                    delattr(self._cls, name)
                dataclasses.dataclass(init=False, repr=False, eq=False)(self._cls)
        return vars(self._cls)[self._name]


#: Annotations that ``dataclasses`` takes for something else than a field.
_NO_FIELDS = ("ClassVar", "InitVar", "KW_ONLY")


@functools.cache
def fields_of(cls: type) -> tuple[dataclasses.Field[Any], ...] | None:
    """Return the fields of a dataclass, as ``dataclasses.fields`` does; ``None`` of another class.

    Those of a class that :func:`frozen` made are read from its annotations, their types left out, unless somebody has
    asked ``dataclasses`` for them.
    """
    with _reading:
        if type(vars(cls).get(_TOLD[0])) is not _WhenAsked or len(cls.__mro__) > 2 or any(
                word in str(annotation) for annotation in cls.__annotations__.values() for word in _NO_FIELDS):
            return dataclasses.fields(cls) if hasattr(cls, _TOLD[0]) else None
        fields = []
        for name in cls.__annotations__:
            default = vars(cls).get(name, _MISSING)
            each: dataclasses.Field[Any] = default if type(default) is dataclasses.Field \
                else dataclasses.field(default=default)
            each.name = name
            fields.append(each)
        return tuple(fields)


def _fields(cls: type) -> tuple[dataclasses.Field[Any], ...]:
    fields = fields_of(cls)
    assert fields is not None, cls
    return fields


def _initializer(made: type) -> Any:
    """Return the ``__init__`` of a class, which reads the fields at its first call: few classes are instantiated."""
    names: tuple[str, ...] = ()
    #: ``(name, default, what makes one)`` of the fields that so many values leave.
    behind: list[tuple[tuple[str, Any, Callable[[], Any] | None], ...]] = []
    put = object.__setattr__

    def read() -> None:
        nonlocal names, behind
        fields: list[tuple[str, Any, Any]] = [
            (each.name, each.default, None if each.default_factory is _MISSING else each.default_factory)
            for each in _fields(made)]
        names = tuple(name for name, _, _ in fields)
        behind = [tuple(fields[count:]) for count in range(len(fields) + 1)]

    def __init__(self: Any, *values: Any, **named: Any) -> None:
        if not behind:
            read()
        count = len(values)
        if count > len(names):
            raise _wrong_arguments(made, values, named)
        for name, value in zip(names, values):
            put(self, name, value)
        used = 0
        for name, value, make in behind[count]:
            if name in named:
                value = named[name]
                used += 1
            elif make is not None:
                value = make()
            elif value is _MISSING:
                raise _wrong_arguments(made, values, named)
            put(self, name, value)
        if used != len(named):
            raise _wrong_arguments(made, values, named)

    return __init__


def _wrong_arguments(made: type, values: Sequence[object], named: Mapping[str, object]) -> TypeError:
    """Return the error that a dataclass with the fields of a class raises for these arguments."""
    fields = dataclasses.fields(made)
    twin = dataclasses.make_dataclass(made.__name__, [
        (each.name, object, dataclasses.field(default=each.default) if each.default_factory is _MISSING
         else dataclasses.field(default_factory=each.default_factory)) for each in fields])
    try:
        twin(*values, **named)
    except TypeError as error:
        return error
    raise AssertionError(f"{made.__name__} refuses arguments that a dataclass takes: {values}, {named}")


def _compared_when_called(made: Any) -> tuple[Any, Any]:
    """Return the ``__eq__`` and ``__hash__`` that put the real ones in their place when one of them is called."""

    def use_real_ones() -> None:
        values = operator.attrgetter(*(field.name for field in _fields(made) if field.compare))

        def same(self: object, other: object) -> bool:
            return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

        def hash_of(self: object) -> int:
            return hash(values(self))

        made.__eq__, made.__hash__ = same, hash_of

    def __eq__(self: Any, other: object) -> Any:
        use_real_ones()
        return made.__eq__(self, other)

    def __hash__(self: Any) -> int:
        use_real_ones()
        number: int = made.__hash__(self)
        return number

    return __eq__, __hash__


def _shown(self: Any) -> str:
    shown = (f"{field.name}={getattr(self, field.name)!r}" for field in dataclasses.fields(self) if field.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _refuse_to_set(self: object, name: str, value: object) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(self: object, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
