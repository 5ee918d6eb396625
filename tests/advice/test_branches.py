"""Branches on values: the rewriting is proven from recorded facts, or its conditions, or what prevents it."""

import dataclasses

import pytest

pytest.importorskip("torch")

import torch

from depyf import prepare_debug
from depyf.advice import Sources, candidates, on_break
from depyf.records import store
from depyf.records.model import CompileId, GraphBreak, NamedValue, SourceFile, SourceLocation

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
    ("if t.item() % 2 == 0:\n    y = y * 2", "y = torch.where(t % 2 == 0, y * 2, y)"),
    ("if int(t) % 10 != 9:\n    y = y * 2", "y = torch.where(t.long() % 10 != 9, y * 2, y)"),
    ("y = g(x)\nif y[0].sum() > 1:\n    y[0] = 1", "y[0] = torch.where(y[0].sum() > 1, 1, y[0])"),
    ("y = g(x)\nif x.sum() > 1:\n    y[0] *= 2\nelse:\n    y[0] = y[1]", "y[0] = torch.where(x.sum() > 1, y[0] * 2, y[1])"),
    ("if x.isinf().any():\n    most = k - 1\n    y = y.clamp(-most, most)",
     "y = torch.where(x.isinf().any(), y.clamp(-(k - 1), k - 1), y)"),
    ("y = g(y)\nif n > 1:\n    y = y * 2\nself.seen = y", "y = torch.where(n > 1, y * 2, y)"),
    ("y = x * 2 if x.sum() > 0 else x / 4", "y = torch.where(x.sum() > 0, x * 2, x / 4)"),
    ("if x.sum() > 0:\n    return x + 1\nreturn x - 1", "return torch.where(x.sum() > 0, x + 1, x - 1)"),
    ("if n > 2:\n    return x + 1\nelif n > 1:\n    return x + 2\nelse:\n    return x + 3",
     "return torch.where(n > 2, x + 1, torch.where(n > 1, x + 2, x + 3))"),
    ("if x.sum() > 0:\n    out[0] = x * 2\nelse:\n    out[0] = x + 1", "out[0] = torch.where(x.sum() > 0, x * 2, x + 1)"),
    ("if x.sum() > 0:\n    self.y = x * 2\nelse:\n    self.y = -x", "self.y = torch.where(x.sum() > 0, x * 2, -x)"),
])
def test_a_proven_rewriting_is_given_with_its_edit(body, written):
    advice = on_break(site(body))
    assert advice.change == f"write `{written}`" and [edit.lines for edit in advice.edits] == [(f"    {written}",)]
    assert "float32 [3, 2]" in advice.proven or "`n`" in advice.proven


@pytest.mark.parametrize("test", ["w is not None", "k > 2", "y.dtype == torch.float32", "self.training", "w.shape[0] > 1"])
def test_a_test_that_torch_evaluates_stays_in_a_branch_of_its_own(test):
    advice = on_break(site(f"if {test} and x.sum() > 0:\n    y = y * 2"))
    assert [edit.lines for edit in advice.edits] == [
        (f"    if {test}:", "        y = torch.where(x.sum() > 0, y * 2, y)")]


@pytest.mark.parametrize(("body", "said"), [
    ("if x.sum() > 0: return x + 1\nreturn x - 1", "write `return torch.where(x.sum() > 0, x + 1, x - 1)`"),
    ("if x.sum() > 0: y = y * 2", "write `y = torch.where(x.sum() > 0, y * 2, y)`"),
    ("if x.sum() > 0: assert k", "leave the branch as it is"),
    ("if x.sum() > 0: raise ValueError(k)", "where a `RuntimeError` may come in the place of the"),
    ("if x.sum() > 0: return x + 1 if w.sum() > 0 else x - 1\nreturn x",
     "leave the branch as it is: it is not known whether `torch.where` would be the same"),
    ("for each in w:\n    if x.sum() > 0: break", "compile what one turn of the loop"),
])
def test_a_branch_may_be_on_one_line_with_its_statement(body, said):
    """The break is at the test, not at the statement after it."""
    assert said in on_break(site(body)).change


def test_a_number_is_changed_in_place_by_nobody():
    advice = on_break(site("if x.sum() > 0:\n    k -= 1\nreturn y, k"))
    assert "in place" not in advice.change


@pytest.mark.parametrize(("body", "why"), [
    ("if x.sum() > 0:\n    y = i.long()\nelse:\n    y = x", "the sides differ in dtype"),
    ("if x.sum() > 0:\n    y = w + 1\nelse:\n    y = x", "the sides differ in shape"),
    ("if x.sum() > 0:\n    x[0] = 1", "a side sets `x[0]`, which may happen only where that side is taken"),
    ("g = y.view(-1)\nif x.sum() > 0:\n    y[0] = 1", "a side sets `y[0]`, which may happen only where that side is"),
    ("if int(n) % 2 == 0:\n    y = x * 2\nelse:\n    y = x", "`int(n) % 2` is computed as a number of Python's"),
    ("if n.item() % 2 == 0:\n    y = x * 2\nelse:\n    y = x", "`n.item() % 2` is computed as a number of Python's"),
    ("if x.sum() > 0:\n    y = x.mean(0, keepdim=True)\nelse:\n    y = x", "differ in shape: `[1, 2]` and `[3, 2]`"),
    ("if x.sum() > 0:\n    y = torch.sum(x, dim=-1)\nelse:\n    y = x", "differ in shape: `[3]` and `[3, 2]`"),
    ("if n > 1:\n    return y\nreturn torch.cat([y, w[None, :]], dim=0)", "differ in shape: `[3, 2]` and `[4, 2]`"),
    ("if x.sum() > 0:\n    x /= 2", "changes the caller's tensor in place"),
    ("if x.sum() > 0:\n    x.add_(1)", "in place on one side only"),
    ("k = 3 if x.sum() > 0 else 1", "`3` is a value of Python's"),
    ("if x.sum() > 0:\n    self.seen.append(x)", "`self.seen` is changed on one side only"),
    ("if x.sum() > 0:\n    out['a'] = x", "a side sets `out['a']`, which may happen only"),
    ("if x.sum() > 0:\n    out['a'] = x\nelse:\n    out['b'] = x", "a side sets `out['a']`, which may happen only"),
    ("if x.sum() > 0:\n    out['a'] = 'yes'\nelse:\n    out['a'] = 'no'", "`'yes'` is a value of Python's"),
    ("if x.sum() > 0:\n    print('x')", "`print('x')` has to happen on one side only"),
    ("if x.sum() > 0:\n    return None\nreturn x", "`None`, which is no tensor"),
    ("if x.sum() > 0:\n    return x, y\nreturn x, x", "no single tensor"),
    ("if x.sum() > 0:\n    y = torch.rand(3, 2)\nelse:\n    y = x", "draws random numbers"),
    ("y = self.pool.pop() if x.sum() > 0 else x", "`self.pool` is changed on one side only"),
    ("if n.item() > 0.1:\n    y = y * 2", "in double precision"),
    ("if n.item() % 2 == 0:\n    y = y * 2", "in double precision"),
    ("if n > 1 and k > 2:\n    y = y * 2", "`k > 2` is computed with values of Python's"),
    ("if np.count_nonzero(k) == 1:\n    y = y * 2", "is computed with values of Python's"),
    ("if x.sum() > 0:\n    return\nx.add_(1)", "one side leaves the function"),
    ("if n in w:\n    y = y * 2", "asks for a truth value of Python's"),
    ("if any(each.sum() > 0 for each in x):\n    y = y * 2", "is no tensor"),
    ("if torch.equal(x, y):\n    y = y * 2", "is no tensor"),
    ("if x.sum() > 0:\n    y = self.norm(x)\nelse:\n    y = x", "does nothing else"),
    ("v = x[0]\nif x.sum() > 0:\n    v += 1", "may change another's tensor in place"),
    ("self.seen = y\nif x.sum() > 0:\n    y += 1", "may change another's tensor in place"),
    ("if x.sum() > 0:\n    v += 1", "may change another's tensor in place"),
    ("if h.sum().item() > 1:\n    y = y * 2", "rounded otherwise"),
    ("if a.max() > 1:\n    y = y * 2", "`a` is an array of NumPy's"),
    ("y = y * 2 if np.linalg.norm(a) > k else y", "`a` is an array of NumPy's"),
    ("if x.sum() > 0:\n    for each in w:\n        y = y + each", "statements that have to run on that side only"),
])
def test_what_prevents_a_rewriting_is_said(body, why):
    advice = on_break(site(body))
    assert advice.change.startswith("leave the branch as it is: ") and why in advice.change
    assert advice.leaves and not advice.is_mechanical


@pytest.mark.parametrize(("body", "condition"), [
    ("if n > 0:\n    y = y / n", "no gradient is needed"),
    ("if n > 0:\n    y = torch.log(y)", "no gradient flows through `torch.log(y)`"),
    ("if x.sum() > 0:\n    y = x.mean(k, keepdim=True)\nelse:\n    y = x * 1", "both sides always have the same shape"),
    ("if x.sum() > 0:\n    x = x * 2\nreturn x", "needs `x` to be the same object as before"),
    ("if x.sum() > 0:\n    y = x * 2", "no gradient is needed"),
    ("if y.sum() > 0 and x.max() > 0:\n    y = y * 2", "`x` always has elements"),
    ("if w[k] > 0:\n    y = y * 2", "`w[k]` is one number"),
    ("if y.sum() > 0 and n > x.max():\n    y = y * 2", "`x` always has elements"),
    ("if n > 1:\n    y = y * 2\nelif x.max() > 0:\n    y = y * 3", "`x` always has elements"),
    ("if n > 1:\n    y = y.clamp(max=w)", "with `w` the shape is the same"),
    ("if n > 1:\n    y = y * r", "its factors are finite"),
    ("y = g(x)\nself.seen = y\nif n > 1:\n    y = y * 2", "needs `y` to be the same object as before"),
    ("self.seen = y\nif n > 1:\n    y = y * 2", "needs `y` to be the same object as before"),
    ("if n > 1:\n    y = x\nelse:\n    y = x * 2\nx.add_(1)", "needs `y` to be the same object as before"),
    ("if n > 1:\n    self.y = x\nelse:\n    self.y = x * 2", "needs `self.y` to be the same object as before"),
    ("if n > 1:\n    y = y.clamp(max=torch.finfo(y.dtype).max)", "`y.dtype` is always a floating-point dtype"),
])
def test_what_is_not_known_is_a_condition(body, condition):
    advice = on_break(site(body))
    assert condition in advice.change and not advice.is_mechanical


@pytest.mark.parametrize(("body", "why"), [
    ("if x.min() > 0:\n    y = torch.log(x)\nelse:\n    y = x", "that of `torch.log(x)` may be NaN"),
    ("if n > 0:\n    x = x / n", "that of `x / n` may be NaN"),
    ("if n > 0:\n    y = x * 2", "that of `x * 2` may be zeros where there was none")])
def test_a_gradient_that_the_run_needs_prevents_a_rewriting(body, why):
    """Of each unit vector and logarithm in a loss: `if no gradient is needed` was no question."""
    learned = tuple(dataclasses.replace(each, requires_grad=each.name == "x") for each in VALUES)
    advice = on_break(site(body, learned))
    assert advice.leaves and "`x` requires a gradient" in advice.change and why in advice.change
    assert not on_break(site(body)).leaves and list(candidates(site(body, learned)))  # (a trial compares the gradients)


@pytest.mark.parametrize(("body", "guarded"), [
    ("if x.min() > 0:\n    y = torch.log(x)\nelse:\n    y = x",
     "torch.where(x.min() > 0, torch.log(torch.where(x.min() > 0, x, 1)), x)"),
    ("if x.min() > 0:\n    y = x\nelse:\n    y = (x + 1).sqrt()",
     "torch.where(x.min() > 0, x, torch.where(x.min() > 0, 1, x + 1).sqrt())"),
    ("if n > 0:\n    y = x / n\nelse:\n    y = x", "torch.where(n > 0, x / torch.where(n > 0, n, 1), x)")])
def test_a_trial_also_gets_the_rewriting_whose_gradients_are_finite(body, guarded):
    assert [each.change for each in candidates(site(body))][-1] == f"write `y = {guarded}`"


@pytest.mark.parametrize(("body", "call"), [
    ("assert n > 0, 'few'", "torch._assert_async(n > 0, 'text')"),
    ("if not n > 0:\n    raise ValueError('few')", "torch._assert_async(n > 0, 'text')"),
    ("if x.isnan().any():\n    raise ValueError('nan')", "torch._assert_async(~x.isnan().any(), 'text')"),
    ("if self.bad(x):\n    raise ValueError('nan')", "torch._assert_async(fine, 'text')"),
])
def test_a_check_is_of_what_is_true_where_nothing_is_raised(body, call):
    """(transformers #37944, Lightning's `self.log`: the test of the branch is the opposite.)"""
    assert f"`{call}`" in on_break(site(body)).change


@pytest.mark.parametrize("body", ["assert n > 0, f'{n} is small'", "if x.isnan().any():\n    raise ValueError(f'{n}')"])
def test_a_check_whose_text_needs_values_is_for_the_caller(body):
    assert "check it outside of what is compiled; else leave" in on_break(site(body)).change


def test_a_branch_that_does_nothing_is_taken_out():
    assert on_break(site("if x.sum() > 0:\n    pass")).change.startswith("take the branch out")


@pytest.mark.parametrize(("lines", "as_bound"), [
    ("w = int(n)\nreturn x[:w]", True), ("w = n.item()\nh = w + 1\nreturn g(x, size=(h, 2))", True),
    ("w = n.item()\nreturn x * w", False), ("return x[:n.item()]", True)])
def test_a_number_that_bounds_a_slice_is_computed_before_the_call(lines, as_bound):
    """With the setting for numbers torch 2.13 ends in an error (programs/reports/11_maskrcnn)."""
    place = site(lines)
    item = dataclasses.replace(place.broken, reason="Unsupported Tensor.item() call", registry_id="GB0124")
    advice = on_break(dataclasses.replace(place, broken=item))
    assert (advice.rule == "number_outside") == as_bound


def test_without_facts_nothing_is_proven():
    body = "if x.sum() > 0:\n    y = x + 1\nelse:\n    y = x - 1"
    assert not on_break(site(body, values=())).is_mechanical
    assert [each.condition for each in candidates(site(body, values=()))] == ["x.sum() > 0"]  # (a trial may find out)


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
