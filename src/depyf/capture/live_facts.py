"""Facts about the live objects that a frame was compiled for, by the paths that lead to them."""

from __future__ import annotations

import types
from collections.abc import Mapping
from typing import Any

from ..decompiler.dynamo.facts import ALWAYS, CONTAINERS, MODULES, PLAIN, Path, as_text, is_member
from ..decompiler.dynamo.global_names import MODULE_DICTIONARIES
from . import object_facts
from .object_facts import DICTIONARIES, is_plain_module_class
from .static_lookup import MISSING, attribute, is_of


class LiveFacts:
    """The facts (:class:`depyf.decompiler.dynamo.facts.Facts`) that hold for the frame being compiled.

    Args:
        variables: its locals and free variables.
        globals: its globals.
    """

    def __init__(self, variables: Mapping[str, Any], globals: Mapping[str, Any]) -> None:
        self._variables = variables
        self._globals = globals
        self._objects: dict[Path, Any] = {}
        self._refused: dict[Path, str] = {}

    # --- objects ------------------------------------------------------------------------------------
    def value(self, path: Path) -> Any:
        """Return the object at a path; :data:`MISSING` where looking into dictionaries finds none."""
        value = self._objects.get(path, MISSING)
        if value is MISSING and path not in self._objects:
            value = self._objects[path] = self._looked_up(path)
        return value

    def _looked_up(self, path: Path) -> Any:
        kind, key = path[-1]
        if len(path) == 1:
            return object_facts.variable(kind, key, self._variables, self._globals)
        owner = self.value(path[:-1])
        if owner is MISSING:
            return MISSING
        if kind == "attr":
            return attribute(owner, key)
        if kind == "class":
            return type(owner)
        return _item(owner, key)

    def reading(self, path: Path) -> str:
        """Return how long an unobservable read stays true, by what the object is and holds."""
        value = self.value(path)
        if value is MISSING:
            return ""
        if path[0][0] == "global" and is_of(
                value, type, types.FunctionType, types.BuiltinFunctionType, types.ModuleType) \
                and self._is_of_a_module(path):
            return ALWAYS
        if path[-1][0] == "item":
            return MODULES
        for end in (len(path), len(path) - 1):
            if end > 1 and path[end - 1][0] == "attr" and path[end - 1][1] in MODULE_DICTIONARIES \
                    and is_plain_module_class(type(self.value(path[: end - 1]))):
                return MODULES
        return PLAIN

    def _is_of_a_module(self, path: Path) -> bool:
        """Return whether a path from a global variable leads through Python modules and dictionaries only."""
        return all(type(self.value(path[:end])) in (types.ModuleType, dict) for end in range(1, len(path)))

    # --- modules ------------------------------------------------------------------------------------
    def unshadowed(self, path: Path) -> bool:
        """Return whether ``module.name`` is what ``module._modules['name']``, or its like, holds."""
        if not is_member(path):
            return False
        owner, name = self.value(path[:-2]), path[-1][1]
        if not is_plain_module_class(type(owner)) or self.value(path) is MISSING or type(name) is not str:
            return False
        reason = object_facts.why_shadowed(owner, path[-2][1], name)
        if reason:
            self._refused[path] = reason
        return not reason

    def stores_member(self, path: Path) -> bool:
        """Return whether ``module.name = tensor`` runs torch's ``__setattr__`` and stores to a plain ``_buffers``."""
        return is_member(path) and path[-2][1] == "_buffers" and self.unshadowed(path) \
            and object_facts.stores_buffers(self.value(path[:-2]))

    def refusals(self) -> list[tuple[str, str]]:
        """Return the members that :meth:`unshadowed` refused: ``(as torch reads it, why)``."""
        return [(as_text(path), reason) for path, reason in self._refused.items()]

    def indexable(self, path: Path) -> bool:
        """Return whether a container of modules is indexed and iterated as torch's are, and numbered without gaps."""
        return object_facts.is_indexable(self.value(path))

    def element(self, path: Path, key: int | str) -> Path | None:
        """Return the path, through the dictionaries, of ``modules[key]``; ``None`` where that is not known."""
        place = object_facts.place_of_element(self.value(path), key)
        return (*path, ("attr", place[0]), ("item", place[1])) if place is not None else None

    def length(self, path: Path) -> int:
        """Return the number of elements of a list of modules, or of a plain list or tuple; 0 of anything else."""
        return object_facts.length(self.value(path))

    # --- classes ------------------------------------------------------------------------------------
    def allocates(self, path: Path, arguments: bool = False) -> str:
        """Return the kind of empty instance that ``cls.__new__(cls)`` makes; ``""`` where it may do more, or fail."""
        return object_facts.allocates(self.value(path), arguments)

    def stores_plainly(self, path: Path, name: str, generic: bool) -> bool:
        """Return whether an attribute of an instance is nothing but an entry of its dictionary."""
        return object_facts.stores_plainly(self.value(path), name, generic)

    def class_path(self, path: Path) -> Path | None:
        """Return the path of an object's class; ``None`` where the object is not known."""
        return (*path, ("class", "")) if self.value(path) is not MISSING else None

    def well_known(self, path: Path) -> str:
        """Return ``"module.name"`` of a well-known function or class; else ``""``."""
        return object_facts.well_known(self.value(path))

    def imported(self, path: Path) -> tuple[str, str] | None:
        """Return ``(module, name)`` by which an import gives an object now; ``None`` where none is known to."""
        return object_facts.imported(self.value(path))

    def ancestor(self, path: Path, index: int) -> str:
        """Return ``"dict"``, ``"OrderedDict"`` or ``"list"`` if ``cls.__mro__[index]`` is that; else ``""``."""
        return object_facts.ancestor(self.value(path), index)

    def builtin_method(self, path: Path, name: str) -> bool:
        """Return whether ``object.name`` is a method of a plain list, dict, set or ``OrderedDict``."""
        kind = type(self.value(path))
        return kind in CONTAINERS and callable(getattr(kind, name, None))


def _item(owner: Any, key: Any) -> Any:
    if type(owner) in DICTIONARIES and type(key) in (str, int, bool):
        return owner.get(key, MISSING)
    if type(owner) in (list, tuple) and type(key) is int and -len(owner) <= key < len(owner):
        return owner[key]
    return MISSING
