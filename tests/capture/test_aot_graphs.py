"""Graphs of AOTAutograd that a plain function compiles: printed once, in the form that runs."""

import pytest

torch = pytest.importorskip("torch")

from functorch.compile import make_boxed_func  # noqa: E402
from torch._dynamo.backends.common import aot_autograd  # noqa: E402

import depyf  # noqa: E402
from depyf.records import store  # noqa: E402


def double(x):
    return x.sin() * 2


def stages_of(capture):
    return {stage.stage: stage.text for graph in capture.graphs for stage in graph.stages}


def test_both_directions_are_there(tmp_path):
    def compiler(gm, inputs):
        return make_boxed_func(gm.forward)

    x = torch.ones(3, requires_grad=True)
    with depyf.prepare_debug(str(tmp_path / "d")) as on:
        compiled = torch.compile(double, backend=aot_autograd(fw_compiler=compiler, bw_compiler=compiler))
        compiled(x).sum().backward()
    assert torch.equal(x.grad, 2 * torch.cos(torch.ones(3)))
    texts = stages_of(store.read(on.path))
    assert {"Captured_Graph", "Joint_graph", "Forward_graph", "Backward_graph"} <= texts.keys()
    assert "sin.default" in texts["Forward_graph"] and "cos.default" in texts["Backward_graph"]


def test_a_compiler_that_raises_leaves_its_graph(tmp_path):
    def compiler(gm, inputs):
        raise ZeroDivisionError("no such compiler")

    with depyf.prepare_debug(str(tmp_path / "d")) as on:
        with pytest.raises(Exception, match="no such compiler"):
            torch.compile(double, backend=aot_autograd(fw_compiler=compiler))(torch.ones(3))
    torch._dynamo.reset()
    assert "sin.default" in stages_of(store.read(on.path))["Forward_graph"]
