"""Facts that are asked of the live objects: what the facts that are recorded of them must agree with."""

import types

from depyf.capture.object_facts import (
    DICTIONARIES,
    MISSING,
    allocates,
    ancestor,
    attribute,
    class_entry,
    imported,
    is_indexable,
    is_of,
    is_plain_module_class,
    place_of_element,
    stores_buffers,
    stores_plainly,
    variable,
    well_known,
    why_shadowed,
)
from depyf.decompiler.dynamo.facts import ALWAYS, CONTAINERS, MODULES, PLAIN, as_text, is_member
from depyf.decompiler.dynamo.global_names import MODULE_DICTIONARIES


class LiveFacts:
    """The facts (:class:`depyf.decompiler.dynamo.facts.Facts`) that hold for the frame being compiled.

    Args:
        variables: its locals and free variables.
        globals: its globals.
    """

    def __init__(self, variables, globals):
        self._variables = variables
        self._globals = globals
        self._objects = {}
        self._refused = {}

    # --- objects ------------------------------------------------------------------------------------
    def value(self, path):
        """Return the object at a path; :data:`MISSING` where looking into dictionaries finds none."""
        value = self._objects.get(path, MISSING)
        if value is MISSING and path not in self._objects:
            value = self._objects[path] = self._looked_up(path)
        return value

    def _looked_up(self, path):
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

    def reading(self, path):
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

    def _is_of_a_module(self, path):
        """Return whether a path from a global variable leads through Python modules and dictionaries only."""
        return all(type(self.value(path[:end])) in (types.ModuleType, dict) for end in range(1, len(path)))

    # --- modules ------------------------------------------------------------------------------------
    def unshadowed(self, path):
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

    def stores_member(self, path):
        """Return whether ``module.name = tensor`` runs torch's ``__setattr__`` and stores to a plain ``_buffers``."""
        return is_member(path) and path[-2][1] == "_buffers" and self.unshadowed(path) \
            and stores_buffers(self.value(path[:-2]))

    def structure(self):
        """Return the names of submodules and parameters of all modules in variables."""
        owners = [module for value in self._variables.values() if hasattr(value, "modules") for module in value.modules()]
        return {name for owner in owners for name in (*owner._modules, *owner._parameters)}

    def refusals(self):
        """Return the members that :meth:`unshadowed` refused: ``(as torch reads it, why)``."""
        return [(as_text(path), reason) for path, reason in self._refused.items()]

    def element(self, path, key):
        """Return the path, through the dictionaries, of ``modules[key]``; ``None`` where that is not known."""
        place = place_of_element(self.value(path), key)
        return (*path, ("attr", place[0]), ("item", place[1])) if place is not None else None

    def length(self, path):
        """Return the number of elements of a list of modules, or of a plain list or tuple; 0 of anything else."""
        value = self.value(path)
        if type(value) in (list, tuple):
            return len(value)
        return len(vars(value)["_modules"]) if is_indexable(value) else 0

    # --- classes ------------------------------------------------------------------------------------
    def allocates(self, path, arguments=False):
        """Return the kind of empty instance that ``cls.__new__(cls)`` makes; ``""`` where it may do more, or fail."""
        return allocates(self.value(path), arguments)

    def stores_plainly(self, path, name, generic):
        """Return whether an attribute of an instance is nothing but an entry of its dictionary."""
        cls = self.value(path)
        return stores_plainly(cls, name) and not (
            generic and class_entry(cls, "__setattr__") is not object.__setattr__)

    def class_path(self, path):
        """Return the path of an object's class; ``None`` where the object is not known."""
        return (*path, ("class", "")) if self.value(path) is not MISSING else None

    def well_known(self, path):
        """Return ``"module.name"`` of a well-known function or class; else ``""``."""
        return well_known(self.value(path))

    def imported(self, path):
        """Return ``(module, name)`` by which an import gives an object now; ``None`` where none is known to."""
        return imported(self.value(path))

    def ancestor(self, path, index):
        """Return ``"dict"``, ``"OrderedDict"`` or ``"list"`` if ``cls.__mro__[index]`` is that; else ``""``."""
        return ancestor(self.value(path), index)

    def builtin_method(self, path, name):
        """Return whether ``object.name`` is a method of a plain list, dict, set or ``OrderedDict``."""
        kind = type(self.value(path))
        return kind in CONTAINERS and callable(getattr(kind, name, None))


def _item(owner, key):
    if type(owner) in DICTIONARIES and type(key) in (str, int, bool):
        return owner.get(key, MISSING)
    if type(owner) in (list, tuple) and type(key) is int and -len(owner) <= key < len(owner):
        return owner[key]
    return MISSING
