"""Facts about one live object: what reading a part of it, importing it or making an instance of it does.

None of the user's code runs: attributes are looked up in dictionaries, and only where the interpreter
itself would do no more than that.
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

# --- look-up without running code, as ``inspect.getattr_static`` does it -----------------------------
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
    if name == "__class__" and class_entry(kind, "__class__") is _CLASS:  # (which is that of each instance)
        return kind
    if is_data_descriptor(class_entry(kind, name)):
        return MISSING
    return own_attributes(owner).get(name, MISSING)


DICTIONARIES = (dict, collections.OrderedDict)  #: Dictionaries whose keys are looked up as those of ``dict`` are.
#: These ignore their other arguments: what those mean is up to ``__init__``.
_CONTAINERS_NEW = ((dict.__new__, "dict"), (collections.OrderedDict.__new__, "dict"), (list.__new__, "list"))
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

    The module is of a class that satisfies :func:`is_plain_module_class`; the dictionary may be another of its own.
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
    """Return the dictionary and the name in it of ``modules[key]``; ``None`` if unknown."""
    kind = type(owner)
    container = _owner_in_torch(class_entry(kind, "__getitem__")) if is_plain_module_class(kind) else ""
    inside = "_parameters" if container.startswith("Parameter") else "_modules"
    members: Any = vars(owner).get(inside) if container else None
    if type(members) not in DICTIONARIES:
        return None
    name: str | None = None
    if container in ("ModuleDict", "ParameterDict") and type(key) is str:
        name = key
    elif type(key) is int and 0 <= key < len(members) and not container.endswith("Dict"):
        name = list(members)[key] if container == "Sequential" else str(key)
    return (inside, name) if name is not None and name in members else None


# --- classes and functions ----------------------------------------------------------------------------
def allocates(cls: Any, arguments: bool = False) -> str:
    """Return the kind of empty instance that ``cls.__new__(cls)`` makes; ``""`` where it may do more, or fail."""
    if not is_of(cls, type) or cls.__flags__ & _IS_ABSTRACT or (
            type(cls).__getattribute__ is not type.__getattribute__):
        return ""
    new = class_entry(cls, "__new__")
    new = new.__func__ if is_of(new, staticmethod) else new
    if new is object.__new__:
        # It takes no arguments, unless those are for the class's own ``__init__`` (Objects/typeobject.c).
        return "" if arguments and class_entry(cls, "__init__") is object.__init__ else "object"
    return next((kind for known, kind in _CONTAINERS_NEW if new is known), "")


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
    if is_of(value, type):
        # (What a metaclass has under these names is not asked.)
        module, name = (type.__dict__[key].__get__(value) for key in ("__module__", "__name__"))
    elif is_of(value, types.FunctionType, types.BuiltinFunctionType):
        module, name = value.__module__, value.__name__
    else:
        return None
    home = sys.modules.get(module) if type(module) is str else None
    return (module, name) if type(home) is types.ModuleType and vars(home).get(name) is value else None


def _is_torchs(function: Any) -> bool:
    return getattr(function, "__module__", "") == "torch.nn.modules.module"


def _owner_in_torch(function: Any) -> str:
    """Return the container class of torch's, ``ModuleList`` or its like, that a method is of; ``""`` for others."""
    if getattr(function, "__module__", "") != "torch.nn.modules.container":
        return ""
    return str(getattr(function, "__qualname__", "")).partition(".")[0]
