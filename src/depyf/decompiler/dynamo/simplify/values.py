"""The knowledge of a partial evaluator: values, and the stack and locals that hold them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ....bytecode.operations import Op
from ..facts import Path


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


class SsaValue(Value):
    """An SSA value: the result of an operation.

    Attributes:
        op: the operation; ``None`` for a value that is on the stack already.
        operands: what it takes, in the order in which the stack holds them.
        block: id of the block it happens in.
        uses: how often it is taken.
        elsewhere: it is taken in another block.
        hints: names it could have, best first.
        pure: it may happen later, or never (an item of a graph's result).
        optional: nothing is lost if it does not happen (profiler markers).
        results: for operations with several results, the SSA values that stand for them.
        variable: name of the local that holds it, once it has one.
        path: of the live object that it gives, where that is known.
        role: what else is known of it (:mod:`.objects`).
        lasting: for a read that nobody can observe, how long it stays true (``Facts.reading``); it is written where it
            is used, as often as it is used. Empty for anything else.
        epochs: what had happened before it: see :class:`State`.
        graph_item: whether it is an item of a graph's result.
    """

    __slots__ = ("block", "elsewhere", "epochs", "graph_item", "hints", "lasting", "op", "operands", "optional", "path",
                 "pure", "results", "role", "uses", "variable")

    def __init__(self, op: Op | None, operands: Sequence[Value], block: int) -> None:
        self.op = op
        self.operands = list(operands)
        self.block = block
        self.uses = 0
        self.elsewhere = False
        self.hints: list[str] = []
        self.optional = False
        self.pure = False
        self.results: list[SsaValue] = []
        self.variable: str | None = None
        self.path: Path | None = None
        self.role: tuple[Any, ...] = ()
        self.lasting = ""
        self.epochs = (0, 0)
        self.graph_item = False


class Container(Value):
    """A list, tuple, slice, dictionary or object that only this code has seen.

    Attributes:
        kind: ``"list"``, ``"tuple"``, ``"slice"``; ``"dict"``, of which the items are keys and values in turn;
            ``"ordered"``, the same behind the class that makes it; ``"object"``, of which the items are its class and
            the values that ``slots`` names.
        slots: of an object: ``("attr", name)`` for an entry of its dictionary, ``("item", key)`` for what it holds as a
            dictionary itself, ``("element", 0)`` for an element of a list.
        built: the value it became when others got to see it.
    """

    __slots__ = ("built", "items", "kind", "slots")

    def __init__(self, kind: str, items: list[Value], slots: list[tuple[str, Any]] | None = None) -> None:
        self.kind = kind
        self.items = items
        self.slots = slots or []
        self.built: Value | None = None


@dataclass(eq=False, slots=True)
class State:
    """Stack and known locals at a point of the program.

    Attributes:
        epochs: numbers of the last things that may have changed what plain objects hold, and what modules hold.
    """

    stack: list[Value]
    variables: dict[str, Value]  # locals whose value is known: name -> value
    bound: set[str]  # locals that certainly have a value
    epochs: tuple[int, int] = (0, 0)

    def copy(self) -> State:
        """Return a copy for one of several successors: containers are copied, and shared ones stay shared."""
        memo: dict[int, Value] = {}

        def dup(value: Value) -> Value:
            if not isinstance(value, Container):
                return value
            done = memo.get(id(value))
            if done is None:
                done = memo[id(value)] = Container(value.kind, [], list(value.slots))
                done.items = [dup(item) for item in value.items]
            return done

        return State([dup(v) for v in self.stack], {n: dup(v) for n, v in self.variables.items()},
                     set(self.bound), self.epochs)

    def replace(self, old: Value, new: Value) -> None:
        """Replace a value by another on the stack, in locals and inside containers."""
        seen: set[int] = set()

        def inside(items: list[Value]) -> None:
            for index, value in enumerate(items):
                if value is old:
                    items[index] = new
                elif isinstance(value, Container) and id(value) not in seen:
                    seen.add(id(value))
                    inside(value.items)

        inside(self.stack)
        known = list(self.variables.values())
        inside(known)
        self.variables = dict(zip(self.variables, known))

    def mentions(self, name: str) -> bool:
        """Return whether a value still to be used is the present value of a local."""
        seen: set[int] = set()

        def inside(items: Sequence[Value]) -> bool:
            for value in items:
                if isinstance(value, Local) and value.name == name:
                    return True
                if isinstance(value, Container) and id(value) not in seen:
                    seen.add(id(value))
                    if inside(value.items):
                        return True
            return False

        return inside(self.stack) or inside(list(self.variables.values()))


@dataclass(eq=False, slots=True)
class BlockPlan:
    """A block plan: the SSA values that are left of a block, in order, and what its terminator takes.

    Attributes:
        end_epochs: what had happened before the terminator: see :class:`State`.
        values: the SSA values that are computed in the block.
        entry_stack: values that lie on the stack at the block's entry.
        end_operands: what lies on the stack behind the block, and what the terminator takes.
        verbatim: whether the block stays as it is.
    """

    end_epochs: tuple[int, int] = (0, 0)
    values: list[SsaValue] = field(default_factory=list)
    entry_stack: list[SsaValue] = field(default_factory=list)
    end_operands: list[Value] = field(default_factory=list)
    verbatim: bool = False
