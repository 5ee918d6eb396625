"""Runs the operations of one block symbolically."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeGuard

from ....bytecode import operations as o
from ....bytecode.operations import Op, effect
from ....cfg import graph as g
from ...errors import SIMPLIFY, CannotDecompile
from ..facts import ALWAYS
from ..global_names import GRAPH_PREFIX, GRAPH_RESULT, OWN_GLOBALS, PROFILER_FLAGS, PROFILER_MARKERS, UPDATE
from .objects import Evaluator, is_key
from .values import Const, Container, Local, SsaValue, Value, called_global, made_by

#: What an operation pushes.
Done = Value | list[Value] | None
#: What operations push that only move values about, or build something of them.
_OF_VALUES: dict[str, Callable[[Op, list[Value]], Done]] = {
    o.CONST: lambda op, taken: Const(op.arg),
    o.COPY: lambda op, taken: [*taken, taken[0]],
    o.SWAP: lambda op, taken: [taken[-1], *taken[1:-1], taken[0]],
    o.ROT: lambda op, taken: [taken[-1], *taken[:-1]],
    o.BUILD_LIST: lambda op, taken: Container("list", taken),
    o.BUILD_TUPLE: lambda op, taken: Container("tuple", taken),
    o.BUILD_SLICE: lambda op, taken: Container("slice", taken),
}


class PartialEvaluator(Evaluator):
    """A partial evaluator of one block: runs its operations, each by its method ``_op_KIND``."""

    def step(self, op: Op) -> None:
        """Run one operation: by its method (which returns what is pushed, if not the usual), or as any operation."""
        taken = self.pop(effect(op)[0])
        method = _OF_VALUES.get(op.kind, getattr(self, "_op_" + op.kind, self.generic))
        done = method(op, taken)
        if done is None:
            done = self.generic(op, taken)
        self.stack += done if isinstance(done, list) else [done]

    def generic(self, op: Op, taken: list[Value]) -> list[Value]:
        """Run an operation of which nothing is known but what it pops and pushes."""
        pushes, result = effect(op)[1], self.define(op, taken)
        if pushes == 1 and op.kind not in (o.UNPACK, o.UNPACK_EX):
            return [result]
        result.results = [SsaValue(None, (), self.block.id) for _ in range(pushes)]
        return list(result.results)

    def end(self) -> None:
        """Run the terminator: take what it takes, and leave on the stack what the successors find there."""
        block, owner = self.block, self.owner
        followed = bool(block.successors) and owner.follows(block)
        tested = self.pop({g.BRANCH: 1, g.RETURN: 1, g.RAISE: block.arg, g.RERAISE: 1 + (block.arg or 0)}.get(
            block.end, 0))
        if block.end == g.BRANCH and (isinstance(tested[0], Const) or _is_in_table(tested[0], PROFILER_FLAGS)):
            # (Flags of the profiler are off.)
            answer = isinstance(tested[0], Const) and tested[0].value
            owner.decided[block.id] = block.successors[0 if answer else 1]
        # (What is on the stack for good is at its bottom and remains there.)
        left = [v for v in self.stack if isinstance(v, SsaValue) and v.op is None] if followed else self.stack
        self.plan.end_operands = [self.escape(v) for v in [*(left if block.successors else ()), *tested]]
        self.plan.end_epochs = self.state.epochs
        if block.end not in (g.RETURN, g.JUMP):
            self.happened()

    # --- constants, locals ---
    def _op_LOAD_FAST(self, op: Op, taken: list[Value]) -> Done:
        """Push the value that a local is known to have, or the local itself if it is bound."""
        known = self.state.variables.get(op.arg)
        return Local(op.arg) if known is None and op.arg in self.state.bound else known

    def _op_LOAD_DEREF(self, op: Op, taken: list[Value]) -> Done:
        return self.reads(op, (), (("local", op.arg),))

    def _op_STORE_ATTR(self, op: Op, taken: list[Value]) -> Done:
        value, owner = taken
        return [] if self.store_plainly(owner, op.arg, value) else None

    def _op_STORE_FAST(self, op: Op, taken: list[Value]) -> Done:
        """Note the value of a local; the store is left only where code reads it that is not followed."""
        name, value = op.arg, taken[0]
        if name in self.owner.kept and isinstance(value, Local) and value.name == name:
            self.owner.own_values[name] += 1
            return []  # ``self = self``
        self.forget(name)
        if isinstance(value, SsaValue):
            value.hints.append(name)
        if name in self.owner.kept:
            self.state.bound.add(name)
            return None
        self.state.variables[name] = value
        return []

    def forget(self, name: str) -> None:
        """Forget the value of a local, which gets another one; refuse code in which the earlier one is read later."""
        self.state.variables.pop(name, None)
        if name in self.state.locals_read():
            raise CannotDecompile(SIMPLIFY, "a local is stored while its value waits")

    def _op_DELETE_FAST(self, op: Op, taken: list[Value]) -> Done:
        """Delete a local; in texts for readers the variables of graph results are not deleted."""
        if self.state.variables.pop(op.arg, None) is not None:
            return []
        self.forget(op.arg)
        self.state.bound.discard(op.arg)
        return [] if self.owner.readable and op.arg.startswith(GRAPH_RESULT) else None

    # --- the stack ---
    def _op_POP(self, op: Op, taken: list[Value]) -> Done:
        """Drop the top; only a value that is on the real stack leaves an operation."""
        return None if isinstance(taken[0], SsaValue) and taken[0].op is None else []

    # --- containers ---
    def _op_BUILD_MAP(self, op: Op, taken: list[Value]) -> Done:
        """Push a virtual dictionary if it has keys whose hashing is unobservable, or leave the operation."""
        if op.arg and all(map(is_key, taken[::2])):
            return Container("dict", taken)
        result = self.define(op, taken)
        result.optional = not op.arg  # (it may be the beginning of ``{**d}``)
        if op.arg:
            self.happened()  # (to the proof, keys that have hashes of their own may change anything)
        return result

    def _op_BUILD_CONST_KEY_MAP(self, op: Op, taken: list[Value]) -> Done:
        pairs = [part for pair in zip(map(Const, op.arg), taken) for part in pair]
        return self._op_BUILD_MAP(Op(o.BUILD_MAP, len(taken)), pairs)

    def _op_LIST_EXTEND(self, op: Op, taken: list[Value]) -> Done:
        owner, items = self.stack[-op.arg], taken if op.kind is o.LIST_APPEND else _items(taken[0])
        if not _is_list(owner) or items is None:
            return self.in_place(op, taken)
        owner.items.extend(items)
        return []

    _op_LIST_APPEND = _op_LIST_EXTEND

    def in_place(self, op: Op, taken: list[Value]) -> Done:
        """Leave an operation on a container that is being built, as part of the expression that builds it."""
        if op.arg != 1:
            raise CannotDecompile(SIMPLIFY, f"{op!r} reaches below the top")
        return self.define(op, [*self.pop(1), *taken])

    _op_SET_ADD = _op_MAP_ADD = _op_SET_UPDATE = _op_DICT_UPDATE = _op_DICT_MERGE = in_place

    def _op_GETITEM(self, op: Op, taken: list[Value]) -> Done:
        """Push the element of a container here, an item of a graph's result, or a read that is known."""
        owner, index = taken
        items, key, path = _items(owner), _key(index), self.path_of(owner)
        if items is not None and key is not None and isinstance(owner, Container):
            if isinstance(key, slice):
                return Container(owner.kind, items[key]) if key.step != 0 else None
            return items[key] if -len(items) <= key < len(items) else None
        if type(key) is int and called_global(owner).startswith(GRAPH_PREFIX):
            result = self.unobservable(op, taken)
            result.pure = result.graph_item = True
            return result
        if isinstance(owner, SsaValue) and owner.role[:1] == ("__mro__",) and type(key) is int and (
                ancestor := self.owner.facts.ancestor(owner.role[1], key)):
            result = self.unobservable(op, taken, ALWAYS)
            result.role = ("ancestor", ancestor)
            return result
        if path is None or not isinstance(index, Const) or type(index.value) not in (str, int, bool):
            return None
        path = (*path, ("item", index.value))
        return self.entry(owner, path) or self.member(owner, path) or self.reads(op, taken, path)

    def _op_SETITEM(self, op: Op, taken: list[Value]) -> Done:
        value, owner, index = taken
        key, new = _key(index), _items(value)
        if _is_list(owner) and isinstance(key, slice) and new is not None and key.step in (None, 1):
            owner.items[key] = new
            return []
        return None

    def _op_DELITEM(self, op: Op, taken: list[Value]) -> Done:
        owner, key = taken[0], _key(taken[1])
        if _is_list(owner) and key is not None and (
                isinstance(key, slice) or -len(owner.items) <= key < len(owner.items)):
            del owner.items[key]
            return []
        return None

    def _op_IS(self, op: Op, taken: list[Value]) -> Done:
        """Decide ``None is None``, which torch 2.15 asks before each call of a graph; or leave the operation."""
        is_none = all(isinstance(each, Const) and each.value is None for each in taken)
        return Const(not op.arg) if is_none else None

    def _op_LOAD_GLOBAL(self, op: Op, taken: list[Value]) -> Done:
        """Push a global; one of Dynamo's own may be read later, or never."""
        path = (("global", op.arg),)
        if not op.arg.startswith(OWN_GLOBALS):
            return self.reads(op, (), path)
        result = self.unobservable(op, (), ALWAYS if self.owner.facts.reading(path) else "", path)
        result.pure = True
        return result

    def _op_LOAD_ATTR(self, op: Op, taken: list[Value]) -> Done:
        """Push an attribute: an unobservable read where that is known, optional if it is a flag of the profiler."""
        path = self.path_of(taken[0])
        known = self.read_attribute(op, taken[0]) or path and self.reads(op, taken, (*path, ("attr", op.arg)))
        if known:
            return known
        result = self.define(op, taken)
        result.optional = op.arg == UPDATE or _is_in_table(result, PROFILER_FLAGS)
        return result

    # --- calls ---
    def _op_CALL_EX(self, op: Op, taken: list[Value]) -> Done:
        """Call with an argument list whose elements are known, and no keywords, as a plain call."""
        function, arguments, *keywords = taken
        items = _items(arguments)
        if items is None or any(
                each.items if isinstance(each, Container) else not isinstance(each, SsaValue) or each.op is None
                or each.op.kind is not o.BUILD_MAP or each.op.arg for each in keywords):
            return None
        return self._op_CALL(Op(o.CALL, (len(items), ())), [function, *items])

    def _op_CALL(self, op: Op, taken: list[Value]) -> Done:
        """Call a function: one that :mod:`.objects` knows here; the parameters of others are hints for names."""
        positional, keywords = op.arg
        function = taken[0]
        if not keywords and isinstance(function, SsaValue) and (known := self.call(op, function, taken[1:])):
            return known
        marks = _is_in_table(function, PROFILER_MARKERS)
        result = self.define(op, taken, unobservable=marks)
        if marks and isinstance(function, SsaValue):
            result.optional = function.optional = True
        names = self.owner.parameter_names.get(made_by(function, o.LOAD_GLOBAL), ())
        for name, operand in zip(names, result.operands[1 : 1 + positional]):
            if isinstance(operand, SsaValue):
                operand.hints.append(name)
        return result


def _is_in_table(value: Value, table: Mapping[str, frozenset[str]]) -> bool:
    """Return whether a value is an attribute that a table has of one of torch's modules."""
    return isinstance(value, SsaValue) and bool(name := made_by(value, o.LOAD_ATTR)) \
        and name in table.get(made_by(value.operands[0], o.LOAD_GLOBAL), ())


def _is_list(value: Value) -> TypeGuard[Container]:
    """Return whether a value is a virtual list."""
    return isinstance(value, Container) and value.kind == "list" and value.built is None


def _items(value: Value) -> list[Value] | None:
    """Return the values that iterating over a value gives; ``None`` if they are not known."""
    if isinstance(value, Container) and value.kind in ("list", "tuple"):
        return list(value.items)
    if isinstance(value, Const) and type(value.value) is tuple:
        return [Const(item) for item in value.value]
    return None


def _key(value: Value) -> int | slice | None:
    """Return a constant index or slice; ``None`` for any other value."""
    if isinstance(value, Const):
        if type(value.value) is int or type(value.value) is slice:
            return value.value
        return None
    if isinstance(value, Container) and value.kind == "slice":
        parts = [item.value if isinstance(item, Const) else ... for item in value.items]
        if all(part is None or type(part) is int for part in parts):
            return slice(*parts)
    return None
