"""3.11 and later: calls with ``NULL``, ``SEND`` loops, exception tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..operations import Op
from . import common

if TYPE_CHECKING:
    from ..canonical import Translator
    from ..instructions import Instruction


# --- calls -----------------------------------------------------------------------------------------
def load_global(t: Translator, i: Instruction) -> None:
    """Push a global; with the low bit a NULL too, below the value up to 3.12, above it from 3.13 on."""
    t.ops.append(Op("LOAD_GLOBAL", t.names[i.arg >> 1], i.offset, i.line, -1, t.handler))
    if i.arg & 1:
        t.stack += (1, 0) if t.null_is_above else (0, 1)
    else:
        t.stack.append(1)


def push_callable(t: Translator, with_null: bool) -> None:
    """Push a callable, with the ``NULL`` beside it on the side where the version has it."""
    if not with_null:
        t.stack.append(1)
    elif t.null_is_above:
        t.stack += (1, 0)
    else:
        t.stack += (0, 1)


def load_attr(t: Translator, i: Instruction) -> None:
    """3.12 and later: the low bit makes it what ``LOAD_METHOD`` was."""
    t.pop(1)
    t.emit("LOAD_ATTR", t.names[i.arg >> 1])
    push_callable(t, bool(i.arg & 1))


def load_super_attr(t: Translator, i: Instruction) -> None:
    """Read an attribute of ``super()``; the low bits say how it was called and whether a method is wanted."""
    t.pop(3)
    t.emit("LOAD_SUPER_ATTR", (t.names[i.arg >> 2], bool(i.arg & 2)))
    push_callable(t, bool(i.arg & 1))


def kw_names(t: Translator, i: Instruction) -> None:
    """Note the names of the keywords of the next call."""
    t.keywords = t.consts[i.arg]


def call(t: Translator, i: Instruction) -> None:
    """Call with the names that ``KW_NAMES`` gave."""
    names, t.keywords = t.keywords, ()
    finish_call(t, i.arg, names)


def call_kw(t: Translator, i: Instruction) -> None:
    """Call with keywords, whose names lie on top."""
    finish_call(t, i.arg, t.take_const("the tuple of keyword names"))


def finish_call(t: Translator, count: int, names: Any) -> None:
    """Below the arguments are two slots, one of them perhaps NULL; if not, the upper one is an argument."""
    if names != ():
        names = common.keyword_names(t, names)
    if count:
        t.pop(count)
    positional = count - len(names) + callable_slots(t)
    if positional < 0:
        raise t.unsupported("more keyword names than arguments")
    t.emit("CALL", (positional, names))
    t.stack.append(1)


def callable_slots(t: Translator) -> int:
    """Pops the callable and its NULL (or ``self``); how many of the two are arguments."""
    upper, lower = t.stack.pop(), t.stack.pop()
    if t.null_is_above:
        if not lower:
            raise t.unsupported("the callable is a NULL")
        return upper
    if not upper:
        raise t.unsupported("the callable is a NULL")
    return lower


def call_function_ex(t: Translator, i: Instruction) -> None:
    """Call with a tuple of arguments and perhaps a mapping."""
    t.pop(1 + (i.arg & 1))
    if callable_slots(t):
        raise t.unsupported("no NULL beside the callable")
    t.emit("CALL_EX", bool(i.arg & 1))
    t.stack.append(1)


# --- fused -----------------------------------------------------------------------------------------
def load_fast_load_fast(t: Translator, i: Instruction) -> None:
    """Push two locals."""
    common.load_local(t, i.arg >> 4)
    common.load_local(t, i.arg & 15)


def store_fast_load_fast(t: Translator, i: Instruction) -> None:
    """Store into a local, and push another."""
    t.apply("STORE_FAST", t.locals[i.arg >> 4])
    common.load_local(t, i.arg & 15)


def store_fast_store_fast(t: Translator, i: Instruction) -> None:
    """Store into two locals."""
    t.pop(2)
    t.emit("STORE_FAST", t.locals[i.arg >> 4])
    t.emit("STORE_FAST", t.locals[i.arg & 15])


# --- cells, generators -----------------------------------------------------------------------------
def make_cell(t: Translator, i: Instruction) -> None:
    """Cells made before ``RESUME`` follow from the code object; those of inlined comprehensions do not."""
    if t.ops:
        t.emit("MAKE_CELL", t.cells[i.arg])


def return_generator(t: Translator, i: Instruction) -> None:
    """Push what the ``POP_TOP`` behind it drops: the generator itself follows from the flags."""
    t.stack.append(0)  # popped again by the POP_TOP that follows


def send_loop(t: Translator, kind: str) -> None:
    """``LOAD_CONST None; SEND; YIELD_VALUE; RESUME; JUMP_BACKWARD_NO_INTERRUPT``: one operation.

    The two instructions that follow are looked at; the loop itself (and the handlers that only cover it)
    is what they can only be.
    """
    start = t.instructions[t.next] if t.next < len(t.instructions) else None
    if start is None or start.opname != "LOAD_CONST" or t.consts[start.arg] is not None:
        raise t.unsupported("is not followed by LOAD_CONST None")
    index = t.next + 1
    if [x.opname for x in t.instructions[index : index + 2]] != ["SEND", "YIELD_VALUE"]:
        raise t.unsupported("is not followed by a SEND loop")
    back = next((x for x in t.instructions[index + 2 : index + 4] if x.target >= 0), None)
    if back is None or back.target != index or not back.opname.startswith("JUMP_BACKWARD"):
        raise t.unsupported("is not followed by a SEND loop")
    between = t.instructions[index + 2]
    if between is not back and between.opname != "RESUME":
        raise t.unsupported("its SEND loop does more than to send")
    t.fold(t.next, index + (3 if between is back else 4), "CLEANUP_THROW" if t.code.version >= (3, 12) else "")
    t.emit(kind)
    t.next = t.instructions[index].target
    if t.code.version >= (3, 12):
        if t.instructions[t.next].opname != "END_SEND":
            raise t.unsupported("SEND loop does not end at END_SEND")
        t.next += 1


def async_gen_wrap(t: Translator, i: Instruction) -> None:
    """Nothing: the ``YIELD`` of an asynchronous generator wraps."""
    if t.peek(1) != "YIELD_VALUE":
        raise t.unsupported("is not followed by YIELD_VALUE")


# --- exceptions ------------------------------------------------------------------------------------
