"""Advice on recompiles, without torch."""

import dataclasses

import pytest

from depyf.advice.recompiles import ROWS, Facts, ValueChange, event_of, on_change, proposals
from depyf.advice.source import Sources
from depyf.records.model import (
    CacheEntry,
    Capture,
    CodeText,
    Compilation,
    CompiledFunction,
    CompileId,
    Failure,
    Frame,
    GraphBreak,
    Guard,
    GuardFailure,
    SourceFile,
    SourceLocation,
    SymbolDecision,
    TransformedCode,
)
from depyf.torch_text.guard_failures import guard_failures
from depyf.views.advice import Adviser
from depyf.views.changes import row
from depyf.views.run_index import RunIndex
from depyf.views.verdict import why_plain

PLACE = SourceLocation("m.py", 1, "f")
OPENED = (SymbolDecision("created", "s1", "L['x'].size()[0]", "10"),)


@pytest.mark.parametrize(("change", "event"), [
    (("x.shape[0]", ("4",), "6"), "size"), (("len(self.log)", ("1",), "2"), "length"),
    (("x.stride(0)", ("1",), "2"), "layout"), (("x", ("contiguous",), "strides (1, 2)"), "layout"),
    (("'mask' in batch", ("False",), "True"), "key"), (("x.requires_grad", ("False",), "True"), "constant"),
    (("x.dtype", ("torch.float32",), "torch.float16"), "constant"), (("self.training", ("True",), "False"), "constant"),
    (("torch.is_grad_enabled()", ("True",), "False"), "state"),
    (("torch.is_grad_enabled(), torch.is_autocast_enabled('cpu')", ("True, False",), "False, True"), "state"),
    (("torch.are_deterministic_algorithms_enabled()", ("False",), "True"), "state"),
    (("n", ("3",), "4"), "number"), (("scale", ("0.5",), "1e-05"), "number"), (("mode", ("'sum'",), "'mean'"), "constant"),
    (("next(steps)", ("3",), ""), "constant"),
    (("device", ("'cpu'", "None"), "an object of type device"), "constant"), (("gamma", ("5.0", "None"), "3.0"), "number"),
    (("mask", ("None",), "an object of type Tensor"), "none"), (("type(mask)", ("a tensor",), "NoneType"), "none"),
    (("f", ("the same code",), "cos at a.py:3"), "function"), (("type(x)", ("list",), "tuple"), "constant"),
    (("type(x)", ("the same type of dict",), "int"), "constant"),
    (("cfg", ("the same object",), "another object"), "object"), (("p.grad", ("the same object",), "gone"), "object"),
    (("the marked dimensions of a tensor (dynamic)", ("{0}",), "{1}"), "marks"), (("kind", ("Kind.A",), "Kind.B"), "constant"),
    (("self.lora", ("there",), "missing"), "attribute"), (("mask", ("there",), "missing"), "key"), (("flag", ("True",), "False"), "constant"),
    (("n % 2", ("not 0",), "0"), "arithmetic"), (("n >= 0 and n <= 4", ("True",), "False"), "condition"), (("-1 * step / 10", ("-0.1",), ""), "arithmetic"), (("seen", ("{1}",), "{1, 2}"), "constant"),
    (("self.best", ("inf",), "an object of type Tensor"), "constant"),
    # (`dynamic=True` leaves neither of them open at first.)
    (("scale", ("inf",), "2.0"), "constant"), (("scale", ("2.0",), "-inf"), "constant"),
    (("a guard could not be evaluated: 'x'", ("",), ""), ""), (("n", ("",), ""), "")])
def test_events(change, event):
    assert event_of(ValueChange(*change)) == event


def test_each_event_of_the_table_exists():
    """A name that no change has would make a row that never applies."""
    known = {"bound-method", "size", "number", "constant", "arithmetic", "condition", "none", "key", "keywords", "attribute", "function",
             "object", "length", "layout", "view", "state", "marks"}
    assert {event for row in ROWS for event in row.events.split()} == known


SIZE, NUMBER = ValueChange("x.shape[0]", ("4",), "6"), ValueChange("n", ("3",), "4")


@pytest.mark.parametrize(("change", "facts", "begins"), [
    (SIZE, Facts(is_open=True), "a later version leaves it open; whether `dynamic=True`"),
    (NUMBER, Facts(is_open=True), "a later version leaves it open; whether `dynamic=True`"),
    # (Torch asks this of any two objects, not of tensors alone.)
    (ValueChange("state is self.last", ("True",), "False"), Facts(), "each version that looks at it is for one outcome"),
    # (It is set already.)
    (SIZE, Facts(is_open=True, dynamic="True"), "a later version leaves it open"),
    (ValueChange("scale", ("inf",), "1.0"), Facts(is_open=True), "a later version leaves it open"),
    (ValueChange("i", ("0",), "an object of type slice"), Facts(is_open=True), "each version that looks at it is for one of its"),
    # (A size that torch does not say.)
    (ValueChange("t.shape[0]", ("2 or more",), ""), Facts(is_open=True), "a version is for some of its values only"),
    (SIZE, Facts(fixed_at="`m.py:8`"), "what is computed with it (or with a size that was equal to it), or tested of it, at `m.py:8` fixes it"),
    (NUMBER, Facts(fixed_at="`m.py:8`"), "what is computed with it, or tested of it, at"),
    (ValueChange("n", ("0.2",), ""), Facts(is_open=True), "a later version leaves it open; whether `dynamic=True`"),
    (ValueChange("self.best", ("inf",), "an object of type Tensor"), Facts(), "each version that looks at it is for one of its values, or for one type"),
    (SIZE, Facts(fixed_at="`m.py:8`", is_open=True), "some versions leave it open; others are for one value each"),
    (SIZE, Facts(fixed_at="`m.py:8`", is_open=True, dynamic="True"), "some versions leave it open; others are for one value each"),
    (ValueChange("x.shape[0]", ("2 or more",), "1"), Facts(fixed_at="`m.py:8`", is_open=True), "torch compiles a ver"),
    (SIZE, Facts(of_parameter=True, is_open=True), "a later version leaves it open; whether `dynamic=True`"),
    (SIZE, Facts(of_parameter=True), "torch keeps the sizes of parameters fixed, whatever is marked"),
    (SIZE, Facts(dynamic="False"), "`dynamic=False` is set, so a version is for one size"),
    (ValueChange("x.shape[0]", ("2", "1"), "4"), Facts(dynamic="False"), "`dynamic=False` is set"),
    (ValueChange("x.shape[0]", ("1",), "2"), Facts(dynamic="False"), "`dynamic=False` is set, so a version"),
    (SIZE, Facts(dynamic="False", is_open=True), "a later version leaves it open"),
    (ValueChange("x.shape[0] % 8", ("not 0",), "0"), Facts(), "a version is for some of its values only"),
    (ValueChange("x.shape[0] % 8 == 0", ("True",), "False"), Facts(), "each version that looks at it is for one outcome of it"),
    (ValueChange("self.head.bias.shape[0]", ("3",), "1"), Facts(of_parameter=True), "torch compiles a version"),
    (ValueChange("mask", ("None",), "an object of type Tensor"), Facts(), "each version that looks at it is for calls with it, or"),
    (ValueChange("top_k", ("2",), "None"), Facts(), "each version that looks at it is for one of its values, or for one type"),
    # (The first version for a number is for that one, also where a later one leaves it open.)
    (ValueChange("top_k", ("None",), "2"), Facts(is_open=True), "each version that looks at it is for one of its values, or for one type"),
    (ValueChange("x.shape[0]", ("2 or more",), "1"), Facts(is_open=True), "torch compiles a version of its own"),
    (ValueChange("x.shape[0]", ("at most 8",), "9"), Facts(is_open=True), "a version is for some of its values only"),
    (ValueChange("max(0, 4 - x.shape[2])", ("not 0", "8"), "0"), Facts(), "a version is for some of its values only"),
    (ValueChange("self.step", ("1", "None"), "2"), Facts(is_open=True), "a later version leaves it open; "
     "whether `dynamic=True`"),
    (ValueChange("self.n", ("1",), "2", owner="module"), Facts(numbers=(0, 1, 2)), "torch fixes a whole number that it reaches through a module"),
    (ValueChange("n", ("1",), "2", of_global=True), Facts(numbers=(0, 1, 2)), "torch fixes a whole number"),
    # (Of two values the second is open in vain.)
    (ValueChange("self.n", ("1",), "2", owner="module"), Facts(numbers=(1, 2)), "each version that looks at it is for one of its"),
    (ValueChange("n", ("1",), "2", of_global=True), Facts(numbers=(1, 2)), "each version that looks at it is for one of its"),
    (NUMBER, Facts(), "each version that looks at it is for one of its values"),
    # (A gradient is another tensor after each `zero_grad()`.)
    (ValueChange("p.grad", ("the same object",), "gone"), Facts(), "a version that compares the object itself serves no call"),
    (ValueChange("len(log)", ("2",), "3"), Facts(numbers=(1, 2, 3)), "each version that looks at it is for a greater length than the one before (1 → 2 → 3)"),
    (ValueChange("len(log)", ("0",), "1"), Facts(numbers=(0,)), "each version that looks at it is for one length, or for whether"),
    # (The length of an object, which its `__len__` computes of sizes.)
    (ValueChange("len(batch)", ("8",), "12"), Facts(is_open=True), "a later version leaves it open; whether `dynamic=True`"),
    # (A line that fixes the size in the new version is not why the version for size 1 does not serve.)
    (ValueChange("x.shape[1]", ("1",), "3"), Facts(fixed_at="`m.py:8`"), "torch compiles a version of its own for size 0"),
    (ValueChange("len(log)", ("2",), "1"), Facts(numbers=(2, 1)), "each version that looks at it is for one length"),
    # (The strides that a version leaves open serve other layouts, too.)
    (ValueChange("x.stride(1)", ("1",), "2"), Facts(), "each version that looks at it is for one layout, or for some strides"),
    # (Torch may name the object of which it did not find an attribute.)
    (ValueChange("self.lora", ("there",), "any __main__.Lora"), Facts(), "a version reads it, or an attribute of it, from where"),
    # (A version that torch.fx.experimental._config.backed_size_oblivious, or a mark, lets serve size 0 and 1.)
    (ValueChange("x.shape[0]", ("4",), "1"), Facts(is_open=True, serves_small=True), "a later version leaves it open; whether `dynamic=True`"),
    (SIZE, Facts(is_open=True, ranges="4 to 7, 8 to 11"), "versions that leave it open are for a range of its values"),
    (ValueChange("torch.is_grad_enabled()", ("True",), "False"), Facts(), "a version is for one state"),
])
def test_sentences(change, facts, begins):
    said = on_change(change, facts)
    text = said.change
    assert text.startswith(begins) and "{" not in text
    assert said.is_change == ("config" in text or "dynamic=True" in text or "an argument of" in text)
    assert ("`dynamic=True` in" in text) == ("; whether `dynamic=True`" in begins)


def test_without_facts_a_size_has_no_advice():
    assert on_change(SIZE, Facts()) is None


def test_a_value_that_torch_does_not_say_has_advice_only_where_a_version_leaves_it_open():
    assert on_change(ValueChange("n", ("0.2",), ""), Facts()) is None


def test_all_parts_of_torchs_state_that_changed():
    (failure,) = guard_failures("0/0: GLOBAL_STATE changed: grad_mode allow_tf32")
    assert failure.subject == "torch.is_grad_enabled(), allow tf32"
    assert event_of(ValueChange(failure.subject, (), "")) == "state"


@pytest.mark.parametrize(("reason", "begins"), [
    ("___normalize_count_iter(G['_step']) == (0, 1)", "each version that looks at it is for one of its values"),
    ("___normalize_range_iter(f(x)) == (1, 8, 1)", "each version that looks at it is for one of its values")])
def test_where_an_iterator_is(reason, begins):
    (failure,) = guard_failures(f"0/0: {reason}")
    change = ValueChange(failure.subject.replace("G['_step']", "_step"), (failure.expected,), failure.seen)
    assert failure.expected in "01" and on_change(change, Facts()).change.startswith(begins)


@pytest.mark.parametrize(("reason", "subject", "was", "now"), [
    ("_dynamo_dynamic_indices not a subset: runtime {1} is not a subset of compiled {0}", " (dynamic)", "{0}", "{1}"),
    ("_dynamo_weak_dynamic_indices should be absent but is present on runtime tensor", " (weak dynamic)", "no dimension", "at least one"),
    ("_has_dynamo_dim_marking is present on runtime tensor but was absent at compile time", "", "no dimension", "at least one")])
def test_marks_that_a_version_was_not_compiled_with(reason, subject, was, now):
    (failure,) = guard_failures(f"0/0: {reason}")
    assert (failure.subject, failure.expected, failure.seen) == (f"the marked dimensions of a tensor{subject}", was, now)
    said = on_change(ValueChange(failure.subject, (failure.expected,), failure.seen), Facts()).change
    assert said == "a version serves calls with the same marks or fewer"


def test_what_was_numpys_is_not_said_to_be_a_tensor():
    (failure,) = guard_failures("0/0: expected type of '___from_numpy(weight)' to be a tensor type, ' but found <class 'float'>")
    assert (failure.subject, failure.expected, failure.seen) == ("type(weight)", "one of NumPy's", "float")


def test_infinity_is_a_value():
    (failure,) = guard_failures("0/0: L['self'].best == inf")
    assert (failure.subject, failure.expected) == ("L['self'].best", "inf")


@pytest.mark.parametrize("change", [
    ("n", ("3",), "4"), ("mode", ("'a'",), "'b'"), ("flag", ("True",), "False"), ("scale", ("0.5",), "0.25")])
def test_no_value_is_to_become_a_tensor(change):
    """As an index, a key, an exponent, in a `range` or in a test that would raise an error or break the graph."""
    assert "tensor" not in on_change(ValueChange(*change), Facts()).change


@pytest.mark.parametrize(("reason", "owner"), [
    ("0/0: tensor 'v' size mismatch at index 0. expected 128, actual 256. Guard failed on a parameter, consider using "
     "torch._dynamo.config.force_parameter_static_shapes = False to allow dynamism on parameters.", "parameter"),
    ("0/0: tensor 'v' size mismatch at index 0. expected 128, actual 256", ""),
    ("0/0: self.n == 1 (HINT: torch.compile considers integer attributes of the nn.Module to be static. If you are "
     "observing recompilation, ...)", "module")])
def test_what_torch_says_that_a_value_belongs_to(reason, owner):
    (failure,) = guard_failures(reason)
    assert failure.owner == owner and (failure.expected, failure.seen)[0] in ("128", "1")


def test_a_constraint_that_is_violated():
    """The line that fixes the size, and what raises no error. (The line may take other sizes of tensors that are marked.)"""
    at = SourceLocation("m.py", 13, "forward", "return h + self.per_layer")
    failed = Compilation(
        CompileId(0, 0), "f", PLACE, outcome="failed", failure=Failure("ConstraintViolationError", "Constraints ..."),
        symbols=(SymbolDecision("created", "s1", "L['ids'].size()[0]", "8"),
                 SymbolDecision("fixed", "s1", "L['ids'].size()[0]", "8", location=at)))
    (text,) = Adviser(RunIndex(Capture(compilations=(failed,)))).on_lost(failed)
    assert text.startswith("`ids.shape[0]` is marked as dynamic, and what is computed with it at `m.py:13` fixes it at 8")
    assert "`torch._dynamo.maybe_mark_dynamic`" in text and "change that line" not in text


def test_a_constraint_whose_bounds_are_divided():
    """A mark without bounds raises no error where the code tests the size."""
    at = SourceLocation("m.py", 12, "ranged", "if x.shape[0] > 6:")
    failed = Compilation(
        CompileId(0, 0), "f", PLACE, outcome="failed", failure=Failure("ConstraintViolationError", "Constraints ..."),
        symbols=(SymbolDecision("created", "s77", "L['x'].size()[0]", "9"), SymbolDecision("guarded", "s77 > 6", location=at)))
    (text,) = Adviser(RunIndex(Capture(compilations=(failed,)))).on_lost(failed)
    assert text.startswith("`x.shape[0]` is marked as dynamic with `min` or `max`, and what torch traced at `m.py:12`")


def again(*failures):
    """Return recompiles of one function, with the first compilation before them."""
    first = Compilation(CompileId(0, 0), "f", PLACE, outcome="compiled")
    return (first, *(Compilation(CompileId(0, number), "f", PLACE, outcome="compiled", guard_failures=(
        GuardFailure(CompileId(0, 0), "", source, was, now, subject=subject),))
        for number, (source, subject, was, now) in enumerate(failures, 1)))


def test_what_most_recompiles_are_for_comes_first_and_is_said_once():
    members = again(("L['flag']", "flag", "None", "an object of type Tensor"), ("L['a']", "a", "'x'", "'y'"), ("L['b']", "b", "'x'", "'y'"))
    first, second = Adviser(RunIndex(Capture(compilations=members))).on(members)
    assert first.startswith("`a`, `b`: each version that looks at it is for one of its values")
    assert second.startswith("`flag`: each version that looks at it is for calls with it, or for calls without it")


def test_of_several_reasons_it_is_that_of_the_version_that_serves_most():
    """A version that leaves a size open does not refuse a call for its value."""
    size = ("L['x']", "x.size()[0]", "4", "6")
    first, second = again(size)
    second = dataclasses.replace(second, symbols=(SymbolDecision("created", "s1", "L['x'].size()[0]", "6"),))
    third = Compilation(CompileId(0, 2), "f", PLACE, outcome="compiled", guard_failures=tuple(
        GuardFailure(CompileId(0, entry), "", source, was, now, subject=subject) for entry, source, subject, was, now in (
            (0, "L['x']", "x.size()[0]", "4", "8"), (1, "L['x']", "x.requires_grad", "True", "False"))))
    members = (first, second, third)
    texts = Adviser(RunIndex(Capture(compilations=members))).on(members)
    assert [text.partition(":")[0] for text in texts] == ["`x.shape[0]`", "`x.requires_grad`"]


GRAD, AUTOCAST = "torch.is_grad_enabled()", "torch.is_autocast_enabled('cpu')"


@pytest.mark.parametrize(("versions", "first"), [
    # (One class's `forward` for objects of two: a version for each size of each, until one leaves the size open.)
    ([[(0, "type(model)", "Net", "Wide")], [(1, "type(model)", "Wide", "Net"), (0, "x.size()[0]", "4", "6")],
      [(2, "type(model)", "Net", "Wide"), (1, "x.size()[0]", "4", "6"), (0, "type(model)", "Net", "Wide")]], "x.shape[0]"),
    ([[(0, "past", "None", "an object of type tuple")], [(1, "type(past)", "tuple", "NoneType"), (0, "heads", "6", "9")]], "heads"),
    ([[(0, "past", "None", "an object of type Tensor")], [(1, "type(past)", "a tensor", "NoneType"), (0, "heads", "6", "9")],
      [(2, "past", "None", "an object of type Tensor"), (1, "mode", "'a'", "'b'"), (0, "past", "None", "an object of type Tensor")]],
     "mode"),
    # (Which function or object a version is for is not known.)
    ([[(0, "f", "the same code", "g at m.py:3")], [(1, "mode", "'a'", "'b'"), (0, "f", "the same code", "g at m.py:3")]], "mode"),
    ([[(0, "hook", "None", "an object of type Hook")], [(1, "hook", "the same object", "an object of type Hook"),
                                                       (0, "heads", "6", "9")]], "hook"),
    ([[(0, GRAD, "True", "False")], [(1, f"{GRAD}, {AUTOCAST}", "False, False", "True, True"), (0, AUTOCAST, "False", "True")]],
     AUTOCAST)])
def test_what_an_earlier_version_takes_is_not_what_changed(versions, first):
    """Each version names the guard of its own that failed first: the call may have what another one takes."""
    opened = (SymbolDecision("created", "s1", "L['x'].size()[0]", "6"),)
    members = [Compilation(CompileId(0, 0), "f", PLACE, outcome="compiled")] + [
        Compilation(CompileId(0, number), "f", PLACE, outcome="compiled", symbols=opened * (number == 2), guard_failures=tuple(
            GuardFailure(CompileId(0, entry), "", subject, was, now, subject=subject) for entry, subject, was, now in failures))
        for number, failures in enumerate(versions, 1)]
    limit = dataclasses.replace(members[-1], outcome="limit")
    for last in (members[-1], limit):
        run = RunIndex(Capture(compilations=(*members[:-1], last)))
        assert run.changes(last)[0].subject == first
    assert f"(`{first}`" in why_plain(run, limit)


def test_what_another_torch_compile_leaves_open_is_not_open_with_dynamic_false():
    """One function in two calls of ``torch.compile`` has its versions in one list."""
    first, second, third = again(("L['x']", "x.size()[0]", "4", "6"), ("L['x']", "x.size()[0]", "4", "8"))
    fixed = [dataclasses.replace(each, arguments={"dynamic": "False"}) for each in (first, third)]
    free = dataclasses.replace(second, arguments={"dynamic": "True"}, symbols=OPENED)
    (said, *_) = Adviser(RunIndex(Capture(compilations=(fixed[0], free, fixed[1])))).on([fixed[1]])
    assert said == "`x.shape[0]`: `dynamic=False` is set, so a version is for one size"


def test_versions_with_the_value_that_a_change_names_come_first():
    """Of a number and ``None`` it names the number."""
    failures = tuple(GuardFailure(CompileId(0, entry), "", "L['top_k']", was, "3", subject="top_k") for entry, was in (
        (2, "None"), (1, "2")))
    mode = GuardFailure(CompileId(0, 0), "", "L['mode']", "'a'", "'b'", subject="mode")
    last = Compilation(CompileId(0, 3), "f", PLACE, outcome="compiled", guard_failures=(*failures, mode))
    assert row(RunIndex(Capture(compilations=(last,))).changes(last)).startswith(
        "`top_k`: 2 → 3 (of `[0/1]`; `None` in `[0/2]`); ")


@pytest.mark.parametrize(("outcome", "said"), [
    ("compiled", ["`scale`: a later version leaves it open"]), ("failed", [])])
def test_a_compilation_that_fails_is_no_version_to_advise_on(outcome, said):
    first, second = again(("L['scale']", "scale", "1.0", "0.5"))
    second = dataclasses.replace(second, outcome=outcome, symbols=(SymbolDecision("created", "zf1", "L['scale']", "0.5"),))
    texts = Adviser(RunIndex(Capture(compilations=(first, second)))).on((first, second))
    assert [text.partition(";")[0] for text in texts] == said


def run_of(*versions):
    """Return a run of one function of ``x`` and ``mode``: the guards and the failures of each version."""
    code = CodeText("", "exact")
    entries = tuple(CacheEntry(CompileId(0, at), guards, TransformedCode(CompileId(0, at), "f", code, None, ("x", "mode")), ())
                    for at, (guards, _, _) in enumerate(versions))
    frame = Frame("f", "f", PLACE, code, False, ("x", "mode"), (), entries)
    compilations = tuple(
        Compilation(CompileId(0, at), "f", PLACE, outcome="compiled", symbols=symbols, guard_failures=failures)
        for at, (_, failures, symbols) in enumerate(versions))
    return RunIndex(Capture((CompiledFunction("f", (frame,)),), compilations=compilations))


def guards(size, stride, mode):
    tensor = f"check_tensor(L['x'], dtype=torch.float32, device='cpu', size=({size}), stride=({stride}), requires_grad=False)"
    return (Guard(tensor, "L['x']", "TENSOR_MATCH", ""), Guard(f"L['mode'] == '{mode}'", "L['mode']", "EQUALS_MATCH", ""))


@pytest.mark.parametrize(("last", "first"), [
    # (Each of these has occurred: `[0/1]` takes what the others failed for.)
    ([(3, "x.size()[0]", "8", "4"), (2, "x.size()[0]", "6", "4"), (1, "final", "False", "True"), (0, "mode", "'a'", "'b'")], "final"),
    # (No version failed for a size of 6 before, but `[0/2]` is for it.)
    ([(3, "x.size()[0]", "8", "6"), (1, "x.size()[0]", "4", "6"), (2, "mode", "'a'", "'c'")], "mode")])
def test_what_changed_is_that_of_the_version_that_takes_most(last, first):
    wanted = [("4,", "a", False), ("4,", "b", False), ("6,", "a", False), ("8,", "a", True)]
    versions = [((*guards(size, "1,", mode), Guard(f"L['final'] == {final}", "L['final']", "EQUALS_MATCH", "")), tuple(
        GuardFailure(CompileId(0, 0), "", "L['mode']", "'a'", "'b'", subject="mode") for _ in range(number == 1)), ())
        for number, (size, mode, final) in enumerate(wanted)]
    run = run_of(*versions)
    failures = tuple(GuardFailure(CompileId(0, entry), "", f"L['{subject}']", was, now, subject=subject)
                     for entry, subject, was, now in last)
    limit = Compilation(CompileId(0, 4), "f", PLACE, outcome="limit", guard_failures=failures)
    run = RunIndex(dataclasses.replace(run.capture, compilations=(*run.capture.compilations, limit)))
    assert run.changes(limit)[0].subject == first


@pytest.mark.parametrize(("modes", "more"), [
    ("abc", "; each of the versions that were compiled for this is for another value of `mode`, too: to spare one, that has to stay "
     "the same or to be left open as well"),
    ("aba", "")])  # (the third version differs from the second, and not from the first)
def test_what_else_each_version_is_for_is_said_with_the_advice(modes, more):
    """Torch names the guard that failed first."""
    versions = [((Guard(f"L['step'] == {n}", "L['step']", "EQUALS_MATCH", ""), guards("4,", "1,", mode)[1]),
                 tuple(GuardFailure(CompileId(0, other), "", "L['step']", str(other), str(n), subject="step")
                       for other in range(n - 1, -1, -1)), ()) for n, mode in enumerate(modes)]
    run = run_of(*versions)
    assert Adviser(run).on(run.capture.compilations) == [
        f"`step`: each version that looks at it is for one of its values, or for one type{more}"]


def test_a_global_of_torchs_is_no_argument_of_the_function():
    members = again(("G['__import_torch_dot_nn']._cache_enabled", "torch.nn._cache_enabled", "0", "1"))
    assert Adviser(RunIndex(Capture(compilations=members))).on(members) == [
        "`torch.nn._cache_enabled`: each version that looks at it is for one of its values, or for one type"]


def test_what_is_missing_now_and_then_is_said_once():
    """Torch says it in two ways: of the value, and of its type."""
    members = again(("L['mask']", "mask", "None", ""), ("L['mask']", "type(mask)", "a tensor", "NoneType"))
    (text,) = Adviser(RunIndex(Capture(compilations=members))).on(members)
    assert text.startswith("`mask`: each version that looks at it is for calls with it, or for calls without it")


def test_a_resume_function_begins_at_the_break_before_it():
    """Not at the first one of the function."""
    text = "def f(x):\n    print(x)\n    x = x / x.max().item()\n    return x\n"
    breaks = [
        GraphBreak(CompileId(0, 0), "Failed to trace builtin operator", "Dynamo does not know how to trace builtin "
                   "operator `print`", registry_id="GB0059", stack=(SourceLocation("m.py", 2, "f", "print(x)"),)),
        GraphBreak(CompileId(1, 0), "Unsupported Tensor.item() call", registry_id="GB0124",
                   stack=(SourceLocation("m.py", 3, "f", "x = x / x.max().item()"),
                          SourceLocation("/lib/python3.11/site-packages/torch/_tensor.py", 9, "item", "")))]
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
    assert Adviser(run).on_outer_break(compilations[2]).endswith("breaks at `m.py:3`")
    assert "breaks at `m.py:2`" in Adviser(run).on_outer_break(compilations[1])


@pytest.mark.parametrize(("text", "written"), [
    # Any of several calls may have made the function; one may have several lines.
    ("f = torch.compile(f)\ng = torch.compile(g, backend='eager')\n",
     ["f = torch.compile(f, dynamic=True)", "g = torch.compile(g, backend='eager', dynamic=True)"]),
    ("f = torch.compile(\n    f,\n    backend='eager',\n)\n", ["f = torch.compile(\n    f,\n    backend='eager', dynamic=True)"]),
    ("f = torch.compile(f, dynamic=False)\n", ["f = torch.compile(f, dynamic=True)"]),
    ("f = torch.compile(f, **options)\n", [])])
def test_where_dynamic_is_tried(text, written):
    sources = Sources([SourceFile("m.py", f"def f(x): ...\n{text}")])
    found = [advice.edits for advice in proposals(SIZE, PLACE, sources)]
    assert ["\n".join(edit.lines) for (edit,) in found] == written
