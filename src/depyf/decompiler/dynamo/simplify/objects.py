"""Objects that torch makes again -> ``new(cls, contents, attribute=value, ...)``.

Dynamo's code makes an object that the traced function made without calling its class, and fills it entry by entry::

    layer = DynamicLayer.__new__(DynamicLayer)
    object_setattr_ignore_descriptor(layer, 'keys', graph_out_0[1])

Until somebody else gets to see the object it is a virtual container like a list, and its entries are slots. When it
escapes it is written with what it holds.
"""

from __future__ import annotations

import keyword
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeGuard

from ....bytecode import operations as o
from ....bytecode.operations import Op
from ...errors import SIMPLIFY, CannotDecompile
from .. import facts, forms
from ..facts import Path
from .values import Const, Container, Let, Value

if TYPE_CHECKING:
    from .evaluate import Runner

_NONE = Const(None)


def is_key(value: Value) -> bool:
    """Return whether a value is a constant whose hashing is unobservable."""
    return isinstance(value, Const) and type(value.value) in (str, int, bool, type(None))


# --- reads ----------------------------------------------------------------------------------------------
def read_attribute(runner: Runner, op: Op) -> bool:
    """Read an attribute that only leads to one of the calls that :func:`call` knows; return whether it is one."""
    owner, name = runner.stack[-1], op.arg
    role: tuple[Any, ...] = ()
    if isinstance(owner, Let):
        if owner.role[:1] == ("ancestor",) and name in ("clear", "__setitem__", "extend", forms.UPDATE):
            role = ("ancestor method", owner.role[1], name)
        elif owner.path is not None:
            role = _role(runner, owner.path, name)
    if name == forms.UPDATE and not role:
        raise CannotDecompile(SIMPLIFY, "a dictionary that others have seen is filled")
    if not role:
        path = runner.path_of(owner)
        if path is None or not runner.owner.facts.builtin_method(path, name):
            return False
        role = ("bound",)
    runner.pop(1)
    let = runner.let(op, [owner], silent=True)
    let.optional, let.lasting, let.role = True, facts.ALWAYS, role
    if role == ("bound",) and isinstance(owner, Let) and owner.lasting:
        let.lasting, let.epochs = owner.lasting, owner.epochs
    runner.stack.append(let)
    return True


def _role(runner: Runner, path: Path, name: str) -> tuple[Any, ...]:
    """Return what is known of an attribute of a live object: the role of the value that it gives, or nothing."""
    known = runner.owner.facts.well_known(path)
    if known == facts.OBJECT and name == "__setattr__":
        return ("set attribute",)
    if known in (facts.DICT, facts.LIST) and name in ("clear", "__setitem__", "extend"):
        return ("ancestor method", known.rpartition(".")[2], name)
    if name == "__new__" and runner.owner.facts.allocates(path):
        return ("new", path)
    if name == "__mro__" and runner.owner.facts.allocates(path):
        return ("mro", path)
    return ()


def read_item(runner: Runner, op: Op) -> bool:
    """Read a class out of a ``__mro__``, and return whether that is what lies on the stack."""
    owner, index = runner.stack[-2:]
    if not (isinstance(owner, Let) and owner.role[:1] == ("mro",) and isinstance(index, Const)
            and type(index.value) is int):
        return False
    found = runner.owner.facts.ancestor(owner.role[1], index.value)
    if not found:
        return False
    runner.pop(2)
    let = runner.let(op, [owner, index], silent=True)
    let.optional, let.lasting, let.role = True, facts.ALWAYS, ("ancestor", found)
    runner.stack.append(let)
    return True


# --- calls ----------------------------------------------------------------------------------------------
def call(runner: Runner, op: Op, function: Let, operands: Sequence[Value]) -> Value | None:
    """Return the result of a call that is carried out here; ``None`` for any other."""
    kind = function.role[0] if function.role else ""
    first = operands[0] if operands else None
    if kind == "new":
        return _made(runner, function, operands)
    if kind == "set attribute" and len(operands) == 3 and isinstance(first, Container) and is_key(operands[1]) \
            and set_attribute(runner, first, _constant(operands[1]), operands[2], generic=False):
        return _NONE
    if kind == "ancestor method":
        return _fill(function.role[1], function.role[2], operands)
    return _call_known(runner, op, function, operands)


def _call_known(runner: Runner, op: Op, function: Let, operands: Sequence[Value]) -> Value | None:
    """Return the result of a call of a function that is known by its path; ``None`` for any other."""
    first = operands[0] if operands else None
    known = runner.owner.facts.well_known(function.path) if function.path is not None else ""
    if known == facts.SET_ATTRIBUTE and len(operands) == 3 and is_key(operands[1]) \
            and isinstance(_constant(operands[1]), str):
        return _set_entry(runner, op, first, _constant(operands[1]), operands[2])
    if known == facts.SIZE and len(operands) == 2:
        size = runner.let(op, [function, *operands], silent=True)
        size.role = ("size",)
        runner.happened(only_read=True)
        return size
    if known == facts.TYPE and len(operands) == 1 and _is_virtual(first, "object"):
        return first.items[0]
    if known == facts.ORDERED_DICT and len(operands) == 1 and _is_virtual(first, "dict"):
        return Container("ordered", [function, *first.items])
    return None


def _is_virtual(value: Value | None, kind: str) -> TypeGuard[Container]:
    """Return whether a value is a container that nobody else has seen."""
    return isinstance(value, Container) and value.kind == kind and value.built is None


def _made(runner: Runner, function: Let, operands: Sequence[Value]) -> Value | None:
    """Return the virtual object that ``cls.__new__(cls)`` makes; ``None`` if the class may do anything else there."""
    cls = operands[0] if operands else None
    if not isinstance(cls, Let) or cls.path is None or cls.path != function.role[1]:
        return None
    kind = runner.owner.facts.allocates(cls.path, len(operands) > 1)
    if not kind:
        return None
    made = Container("object", [cls], [("class", kind)])
    return made


def _set_entry(runner: Runner, op: Op, owner: Value | None, name: str, value: Value) -> Value | None:
    """Set an entry of an object's dictionary: of a virtual object in it, else as ``vars(owner)[name] = value``."""
    assert owner is not None
    if _is_virtual(owner, "object"):
        put(owner, ("attr", name), value)
        return _NONE
    known = runner.owner.facts
    seen = owner.built if isinstance(owner, Container) else owner
    path = runner.path_of(owner)
    kind = known.class_path(path) if path is not None else (
        seen.role[1] if isinstance(seen, Let) and seen.role[:1] == ("instance",) else None)
    if kind is not None and known.stores_plainly(kind, name, True):
        runner.let(Op(o.STORE_ATTR, name, op.offset, op.line, -1, op.handler), [value, owner])
        return _NONE
    entries = runner.let(Op(o.LOAD_GLOBAL, forms.ENTRIES, op.offset, op.line), (), silent=True)
    entries.lasting, entries.optional = facts.ALWAYS, True
    dictionary = runner.let(Op(o.CALL, (1, ()), op.offset, op.line, -1, op.handler), [entries, owner], silent=True)
    runner.let(Op(o.SETITEM, None, op.offset, op.line, -1, op.handler), [value, dictionary, Const(name)])
    return _NONE


def set_attribute(runner: Runner, owner: Container, name: str, value: Value, generic: bool) -> bool:
    """Set an attribute of a virtual object, and return whether that only makes an entry in its dictionary."""
    if owner.kind != "object" or owner.built is not None:
        return False
    cls = owner.items[0]
    assert isinstance(cls, Let)
    if cls.path is None or not runner.owner.facts.stores_plainly(cls.path, name, generic):
        return False
    put(owner, ("attr", name), value)
    return True


def _fill(kind: str, name: str, operands: Sequence[Value]) -> Value | None:
    """Carry out a method of ``dict`` or ``list`` on a virtual object; ``None`` for other objects and arguments."""
    made = operands[0] if operands else None
    if not isinstance(made, Container) or made.kind != "object" or made.built is not None \
            or made.slots[0][1] != ("list" if kind == "list" else "dict"):
        if name == forms.UPDATE:
            raise CannotDecompile(SIMPLIFY, "a dictionary that others have seen is filled")
        return None
    if name == "clear" and len(operands) == 1:
        kept = [at for at, slot in enumerate(made.slots) if slot[0] in ("class", "attr")]
        made.items[:], made.slots[:] = [made.items[at] for at in kept], [made.slots[at] for at in kept]
    elif name == "__setitem__" and len(operands) == 3 and is_key(operands[1]) and kind != "list":
        put(made, ("item", _constant(operands[1])), operands[2])
    elif name == forms.UPDATE and isinstance(operands[1], Container) and operands[1].kind in ("dict", "ordered"):
        entries = operands[1].items[operands[1].kind == "ordered" :]
        for key, value in zip(entries[::2], entries[1::2]):
            put(made, ("item", _constant(key)), value)
    elif name == "extend" and isinstance(operands[1], Container) and operands[1].kind in ("list", "tuple"):
        made.items += operands[1].items
        made.slots += [("element", 0)] * len(operands[1].items)
    elif name == forms.UPDATE:
        raise CannotDecompile(SIMPLIFY, "a dictionary is filled with what is not known")
    else:
        return None
    return _NONE


def put(made: Container, slot: tuple[str, Any], value: Value) -> None:
    """Set an entry of a virtual object; one that is there already keeps its place."""
    for place, known in enumerate(made.slots):
        if known == slot and type(known[1]) is type(slot[1]):
            made.items[place] = value
            return
    made.slots.append(slot)
    made.items.append(value)


def _constant(value: Value) -> Any:
    assert isinstance(value, Const)
    return value.value


# --- writing --------------------------------------------------------------------------------------------
def built(runner: Runner, value: Container) -> Let:
    """Return the SSA value of a virtual dictionary or object, made where others get to see it."""
    op = runner.op
    assert op is not None
    if value.kind == "dict":
        return _optional(_dictionary(runner, value.items))
    if value.kind == "ordered":
        entries = _dictionary(runner, value.items[1:])
        return _optional(runner.let(Op(o.CALL, (1, ()), op.offset, op.line), [value.items[0], entries], silent=True))
    cls = value.items[0]
    assert isinstance(cls, Let)
    new = runner.let(Op(o.LOAD_GLOBAL, forms.NEW, op.offset, op.line), (), silent=True)
    new.lasting, new.optional = facts.ALWAYS, True
    attributes = [(slot[1], item) for slot, item in zip(value.slots, value.items) if slot[0] == "attr"]
    if not all(name.isidentifier() and not keyword.iskeyword(name) for name, _ in attributes):
        raise CannotDecompile(SIMPLIFY, "an attribute that has no word in source")
    contents = [part for slot, item in zip(value.slots, value.items) if slot[0] == "item"
                for part in (Const(slot[1]), item)]
    elements = [item for slot, item in zip(value.slots, value.items) if slot[0] == "element"]
    inside: list[Value] = []
    if contents:
        inside = [_dictionary(runner, contents)]
    elif elements:
        inside = [runner.let(Op(o.BUILD_LIST, len(elements), op.offset, op.line), elements)]
    operands = []
    for name, item in attributes:
        seen = runner.escape(item)
        if isinstance(seen, Let):
            seen.hints.append(name)
        operands.append(seen)
    call = Op(o.CALL, (1 + len(inside), tuple(name for name, _ in attributes)), op.offset, op.line)
    let = _optional(runner.let(call, [new, cls, *inside, *operands], silent=True))
    let.role = ("instance", cls.path)
    return let


def _dictionary(runner: Runner, entries: Sequence[Value]) -> Let:
    op = runner.op
    assert op is not None
    operands = []
    for place, entry in enumerate(entries):
        seen = runner.escape(entry)
        if place % 2 and isinstance(seen, Let) and isinstance(_constant(entries[place - 1]), str):
            seen.hints.append(_constant(entries[place - 1]))
        operands.append(seen)
    return runner.let(Op(o.BUILD_MAP, len(entries) // 2, op.offset, op.line), operands)


def _optional(let: Let) -> Let:
    let.optional = True
    return let
