"""Which expressions of the user's lie on the stack at a graph break."""

import dis
import sys

import pytest

from depyf.bytecode.code import Code
from depyf.bytecode.linetable import Position
from depyf.finishing.stack_values import expressions_on_stack, text_at

pytestmark = pytest.mark.skipif(sys.version_info < (3, 11), reason="code has no places of expressions")


def conditional(t, i):
    n = t[i].item() if i < len(t) else -1
    return n


def in_either_branch(t, u):
    n = t.item() if t.ndim == 0 else u.item()
    return n


def within_a_call(t, log):
    log.append(t.sum().item())


def resumed(___stack0, ___stack1, labels):
    return ___stack0(___stack1, labels.item())


def after_a_call(function, method, given=()):
    """What is on the stack where a function goes on behind the last call of a method, as Dynamo does: jumps followed."""
    code = function.__code__
    known = list(dis.get_instructions(code))
    loads = next(at for at, each in enumerate(known) if each.argval == method and each.opname.startswith("LOAD_"))
    call = next(at for at in range(loads, len(known)) if known[at].opname == "CALL")
    after = next(each for each in known[call + 1 :] if each.opname != "CACHE")
    offset = after.argval if after.opname == "JUMP_FORWARD" else after.offset
    return expressions_on_stack(Code.of(code), f"__resume_at_{offset}_1", given)


def test_within_an_expression():
    assert after_a_call(within_a_call, "item") == ("log.append", "t.sum().item()")


def by_a_pair(t, u, seen):
    return seen[t, u].add(t.item())


def test_what_a_subscript_makes_one_of_is_in_parentheses():
    """That of ``seen[t, u]`` is one value, and reads like two without them."""
    code = by_a_pair.__code__
    place = next(each.positions for each in dis.get_instructions(code) if each.opname == "BUILD_TUPLE")
    assert text_at(code.co_filename, Position(place.lineno, place.end_lineno, place.col_offset, place.end_col_offset)) \
        == "(t, u)"


def test_branch_of_a_conditional_expression():
    """Another branch that only loads a constant leads to the same place, but no graph breaks there."""
    assert after_a_call(conditional, "item") == ("t[i].item()",)


def test_a_break_in_either_branch():
    """It is not known which branch broke, where one assignment serves both."""
    assert after_a_call(in_either_branch, "item") in [(), ("t.item()",)]


def test_what_a_resume_function_was_given_keeps_its_name():
    given = ("F.cross_entropy", "logits[mask]")
    assert after_a_call(resumed, "item", given) == (*given, "labels.item()")
    assert after_a_call(resumed, "item") == ("", "", "labels.item()")
