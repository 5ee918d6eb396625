"""Advice on guards that take long: the filter that it names leaves most of them out."""

import re
import textwrap

import pytest

from depyf.advice.guards import MANY, on_guards
from depyf.records.model import Guard

LAYER = "L['self']._modules['layers']._modules['0']"


def guard(source, expression="", kind="EQUALS_MATCH"):
    return Guard(expression or source, source, kind, "")


def of_class(source, name):
    return guard(source, f"check_type({source}, '{name}')", "TYPE_MATCH")


def test_few_guards_need_no_advice():
    assert on_guards([guard(f"{LAYER}.eps")] * (MANY - 1)) is None


@pytest.mark.parametrize("typed, source, name", [
    (of_class(LAYER, "torch.nn.modules.linear.Linear"), f"{LAYER}._parameters['weight']",
     "skip_guard_on_inbuilt_nn_modules_unsafe"),
    (of_class(LAYER, "app.Scale"), f"{LAYER}.eps", "skip_guard_on_all_nn_modules_unsafe"),
    (of_class(LAYER, "torch.nn.modules.container.Sequential"), f"{LAYER}._modules",
     "skip_guard_on_all_nn_modules_unsafe"),
    (guard("G['config'].size"), "G['config'].size", "skip_guard_on_globals_unsafe")])
def test_the_filter_is_for_what_most_guards_are_on(typed, source, name):
    advice = on_guards([typed, *[guard(source)] * (MANY - 1), *[guard("L['x']")] * (MANY - 1)])
    assert f"torch.compiler.{name}" in advice.change and str(MANY) in advice.why


def test_guards_on_many_things_have_no_advice():
    assert on_guards([guard(f"{LAYER}.eps"), guard("G['a']"), guard("L['x']")] * MANY) is None


@pytest.mark.parametrize("changed, advised", [
    ("self._modules['layers']._modules['0'].training", False), ("L['self']._parameters['w']", False), ("x", True),
    ("self.step", True)])
def test_guards_on_what_changes_are_kept(changed, advised):
    guards = [of_class(LAYER, "torch.nn.modules.dropout.Dropout"), *[guard(f"{LAYER}.p")] * MANY]
    assert (on_guards(guards, [changed]) is not None) == advised


PROGRAM = """
    import torch
    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.line = torch.nn.LayerNorm(4), torch.nn.Linear(4, 4)
        def forward(self, x):
            return x + self.line(self.norm(x))
    model = torch.nn.Sequential(*(Block() for _ in range(24)))
    def run(options):
        torch._dynamo.reset()
        with torch.no_grad():
            return torch.compile(lambda x: model(x), backend="eager", options=options)(torch.ones(2, 4))
"""


@pytest.mark.slow
def test_the_filter_leaves_most_guards_out(tmp_path):
    torch = pytest.importorskip("torch")
    import depyf
    from depyf.recorded_runs import captures_of

    names = {}
    exec(textwrap.dedent(PROGRAM), names)
    guards, results = [], []
    for at, options in enumerate((None, {"guard_filter_fn": torch.compiler.skip_guard_on_inbuilt_nn_modules_unsafe})):
        with depyf.prepare_debug(str(tmp_path / str(at))):
            results.append(names["run"](options))
        capture, = captures_of(str(tmp_path / str(at))).values()
        guards.append(capture.functions[0].frames[0].entries[0].guards)
    assert results[0].equal(results[1])
    assert on_guards(guards[0]) is not None
    assert "skip_guard_on_inbuilt_nn_modules_unsafe" in (tmp_path / "0" / "index.md").read_text()
    (number,) = re.findall(r"(\d+) of \d+ guards are on modules of torch's", on_guards(guards[0]).why)
    assert len(guards[1]) == len(guards[0]) - int(number) < len(guards[0]) / 2
