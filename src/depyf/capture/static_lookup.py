"""Look at the user's objects without running the user's code: in dictionaries only, like ``inspect.getattr_static``."""

from __future__ import annotations

import sys
import types
from typing import Any

#: The result of a look-up that finds nothing.
MISSING = object()
_CLASS = vars(object)["__class__"]


def class_entry(kind: type, name: str, otherwise: Any = MISSING) -> Any:
    """Return the entry of a class, or of the first of its bases that has one, under a name."""
    for each in type.__getattribute__(kind, "__mro__"):
        entries = vars(each)
        if name in entries:
            return entries[name]
    return otherwise


def own_attributes(value: Any) -> dict[str, Any]:
    """Return the dictionary of an instance; an empty one if it has none."""
    try:
        attributes = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return {}
    return attributes if type(attributes) is dict else {}


def closure_values(function: types.FunctionType) -> dict[str, Any]:
    """Return the captured variables of a function that have a value, by name."""
    values = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        try:
            values[name] = cell.cell_contents
        except ValueError:
            pass  # not assigned yet
    return values


def is_of(value: Any, *kinds: type) -> bool:
    """Return whether a value is of one of the kinds, by its type alone: ``isinstance`` reads its ``__class__``, too."""
    return any(each is kind for each in type(value).__mro__ for kind in kinds)


def is_module(value: Any) -> bool:
    """Return whether a value is a ``torch.nn.Module``; torch is not imported for that."""
    return is_module_class(type(value))


def is_module_class(kind: type) -> bool:
    """Return whether a class is one of modules."""
    home = sys.modules.get("torch.nn.modules.module")
    base = vars(home).get("Module") if type(home) is types.ModuleType else None
    return base is not None and any(each is base for each in kind.__mro__)


def has(kind: type, name: str) -> bool:
    """Return whether instances of a class find a name in it."""
    return class_entry(kind, name) is not MISSING


def is_data_descriptor(entry: Any) -> bool:
    """Return whether an entry of a class is a data descriptor, which goes before the instance's dictionary."""
    return entry is not MISSING and (has(type(entry), "__set__") or has(type(entry), "__delete__"))


def has_plain_class(kind: type) -> bool:
    """Return whether ``x.__class__`` is the class of each instance ``x``."""
    return kind.__getattribute__ is object.__getattribute__ and class_entry(kind, "__class__") is _CLASS


def attribute(owner: Any, name: str) -> Any:
    """Return ``owner.name`` where reading it only looks it up in a dictionary; else :data:`MISSING`."""
    kind = type(owner)
    if kind is types.ModuleType:
        return vars(owner).get(name, MISSING)
    if is_of(owner, type):
        if kind.__getattribute__ is not type.__getattribute__:
            return MISSING
        entry = class_entry(owner, name)
        if entry is MISSING or is_data_descriptor(class_entry(kind, name)):
            return MISSING
        return entry if is_of(entry, types.FunctionType) or not has(type(entry), "__get__") else MISSING
    if kind is types.MethodType:
        return owner.__self__ if name == "__self__" else MISSING  # (which nothing can set)
    if kind.__getattribute__ is not object.__getattribute__:
        return MISSING
    if name == "__dict__" and kind.__dictoffset__:
        return object.__getattribute__(owner, name)
    if name == "__class__" and has_plain_class(kind):
        return kind
    if is_data_descriptor(class_entry(kind, name)):
        return MISSING
    return own_attributes(owner).get(name, MISSING)
