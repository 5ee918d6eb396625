"""3.9 and 3.10: the block stack and the six-value handler protocol, as the exception regions of 3.11.

``SETUP_FINALLY`` and its kin push a block; an exception goes to the innermost. On the way the interpreter
pushes the exception that was being handled (three values) and the new one (three values), and a block that
says "a handler is running". 3.11 pushes one value each and leaves the rest to a clean-up handler that the
compiler writes. Here 3.10 becomes that: of each triple one slot is visible, and each running handler gets
the clean-up handler (``COPY 3; POP_EXCEPT; RERAISE 1``) that 3.11 would have.

A block is ``(kind, target instruction, stack level, lasti)`` with kind ``TRY`` or ``HANDLER``.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ..code import Code
from ..operations import Op
from . import common
from .common import Rules, always, applies, one, rule, suspends

if TYPE_CHECKING:
    from ..canonical import Translator
    from ..code import Instruction

TRY, HANDLER = 0, 1


def handler_of(t: Translator, blocks: tuple[Any, ...]) -> int:
    """Return the number of the canonical handler of the innermost block; -1 without a block."""
    if not blocks:
        return -1
    kind, target, level, lasti = blocks[-1]
    kept = tuple(t.stack[:level])
    if kind == HANDLER:  # level counts the three values of the previous exception
        outer = handler_of(t, blocks[:-1])
        number = t.handler_id(target, sum(kept), True, outer=1 + outer)
        t.cleanups[number] = outer
        return number
    first = t.instructions[target]
    if first.opname == "END_ASYNC_FOR":
        t.enter(target, (*kept, 0, 0, 0, 0, 1, 0), blocks[:-1])
    elif _unbinds_name(t, target):
        # ``except E as name``: what unbinds the name on an exit pushes no exception info in 3.11.
        lasti = True
        t.enter(target, (*kept, 1, 0, 0, 0, 1, 0), blocks[:-1])
    else:
        t.handler_starts.add(target)
        running = (*blocks[:-1], (HANDLER, target, level + 3, lasti))
        t.enter(target, (*kept, int(lasti), 0, 1, 0, 1, 0), running)
    return t.handler_id(target, sum(kept), lasti)


def _unbinds_name(t: Translator, target: int) -> bool:
    four = t.instructions[target : target + 4]
    return (
        len(four) == 4
        and four[0].opname == "LOAD_CONST" and t.consts[four[0].arg] is None
        and four[1].opname.startswith("STORE_")
        and four[2].opname == four[1].opname.replace("STORE_", "DELETE_") and four[2].arg == four[1].arg
        and four[3].opname == "RERAISE" and (four[3].arg == 1 or t.code.version < (3, 10))
    )


def add_cleanups(t: Translator, ops: list[Op]) -> None:
    """Append the clean-up handlers that 3.11 would have."""
    for number, outer in t.cleanups.items():
        last = ops[-1]
        t.handlers[number].target = len(ops)
        for kind, arg in (("COPY", 3), ("POP_EXCEPT", None), ("RERAISE", 1)):
            ops.append(Op(kind, arg, last.offset, None, -1, outer))


def _set_blocks(t: Translator, blocks: tuple[Any, ...]) -> None:
    t.blocks = blocks
    t.handler = handler_of(t, blocks)


# --- what 3.10 and before spell differently ----------------------------------------------------------
def rot(places: int) -> common.Function:
    """Return the rule that puts the top below ``places - 1`` others (0: as many as the argument says)."""

    def rule(t: Translator, i: Instruction) -> None:
        count = places or i.arg
        visible = t.visible(count)
        value = t.stack.pop()
        t.stack.insert(len(t.stack) - count + 1, value)
        if value:
            common.rotate(t, visible)

    return rule


def branch(when: bool) -> common.Function:
    """Return the rule of a jump where the value on top, which it pops, is ``when``."""

    def rule(t: Translator, i: Instruction) -> None:
        ops = t.ops
        flipped = when
        if t.recent(2) == ["CONST", "IS"] and ops[-2].arg is None and ops[-1].arg:
            ops[-1].arg = False  # ``is not None``: 3.11 tests ``is None`` and jumps the other way
            flipped = not when
        t.apply("BRANCH", flipped, i.target)

    return rule


def yield_from_after(t: Translator, kind: str) -> None:
    """Make one operation of the current instruction and the ``LOAD_CONST None; YIELD_FROM`` after it."""
    first = t.instructions[t.next] if t.next < len(t.instructions) else None
    if first is None or first.opname != "LOAD_CONST" or t.consts[first.arg] is not None:
        raise t.unsupported("is not followed by LOAD_CONST None")
    if t.peek(2) != "YIELD_FROM":
        raise t.unsupported("is not followed by YIELD_FROM")
    t.emit(kind)
    t.next += 2


_OPERATORS = {
    "ADD": "+", "SUBTRACT": "-", "MULTIPLY": "*", "TRUE_DIVIDE": "/", "FLOOR_DIVIDE": "//", "MODULO": "%",
    "MATRIX_MULTIPLY": "@", "POWER": "**", "LSHIFT": "<<", "RSHIFT": ">>", "AND": "&", "OR": "|", "XOR": "^",
}
#: The rules of 3.10 and before, on top of :data:`.common.EVERYWHERE`.
OLD: Rules = {
    **{f"{kind}_{name}": one(kind, arg=sign) for name, sign in _OPERATORS.items() for kind in ("BINARY", "INPLACE")},
    "LOAD_CONST": common.load_const,
    "GEN_START": common.pop_top,
    "JUMP_ABSOLUTE": always(("JUMP", None)),
    "POP_JUMP_IF_TRUE": branch(True),
    "POP_JUMP_IF_FALSE": branch(False),
    **{f"ROT_{name}": rot(places) for name, places in (("TWO", 2), ("THREE", 3), ("FOUR", 4), ("N", 0))},
    "CALL_FUNCTION": applies("CALL", lambda n: (n, ())),
    "CALL_FUNCTION_EX": applies("CALL_EX", lambda n: bool(n & 1)),
    "GET_AWAITABLE": suspends("AWAIT", yield_from_after),
    "GET_YIELD_FROM_ITER": suspends("YIELD_FROM", yield_from_after),
    "GET_ANEXT": suspends("GET_ANEXT_AWAIT", yield_from_after),
    # displays with stars, which 3.8 and before build in one go
    **{f"BUILD_{name}": applies("BUILD_UNPACK", partial(lambda kind, count: (kind, count), kind)) for name, kind in (
        ("LIST_UNPACK", "list"), ("TUPLE_UNPACK", "tuple"), ("TUPLE_UNPACK_WITH_CALL", "arguments"),
        ("SET_UNPACK", "set"), ("MAP_UNPACK", "dict"), ("MAP_UNPACK_WITH_CALL", "keywords"))},
}


@rule(OLD, "SETUP_FINALLY")
def _(t: Translator, i: Instruction) -> None:
    _set_blocks(t, (*t.blocks, (TRY, i.target, len(t.stack), False)))


@rule(OLD, "SETUP_WITH")
def _(t: Translator, i: Instruction) -> None:
    t.pop(1)
    t.emit("BEFORE_WITH")
    t.stack.append(1)  # the exit; what was entered is above the level of the block
    _set_blocks(t, (*t.blocks, (TRY, i.target, len(t.stack), True)))
    t.stack.append(1)


@rule(OLD, "SETUP_ASYNC_WITH")
def _(t: Translator, i: Instruction) -> None:
    _set_blocks(t, (*t.blocks, (TRY, i.target, len(t.stack) - 1, True)))


@rule(OLD, "POP_BLOCK")
def _(t: Translator, i: Instruction) -> None:
    if not t.blocks:
        raise t.unsupported("there is no block")
    _set_blocks(t, t.blocks[:-1])


@rule(OLD, "POP_EXCEPT")
def _(t: Translator, i: Instruction) -> None:
    if not t.blocks or t.blocks[-1][0] != HANDLER or len(t.stack) < 3:
        raise t.unsupported("no handler is running")
    lasti = t.stack[-3]
    t.emit("POP_EXCEPT")
    del t.stack[-3:]
    _set_blocks(t, t.blocks[:-1])
    if lasti:
        t.emit("POP")


@rule(OLD, "RERAISE")
def _(t: Translator, i: Instruction) -> None:
    stack = t.stack
    if stack[-3:] != [0, 1, 0]:
        raise t.unsupported("there is no exception on top of the stack")
    previous = stack[-6:-3]
    has_lasti = len(previous) == 3 and previous[0] == 1
    # Up to 3.9 there is no argument; where 3.10 has one is where there is a lasti.
    keeps = i.arg if t.code.version >= (3, 10) else has_lasti
    if not keeps:
        place = 0
    elif has_lasti:
        place = 1 + previous[2]
    else:
        raise t.unsupported("keeps an instruction offset that there is none of")
    t.emit("RERAISE", place)
    t.next = -1


@rule(OLD, "JUMP_IF_NOT_EXC_MATCH")
def _(t: Translator, i: Instruction) -> None:
    t.pop(1)
    if t.stack.pop():
        raise t.unsupported("what is matched is not the type of the exception")
    t.emit("CHECK_EXC_MATCH")
    t.emit("BRANCH", False, i.target)
    t.enter(i.target, tuple(t.stack), t.blocks)


@rule(OLD, "WITH_EXCEPT_START")
def _(t: Translator, i: Instruction) -> None:
    if t.stack[-6:] != [1, 0, 1, 0, 1, 0]:
        raise t.unsupported("there is no exception on top of the stack")
    t.emit("WITH_EXCEPT_START")
    t.stack.append(1)


@rule(OLD, "END_ASYNC_FOR")
def _(t: Translator, i: Instruction) -> None:
    if t.stack[-7:] != [1, 0, 0, 0, 0, 1, 0]:
        raise t.unsupported("there is no exception on top of the stack")
    del t.stack[-7:]
    t.emit("END_ASYNC_FOR")


@rule(OLD, "BUILD_TUPLE")
def _(t: Translator, i: Instruction) -> None:
    """Build a tuple, folded to a constant where its items are (the optimiser of 3.9 leaves some code alone)."""
    count = i.arg
    if t.code.version < (3, 10) and count and t.recent(count) == ["CONST"] * count:
        t.pop(count)
        values = tuple(op.arg for op in t.ops[-count:])
        del t.ops[-count:]
        t.emit("CONST", values)
        t.stack.append(common.Known(values))
    else:
        t.apply("BUILD_TUPLE", count)


@rule(OLD, "DUP_TOP")
def _(t: Translator, i: Instruction) -> None:
    ahead = [t.peek(1), t.peek(2)] if t.peek(1) == "DUP_TOP" else [t.peek(1)]
    if t.recent(1) == ["CONST"] and t.ops[-1].arg is None and "CALL_FUNCTION" in ahead:
        # ``None, None, None`` for ``__exit__``: 3.11 loads it three times
        t.apply("CONST", None)
    else:
        common.push_copy(t, 1)


@rule(OLD, "DUP_TOP_TWO")
def _(t: Translator, i: Instruction) -> None:
    common.push_copy(t, 2)
    common.push_copy(t, 2)


@rule(OLD, "CALL_FUNCTION_KW")
def _(t: Translator, i: Instruction) -> None:
    names = common.keyword_names(t, t.take_const("the tuple of keyword names"))
    if len(names) > i.arg:
        raise t.unsupported("more keyword names than arguments")
    t.apply("CALL", (i.arg - len(names), names))


@rule(OLD, "CALL_METHOD")
def _(t: Translator, i: Instruction) -> None:
    t.pop(i.arg + 1)
    if t.stack.pop():
        raise t.unsupported("no method was loaded")
    t.emit("CALL", (i.arg, ()))
    t.stack.append(1)


@rule(OLD, "MAKE_FUNCTION")
def _(t: Translator, i: Instruction) -> None:
    qualname = t.take_const("the qualified name")
    if not isinstance(qualname, str):
        raise t.unsupported("the qualified name is not a string")
    if t.recent(1) != ["CONST"] or not isinstance(t.ops[-1].arg, Code):
        raise t.unsupported("the code is not a constant")
    code = t.ops[-1].arg
    if code.qualname != qualname:
        # one object however often it occurs: a ``finally`` is compiled more than once
        qualified = code.__dict__.setdefault("_qualified", {})
        t.ops[-1].arg = qualified.get(qualname) or qualified.setdefault(qualname, replace(code, qualname=qualname))
    t.apply("MAKE_FUNCTION", i.arg & 15)


@rule(OLD, "MATCH_KEYS", "MATCH_CLASS")
def _(t: Translator, i: Instruction) -> None:
    """Match the subject with keys or a class, and branch on whether it matched; later versions test for ``None``."""
    t.apply(i.opname, i.arg if i.opname == "MATCH_CLASS" else None)
    test = t.instructions[t.next]
    if test.opname != "POP_JUMP_IF_FALSE":
        raise t.unsupported("is not followed by POP_JUMP_IF_FALSE")
    for kind, argument in (("COPY", 1), ("CONST", None), ("IS", False)):
        t.apply(kind, argument)
    t.apply("BRANCH", True, test.target)
    t.next += 1
