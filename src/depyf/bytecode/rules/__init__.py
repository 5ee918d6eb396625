"""Rules that make operations of the instructions of each version: ``rules_for(version)``.

An instruction, with the stack before it, becomes operations of the one set that all versions share::

    3.10: CALL_METHOD 2;  3.11: PRECALL 2, CALL 2;  3.13: CALL 2    ->    CALL (2, ())

:mod:`.common`      instructions that are one operation, as data; functions that versions share
:mod:`.blocks`      3.10 and before: block stack, handlers of six values (3.7 and 3.8 come as 3.9: ``unfold.py``)
:mod:`.modern`      3.11 and later: NULLs, SEND loops; changes of 3.14
"""

from __future__ import annotations

from functools import cache, partial

from ..code import table
from ..operations import UPDATES
from . import blocks, common, modern
from .common import (
    EVERYWHERE,
    LOCALS,
    NAMES,
    OPERATOR_INSTRUCTIONS,
    Rule,
    Rules,
    always,
    applies,
    one,
    suspends,
)

#: Conditional jumps from 3.11 on, by what they test the value on top for.
_BRANCHES: Rules = {
    "TRUE": always(("BRANCH", True)),
    "FALSE": always(("BRANCH", False)),
    "NONE": always(("CONST", None), ("IS", False), ("BRANCH", True)),
    "NOT_NONE": always(("CONST", None), ("IS", False), ("BRANCH", False)),
}

_LOAD_LOCAL: Rule = lambda t, i: common.load_local(t, i.arg)  # noqa: E731
_PUSH_NULL: Rule = lambda t, i: t.stack.append(0)  # noqa: E731
_MAKE_FUNCTION = applies("MAKE_FUNCTION", lambda n: n & 15)

_SHARED: Rules = {
    **EVERYWHERE,
    "NOP": common.nothing,
    "POP_TOP": common.pop_top,
    "LOAD_FAST": _LOAD_LOCAL,
    "LOAD_METHOD": one("LOAD_ATTR", NAMES, hidden=1),  # (function, self) or (NULL, function): one callable both
    "BUILD_MAP": applies("BUILD_MAP"),
    "BUILD_CONST_KEY_MAP": common.build_const_key_map,
    "UNPACK_SEQUENCE": applies("UNPACK"),
    "UNPACK_EX": applies("UNPACK_EX", lambda n: (n & 255, n >> 8)),
    "FORMAT_VALUE": applies("FORMAT", lambda n: (common.CONVERSIONS[n & 3], bool(n & 4))),
    **{kind: common.update(kind) for kind in UPDATES},
    "COMPARE_OP": common.compare_shifted(0),
    "IS_OP": applies("IS", bool),
    "CONTAINS_OP": applies("IN", bool),
    "JUMP_FORWARD": always(("JUMP", None)),
    "JUMP_IF_FALSE_OR_POP": always(("COPY", 1), ("BRANCH", False), ("POP", None)),
    "JUMP_IF_TRUE_OR_POP": always(("COPY", 1), ("BRANCH", True), ("POP", None)),
    "FOR_ITER": common.for_iter,
    "RETURN_VALUE": always(("RETURN", None)),
    "RAISE_VARARGS": applies("RAISE"),
    "MATCH_CLASS": applies("MATCH_CLASS"),
}

_V3_10: Rules = {
    **_SHARED,
    **OPERATOR_INSTRUCTIONS,
    "LOAD_CONST": common.load_const,
    "GEN_START": common.pop_top,
    "JUMP_ABSOLUTE": always(("JUMP", None)),
    "POP_JUMP_IF_TRUE": blocks.branch(True),
    "POP_JUMP_IF_FALSE": blocks.branch(False),
    "DUP_TOP": blocks.dup_top,
    "DUP_TOP_TWO": blocks.dup_top_two,
    **{f"ROT_{name}": blocks.rot(places) for name, places in (("TWO", 2), ("THREE", 3), ("FOUR", 4), ("N", 0))},
    "SETUP_FINALLY": blocks.setup_finally,
    "SETUP_WITH": blocks.setup_with,
    "SETUP_ASYNC_WITH": blocks.setup_async_with,
    "POP_BLOCK": blocks.pop_block,
    "POP_EXCEPT": blocks.pop_except,
    "RERAISE": blocks.reraise,
    "JUMP_IF_NOT_EXC_MATCH": blocks.jump_if_not_exc_match,
    "WITH_EXCEPT_START": blocks.with_except_start,
    "END_ASYNC_FOR": blocks.end_async_for,
    "CALL_FUNCTION": applies("CALL", lambda n: (n, ())),
    "CALL_FUNCTION_KW": blocks.call_function_kw,
    "CALL_METHOD": blocks.call_method,
    "CALL_FUNCTION_EX": applies("CALL_EX", lambda n: bool(n & 1)),
    "MAKE_FUNCTION": blocks.make_function,
    "GET_AWAITABLE": suspends("AWAIT", blocks.yield_from_after),
    "GET_YIELD_FROM_ITER": suspends("YIELD_FROM", blocks.yield_from_after),
    "GET_ANEXT": suspends("GET_ANEXT_AWAIT", blocks.yield_from_after),
    "MATCH_KEYS": blocks.match,
    "MATCH_CLASS": blocks.match,
}

_V3_11: Rules = {
    **_SHARED,
    "RESUME": common.nothing,
    "PRECALL": common.nothing,
    "COPY_FREE_VARS": common.copy_free_vars,
    "MAKE_CELL": modern.make_cell,
    "RETURN_GENERATOR": _PUSH_NULL,  # (popped again by the POP_TOP after it)
    "PUSH_NULL": _PUSH_NULL,
    "COPY": lambda t, i: common.push_copy(t, i.arg),
    "SWAP": common.swap,
    "BINARY_OP": common.binary_op(common.BINARY_OPERANDS),
    "LOAD_GLOBAL": modern.load_global,
    "KW_NAMES": modern.kw_names,
    "CALL": modern.call,
    "CALL_FUNCTION_EX": modern.call_function_ex,
    "MAKE_FUNCTION": _MAKE_FUNCTION,
    "JUMP_BACKWARD": always(("JUMP", None)),
    "JUMP_BACKWARD_NO_INTERRUPT": always(("JUMP", None)),
    "GET_AWAITABLE": suspends("AWAIT", modern.send_loop),
    "GET_YIELD_FROM_ITER": suspends("YIELD_FROM", modern.send_loop),
    "GET_ANEXT": suspends("GET_ANEXT_AWAIT", modern.send_loop),
    "ASYNC_GEN_WRAP": modern.async_gen_wrap,
    "RERAISE": applies("RERAISE"),
    "END_ASYNC_FOR": one("END_ASYNC_FOR"),
}
for _way in ("FORWARD", "BACKWARD"):
    _V3_11 |= {f"POP_JUMP_{_way}_IF_{test}": rule for test, rule in _BRANCHES.items()}

_V3_12: Rules = {
    **_V3_11,
    "LOAD_FAST_CHECK": _LOAD_LOCAL,
    "LOAD_ATTR": modern.load_attr,
    "LOAD_SUPER_ATTR": modern.load_super_attr,
    "LOAD_FROM_DICT_OR_DEREF": common.load_from_dict_or_deref,
    "COMPARE_OP": common.compare_shifted(4),
    "BINARY_SLICE": always(("BUILD_SLICE", 2), ("GETITEM", None)),
    "STORE_SLICE": always(("BUILD_SLICE", 2), ("SETITEM", None)),
    "RETURN_CONST": common.return_const,
    "CALL_INTRINSIC_1": common.intrinsic_1,
    "CALL_INTRINSIC_2": common.intrinsic_2,
    **{f"POP_JUMP_IF_{test}": rule for test, rule in _BRANCHES.items()},
}

_V3_13: Rules = {
    **_V3_12,
    "LOAD_CONST": common.load_const,
    "COMPARE_OP": common.compare_shifted(5),
    "TO_BOOL": common.to_bool,
    "CALL_KW": lambda t, i: modern.finish_call(t, i.arg, t.take_const("the tuple of keyword names")),
    "MAKE_FUNCTION": common.make_function_attributes,
    "CONVERT_VALUE": applies("CONVERT", common.CONVERSIONS.__getitem__),
    "FORMAT_SIMPLE": common.formats(False),
    "FORMAT_WITH_SPEC": common.formats(True),
    **{f"{first}_{second}": common.fused(first, second) for first, second in (
        ("LOAD_FAST", "LOAD_FAST"), ("STORE_FAST", "LOAD_FAST"), ("STORE_FAST", "STORE_FAST"))},
}

_V3_9: Rules = {**_V3_10, "BUILD_TUPLE": blocks.build_tuple}

#: What ``unfold`` makes of 3.7 and 3.8: 3.9, and displays with stars, which those build in one go.
_UNFOLDED: Rules = {
    **_V3_9,
    **{f"BUILD_{name}": applies("BUILD_UNPACK", partial(lambda kind, count: (kind, count), kind)) for name, kind in (
        ("LIST_UNPACK", "list"), ("TUPLE_UNPACK", "tuple"), ("TUPLE_UNPACK_WITH_CALL", "arguments"),
        ("SET_UNPACK", "set"), ("MAP_UNPACK", "dict"), ("MAP_UNPACK_WITH_CALL", "keywords"))},
}

#: Opcode numbers for what ``unfold`` makes: its instructions are those of no version.
UNFOLDED_NUMBERS: dict[str, int] = {name: number for number, name in enumerate(_UNFOLDED)}

_V3_14: Rules = {
    **_V3_13,
    "NOT_TAKEN": common.nothing,
    "POP_ITER": common.pop_top,
    "LOAD_SMALL_INT": applies("CONST"),
    "LOAD_COMMON_CONSTANT": modern.load_common_constant,
    "LOAD_FAST_BORROW": _LOAD_LOCAL,
    "LOAD_FAST_BORROW_LOAD_FAST_BORROW": common.fused("LOAD_FAST", "LOAD_FAST"),
    "BINARY_OP": common.binary_op((*common.BINARY_OPERANDS, ("GETITEM", None))),
    "COPY": modern.copy,
    "BUILD_INTERPOLATION": applies("BUILD_INTERPOLATION", lambda n: (common.CONVERSIONS[n >> 2], bool(n & 1))),
}

_RULES = {(3, 9): _V3_9, (3, 10): _V3_10, (3, 11): _V3_11, (3, 12): _V3_12, (3, 13): _V3_13,
          (3, 14): _V3_14}


#: What can load a cell, where there is none.
_WITHOUT_CELLS: Rules = dict.fromkeys(("LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_BORROW"), one("LOAD_FAST", LOCALS))


@cache
def rules_for(version: tuple[int, int], has_cells: bool = True) -> list[Rule | None]:
    """For each opcode number of ``version`` its rule, or ``None`` (up to 3.8: ``UNFOLDED_NUMBERS``)."""
    if version < (3, 9):
        return [*_UNFOLDED.values(), *([None] * (256 - len(_UNFOLDED)))]
    rules: list[Rule | None] = [None] * 256
    numbers = table(version)
    for name, rule in (_RULES[version] if has_cells else {**_RULES[version], **_WITHOUT_CELLS}).items():
        number = numbers.opcodes.get(name)
        if number is not None:
            rules[number] = rule
    return rules
