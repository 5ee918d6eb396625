"""Which conditions of torch's leave one value of a symbol."""

import pytest
from guards_for_tests import symbol, version

from depyf.model.reading import typed
from depyf.records.model import Compilation, CompileId, Guard, SourceLocation, SymbolDecision
from depyf.views.dump.guards.sizes import condition_in_words, fixed_symbols, holds, specialized_symbol


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
    (fixed,) = fixed_symbols(Compilation(CompileId(0, 1), symbols=(made, tested)), None)
    assert (fixed.kind, fixed.symbol, fixed.value, fixed.location) == ("fixed", "s51", "3", line)
    assert fixed_symbols(Compilation(CompileId(0, 1), symbols=(made,)), None) == []


def test_an_equation_that_the_guards_do_not_have_fixes_nothing():
    """A backend tested it, for the backward graph."""
    made = symbol("s89", "L['x'].size()[0]")
    tested = SymbolDecision("guarded", "Eq(20*s89, 660)")
    guards = [Guard("check_tensor(L['x'], dtype=torch.float32, device='cpu', size=(None, 4), stride=(4, 1), "
                    "requires_grad=False)", "L['x']", "TENSOR_MATCH", ""),
              Guard("2 <= L['x'].size()[0]", "", "SHAPE_ENV", "")]
    compilation = Compilation(CompileId(0, 1), symbols=(made, tested))
    assert fixed_symbols(compilation, version(guards, "x", symbols=[made])) == []
    assert not holds(tested, compilation, version(guards, "x", symbols=[made]))
    assert holds(SymbolDecision("guarded", "Eq(s89, s90)"), compilation, version(guards, "x", symbols=[made]))
    guards.append(Guard("20*L['x'].size()[0] == 660", "", "SHAPE_ENV", ""))
    (fixed,) = fixed_symbols(compilation, version(guards, "x", symbols=[made]))
    assert fixed.symbol == "s89"


def test_a_size_that_is_equal_to_an_open_one_is_open():
    """The equation in the guards is of two sizes; that with a number is of a backend, for its backward graph."""
    made = [symbol("s24", "L['x'].size()[0]"), symbol("s20", "L['y'].size()[0]")]
    check = "check_tensor(L['{}'], dtype=torch.float32, device='cpu', size=(None, 4), stride=(4, 1), requires_grad=False)"
    guards = [Guard(check.format("x"), "L['x']", "TENSOR_MATCH", ""), Guard(check.format("y"), "L['y']", "TENSOR_MATCH", ""),
              Guard("L['y'].size()[0] == L['x'].size()[0]", "", "SHAPE_ENV", "")]
    tested = [SymbolDecision("guarded", "Eq(s20*s24, 576)"), SymbolDecision("guarded", "Eq(20*s20, 480)")]
    compilation = Compilation(CompileId(0, 1), symbols=(*made, *tested))
    assert fixed_symbols(compilation, version(guards, "x", "y", symbols=made)) == []
    assert not any(holds(each, compilation, version(guards, "x", "y", symbols=made)) for each in tested)
    guards.append(Guard("20*L['x'].size()[0] == 480", "", "SHAPE_ENV", ""))
    (fixed,) = fixed_symbols(compilation, version(guards, "x", "y", symbols=made))
    assert fixed.symbol == "s20"


def test_negative_numbers_stand_without_brackets():
    assert typed("(((-1)*L['step']) / 10) == (-0.1)").text == "-step / 10 == -0.1"


@pytest.mark.parametrize("decided, guarded", [
    ("s17 - s77 + 4 < 100", "L['y'].size()[0] + 4 + -1*L['x'].size()[0] < 100"),
    ("64 - Max(0, 64 - s77) <= s17", "-1*max(0, -1*L['x'].size()[0] + 64) + 64 <= L['y'].size()[0]"),
    ("Ne(PythonMod(s77, 2), 0)", "L['x'].size()[0] % 2 != 0"), ("2*s77 <= 9", "2*L['x'].size()[0] <= 9")])
def test_a_condition_reads_alike_in_the_index_and_in_the_guards(decided, guarded):
    compilation = Compilation(CompileId(0, 0), symbols=(
        symbol("s77", "L['x'].size()[0]"), symbol("s17", "L['y'].size()[0]")))
    assert condition_in_words(symbol(decided, "", "guarded"), compilation, {}) == typed(guarded).text


def test_a_difference_in_a_condition_is_in_brackets():
    compilation = Compilation(CompileId(0, 0), symbols=(
        symbol("s3", "L['___stack0']"), symbol("s84", "L['___stack1']"), symbol("s5", "L['x'].size()[0]")))
    names = {"___stack0": "x1", "___stack1": "x0 - int(box[0])"}
    texts = [condition_in_words(symbol(each, "", "guarded"), compilation, names)
             for each in ("Ne(s3 - s84, 1)", "s84 + s3 <= s5", "s5 <= 4096")]
    assert texts == ["x1 - (x0 - int(box[0])) != 1", "x1 + (x0 - int(box[0])) <= x.shape[0]", "x.shape[0] <= 4096"]


@pytest.mark.parametrize("source, size", [
    ("dict.__getitem__(L['out'], list(dict.keys(L['out']))[0]).size()[1]", "list(out.values())[0].shape[1]"),
    ("L['a, b'].size()[1]", "L['a, b'].shape[1]")])
def test_a_source_with_a_comma_is_whole_in_a_condition(source, size):
    compilation = Compilation(CompileId(0, 0), symbols=(symbol("s1", f"{source}, L['y'].size()[1]"),))
    assert condition_in_words(symbol("Ne(s1, 4)", "", "guarded"), compilation, {}) == f"{size} != 4"
