"""Facts about one live object: what reading a part of it, importing it or making an instance of it does.

None of the user's code runs: attributes are looked up in dictionaries (:mod:`.static_lookup`), and only where the
interpreter itself would do no more than that.
"""

from __future__ import annotations

import builtins
import collections
import sys
import types
from collections.abc import Mapping
from typing import Any

from ..decompiler.dynamo.facts import WELL_KNOWN
from ..decompiler.dynamo.global_names import MODULE_DICTIONARIES
from .static_lookup import MISSING, class_entry, is_data_descriptor, is_module_class, is_of

#: Dictionaries whose keys are looked up as those of ``dict`` are.
DICTIONARIES = (dict, collections.OrderedDict)
#: These ignore their other arguments: what those mean is up to ``__init__``.
_CONTAINERS_NEW = (dict.__new__, collections.OrderedDict.__new__, list.__new__)
_IS_ABSTRACT = 1 << 20  # Py_TPFLAGS_IS_ABSTRACT


# --- variables --------------------------------------------------------------------------------------
def variable(kind: str, name: str, variables: Mapping[str, Any], namespace: Mapping[str, Any]) -> Any:
    """Return the value of a ``"local"`` or ``"global"`` variable of a frame, or of a built-in name; else MISSING."""
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

    The module is of a class for which :func:`is_plain_module_class` holds; the dictionary may be another of its own.
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
    members = vars(owner).get(inside)
    if type(members) not in DICTIONARIES:
        return None
    name: str | None = None
    if container == "Sequential" and type(key) is int:
        name = list(members)[key] if 0 <= key < len(members) else None
    elif container in ("ModuleList", "ParameterList") and type(key) is int:
        name = str(key) if 0 <= key < len(members) else None
    elif container in ("ModuleDict", "ParameterDict") and type(key) is str:
        name = key
    return (inside, name) if name is not None and name in members else None


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


def stores_plainly(cls: Any, name: str) -> bool:
    """Return whether ``object.__setattr__`` of an instance only adds an entry to its dictionary."""
    return is_of(cls, type) and cls.__dictoffset__ != 0 and not is_data_descriptor(class_entry(cls, name))


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
    module = module.partition("._")[2] or module  # names of torch's own packages are in the adapter only
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
