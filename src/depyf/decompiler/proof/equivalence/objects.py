"""Unobservable reads, and objects that a program rebuilds and that have not escaped.

Dynamo's code makes an object that the traced function made by ``cls.__new__(cls)`` and fills its dictionary
(``SideEffects.codegen_update_mutated``)::

    new = DynamicLayer.__new__(DynamicLayer)
    object_setattr_ignore_descriptor(new, 'keys', graph_out_0[1])

Where the class is known to do nothing of its own there (:meth:`.Facts.allocates`), that is no event: it does not matter
when it is done before the object escapes. What counts is the contents of the object then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ....bytecode.operations import Op, Program
from ...dynamo import facts
from ...dynamo.facts import ALWAYS, ENTRIES, EPOCHS, MODULES, Facts, Path, ended_by, is_member, lasting
from ...dynamo.global_names import MODULE_DICTIONARIES
from .states import Allocation, Constant, Event, State, Symbol, Value, constant_of, is_key, is_own, resolve

# Such a read is no event. What it gives is named by what was read and by when: what happened since may have changed it.
ALWAYS_NOTE = "if no global name is rebound meanwhile"
MODULES_NOTE = "if reading attributes and items changes nothing"
MEMBERS_NOTE = "members of modules, which torch reads from their dictionaries, are written as attributes (checked)"
#: Kind of the event that sets an entry of an object's dictionary.
STORE_IN_DICT = "STORE_IN_DICT"
#: Kind of the event that makes an entry in a plain dictionary.
STORE_ENTRY = "STORE_ENTRY"
#: Kind of the event that reads a size of a tensor.
READ_SIZE = "READ_SIZE"
_NONE = Constant(None)


class Reads:
    """The reads, calls and stores of which others see nothing, or less than the operation that they are.

    Attributes:
        p, q: the original and the recompiled program.
        notes: what was assumed.
        paths: paths of the live objects that symbols denote.
        members: paths of members that were read from the dictionary of a module.
    """

    def __init__(self, p: Program, q: Program, rename: Mapping[str, str], facts: Facts | None) -> None:
        self.p, self.q, self.rename = p, q, rename
        self.facts: Facts = facts or Facts()
        self.notes: set[str] = set()
        self.paths: dict[tuple[Any, ...], Path] = {}
        self.members: set[Path] = set()

    def path_of(self, value: Value) -> Path | None:
        """Return the path of the live object that a value denotes, if there is one."""
        value = resolve(value)
        if not isinstance(value, Symbol):
            return None
        if value.key[0] == "argument":
            return (("local", value.key[1]),)
        return self.paths.get(value.key)

    def read(self, state: State, owner: Value | None, step: tuple[str, Any]) -> Symbol | None:
        """Return the value that a read of an attribute, item or variable gives; ``None`` where it is observable.

        ``step``: ``("attr", name)``, ``("item", key)``; without an owner ``("global", name)``, ``("local", name)``.
        """
        base = self.path_of(owner) if owner is not None else ()
        if base is None:
            return None
        path = (*base, step)
        kind = lasting(self.facts, path)
        source = resolve(owner) if owner is not None else None
        owned: tuple[Any, ...] = source.key if isinstance(source, Symbol) else ()
        if step[0] == "item" and base and base[-1] == ("attr", "__dict__") and self.facts.reading(
                (*base[:-1], ("attr", step[1]))):
            # ``x.__dict__['a']`` is ``x.a``, where the latter is known to be no more
            base, owned, step = base[:-1], owned[2], ("attr", step[1])
            path = (*base, step)
            kind = lasting(self.facts, path)
        if not kind and base:
            # ``module.layers`` and ``modules[0]``: the contents of the module's dictionaries
            if (member := self._member(base, step)) is not None:
                path, owned, step = member, (owned, member[-2][1]), member[-1]
                kind = lasting(self.facts, path) or MODULES
                if path in self.members and state.program is self.q:
                    self.notes.add(MEMBERS_NOTE)
        elif kind in (ENTRIES, MODULES) and is_member(path):
            # The dictionary of a module is always the same; its contents may have changed since it was read.
            owned = (owned[2], base[-1][1])
            self.members.add(path)
        if not kind:
            return None
        if kind == ALWAYS:
            self.notes.add(ALWAYS_NOTE)
            symbol = Symbol(("read", ALWAYS, path, step))
        else:
            symbol = Symbol(("read", state.epochs[EPOCHS.index(kind)], owned, step))
        self.paths[symbol.key] = path
        return symbol

    def _member(self, base: Path, step: tuple[str, Any]) -> Path | None:
        """Return the path in a module's dictionary to what an attribute or index of the module gives."""
        if step[0] != "attr":
            return self.facts.element(base, step[1])
        paths = [(*base, ("attr", dictionary), ("item", step[1])) for dictionary in MODULE_DICTIONARIES]
        return next(filter(self.facts.unshadowed, paths), None)

    def attribute(self, owner: Value, name: str) -> Value | None:
        """Return the value of an attribute that only leads to a call that :func:`call` knows; ``None`` of any other."""
        owner = resolve(owner)
        if isinstance(owner, Allocation) and owner.kind in ("dict", "ordered") and name == "items":
            return Allocation("items method", [owner])
        if not isinstance(owner, Symbol):
            return None
        if owner.key[0] == "ancestor" and owner.key[1] != "list" and name in ("clear", "__setitem__"):
            return Symbol(("ancestor method", owner.key[1], name))
        path = self.path_of(owner)
        if path is None:
            return None
        known = self.facts.well_known(path)
        if known == facts.OBJECT and name == "__setattr__":
            return Symbol(("set attribute",))
        if name == "__new__" and self.facts.allocates(path):
            return Symbol(("new", owner.key))
        if name == "__mro__" and self.facts.allocates(path):
            return Symbol(("mro", owner.key))
        if self.facts.builtin_method(path, name):
            return Symbol(("bound", owner.key, name))
        return None

    def call(
        self, state: State, function: Value, operands: Sequence[Value], op: Op,
    ) -> Value | Event | None:
        """Return the result of an unobservable call, or the event that a call is; ``None`` for any other call."""
        function = resolve(function)
        if isinstance(function, Allocation):
            is_read = function.kind == "items method" and not operands
            return Allocation("items", [function.items[0]]) if is_read else None
        if not isinstance(function, Symbol):
            return None
        kind = function.key[0]
        if kind == "new":
            cls = resolve(operands[0]) if operands else None
            path = self.path_of(cls) if isinstance(cls, Symbol) and cls.key == function.key[1] else None
            made = self.facts.allocates(path, len(operands) > 1) if path is not None else ""
            contents = Allocation("dict", []) if made == "dict" else Constant(None)
            return Allocation("object", [cls, contents]) if made and cls is not None else None
        if kind == "set attribute" and len(operands) == 3:
            instance, name, value = operands
            path = self.path_of(instance.items[0]) if is_own(instance, "object") and is_key(name) else None
            if not is_own(instance, "object") or path is None or not self.facts.stores_plainly(
                    path, constant_of(name), False):
                return None
            put(instance, 2, constant_of(name), value)
            return _NONE
        if kind == "ancestor method":
            return _fill(function.key[2], operands)
        if kind == "bound" and function.key[2] == "update" and len(operands) == 1:
            return self._update(Symbol(function.key[1]), operands[0], op)
        path = self.path_of(function)
        match self.facts.well_known(path) if path is not None else "", operands:
            case facts.SET_ATTRIBUTE, [owner, name, value] if is_key(name):
                if not is_own(owner, "object"):
                    return self._entry(owner, constant_of(name), value, op)
                put(owner, 2, constant_of(name), value)
                return _NONE
            case facts.SIZE, [_, _]:
                return Event(READ_SIZE, None, list(operands), op)
            case facts.TYPE, [value]:
                return value.items[0] if is_own(value, "object") else self.read(state, value, ("class", ""))
            case facts.VARS, [value]:
                return Allocation("vars", [value])
            case facts.ORDERED_DICT, [items] if is_own(items, "dict"):
                return Allocation("ordered", list(items.items))
        return None

    def store(self, owner: Value, name: str, value: Value, op: Op) -> Event | None:
        """Return the event that ``owner.name = value`` is; ``None`` where it may do more than make an entry."""
        path = self.path_of(owner)
        kind = self.facts.class_path(path) if path is not None else None
        is_plain = kind is not None and self.facts.stores_plainly(kind, name, True)
        return self._entry(owner, name, value, op) if is_plain else None

    def _entry(self, owner: Value, name: Any, value: Value, op: Op) -> Event:
        return Event(STORE_IN_DICT, name, [value, owner], op, ends=ended_by(self.facts, str(name)))

    def _update(self, owner: Symbol, entries: Value, op: Op) -> Event | None:
        """Return the first of the events that ``dictionary.update({'key': value})`` is."""
        if not is_own(entries, "dict") or not entries.items:
            return None
        event = self.store_item(owner, entries.items[0], entries.items[1], op)
        if event is not None and all(type(constant_of(key)) is str for key in entries.items[::2]):
            event.entries = entries
            return event
        return None

    def store_item(self, owner: Value, key: Value, value: Value, op: Op) -> Event | None:
        """Return the event of ``owner[key] = value`` for ``vars(x)`` or a plain dictionary, else ``None``."""
        if isinstance(owner, Allocation) and owner.kind == "vars" and is_key(key):
            return self._entry(owner.items[0], constant_of(key), value, op)
        owner = resolve(owner)
        path = self.path_of(owner)
        if path is None or not self.facts.builtin_method(path, "setdefault") or not is_key(key) \
                or type(name := constant_of(key)) is not str:
            return None
        return Event(STORE_ENTRY, name, [value, owner], op, ends=ended_by(self.facts, name))


def item_key(value: Value) -> Any:
    """Return the constant by which items are read; ``...`` if it is none."""
    value = resolve(value)
    if isinstance(value, Constant) and type(value.value) in (str, int, bool):
        return value.value
    return ...


def put(allocation: Allocation, start: int, name: Any, value: Value) -> None:
    """Set an entry of the names and values from ``start`` on. One that is there already keeps its place."""
    for place in range(start, len(allocation.items), 2):
        known = constant_of(allocation.items[place])
        if type(known) is type(name) and known == name:
            allocation.items[place + 1] = value
            return
    allocation.items += [Constant(name), value]


def _fill(name: str, operands: Sequence[Value]) -> Constant | None:
    """Call a method of ``dict`` on the contents of an object that was made here."""
    instance = operands[0] if operands else None
    contents = instance.items[1] if is_own(instance, "object") else None
    if not isinstance(contents, Allocation):
        return None
    if name == "clear" and len(operands) == 1:
        contents.items.clear()
    elif name == "__setitem__" and len(operands) == 3 and is_key(operands[1]):
        put(contents, 0, constant_of(operands[1]), operands[2])
    else:
        return None
    return _NONE
