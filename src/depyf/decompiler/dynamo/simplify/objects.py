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
from ....bytecode.operations import ONLY_READ, UNOBSERVABLE, Op
from ....cfg.graph import Block
from ...errors import SIMPLIFY, CannotDecompile
from .. import facts, global_names
from ..facts import ALWAYS, EPOCHS, MODULES, PLAIN, Path, lasting
from ..global_names import MODULE_DICTIONARIES, UPDATE
from .values import BlockPlan, Const, Container, Local, SsaValue, State, Value

if TYPE_CHECKING:
    from . import _Simplifier


_NONE = Const(None)
_BEING_BUILT = Const(...)
#: Methods of dictionaries that fill an object.
_METHODS = ("clear", "__setitem__", UPDATE)


def is_key(value: Value) -> bool:
    """Return whether a value is a constant whose hashing is unobservable."""
    return isinstance(value, Const) and type(value.value) in (str, int, bool, type(None))


def _is_virtual(value: Value | None, kind: str) -> TypeGuard[Container]:
    """Return whether a value is a container that has not escaped."""
    return isinstance(value, Container) and value.kind == kind and value.built is None


def _fill(name: str, operands: Sequence[Value]) -> Value | None:
    """Carry out a method of ``dict`` on a virtual object; ``None`` for other objects and arguments."""
    owner = operands[0]
    if not _is_virtual(owner, "object") or owner.slots[0][1] != "dict":
        return None
    match name, operands[1:]:
        case "clear", []:
            if any(kind == "item" for kind, _ in owner.slots):
                return None
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


class Evaluator:
    """A block that is run on symbolic values: its stack, its locals, and the plan of what is left of it."""

    def __init__(self, owner: _Simplifier, block: Block, plan: BlockPlan, state: State) -> None:
        self.owner = owner
        self.block = block
        self.plan = plan
        self.state = state
        self.stack = state.stack

    # --- helpers ---
    def pop(self, count: int) -> list[Value]:
        """Pop ``count`` values, the deepest first: of containers that others have seen, what these became."""
        start = len(self.stack) - count
        taken = [value.built or value if isinstance(value, Container) else value for value in self.stack[start:]]
        del self.stack[start:]
        return taken

    def define(self, op: Op, operands: Sequence[Value], unobservable: bool = False) -> SsaValue:
        """Append an SSA value to the plan; unless it is unobservable, it may change the contents of objects."""
        escaped = [self.escape(value) for value in operands]
        result = SsaValue(Op(op.kind, op.arg), escaped, self.block.id)  # (its place in Dynamo's code says nothing)
        result.epochs = self.state.epochs
        self.plan.values.append(result)
        if not unobservable and op.kind not in UNOBSERVABLE:
            self.happened(PLAIN if op.kind in ONLY_READ else MODULES)
        return result

    def word(self, name: str) -> SsaValue:
        """Return a global that texts have for a form."""
        return self.unobservable(Op(o.LOAD_GLOBAL, name), (), ALWAYS)

    def happened(self, ends: str = MODULES) -> None:
        """Begin a new epoch: something happens that others may observe, and that ends what lasts so long."""
        number = self.owner.happened = self.owner.happened + 1
        ended = EPOCHS.index(ends) + 1
        self.state.epochs = (number,) * ended + self.state.epochs[ended:]

    def reads(self, op: Op, operands: Sequence[Value], path: Path) -> SsaValue | None:
        """Return an unobservable read; ``None`` if the facts do not know it as one."""
        kind = lasting(self.owner.facts, path)
        return self.unobservable(op, operands, kind, path) if kind else None

    def unobservable(self, op: Op, operands: Sequence[Value], lasts: str = "", path: Path | None = None) -> SsaValue:
        """Append an SSA value that may be left out: of what nobody sees, or of a read that remains valid so long."""
        result = self.define(op, operands, unobservable=True)
        result.path, result.lasting, result.optional = path, lasts, True
        return result

    def path_of(self, value: Value) -> Path | None:
        """Return the path of the live object that a value is; ``None`` if unknown."""
        if isinstance(value, SsaValue):
            return value.path
        if isinstance(value, Local) and value.name in self.owner.arguments and value.name not in self.owner.stored:
            return (("local", value.name),)
        return None

    def escape(self, value: Value) -> Value:
        """Return a value as others may see it: a container is built, once, and is that object from now on."""
        if not isinstance(value, Container):
            return value
        if value.built is _BEING_BUILT:
            raise CannotDecompile(SIMPLIFY, "an object that holds itself")
        if value.built is not None:
            return value.built
        if value.kind in ("dict", "ordered", "object"):
            value.built = _BEING_BUILT
            built: Value = self.built(value)
        elif value.kind == "tuple" and not value.items:
            built = Const(())
        else:
            items = [self.escape(item) for item in list(value.items)]
            kind = {"list": o.BUILD_LIST, "tuple": o.BUILD_TUPLE, "slice": o.BUILD_SLICE}[value.kind]
            built = self.define(Op(kind, len(items)), items)
            built.optional = built.pure = True  # building alone has no effect
        value.built = built
        return built

    def settle(self, taken: Sequence[Value]) -> None:
        """Have all values computed before a loop, which takes some of them: its turns are the same to the proof."""
        for value in [*self.stack, *self.state.variables.values(), *taken]:
            seen = self.escape(value)
            if isinstance(seen, SsaValue) and not seen.lasting and seen.op is not None:
                seen.block, seen.pure, seen.graph_item = -1, False, False  # (as if another block had made it)

    def read_attribute(self, op: Op, owner: Value) -> SsaValue | None:
        """Return an attribute that only leads to one of the calls that :meth:`call` knows; ``None`` for any other."""
        name, path, known = op.arg, self.path_of(owner), self.owner.facts
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
            return None
        result = self.unobservable(op, [owner], ALWAYS)
        result.role = role
        if role[0] == "bound" and isinstance(owner, SsaValue) and owner.lasting:
            result.lasting, result.epochs = owner.lasting, owner.epochs
        return result

    def call(self, op: Op, function: SsaValue, operands: Sequence[Value]) -> Value | None:
        """Return the result of a call that is carried out here; ``None`` for any other."""
        known = self.owner.facts
        kind, *of = function.role or (known.well_known(function.path) if function.path is not None else "",)
        if kind == "ancestor method" and (done := _fill(of[0], operands)) is not None:
            return done
        if function.op is not None and function.op.arg == UPDATE:
            return self._fill_entry_by_entry(op, function, operands)
        match kind, operands:
            case "__new__", [cls, *arguments]:
                allocated = known.allocates(of[0], bool(arguments)) if self.path_of(cls) == of[0] else ""
                return Container("object", [cls], [("class", allocated)]) if allocated else None
            case "set attribute", [Container() as made, Const(str(name)), value] if _is_virtual(
                    made, "object") and known.stores_plainly(self.path_of(made.items[0]) or (), name, False):
                put(made, ("attr", name), value)
                return _NONE
            case "bound", [entries] if of[0] == "update":
                return self._update(op, function, entries)
            case facts.SET_ATTRIBUTE, [owner, Const(str(name)), value]:
                if _is_virtual(owner, "object"):
                    put(owner, ("attr", name), value)
                elif not self.store_plainly(owner, name, value):  # ``vars(owner)['name'] = value``
                    value, call = self.escape(value), Op(o.CALL, (1, ()))
                    entries = self.define(call, [self.word(global_names.ENTRIES), owner], unobservable=True)
                    self.define(Op(o.SETITEM), [value, entries, Const(name)])
                return _NONE
            case facts.SIZE, [tensor, number]:
                if self.owner.has_size_calls:
                    function = self.define(Op(o.LOAD_ATTR, "size"), [tensor], unobservable=True)
                    op, operands = Op(o.CALL, (1, ())), [number]
                size = self.define(op, [function, *operands], unobservable=True)
                size.role = ("size",)
                self.happened(PLAIN)
                return size
            case facts.TYPE, [value]:
                if _is_virtual(value, "object"):
                    return value.items[0]
                path = (*(self.path_of(value) or ()), ("class", ""))
                lasts = known.reading(path)
                return self.unobservable(op, [function, value], lasts, path) if lasts else None
            case facts.ORDERED_DICT, [entries] if _is_virtual(entries, "dict"):
                return Container("ordered", [function, *entries.items])
        return None

    def store_plainly(self, owner: Value, name: str, value: Value) -> bool:
        """Leave ``owner.name = value``, and return True, if that only makes an entry in the owner's dictionary."""
        known = self.owner.facts
        path = self.path_of(owner)
        kind = known.class_path(path) if path is not None else None
        if kind is None or not known.stores_plainly(kind, name, True):
            return False
        self.define(Op(o.STORE_ATTR, name), [value, owner], unobservable=True)
        self.happened(facts.ended_by(known, name))
        return True

    def _update(self, op: Op, function: SsaValue, entries: Value) -> Value | None:
        """Write ``module._buffers.update({'name': value})`` as stores to attributes, and other updates as they are.

        ``None`` where such a call may do more than make entries.
        """
        dictionary, known = function.operands[0], self.owner.facts
        path = self.path_of(dictionary)
        if path is None or not known.builtin_method(path, "setdefault") or not _is_virtual(entries, "dict") \
                or not entries.items:
            return None
        names = list(map(_constant, entries.items[::2]))
        if not all(type(name) is str for name in names):
            return None
        result: Value = _NONE
        if isinstance(dictionary, SsaValue) and all(
                name.isidentifier() and name not in self.owner.stores
                and known.stores_member((*path, ("item", name))) for name in names):
            for name, value in zip(names, entries.items[1::2]):
                self.define(Op(o.STORE_ATTR, name), [value, dictionary.operands[0]], unobservable=True)
                self.happened(facts.ended_by(known, name))
        else:
            result = self.define(op, [function, entries], unobservable=True)
            for name in names:
                self.happened(facts.ended_by(known, name))
        return result

    def _fill_entry_by_entry(self, op: Op, function: SsaValue, operands: Sequence[Value]) -> Value | None:
        """Make the entries of a dictionary that others have seen, one by one if they are known."""
        (target, entries), cls = operands, function.operands[0]
        if isinstance(cls, SsaValue) and cls.op is not None and cls.op.kind is o.GETITEM:
            cls.hints.append("dict_class")
            cls.lasting = ""
        if _is_virtual(entries, "dict") or _is_virtual(entries, "ordered"):
            for key, value in _entries(entries):
                method = self.define(Op(o.LOAD_ATTR, "__setitem__"), [cls])
                self.define(Op(o.CALL, (3, ())), [method, target, key, value])
            return _NONE
        if isinstance(entries, SsaValue):
            entries.hints.append("entries")
        self.settle((cls, target, entries))
        return None

    def built(self, value: Container) -> SsaValue:
        """Return the SSA value of a virtual dictionary or object, made where others get to see it."""

        def dictionary(entries: Iterable[tuple[Value, Value]]) -> SsaValue:
            parts = [part for key, item in entries for part in (key, named(item, _constant(key)))]
            return self.define(Op(o.BUILD_MAP, len(parts) // 2), parts)

        def named(item: Value, name: object) -> Value:
            seen = self.escape(item)
            if isinstance(seen, SsaValue) and isinstance(name, str):
                seen.hints.append(name)  # (by what it is stored under)
            return seen

        if value.kind == "dict":
            result = dictionary(_entries(value))
            result.optional = True
            return result
        if value.kind == "ordered":
            call = Op(o.CALL, (1, ()))
            return self.unobservable(call, [value.items[0], dictionary(_entries(value))])
        new = self.word(self.owner.new)
        parts = {kind: [(slot[1], item) for slot, item in zip(value.slots, value.items) if slot[0] == kind]
                 for kind in ("attr", "item")}
        names = tuple(name for name, _ in parts["attr"])
        if not all(name.isidentifier() and not keyword.iskeyword(name) for name in names):
            raise CannotDecompile(SIMPLIFY, "an attribute that has no word in source")
        inside: list[Value] = []
        if parts["item"]:
            inside = [dictionary((Const(key), item) for key, item in parts["item"])]
        operands = [named(item, name) for name, item in parts["attr"]]
        call = Op(o.CALL, (1 + len(inside), names))
        result = self.unobservable(call, [new, value.items[0], *inside, *operands])
        result.role = ("instance",)
        return result

    # --- Reads through the dictionaries of a module -> attributes of the module, where they give the same ---
    # ::
    #
    #     self._modules['layers']._modules['0']._parameters['weight']
    #     self.layers[0].weight
    #     self.blocks['conv-1'].weight            of a ``ModuleDict``
    def entry(self, owner: Value, path: Path) -> SsaValue | None:
        """Return ``x.name`` for ``x.__dict__['name']``; ``None`` where that is not known to be the same."""
        key = path[-1][1]
        if path[-2:-1] != (("attr", "__dict__"),) or type(key) is not str or not key.isidentifier() \
                or not isinstance(owner, SsaValue):
            return None
        return self.reads(Op(o.LOAD_ATTR, key), owner.operands[:1], (*path[:-2], ("attr", key)))

    def member(self, owner: Value, path: Path) -> SsaValue | None:
        """Return a module's attribute or element for the item of a dictionary of it; ``None`` where it is another."""
        if not (isinstance(owner, SsaValue) and owner.op is not None and owner.op.kind is o.LOAD_ATTR
                and owner.op.arg in MODULE_DICTIONARIES):
            return None
        facts, key = self.owner.facts, path[-1][1]
        (module,) = owner.operands
        if facts.reading(path) != MODULES or type(key) is not str:
            return None
        is_name = key.isidentifier() and not keyword.iskeyword(key)
        index = int(key) if key.isdecimal() else key
        if not is_name and facts.element(path[:-2], index) == path:
            read, operands = Op(o.GETITEM), [module, Const(index)]
        elif is_name and facts.unshadowed(path):
            read, operands = Op(o.LOAD_ATTR, key), [module]
        else:
            return None
        return self.reads(read, operands, path)
