"""Runs the operations of one block symbolically."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeGuard

from ....bytecode import operations as o
from ....bytecode.operations import Op, effect
from ....cfg import graph as g
from ...errors import SIMPLIFY, CannotDecompile
from ..facts import ALWAYS
from ..global_names import GRAPH_PREFIX, GRAPH_RESULT, OWN_GLOBALS, PROFILER_FLAGS, PROFILER_MARKERS, UPDATE
from .objects import Evaluator, is_key
from .values import Const, Container, Local, SsaValue, Value, called_global, global_name

_DISPLAYS = {o.BUILD_LIST: "list", o.BUILD_TUPLE: "tuple", o.BUILD_SLICE: "slice"}


class PartialEvaluator(Evaluator):
    """A partial evaluator of one block: runs its operations, each by its method ``_op_KIND``."""

    def step(self, op: Op) -> None:
        """Run one operation: by its rule ``_op_KIND``, or as any operation."""
        self.op = op
        method = getattr(self, "_op_" + op.kind, None)
        if method is not None:
            method(op)
        else:
            self.generic(op)

    def generic(self, op: Op) -> None:
        """Run an operation of which nothing is known but what it pops and pushes."""
        pops, pushes = effect(op)
        result = self.define(op, self.pop(pops))
        if pushes == 1 and op.kind not in (o.UNPACK, o.UNPACK_EX):
            self.stack.append(result)
        elif pushes:
            result.results = [SsaValue(None, (), self.block.id) for _ in range(pushes)]
            self.stack.extend(result.results)

    def end(self) -> None:
        """Run the terminator: take what it takes, and leave on the stack what the successors find there."""
        block, owner = self.block, self.owner
        self.op = block.end_op or (block.ops[-1] if block.ops else Op(o.JUMP))
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
    def _op_CONST(self, op: Op) -> None:
        self.stack.append(Const(op.arg))

    def _op_LOAD_FAST(self, op: Op) -> None:
        """Push the value that a local is known to have, or the local itself if it is bound."""
        name = op.arg
        known = self.state.variables.get(name)
        if known is not None:
            self.stack.append(known)
        elif name in self.state.bound:
            self.stack.append(Local(name))
        else:
            self.generic(op)

    def _op_LOAD_DEREF(self, op: Op) -> None:
        if not self.reads(op, (), (("local", op.arg),)):
            self.generic(op)

    def _op_STORE_ATTR(self, op: Op) -> None:
        value, owner = self.stack[-2:]
        if self.store_plainly(owner, op.arg, value, op):
            self.pop(2)
        else:
            self.generic(op)

    def _op_STORE_FAST(self, op: Op) -> None:
        """Note the value of a local; the store is left only where code reads it that is not followed."""
        name = op.arg
        (value,) = self.pop(1)
        if name in self.owner.kept and isinstance(value, Local) and value.name == name:
            self.owner.own_values[name] += 1
            return  # ``self = self``
        self.forget(name)
        if isinstance(value, SsaValue):
            value.hints.append(name)
        if name in self.owner.kept:
            self.define(op, [value])
            self.state.bound.add(name)
        else:
            self.state.variables[name] = value

    def forget(self, name: str) -> None:
        """Forget the value of a local, which gets another one; refuse code in which the earlier one is read later."""
        self.state.variables.pop(name, None)
        if any(isinstance(value, Local) and value.name == name for value in self.state.values()):
            raise CannotDecompile(SIMPLIFY, "a local is stored while its value waits")

    def _op_DELETE_FAST(self, op: Op) -> None:
        """Delete a local; in texts for readers the variables of graph results are not deleted."""
        name = op.arg
        if name in self.state.variables:
            del self.state.variables[name]
            return
        self.forget(name)
        self.state.bound.discard(name)
        if not (self.owner.readable and name.startswith(GRAPH_RESULT)):
            self.define(op, [])

    # --- the stack ---
    def _op_POP(self, op: Op) -> None:
        """Drop the top; only a value that is on the real stack leaves an operation."""
        (value,) = self.pop(1)
        if isinstance(value, SsaValue) and value.op is None:
            self.define(op, [value])

    def _op_COPY(self, op: Op) -> None:
        self.stack.append(self.stack[-op.arg])

    def _op_SWAP(self, op: Op) -> None:
        self.stack[-1], self.stack[-op.arg] = self.stack[-op.arg], self.stack[-1]

    def _op_ROT(self, op: Op) -> None:
        self.stack[-op.arg :] = self.stack[-1:] + self.stack[-op.arg : -1]

    # --- containers ---
    def _op_BUILD_LIST(self, op: Op) -> None:
        self.stack.append(Container(_DISPLAYS[op.kind], self.pop(op.arg)))

    _op_BUILD_TUPLE = _op_BUILD_SLICE = _op_BUILD_LIST

    def _op_BUILD_MAP(self, op: Op) -> None:
        """Push a virtual dictionary if it has keys whose hashing is unobservable, or leave the operation."""
        if not op.arg:
            self.generic(op)  # (it may be the beginning of ``{**d}``)
            result = self.stack[-1]
            assert isinstance(result, SsaValue)
            result.optional = True
        elif all(map(is_key, self.stack[-2 * op.arg :: 2])):
            self.stack.append(Container("dict", self.pop(2 * op.arg)))
        else:
            self.generic(op)
            self.happened()  # (to the proof, keys that have hashes of their own may change anything)

    def _op_BUILD_CONST_KEY_MAP(self, op: Op) -> None:
        pairs = zip(map(Const, op.arg), self.pop(len(op.arg)))
        self.stack += [part for pair in pairs for part in pair]
        self._op_BUILD_MAP(self.made(o.BUILD_MAP, len(op.arg)))

    def _op_LIST_EXTEND(self, op: Op) -> None:
        value, owner = self.stack[-1], next(iter(self.stack[-1 - op.arg :]))
        items = [value] if op.kind is o.LIST_APPEND else _items(value)
        if _is_list(owner) and items is not None:
            self.pop(1)
            owner.items.extend(items)
        else:
            self.in_place(op)

    _op_LIST_APPEND = _op_LIST_EXTEND

    def in_place(self, op: Op) -> None:
        """Leave an operation on a container that is being built, as part of the expression that builds it."""
        if op.arg != 1:
            raise CannotDecompile(SIMPLIFY, f"{op!r} reaches below the top")
        self.stack.append(self.define(op, self.pop(effect(op)[0] + 1)))

    _op_SET_ADD = _op_MAP_ADD = _op_SET_UPDATE = _op_DICT_UPDATE = _op_DICT_MERGE = in_place

    def _op_GETITEM(self, op: Op) -> None:
        """Index a container here, and push the element.

        An item of a graph's result, and a read that the facts know, become unobservable values.
        """
        owner, index = self.stack[-2:]
        items, key, path = _items(owner), _key(index), self.path_of(owner)
        if items is not None and key is not None and isinstance(owner, Container):
            if isinstance(key, slice) and key.step != 0:
                self.stack[-2:] = [Container(owner.kind, items[key])]
                return
            if isinstance(key, int) and -len(items) <= key < len(items):
                self.stack[-2:] = [items[key]]
                return
        elif type(key) is int and called_global(owner).startswith(GRAPH_PREFIX):
            result = self.unobservable(op, self.pop(2))
            result.pure = result.graph_item = True
            self.stack.append(result)
            return
        elif isinstance(index, Const):
            if isinstance(owner, SsaValue) and owner.role[:1] == ("__mro__",) and type(key) is int and (
                    ancestor := self.owner.facts.ancestor(owner.role[1], key)):
                result = self.unobservable(op, self.pop(2), ALWAYS)
                result.role = ("ancestor", ancestor)
                self.stack.append(result)
                return
            if path is not None and type(index.value) in (str, int, bool):
                path = (*path, ("item", index.value))
                if self.entry(owner, path) or self.member(owner, path) or self.reads(
                        op, (owner, index), path, instead=2):
                    return
        self.generic(op)

    def _op_SETITEM(self, op: Op) -> None:
        value, owner, index = self.stack[-3:]
        key, new = _key(index), _items(value)
        if _is_list(owner) and isinstance(key, slice) and new is not None and key.step in (None, 1):
            owner.items[key] = new
            self.pop(3)
        else:
            self.generic(op)

    def _op_DELITEM(self, op: Op) -> None:
        owner, index = self.stack[-2:]
        key = _key(index)
        if _is_list(owner) and key is not None and (
                isinstance(key, slice) or -len(owner.items) <= key < len(owner.items)):
            del owner.items[key]
            self.pop(2)
        else:
            self.generic(op)

    def _op_LOAD_GLOBAL(self, op: Op) -> None:
        """Push a global; one of Dynamo's own may be read later, or never."""
        path = (("global", op.arg),)
        if op.arg.startswith(OWN_GLOBALS):
            result = self.unobservable(op, (), ALWAYS if self.owner.facts.reading(path) else "", path)
            result.pure = True
            self.stack.append(result)
        elif not self.reads(op, (), path):
            self.generic(op)

    def _op_LOAD_ATTR(self, op: Op) -> None:
        """Push an attribute.

        It is an unobservable read where the facts know it, and optional if it is a flag of the profiler.
        """
        if self.read_attribute(op):
            return
        path = self.path_of(self.stack[-1])
        if path is not None and self.reads(op, self.stack[-1:], (*path, ("attr", op.arg)), instead=1):
            return
        self.generic(op)
        result = self.stack[-1]
        assert isinstance(result, SsaValue)
        result.optional = op.arg == UPDATE or _is_in_table(result, PROFILER_FLAGS)

    # --- calls ---
    def _op_CALL_EX(self, op: Op) -> None:
        """Call with an argument list whose elements are known, and no keywords, as a plain call."""
        function, arguments, *keywords = self.stack[-3 if op.arg else -2 :]
        items = _items(arguments)
        if items is None or any(
                each.items if isinstance(each, Container) else not isinstance(each, SsaValue) or each.op is None
                or each.op.kind is not o.BUILD_MAP or each.op.arg for each in keywords):
            self.generic(op)
            return
        self.pop(2 + len(keywords))
        self.stack += [function, *items]
        self._op_CALL(self.made(o.CALL, (len(items), ())))

    def _op_CALL(self, op: Op) -> None:
        """Call a function.

        One that :mod:`.objects` knows is carried out here; any other gives an SSA value, and its parameters are hints
        for names.
        """
        positional, keywords = op.arg
        operands = self.pop(1 + positional + len(keywords))
        function = operands[0]
        if not keywords and isinstance(function, SsaValue):
            known = self.call(op, function, operands[1:])
            if known is not None:
                self.stack.append(known)
                return
        marks = _is_in_table(function, PROFILER_MARKERS)
        result = self.define(op, operands, unobservable=marks)
        self.stack.append(result)
        if marks and isinstance(function, SsaValue):
            result.optional = function.optional = True
        names = self.owner.parameter_names.get(global_name(function), ())
        for name, operand in zip(names, result.operands[1 : 1 + positional]):
            if isinstance(operand, SsaValue):
                operand.hints.append(name)


def _is_in_table(value: Value, table: Mapping[str, frozenset[str]]) -> bool:
    """Return whether a value is an attribute that a table has of one of torch's modules."""
    return isinstance(value, SsaValue) and value.op is not None and value.op.kind is o.LOAD_ATTR \
        and value.op.arg in table.get(global_name(value.operands[0]), ())


def _is_list(value: Value) -> TypeGuard[Container]:
    """Return whether a value is a virtual list."""
    return isinstance(value, Container) and value.kind == "list"


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
