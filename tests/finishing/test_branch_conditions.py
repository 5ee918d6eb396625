"""Which branch a resume function continues."""

import dis
import sys

import pytest

from depyf.bytecode.code import Code
from depyf.finishing.functions import branch_condition

pytestmark = pytest.mark.skipif(sys.version_info < (3, 11), reason="code has no places of expressions")


def one(x):
    if x.sum() > 0:
        return x + 1
    return x - 1


def negated(x):
    if not (x.max() < 5 and x.sum()):
        return x + 1
    return x - 1


def between(x):
    if 0 < x.sum() < 9:
        return x + 1
    return x - 1


def loop(x):
    while x.sum() < 9:
        x = x * 2
    return x


def plain(x):
    y = x.sum().item()
    return y + 1


def given(x, cap=None):
    if cap is not None and x.sum() > cap:
        x = x * 2
    return x + 1


def missing(x, cap=None):
    if cap is None or x.sum() > cap:
        x = x * 2
    return x + 1


def branches(function):
    """What is said of the two resume functions of each branch of a function."""
    code = function.__code__
    known = list(dis.get_instructions(code))
    result = []
    for instruction, after in zip(known, known[1:]):
        if instruction.opcode in dis.hasjrel and "IF" in instruction.opname:
            line = instruction.positions.lineno
            result.append(tuple(branch_condition(Code.of(code), f"__resume_at_{offset}_1", line)
                                for offset in (after.offset, instruction.argval)))
    return result


def test_the_condition_and_whether_it_held():
    assert branches(one) == [(("x.sum() > 0", True), ("x.sum() > 0", False))]


def test_a_test_for_none_is_a_jump_by_itself():
    assert branches(given)[0] == (("cap is not None", True), None)  # (two branches lead to the end)
    assert branches(missing)[0] == (("cap is None", False), None)


def chosen(x, cap=None):
    if (cap is not None) is None:
        return x
    return x + 1


def test_only_the_comparison_itself_decides_what_a_jump_tests():
    assert branches(chosen) == [(("(cap is not None) is None", True), ("(cap is not None) is None", False))]


def test_within_a_branch():
    """Another break on the line of the condition."""
    known = list(dis.get_instructions(one.__code__))
    line = one.__code__.co_firstlineno + 1
    added, taken = (next(each.offset for each in known if each.opname.startswith("BINARY") and each.argrepr == sign)
                    for sign in "+-")
    assert branch_condition(Code.of(one.__code__), f"__resume_at_{added}_2", line) == ("x.sum() > 0", True)
    assert branch_condition(Code.of(one.__code__), f"__resume_at_{taken}_3", line) == ("x.sum() > 0", False)


def joined(x, g, h):
    return h(x.sum() > 0 and g(x), g(x))


def test_where_branches_meet_nothing_is_told():
    code = joined.__code__
    last = [each.offset for each in dis.get_instructions(code) if each.opname in ("CALL", "PRECALL")][-1]
    assert branch_condition(Code.of(code), f"__resume_at_{last}_1", code.co_firstlineno + 1) is None


def test_the_operand_that_broke():
    both = {each for pair in branches(negated) for each in pair}
    # (Where two conditions lead to one place, none is told.)
    assert both == {("x.max() < 5", True), ("x.sum()", True), None}


def test_a_part_of_a_comparison_is_not_told():
    assert {each for pair in branches(between) for each in pair} == {None}


def test_a_loop():
    assert (("x.sum() < 9", True), ("x.sum() < 9", False)) in branches(loop)


def test_no_branch():
    code = plain.__code__
    for instruction in dis.get_instructions(code):
        assert branch_condition(Code.of(code), f"__resume_at_{instruction.offset}_1", code.co_firstlineno + 1) is None
    assert branch_condition(Code.of(code), "f", 1) is None
