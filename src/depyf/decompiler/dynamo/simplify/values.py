"""The knowledge of a partial evaluator: values, the stack and locals that they are in, and their names."""

from __future__ import annotations

import builtins
import keyword
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ....bytecode import operations as o
from ....bytecode.operations import Op
from ...nodes import free_name
from ..facts import Path
from ..global_names import BUILTINS_PREFIX, CONSTANT_PREFIX, ENTRIES, NEW, SIDE_BY_SIDE

if TYPE_CHECKING:
    from . import _Simplifier


class Value:
    """A symbolic value of the partial evaluator."""

    __slots__ = ()


@dataclass(eq=False, slots=True)
class Const(Value):
    """A constant."""

    value: Any


@dataclass(eq=False, slots=True)
class Local(Value):
    """A local variable that is bound, read where it is used."""

    name: str


@dataclass(eq=False, slots=True)
class SsaValue(Value):
    """An SSA value: the result of an operation.

    Attributes:
        op: the operation; ``None`` for a value that is on the stack already.
        operands: what it takes, in their order on the stack.
        block: id of the block it happens in.
        uses: how often it is taken; ``elsewhere``: also in another block.
        hints: names it could have, best first; ``variable``: the local it is stored in, once it has one.
        pure: it may happen later, or never (an item of a graph's result, ``graph_item``).
        optional: nothing is lost if it does not happen (profiler markers).
        results: for operations with several results, their SSA values.
        path: of the live object that it gives, if known.
        role: what else is known of it (:mod:`.objects`).
        lasting: of an unobservable read, written as often as it is used, how long it is valid (``Facts.reading``).
        epochs: what had happened before it: see :class:`State`.
    """

    op: Op | None
    operands: Sequence[Value]
    block: int
    uses: int = 0
    elsewhere: bool = False
    hints: list[str] = field(default_factory=list)
    optional: bool = False
    pure: bool = False
    results: list[SsaValue] = field(default_factory=list)
    variable: str | None = None
    path: Path | None = None
    role: tuple[Any, ...] = ()
    lasting: str = ""
    epochs: tuple[int, ...] = (0, 0, 0)
    graph_item: bool = False


def made_by(value: Value, kind: str) -> Any:
    """Return the argument of the operation that gives a value, if it is of that kind; ``""`` for any other value."""
    return value.op.arg if isinstance(value, SsaValue) and value.op is not None and value.op.kind is kind else ""


def called_global(value: Value) -> str:
    """Return the name of the global whose call gives a value; empty for any other value."""
    return made_by(value.operands[0], o.LOAD_GLOBAL) if isinstance(value, SsaValue) and made_by(value, o.CALL) else ""


@dataclass(eq=False, slots=True)
class Container(Value):
    """A list, tuple, slice, dictionary or object that only this code has seen.

    Attributes:
        kind: ``"list"``, ``"tuple"``, ``"slice"``; ``"dict"``, of which the items are keys and values in turn;
            ``"ordered"``, the same after the class that makes it; ``"object"``, of which the items are its class and
            the values that ``slots`` names: ``("attr", name)``, or ``("item", key)`` of one that is a dictionary.
        built: the value it became when others got to see it.
    """

    kind: str
    items: list[Value]
    slots: list[tuple[str, Any]] = field(default_factory=list)
    built: Value | None = None


@dataclass(eq=False, slots=True)
class State:
    """Stack and known locals; ``epochs``: the last things that may have changed each of :data:`.facts.EPOCHS`."""

    stack: list[Value]
    variables: dict[str, Value]  # locals whose value is known: name -> value
    bound: set[str]  # locals that certainly have a value
    epochs: tuple[int, ...] = (0, 0, 0)

    def copy(self) -> State:
        """Return a copy for one of several successors: containers are copied, and shared ones are still shared."""
        memo: dict[int, Value] = {}

        def dup(value: Value) -> Value:
            if not isinstance(value, Container):
                return value
            done = value.built or memo.get(id(value))
            if done is None:
                done = memo[id(value)] = Container(value.kind, [], list(value.slots))
                done.items = [dup(item) for item in value.items]
            return done

        return State([dup(v) for v in self.stack], {n: dup(v) for n, v in self.variables.items()},
                     set(self.bound), self.epochs)

    def locals_read(self) -> set[str]:
        """Return the locals that are to be read where values on the stack, in locals and inside containers are used."""
        found, seen, pending = set(), set(), [*self.stack, *self.variables.values()]
        while pending:
            value = pending.pop()
            if isinstance(value, Local):
                found.add(value.name)
            elif isinstance(value, Container) and value.built is None and id(value) not in seen:
                seen.add(id(value))
                pending += value.items
        return found


@dataclass(eq=False, slots=True)
class BlockPlan:
    """A block plan: the SSA values that are left of a block, in order, and what its terminator takes.

    ``entry_stack``: values on the stack at its entry. ``end_operands``: those after it, and what the terminator
    takes. ``end_epochs``: what had happened before that (:class:`State`). ``verbatim``: it is copied unchanged.
    """

    end_epochs: tuple[int, ...] = (0, 0, 0)
    values: list[SsaValue] = field(default_factory=list)
    entry_stack: list[SsaValue] = field(default_factory=list)
    end_operands: list[Value] = field(default_factory=list)
    verbatim: bool = False


# --- names for values that need a variable -----------------------------------------------------------
#: Names that are made up of what a value is are not longer than this many characters.
LONGEST_NAME = 50
#: What values are called of which nothing else is known, by the operation that makes them.
_KINDS = {
    o.BUILD_LIST: "items", o.BUILD_TUPLE: "values", o.BUILD_MAP: "entries", o.BUILD_CONST_KEY_MAP: "entries",
    o.BUILD_SET: "elements", o.BUILD_SLICE: "bounds", o.COMPARE: "test", o.IS: "test", o.IN: "test",
    o.LOAD_CLOSURE: "cell", o.GET_ITER: "iterator", o.IMPORT_NAME: "module",
}


class Namer:
    """A chooser of variables for SSA values: a name that the value was given, else a descriptive one."""

    def __init__(self, owner: _Simplifier) -> None:
        code = owner.graph.code
        self.taken: set[str] = set(owner.arguments) | owner.kept | set(code.cellvars) | set(code.freevars)
        self.taken |= {NEW, owner.new, ENTRIES, SIDE_BY_SIDE}
        for block in owner.graph.blocks.values():
            for op in block.ops:
                if op.kind in (o.LOAD_GLOBAL, o.STORE_GLOBAL, o.LOAD_NAME):
                    self.taken |= {op.arg, owner.rename.get(op.arg, op.arg)}
        self.rename = owner.rename

    def name(self, value: SsaValue) -> str:
        """Return the variable of a value, chosen at first use."""
        if value.variable is None:
            names = list(dict.fromkeys(self.candidates(value))) or [self.kind(value)]
            wanted = next((name for name in names if name not in self.taken), names[0])
            value.variable = free_name(wanted, self.taken)
            self.taken.add(value.variable)
        return value.variable

    def candidates(self, value: SsaValue) -> Iterator[str]:
        """Yield names for a value by its use and its origin, best first."""
        yield from (hint for hint in value.hints
                    if hint.isidentifier() and not keyword.iskeyword(hint) and not is_torch_name(hint))
        yield from filter(None, (self.described(value, long) for long in (False, True)))

    def kind(self, value: SsaValue) -> str:
        """Return a name for a value of which only the operation is known."""
        if value.op is None:
            return "value"
        if value.role[:1] == ("size",):
            return _short("_".join(filter(None, [self.described(size_of(value)[0]), "size"]))) or "size"
        if value.op.kind in (o.CALL, o.CALL_EX) and value.operands:
            called = "" if _is_constant(value.operands[0]) else self.described(value.operands[0])
            return _short(called.rstrip("_") + "_result") or "result"
        return _KINDS.get(value.op.kind, "value")

    def described(self, value: Value, long: bool = False, depth: int = 0) -> str:
        """Return a name from where the value comes, after ``depth`` others; empty where nothing is known.

        ``self.model.norm`` is ``norm``, or ``model_norm`` if ``long``; a new object of ``Layer`` is ``new_Layer``.
        """
        if isinstance(value, Local):
            return value.name
        if not isinstance(value, SsaValue):
            return ""
        if value.variable is not None and depth:
            return value.variable
        if value.op is None or depth > 4:
            return ""
        kind, argument = value.op.kind, value.op.arg
        if kind is o.LOAD_GLOBAL:
            # Called like the module that an alias of Dynamo's refers to, or the global itself.
            name = self.rename.get(argument, argument)
            return "builtin" if name.startswith(BUILTINS_PREFIX) else _short(name.rpartition("_dot_")[2])
        if kind is o.LOAD_DEREF:
            return _short(argument)
        if not value.operands:
            return ""
        owner = value.operands[0]
        if kind is o.CALL:
            cls = next(iter(value.operands[1:2]), None)
            if cls is None or value.role[:1] != ("instance",) and made_by(owner, o.LOAD_ATTR) != "__new__":
                return ""
            made = "object" if _is_constant(cls) else self.described(cls, False, depth + 1)
            return _short(f"new_{made}") if made else ""
        if kind is o.LOAD_ATTR:
            inner = self.described(owner, long, depth + 1)
            return _joined(inner, argument) if long else _short(argument)
        if kind is o.GETITEM and isinstance(value.operands[1], Const):
            key = value.operands[1].value
            inner = self.described(owner, long, depth + 1)
            if isinstance(key, str) and key.isidentifier():
                return _joined(inner, key) if long else _short(key)
            if type(key) is int and isinstance(owner, SsaValue) and owner.variable is None and (
                    made_by(owner, o.LOAD_ATTR)):
                # of whom it is, as the graph names it: ``cache_layers_0`` and ``model_layers_0`` are not the same
                inner = _joined(self.described(owner.operands[0], False, depth + 2), made_by(owner, o.LOAD_ATTR))
            return _joined(inner, str(key).replace("-", "minus_")) if type(key) in (str, int) else ""
        return ""


def size_of(value: SsaValue) -> list[Value]:
    """Return the tensor and the number of the dimension that a size is read of."""
    function, *operands = value.operands
    return operands if len(operands) == 2 or not isinstance(function, SsaValue) else [*function.operands, *operands]


def _is_constant(value: Value) -> bool:
    """Return whether a value is a constant that source cannot say: its name says nothing to a reader."""
    return bool(made_by(value, o.LOAD_GLOBAL).startswith(CONSTANT_PREFIX))


def _joined(owner: str, name: str) -> str:
    return _short(f"{owner}_{name.strip('_')}") or _short(name) if owner else _short(name)


def _short(name: str) -> str:
    name = name.strip("_")
    if hasattr(builtins, name):
        name += "_"  # ``list`` would hide the function
    return name if name.isidentifier() and len(name) <= LONGEST_NAME and not keyword.iskeyword(name) else ""


def is_torch_name(name: str) -> bool:
    """Return whether a name is one that torch gives anything, such as ``tmp_3`` or ``___stack0``."""
    return name.startswith(("___stack", "__is_tracing_")) or name.startswith("tmp_") and name[4:].isdigit()
