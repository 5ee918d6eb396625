"""Advice on guards that take long: the filter that it names leaves most of them out."""

import textwrap

import pytest

from depyf.advice.guards import MANY, on_guards


def test_few_guards_need_no_advice():
    assert on_guards(["L['self']._modules['a']"] * (MANY - 1)) is None


@pytest.mark.parametrize("source, name", [
    ("L['self']._modules['layers']._modules['0']._parameters['weight']", "skip_guard_on_inbuilt_nn_modules_unsafe"),
    ("G['config'].size", "skip_guard_on_globals_unsafe")])
def test_the_filter_is_for_what_most_guards_are_on(source, name):
    advice = on_guards([source] * MANY + ["L['x']"] * (MANY - 1))
    assert f"torch.compiler.{name}" in advice.change and str(MANY) in advice.why


def test_guards_on_many_things_have_no_advice():
    assert on_guards(["L['self']._modules['a']", "G['a']", "L['x']"] * MANY) is None


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
    assert on_guards([guard.source for guard in guards[0]]) is not None
    assert "skip_guard_on_inbuilt_nn_modules_unsafe" in (tmp_path / "0" / "index.md").read_text()
    assert len(guards[1]) < len(guards[0]) / 2
