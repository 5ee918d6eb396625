"""The unobservable steps of a program, and its events. Changes with what another part of the program can observe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ....bytecode import operations as o
from ....bytecode.operations import Op
from ....cfg.stack import effect
from ...dynamo.global_names import OWN_GLOBALS, PROFILER_FLAGS, PROFILER_MARKERS
from . import objects
from .reads import item_key, read
from .sides import Event, Side
from .values import (
    UNBOUND,
    Built,
    Constant,
    Symbol,
    both_none,
    cell_of,
    constants_of,
    index_of,
    is_hashable,
    is_key,
    is_new,
    own_list,
    seen,
    sequence,
)

if TYPE_CHECKING:
    from .prover import Prover

PROFILER_NOTE = "if torch's profiler is off"
ITEMS_NOTE = "items of a graph's result are read where they are used"

#: Operations on the container ``arg`` below the top that change it.
IN_PLACE = {o.LIST_APPEND: 1, o.SET_ADD: 1, o.MAP_ADD: 2, o.LIST_EXTEND: 1, o.SET_UPDATE: 1,
            o.DICT_UPDATE: 1, o.DICT_MERGE: 1}


def step(prover: Prover, side: Side, op: Op) -> Event | None:
    """Performs one silent operation, or returns the event it is."""
    stack, kind = side.stack, op.kind
    if kind is o.CONST:
        stack.append(Constant(op.arg))
    elif kind is o.LOAD_FAST:
        if op.arg not in side.locals or op.arg in side.maybe:
            return Event(f"LOAD_FAST {op.arg}", None, [side.content(op.arg)], op)
        stack.append(seen(side.locals[op.arg]))
    elif kind is o.STORE_FAST:
        side.bind(op.arg, stack.pop())
    elif kind is o.DELETE_FAST:
        if op.arg not in side.locals or op.arg in side.maybe:
            return Event(kind, op.arg, [side.content(op.arg)], op)
        del side.locals[op.arg]
    elif kind is o.LOAD_FAST_AND_CLEAR:
        stack.append(side.content(op.arg))
        side.bind(op.arg, UNBOUND)
    elif kind is o.POP:
        stack.pop()
    elif kind is o.COPY:
        stack.append(stack[-op.arg])
    elif kind is o.SWAP:
        stack[-1], stack[-op.arg] = stack[-op.arg], stack[-1]
    elif kind is o.ROT:
        stack[-op.arg :] = stack[-1:] + stack[-op.arg : -1]
    elif kind is o.JUMP:
        side.at = op.target
        return None
    elif kind in (o.BUILD_LIST, o.BUILD_TUPLE, o.BUILD_SLICE):
        items = stack[len(stack) - op.arg :]
        del stack[len(stack) - op.arg :]
        name = {o.BUILD_LIST: "list", o.BUILD_TUPLE: "tuple", o.BUILD_SLICE: "slice"}[kind]
        stack.append(Built(name, items))
    elif kind is o.BUILD_MAP and all(map(is_key, stack[len(stack) - 2 * op.arg :: 2])):
        # Hashing strings and numbers is not seen by anyone.
        items = stack[len(stack) - 2 * op.arg :]
        del stack[len(stack) - 2 * op.arg :]
        stack.append(Built("dict", items))
    elif kind is o.BUILD_CONST_KEY_MAP:
        # The same dictionary as BUILD_MAP; which of them is used is the compiler's choice.
        values = stack[len(stack) - len(op.arg) :]
        pairs = [part for pair in zip(map(Constant, op.arg), values) for part in pair]
        if not all(map(is_key, pairs[::2])):
            return Event(o.BUILD_MAP, len(op.arg), pairs, op)
        del stack[len(stack) - len(op.arg) :]
        stack.append(Built("dict", pairs))
    elif kind is o.DICT_MERGE and op.arg == 1 and is_new(stack[-2], "dict") \
            and side.program.ops[side.at + 1].kind is o.CALL_EX:
        # ``f(**d)`` hands a copy of ``d`` to the call that follows at once; Dynamo's code hands ``d``,
        # and the call copies it.
        stack[-2:] = [Built("copy", [stack[-1]])]
    elif kind is o.BUILD_SET and all(map(is_hashable, stack[len(stack) - op.arg :])):
        items = stack[len(stack) - op.arg :]
        del stack[len(stack) - op.arg :]
        stack.append(Built("set", items))
    elif kind is o.SET_UPDATE and op.arg == 1 and is_new(stack[-2], "set") \
            and constants_of(stack[-1]) is not None:
        # How the compiler writes ``{1, 2, 3}``, and ``{*()}``, which is the only word for an empty set.
        items = constants_of(stack.pop()) or []
        stack[-1].items = items
    elif kind is o.IS and op.arg and side.program.ops[side.at + 1].kind is o.BRANCH \
            and not both_none(stack[-1], stack[-2]):
        return Event(kind, False, stack[-2:], op, negated=True)
    elif kind is o.LIST_TO_TUPLE and own_list(stack[-1]) is not None:
        stack.append(Built("tuple", list(own_list(stack.pop()).items)))  # type: ignore[union-attr]
    elif kind is o.LIST_APPEND and own_list(stack[-1 - op.arg]) is not None:
        own_list(stack[-1 - op.arg]).items.append(stack.pop())  # type: ignore[union-attr]
    elif kind is o.LIST_EXTEND and own_list(stack[-1 - op.arg]) is not None \
            and sequence(stack[-1]) is not None:
        more = sequence(stack.pop()) or []
        own_list(stack[-op.arg]).items.extend(more)  # type: ignore[union-attr]
    elif kind is o.GETITEM and getitem(prover, side):
        pass
    elif kind is o.SETITEM and setitem(side):
        pass
    elif kind is o.SETITEM and objects.entry(stack[-2], stack[-1], stack[-3], op) is not None:
        return objects.entry(stack[-2], stack[-1], stack[-3], op)
    elif kind is o.DELITEM and delitem(side):
        pass
    elif kind is o.UNPACK and unpack(side, op):
        pass
    elif kind is o.LOAD_GLOBAL and (op.arg in PROFILER_MARKERS or op.arg in PROFILER_FLAGS):
        stack.append(Symbol(("module", op.arg)))
        prover.paths[stack[-1].key] = (("global", op.arg),)
    elif kind is o.LOAD_GLOBAL and op.arg.startswith(OWN_GLOBALS):
        name = prover.rename.get(op.arg, op.arg) if side.program is prover.p else op.arg
        stack.append(Symbol(("own", name)))
        prover.paths[stack[-1].key] = (("global", prover.real_name(side, op.arg)),)
    elif kind is o.LOAD_GLOBAL and variable(prover, side, "global", prover.real_name(side, op.arg)):
        pass
    elif kind is o.LOAD_DEREF and variable(prover, side, "local", op.arg):
        pass
    elif kind is o.LOAD_CLOSURE:
        stack.append(Symbol(("cell", op.arg)))
    elif kind is o.LOAD_ATTR and op.arg == "cell_contents" and cell_of(stack[-1]) is not None:
        return Event(o.LOAD_DEREF, cell_of(stack[-1]), [], op)
    elif kind is o.STORE_ATTR and op.arg == "cell_contents" and cell_of(stack[-1]) is not None:
        return Event(o.STORE_DEREF, cell_of(stack[-1]), [stack[-2]], op)
    elif kind is o.LOAD_ATTR and (marker_attribute(prover, side, op) or getattribute(prover, side, op)):
        pass
    elif kind is o.STORE_ATTR and (stored := objects.store(prover, stack[-1], op.arg, stack[-2], op)) is not None:
        if isinstance(stored, Event):
            return stored
        del stack[-2:]
    elif kind is o.GET_ITER and objects.iterated(stack[-1]) is not None:
        stack.append(objects.iterated(stack.pop()))
    elif kind is o.FOR_ITER and objects.is_known_iterator(stack[-1]):
        if not stack[-1].items:
            stack.pop()
            side.at = op.target
            return None
        stack.append(stack[-1].items.pop(0))
    elif kind is o.IS and both_none(stack[-1], stack[-2]):
        del stack[-2:]
        stack.append(Constant(not op.arg))
    elif kind is o.CALL:
        return call(prover, side, op, op.arg[0], op.arg[1])
    elif kind is o.CALL_EX:
        return call_ex(side, op)
    elif kind is o.BRANCH:
        return branch(side, op)
    elif kind is o.FOR_ITER:
        return Event(kind, None, [stack[-1]], op)
    elif kind is o.RETURN:
        return Event(kind, None, [stack[-1]], op)
    elif kind is o.RAISE:
        return Event(kind, op.arg, stack[len(stack) - op.arg :], op)
    elif kind is o.RERAISE:
        return Event(kind, bool(op.arg), [stack[-1]], op)
    elif kind in IN_PLACE:
        taken = stack[len(stack) - IN_PLACE[kind] :]
        return Event(kind, None, [stack[-IN_PLACE[kind] - op.arg], *taken], op)
    elif kind is o.WITH_EXCEPT_START:
        lasti = isinstance(seen(stack[-3]), Symbol) and seen(stack[-3]).key[0] == "lasti"
        return Event(kind, None, [stack[-4 if lasti else -3], stack[-1]], op)
    else:
        argument = op.arg
        if kind in (o.LOAD_GLOBAL, o.STORE_GLOBAL, o.DELETE_GLOBAL) and side.program is prover.p:
            argument = prover.rename.get(op.arg, op.arg)
        return plain_event(side, op, kind, argument, effect(op)[0])
    side.at += 1
    return None


def plain_event(side: Side, op: Op, kind: str, argument: Any, count: int) -> Event:
    return Event(kind, argument, side.stack[len(side.stack) - count :] if count else [], op)


def getitem(prover: Prover, side: Side) -> bool:
    owner, index = seen(side.stack[-2]), index_of(side.stack[-1])
    known: Any = objects.ancestor(prover, owner, index)
    if known is None and item_key(side.stack[-1]) is not ...:
        known = read(prover, side, owner, ("item", item_key(side.stack[-1])))
    if known is not None:
        side.stack[-2:] = [known]
        return True
    if index is None:
        return False
    if isinstance(owner, Symbol) and owner.key in prover.graphs and type(index) is int and index >= 0:
        prover.notes.add(ITEMS_NOTE)
        found: Any = Symbol(("item", owner.key, index))
        places = prover.items[side.program is prover.p]
        places.setdefault(found.key, side.program.ops[side.at].offset)
    elif isinstance(owner, Built) and owner.kind in ("list", "tuple"):
        try:
            found = owner.items[index]
        except (IndexError, ValueError):
            return False
        if isinstance(index, slice):
            found = Built(owner.kind, found)
    else:
        return False
    del side.stack[-2:]
    side.stack.append(found)
    return True


def setitem(side: Side) -> bool:
    owner, index = own_list(side.stack[-2]), index_of(side.stack[-1])
    if owner is None or index is None:
        return False
    value = side.stack[-3]
    if isinstance(index, slice):
        items = sequence(value)
        if items is None or index.step not in (None, 1):
            return False
        owner.items[index] = items
    elif -len(owner.items) <= index < len(owner.items):
        owner.items[index] = value
    else:
        return False
    del side.stack[-3:]
    return True


def delitem(side: Side) -> bool:
    owner, index = own_list(side.stack[-2]), index_of(side.stack[-1])
    if owner is None or index is None:
        return False
    if not isinstance(index, slice) and not -len(owner.items) <= index < len(owner.items):
        return False
    del owner.items[index]
    del side.stack[-2:]
    return True


def unpack(side: Side, op: Op) -> bool:
    items = sequence(side.stack[-1])
    if items is None or len(items) != op.arg:
        return False
    side.stack.pop()
    side.stack.extend(reversed(items))
    return True


def variable(prover: Prover, side: Side, kind: str, name: str) -> bool:
    """Reads a global or a cell that is known to have a value."""
    found = read(prover, side, None, (kind, name))
    if found is not None:
        side.stack.append(found)
    return found is not None


def getattribute(prover: Prover, side: Side, op: Op) -> bool:
    found: Any = objects.attribute(prover, side.stack[-1], op.arg)
    if found is None:
        found = read(prover, side, side.stack[-1], ("attr", op.arg))
    if found is None:
        return False
    side.stack[-1] = found
    return True


def marker_attribute(prover: Prover, side: Side, op: Op) -> bool:
    owner = seen(side.stack[-1])
    if not isinstance(owner, Symbol) or owner.key[0] != "module":
        return False
    if op.arg in PROFILER_MARKERS.get(owner.key[1], ()):
        side.stack[-1] = Symbol(("marker", op.arg))
    elif op.arg in PROFILER_FLAGS.get(owner.key[1], ()):
        side.stack[-1] = Symbol(("profiler flag",))
    else:
        return False
    prover.notes.add(PROFILER_NOTE)
    return True


def call(prover: Prover, side: Side, op: Op, positional: int, keywords: tuple[str, ...]) -> Event | None:
    count = 1 + positional + len(keywords)
    operands = side.stack[len(side.stack) - count :]
    function = seen(operands[0])
    if isinstance(function, Symbol) and function.key[0] == "marker":
        del side.stack[len(side.stack) - count :]
        side.stack.append(Symbol(("marked",)))
        side.at += 1
        return None
    if not keywords:
        found = objects.call(prover, side, function, operands[1:], op)
        if isinstance(found, Event):
            return found
        if found is not None:
            del side.stack[len(side.stack) - count :]
            side.stack.append(found)
            side.at += 1
            return None
    return Event(o.CALL, (positional, keywords), operands, op)


def call_ex(side: Side, op: Op) -> Event:
    count = 3 if op.arg else 2
    operands = side.stack[len(side.stack) - count :]
    items = sequence(operands[1])
    names: list[str] | None = []
    values: list[Any] = []
    if op.arg:
        mapping = seen(operands[2])
        if isinstance(mapping, Built) and mapping.kind == "copy":
            operands = [*operands[:2], mapping.items[0]]
            mapping = seen(mapping.items[0])
        names = None
        if isinstance(mapping, Built) and mapping.kind == "dict":
            names, values = [seen(key).value for key in mapping.items[::2]], mapping.items[1::2]
    if items is None or names is None or len(set(names)) != len(names):
        return Event(o.CALL_EX, op.arg, operands, op)
    return Event(o.CALL, (len(items), tuple(names)), [operands[0], *items, *values], op)


def branch(side: Side, op: Op) -> Event | None:
    tested = seen(side.stack[-1])
    answer: bool | None = None
    if isinstance(tested, Constant):
        answer = bool(tested.value)
    elif isinstance(tested, Symbol) and tested.key[0] == "profiler flag":
        answer = False
    elif isinstance(tested, Symbol) and tested.key[0] == "not":
        return Event(o.BRANCH, None, [Symbol(tested.key[1])], op, negated=True)
    if answer is None:
        return Event(o.BRANCH, None, [tested], op)
    side.stack.pop()
    side.at = op.target if answer == op.arg else side.at + 1
    return None
