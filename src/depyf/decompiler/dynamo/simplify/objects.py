"""Objects that torch makes again -> ``new(cls, contents, attribute=value, ...)``.

Dynamo's code makes an object that the traced function made without calling its class, and fills it entry by entry::

    layer = DynamicLayer.__new__(DynamicLayer)
    object_setattr_ignore_descriptor(layer, 'keys', graph_out_0[1])

Until the object escapes it is a virtual container like a list, and its entries are slots. When it
escapes it is written with its contents.
"""

from __future__ import annotations

import keyword
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeGuard

from ....bytecode import operations as o
from ....bytecode.operations import Op
from ...errors import SIMPLIFY, CannotDecompile
from .. import facts, global_names
from ..facts import GETATTR, MODULES, Path
from ..global_names import MODULE_DICTIONARIES, UPDATE
from .values import Const, Container, SsaValue, Value

if TYPE_CHECKING:
    from .evaluate import PartialEvaluator


_NONE = Const(None)


def is_key(value: Value) -> bool:
    """Return whether a value is a constant whose hashing is unobservable."""
    return isinstance(value, Const) and type(value.value) in (str, int, bool, type(None))


# --- reads ----------------------------------------------------------------------------------------------
def read_attribute(evaluator: PartialEvaluator, op: Op) -> bool:
    """Read an attribute that only leads to one of the calls that :func:`call` knows; return whether it is one."""
    owner, name = evaluator.stack[-1], op.arg
    path = evaluator.path_of(owner)
    role: tuple[Any, ...] = ()
    if isinstance(owner, SsaValue) and owner.role[:1] == ("ancestor",) \
            and name in ("clear", "__setitem__", "extend", global_names.UPDATE):
        role = ("ancestor method", owner.role[1], name)
    elif path is not None:
        role = _role(evaluator, path, name)
    if not role:
        if path is None or not evaluator.owner.facts.builtin_method(path, name):
            return False
        role = ("bound", name)
    evaluator.pop(1)
    result = evaluator.define(op, [owner], unobservable=True)
    result.optional, result.lasting, result.role = True, facts.ALWAYS, role
    if role[0] == "bound" and isinstance(owner, SsaValue) and owner.lasting:
        result.lasting, result.epochs = owner.lasting, owner.epochs
    evaluator.stack.append(result)
    return True


def _role(evaluator: PartialEvaluator, path: Path, name: str) -> tuple[Any, ...]:
    """Return facts about an attribute of a live object: the role of the value that it gives, or nothing."""
    known = evaluator.owner.facts.well_known(path)
    if known == facts.OBJECT and name == "__setattr__":
        return ("set attribute",)
    if known in (facts.DICT, facts.LIST) and name in ("clear", "__setitem__", "extend"):
        return ("ancestor method", known.rpartition(".")[2], name)
    if name == "__new__" and evaluator.owner.facts.allocates(path):
        return ("new", path)
    if name == "__mro__" and evaluator.owner.facts.allocates(path):
        return ("mro", path)
    return ()


def read_item(evaluator: PartialEvaluator, op: Op) -> bool:
    """Read a class out of a ``__mro__``, and return whether that is what is on the stack."""
    owner, index = evaluator.stack[-2:]
    if not (isinstance(owner, SsaValue) and owner.role[:1] == ("mro",) and isinstance(index, Const)
            and type(index.value) is int):
        return False
    ancestor = evaluator.owner.facts.ancestor(owner.role[1], index.value)
    if not ancestor:
        return False
    evaluator.pop(2)
    result = evaluator.define(op, [owner, index], unobservable=True)
    result.optional, result.lasting, result.role = True, facts.ALWAYS, ("ancestor", ancestor)
    evaluator.stack.append(result)
    return True


# --- calls ----------------------------------------------------------------------------------------------
def call(evaluator: PartialEvaluator, op: Op, function: SsaValue, operands: Sequence[Value]) -> Value | None:
    """Return the result of a call that is carried out here; ``None`` for any other."""
    kind = function.role[0] if function.role else ""
    first = operands[0] if operands else None
    if kind == "new":
        return _virtual_object(evaluator, function, operands)
    if kind == "set attribute" and len(operands) == 3 and isinstance(first, Container) and is_key(operands[1]) \
            and set_attribute(evaluator, first, _constant(operands[1]), operands[2], generic=False):
        return _NONE
    if kind == "ancestor method" and (done := _fill(function.role[1], function.role[2], operands)) is not None:
        return done
    if function.op is not None and function.op.arg == UPDATE:
        return _fill_entry_by_entry(evaluator, op, function, operands)
    if kind == "ancestor method":
        return None
    if kind == "bound" and function.role[1] == "update" and len(operands) == 1:
        return _update(evaluator, op, function, operands[0])
    return _call_known(evaluator, op, function, operands)


def _call_known(evaluator: PartialEvaluator, op: Op, function: SsaValue, operands: Sequence[Value]) -> Value | None:
    """Return the result of a call of a function that is known by its path; ``None`` for any other."""
    first = operands[0] if operands else None
    known = evaluator.owner.facts.well_known(function.path) if function.path is not None else ""
    if known == facts.SET_ATTRIBUTE and len(operands) == 3 and is_key(operands[1]) \
            and isinstance(_constant(operands[1]), str):
        return _set_entry(evaluator, op, first, _constant(operands[1]), operands[2])
    if known == facts.SIZE and len(operands) == 2:
        if evaluator.owner.has_size_calls:
            read = evaluator.made(o.LOAD_ATTR, "size")
            function, operands = evaluator.define(read, operands[:1], unobservable=True), operands[1:]
            op = evaluator.made(o.CALL, (1, ()))
        size = evaluator.define(op, [function, *operands], unobservable=True)
        size.role = ("size",)
        evaluator.happened(facts.PLAIN)
        return size
    if known == facts.TYPE and len(operands) == 1:
        return first.items[0] if _is_virtual(first, "object") else _class_of(evaluator, op, function, first)
    if known == facts.ORDERED_DICT and len(operands) == 1 and _is_virtual(first, "dict"):
        return Container("ordered", [function, *first.items])
    return None


def _class_of(evaluator: PartialEvaluator, op: Op, function: SsaValue, value: Value | None) -> Value | None:
    """Return the class of a live object as an unobservable read; ``None`` where the object is not known."""
    path = None if value is None else evaluator.path_of(value)
    kind = None if path is None else evaluator.owner.facts.class_path(path)
    lasting = "" if kind is None else evaluator.owner.facts.reading(kind)
    if value is None or not lasting:
        return None
    result = evaluator.define(op, [function, value], unobservable=True)
    result.path, result.lasting, result.optional = kind, lasting, True
    return result


def _is_virtual(value: Value | None, kind: str) -> TypeGuard[Container]:
    """Return whether a value is a container that has not escaped."""
    return isinstance(value, Container) and value.kind == kind and value.built is None


def _virtual_object(evaluator: PartialEvaluator, function: SsaValue, operands: Sequence[Value]) -> Value | None:
    """Return the virtual object that ``cls.__new__(cls)`` makes; ``None`` if the class may do anything else there."""
    cls = operands[0] if operands else None
    path = evaluator.path_of(cls) if cls is not None else None
    if cls is None or path is None or path != function.role[1]:
        return None
    kind = evaluator.owner.facts.allocates(path, len(operands) > 1)
    return Container("object", [cls], [("class", kind)]) if kind else None


def _set_entry(evaluator: PartialEvaluator, op: Op, owner: Value | None, name: str, value: Value) -> Value | None:
    """Set an entry of an object's dictionary: of a virtual object in it, else as ``vars(owner)[name] = value``."""
    assert owner is not None
    if _is_virtual(owner, "object"):
        put(owner, ("attr", name), value)
        return _NONE
    if store_plainly(evaluator, owner, name, value, op):
        return _NONE
    value = evaluator.escape(value)
    call = evaluator.made(o.CALL, (1, ()))
    dictionary = evaluator.define(call, [evaluator.word(global_names.ENTRIES), owner], unobservable=True)
    evaluator.define(evaluator.made(o.SETITEM), [value, dictionary, Const(name)])
    return _NONE


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


def _fill(kind: str, name: str, operands: Sequence[Value]) -> Value | None:
    """Carry out a method of ``dict`` or ``list`` on a virtual object; ``None`` for other objects and arguments."""
    owner = operands[0] if operands else None
    if not isinstance(owner, Container) or owner.kind != "object" or owner.built is not None \
            or owner.slots[0][1] != ("list" if kind == "list" else "dict"):
        return None
    if name == "clear" and len(operands) == 1:
        kept = [at for at, slot in enumerate(owner.slots) if slot[0] in ("class", "attr")]
        owner.items[:], owner.slots[:] = [owner.items[at] for at in kept], [owner.slots[at] for at in kept]
    elif name == "__setitem__" and len(operands) == 3 and is_key(operands[1]) and kind != "list":
        put(owner, ("item", _constant(operands[1])), operands[2])
    elif name == global_names.UPDATE and isinstance(operands[1], Container) and operands[1].kind in ("dict", "ordered"):
        entries = operands[1].items[operands[1].kind == "ordered" :]
        for key, value in zip(entries[::2], entries[1::2]):
            put(owner, ("item", _constant(key)), value)
    elif name == "extend" and isinstance(operands[1], Container) and operands[1].kind in ("list", "tuple"):
        owner.items += operands[1].items
        owner.slots += [("element", 0)] * len(operands[1].items)
    else:
        return None
    return _NONE


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
    if not isinstance(dictionary, SsaValue) or not all(
            name.isidentifier() and name not in evaluator.owner.stores
            and known.stores_member((*path, ("item", name))) for name in names):
        result = evaluator.define(op, [function, entries], unobservable=True)
        for name in names:
            evaluator.happened(facts.ended_by(known, name))
        return result
    for name, value in zip(names, entries.items[1::2]):
        evaluator.define(evaluator.made(o.STORE_ATTR, name), [value, dictionary.operands[0]], unobservable=True)
        evaluator.happened(facts.ended_by(known, name))
    return _NONE


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
        inside = entries.items[entries.kind == "ordered" :]
        for key, value in zip(inside[::2], inside[1::2]):
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
    if value.kind == "dict":
        return _optional(_dictionary(evaluator, value.items))
    if value.kind == "ordered":
        entries = _dictionary(evaluator, value.items[1:])
        call = evaluator.made(o.CALL, (1, ()))
        return _optional(evaluator.define(call, [value.items[0], entries], unobservable=True))
    cls = value.items[0]
    new = evaluator.word(evaluator.owner.new)
    attributes = [(slot[1], item) for slot, item in zip(value.slots, value.items) if slot[0] == "attr"]
    if not all(name.isidentifier() and not keyword.iskeyword(name) for name, _ in attributes):
        raise CannotDecompile(SIMPLIFY, "an attribute that has no word in source")
    contents = [part for slot, item in zip(value.slots, value.items) if slot[0] == "item"
                for part in (Const(slot[1]), item)]
    elements = [item for slot, item in zip(value.slots, value.items) if slot[0] == "element"]
    inside: list[Value] = []
    if contents:
        inside = [_dictionary(evaluator, contents)]
    elif elements:
        inside = [evaluator.define(evaluator.made(o.BUILD_LIST, len(elements)), elements)]
    operands = [_named(evaluator, item, name) for name, item in attributes]
    call = evaluator.made(o.CALL, (1 + len(inside), tuple(name for name, _ in attributes)))
    result = _optional(evaluator.define(call, [new, cls, *inside, *operands], unobservable=True))
    result.role = ("instance",)
    return result


def _dictionary(evaluator: PartialEvaluator, entries: Sequence[Value]) -> SsaValue:
    operands = [part for key, value in zip(entries[::2], entries[1::2])
                for part in (key, _named(evaluator, value, _constant(key)))]
    return evaluator.define(evaluator.made(o.BUILD_MAP, len(entries) // 2), operands)


def _named(evaluator: PartialEvaluator, value: Value, name: object) -> Value:
    """Let a value escape, which could have a name by what it is stored under."""
    seen = evaluator.escape(value)
    if isinstance(seen, SsaValue) and isinstance(name, str):
        seen.hints.append(name)
    return seen


def _optional(result: SsaValue) -> SsaValue:
    result.optional = True
    return result


# --- Reads through the dictionaries of a module -> attributes of the module, where they give the same ---
# ::
#
#     self._modules['layers']._modules['0']._parameters['weight']
#     self.layers[0].weight
#     self.blocks['conv-1'].weight            of a ``ModuleDict``
#     getattr(self, '0').weight               where a submodule's name is no name in source
def entry(evaluator: PartialEvaluator, owner: Value, path: Path) -> bool:
    """Replace ``x.__dict__`` and ``'name'``, both on the stack, by ``x.name``; return whether that gives the same."""
    key = path[-1][1]
    if len(path) < 3 or path[-2] != ("attr", "__dict__") or type(key) is not str or not isinstance(owner, SsaValue):
        return False
    if not key.isidentifier():
        return False
    return evaluator.reads(evaluator.made(o.LOAD_ATTR, key), owner.operands[:1], (*path[:-2], ("attr", key)), instead=2)


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
    elif facts.unshadowed(path) and facts.well_known((("global", "getattr"),)) == GETATTR:
        read, operands = evaluator.made(o.CALL, (2, ())), [evaluator.word("getattr"), module, Const(key)]
    else:
        return False
    return evaluator.reads(read, operands, path, instead=2)
