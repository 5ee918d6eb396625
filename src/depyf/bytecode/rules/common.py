"""The rules that versions share, and what rules are made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Union

from ..operations import FIXED_EFFECTS, JUMPS, KEEPS, UPDATES, Op

if TYPE_CHECKING:
    from typing import Self

    from ..canonical import Translator
    from ..code import Instruction


Function = Callable[["Translator", "Instruction"], None]
#: The rule of an instruction that is one operation: ``(kind, pool, pops, slots pushed, fixed argument)``. ``pool`` says
#: what the instruction's argument indexes; ``pops`` -1 means "as many as the argument says" (displays).
SimpleRule = tuple[str, int, int, tuple[int, ...], Any]
Rule = Union[SimpleRule, Function]  # noqa: UP007  (a string inside)
#: Rules by the names of instructions.
Rules = dict[str, Rule]

#: Where the argument of the operation comes from (indexes of ``Translator.pools``).
FIXED, NAMES, LOCALS, CELLS, CONSTS, NUMBER = range(6)

COMPARISONS = ("<", "<=", "==", "!=", ">", ">=")
#: What ``s``, ``r`` and ``a`` of a format are numbered.
CONVERSIONS = ("", "s", "r", "a")


def rule(rules: Rules, *names: str) -> Callable[[Function], Function]:
    """Return a decorator that puts a function among rules, under names of instructions."""

    def register(function: Function) -> Function:
        rules.update(dict.fromkeys(names, function))
        return function

    return register


def nothing(t: Translator, i: Instruction) -> None:
    """Emit nothing: the instruction changes nothing that the program could notice."""


def always(*steps: tuple[str, Any]) -> Function:
    """Return the rule of an instruction that is always the same operations, with the target of a jump among them.

    Each step is an operation with its argument, or with the function that makes it of the instruction's.
    """

    def rule(t: Translator, i: Instruction) -> None:
        for kind, argument in steps:
            t.apply(kind, argument(i.arg) if callable(argument) else argument, i.target if kind in JUMPS else -1)

    return rule


def applies(kind: str, argument: Callable[[int], Any] = int) -> Function:
    """Return the rule of an instruction that is one operation, whose argument is made of the instruction's."""
    return always((kind, argument))


def suspends(kind: str, finish: Callable[[Translator, str], None]) -> Function:
    """Return the rule of an instruction that waits for the value on top."""

    def rule(t: Translator, i: Instruction) -> None:
        t.need(1)
        t.pop(1 - KEEPS.get(kind, 0))
        finish(t, kind)
        t.stack.append(1)

    return rule


# --- the stack -------------------------------------------------------------------------------------
def pop_top(t: Translator, i: Instruction) -> None:
    """Drop the top, which may be invisible."""
    if t.stack.pop():
        t.ops.append(Op("POP", None, i.offset, i.line, -1, t.handler))


def push_copy(t: Translator, place: int) -> None:
    """Push a copy of the value at a physical ``place`` (1 is the top)."""
    visible = t.visible(place)
    value = t.stack[-place]
    if value:
        t.emit("COPY", visible)
    t.stack.append(value)


def rotate(t: Translator, visible: int) -> None:
    """Emit the move of the top value below ``visible - 1`` others."""
    if visible == 2:
        t.emit("SWAP", 2)
    elif visible > 2:
        t.emit("ROT", visible)


def update(kind: str) -> Function:
    """``LIST_APPEND i`` and its like: values go into the container ``i`` below them."""
    values, _ = FIXED_EFFECTS[kind]

    def rule(t: Translator, i: Instruction) -> None:
        t.pop(values)
        visible = t.visible(i.arg)
        if not t.stack[-i.arg]:
            raise t.unsupported("works on a value that is not one")
        t.emit(kind, visible)

    return rule


class Known(int):
    """A visible slot (it is 1) with a constant: ``CALL_KW`` needs its tuple of names.

    Dynamo restores a stack by swaps, so that the tuple is not always loaded right before the call.
    Forgotten at every merge point.
    """

    value: Any

    def __new__(cls, value: Any) -> Self:
        """Return a visible slot with a constant."""
        self = super().__new__(cls, 1)
        self.value = value
        return self


def load_const(t: Translator, i: Instruction) -> None:
    """Push a constant; a tuple may be names of keywords."""
    value = t.consts[i.arg]
    t.ops.append(Op("CONST", value, i.offset, i.line, -1, t.handler))
    t.stack.append(Known(value) if value.__class__ is tuple else 1)


# --- loading ---------------------------------------------------------------------------------------
def load_local(t: Translator, index: int) -> None:
    """Push a local, or the cell of a variable that is one."""
    name = t.locals[index]
    t.emit("LOAD_CLOSURE" if name in t.cell_names else "LOAD_FAST", name)
    t.stack.append(1)


# --- operators -------------------------------------------------------------------------------------
def compares(shift: int) -> Function:
    """Return the rule of ``COMPARE_OP``: the comparison is above ``shift`` bits; 3.13 has a bit for "as a bool"."""

    def rule(t: Translator, i: Instruction) -> None:
        t.apply("COMPARE", COMPARISONS[i.arg >> shift])
        if shift > 4 and i.arg & 16:
            to_bool(t, i)

    return rule


def to_bool(t: Translator, i: Instruction) -> None:
    """Nothing where what follows tests the truth itself, which is all that a compiler writes."""
    if t.peek(1) not in ("POP_JUMP_IF_TRUE", "POP_JUMP_IF_FALSE", "UNARY_NOT"):
        t.emit("UNARY", "not")
        t.emit("UNARY", "not")


def keyword_names(t: Translator, names: object) -> tuple[str, ...]:
    """Return the names of a call's keyword arguments, from the constant with them."""
    if not isinstance(names, tuple) or not all(isinstance(name, str) for name in names):
        raise t.unsupported("the keyword names are not a tuple of names")
    return names


# --- the table --------------------------------------------------------------------------------------
def one(kind: str, pool: int = FIXED, arg: Any = None, hidden: int = 0) -> SimpleRule:
    """Return the rule of an instruction that is one operation, whose row says what it does to the stack.

    Its argument is ``arg``, or what that of the instruction indexes in a pool. Hidden slots come below what it pushes.
    """
    pops, pushes = FIXED_EFFECTS.get(kind, (-1, 1))
    return kind, pool, pops, (0,) * hidden + (1,) * pushes, arg


#: Instructions that are the operation of the same name, by what their argument indexes.
_SAME_NAME: dict[int, tuple[str, ...]] = {
    LOCALS: ("STORE_FAST", "DELETE_FAST", "LOAD_FAST_AND_CLEAR"),
    NAMES: (
        "STORE_GLOBAL", "DELETE_GLOBAL", "LOAD_NAME", "STORE_NAME", "DELETE_NAME", "LOAD_ATTR", "STORE_ATTR",
        "DELETE_ATTR", "IMPORT_NAME", "IMPORT_FROM", "LOAD_GLOBAL", "LOAD_FROM_DICT_OR_GLOBALS"),
    CELLS: ("LOAD_DEREF", "STORE_DEREF", "DELETE_DEREF", "LOAD_CLASSDEREF", "LOAD_CLOSURE"),
    NUMBER: ("BUILD_TUPLE", "BUILD_LIST", "BUILD_SET", "BUILD_STRING", "BUILD_SLICE"),
    FIXED: (
        "LOAD_BUILD_CLASS", "LOAD_ASSERTION_ERROR", "LIST_TO_TUPLE", "IMPORT_STAR", "SETUP_ANNOTATIONS", "PRINT_EXPR",
        "GET_ITER", "GET_AITER", "GET_LEN", "MATCH_MAPPING", "MATCH_SEQUENCE", "MATCH_KEYS", "COPY_DICT_WITHOUT_KEYS",
        "BEFORE_ASYNC_WITH",
        # 3.11 and later only
        "PUSH_EXC_INFO", "POP_EXCEPT", "CHECK_EXC_MATCH", "CHECK_EG_MATCH", "PREP_RERAISE_STAR", "BEFORE_WITH",
        "WITH_EXCEPT_START", "LOAD_LOCALS", "BUILD_TEMPLATE"),
}
#: The rules of every version from 3.9 on that has the instruction and no rule of its own.
EVERYWHERE: Rules = {
    **{name: one(name, pool) for pool, names in _SAME_NAME.items() for name in names},
    "LOAD_CONST": one("CONST", CONSTS),
    "BINARY_SUBSCR": one("GETITEM"),
    "STORE_SUBSCR": one("SETITEM"),
    "DELETE_SUBSCR": one("DELITEM"),
    "UNARY_POSITIVE": one("UNARY", arg="+"),
    "UNARY_NEGATIVE": one("UNARY", arg="-"),
    "UNARY_INVERT": one("UNARY", arg="~"),
    "UNARY_NOT": one("UNARY", arg="not"),
    "YIELD_VALUE": one("YIELD"),
    "NOP": nothing,
    "POP_TOP": pop_top,
    "LOAD_FAST": lambda t, i: load_local(t, i.arg),
    "LOAD_METHOD": one("LOAD_ATTR", NAMES, hidden=1),  # (function, self) or (NULL, function): one callable both
    "BUILD_MAP": applies("BUILD_MAP"),
    "UNPACK_SEQUENCE": applies("UNPACK"),
    "UNPACK_EX": applies("UNPACK_EX", lambda n: (n & 255, n >> 8)),
    "FORMAT_VALUE": applies("FORMAT", lambda n: (CONVERSIONS[n & 3], bool(n & 4))),
    **{kind: update(kind) for kind in UPDATES},
    "COMPARE_OP": compares(0),
    "IS_OP": applies("IS", bool),
    "CONTAINS_OP": applies("IN", bool),
    "JUMP_FORWARD": always(("JUMP", None)),
    "JUMP_IF_FALSE_OR_POP": always(("COPY", 1), ("BRANCH", False), ("POP", None)),
    "JUMP_IF_TRUE_OR_POP": always(("COPY", 1), ("BRANCH", True), ("POP", None)),
    "RETURN_VALUE": always(("RETURN", None)),
    "RAISE_VARARGS": applies("RAISE"),
    "MATCH_CLASS": applies("MATCH_CLASS"),
}


@rule(EVERYWHERE, "BUILD_CONST_KEY_MAP")
def _(t: Translator, i: Instruction) -> None:
    keys = t.take_const("the tuple of keys")
    if not isinstance(keys, tuple) or len(keys) != i.arg:
        raise t.unsupported("the keys are not a tuple of the right size")
    t.apply("BUILD_CONST_KEY_MAP", keys)


#: What a loop's end skips, which cleans up after it.
_ENDS = {(3, 12): ("END_FOR",), (3, 13): ("END_FOR", "POP_TOP"), (3, 14): ("END_FOR", "POP_ITER")}


@rule(EVERYWHERE, "FOR_ITER")
def _(t: Translator, i: Instruction) -> None:
    target, ends = i.target, _ENDS.get(t.code.version, ())
    for name in ends:
        if t.instructions[target].opname != name:
            raise t.unsupported(f"loop does not end at {' and '.join(ends)}")
        target += 1
    t.emit("FOR_ITER", None, target)
    t.pop(1)
    t.enter(target, tuple(t.stack), t.blocks)
    t.stack += (1, 1)
