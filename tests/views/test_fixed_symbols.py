"""Which conditions of torch's leave one value of a symbol."""

import pytest

from depyf.records.model import Compilation, CompileId, SourceLocation, SymbolDecision
from depyf.views.dump.guards.conditions import in_words
from depyf.views.fixed_symbols import fixed_symbols, specialized_symbol


@pytest.mark.parametrize(("condition", "symbol"), [
    ("Eq(IntTrueDiv(-s51, 10), -0.1)", "s51"), ("Eq(4*s0, 64)", "s0"), ("Eq(s3 - 1, 2)", "s3"), ("Eq(zf1, 0.5)", "zf1"),
    ("Ne(s51, 1)", ""), ("Eq(PythonMod(s51, 3), 0)", ""), ("Eq(s0, 2*(s0//2))", ""), ("Eq(s0, s1)", ""),
    ("Eq((s0//2), 4)", ""), ("Eq(s0**2, 4)", ""), ("s51 <= 12", ""), ("Eq(Max(1, s0), 1)", "")])
def test_conditions(condition, symbol):
    assert specialized_symbol(condition) == symbol


def test_a_number_that_a_condition_fixes_is_told_with_its_value_and_line():
    line = SourceLocation("m.py", 7, "f")
    made = SymbolDecision("created", "s51", "L['step']", "3", location=SourceLocation("m.py", 5, "f"))
    tested = SymbolDecision("guarded", "Eq(IntTrueDiv(-s51, 10), -0.3)", location=line)
    (fixed,) = fixed_symbols(Compilation(CompileId(0, 1), symbols=(made, tested)))
    assert (fixed.kind, fixed.symbol, fixed.value, fixed.location) == ("fixed", "s51", "3", line)
    assert fixed_symbols(Compilation(CompileId(0, 1), symbols=(made,))) == []


def test_negative_numbers_stand_without_brackets():
    assert in_words("(((-1)*L['step']) / 10) == (-0.1)") == "-step / 10 == -0.1"
