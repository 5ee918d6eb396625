"""Instructions that need a look at the stack or at their neighbours; shared by the versions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Union

from ..operations import FIXED_EFFECTS, JUMPS, KEEPS, Op

if TYPE_CHECKING:
    from typing import Self

    from ..canonical import Translator
    from ..code import Instruction


Function = Callable[["Translator", "Instruction"], None]

COMPARISONS = ("<", "<=", "==", "!=", ">", ">=")
_BINARY_OPS = ("+", "&", "//", "<<", "@", "*", "%", "|", "**", ">>", "-", "/", "^")
#: What ``s``, ``r`` and ``a`` of a format are numbered.
CONVERSIONS = ("", "s", "r", "a")
BINARY_OPERANDS = tuple(
    [("BINARY", sign) for sign in _BINARY_OPS] + [("INPLACE", sign) for sign in _BINARY_OPS]
)
INTRINSICS_1 = (
    "invalid", "print", "import_star", "stopiteration_error", "async_gen_wrap", "unary_positive",
    "list_to_tuple", "typevar", "paramspec", "typevartuple", "subscript_generic", "typealias",
)
INTRINSICS_2 = (
    "invalid", "prep_reraise_star", "typevar_with_bound", "typevar_with_constraints",
    "set_function_type_params", "set_typeparam_default",
)


def nothing(t: Translator, i: Instruction) -> None:
    """Emit nothing: the instruction changes nothing that the program could notice."""


def copy_free_vars(t: Translator, i: Instruction) -> None:
    """Emit nothing: in the canonical program the closure is in the frame from the start.

    A second time is allowed: it copies the same cells.
    """
    if i.arg != len(t.code.freevars):
        raise t.unsupported(f"argument {i.arg} where there are {len(t.code.freevars)} free variables")


def applies(kind: str, argument: Callable[[int], Any] = int) -> Function:
    """Return the rule of an instruction that is one operation, whose argument is made of the instruction's."""

    def rule(t: Translator, i: Instruction) -> None:
        t.apply(kind, argument(i.arg), i.target)

    return rule


def always(*steps: tuple[str, Any]) -> Function:
    """Return the rule of an instruction that is always the same operations; its target is that of a jump among them."""

    def rule(t: Translator, i: Instruction) -> None:
        for kind, argument in steps:
            t.apply(kind, argument, i.target if kind in JUMPS else -1)

    return rule


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


def swap(t: Translator, i: Instruction) -> None:
    """Swap the top with the value that many places below."""
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
        rotate(t, visible)
    elif other:  # the top is a NULL: the value comes up over what is in between
        for step in range(2, visible + 1):
            t.emit("SWAP", step)


def rotate(t: Translator, visible: int) -> None:
    """Emit the move of the top value below ``visible - 1`` others."""
    if visible == 2:
        t.emit("SWAP", 2)
    elif visible > 2:
        t.emit("ROT", visible)


def below(t: Translator, place: int) -> int:
    """Canonical place of the value at physical ``place`` (1 is the top)."""
    visible = t.visible(place)
    if not t.stack[-place]:
        raise t.unsupported("works on a value that is not one")
    return visible


def update(kind: str) -> Function:
    """``LIST_APPEND i`` and its like: values go into the container ``i`` below them."""
    values, _ = FIXED_EFFECTS[kind]

    def rule(t: Translator, i: Instruction) -> None:
        t.pop(values)
        t.emit(kind, below(t, i.arg))

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
def fused(first: str, second: str) -> Function:
    """Return the rule of two operations on locals, whose numbers are the upper and the lower half of the argument."""

    def rule(t: Translator, i: Instruction) -> None:
        for kind, index in ((first, i.arg >> 4), (second, i.arg & 15)):
            if kind == "LOAD_FAST":
                load_local(t, index)
            else:
                t.apply(kind, t.locals[index])

    return rule


def load_local(t: Translator, index: int) -> None:
    """Push a local, or the cell of a variable that is one."""
    name = t.locals[index]
    t.emit("LOAD_CLOSURE" if name in t.cell_names else "LOAD_FAST", name)
    t.stack.append(1)


# --- building --------------------------------------------------------------------------------------
def build_const_key_map(t: Translator, i: Instruction) -> None:
    """Build a dictionary of the values below a tuple of keys."""
    keys = t.take_const("the tuple of keys")
    if not isinstance(keys, tuple) or len(keys) != i.arg:
        raise t.unsupported("the keys are not a tuple of the right size")
    t.apply("BUILD_CONST_KEY_MAP", keys)


def formats(has_spec: bool) -> Function:
    """Return the rule that formats a value with the conversion that came before, and a specification on top."""
    # (A constant is all there is in between: the order cannot be seen.)
    before = ["CONVERT", "CONST"] if has_spec else ["CONVERT"]

    def rule(t: Translator, i: Instruction) -> None:
        conversion = t.ops.pop(-len(before)).arg if t.recent(len(before)) == before else ""
        t.apply("FORMAT", (conversion, has_spec))

    return rule


# --- operators -------------------------------------------------------------------------------------
def binary_op(operands: Sequence[tuple[str, Any]]) -> Function:
    """Return the rule of ``BINARY_OP``, whose argument is the number of an operator."""
    return lambda t, i: t.apply(*operands[i.arg])


def compare_shifted(shift: int) -> Function:
    """``COMPARE_OP``: the comparison is above ``shift`` bits; 3.13 has a bit for "as a bool"."""

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


def intrinsic_1(t: Translator, i: Instruction) -> None:
    """Call a function of the interpreter with one value."""
    name = INTRINSICS_1[i.arg]
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


def intrinsic_2(t: Translator, i: Instruction) -> None:
    """Call a function of the interpreter with two values."""
    name = INTRINSICS_2[i.arg]
    t.apply(*(("PREP_RERAISE_STAR",) if name == "prep_reraise_star" else ("INTRINSIC_2", name)))


# --- jumps -----------------------------------------------------------------------------------------
def for_iter(t: Translator, i: Instruction) -> None:
    """From 3.12 on, the loop's end skips ``END_FOR`` (and what cleans up with it in 3.13)."""
    target = i.target
    if t.code.version >= (3, 12):
        if t.instructions[target].opname != "END_FOR":
            raise t.unsupported("loop does not end at END_FOR")
        target += 1
        if t.code.version >= (3, 13):
            drops = "POP_TOP" if t.code.version < (3, 14) else "POP_ITER"
            if t.instructions[target].opname != drops:
                raise t.unsupported(f"loop does not end at END_FOR and {drops}")
            target += 1
    t.emit("FOR_ITER", None, target)
    t.pop(1)
    t.enter(target, tuple(t.stack), t.blocks)
    t.stack += (1, 1)


def return_const(t: Translator, i: Instruction) -> None:
    """Return a constant."""
    t.apply("CONST", t.consts[i.arg])
    t.apply("RETURN")


# --- calls, functions ------------------------------------------------------------------------------
def keyword_names(t: Translator, names: object) -> tuple[str, ...]:
    """Return the names of a call's keyword arguments, from the constant with them."""
    if not isinstance(names, tuple) or not all(isinstance(name, str) for name in names):
        raise t.unsupported("the keyword names are not a tuple of names")
    return names


def make_function_attributes(t: Translator, i: Instruction) -> None:
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


def load_from_dict_or_deref(t: Translator, i: Instruction) -> None:
    """Look a variable up in the mapping on top, then in its cell."""
    kind = "LOAD_FROM_DICT_OR_DEREF"
    if t.recent(1) == ["LOAD_LOCALS"]:
        t.pop(1)
        t.ops.pop()
        kind = "LOAD_CLASSDEREF"
    t.apply(kind, t.cells[i.arg])


# --- instructions that are one operation: ``(kind, pool, pops, slots pushed, fixed argument)`` -------
# ``pool`` says what the instruction's argument indexes; ``pops`` -1 means "as many as the argument says" (displays).
SimpleRule = tuple[str, int, int, tuple[int, ...], Any]
Rule = Union[SimpleRule, Callable[["Translator", "Instruction"], None]]  # noqa: UP007  (a string inside)
Rules = dict[str, Rule]

#: Where the argument of the operation comes from (indexes of ``Translator.pools``).
FIXED, NAMES, LOCALS, CELLS, CONSTS, NUMBER = range(6)

OPERATORS = {
    "ADD": "+", "SUBTRACT": "-", "MULTIPLY": "*", "TRUE_DIVIDE": "/", "FLOOR_DIVIDE": "//", "MODULO": "%",
    "MATRIX_MULTIPLY": "@", "POWER": "**", "LSHIFT": "<<", "RSHIFT": ">>", "AND": "&", "OR": "|", "XOR": "^",
}


def one(kind: str, pool: int = FIXED, arg: Any = None, hidden: int = 0) -> SimpleRule:
    """Return the rule of an instruction that is one operation, whose row says what it does to the stack.

    Args:
        kind: the operation.
        pool: what the instruction's argument indexes.
        arg: the operation's argument, if it is always the same.
        hidden: how many slots that no operation sees come below what it pushes.
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
#: The same on every version from 3.9 on that has them and says nothing else.
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
}

#: 3.10 and before: an instruction for each operator.
OPERATOR_INSTRUCTIONS: Rules = {
    **{f"BINARY_{name}": one("BINARY", arg=sign) for name, sign in OPERATORS.items()},
    **{f"INPLACE_{name}": one("INPLACE", arg=sign) for name, sign in OPERATORS.items()},
}
