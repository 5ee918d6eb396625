"""3.11 and later: calls with ``NULL``, ``SEND`` loops, exception tables; the changes of 3.14."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..operations import Op
from . import common
from .common import Rules, always, applies, one, rule, suspends

if TYPE_CHECKING:
    from ..canonical import Translator
    from ..code import Instruction


_BINARY_OPS = ("+", "&", "//", "<<", "@", "*", "%", "|", "**", ">>", "-", "/", "^")
#: The operations of ``BINARY_OP``, by its argument.
_OPERATORS = [(kind, sign) for kind in ("BINARY", "INPLACE") for sign in _BINARY_OPS]
_OPERATORS_3_14 = [*_OPERATORS, ("GETITEM", None)]
_INTRINSICS_1 = (
    "invalid", "print", "import_star", "stopiteration_error", "async_gen_wrap", "unary_positive",
    "list_to_tuple", "typevar", "paramspec", "typevartuple", "subscript_generic", "typealias",
)
_INTRINSICS_2 = (
    "invalid", "prep_reraise_star", "typevar_with_bound", "typevar_with_constraints",
    "set_function_type_params", "set_typeparam_default",
)
#: What ``LOAD_COMMON_CONSTANT`` loads.
_COMMON_CONSTANTS = ("AssertionError", "NotImplementedError", "tuple", "all", "any")


def send_loop(t: Translator, kind: str) -> None:
    """``LOAD_CONST None; SEND; YIELD_VALUE; RESUME; JUMP_BACKWARD_NO_INTERRUPT``: one operation."""
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


def fused(first: str, second: str) -> common.Function:
    """Return the rule of two operations on locals, whose numbers are the upper and the lower half of the argument."""

    def rule(t: Translator, i: Instruction) -> None:
        for kind, index in ((first, i.arg >> 4), (second, i.arg & 15)):
            if kind == "LOAD_FAST":
                common.load_local(t, index)
            else:
                t.apply(kind, t.locals[index])

    return rule


def formats(has_spec: bool) -> common.Function:
    """Return the rule that formats a value with the conversion that came before, and a specification on top."""
    # (A constant is all there is in between: the order cannot be seen.)
    before = ["CONVERT", "CONST"] if has_spec else ["CONVERT"]

    def rule(t: Translator, i: Instruction) -> None:
        conversion = t.ops.pop(-len(before)).arg if t.recent(len(before)) == before else ""
        t.apply("FORMAT", (conversion, has_spec))

    return rule


#: Conditional jumps, by what they test the value on top for.
_BRANCHES: Rules = {
    "TRUE": always(("BRANCH", True)),
    "FALSE": always(("BRANCH", False)),
    "NONE": always(("CONST", None), ("IS", False), ("BRANCH", True)),
    "NOT_NONE": always(("CONST", None), ("IS", False), ("BRANCH", False)),
}
#: The rules since 3.11, on top of :data:`.common.EVERYWHERE`; below those since later versions, each on top of these.
V3_11: Rules = {
    "RESUME": common.nothing,
    "PRECALL": common.nothing,
    # (the NULL of RETURN_GENERATOR is popped again by the POP_TOP after it)
    **dict.fromkeys(("RETURN_GENERATOR", "PUSH_NULL"), lambda t, i: t.stack.append(0)),
    "COPY": lambda t, i: common.push_copy(t, i.arg),
    "BINARY_OP": lambda t, i: t.apply(*_OPERATORS[i.arg]),
    "MAKE_FUNCTION": applies("MAKE_FUNCTION", lambda n: n & 15),
    "JUMP_BACKWARD": always(("JUMP", None)),
    "JUMP_BACKWARD_NO_INTERRUPT": always(("JUMP", None)),
    "GET_AWAITABLE": suspends("AWAIT", send_loop),
    "GET_YIELD_FROM_ITER": suspends("YIELD_FROM", send_loop),
    "GET_ANEXT": suspends("GET_ANEXT_AWAIT", send_loop),
    "RERAISE": applies("RERAISE"),
    "END_ASYNC_FOR": one("END_ASYNC_FOR"),
    **{f"POP_JUMP_{way}_IF_{test}": rule for way in ("FORWARD", "BACKWARD") for test, rule in _BRANCHES.items()},
}
V3_12: Rules = {
    "LOAD_FAST_CHECK": lambda t, i: common.load_local(t, i.arg),
    "COMPARE_OP": common.compares(4),
    "BINARY_SLICE": always(("BUILD_SLICE", 2), ("GETITEM", None)),
    "STORE_SLICE": always(("BUILD_SLICE", 2), ("SETITEM", None)),
    **{f"POP_JUMP_IF_{test}": rule for test, rule in _BRANCHES.items()},
}
V3_13: Rules = {
    "LOAD_CONST": common.load_const,
    "COMPARE_OP": common.compares(5),
    "TO_BOOL": common.to_bool,
    "CALL_KW": lambda t, i: finish_call(t, i.arg, t.take_const("the tuple of keyword names")),
    "CONVERT_VALUE": applies("CONVERT", common.CONVERSIONS.__getitem__),
    "FORMAT_SIMPLE": formats(False),
    "FORMAT_WITH_SPEC": formats(True),
    **{f"{first}_{second}": fused(first, second) for first, second in (
        ("LOAD_FAST", "LOAD_FAST"), ("STORE_FAST", "LOAD_FAST"), ("STORE_FAST", "STORE_FAST"))},
}
V3_14: Rules = {
    "NOT_TAKEN": common.nothing,
    "POP_ITER": common.pop_top,
    "LOAD_SMALL_INT": applies("CONST"),
    "BINARY_OP": lambda t, i: t.apply(*_OPERATORS_3_14[i.arg]),
    "LOAD_FAST_BORROW": lambda t, i: common.load_local(t, i.arg),
    "LOAD_FAST_BORROW_LOAD_FAST_BORROW": fused("LOAD_FAST", "LOAD_FAST"),
    "BUILD_INTERPOLATION": applies("BUILD_INTERPOLATION", lambda n: (common.CONVERSIONS[n >> 2], bool(n & 1))),
}


# --- calls -----------------------------------------------------------------------------------------
@rule(V3_11, "LOAD_GLOBAL")
def _(t: Translator, i: Instruction) -> None:
    """Push a global; with the low bit a NULL too, below the value up to 3.12, above it from 3.13 on."""
    t.ops.append(Op("LOAD_GLOBAL", t.names[i.arg >> 1], i.offset, i.line, -1, t.handler))
    push_callable(t, bool(i.arg & 1))


def push_callable(t: Translator, with_null: bool) -> None:
    """Push a callable, with the ``NULL`` beside it on the side where the version has it."""
    t.stack += (1,) if not with_null else (1, 0) if t.null_is_above else (0, 1)


@rule(V3_12, "LOAD_ATTR")
def _(t: Translator, i: Instruction) -> None:
    """3.12 and later: the low bit makes it what ``LOAD_METHOD`` was."""
    t.pop(1)
    t.emit("LOAD_ATTR", t.names[i.arg >> 1])
    push_callable(t, bool(i.arg & 1))


@rule(V3_12, "LOAD_SUPER_ATTR")
def _(t: Translator, i: Instruction) -> None:
    """Read an attribute of ``super()``; the low bits say how it was called and whether a method is wanted."""
    t.pop(3)
    t.emit("LOAD_SUPER_ATTR", (t.names[i.arg >> 2], bool(i.arg & 2)))
    push_callable(t, bool(i.arg & 1))


@rule(V3_11, "KW_NAMES")
def _(t: Translator, i: Instruction) -> None:
    t.keywords = t.consts[i.arg]


@rule(V3_11, "CALL")
def _(t: Translator, i: Instruction) -> None:
    names, t.keywords = t.keywords, ()
    finish_call(t, i.arg, names)


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
    first, second = t.stack.pop(), t.stack.pop()
    called, other = (second, first) if t.null_is_above else (first, second)
    if not called:
        raise t.unsupported("the callable is a NULL")
    return other


@rule(V3_11, "CALL_FUNCTION_EX")
def _(t: Translator, i: Instruction) -> None:
    """Call with a tuple of arguments and perhaps a mapping; from 3.14 on a NULL is in its place if there is none."""
    has_keywords = bool(t.stack.pop()) if t.code.version >= (3, 14) else bool(i.arg & 1)
    t.pop(1 if t.code.version >= (3, 14) else 1 + has_keywords)
    if callable_slots(t):
        raise t.unsupported("no NULL beside the callable")
    t.emit("CALL_EX", has_keywords)
    t.stack.append(1)


@rule(V3_11, "COPY_FREE_VARS")
def _(t: Translator, i: Instruction) -> None:
    """Emit nothing: the frame has the closure from the start; a second time copies the same cells."""
    if i.arg != len(t.code.freevars):
        raise t.unsupported(f"argument {i.arg} where there are {len(t.code.freevars)} free variables")


@rule(V3_12, "LOAD_FROM_DICT_OR_DEREF")
def _(t: Translator, i: Instruction) -> None:
    kind = "LOAD_FROM_DICT_OR_DEREF"
    if t.recent(1) == ["LOAD_LOCALS"]:
        t.pop(1)
        t.ops.pop()
        kind = "LOAD_CLASSDEREF"
    t.apply(kind, t.cells[i.arg])


@rule(V3_12, "RETURN_CONST")
def _(t: Translator, i: Instruction) -> None:
    t.apply("CONST", t.consts[i.arg])
    t.apply("RETURN")


@rule(V3_12, "CALL_INTRINSIC_1")
def _(t: Translator, i: Instruction) -> None:
    name = _INTRINSICS_1[i.arg]
    if name == "unary_positive":
        t.apply("UNARY", "+")
    elif name == "list_to_tuple":
        t.apply("LIST_TO_TUPLE")
    elif name == "async_gen_wrap" and t.peek(1) == "YIELD_VALUE":
        t.need(1)  # an asynchronous generator's YIELD does it
    elif name in ("print", "import_star") and t.peek(1) == "POP_TOP":
        t.apply("PRINT_EXPR" if name == "print" else "IMPORT_STAR")
        t.next += 1
    else:
        t.apply("INTRINSIC_1", name)


@rule(V3_12, "CALL_INTRINSIC_2")
def _(t: Translator, i: Instruction) -> None:
    name = _INTRINSICS_2[i.arg]
    t.apply(*(("PREP_RERAISE_STAR",) if name == "prep_reraise_star" else ("INTRINSIC_2", name)))


@rule(V3_13, "MAKE_FUNCTION")
def _(t: Translator, i: Instruction) -> None:
    """3.13: ``SET_FUNCTION_ATTRIBUTE`` instructions follow, the attribute that was pushed last first."""
    t.pop(1)
    flags, last = 0, 32
    while t.instructions[t.next].opname == "SET_FUNCTION_ATTRIBUTE":
        flag = t.instructions[t.next].arg
        rank = {8: 8, 4: 4, 16: 3, 2: 2, 1: 1}.get(flag, 99)
        if rank >= last:
            raise t.unsupported("attributes are set in an order that no compiler uses")
        flags, last = flags | flag, rank
        t.pop(1)
        t.next += 1
    t.emit("MAKE_FUNCTION", flags)
    t.stack.append(1)


@rule(V3_11, "SWAP")
def _(t: Translator, i: Instruction) -> None:
    place = i.arg
    stack = t.stack
    visible = t.visible(place)
    if place < 2:
        return
    top, other = stack[-1], stack[-place]
    stack[-1], stack[-place] = other, top
    if top and other:
        t.emit("SWAP", visible)
    elif top:  # a NULL comes up, the top value goes below what is in between
        common.rotate(t, visible)
    elif other:  # the top is a NULL: the value comes up over what is in between
        for step in range(2, visible + 1):
            t.emit("SWAP", step)


# --- cells, generators -----------------------------------------------------------------------------
@rule(V3_11, "MAKE_CELL")
def _(t: Translator, i: Instruction) -> None:
    """Cells made before ``RESUME`` follow from the code object; those of inlined comprehensions do not."""
    if t.ops:
        t.emit("MAKE_CELL", t.cells[i.arg])


@rule(V3_11, "ASYNC_GEN_WRAP")
def _(t: Translator, i: Instruction) -> None:
    """Nothing: the ``YIELD`` of an asynchronous generator wraps."""
    if t.peek(1) != "YIELD_VALUE":
        raise t.unsupported("is not followed by YIELD_VALUE")


# --- changes of 3.14 ---------------------------------------------------------------------------------
#: The methods of ``LOAD_SPECIAL``.
_ENTER, _EXIT, _AENTER, _AEXIT = range(4)


@rule(V3_14, "LOAD_COMMON_CONSTANT")
def _(t: Translator, i: Instruction) -> None:
    name = _COMMON_CONSTANTS[i.arg]
    t.apply(*(("LOAD_ASSERTION_ERROR",) if name == "AssertionError" else ("LOAD_COMMON_CONSTANT", name)))


# --- with ------------------------------------------------------------------------------------------
@rule(V3_14, "COPY")
def _(t: Translator, i: Instruction) -> None:
    """Also the start of what earlier versions do in one instruction."""
    if i.arg == 1 and t.peek(1) == "LOAD_SPECIAL":
        enter_context(t)
    elif i.arg == 1 and t.peek(1) == "LOAD_COMMON_CONSTANT" and (there := ordinary_call(t)) >= 0:
        t.next = there
    else:
        common.push_copy(t, i.arg)


def enter_context(t: Translator) -> None:
    """``COPY 1; LOAD_SPECIAL exit; SWAP 2; SWAP 3; LOAD_SPECIAL enter; CALL 0``: one operation."""
    steps = [(x.opname, x.arg) for x in t.instructions[t.at + 1 : t.at + 6]]
    method = t.instructions[t.at + 1].arg
    enter, kind = {_EXIT: (_ENTER, "BEFORE_WITH"), _AEXIT: (_AENTER, "BEFORE_ASYNC_WITH")}.get(method, (-1, ""))
    if steps != [("LOAD_SPECIAL", method), ("SWAP", 2), ("SWAP", 3), ("LOAD_SPECIAL", enter), ("CALL", 0)]:
        raise t.unsupported("special methods are not used as a with statement does")
    t.pop(1)
    t.emit(kind)
    t.stack += (1, 0, 1)
    t.next = t.at + 6


# --- any(...), all(...), tuple(...) of a generator expression ---------------------------------------
#: The most pairs of instructions that are compared: copies of a block after the loop are short.
_MOST_COMPARED = 4000


def ordinary_call(t: Translator) -> int:
    """Return where the ordinary call starts, if 3.14 has also written it as a loop that starts here; or -1.

    ``any(x for x in y)`` is compiled twice: when the name ``any`` is the built-in function, a loop over the
    generator replaces the call, else it is called. Both do the same, and that they do is checked here; so the
    program has only the call.
    """
    start = t.at + 1
    tests = t.instructions[start + 1 : start + 5]
    if [x.opname for x in tests] != ["IS_OP", "POP_JUMP_IF_FALSE", "NOT_TAKEN", "POP_TOP"] or tests[0].arg:
        return -1
    function = _COMMON_CONSTANTS[t.instructions[start].arg]
    call = tests[1].target
    if t.instructions[call].opname != "PUSH_NULL" or function not in ("tuple", "all", "any"):
        return -1
    fast = _after(t, start + 5, ("BUILD_LIST", 0)) if function == "tuple" else start + 5
    met = _partings(t, fast, call + 1, "FOR_ITER", "CALL") if fast >= 0 else []
    if len(met) != 1 or t.instructions[met[0][1]].arg != 1:
        return -1
    [(loop, called)] = met
    exhausted = t.instructions[loop].target
    if function == "tuple":
        again = _after(t, loop + 1, ("LIST_APPEND", 2))
        to_tuple = _INTRINSICS_1.index("list_to_tuple")
        ends = [_after(t, exhausted, ("END_FOR", None), ("POP_ITER", None), ("CALL_INTRINSIC_1", to_tuple))]
    else:
        found = function == "any"
        test = _after(t, loop + 1, ("TO_BOOL", None))
        branch = t.instructions[_follow_jumps(t, test)]
        arms = {"POP_JUMP_IF_TRUE": (branch.target, test + 1), "POP_JUMP_IF_FALSE": (test + 1, branch.target)}
        if test < 0 or branch.opname not in arms:
            return -1
        matching, again = arms[branch.opname] if found else arms[branch.opname][::-1]
        ends = [_after(t, matching, ("POP_ITER", None), ("LOAD_CONST", found)),
                _after(t, exhausted, ("END_FOR", None), ("POP_ITER", None), ("LOAD_CONST", not found))]
    if again < 0 or _follow_jumps(t, again) != loop or any(end < 0 or _partings(t, end, called + 1) for end in ends):
        return -1
    return call


def _follow_jumps(t: Translator, index: int) -> int:
    """Return the instruction that control reaches from ``index`` without doing anything."""
    for _ in range(100):
        i = t.instructions[index]
        if i.opname in ("NOP", "NOT_TAKEN"):
            index += 1
        elif i.opname in ("JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT"):
            index = i.target
        else:
            break
    return index


def _after(t: Translator, index: int, *steps: tuple[str, Any]) -> int:
    """Return the instruction after those of the given names and arguments (or constants); -1 if there are others."""
    for name, wanted in steps:
        index = _follow_jumps(t, index)
        i = t.instructions[index]
        argument = t.consts[i.arg] if i.opname == name == "LOAD_CONST" else i.arg
        if i.opname != name or wanted is not None and argument is not wanted:
            return -1
        index += 1
    return index


def _partings(
    t: Translator, left: int, right: int, until_left: str = "", until_right: str = "",
) -> list[tuple[int, int]]:
    """Return the pairs at which two stretches of the code stop being the same; empty if they never do.

    They may where ``left`` is at an ``until_left`` and ``right`` at an ``until_right``; elsewhere the pair is (-1, -1).
    """
    stops: list[tuple[int, int]] = []
    pending = [(left, right)]
    seen = set()
    while pending:
        i, j = (_follow_jumps(t, x) for x in pending.pop())
        if i == j or (i, j) in seen:
            continue
        seen.add((i, j))
        a, b = t.instructions[i], t.instructions[j]
        if a.opname == until_left and b.opname == until_right:
            stops.append((i, j))
            continue
        over, other = t.entry_of(i), t.entry_of(j)
        if (a.opname.replace("_BORROW", "") != b.opname.replace("_BORROW", "") or a.target < 0 and a.arg != b.arg
                or len(seen) > _MOST_COMPARED or (over is None) != (other is None)):
            return [(-1, -1)]
        if over is not None and other is not None:  # (the code of their handlers is compared, too)
            pending.append((over[0], other[0]))
            if over[2] != other[2]:
                return [(-1, -1)]
        if a.target >= 0:
            pending.append((a.target, b.target))
        if a.opname not in ("RETURN_VALUE", "RERAISE", "RAISE_VARARGS"):
            pending.append((i + 1, j + 1))
    return stops
