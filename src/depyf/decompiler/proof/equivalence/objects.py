"""Objects that a program makes again, while nobody else has seen them.

Dynamo's code makes an object that the traced function made by ``cls.__new__(cls)`` and fills its dictionary
(``SideEffects.codegen_update_mutated``)::

    new = DynamicLayer.__new__(DynamicLayer)
    object_setattr_ignore_descriptor(new, 'keys', graph_out_0[1])

Where the class is known to do nothing of its own there (:meth:`.Facts.allocates`), that is no event: it does not matter
when it is done before somebody else gets the object. What counts is what the object holds then.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ....bytecode.operations import Op
from ...dynamo import facts
from ...dynamo.facts import Path
from .reads import path_of, read
from .sides import Event, Side
from .values import Built, Constant, Symbol, is_key, seen

if TYPE_CHECKING:
    from .prover import Prover

#: Kind of the event that sets an entry of an object's dictionary.
STORE_IN_DICT = "STORE_IN_DICT"
#: Kind of the event that reads a size of a tensor.
READ_SIZE = "READ_SIZE"
_NONE = Constant(None)


def own_object(value: Any) -> Built | None:
    if isinstance(value, Built) and value.kind == "object" and value.escaped is None:
        return value
    return None


def attribute(prover: Prover, owner: Any, name: str) -> Any | None:
    """Return the value of an attribute that only leads to a call that :func:`call` knows; ``None`` of any other."""
    owner = seen(owner)
    if isinstance(owner, Built) and owner.kind in ("dict", "ordered") and name == "items":
        return Built("items method", [owner])
    if not isinstance(owner, Symbol):
        return None
    if owner.key[0] == "ancestor" and name in ("clear", "__setitem__", "extend"):
        return Symbol(("ancestor method", owner.key[1], name))
    path = path_of(prover, owner)
    if path is None:
        return None
    known = prover.facts.well_known(path)
    if known == facts.OBJECT and name == "__setattr__":
        return Symbol(("set attribute",))
    if known in (facts.DICT, facts.LIST) and name in ("clear", "__setitem__", "extend"):
        return Symbol(("ancestor method", known.rpartition(".")[2], name))
    if name == "__new__" and prover.facts.allocates(path):
        return Symbol(("new", owner.key))
    if name == "__mro__" and prover.facts.allocates(path):
        return Symbol(("mro", owner.key))
    if prover.facts.builtin_method(path, name):
        return Symbol(("bound", owner.key, name))
    return None


def ancestor(prover: Prover, owner: Any, index: Any) -> Symbol | None:
    """``cls.__mro__[index]`` if that is a built-in container."""
    owner = seen(owner)
    if isinstance(owner, Symbol) and owner.key[0] == "mro" and type(index) is int:
        found = prover.facts.ancestor(prover.paths[owner.key[1]], index)
        if found:
            return Symbol(("ancestor", found))
    return None


def call(prover: Prover, side: Side, function: Any, operands: Sequence[Any], op: Op) -> Any:
    """The result of a call with positional arguments only that nobody can observe, or the event that it is; ``None``
    for any other call."""
    function = seen(function)
    first = operands[0] if operands else None
    if isinstance(function, Built):
        return Built("items", [function.items[0]]) if function.kind == "items method" and not operands else None
    if not isinstance(function, Symbol):
        return None
    kind = function.key[0]
    if kind == "new":
        return _made(prover, function, operands)
    if kind == "set attribute" and len(operands) == 3:
        return _set(prover, first, operands[1], operands[2], generic=False)
    if kind == "ancestor method":
        return _fill(function.key[1], function.key[2], operands)
    path = path_of(prover, function)
    known = prover.facts.well_known(path) if path is not None else ""
    if known == facts.SET_ATTRIBUTE and len(operands) == 3 and is_key(operands[1]):
        name = seen(operands[1]).value
        made = own_object(first)
        if made is None:
            return Event(STORE_IN_DICT, name, [operands[2], first], op)
        put(made, 2, name, operands[2])
        return _NONE
    if known == facts.SIZE and len(operands) == 2:
        return Event(READ_SIZE, None, list(operands), op)
    if known == facts.TYPE and len(operands) == 1 and own_object(first) is not None:
        return first.items[0]  # type: ignore[union-attr]
    if known == facts.GETATTR and len(operands) == 2 and is_key(operands[1]):
        return read(prover, side, first, ("attr", seen(operands[1]).value))
    if known == facts.VARS and len(operands) == 1:
        return Built("vars", [first])
    if known == facts.ORDERED_DICT and len(operands) == 1 and isinstance(first, Built) and first.kind == "dict" \
            and first.escaped is None:
        return Built("ordered", list(first.items))
    return None


def store(prover: Prover, owner: Any, name: str, value: Any, op: Op) -> Any:
    """``owner.name = value``: done (``True``), an event, or ``None`` if nothing is known of it."""
    if own_object(owner) is not None:
        return True if _set(prover, owner, Constant(name), value, generic=True) is not None else None
    path = path_of(prover, owner)
    kind = prover.facts.class_path(path) if path is not None else class_of(prover, owner)
    if kind is not None and prover.facts.stores_plainly(kind, name, True):
        return Event(STORE_IN_DICT, name, [value, owner], op)
    return None


def class_of(prover: Prover, value: Any) -> Path | None:
    """The path of the class of an object that a side has made, and given away."""
    value = seen(value)
    return prover.classes.get(value.key) if isinstance(value, Symbol) else None


def entry(owner: Any, key: Any, value: Any, op: Op) -> Event | None:
    """``vars(owner)['key'] = value``."""
    if isinstance(owner, Built) and owner.kind == "vars" and is_key(key):
        return Event(STORE_IN_DICT, seen(key).value, [value, owner.items[0]], op)
    return None


def iterated(value: Any) -> Built | None:
    """The iterator over what a side knows all items of."""
    if isinstance(value, Built) and value.kind == "items":
        inside = value.items[0].items
        return Built("iterator", [Built("tuple", list(pair)) for pair in zip(inside[::2], inside[1::2])])
    return None


def is_known_iterator(value: Any) -> bool:
    return isinstance(value, Built) and value.kind == "iterator"


def put(made: Built, start: int, name: Any, value: Any) -> None:
    """Sets an entry of the names and values from ``start`` on. One that is there already keeps its place."""
    for place in range(start, len(made.items), 2):
        known = made.items[place].value
        if type(known) is type(name) and known == name:
            made.items[place + 1] = value
            return
    made.items += [Constant(name), value]


def _made(prover: Prover, function: Symbol, operands: Sequence[Any]) -> Built | None:
    cls = seen(operands[0]) if operands else None
    if not isinstance(cls, Symbol) or cls.key != function.key[1]:
        return None
    kind = prover.facts.allocates(prover.paths[cls.key], len(operands) > 1)
    if not kind:
        return None
    contents = Constant(None) if kind == "object" else Built("dict" if kind == "dict" else "list", [])
    return Built("object", [cls, contents])


def _set(prover: Prover, owner: Any, name: Any, value: Any, generic: bool) -> Constant | None:
    made = own_object(owner)
    if made is None or not is_key(name):
        return None
    name = seen(name).value
    path = prover.paths.get(made.items[0].key)
    if path is None or not prover.facts.stores_plainly(path, name, generic):
        return None
    put(made, 2, name, value)
    return _NONE


def _fill(kind: str, name: str, operands: Sequence[Any]) -> Constant | None:
    made = own_object(operands[0]) if operands else None
    contents = made.items[1] if made is not None else None
    if not isinstance(contents, Built) or contents.kind != ("list" if kind == "list" else "dict"):
        return None
    if name == "clear" and len(operands) == 1:
        contents.items.clear()
    elif name == "__setitem__" and len(operands) == 3 and contents.kind == "dict" and is_key(operands[1]):
        put(contents, 0, seen(operands[1]).value, operands[2])
    elif name == "extend" and len(operands) == 2 and isinstance(operands[1], Built) \
            and operands[1].kind in ("list", "tuple") and operands[1].escaped is None:
        contents.items.extend(operands[1].items)
    else:
        return None
    return _NONE
