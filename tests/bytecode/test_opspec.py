"""Every canonical operation has one row, and what the rows say agrees with what the operations do."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from depyf.bytecode import operations as o
from depyf.bytecode.canonical import canonicalise
from depyf.bytecode.code import SUPPORTED, Code, table
from depyf.bytecode.operations import SPECS, Op, effect
from depyf.bytecode.rules import rules_for
from depyf.decompiler.fallback import rules
from depyf.decompiler.lift import executor

OPERATIONS = [name for name, value in vars(o).items() if name.isupper() and value == name]


def test_every_operation_has_one_row_and_every_row_is_an_operation():
    assert list(SPECS) == OPERATIONS
    text = Path(o.__file__).read_text(encoding="utf-8")
    assert [text.count(f'\n{kind} = row("{kind}", ') for kind in OPERATIONS] == [1] * len(OPERATIONS)


#: Arguments of operations whose effect depends on them, with what they pop and push.
EFFECTS = {
    o.BUILD_TUPLE: (3, (3, 1)), o.BUILD_LIST: (0, (0, 1)), o.BUILD_SET: (2, (2, 1)), o.BUILD_STRING: (2, (2, 1)),
    o.BUILD_SLICE: (3, (3, 1)), o.BUILD_MAP: (2, (4, 1)), o.BUILD_CONST_KEY_MAP: (("a", "b"), (2, 1)),
    o.BUILD_UNPACK: (("list", 2), (2, 1)), o.FORMAT: (("r", True), (2, 1)), o.BUILD_INTERPOLATION: (("", False), (2, 1)),
    o.UNPACK: (3, (1, 3)), o.UNPACK_EX: ((1, 2), (1, 4)), o.CALL: ((1, ("a", "b")), (4, 1)), o.CALL_EX: (True, (3, 1)),
    o.MAKE_FUNCTION: (9, (3, 1)), o.COPY: (2, (2, 3)), o.SWAP: (3, (3, 3)), o.ROT: (3, (3, 3)), o.RAISE: (2, (2, 0)),
    o.RERAISE: (1, (2, 0)),
}


@pytest.mark.parametrize("kind", OPERATIONS)
def test_effects(kind):
    spec = SPECS[kind]
    if callable(spec.effect):
        argument, expected = EFFECTS[kind]
        assert effect(Op(kind, argument)) == expected
    else:
        assert kind not in EFFECTS
        popped, pushed = effect(Op(kind))
        assert (popped, pushed) == spec.effect
        assert spec.keeps <= min(popped, pushed)


def test_terminators():
    assert o.TERMINATORS == {"JUMP", "BRANCH", "FOR_ITER", "RETURN", "RAISE", "RERAISE"}
    assert o.NO_FALL_THROUGH == {"JUMP", "RETURN", "RAISE", "RERAISE"}
    assert o.JUMPS == {"JUMP", "BRANCH", "FOR_ITER"}
    assert o.NO_FALL_THROUGH | o.JUMPS == o.TERMINATORS


def test_what_cannot_raise_looks_nothing_up():
    for kind in o.CANNOT_RAISE:
        assert SPECS[kind].touches not in (o.GLOBALS, o.NAMES), kind
        assert SPECS[kind].observed is not o.READ, kind


#: Operations that a dispatch loop writes where lift cannot: on names that source cannot have, on containers that are in
#: variables, interactive output in another statement; and ends of expressions that structure makes statements of.
LIFTED_OR_NOT = o.UPDATES | {
    o.LOAD_NAME, o.STORE_NAME, o.DELETE_NAME, o.LOAD_GLOBAL, o.STORE_GLOBAL, o.DELETE_GLOBAL, o.LOAD_ATTR, o.STORE_ATTR,
    o.DELETE_ATTR, o.LIST_TO_TUPLE, o.INTRINSIC_1, o.LOAD_ASSERTION_ERROR, o.LOAD_FAST_AND_CLEAR, o.PUSH_EXC_INFO,
    o.POP_EXCEPT, o.CHECK_EXC_MATCH, o.BEFORE_WITH, o.BEFORE_ASYNC_WITH, o.PRINT_EXPR,
}


def test_every_operation_can_be_written_in_the_last_resort():
    known = set(rules.RULES) | set(rules.TEXTS) | set(executor._RULES) & set(OPERATIONS) | o.TERMINATORS
    assert known == set(OPERATIONS), "decompiler/fallback/rules lacks a rule"
    assert not set(rules.TEXTS) & set(executor._RULES) - LIFTED_OR_NOT, "described twice"


#: Operations that become no expression by themselves: what they stand for is found by its shape in the graph.
BY_SHAPE = {
    o.CHECK_EG_MATCH, o.COPY_DICT_WITHOUT_KEYS, o.END_ASYNC_FOR, o.GET_ANEXT_AWAIT, o.GET_LEN, o.MATCH_CLASS,
    o.MATCH_KEYS, o.MATCH_MAPPING, o.MATCH_SEQUENCE, o.PREP_RERAISE_STAR, o.WITH_EXCEPT_START,
}
#: Operations that no source is for: what 3.14 loads where a loop replaces a call.
WITHOUT_SOURCE = {o.LOAD_COMMON_CONSTANT}


def test_every_operation_can_be_lifted():
    lifted = set(executor._RULES) & set(OPERATIONS)
    others = BY_SHAPE | WITHOUT_SOURCE | o.TERMINATORS
    assert lifted | others == set(OPERATIONS), "decompiler/lift lacks a rule"
    assert not lifted & (BY_SHAPE | WITHOUT_SOURCE)


#: Instructions that no rule is for: the instruction before them takes them (a SEND loop), or no code object has them.
TAKEN = {"YIELD_FROM", "SEND", "CLEANUP_THROW", "END_SEND", "END_FOR", "SET_FUNCTION_ATTRIBUTE", "LOAD_SPECIAL"}
NOT_IN_CODE = {"EXTENDED_ARG", "CACHE", "INTERPRETER_EXIT", "RESERVED", "ENTER_EXECUTOR", "EXIT_INIT_CHECK"}


@pytest.mark.parametrize("version", [version for version in SUPPORTED if version >= (3, 9)])
def test_every_instruction_has_a_rule(version):
    """(Those of 3.7 and 3.8 become those of 3.9 before.)"""
    numbers, rules = table(version).opcodes, rules_for(version)
    missing = {name for name, number in numbers.items() if rules[number] is None}
    assert not missing - TAKEN - NOT_IN_CODE, "bytecode/rules lacks a rule"


def test_the_worked_example_of_the_operations():
    def example(a, b):
        return f(a) or b  # noqa: F821

    ops = canonicalise(Code.of(example.__code__)).ops
    shown = re.findall(r"  (\d) ([A-Z].*)", o.__doc__)
    if sys.version_info >= (3, 14):  # (it returns in two places)
        ops = ops[: len(shown)]
    assert [(str(index), repr(op)) for index, op in enumerate(ops)] == shown
