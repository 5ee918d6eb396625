"""``@frozen``: a frozen dataclass of which one method is compiled, not six.

``dataclasses`` writes and compiles each method of each class: 0.56 ms for five fields on CPython 3.11. Of the 0.16 s of
processor time in which ``depyf report`` is imported, 0.06 s were that. Here the constructor alone is compiled; the
other methods are functions over a tuple of the fields. (mypy refuses to set a field; nothing does at run time.)
"""

from __future__ import annotations

import operator
import reprlib
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:
    def dataclass_transform(**_):
        """Return a decorator that changes nothing: only type checkers read this one."""
        return lambda function: function

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[T]) -> type[T]:
    """Make a class of annotated fields a dataclass whose instances are compared and hashed by their fields."""
    made: Any = dataclass(eq=False, repr=False)(cls)
    of = fields(made)
    state = _getter([each.name for each in of if each.compare])
    shown = [each.name for each in of if each.repr]

    def same(self: object, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return bool(state(self) == state(other))

    @reprlib.recursive_repr()
    def text(self: object) -> str:
        return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"

    made.__eq__, made.__hash__, made.__repr__ = same, lambda self: hash(state(self)), text
    return cls


def _getter(names: list[str]) -> Callable[[object], tuple[Any, ...]]:
    """Return a function that returns a tuple of these attributes."""
    if len(names) < 2:
        return lambda of: tuple([getattr(of, name) for name in names])
    return operator.attrgetter(*names)
