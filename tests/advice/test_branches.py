"""Branches on values: the rewriting that a trial gets, or what prevents it."""

import dataclasses

import pytest

pytest.importorskip("torch")

import torch

from depyf import prepare_debug
from depyf.advice import Sources, on_break
from depyf.advice.branches import candidates
from depyf.records import store
from depyf.records.model import (
    Capture,
    Compilation,
    CompileId,
    Failure,
    GraphBreak,
    NamedValue,
    SourceFile,
    SourceLocation,
)
from depyf.views.advice import Adviser
from depyf.views.run_index import RunIndex

X = NamedValue("x", "Tensor", ("3", "2"), "float32", "cpu", source="L['x']")
Y = NamedValue("y", "Tensor", ("3", "2"), "float32", "cpu")
W = NamedValue("w", "Tensor", ("2",), "float32", "cpu", source="L['w']")
N = NamedValue("n", "Tensor", (), "float32", "cpu")
LONG = NamedValue("i", "Tensor", ("3", "2"), "int64", "cpu", source="L['i']")
V = NamedValue("v", "Tensor", ("2",), "float32", "cpu", shares_memory=True)
H = NamedValue("h", "Tensor", ("2",), "float16", "cpu", source="L['h']")
VALUES = (X, Y, W, N, LONG, V, H, NamedValue("k", "int", source="L['k']"), NamedValue("r", "float", source="L['r']"),
          NamedValue("t", "Tensor", (), "int64", "cpu", source="L['t']"), NamedValue("a", "ndarray", source="L['a']"))


def site(body, values=VALUES):
    """The site of the first branch in the body of a function."""
    lines = body.splitlines()
    line = 2 + next((number for number, each in enumerate(lines) if "if " in each), 0)
    text = "def f(self, x, y, w, n, i, k, r, h):\n" + "".join(f"    {each}\n" for each in lines)
    place = SourceLocation("m.py", line, "f", text.splitlines()[line - 1])
    broken = GraphBreak(CompileId(0, 0), "Data-dependent branching", registry_id="GB0170", stack=(place,), values=values)
    return Sources([SourceFile("m.py", text)]).site(broken)


@pytest.mark.parametrize(("body", "written"), [
    ("if x.sum() > 0:\n    y = x + 1\nelse:\n    y = x - 1", "y = torch.where(x.sum() > 0, x + 1, x - 1)"),
    ("if x.mean() < 0:\n    y = y.abs()", "y = torch.where(x.mean() < 0, y.abs(), y)"),
    ("if x.mean() < 0:\n    y += 1", "y = torch.where(x.mean() < 0, y + 1, y)"),
    ("if n > 1:\n    y = x\nelif n > 0:\n    y = x * 2\nelse:\n    y = -x\nreturn y + 1",
     "y = torch.where(n > 1, x, torch.where(n > 0, x * 2, -x))"),
    ("if x.isnan().any() or not x.isinf().all():\n    y = y.relu()",
     "y = torch.where(x.isnan().any() | ~x.isinf().all(), y.relu(), y)"),
    ("if x.sum().item() > 0:\n    y = y * 2", "y = torch.where(x.sum() > 0, y * 2, y)"),
    ("y = g(y)\nif n > 1:\n    y = y * 2\nself.seen = y", "y = torch.where(n > 1, y * 2, y)"),
    ("y = x * 2 if x.sum() > 0 else x / 4", "y = torch.where(x.sum() > 0, x * 2, x / 4)"),
    ("if x.sum() > 0:\n    return x + 1\nreturn x - 1", "return torch.where(x.sum() > 0, x + 1, x - 1)"),
    ("if n > 2:\n    return x + 1\nelif n > 1:\n    return x + 2\nelse:\n    return x + 3",
     "return torch.where(n > 2, x + 1, torch.where(n > 1, x + 2, x + 3))"),
    ("if x.sum() > 0:\n    out[0] = x * 2\nelse:\n    out[0] = x + 1", "out[0] = torch.where(x.sum() > 0, x * 2, x + 1)"),
    ("if x.sum() > 0:\n    self.y = x * 2\nelse:\n    self.y = -x", "self.y = torch.where(x.sum() > 0, x * 2, -x)"),
])
def test_a_rewriting_is_given_to_a_trial(body, written):
    """No run has shown that it is the same, so advice does not give it."""
    (advice,) = candidates(site(body))
    assert advice.change == f"write `{written}`" and [edit.lines for edit in advice.edits] == [(f"    {written}",)]
    said = on_break(site(body))
    assert not said.is_change and said.change.endswith("(`depyf fix` tries it)")


def test_the_cost_of_both_sides_names_gradients():
    """A trial has the calls that it has: here it takes one with zeros alone."""
    (advice,) = candidates(site("if y.sum() > 0:\n    y = y / n"))
    assert advice.cost.endswith("if the side that is not taken has no finite gradient, gradients are NaN")
    y = torch.zeros(2, requires_grad=True)
    torch.where(y.sum() > 0, y / y.max(), y).sum().backward()
    assert y.grad.isnan().all()


@pytest.mark.parametrize("is_failure", [False, True])
def test_no_trial_is_announced_for_a_branch_that_made_a_compilation_fail(is_failure):
    """With `fullgraph=True` it is among no breaks. (Of a break torch's log does not say what is inlined.)"""
    broken = dataclasses.replace(site("if x.sum() > 0:\n    x = x + 1\nreturn x").broken, depth=0)
    failure = Failure("Unsupported", "Data-dependent branching", broken.location)
    compilation = Compilation(broken.compile_id, outcome="failed" if is_failure else "skipped",
                              failure=failure if is_failure else None,
                              breaks=() if is_failure else (dataclasses.replace(broken, skips_function=True),))
    text = "def f(x):\n    if x.sum() > 0:\n        x = x + 1\n    return x\n"
    capture = Capture(compilations=(compilation,), sources=(SourceFile("m.py", text),))
    (said,) = Adviser(RunIndex(capture)).on_lost(compilation)
    assert said.endswith("have finite gradients" if is_failure else "(`depyf fix` tries it)")


@pytest.mark.parametrize("body", [
    "if m.any():\n    y[m] = 0.0", "if torch.any(m):\n    y[m] *= 2", "if m.sum() > 0:\n    self.state[m] = x[m]",
    "if (y > 1).any():\n    y[y > 1] = 1.0"])
def test_an_assignment_under_a_mask_needs_no_branch_on_the_mask(body):
    values = (*VALUES, NamedValue("m", "Tensor", ("3", "2"), "bool", "cpu", source="L['m']"))
    found = candidates(site(body, values))
    if "(y > 1)" in body:  # (of an expression no record has the dtype)
        assert not found
        return
    assert [edit.lines for edit in found[0].edits] == [(body.splitlines()[1],)]
    assert on_break(site(body, values)).change.startswith("where `m` has truth values, none of them true, the assignment sets nothing")
    # (A mask of numbers is an index.)
    assert not candidates(site(body, (*VALUES, NamedValue("m", "Tensor", ("3", "2"), "int64", "cpu"))))


@pytest.mark.parametrize("test", ["w is not None", "k > 2", "y.dtype == torch.float32", "self.training", "w.shape[0] > 1"])
def test_a_test_that_torch_evaluates_stays_in_a_branch_of_its_own(test):
    (advice,) = candidates(site(f"if {test} and x.sum() > 0:\n    y = y * 2"))
    assert [edit.lines for edit in advice.edits] == [
        (f"    if {test}:", "        y = torch.where(x.sum() > 0, y * 2, y)")]


@pytest.mark.parametrize(("body", "said"), [
    ("if x.sum() > 0: return x + 1\nreturn x - 1", "that is the same only where"),
    ("if x.sum() > 0: y = y * 2", "that is the same only where"),
    ("if x.sum() > 0: assert k", "something else: `assert k` runs on one side only"),
    ("if x.sum() > 0: raise ValueError(k)", "`torch._assert_async(condition, 'text')`"),
    ("for each in w:\n    if x.sum() > 0: break", "whether a turn of the loop at line 2 runs, or runs to its end"),
    ("for each in w:\n    if x.sum() > 0: continue", "whether a turn of the loop at line 2 runs, or runs to its end"),
])
def test_a_branch_may_be_on_one_line_with_its_statement(body, said):
    """The break is at the test, not at the statement after it."""
    assert said in on_break(site(body)).change


@pytest.mark.parametrize("test", ["torch.rand(()) > 0.5", "torch.rand(()).item() < 1"])
def test_each_call_evaluates_the_test_so_that_it_may_draw_random_numbers(test):
    assert [edit.lines for each in candidates(site(f"if {test}:\n    y = x * 2")) for edit in each.edits] == [
        (f"    y = torch.where({test.replace('.item()', '')}, x * 2, y)",)]


def test_a_number_is_changed_in_place_by_nobody():
    advice = on_break(site("if x.sum() > 0:\n    k -= 1\nreturn y, k"))
    assert "in place" not in advice.change


@pytest.mark.parametrize(("body", "why"), [
    ("if x.sum() > 0:\n    x[0] = 1", "a side sets `x[0]`"),
    ("g = y.view(-1)\nif x.sum() > 0:\n    y[0] = 1", "a side sets `y[0]`"),
    ("if int(n) % 2 == 0:\n    y = x * 2\nelse:\n    y = x", "`int(n) % 2 == 0` is computed with values of Python's"),
    ("if x.sum() > 0:\n    y, w = x, x\nelse:\n    y, w = y, w", "its sides do more than choose one value"),
    ("if x.sum() > 0:\n    x /= 2", "changes the caller's tensor in place"),
    ("if x.sum() > 0:\n    x.add_(1)", "`x.add_(1)` runs on one side only"),
    ("k = 3 if x.sum() > 0 else 1", "`3` is a value of Python's"),
    ("if x.sum() > 0:\n    self.seen.append(x)", "`self.seen.append(x)` runs on one side only"),
    ("if x.sum() > 0:\n    out['a'] = x", "a side sets `out['a']`"),
    ("if x.sum() > 0:\n    out['a'] = x\nelse:\n    out['b'] = x", "a side sets `out['a']`"),
    ("if x.sum() > 0:\n    out['a'] = 'yes'\nelse:\n    out['a'] = 'no'", "`'yes'` is a value of Python's"),
    ("if x.sum() > 0:\n    print('x')", "`print('x')` runs on one side only"),
    ("if x.sum() > 0:\n    return None\nreturn x", "`None` is a value of Python's"),
    ("if x.sum() > 0:\n    return x, y\nreturn x, x", "`(x, y)` is a value of Python's"),
    ("if n.item() > 0.1:\n    y = y * 2", "in double precision"),
    ("if n > 1 and k > 2:\n    y = y * 2", "`k > 2` is computed with values of Python's"),
    ("if np.count_nonzero(k) == 1:\n    y = y * 2", "is computed with values of Python's"),
    ("if x.sum() > 0:\n    return\nx.add_(1)", "`return` runs on one side only"),
    ("if n in w:\n    y = y * 2", "asks for a truth value of Python's"),
    ("if any(each.sum() > 0 for each in x):\n    y = y * 2", "is no tensor"),
    ("if torch.equal(x, y):\n    y = y * 2", "is no tensor"),
    ("v = x[0]\nif x.sum() > 0:\n    v += 1", "may change another's tensor in place"),
    ("if x.sum() > 0:\n    v += 1", "may change another's tensor in place"),
    ("if x.sum() > 0:\n    for each in w:\n        y = y + each", "`for each in w:` runs on one side only"),
])
def test_what_prevents_a_rewriting_is_said(body, why):
    advice = on_break(site(body))
    assert "; this statement does something else: " in advice.change and why in advice.change
    assert not advice.is_change and not candidates(site(body))


@pytest.mark.parametrize("body", [
    "assert n > 0, 'few'", "assert n > 0, f'{n} is small'", "if not n > 0:\n    raise ValueError('few')",
    "if x.isnan().any():\n    raise ValueError(f'{n}')", "if self.bad(x):\n    raise ValueError('nan')"])
def test_a_check_is_named_as_an_operation_of_the_graph(body):
    advice = on_break(site(body))
    assert advice.rule == "check" and "`torch._assert_async(condition, 'text')`" in advice.change
    assert not advice.is_change and not candidates(site(body))


def test_without_facts_a_trial_may_find_out():
    body = "if x.sum() > 0:\n    y = x + 1\nelse:\n    y = x - 1"
    assert [each.condition for each in candidates(site(body, values=()))] == [("x.sum() > 0", "x.sum() > 0")]


def test_what_torch_knew_at_a_break_is_recorded(tmp_path):
    def helper(value, most):
        again = value
        if value.sum() > most:
            value = value + 1
        return again * value

    def f(x, most=3, *, mask=None):
        return helper(x * 2, most)

    torch._dynamo.reset()
    with prepare_debug(str(tmp_path)):
        torch.compile(f, backend="eager")(torch.ones(2, 3, requires_grad=True))
    (broken,) = [each for compilation in store.read(str(tmp_path)).compilations for each in compilation.breaks][:1]
    known = {each.name: each for each in broken.values}
    assert known["value"].shape == ("2", "3") and known["value"].requires_grad and not known["value"].source
    assert known["again"].shares_memory is False and known["again"].same_as == "value" and known["most"].type == "int" and known["most"].source == "L['most']"


def test_views_and_tensors_with_one_memory_are_recorded(tmp_path):
    def f(x):
        row, own = x[0], x * 2
        other = own.detach()
        if x.sum() > 0:
            row += 1
        return row, own * other, x * 3

    torch._dynamo.reset()
    with prepare_debug(str(tmp_path)):
        torch.compile(f, backend="eager")(torch.ones(2, 3))
    broken = store.read(str(tmp_path)).compilations[0].breaks[0]
    assert {each.name for each in broken.values if each.shares_memory} >= {"row", "own", "other"}
