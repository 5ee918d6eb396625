"""Facts about the live objects that a frame was compiled for.

Nothing of the user's runs: attributes are looked up in dictionaries (:mod:`.static_lookup`), and only where the
interpreter itself would do no more than that.
"""

from __future__ import annotations

import builtins
import collections
import sys
import types
from collections.abc import Mapping
from typing import Any

from ..decompiler.dynamo.facts import ALWAYS, CONTAINERS, MODULES, PLAIN, WELL_KNOWN, Path, as_text, is_member
from ..decompiler.dynamo.global_names import MODULE_DICTIONARIES
from .static_lookup import MISSING, attribute, class_entry, has, is_module, is_of

#: These ignore their other arguments: what those mean is up to ``__init__``.
_CONTAINERS_NEW = (dict.__new__, collections.OrderedDict.__new__, list.__new__)
_IS_ABSTRACT = 1 << 20  # Py_TPFLAGS_IS_ABSTRACT


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
        #: The path that was made known last, and the object there: most questions are about it, and paths are long.
        self._last: tuple[Path | None, Any] = None, MISSING
        self._unshadowed: dict[Path, bool] = {}
        self._refused: dict[Path, str] = {}

    # --- objects ------------------------------------------------------------------------------------
    def value(self, path: Path) -> Any:
        """Return the object at a path; :data:`MISSING` where looking into dictionaries finds none."""
        last, value = self._last
        if path is last:
            return value
        value = self._objects.get(path, MISSING)
        if value is MISSING and path not in self._objects:
            value = self._objects[path] = self._looked_up(path)
        return value

    def know(self, path: Path, value: Any) -> None:
        """Store the object at a path that the caller has looked up by the rules of :meth:`value`."""
        self._objects[path] = value
        self._last = path, value

    def _looked_up(self, path: Path) -> Any:
        kind, key = path[-1]
        if len(path) == 1:
            if kind == "local":
                return self._variables.get(key, MISSING)
            value = self._globals.get(key, MISSING)
            return getattr(builtins, key, MISSING) if value is MISSING else value
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
            if end > 1 and path[end - 1][0] == "attr" and path[end - 1][1] in MODULE_DICTIONARIES and _is_module(
                    self.value(path[: end - 1])):
                return MODULES
        return PLAIN

    def _is_of_a_module(self, path: Path) -> bool:
        """Return whether a path from a global variable leads through Python modules and dictionaries only."""
        return all(type(self.value(path[:end])) in (types.ModuleType, dict) for end in range(1, len(path)))

    # --- modules ------------------------------------------------------------------------------------
    def unshadowed(self, path: Path) -> bool:
        """Return whether ``module.name`` is what ``module._modules['name']``, or its like, holds."""
        known = self._unshadowed.get(path)
        if known is None:
            known = self._unshadowed[path] = self._is_unshadowed(path)
        return known

    def _is_unshadowed(self, path: Path) -> bool:
        if not is_member(path):
            return False
        owner, name = self.value(path[:-2]), path[-1][1]
        if not _is_module(owner) or self.value(path) is MISSING or type(name) is not str:
            return False
        kind = type(owner)
        if class_entry(kind, name) is not MISSING:
            self._refused[path] = f"{kind.__name__}.{name} is an attribute of the class"
        elif name in vars(owner):
            self._refused[path] = f"the instance has an attribute {name} of its own"
        elif not _is_torchs(class_entry(kind, "__getattr__")):
            self._refused[path] = f"{kind.__name__} has a __getattr__ of its own"
        elif any(name in vars(owner).get(other, ()) for other in MODULE_DICTIONARIES[
                :MODULE_DICTIONARIES.index(path[-2][1])]):
            self._refused[path] = f"{name} is in two of the module's dictionaries"
        else:
            return True
        return False

    def stores_member(self, path: Path) -> bool:
        """Return whether ``module.name = tensor`` runs torch's ``__setattr__`` and stores to a plain ``_buffers``."""
        if not is_member(path) or path[-2][1] != "_buffers" or not self.unshadowed(path):
            return False
        owner = self.value(path[:-2])
        return _is_torchs(class_entry(type(owner), "__setattr__")) \
            and type(vars(owner).get("_buffers")) in (dict, collections.OrderedDict)

    def refusal(self, path: Path) -> str:
        """Return why :meth:`unshadowed` refused a member; ``""`` where it did not."""
        return self._refused.get(path, "")

    def refusals(self) -> list[tuple[str, str]]:
        """Return the members that :meth:`unshadowed` refused: ``(as torch reads it, why)``."""
        return [(as_text(path), reason) for path, reason in self._refused.items()]

    def indexable(self, path: Path) -> bool:
        """Return whether a container of modules is indexed and iterated as torch's are, and numbered without gaps."""
        owner = self.value(path)
        if not _is_module(owner):
            return False
        kind = type(owner)
        modules = vars(owner).get("_modules")
        return (all(_owner_in_torch(class_entry(kind, name)) in ("ModuleList", "Sequential")
                    for name in ("__getitem__", "__iter__", "__len__"))
                and type(modules) in (dict, collections.OrderedDict)
                and list(modules) == [str(index) for index in range(len(modules))])

    def element(self, path: Path, key: int | str) -> Path | None:
        """Return the path, through the dictionaries, of ``modules[key]``; ``None`` where that is not known."""
        owner = self.value(path)
        container = _owner_in_torch(class_entry(type(owner), "__getitem__")) if _is_module(owner) else ""
        if not container:
            return None
        inside = "_parameters" if container.startswith("Parameter") else "_modules"
        held = vars(owner).get(inside)
        if type(held) not in (dict, collections.OrderedDict):
            return None
        name: str | None = None
        if container == "Sequential" and type(key) is int:
            name = list(held)[key] if 0 <= key < len(held) else None
        elif container in ("ModuleList", "ParameterList") and type(key) is int:
            name = str(key) if 0 <= key < len(held) else None
        elif container in ("ModuleDict", "ParameterDict") and type(key) is str:
            name = key
        return (*path, ("attr", inside), ("item", name)) if name in held else None

    def length(self, path: Path) -> int:
        """Return the number of elements of a list of modules, or of a plain list or tuple; 0 of anything else."""
        value = self.value(path)
        if type(value) in (list, tuple):
            return len(value)
        return len(vars(value)["_modules"]) if self.indexable(path) else 0

    # --- classes ------------------------------------------------------------------------------------
    def allocates(self, path: Path, arguments: bool = False) -> str:
        """Return the kind of empty instance that ``cls.__new__(cls)`` makes; ``""`` where it may do more, or fail."""
        cls = self.value(path)
        if not is_of(cls, type) or cls.__flags__ & _IS_ABSTRACT:
            return ""
        if type(cls).__getattribute__ is not type.__getattribute__:
            return ""
        new = class_entry(cls, "__new__")
        new = new.__func__ if is_of(new, staticmethod) else new
        if new is object.__new__:
            # It takes no arguments, unless those are for the class's own ``__init__`` (Objects/typeobject.c).
            return "" if arguments and class_entry(cls, "__init__") is object.__init__ else "object"
        if any(new is known for known in _CONTAINERS_NEW):
            return "list" if new is list.__new__ else "dict"
        return ""

    def stores_plainly(self, path: Path, name: str, generic: bool) -> bool:
        """Return whether an attribute of an instance is nothing but an entry of its dictionary."""
        cls = self.value(path)
        if not is_of(cls, type) or not cls.__dictoffset__:
            return False
        if generic and class_entry(cls, "__setattr__") is not object.__setattr__:
            return False
        entry = class_entry(cls, name)
        return entry is MISSING or not has(type(entry), "__set__") and not has(type(entry), "__delete__")

    def class_path(self, path: Path) -> Path | None:
        """Return the path of an object's class; ``None`` where the object is not known."""
        return (*path, ("class", "")) if self.value(path) is not MISSING else None

    def well_known(self, path: Path) -> str:
        """Return ``"module.name"`` of a function or class that :data:`WELL_KNOWN` names; else ``""``."""
        value = self.value(path)
        if not is_of(value, type, types.FunctionType, types.BuiltinFunctionType):
            return ""
        module = str(getattr(value, "__module__", ""))
        module = module.partition("._")[2] or module  # names of torch's own packages stand in the adapter only
        name = f"{module}.{getattr(value, '__qualname__', '')}"
        return name if name in WELL_KNOWN else ""

    def imported(self, path: Path) -> tuple[str, str] | None:
        """Return ``(module, name)`` by which an import gives an object now; ``None`` where none is known to."""
        value = self.value(path)
        if type(value) is types.ModuleType:
            name = value.__name__
            return (name, "") if sys.modules.get(name) is value else None
        if not is_of(value, type, types.FunctionType, types.BuiltinFunctionType):
            return None
        if is_of(value, type):
            # (What a metaclass has under these names is not asked.)
            module, name = (type.__dict__[key].__get__(value) for key in ("__module__", "__name__"))
        else:
            module, name = value.__module__, value.__name__
        home = sys.modules.get(module) if type(module) is str else None
        gives_it = type(home) is types.ModuleType and vars(home).get(name) is value
        return (module, name) if gives_it else None

    def ancestor(self, path: Path, index: int) -> str:
        """Return ``"dict"``, ``"OrderedDict"`` or ``"list"`` if ``cls.__mro__[index]`` is that; else ``""``."""
        cls = self.value(path)
        if not is_of(cls, type) or not -len(cls.__mro__) <= index < len(cls.__mro__):
            return ""
        base = cls.__mro__[index]
        return base.__name__ if any(base is known for known in (dict, collections.OrderedDict, list)) else ""

    def builtin_method(self, path: Path, name: str) -> bool:
        """Return whether ``object.name`` is a method of a plain list, dict, set or ``OrderedDict``."""
        kind = type(self.value(path))
        return kind in CONTAINERS and callable(getattr(kind, name, None))


def _item(owner: Any, key: Any) -> Any:
    if type(owner) in (dict, collections.OrderedDict) and type(key) in (str, int, bool):
        return owner.get(key, MISSING)
    if type(owner) in (list, tuple) and type(key) is int and -len(owner) <= key < len(owner):
        return owner[key]
    return MISSING


def _is_module(owner: Any) -> bool:
    """Return whether an object is a module of torch's that reads its attributes as ``torch.nn.Module`` does."""
    return is_module(owner) and type(owner).__getattribute__ is object.__getattribute__


def _is_torchs(function: Any) -> bool:
    return getattr(function, "__module__", "") == "torch.nn.modules.module"


def _owner_in_torch(function: Any) -> str:
    """Return the container class of torch's, ``ModuleList`` or its like, that a method is of; ``""`` for others."""
    if getattr(function, "__module__", "") != "torch.nn.modules.container":
        return ""
    return str(getattr(function, "__qualname__", "")).partition(".")[0]
