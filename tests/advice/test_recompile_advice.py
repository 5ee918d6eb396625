"""Advice on recompiles, and on numbers that stay tensors, without torch."""

import ast

import pytest

from depyf.advice.recompiles import Circumstances, ValueChange, on_change
from depyf.advice.scalars import in_arithmetic
from depyf.records.model import (
    CacheEntry,
    Capture,
    CodeText,
    Compilation,
    CompiledFunction,
    CompileId,
    Frame,
    GraphBreak,
    GuardFailure,
    SourceFile,
    SourceLocation,
    TransformedCode,
)
from depyf.views.advice import Adviser
from depyf.views.run_index import RunIndex

PLACE = SourceLocation("m.py", 1, "f")

#: As torch 2.13 writes it (``_dynamo/variables/builder.py``).
HINT = ("torch.compile considers integer attributes of the nn.Module to be static. If you are observing recompilation, "
        "you might want to make this integer dynamic using torch._dynamo.config.allow_unspec_int_on_nn_module = True, "
        "or convert this integer into a tensor.")
SETTING = "allow_unspec_int_on_nn_module"


def told(*arguments, **given):
    return on_change(ValueChange(*arguments, **given), Circumstances())


def test_a_counter_of_a_module_comes_first():
    advice = told("self.calls", ("1",), "2", hint=HINT, cause="    self.calls += 1")
    assert advice.comes_first and "`self.calls += 1`" in advice.text and SETTING in advice.text
    assert 'register_buffer("calls", torch.tensor(...)' in advice.text


def test_torchs_setting_is_not_named_where_it_does_not_help():
    """Whole numbers that are reached from a global are held for fixed whatever it says (is_int_specialization_case)."""
    advice = told("model.calls", ("1",), "2", hint=HINT, cause="self.calls += 1", of_global=True)
    assert advice.comes_first and SETTING not in advice.text


def test_a_number_that_the_program_sets_does_not_come_first():
    advice = told("self.level", ("1",), "2", hint=HINT, cause="return x * self.level")
    assert not advice.comes_first and SETTING in advice.text


@pytest.mark.parametrize(("was", "now", "first"), [("1", "2", True), ("2", "1", False), ("a list", "2", False)])
def test_what_grows_comes_first(was, now, first):
    assert told("len(self.log)", (was,), now).comes_first == first


@pytest.mark.parametrize(("was", "now"), [
    ("contiguous", "strides (0, 32, 1)"), ("strides (576, 192, 1)", "contiguous"), ("channels last", "contiguous")])
def test_layouts(was, now):
    assert ".contiguous()" in told("x", (was,), now).text


def test_other_hints_of_torchs_are_passed_on():
    assert told("x", ("1",), "2", hint="do this").text == "do this"


def test_a_bound_method_is_found_however_its_key_is_quoted():
    at = Circumstances(calls={"self.log['a'].append": "first `v`, then `w`"})
    assert on_change(ValueChange('self.log["a"].append', (), "", lasts=False), at).text.endswith("first `v`, then `w`")


@pytest.mark.parametrize(("line", "expected"), [
    ("y = x / x.max().item()", "y = x / x.max().detach()"),
    ("y = (x - x.mean()) / float(x.std())", "y = (x - x.mean()) / x.std().detach()"),
    ("x -= float(x.mean().item())", "x -= x.mean().detach()"),
    ("y = torch.abs(self.x) * torch.max(self.x).item()", "y = torch.abs(self.x) * torch.max(self.x).detach()"),
    ("y = x.abs().max().item() + x[0]", "y = x.abs().max().detach() + x[0]"),
    ("y = -x * x.detach().item()", "y = -x * x.detach()"),
])
def test_a_number_beside_its_tensor_becomes_a_tensor(line, expected):
    assert ast.unparse(in_arithmetic(ast.parse(line))) == expected


@pytest.mark.parametrize("line", [
    "y = x * scale.item()", "y = len(x) * x.max().item()", "y = x.size(0) * x.max().item()", "y = 2 * x.max().item()",
    "y = x.shape[0] * x.max().item()", "y = self.scale * self.x.max().item()", "y = x.max().item() * x.min().item()",
    "y = x / float('inf')", "y = x * int(x.max())", "y = [x, x.max().item()]", "y = x.mul(x.max().item())"])
def test_what_nothing_tells_to_be_a_tensor_is_left(line):
    assert ast.unparse(in_arithmetic(ast.parse(line))) == ast.unparse(ast.parse(line))


def test_what_holds_of_several_things_is_said_once_and_what_comes_first_stands_first():
    failures = [("x.size()[0]", "4", "6"), ("len(L['log'])", "1", "2"), ("len(L['times'])", "2", "3")]
    again = tuple(Compilation(CompileId(0, number), "f", PLACE, outcome="compiled", guard_failures=(
        GuardFailure(CompileId(0, 0), "", subject, was, now, subject=subject),))
        for number, (subject, was, now) in enumerate(failures, 1))
    run = RunIndex(Capture(compilations=(Compilation(CompileId(0, 0), "f", PLACE, outcome="compiled"), *again)))
    first, second = Adviser(run).on(again)
    assert first.startswith("`len(log)`, `len(times)`: each length has a version of its own, and it grows")
    assert second.startswith("`x.shape[0]`: mark it dynamic")


def test_a_resume_function_begins_at_the_break_before_it():
    """Not at the first one of the function."""
    text = "def f(x):\n    print(x)\n    x = x / x.max().item()\n    return x\n"
    breaks = [
        GraphBreak(CompileId(0, 0), "Failed to trace builtin operator", "Dynamo does not know how to trace builtin "
                   "operator `print`", registry_id="GB0059", stack=(SourceLocation("m.py", 2, "f", "print(x)"),)),
        GraphBreak(CompileId(1, 0), "Unsupported Tensor.item() call", registry_id="GB0124",
                   stack=(SourceLocation("m.py", 3, "f", "x = x / x.max().item()"),))]
    names = ["f", "torch_dynamo_resume_in_f_at_2", "torch_dynamo_resume_in_f_at_3"]
    shown = ["f", "__resume_at_10_1", "__resume_at_20_2"]
    compilations = tuple(Compilation(CompileId(number, 0), name, PLACE, outcome="compiled", breaks=tuple(
        breaks[number : number + 1])) for number, name in enumerate(names))
    code = CodeText("", "exact")
    frames = tuple(
        Frame(name, code_name, PLACE, code, False, ("x",), (), (CacheEntry(
            CompileId(number, 0), (), TransformedCode(CompileId(number, 0), name, code, None, ()), (),
            tuple(shown[number + 1 : number + 2])),))
        for number, (name, code_name) in enumerate(zip(shown, names)))
    run = RunIndex(Capture((CompiledFunction("f", frames),), compilations=compilations,
                           sources=(SourceFile("m.py", text),)))
    assert "breaks at `m.py:3`; begin there: write `x = x / x.max().detach()`" in Adviser(run).on_outer_break(
        compilations[2])
    assert "breaks at `m.py:2`" in Adviser(run).on_outer_break(compilations[1])
