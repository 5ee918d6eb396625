"""Generated calls of ``depyf fix``: a change that holds for the recorded call only is found out."""

import types

import pytest

torch = pytest.importorskip("torch")

from depyf.advice.model import Advice, Edit  # noqa: E402
from depyf.fixing.generated import Forcing, Generator  # noqa: E402
from depyf.fixing.outcome import compared  # noqa: E402
from depyf.fixing.patch import Patch  # noqa: E402
from depyf.fixing.search import conditions_of  # noqa: E402
from depyf.fixing.trial import code_of  # noqa: E402
from depyf.fixing.variations import variations  # noqa: E402

pytestmark = pytest.mark.slow
HEAD = "import logging, random, warnings\nimport torch\nseen = []\n"


FUNCTION = "def f(x, n=1):\n"
MODULE = "class f(torch.nn.Module):\n    def forward(self, x):\n"


def verdict(folder, old, new, args, *condition, head=FUNCTION):
    """Return the verdict on one call of ``f``, whose body is ``old`` or ``new``, with a condition as each has it."""
    path = folder / "program.py"
    text = HEAD + head + old
    path.write_text(text)
    lines = tuple(new.splitlines())
    first = text[: text.index(old)].count("\n") + 1
    edit = Edit(str(path), first, text.count("\n"), lines)
    patch = Patch(str(path)).with_advice(Advice("branch", "write", "", "", (edit,), condition=tuple(filter(None, condition))))
    conditions = conditions_of(patch.taken)
    runs = []
    for each in (text, patch.text(str(path))):
        module = types.ModuleType("generated_program")
        forcing = Forcing(conditions)
        exec(code_of(each, str(path), forcing), vars(module))
        generator = Generator(forcing)
        generator.repeat("f", module.f() if head == MODULE else module.f, args, {})
        runs.append(generator.calls)
    return compared(*runs, conditions)


def test_the_same_on_both_sides(tmp_path):
    found = verdict(tmp_path, "    if x.sum() > 0:\n        y = x + 1\n    else:\n        y = x - 1\n    return y * 2\n",
                    "    y = torch.where(x.sum() > 0, x + 1, x - 1)\n    return y * 2\n",
                    (torch.arange(3.0),), "x.sum() > 0")
    assert not found.why_not and found.calls > 60
    assert str(found) == f"same on {found.calls} calls, both branches taken"


@pytest.mark.parametrize("forks", [True, False])
def test_a_module_is_judged_with_forks_and_without(tmp_path, monkeypatch, forks):
    """(Its `forward` names `torch` with the new text only.)"""
    if not forks:
        monkeypatch.setattr("depyf.capture.forked.why_not", lambda: "CUDA is in use")
    old = "        if x.sum() > 0:\n            x = x * 2\n        return x + 1\n"
    new = "        x = torch.where(x.sum() > 0, x * 2, x)\n        return x + 1\n"
    assert not verdict(tmp_path, old, new, (torch.ones(3),), "x.sum() > 0", head=MODULE).why_not
    new = new.replace("x * 2,", "torch.dropout(x * 2, 0.5, self.training),")
    assert "random state of torch" in verdict(tmp_path, old, new, (torch.ones(3),), "x.sum() > 0", head=MODULE).differs


def test_conditions_with_logical_operators_are_one_with_those_of_tensors(tmp_path):
    found = verdict(tmp_path, "    if x.sum() > 0 and not x.any():\n        x = x + 1\n    return x * 2\n",
                    "    x = torch.where((x.sum() > 0) & ~x.any(), x + 1, x)\n    return x * 2\n",
                    (torch.ones(3),), "x.sum() > 0 and not x.any()", "(x.sum() > 0) & ~x.any()")
    assert not found.why_not and found.conditions == 1


def test_a_test_after_one_of_pythons_values_is_forced_in_both_texts(tmp_path):
    found = verdict(tmp_path, "    if n is not None and x.isnan().any():\n        x = x.nan_to_num()\n    return x * 2\n",
                    "    if n is not None:\n        x = torch.where(x.isnan().any(), x.nan_to_num(), x)\n    return x * 2\n",
                    (torch.ones(3),), "x.isnan().any()")
    assert not found.why_not and str(found).endswith("both branches taken")


def test_what_local_functions_capture_is_what_their_function_captured():
    net, count = torch.nn.Linear(1, 1), [0]

    def part(x):
        return net(x)

    def divided(x):
        count[0] += 1
        return part(x)

    def whole(x):
        count[0] += 1
        return net(x)

    runs, divided.__qualname__ = [], whole.__qualname__
    for each in (whole, divided):
        generator = Generator(Forcing({}))
        generator.repeat("f", each, (torch.ones(2, 1),), {})
        runs.append(generator.calls)
    found = compared(*runs, {})
    assert found.calls > 9 and not found.why_not
    assert {"count (captured)[0]", "net (captured)"} <= runs[0][0].outcome.states.keys()


def test_where_each_call_raises_nothing_is_judged(tmp_path):
    body = "    return x + no_such_name\n"
    assert verdict(tmp_path, body, body, (torch.ones(2),)).why_not == "each call raises an error"


@pytest.mark.parametrize(("old", "new", "x", "condition", "differs"), [
    ("    y = x.mean(0, keepdim=True) if x.sum() > 99 else x\n    return y * 2\n",
     "    y = torch.where(x.sum() > 99, x.mean(0, keepdim=True), x)\n    return y * 2\n",
     torch.ones(3, 2), "x.sum() > 99", "forced True: result: shape is (3, 2); before (1, 2)"),
    ("    y = x.long() if x.sum() > 99 else x\n    return y + 1\n",
     "    y = torch.where(x.sum() > 99, x.long(), x)\n    return y + 1\n",
     torch.ones(3), "x.sum() > 99", "dtype is torch.float32; before torch.int64"),
    ("    y = x.log() if x.min() > 0 else x\n    return y * 1\n",
     "    y = torch.where(x.min() > 0, x.log(), x)\n    return y * 1\n",
     torch.ones(3), "x.min() > 0", "result: dtype is torch.float32; before torch.int64"),
    ("    x /= n\n    return x.sum()\n", "    x = x / n\n    return x.sum()\n", torch.ones(3), "", "args[0]"),
    ("    if n < 0:\n        print(n)\n    return x + n\n", "    return x + n\n", torch.ones(3), "", "argument 2 is -1: standard output: ''; before '-1"),
    ("    if x.sum() < 0:\n        logging.getLogger('a').warning('low')\n    return x + 1\n", "    return x + 1\n",
     torch.ones(3), "", "logs and warns []"),
    ("    if x.isnan().any():\n        raise ValueError('NaN')\n    return x + 1\n", "    return x + 1\n",
     torch.ones(3), "", "exception: none; before ValueError: NaN"),
    ("    if x.sum() < 0:\n        seen.append(1)\n    return x + 1\n", "    return x + 1\n", torch.ones(3), "", "global seen"),
    ("    if x.sum() < 0:\n        x = torch.dropout(x, 0.5, True)\n    return x + 1\n",
     "    x = torch.where(x.sum() < 0, torch.dropout(x, 0.5, True), x)\n    return x + 1\n",
     torch.ones(3), "x.sum() < 0", "random state of torch"),
    ("    return x\n", "    return x.clone()\n", torch.ones(3), "", "result"),
    ("    global seen\n    if x.sum() < 0:\n        seen = 5\n    return x + 1\n", "    return x + 1\n", torch.ones(3), "",
     "global seen"),
    ("    if x.sum() < 0:\n        f.calls = 1\n    return x + 1\n", "    return x + 1\n", torch.ones(3), "",
     "function.calls"),
])
def test_what_differs_on_other_inputs_is_named(tmp_path, old, new, x, condition, differs):
    args = (x, 2) if " n" in old else (x,)
    found = verdict(tmp_path, old, new, args, condition)
    assert found.why_not and differs in found.differs


def test_a_side_that_is_never_compared_is_not_taken_for_the_same(tmp_path):
    found = verdict(tmp_path, "    if len(seen) > 9:\n        if x.sum() > 0:\n            x = x + 1\n    return x * 2\n",
                    "    if len(seen) > 9:\n        x = torch.where(x.sum() > 0, x + 1, x)\n    return x * 2\n",
                    (torch.ones(3),), "")
    assert not found.why_not  # (no condition is asked for)


def test_an_error_on_both_sides_is_the_same(tmp_path):
    body = "    return x @ torch.ones(3, 2)\n"
    assert not verdict(tmp_path, body, "    return torch.matmul(x, torch.ones(3, 2))\n", (torch.ones(2, 3),)).why_not


@pytest.mark.parametrize(("old", "new", "same"), [
    ("    return x.reshape(2, 3)\n", "    return x.view(2, 3)\n", True),
    ("    return x @ torch.ones(9)\n", "    return x.sum().reshape(9)\n", True),
    ("    assert len(x) > 5, 'short'\n    return x\n", "    assert len(x) > 5, 'small'\n    return x\n", False),
    ("    if len(x) < 5:\n        raise ValueError('short')\n    return x\n",
     "    if len(x) < 5:\n        raise ValueError('small')\n    return x\n", False),
    ("    return x + {}[len(x)]\n", "    return x + {}[-len(x)]\n", False)])
def test_the_words_of_an_error_count_where_the_program_chose_them(tmp_path, old, new, same):
    found = verdict(tmp_path, old, new, (torch.ones(3),))
    assert ("raises" not in found.differs) is same


def test_the_program_is_not_disturbed(tmp_path, capsys):
    state, x = torch.get_rng_state(), torch.ones(3)
    verdict(tmp_path, "    x += 1\n    print(x)\n    return torch.rand(2)\n",
            "    x += 1\n    print(x)\n    return torch.rand(2)\n", (x,))
    assert torch.equal(torch.get_rng_state(), state) and torch.equal(x, torch.ones(3)) and capsys.readouterr().out == ""


def generated(folder, body, *args):
    path = folder / "program.py"
    path.write_text(HEAD + "import os\nnorm = torch.nn.BatchNorm1d(2)\n" + FUNCTION + body)
    module = types.ModuleType("generated_program")
    exec(compile(path.read_text(), str(path), "exec"), vars(module))
    generator = Generator(Forcing({}))
    generator.repeat("f", module.f, args, {})
    return generator.calls


@pytest.mark.parametrize("body", [
    "    seen.append(1)\n    return x + len(seen)\n", "    norm(x)\n    return norm.num_batches_tracked + x.sum()\n",
    "    f.calls = f.calls + 1\n    return x + f.calls\nf.calls = 0\n"])
def test_each_call_finds_everything_as_it_was(tmp_path, body, monkeypatch):
    """A call that changes a global is the last of its process."""
    monkeypatch.setattr("depyf.fixing.generated.LIMIT_OF_ALL", 3.0)
    calls = [each for each in generated(tmp_path, body, torch.ones(2, 2)) if each.outcome and not each.outcome.raised]
    changed = [[str(state) for place, state in each.outcome.states.items()
                if place in ("global seen", "function.calls") or "num_batches" in place] for each in calls]
    assert len(calls) > 2 and all(each == changed[0] for each in changed) and "1" in str(changed[0])


def test_a_call_that_ends_its_process_is_not_judged_and_the_others_are(tmp_path):
    calls = generated(tmp_path, "    if x.isnan().any():\n        os._exit(3)\n    return x + 1\n", torch.ones(2, 2))
    lost = [each.input for each in calls if each.outcome is None]
    assert "tensors with NaN" in lost and "tensors all zeros" not in lost
    assert [each.why_not for each in calls if each.outcome is None] == [
        "the process that it was tried in ended without a result"] * len(lost)


def test_each_input_is_another_one():
    names = [each.name for each in variations(lambda x, n: x, None, (torch.ones(2, 2), 1), {})]
    assert names[0] == "as recorded" and len(names) == len(set(names)) and "tensors all ones" not in names
    assert {"tensors with NaN", "size 0 in the place of 2", "argument 2 is -1", "tensors float16"} <= set(names)


def test_what_requires_a_gradient_is_not_tried_as_integers():
    names = [each.name for each in variations(lambda x: x, None, (torch.ones(2, 2, requires_grad=True),), {})]
    assert "tensors float64" in names and "tensors int64" not in names
    assert "tensors int64" in [each.name for each in variations(lambda x: x, None, (torch.ones(2, 2),), {})]


def test_each_condition_is_forced_to_each_side():
    assert Forcing({}).choices == [{}]
    assert Forcing({"a": ["x"], "b": ["y"]}).choices == [{}, {0: True}, {0: False}, {1: True}, {1: False}]
