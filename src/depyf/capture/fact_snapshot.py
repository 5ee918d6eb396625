"""What is known of the live objects that a frame was compiled for, written down while they are there.

Transformed code reads objects by names and keys that stand in it. So the objects that can be asked about are those that
these names and keys lead to from the frame's variables; :class:`LiveFacts` is asked about each of them, and its answers
are the text of :class:`~depyf.decompiler.dynamo.recorded_facts.RecordedFacts`. Nothing live is kept.
"""

from __future__ import annotations

import dis
import json
import types
from collections import OrderedDict, deque
from collections.abc import Iterator, Mapping
from types import CodeType
from typing import Any

from ..decompiler.dynamo.facts import CONTAINERS, WELL_KNOWN
from ..decompiler.dynamo.global_names import MODULE_DICTIONARIES
from ..frozen import frozen
from .live_facts import LiveFacts, Path
from .static_lookup import MISSING, attribute, class_entry, is_data_descriptor, is_module_class, is_of, own_attributes

#: No more objects than these are looked at: what leads further keeps torch's long form.
MOST = 10_000
_DICTIONARIES = (dict, OrderedDict)
#: Types whose attributes no fact is about.
_LEAVES = (int, float, complex, str, bytes, bool, type(None), types.FunctionType, types.BuiltinFunctionType)
#: Functions that a text may call though the code does not, where they are what they were.
_BUILTINS = tuple(each.removeprefix("builtins.") for each in sorted(WELL_KNOWN) if each.startswith("builtins."))
_STORE_ATTR = dis.opmap["STORE_ATTR"]
_IMPORTED = (type, types.FunctionType, types.BuiltinFunctionType, types.ModuleType)


def snapshot(code: CodeType, variables: Mapping[str, Any], namespace: Mapping[str, Any]) -> str:
    """Return what is known of the objects that transformed code can read, as a text.

    Args:
        code: the transformed code.
        variables: of the frame that was compiled: its locals and free variables.
        namespace: its globals.
    """
    walk = _Walk(code, variables, namespace)
    return json.dumps([walk.nodes(), walk.shared, sorted(walk.stores)], check_circular=False, separators=(",", ":"))


@frozen
class _Kind:
    """Properties of a class that decide what is recorded of its instances.

    Attributes:
        is_type: it is a class itself.
        is_imported: it may be had by an import.
        is_container: it is a module that holds others by keys.
        is_plain: its attributes are read as those of ``object`` are.
    """

    is_type: bool
    is_imported: bool
    is_container: bool
    is_plain: bool


class _Walk:
    """The objects that a code object leads to.

    Args:
        code, variables, namespace: as of :func:`snapshot`.
    """

    def __init__(self, code: CodeType, variables: Mapping[str, Any], namespace: Mapping[str, Any]) -> None:
        self.live = LiveFacts(variables, namespace)
        self.names: dict[str, None] = {}  # of attributes
        self.strings: dict[str, None] = {}  # keys of items
        self.numbers: dict[int, None] = {}  # likewise
        self.roots: dict[tuple[str, str], None] = {}
        _collect(code, self.names, self.strings, self.numbers)
        for name in (*code.co_varnames, *code.co_cellvars, *code.co_freevars):
            self.roots["local", name] = None
        for name in (*self.names, *_BUILTINS, *_classes_in_constants(code)):
            self.roots["global", name] = None
        self.stores = _stores(code)
        self.read = list(self.names)  # of modules and classes, which no string names
        self.wanted = frozenset(self.read)
        self.names.update(self.strings)
        self.kinds: dict[type, _Kind] = {}
        self.plain: dict[tuple[type, str], bool] = {}
        self.shared: list[dict[str, Any]] = []
        self.places: dict[type, int] = {}  # of classes in ``shared``

    def nodes(self) -> list[list[Any]]:
        """Return ``[node it is reached from, kind of step, its name or key, answers]`` of each object.

        Answers of classes are in ``shared``, once for each; what stands here is their place.
        """
        nodes: list[list[Any]] = []
        pending: deque[tuple[int, Path, Any, frozenset[int]]] = deque()

        def found(parent: int, path: Path, value: Any, above: frozenset[int]) -> None:
            if len(nodes) >= MOST or id(value) in above:
                return
            kind, key = path[-1]
            self.live.know(path, value)
            nodes.append([parent, kind, key, self._of_class_of(path, value) if kind == "class"
                          else self._answers(path, value)])
            if kind != "class" and type(value) not in _LEAVES:
                pending.append((len(nodes) - 1, path, value, above))

        for root in self.roots:
            value = self.live.value((root,))
            if value is not MISSING:
                found(-1, (root,), value, frozenset())
        while pending:
            parent, path, value, above = pending.popleft()
            inside = above | {id(value)}
            for step, inner in self._steps(value, path):
                found(parent, (*path, step), inner, inside)
        return nodes

    def _steps(self, value: Any, path: Path) -> Iterator[tuple[tuple[str, Any], Any]]:
        """Yield the steps from an object to others, with these."""
        kind = type(value)
        if kind in _DICTIONARIES:
            if len(value) > len(self.strings) + len(self.numbers):
                keys = [key for key in (*self.strings, *self.numbers) if key in value]
            else:
                keys = [key for key in value if type(key) is str and key in self.strings
                        or type(key) in (int, bool) and key in self.numbers]
            for key in keys:
                yield ("item", key), value[key]
        elif kind in (list, tuple):
            for number in self.numbers:
                if -len(value) <= number < len(value):
                    yield ("item", number), value[number]
        if kind is types.ModuleType:
            own = vars(value)
            for name in self.read:
                if name in own:
                    yield ("attr", name), own[name]
            return
        if kind is types.MethodType:
            if "__self__" in self.names:
                yield ("attr", "__self__"), value.__self__
            return
        of_kind = self._kind(kind)
        if of_kind.is_type:
            for name in self._in_class(value):
                inner = attribute(value, name)
                if inner is not MISSING:
                    yield ("attr", name), inner
            return
        if of_kind.is_plain:
            for name, inner in own_attributes(value).items():
                if name in self.names and self._is_plain(kind, name):
                    yield ("attr", name), inner
            if "__dict__" in self.names and kind.__dictoffset__:
                yield ("attr", "__dict__"), object.__getattribute__(value, "__dict__")
        if self.stores and kind.__dictoffset__:
            yield ("class", ""), kind

    def _in_class(self, cls: type) -> list[str]:
        """Return the names that a class or one of its bases has an entry under, in the order of :attr:`read`."""
        wanted = self.wanted
        held: set[str] = set()
        for each in type.__getattribute__(cls, "__mro__"):
            held |= wanted & vars(each).keys()
        return [name for name in self.read if name in held]

    def _answers(self, path: Path, value: Any) -> dict[str, Any]:
        live = self.live
        answers: dict[str, Any] = {}
        reading = live.reading(path)
        if reading:
            answers["reading"] = reading
        if len(path) > 2 and path[-1][0] == "item" and path[-2][0] == "attr" and path[-2][1] in MODULE_DICTIONARIES:
            if live.unshadowed(path):
                answers["unshadowed"] = True
                if path[-2][1] == "_buffers" and live.stores_member(path):
                    answers["stores_member"] = True
            elif refused := live.refusal(path):
                answers["refused"] = refused
        kind = type(value)
        of_kind = self._kind(kind)
        if of_kind.is_container:
            self._of_container(path, value, answers)
        elif kind in (list, tuple):
            answers["length"] = len(value)
        if of_kind.is_imported:
            if known := live.well_known(path):
                answers["well_known"] = known
            if imported := live.imported(path):
                answers["imported"] = imported
        if of_kind.is_type:
            self._of_class(path, value, answers)
        if kind in CONTAINERS:
            answers["container"] = kind.__name__
        return answers

    def _of_class_of(self, path: Path, cls: type) -> int:
        """Return the index in ``shared`` of the answers about the class of an object."""
        place = self.places.get(cls)
        if place is None:
            place = self.places[cls] = len(self.shared)
            self.shared.append(self._answers(path, cls))
        return place

    def _kind(self, kind: type) -> _Kind:
        """Return the properties of a class, computed once."""
        known = self.kinds.get(kind)
        if known is None:
            bases = kind.__mro__
            known = self.kinds[kind] = _Kind(
                type in bases, any(each in bases for each in _IMPORTED),
                class_entry(kind, "__getitem__") is not MISSING and is_module_class(kind),
                kind.__getattribute__ is object.__getattribute__)
        return known

    def _is_plain(self, kind: type, name: str) -> bool:
        """Return whether an attribute of instances of a class is what their dictionary holds under its name."""
        known = self.plain.get((kind, name))
        if known is None:
            known = self.plain[kind, name] = not is_data_descriptor(class_entry(kind, name))
        return known

    def _of_container(self, path: Path, value: Any, answers: dict[str, Any]) -> None:
        """Add the answers about a list or dictionary of modules or parameters."""
        length = self.live.length(path)
        if length:
            answers["length"] = length
        if self.live.indexable(path):
            answers["indexable"] = True
        elements = []
        for inside in ("_modules", "_parameters"):
            held: Any = own_attributes(value).get(inside)
            names: list[str] = list(held) if type(held) in _DICTIONARIES else []
            for number, name in enumerate(names):
                if name not in self.strings:
                    continue
                keys: list[int | str] = [number, name, *([int(name)] if name.isdecimal() else [])]
                for key in dict.fromkeys(keys):
                    if self.live.element(path, key) == (*path, ("attr", inside), ("item", name)):
                        elements.append([key, inside, name])
        if elements:
            answers["element"] = elements

    def _of_class(self, path: Path, cls: type, answers: dict[str, Any]) -> None:
        """Add the answers about a class."""
        allocates = [self.live.allocates(path), self.live.allocates(path, True)]
        if any(allocates):
            answers["allocates"] = allocates
        if self.stores and cls.__dictoffset__:
            bases = type.__getattribute__(cls, "__mro__")
            entries = {name for each in bases for name in self.stores & vars(each).keys()}
            generic = class_entry(cls, "__setattr__") is object.__setattr__
            answers["stores"] = [generic, sorted(
                name for name in entries if not self.live.stores_plainly(path, name, False))]
        ancestors = [[index, base] for index in range(len(cls.__mro__)) if (base := self.live.ancestor(path, index))]
        if ancestors:
            answers["ancestor"] = ancestors


def _collect(code: CodeType, names: dict[str, None], strings: dict[str, None], numbers: dict[int, None]) -> None:
    """Take the names and constants of a code object and of those in it."""
    names.update(dict.fromkeys(code.co_names))
    pending: list[Any] = [*code.co_consts, *_small_numbers(code)]
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


def _classes_in_constants(code: CodeType) -> Iterator[str]:
    """Yield the names of classes among the constants, and of those whose methods are: a text may say them so."""
    for value in code.co_consts:
        cls = value.__self__ if type(value) is types.MethodType else value
        if is_of(cls, type):
            yield type.__dict__["__name__"].__get__(cls)


def _small_numbers(code: CodeType) -> list[int]:
    """Return the numbers that stand in instructions (since 3.14)."""
    if "LOAD_SMALL_INT" not in dis.opmap:
        return []
    return [int(each.argval) for each in dis.get_instructions(code) if each.opname == "LOAD_SMALL_INT"]


def _stores(code: CodeType) -> frozenset[str]:
    """Return the names of attributes that a code object may store, by a statement or where the name is a value."""
    names: set[str] = set()
    if _STORE_ATTR in code.co_code[::2]:
        names = {str(each.argval) for each in dis.get_instructions(code) if each.opname == "STORE_ATTR"}
    if any("setattr" in name or name in ("__dict__", "vars") for name in code.co_names):
        names.update(value for value in code.co_consts if type(value) is str and value.isidentifier())
    return frozenset(names)
