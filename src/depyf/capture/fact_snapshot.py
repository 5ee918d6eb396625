"""Facts about the live objects that a frame was compiled for, recorded while they exist.

Transformed code reads objects by the names and keys in it. So the objects that can be asked about are those that these
names and keys lead to from the frame's variables. The facts about each (:mod:`.object_facts`) are the text of
:class:`~depyf.decompiler.dynamo.facts.Facts`; no reference to an object remains.
"""

from __future__ import annotations

import dis
import json
import types
from collections import deque
from collections.abc import Iterator, Mapping
from types import CodeType
from typing import Any, NamedTuple

from ..decompiler.dynamo.facts import ALWAYS, CONTAINERS, MODULES, PLAIN, WELL_KNOWN
from ..decompiler.dynamo.global_names import MODULE_DICTIONARIES, NEW
from . import object_facts

MOST = 10_000  #: No more objects than these are looked at: what leads further keeps torch's long form.
#: Types whose attributes no fact is about.
_LEAVES = (int, float, complex, str, bytes, bool, type(None), types.FunctionType, types.BuiltinFunctionType)
#: Facts about a member of a module that is not shadowed, and of one that a plain store replaces.
_UNSHADOWED = (("unshadowed", True),)
_STORED = (("unshadowed", True), ("stores_member", True))
#: Functions that a text may call though the code does not, where they are what they were.
_BUILTINS = tuple(each.removeprefix("builtins.") for each in sorted(WELL_KNOWN) if each.startswith("builtins."))
_STORE_ATTR = dis.opmap["STORE_ATTR"]
_IMPORTED = (type, types.FunctionType, types.BuiltinFunctionType, types.ModuleType)


def snapshot(code: CodeType, variables: Mapping[str, Any], namespace: Mapping[str, Any]) -> str:
    """Return, as a text, the facts about the objects that transformed code reads; ``variables``: with free ones."""
    walk = _Walk(code, variables, namespace)
    return json.dumps([walk.nodes(), walk.shared, sorted(walk.stores)], check_circular=False, separators=(",", ":"))


class _Kind(NamedTuple):
    """Properties of a class that decide what is recorded of its instances."""

    is_type: bool  # the instances are classes
    is_imported: bool  # an import may give an instance
    is_container: bool  # a module with submodules or parameters by key
    is_plain: bool  # attributes are read as those of `object` are
    is_plain_module: bool  # likewise, and it is a module
    is_simple: bool  # nothing is known of an instance but how it is reached
    container: str  # its name, where its methods are known


class _Reached(NamedTuple):
    """An object that was reached."""

    value: Any
    above: frozenset[int]  # ids of it and of those that lead to it
    is_of_module: bool  # a global variable leads to it, through Python modules and dictionaries only, and it is one
    # the module whose dictionary it is, and as which: `(module, "_buffers")`; `None` for other objects
    holder: tuple[Any, str] | None


class _Walk:
    """The objects that a code object leads to."""

    def __init__(self, code: CodeType, variables: Mapping[str, Any], namespace: Mapping[str, Any]) -> None:
        self.variables = variables
        self.namespace = namespace
        self.names: dict[str, None] = {}  # of attributes
        self.strings: dict[str, None] = {}  # keys of items
        self.numbers: dict[int, None] = {}  # likewise
        _collect(code, self.names, self.strings, self.numbers)
        # (A text may name classes among the constants, and those with a method there.)
        owners = (value.__self__ if type(value) is types.MethodType else value for value in code.co_consts)
        classes = (type.__dict__["__name__"].__get__(cls) for cls in owners if object_facts.is_of(cls, type))
        self.roots: dict[tuple[str, str], None] = dict.fromkeys([
            *(("local", name) for name in (*code.co_varnames, *code.co_cellvars, *code.co_freevars)),
            *(("global", name) for name in (*self.names, *_BUILTINS, *classes, NEW))])
        self.stores = _stores(code)
        self.read = list(self.names)  # of modules and classes, which no string names
        self.names.update(self.strings)
        self.kinds: dict[type, _Kind] = {}
        self.shared: list[dict[str, Any]] = []
        self.places: dict[Any, int] = {}  # in ``shared``, by class, or by the answers

    def nodes(self) -> list[list[Any]]:
        """Return ``[node it is reached from, kind of step, its name or key, answers]`` of each object.

        Answers of classes, and those that many objects have, are in ``shared``; here is their index.
        """
        nodes: list[list[Any]] = []
        pending: deque[tuple[int, _Reached]] = deque()

        def found(parent: int, kind: str, key: Any, value: Any, owner: _Reached) -> None:
            if len(nodes) >= MOST or id(value) in owner.above:
                return
            if kind == "class":
                reading = PLAIN if owner.holder is None else MODULES
                nodes.append([parent, kind, key, self._place(value, value, {"reading": reading})])
                return
            holder = (owner.value, key) if kind == "attr" and key in MODULE_DICTIONARIES \
                and self._kind(type(owner.value)).is_plain_module else None
            nodes.append([parent, kind, key, self._answers(kind, key, value, owner, holder)])
            if type(value) not in _LEAVES:
                pending.append((len(nodes) - 1, _Reached(
                    value, owner.above | {id(value)},
                    owner.is_of_module and type(value) in (types.ModuleType, dict), holder)))

        for kind, name in self.roots:
            value = object_facts.variable(kind, name, self.variables, self.namespace)
            if value is not object_facts.MISSING:
                found(-1, kind, name, value, _Reached(None, frozenset(), kind == "global", None))
        while pending:
            parent, owner = pending.popleft()
            for kind, key, inner in self._steps(owner.value):
                found(parent, kind, key, inner, owner)
        return nodes

    def _steps(self, value: Any) -> Iterator[tuple[str, Any, Any]]:
        """Yield the steps from an object to others, ``(kind, name or key)``, with these."""
        kind = type(value)
        if kind in object_facts.DICTIONARIES and value:
            if len(value) > len(self.strings) + len(self.numbers):
                keys = [key for key in (*self.strings, *self.numbers) if key in value]
            else:
                keys = [key for key in value if type(key) is str and key in self.strings
                        or type(key) in (int, bool) and key in self.numbers]
            for key in keys:
                yield "item", key, value[key]
        elif kind in (list, tuple):
            for number in self.numbers:
                if -len(value) <= number < len(value):
                    yield "item", number, value[number]
        of_kind = self._kind(kind)
        if kind is types.ModuleType:
            names = [name for name in self.read if name in vars(value)]
        elif of_kind.is_type:
            entries = set[str]().union(*map(vars, type.__getattribute__(value, "__mro__")))
            names = [name for name in self.read if name in entries]
        elif kind is types.MethodType:
            names = [name for name in ("__self__",) if name in self.names]
        else:
            own = object_facts.own_attributes(value) if of_kind.is_plain else ()
            names = [*(name for name in own if name in self.names),
                     *(name for name in ("__dict__", "__class__") if name in self.names)]
        for name in names:
            if (inner := object_facts.attribute(value, name)) is not object_facts.MISSING:
                yield "attr", name, inner
        if self.stores and kind.__dictoffset__ and not of_kind.is_type and kind not in (
                types.ModuleType, types.MethodType):
            yield "class", "", kind

    def _answers(
        self, kind: str, key: Any, value: Any, owner: _Reached, holder: tuple[Any, str] | None,
    ) -> dict[str, Any] | int:
        """Return the facts about an object, reached from its owner by a step, or the index of that in ``shared``."""
        of_kind = self._kind(type(value))
        # How long an unobservable read remains valid, by what the object is and where it is.
        reading = ALWAYS if owner.is_of_module and of_kind.is_imported else MODULES \
            if kind == "item" or holder is not None or owner.holder is not None else PLAIN
        member: tuple[tuple[str, Any], ...] = ()
        if kind == "item" and owner.holder is not None and type(key) is str:  # (of a module: by where it is)
            if refused := object_facts.why_shadowed(*owner.holder, key):
                member = (("refused", refused),)
            else:
                module, dictionary = owner.holder
                stored = dictionary == "_buffers" and object_facts.stores_buffers(module)
                member = _STORED if stored else _UNSHADOWED
        answers = {"reading": reading, **dict(member)}
        if of_kind.is_simple:
            return self._place((reading, member, of_kind.container), value, answers)
        return self._object_answers(value, answers)

    def _place(self, key: Any, value: Any, answers: dict[str, Any]) -> int:
        """Return the index in ``shared`` of the answers about an object, which are the same for all of one key."""
        place = self.places.get(key)
        if place is None:
            place = self.places[key] = len(self.shared)
            self.shared.append(self._object_answers(value, answers))
        return place

    def _object_answers(self, value: Any, answers: dict[str, Any]) -> dict[str, Any]:
        """Return the answers with those that an object itself gives."""
        of_kind = self._kind(type(value))
        if of_kind.is_container:
            self._add_container_answers(value, answers)
        elif type(value) in (list, tuple):
            answers["length"] = len(value)
        if of_kind.is_imported:
            if known := object_facts.well_known(value):
                answers["well_known"] = known
            if imported := object_facts.imported(value):
                answers["imported"] = imported
        if of_kind.is_type:
            self._add_class_answers(value, answers)
        if of_kind.container:
            answers["container"] = of_kind.container
        return answers

    def _kind(self, kind: type) -> _Kind:
        """Return the properties of a class, computed once."""
        known = self.kinds.get(kind)
        if known is None:
            bases = kind.__mro__
            is_imported = any(each in bases for each in _IMPORTED)
            is_container = object_facts.has(kind, "__getitem__") and object_facts.is_module_class(kind)
            known = self.kinds[kind] = _Kind(
                type in bases, is_imported, is_container, kind.__getattribute__ is object.__getattribute__,
                object_facts.is_plain_module_class(kind),
                not (type in bases or is_imported or is_container or kind in (list, tuple)),
                kind.__name__ if kind in CONTAINERS else "")
        return known

    def _add_container_answers(self, value: Any, answers: dict[str, Any]) -> None:
        """Add the answers about a list or dictionary of modules or parameters."""
        if object_facts.is_indexable(value) and (modules := object_facts.own_attributes(value)["_modules"]):
            answers["length"] = len(modules)
        elements = []
        for inside in ("_modules", "_parameters"):
            members: Any = object_facts.own_attributes(value).get(inside)
            for number, name in enumerate(members if type(members) in object_facts.DICTIONARIES else ()):
                if name not in self.strings:
                    continue
                keys: list[int | str] = [number, name, *([int(name)] if name.isdecimal() else [])]
                for key in dict.fromkeys(keys):
                    if object_facts.place_of_element(value, key) == (inside, name):
                        elements.append([key, inside, name])
        if elements:
            answers["element"] = elements

    def _add_class_answers(self, cls: type, answers: dict[str, Any]) -> None:
        """Add the answers about a class."""
        allocates = [object_facts.allocates(cls), object_facts.allocates(cls, True)]
        if any(allocates):
            answers["allocates"] = allocates
        if self.stores and cls.__dictoffset__:
            bases = type.__getattribute__(cls, "__mro__")
            entries = {name for each in bases for name in self.stores & vars(each).keys()}
            generic = object_facts.class_entry(cls, "__setattr__") is object.__setattr__
            answers["stores"] = [generic, sorted(
                name for name in entries if not object_facts.stores_plainly(cls, name))]
        ancestors = [[index, base] for index in range(len(cls.__mro__)) if (base := object_facts.ancestor(cls, index))]
        if ancestors:
            answers["ancestor"] = ancestors


def _collect(code: CodeType, names: dict[str, None], strings: dict[str, None], numbers: dict[int, None]) -> None:
    """Take the names and constants of a code object and of those in it."""
    names.update(dict.fromkeys(code.co_names))
    pending: list[Any] = [*code.co_consts]
    if "LOAD_SMALL_INT" in dis.opmap:  # numbers that are operands of instructions (since 3.14)
        pending += [int(each.argval) for each in dis.get_instructions(code) if each.opname == "LOAD_SMALL_INT"]
    while pending:
        value = pending.pop()
        if type(value) is CodeType:
            _collect(value, names, strings, numbers)
        elif type(value) in (tuple, frozenset):
            pending += value
        elif type(value) is str:
            strings[value] = None
        elif type(value) in (int, bool):
            numbers[int(value)] = None


def _stores(code: CodeType) -> frozenset[str]:
    """Return the names of attributes that a code object may store, by a statement or by ``setattr`` and its like."""
    names: set[str] = set()
    if _STORE_ATTR in code.co_code[::2]:
        names = {str(each.argval) for each in dis.get_instructions(code) if each.opname == "STORE_ATTR"}
    if any("setattr" in name or name in ("__dict__", "vars") for name in code.co_names):
        names.update(value for value in code.co_consts if type(value) is str and value.isidentifier())
    return frozenset(names)
