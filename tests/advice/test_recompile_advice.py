"""Advice on recompiles, and on numbers that stay tensors, without torch."""

import ast
from dataclasses import replace

import pytest

from depyf.advice import Sources, on_break
from depyf.advice.keys import is_only_key
from depyf.advice.recompile_changes import ValueChange
from depyf.advice.recompile_circumstances import (
    Circumstances,
    FailedGuards,
    FixedSizes,
    OpenSizes,
    VariableUses,
)
from depyf.advice.recompiles import on_change
from depyf.advice.scalars import in_arithmetic
from depyf.advice.uses import lone_tests
from depyf.records.model import (
    CacheEntry,
    Capture,
    CodeText,
    Compilation,
    CompiledFunction,
    CompileId,
    Frame,
    GraphBreak,
    Guard,
    GuardFailure,
    SourceFile,
    SourceLocation,
    SymbolDecision,
    TransformedCode,
    UserFunction,
)
from depyf.views.advice import Adviser
from depyf.views.circumstances.of_run import CircumstancesOfRun
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


@pytest.mark.parametrize("hint", [HINT, ""])
@pytest.mark.parametrize("tested", ["self.calls", ".calls"])
def test_a_counter_that_python_tests_is_no_tensor(tested, hint):
    """The test would break the graph."""
    at = Circumstances(uses=VariableUses(tests={tested: "`m.py:9`"}))
    counted = on_change(ValueChange("self.calls", ("1",), "2", hint=hint, cause="self.calls += 1"), at)
    assert counted.comes_first and "count outside of what is compiled" in counted.text
    assert "tensor" not in counted.text and (SETTING in counted.text) == bool(hint)
    other = on_change(ValueChange("self.calls", ("1",), "2", hint=hint, cause="y = x * self.calls"), at).text
    assert "make the test of it (at `m.py:9`) before the call" in other
    assert "register_buffer" not in other


def test_what_a_library_keeps_is_not_to_be_filled():
    """The state of an optimizer, which its first step makes."""
    change = ValueChange("len(self.state[list(self.state)[0]])", ("0",), "1")
    of_library = on_change(change, Circumstances(in_library=True))
    assert of_library.text == "when it is empty there is a version of its own, one in all"


def test_a_learning_rate_is_to_be_a_tensor():
    """(Tried: with inductor a step of SGD is compiled at each new float, and once with a tensor.)"""
    change = ValueChange("self.param_groups[0]['lr']", ("0.1",), "0.05")
    fixed = on_change(change, Circumstances(in_library=True)).text
    assert fixed.startswith("each of its values has a version") and "`lr=torch.tensor(...)`" in fixed
    opened = on_change(change, Circumstances(in_library=True, open=OpenSizes(ranges={change.subject: ""}))).text
    assert opened.startswith("torch leaves it open since its second value") and "`lr=torch.tensor(...)`" in opened
    assert on_change(ValueChange("self.param_groups[0]['betas'][1]", ("0.1",), "0.05"),
                     Circumstances(in_library=True)) is None


@pytest.mark.parametrize("name", ["['betas'][0]", "['momentum']"])
def test_a_momentum_that_a_scheduler_cycles(name):
    """(As a tensor it would be a number again: ``OneCycleLR`` sets it anew.)"""
    change = ValueChange(f"self.param_groups[0]{name}", ("0.95",), "0.93")
    assert "`cycle_momentum=False`" in on_change(change, Circumstances(in_library=True)).text


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


def test_a_size_that_another_one_fixes():
    """Marked alone it would be an error of torch's; both marked there are two versions, without and with a mask."""
    at = Circumstances(fixed=FixedSizes({"x.shape[2]": "`m.py:8`"}, open_elsewhere={"x.shape[2]": ("mask.shape[1]",)}))
    text = on_change(ValueChange("x.shape[2]", ("10",), "11"), at).text
    assert text.startswith("`mask.shape[1]` has the same value and had not changed yet")
    assert text.endswith("`torch._dynamo.mark_dynamic(x, 2)`, `torch._dynamo.mark_dynamic(mask, 1)`")
    at = Circumstances(fixed=FixedSizes(places=at.fixed.places))
    assert "also with `dynamic=True` (marked as dynamic it can be an error)" in on_change(ValueChange("x.shape[2]", ("10",), "11"), at).text


def test_a_size_of_which_an_expression_is_one_number():
    """Marked it is open, and yet no other size of its kind fits."""
    at = Circumstances(open=OpenSizes(
        ranges={"x.shape[2]": "all sizes from 8 to 24"}, equated={"x.shape[2]": ("x.shape[2] // 4", "`conv.py:1091`")}))
    text = on_change(ValueChange("x.shape[2]", ("16",), "24"), at).text
    assert text.startswith("a version serves one value of `x.shape[2] // 4`, which is asked for at `conv.py:1091`")
    assert "mark_dynamic" not in text


@pytest.mark.parametrize(("cause", "counts"), [
    ("seen[name] = seen.get(name, 0) + 1", True), ("self.seen[name] += len(x)", True),
    ("seen[name] = len(x)", False), ("other[name] = other.get(name, 0) + 1", False),
])
def test_a_count_by_key_that_the_function_changes(cause, counts):
    advice = told("self.seen['a']", ("1",), "2", cause=cause)
    assert advice.comes_first == counts


@pytest.mark.parametrize(("cause", "own", "counts"), [
    ("n += 1", set(), True), ("n = n + 1", set(), True), ("n += 1", {"n"}, False),
    ("x = x * math.exp(-n / 10)", set(), False), ("x = x + 1", set(), False), ("self.n += 1", set(), False),
])
def test_a_variable_that_the_function_changes(cause, own, counts):
    """One of its own begins with what the caller gives."""
    at = Circumstances(uses=VariableUses(own_variables=frozenset(own)))
    advice = on_change(ValueChange("n", ("1",), "2", cause=cause), at)
    assert (advice is not None and "changes it itself" in advice.text) == counts


def test_a_value_of_an_object_that_a_version_leaves_open():
    at = Circumstances(open=OpenSizes(ranges={"self.atol": ""}), failed=FailedGuards(set_once=frozenset({"atol"})))
    text = on_change(ValueChange("self.atol", ("0.1",), "0.2"), at).text
    assert text.startswith("torch leaves it open") and "dynamic=True" in text
    at = Circumstances(failed=FailedGuards(set_once=frozenset({"norm"})))
    assert on_change(ValueChange("self.norm", ("'max'",), "'rms'"), at).text.startswith("only `__init__` sets it")


def test_a_key_that_the_function_itself_sets():
    change = "'a' in self.seen", ("False",), "True"
    assert "set it before the first call" in told(*change, cause="seen[name] = seen.get(name, 0) + 1").text
    assert "passing that spares one" in told(*change, cause="if name in seen:").text


def test_other_hints_of_torchs_are_passed_on():
    assert told("x", ("1",), "2", hint="do this").text == "do this"


def test_a_bound_method_is_found_however_its_key_is_quoted():
    at = Circumstances(uses=VariableUses(calls_in_two_steps={"self.log['a'].append": "first `v`, then `w`"}))
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


@pytest.mark.parametrize("hint", [HINT, ""])
def test_a_whole_number_is_a_tensor_only_where_python_does_not_need_it(hint):
    """(A level up to which blocks are called, in ``range(self.level)``.)"""
    text = told("self.net.level", ("1",), "2", hint=hint, cause="x = x * self.level").text
    assert "where it only meets tensors in arithmetic (as a size, in a `range`, an index or a test it would break the graph)" in text


def test_a_change_without_advice_is_named_beside_advice_on_another():
    """Else one would take the advice to be enough: a scheduler that sets the learning rate and something else."""
    failures = [("x.size()[0]", "4", "6"), ("compute(x)", "2.5", "3.5")]
    again = tuple(Compilation(CompileId(0, number), "f", PLACE, outcome="compiled", guard_failures=(
        GuardFailure(CompileId(0, 0), "", subject, was, now, subject=subject),))
        for number, (subject, was, now) in enumerate(failures, 1))
    run = RunIndex(Capture(compilations=(Compilation(CompileId(0, 0), "f", PLACE, outcome="compiled"), *again)))
    first, last = Adviser(run).on(again)
    assert first.startswith("`x.shape[0]`: mark it dynamic")
    assert last == "that may not be enough: the versions differ in `compute(x)`, too"


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


TENSOR = ("check_tensor(L['{}'], dtype=torch.float32, device='cpu', size={}, stride={}, requires_grad=False)")


def version(number, conditions, *decisions):
    guards = tuple(Guard(text, text[13 : text.index(",")], "TENSOR_MATCH", text) for text in conditions)
    ids = CompileId(0, number)
    entry = CacheEntry(ids, guards, TransformedCode(ids, "f", CodeText("", "exact"), None, ()), ())
    compilation = Compilation(ids, "f", PLACE, outcome="compiled", symbols=tuple(
        SymbolDecision(kind, "s1", "L['x'].size()[1]", "11", location=PLACE) for kind in decisions), guard_failures=(
        (GuardFailure(CompileId(0, 0), "", "L['x']", "10", "11", subject="x.size()[1]"),) if number else ()))
    return entry, compilation


@pytest.mark.parametrize(("last", "expected"), [("created", ("mask.shape[0]",)), ("fixed", None)])
def test_what_fixes_a_size_is_found_where_another_version_leaves_it_open(last, expected):
    held = [TENSOR.format("x", "(8, 11)", "(11, 1)"), TENSOR.format("mask", "(11,)", "(1,)")]
    parts = [version(0, held), version(1, held, "created", "fixed"), version(2, held[:1], "created", last)]
    frame = Frame("f", "f", PLACE, CodeText("", "exact"), False, ("x", "mask"), (), tuple(part[0] for part in parts))
    run = RunIndex(Capture((CompiledFunction("f", (frame,)),), compilations=tuple(part[1] for part in parts)))
    at = CircumstancesOfRun(run).of(parts[1][1])
    assert at.fixed.open_elsewhere == ({"x.shape[1]": expected} if expected else {})


def test_size_one_is_left_unbacked_only_where_nothing_was_tested_on_it():
    change = ValueChange("ids.shape[1]", ("3",), "1")
    assert "mark_unbacked(ids, 1)" in on_change(change, Circumstances()).text
    assert "mark_unbacked" not in on_change(change, Circumstances(open=OpenSizes(tested={"ids.shape[1]"}))).text


def test_a_part_of_an_argument_is_not_marked():
    """It may be `None` before the first call, and `args[0]` has another name there."""
    for subject in ("caches[0].k.shape[1]", "args[0].shape[1]"):
        text = on_change(ValueChange(subject, ("3",), "4"), Circumstances()).text
        assert "mark_dynamic" not in text and "`dynamic=True`" in text


@pytest.mark.parametrize("change", [
    ("f", ("the same code",), "cos at a.py:3"), ("f", ("a function",), "an object of type functools.partial"),
    ("type(f)", ("functools.partial",), "function")])
def test_functions_are_not_to_be_converted(change):
    """Wrapped in another one, a function would be other code again; those of one ``def`` have the same."""
    text = on_change(ValueChange(*change), Circumstances()).text
    assert text.startswith("each function's code has a version of its own") and "`def`" in text
    without = on_change(ValueChange("f", ("a function",), "an object of type NoneType"), Circumstances()).text
    assert without.startswith("calls with it and calls without it")


def test_an_empty_list_is_one_version():
    assert "one in all" in told("len(self.metrics)", ("0",), "").text


def test_what_is_missing_now_and_then_is_told_once():
    """Torch says it in two ways: of the value, and of its type."""
    ways = [("L['mask']", "mask", "None", ""), ("L['mask']", "type(mask)", "a tensor", "NoneType")]
    again = tuple(Compilation(CompileId(0, number), "f", PLACE, outcome="compiled", guard_failures=(
        GuardFailure(CompileId(0, 0), "", source, was, now, subject=subject),))
        for number, (source, subject, was, now) in enumerate(ways, 1))
    run = RunIndex(Capture(compilations=(Compilation(CompileId(0, 0), "f", PLACE, outcome="compiled"), *again)))
    (text,) = Adviser(run).on(again)
    assert text.startswith("`mask`: calls with it and calls without it have a version each, two in all")


def test_a_line_of_several_statements_is_not_written_as_it_is():
    """Which of them broke the graph is not known."""
    text = "def f(v, at):\n    n = v.shape[0]; i = int(at)\n    return v[i:i + n]\n"
    broken = GraphBreak(CompileId(0, 0), "Unsupported Tensor.item() call", registry_id="GB0124",
                        stack=(SourceLocation("m.py", 2, "f", "n = v.shape[0]; i = int(at)"),))
    assert on_break(Sources([SourceFile("m.py", text)]).site(broken)).rule == "capture_scalar_outputs"


def test_the_caller_is_the_function_behind_a_wrapper_that_was_compiled_last_before():
    """Torch keeps the versions of all functions behind a wrapper together: its code is one."""
    wrapper = SourceLocation("m.py", 1, "wrapper")
    call = SourceLocation("m.py", 3, "wrapper", "return function(x)")

    def behind(number, name):
        return Compilation(CompileId(0, number), "wrapper", wrapper, outcome="compiled", user_function=UserFunction(
            name, SourceLocation("m.py", 10 + number, "forward"), (wrapper,)))

    inner = Compilation(CompileId(1, 0), "f", SourceLocation("m.py", 30, "f"), outcome="compiled", stack=(call,))
    run = RunIndex(Capture(compilations=(behind(0, "First.forward"), inner, behind(1, "Second.forward"))))
    assert CircumstancesOfRun(run).of(inner).arguments.made_in == "First.forward"


def test_a_number_that_the_function_counts_and_no_version_leaves_open():
    counting = ValueChange("self.stats['tokens']", ("4",), "5", cause='self.stats["tokens"] += ids.shape[1]')
    advice = on_change(counting, Circumstances())
    assert advice.comes_first
    assert advice.text.startswith('the compiled function changes it itself (`self.stats["tokens"] += ids.shape[1]`)')
    # One that torch leaves open since it changed serves all calls.
    assert not on_change(counting, Circumstances(open=OpenSizes(ranges={"self.stats['tokens']": ""}))).comes_first
    # Another item is set than the one that changed.
    assert not on_change(replace(counting, subject="self.stats['steps']"), Circumstances()).comes_first


def test_a_number_that_is_only_a_key():
    """A tensor in its place would be another key at each call."""
    at = Circumstances(fixed=FixedSizes(places={"self.step": "`m.py:8`"}, keys={"self.step"}))
    text = on_change(ValueChange("self.step", ("1",), "2"), at).text
    assert text.startswith("as a key or index (at `m.py:8`) it is fixed") and "tensor" not in text
    assert "a tensor in place of the number" in on_change(
        ValueChange("self.step", ("1",), "2"), Circumstances(fixed=FixedSizes(places=at.fixed.places))).text


def test_a_number_that_a_test_fixes_becomes_no_tensor():
    at = Circumstances(fixed=FixedSizes(places={"meta.prefill": "`m.py:8`"}, by_tests={"meta.prefill"}))
    text = on_change(ValueChange("meta.prefill", ("2",), "0"), at).text
    assert text.startswith("a version for which the test at `m.py:8` comes out one way has one value of it; compute what")


def test_a_number_that_a_global_name_leads_to_is_passed():
    """Torch holds each such number for fixed, and opens what comes with the arguments, but for those of modules."""
    change = ValueChange("ctx.meta.longest", ("5",), "6", of_global=True)
    text = on_change(change, Circumstances()).text
    assert "pass it to the function as an argument, or what holds it, unless that is an `nn.Module`: where" in text and "make it a tensor" not in text
    tested = on_change(change, Circumstances(uses=VariableUses(tests={".longest": "`m.py:9`"}))).text
    assert tested.endswith("; each outcome of the test of it (at `m.py:9`) has a version then")
    alone = on_change(replace(change, subject="longest"), Circumstances()).text
    assert "pass it to the function as an argument: where" in alone
    length = on_change(replace(change, subject="len(seen)"), Circumstances()).text
    assert "each length has a version" in length and "argument" not in length
    assert "make it a tensor" in on_change(replace(change, was=("0.5",), now="0.25"), Circumstances()).text
    assert "make it a tensor" in on_change(replace(change, of_global=False), Circumstances()).text


@pytest.mark.parametrize(("line", "expected"), [
    ("self.seen[self.step] = x.mean()", True), ("self.counts[(layer, self.step)] += n", True),
    ("for name in self.names[self.step]:", True), ("self.seen[self.step] = self.step", False),
    ("self.seen[self.step + 1] = x", False), ("y = x * self.step", False), ("self.seen[self.step] = f(", False),
])
def test_what_is_only_a_key(line, expected):
    assert is_only_key("scheduler.step", line) == expected


@pytest.mark.parametrize(("lengths", "stays"), [
    (("0", "1", "2", "3", "3"), True), (("0", "1", "2", "3"), False), (("0", "1", "2", "0", "0"), False), ((), False)])
def test_a_length_that_grows_no_more(lengths, stays):
    """A deque with ``maxlen`` is full at last."""
    at = Circumstances(failed=FailedGuards(expected={"len(self.window)": lengths}))
    advice = on_change(ValueChange("len(self.window)", ("0",), "1"), at)
    assert advice.comes_first != stays
    assert ("up to 3, at which it stays in this run" in advice.text) == stays


def test_a_test_beside_which_something_is_computed_stands_not_alone():
    """``if flag: x = x * math.exp(-n)`` fixes ``n``, which the test does not read."""
    tree = ast.parse("if flag: x = f(n)\nif n > 2:\n    x = 1\nwhile (n >\n       3): pass\nwhile n:\n    n -= 1")
    assert [each.lineno for each in lone_tests(tree)] == [2, 6]
