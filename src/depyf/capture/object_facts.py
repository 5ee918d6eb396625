"""Facts about one live object: what reading a part of it, importing it or making an instance of it does.

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

from ..decompiler.dynamo.facts import ALWAYS, CONTAINERS, MODULES, PLAIN, WELL_KNOWN, Facts, Path, as_text, is_member
from ..decompiler.dynamo.global_names import MODULE_DICTIONARIES
from .static_lookup import MISSING, attribute, class_entry, has, is_module_class, is_of

#: Dictionaries whose keys are looked up as those of ``dict`` are.
DICTIONARIES = (dict, collections.OrderedDict)
#: These ignore their other arguments: what those mean is up to ``__init__``.
_CONTAINERS_NEW = (dict.__new__, collections.OrderedDict.__new__, list.__new__)
_IS_ABSTRACT = 1 << 20  # Py_TPFLAGS_IS_ABSTRACT


# --- variables --------------------------------------------------------------------------------------
def variable(kind: str, name: str, variables: Mapping[str, Any], namespace: Mapping[str, Any]) -> Any:
    """Return what a variable of a frame holds; :data:`MISSING` where there is none.

    Args:
        kind: ``"local"`` or ``"global"``.
        name: of the variable.
        variables: locals and free variables of the frame.
        namespace: its globals, which built-in names follow.
    """
    if kind == "local":
        return variables.get(name, MISSING)
    value = namespace.get(name, MISSING)
    return getattr(builtins, name, MISSING) if value is MISSING else value


# --- modules ----------------------------------------------------------------------------------------
def is_plain_module_class(kind: type) -> bool:
    """Return whether a class is one of torch's modules whose attributes are read as ``torch.nn.Module`` does."""
    return kind.__getattribute__ is object.__getattribute__ and is_module_class(kind)


def why_shadowed(owner: Any, dictionary: str, name: str) -> str:
    """Return why ``module.name`` may be another object than ``module._modules['name']``; ``""`` where it is that one.

    Args:
        owner: a module of a class that :func:`is_plain_module_class` takes.
        dictionary: in which the name is: ``"_modules"``, ``"_parameters"`` or ``"_buffers"``.
        name: of the member.
    """
    kind, own = type(owner), vars(owner)
    if class_entry(kind, name) is not MISSING:
        return f"{kind.__name__}.{name} is an attribute of the class"
    if name in own:
        return f"the instance has an attribute {name} of its own"
    if not _is_torchs(class_entry(kind, "__getattr__")):
        return f"{kind.__name__} has a __getattr__ of its own"
    for other in MODULE_DICTIONARIES:
        if other == dictionary:
            break
        if name in own.get(other, ()):
            return f"{name} is in two of the module's dictionaries"
    return ""


def stores_buffers(owner: Any) -> bool:
    """Return whether ``module.buffer = tensor`` runs torch's ``__setattr__`` and stores to a plain dictionary."""
    return _is_torchs(class_entry(type(owner), "__setattr__")) and type(vars(owner).get("_buffers")) in DICTIONARIES


def is_indexable(owner: Any) -> bool:
    """Return whether a container of modules is indexed and iterated as torch's are, and numbered without gaps."""
    kind = type(owner)
    if not is_plain_module_class(kind):
        return False
    modules = vars(owner).get("_modules")
    return (all(_owner_in_torch(class_entry(kind, name)) in ("ModuleList", "Sequential")
                for name in ("__getitem__", "__iter__", "__len__"))
            and type(modules) in DICTIONARIES
            and list(modules) == [str(index) for index in range(len(modules))])


def place_of_element(owner: Any, key: int | str) -> tuple[str, str] | None:
    """Return the dictionary and the name in it of ``modules[key]``; ``None`` where that is not known."""
    kind = type(owner)
    container = _owner_in_torch(class_entry(kind, "__getitem__")) if is_plain_module_class(kind) else ""
    if not container:
        return None
    inside = "_parameters" if container.startswith("Parameter") else "_modules"
    held = vars(owner).get(inside)
    if type(held) not in DICTIONARIES:
        return None
    name: str | None = None
    if container == "Sequential" and type(key) is int:
        name = list(held)[key] if 0 <= key < len(held) else None
    elif container in ("ModuleList", "ParameterList") and type(key) is int:
        name = str(key) if 0 <= key < len(held) else None
    elif container in ("ModuleDict", "ParameterDict") and type(key) is str:
        name = key
    return (inside, name) if name is not None and name in held else None


def length(value: Any) -> int:
    """Return the number of elements of a list of modules, or of a plain list or tuple; 0 of anything else."""
    if type(value) in (list, tuple):
        return len(value)
    return len(vars(value)["_modules"]) if is_indexable(value) else 0


# --- classes and functions ----------------------------------------------------------------------------
def allocates(cls: Any, arguments: bool = False) -> str:
    """Return the kind of empty instance that ``cls.__new__(cls)`` makes; ``""`` where it may do more, or fail."""
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


def stores_plainly(cls: Any, name: str, generic: bool) -> bool:
    """Return whether an attribute of an instance is nothing but an entry of its dictionary.

    Args:
        cls: the class.
        name: of the attribute.
        generic: whether ``instance.name = value`` has to do that (else ``object.__setattr__`` has to).
    """
    if not is_of(cls, type) or not cls.__dictoffset__:
        return False
    if generic and class_entry(cls, "__setattr__") is not object.__setattr__:
        return False
    entry = class_entry(cls, name)
    return entry is MISSING or not has(type(entry), "__set__") and not has(type(entry), "__delete__")


def ancestor(cls: Any, index: int) -> str:
    """Return ``"dict"``, ``"OrderedDict"`` or ``"list"`` if ``cls.__mro__[index]`` is that; else ``""``."""
    if not is_of(cls, type) or not -len(cls.__mro__) <= index < len(cls.__mro__):
        return ""
    base = cls.__mro__[index]
    return base.__name__ if any(base is known for known in (dict, collections.OrderedDict, list)) else ""


def well_known(value: Any) -> str:
    """Return ``"module.name"`` of a function or class that :data:`WELL_KNOWN` names; else ``""``."""
    if not is_of(value, type, types.FunctionType, types.BuiltinFunctionType):
        return ""
    module = str(getattr(value, "__module__", ""))
    module = module.partition("._")[2] or module  # names of torch's own packages stand in the adapter only
    name = f"{module}.{getattr(value, '__qualname__', '')}"
    return name if name in WELL_KNOWN else ""


def imported(value: Any) -> tuple[str, str] | None:
    """Return ``(module, name)`` by which an import gives an object now; ``None`` where none is known to."""
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


def _is_torchs(function: Any) -> bool:
    return getattr(function, "__module__", "") == "torch.nn.modules.module"


def _owner_in_torch(function: Any) -> str:
    """Return the container class of torch's, ``ModuleList`` or its like, that a method is of; ``""`` for others."""
    if getattr(function, "__module__", "") != "torch.nn.modules.container":
        return ""
    return str(getattr(function, "__qualname__", "")).partition(".")[0]


# --- facts by path -----------------------------------------------------------------------------------
class LiveFacts(Facts):
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
            return variable(kind, key, self._variables, self._globals)
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
        reason = why_shadowed(owner, path[-2][1], name)
        if reason:
            self._refused[path] = reason
        return not reason

    def stores_member(self, path: Path) -> bool:
        """Return whether ``module.name = tensor`` runs torch's ``__setattr__`` and stores to a plain ``_buffers``."""
        return is_member(path) and path[-2][1] == "_buffers" and self.unshadowed(path) \
            and stores_buffers(self.value(path[:-2]))

    def refusals(self) -> list[tuple[str, str]]:
        """Return the members that :meth:`unshadowed` refused: ``(as torch reads it, why)``."""
        return [(as_text(path), reason) for path, reason in self._refused.items()]

    def indexable(self, path: Path) -> bool:
        """Return whether a container of modules is indexed and iterated as torch's are, and numbered without gaps."""
        return is_indexable(self.value(path))

    def element(self, path: Path, key: int | str) -> Path | None:
        """Return the path, through the dictionaries, of ``modules[key]``; ``None`` where that is not known."""
        place = place_of_element(self.value(path), key)
        return (*path, ("attr", place[0]), ("item", place[1])) if place is not None else None

    def length(self, path: Path) -> int:
        """Return the number of elements of a list of modules, or of a plain list or tuple; 0 of anything else."""
        return length(self.value(path))

    # --- classes ------------------------------------------------------------------------------------
    def allocates(self, path: Path, arguments: bool = False) -> str:
        """Return the kind of empty instance that ``cls.__new__(cls)`` makes; ``""`` where it may do more, or fail."""
        return allocates(self.value(path), arguments)

    def stores_plainly(self, path: Path, name: str, generic: bool) -> bool:
        """Return whether an attribute of an instance is nothing but an entry of its dictionary."""
        return stores_plainly(self.value(path), name, generic)

    def class_path(self, path: Path) -> Path | None:
        """Return the path of an object's class; ``None`` where the object is not known."""
        return (*path, ("class", "")) if self.value(path) is not MISSING else None

    def well_known(self, path: Path) -> str:
        """Return ``"module.name"`` of a well-known function or class; else ``""``."""
        return well_known(self.value(path))

    def imported(self, path: Path) -> tuple[str, str] | None:
        """Return ``(module, name)`` by which an import gives an object now; ``None`` where none is known to."""
        return imported(self.value(path))

    def ancestor(self, path: Path, index: int) -> str:
        """Return ``"dict"``, ``"OrderedDict"`` or ``"list"`` if ``cls.__mro__[index]`` is that; else ``""``."""
        return ancestor(self.value(path), index)

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
