"""Objects that torch makes again -> ``new(cls, contents, attribute=value, ...)``.

Dynamo's code makes an object that the traced function made without calling its class, and fills it entry by entry::

    layer = DynamicLayer.__new__(DynamicLayer)
    object_setattr_ignore_descriptor(layer, 'keys', graph_out_0[1])

Until the object escapes it is a virtual container like a list, and its entries are slots. When it
escapes it is written with its contents.
"""

from __future__ import annotations

import keyword
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeGuard

from ....bytecode import operations as o
from ....bytecode.operations import Op
from ...errors import SIMPLIFY, CannotDecompile
from .. import facts, global_names
from ..facts import MODULES, Path
from ..global_names import MODULE_DICTIONARIES, UPDATE
from .values import Const, Container, SsaValue, Value

if TYPE_CHECKING:
    from .evaluate import PartialEvaluator


_NONE = Const(None)
#: Methods of dictionaries that fill an object.
_METHODS = ("clear", "__setitem__", UPDATE)


def is_key(value: Value) -> bool:
    """Return whether a value is a constant whose hashing is unobservable."""
    return isinstance(value, Const) and type(value.value) in (str, int, bool, type(None))


# --- reads ----------------------------------------------------------------------------------------------
def read_attribute(evaluator: PartialEvaluator, op: Op) -> bool:
    """Read an attribute that only leads to one of the calls that :func:`call` knows; return whether it is one."""
    owner, name = evaluator.stack[-1], op.arg
    path, known = evaluator.path_of(owner), evaluator.owner.facts
    kind = known.well_known(path) if path is not None else ""
    role: tuple[Any, ...] = ()
    if isinstance(owner, SsaValue) and owner.role[:1] == ("ancestor",) and name in _METHODS:
        role = ("ancestor method", name)
    elif kind == facts.OBJECT and name == "__setattr__":
        role = ("set attribute",)
    elif path is not None and name in ("__new__", "__mro__") and known.allocates(path):
        role = (name, path)
    elif path is not None and known.builtin_method(path, name):
        role = ("bound", name)
    else:
        return False
    evaluator.pop(1)
    result = evaluator.unobservable(op, [owner], facts.ALWAYS)
    result.role = role
    if role[0] == "bound" and isinstance(owner, SsaValue) and owner.lasting:
        result.lasting, result.epochs = owner.lasting, owner.epochs
    evaluator.stack.append(result)
    return True


def read_item(evaluator: PartialEvaluator, op: Op) -> bool:
    """Read a class out of a ``__mro__``, and return whether that is what is on the stack."""
    owner, index = evaluator.stack[-2:]
    if isinstance(owner, SsaValue) and owner.role[:1] == ("__mro__",) and isinstance(index, Const) \
            and type(index.value) is int and (ancestor := evaluator.owner.facts.ancestor(owner.role[1], index.value)):
        result = evaluator.unobservable(op, evaluator.pop(2), facts.ALWAYS)
        result.role = ("ancestor", ancestor)
        evaluator.stack.append(result)
        return True
    return False


# --- calls ----------------------------------------------------------------------------------------------
def call(evaluator: PartialEvaluator, op: Op, function: SsaValue, operands: Sequence[Value]) -> Value | None:
    """Return the result of a call that is carried out here; ``None`` for any other."""
    known = evaluator.owner.facts
    kind, *of = function.role or (known.well_known(function.path) if function.path is not None else "",)
    if kind == "ancestor method" and (done := _fill(of[0], operands)) is not None:
        return done
    if function.op is not None and function.op.arg == UPDATE:
        return _fill_entry_by_entry(evaluator, op, function, operands)
    match kind, operands:
        case "__new__", [cls, *arguments]:
            allocated = known.allocates(of[0], bool(arguments)) if evaluator.path_of(cls) == of[0] else ""
            return Container("object", [cls], [("class", allocated)]) if allocated else None
        case "set attribute", [Container() as made, Const(str(name)), value] if set_attribute(
                evaluator, made, name, value, generic=False):
            return _NONE
        case "bound", [entries] if of[0] == "update":
            return _update(evaluator, op, function, entries)
        case facts.SET_ATTRIBUTE, [owner, Const(str(name)), value]:
            _set_entry(evaluator, op, owner, name, value)
            return _NONE
        case facts.SIZE, [tensor, number]:
            if evaluator.owner.has_size_calls:
                function = evaluator.define(evaluator.made(o.LOAD_ATTR, "size"), [tensor], unobservable=True)
                op, operands = evaluator.made(o.CALL, (1, ())), [number]
            size = evaluator.define(op, [function, *operands], unobservable=True)
            size.role = ("size",)
            evaluator.happened(facts.PLAIN)
            return size
        case facts.TYPE, [value]:
            if _is_virtual(value, "object"):
                return value.items[0]
            path = (*(evaluator.path_of(value) or ()), ("class", ""))
            lasts = known.reading(path)
            return evaluator.unobservable(op, [function, value], lasts, path) if lasts else None
        case facts.ORDERED_DICT, [entries] if _is_virtual(entries, "dict"):
            return Container("ordered", [function, *entries.items])
    return None


def _is_virtual(value: Value | None, kind: str) -> TypeGuard[Container]:
    """Return whether a value is a container that has not escaped."""
    return isinstance(value, Container) and value.kind == kind and value.built is None


def _set_entry(evaluator: PartialEvaluator, op: Op, owner: Value, name: str, value: Value) -> None:
    """Set an entry of an object's dictionary: of a virtual object in it, else as ``vars(owner)[name] = value``."""
    if _is_virtual(owner, "object"):
        put(owner, ("attr", name), value)
    elif not store_plainly(evaluator, owner, name, value, op):
        value = evaluator.escape(value)
        call = evaluator.made(o.CALL, (1, ()))
        dictionary = evaluator.define(call, [evaluator.word(global_names.ENTRIES), owner], unobservable=True)
        evaluator.define(evaluator.made(o.SETITEM), [value, dictionary, Const(name)])


def store_plainly(evaluator: PartialEvaluator, owner: Value, name: str, value: Value, op: Op) -> bool:
    """Leave ``owner.name = value``, and return True, if that only makes an entry in the owner's dictionary."""
    known = evaluator.owner.facts
    path = evaluator.path_of(owner)
    kind = known.class_path(path) if path is not None else None
    if kind is None or not known.stores_plainly(kind, name, True):
        return False
    evaluator.define(evaluator.made(o.STORE_ATTR, name), [value, owner], unobservable=True)
    evaluator.happened(facts.ended_by(known, name))
    return True


def set_attribute(evaluator: PartialEvaluator, owner: Container, name: str, value: Value, generic: bool) -> bool:
    """Set an attribute of a virtual object, and return whether that only makes an entry in its dictionary."""
    if owner.kind != "object" or owner.built is not None:
        return False
    path = evaluator.path_of(owner.items[0])
    if path is None or not evaluator.owner.facts.stores_plainly(path, name, generic):
        return False
    put(owner, ("attr", name), value)
    return True


def _fill(name: str, operands: Sequence[Value]) -> Value | None:
    """Carry out a method of ``dict`` on a virtual object; ``None`` for other objects and arguments."""
    owner = operands[0] if operands else None
    if not _is_virtual(owner, "object") or owner.slots[0][1] != "dict":
        return None
    match name, operands[1:]:
        case "clear", []:
            kept = [at for at, slot in enumerate(owner.slots) if slot[0] in ("class", "attr")]
            owner.items[:], owner.slots[:] = [owner.items[at] for at in kept], [owner.slots[at] for at in kept]
        case "__setitem__", [key, value] if is_key(key):
            put(owner, ("item", _constant(key)), value)
        case global_names.UPDATE, [Container(kind="dict" | "ordered") as entries]:
            for key, value in _entries(entries):
                put(owner, ("item", _constant(key)), value)
        case _:
            return None
    return _NONE


def _entries(value: Container) -> Iterator[tuple[Value, Value]]:
    """Return the keys and values of a virtual dictionary."""
    items = value.items[value.kind == "ordered" :]
    return zip(items[::2], items[1::2])


def _update(evaluator: PartialEvaluator, op: Op, function: SsaValue, entries: Value) -> Value | None:
    """Write ``module._buffers.update({'name': value})`` as stores to attributes, and other updates as they are.

    ``None`` where such a call may do more than make entries.
    """
    dictionary, known = function.operands[0], evaluator.owner.facts
    path = evaluator.path_of(dictionary)
    if path is None or not known.builtin_method(path, "setdefault") or not _is_virtual(entries, "dict") \
            or not entries.items:
        return None
    names = list(map(_constant, entries.items[::2]))
    if not all(type(name) is str for name in names):
        return None
    result: Value = _NONE
    if isinstance(dictionary, SsaValue) and all(
            name.isidentifier() and name not in evaluator.owner.stores
            and known.stores_member((*path, ("item", name))) for name in names):
        for name, value in zip(names, entries.items[1::2]):
            evaluator.define(evaluator.made(o.STORE_ATTR, name), [value, dictionary.operands[0]], unobservable=True)
            evaluator.happened(facts.ended_by(known, name))
    else:
        result = evaluator.define(op, [function, entries], unobservable=True)
        for name in names:
            evaluator.happened(facts.ended_by(known, name))
    return result


def _fill_entry_by_entry(
    evaluator: PartialEvaluator, op: Op, function: SsaValue, operands: Sequence[Value],
) -> Value | None:
    """Make the entries of a dictionary that others have seen, one by one if they are known.

    ``None`` if they are not: the loop remains, for which what it takes is in variables.
    """
    (target, entries), cls = operands, function.operands[0]
    if isinstance(cls, SsaValue) and cls.op is not None and cls.op.kind is o.GETITEM:
        cls.hints.append("dict_class")
        cls.lasting = ""
    if _is_virtual(entries, "dict") or _is_virtual(entries, "ordered"):
        for key, value in _entries(entries):
            method = evaluator.define(evaluator.made(o.LOAD_ATTR, "__setitem__"), [cls])
            evaluator.define(evaluator.made(o.CALL, (3, ())), [method, target, key, value])
        return _NONE
    if isinstance(entries, SsaValue):
        entries.hints.append("entries")
    evaluator.settle((cls, target, entries))
    return None


def put(owner: Container, slot: tuple[str, Any], value: Value) -> None:
    """Set an entry of a virtual object; one that is there already keeps its place."""
    for place, known in enumerate(owner.slots):
        if known == slot and type(known[1]) is type(slot[1]):
            owner.items[place] = value
            return
    owner.slots.append(slot)
    owner.items.append(value)


def _constant(value: Value) -> Any:
    assert isinstance(value, Const)
    return value.value


# --- writing --------------------------------------------------------------------------------------------
def built(evaluator: PartialEvaluator, value: Container) -> SsaValue:
    """Return the SSA value of a virtual dictionary or object, made where others get to see it."""

    def dictionary(entries: Iterable[tuple[Value, Value]]) -> SsaValue:
        parts = [part for key, item in entries for part in (key, named(item, _constant(key)))]
        return evaluator.define(evaluator.made(o.BUILD_MAP, len(parts) // 2), parts)

    def named(item: Value, name: object) -> Value:
        seen = evaluator.escape(item)
        if isinstance(seen, SsaValue) and isinstance(name, str):
            seen.hints.append(name)  # (by what it is stored under)
        return seen

    if value.kind == "dict":
        result = dictionary(_entries(value))
        result.optional = True
        return result
    if value.kind == "ordered":
        call = evaluator.made(o.CALL, (1, ()))
        return evaluator.unobservable(call, [value.items[0], dictionary(_entries(value))])
    new = evaluator.word(evaluator.owner.new)
    parts = {kind: [(slot[1], item) for slot, item in zip(value.slots, value.items) if slot[0] == kind]
             for kind in ("attr", "item")}
    names = tuple(name for name, _ in parts["attr"])
    if not all(name.isidentifier() and not keyword.iskeyword(name) for name in names):
        raise CannotDecompile(SIMPLIFY, "an attribute that has no word in source")
    inside: list[Value] = []
    if parts["item"]:
        inside = [dictionary((Const(key), item) for key, item in parts["item"])]
    operands = [named(item, name) for name, item in parts["attr"]]
    call = evaluator.made(o.CALL, (1 + len(inside), names))
    result = evaluator.unobservable(call, [new, value.items[0], *inside, *operands])
    result.role = ("instance",)
    return result


# --- Reads through the dictionaries of a module -> attributes of the module, where they give the same ---
# ::
#
#     self._modules['layers']._modules['0']._parameters['weight']
#     self.layers[0].weight
#     self.blocks['conv-1'].weight            of a ``ModuleDict``
def entry(evaluator: PartialEvaluator, owner: Value, path: Path) -> bool:
    """Replace ``x.__dict__`` and ``'name'``, both on the stack, by ``x.name``; return whether that gives the same."""
    key = path[-1][1]
    return path[-2:-1] == (("attr", "__dict__"),) and type(key) is str and key.isidentifier() \
        and isinstance(owner, SsaValue) and evaluator.reads(
            evaluator.made(o.LOAD_ATTR, key), owner.operands[:1], (*path[:-2], ("attr", key)), instead=2)


def member(evaluator: PartialEvaluator, owner: Value, path: Path) -> bool:
    """Replace a dictionary of a module and a key, both on the stack, by the attribute or element of that module.

    Returns:
        Whether that could be done.
    """
    if not (isinstance(owner, SsaValue) and owner.op is not None and owner.op.kind is o.LOAD_ATTR
            and owner.op.arg in MODULE_DICTIONARIES):
        return False
    facts, key = evaluator.owner.facts, path[-1][1]
    (module,) = owner.operands
    if facts.reading(path) != MODULES or type(key) is not str:
        return False
    element = int(key) if key.isdecimal() and str(int(key)) == key else key
    if type(element) is int and facts.element(path[:-2], element) == path:
        read, operands = evaluator.made(o.GETITEM), [module, Const(element)]
    elif key.isidentifier() and not keyword.iskeyword(key):
        if not facts.unshadowed(path):
            return False
        read, operands = evaluator.made(o.LOAD_ATTR, key), [module]
    elif facts.element(path[:-2], key) == path:
        read, operands = evaluator.made(o.GETITEM), [module, Const(key)]
    else:
        return False
    return evaluator.reads(read, operands, path, instead=2)
