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
from typing import TYPE_CHECKING, Any

from ..code import Code
from ..operations import Op
from . import common

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


def setup_finally(t: Translator, i: Instruction) -> None:
    """Push the block of a ``try``, at the depth that its handler keeps."""
    _set_blocks(t, (*t.blocks, (TRY, i.target, len(t.stack), False)))


def setup_with(t: Translator, i: Instruction) -> None:
    """Enter a context: the exit is below the level of the block, what was entered is above it."""
    t.pop(1)
    t.emit("BEFORE_WITH")
    t.stack.append(1)  # the exit; what was entered is above the level of the block
    _set_blocks(t, (*t.blocks, (TRY, i.target, len(t.stack), True)))
    t.stack.append(1)


def setup_async_with(t: Translator, i: Instruction) -> None:
    """Push the block of an ``async with``, below what was entered."""
    _set_blocks(t, (*t.blocks, (TRY, i.target, len(t.stack) - 1, True)))


def pop_block(t: Translator, i: Instruction) -> None:
    """Take the innermost block off the block stack."""
    if not t.blocks:
        raise t.unsupported("there is no block")
    _set_blocks(t, t.blocks[:-1])


def pop_except(t: Translator, i: Instruction) -> None:
    """End a handler: the three values of the previous exception go, of which one is visible."""
    if not t.blocks or t.blocks[-1][0] != HANDLER or len(t.stack) < 3:
        raise t.unsupported("no handler is running")
    lasti = t.stack[-3]
    t.emit("POP_EXCEPT")
    del t.stack[-3:]
    _set_blocks(t, t.blocks[:-1])
    if lasti:
        t.emit("POP")


def reraise(t: Translator, i: Instruction) -> None:
    """Raise the exception on top again; up to 3.9 the stack shows whether it keeps an offset."""
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


def jump_if_not_exc_match(t: Translator, i: Instruction) -> None:
    """Test the exception for a type, and jump if it is of another."""
    t.pop(1)
    if t.stack.pop():
        raise t.unsupported("what is matched is not the type of the exception")
    t.emit("CHECK_EXC_MATCH")
    t.emit("BRANCH", False, i.target)
    t.enter(i.target, tuple(t.stack), t.blocks)


def with_except_start(t: Translator, i: Instruction) -> None:
    """Call the exit, which is below the six values of a handler."""
    if t.stack[-6:] != [1, 0, 1, 0, 1, 0]:
        raise t.unsupported("there is no exception on top of the stack")
    t.emit("WITH_EXCEPT_START")
    t.stack.append(1)


def end_async_for(t: Translator, i: Instruction) -> None:
    """End an asynchronous loop: its iterator and the six values go."""
    if t.stack[-7:] != [1, 0, 0, 0, 0, 1, 0]:
        raise t.unsupported("there is no exception on top of the stack")
    del t.stack[-7:]
    t.emit("END_ASYNC_FOR")


def build_tuple(t: Translator, i: Instruction) -> None:
    """Build a tuple, folded to a constant where its items are constants.

    The optimiser of 3.9 and before folds constants, but leaves code alone whose line table has large steps
    (Python/peephole.c).
    """
    count = i.arg
    if count and t.recent(count) == ["CONST"] * count:
        t.pop(count)
        values = tuple(op.arg for op in t.ops[-count:])
        del t.ops[-count:]
        t.emit("CONST", values)
        t.stack.append(common.Known(values))
    else:
        t.apply("BUILD_TUPLE", count)


# --- the rest of what 3.10 spells differently ------------------------------------------------------
def dup_top(t: Translator, i: Instruction) -> None:
    """Push the top once more."""
    if _is_exit_call(t):  # ``None, None, None`` for ``__exit__``: 3.11 loads it three times
        t.apply("CONST", None)
    else:
        common.push_copy(t, 1)


def _is_exit_call(t: Translator) -> bool:
    if t.recent(1) != ["CONST"] or t.ops[-1].arg is not None:
        return False
    ahead = [t.peek(1), t.peek(2)] if t.peek(1) == "DUP_TOP" else [t.peek(1)]
    return "CALL_FUNCTION" in ahead


def dup_top_two(t: Translator, i: Instruction) -> None:
    """Push the two topmost values once more."""
    common.push_copy(t, 2)
    common.push_copy(t, 2)


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


def call_function_kw(t: Translator, i: Instruction) -> None:
    """Call with keywords, whose names are on top."""
    names = common.keyword_names(t, t.take_const("the tuple of keyword names"))
    if len(names) > i.arg:
        raise t.unsupported("more keyword names than arguments")
    t.apply("CALL", (i.arg - len(names), names))


def call_method(t: Translator, i: Instruction) -> None:
    """Call what ``LOAD_METHOD`` has loaded."""
    t.pop(i.arg + 1)
    if t.stack.pop():
        raise t.unsupported("no method was loaded")
    t.emit("CALL", (i.arg, ()))
    t.stack.append(1)


def make_function(t: Translator, i: Instruction) -> None:
    """Make a function whose qualified name is on the stack; later versions keep it in the code object."""
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


def yield_from_after(t: Translator, kind: str) -> None:
    """Make one operation of the current instruction and the ``LOAD_CONST None; YIELD_FROM`` after it."""
    first = t.instructions[t.next] if t.next < len(t.instructions) else None
    if first is None or first.opname != "LOAD_CONST" or t.consts[first.arg] is not None:
        raise t.unsupported("is not followed by LOAD_CONST None")
    if t.peek(2) != "YIELD_FROM":
        raise t.unsupported("is not followed by YIELD_FROM")
    t.emit(kind)
    t.next += 2


def match(t: Translator, i: Instruction) -> None:
    """Match the subject with keys or a class, and branch on whether it matched; later versions test for ``None``."""
    t.apply(i.opname, i.arg if i.opname == "MATCH_CLASS" else None)
    test = t.instructions[t.next]
    if test.opname != "POP_JUMP_IF_FALSE":
        raise t.unsupported("is not followed by POP_JUMP_IF_FALSE")
    for kind, argument in (("COPY", 1), ("CONST", None), ("IS", False)):
        t.apply(kind, argument)
    t.apply("BRANCH", True, test.target)
    t.next += 1
