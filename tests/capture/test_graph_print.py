"""Graphs are written as torch prints them; what is unusual in a graph or in a torch is left to torch."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils.checkpoint import checkpoint

from depyf.capture.torch_private import graph_print

#: The torch whose form it is; others print themselves.
learned = pytest.mark.skipif(
    graph_print._digest(torch.fx.graph.CodeGen._gen_python_code.__code__) not in graph_print._LEARNED,
    reason="the form of the print of this torch was not learned")


@pytest.fixture(autouse=True)
def _unknown_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test finds out for itself whether torch prints as expected."""
    monkeypatch.setattr(graph_print, "_this_torch", functools.cache(graph_print._Torch))
    torch._dynamo.reset()


def by_torch(gm: torch.fx.GraphModule) -> str:
    return gm.print_readable(print_output=False, include_stride=True, include_device=True)


def graphs_of(
    function: Callable[..., Any], *args: Any, dynamic: bool | None = None, in_autograd: bool = False,
) -> list[torch.fx.GraphModule]:
    """Return the graphs that torch captures of a call; with ``in_autograd`` those of AOTAutograd as they run."""
    from torch._dynamo.backends.common import aot_autograd
    from torch._functorch.aot_autograd import boxed_nop_preserve_node_meta as as_it_runs

    found = []

    def keep(gm: torch.fx.GraphModule, inputs: Any) -> Any:
        result = as_it_runs(gm, inputs) if in_autograd else gm.forward
        found.append(gm)
        return result

    backend = aot_autograd(fw_compiler=keep) if in_autograd else keep
    result = torch.compile(function, backend=backend, dynamic=dynamic)(*args)
    if in_autograd and result.requires_grad:
        result.sum().backward()
    return found


class Layer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)
        self.scale = torch.nn.Parameter(torch.ones(3, dtype=torch.float64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.linear(x).to(torch.float64) * self.scale
        y += y.view(-1)[:3] * 2
        values, places = y.topk(2, dim=-1)
        y[..., 0] = values.sum() + places.max()
        return torch.nn.functional.dropout(y, p=0.1, training=True).mT


def several(x: torch.Tensor, n: int) -> tuple[torch.Tensor, ...]:
    torch.zeros(x.shape[0] * 2 + n)
    halves = torch.split(x, [1, x.shape[0] - 1])
    return torch.cat([half * math.inf for half in halves], dim=0), x.T.contiguous(), x.new_empty(n, dtype=torch.bool)


def within(x: torch.Tensor) -> torch.Tensor:
    return torch.cond(x.sum() > 0, lambda a: a + 1, lambda a: torch.cond(a.max() > 0, torch.sin, torch.cos, (a,)), (x,))


@learned
@pytest.mark.parametrize("in_autograd", [False, True])
@pytest.mark.parametrize(("function", "args", "dynamic"), [
    (Layer(), (torch.ones(2, 3),), None),
    (Layer(), (torch.ones(4, 3, requires_grad=True),), True),
    (lambda *args: several(*args)[0], (torch.ones(5, 2), 7), True),
    (within, (torch.ones(4),), None),
    (lambda x: x.sum(), (torch.ones(4, dtype=torch.complex64)[::2],), None),
], ids=["layer", "sizes that vary", "splits", "graphs within", "a view"])
def test_as_torch_prints(
    function: Callable[..., Any], args: tuple[Any, ...], dynamic: bool | None, in_autograd: bool,
) -> None:
    graphs = graphs_of(function, *args, dynamic=dynamic, in_autograd=in_autograd)
    assert graphs
    for gm in graphs:
        writer = graph_print._Writer()
        assert "".join(writer.module(gm, gm._get_name())) == graph_print.readable(gm) == by_torch(gm)
    assert graph_print._this_torch().same is True


@learned
def test_the_torch_that_tests_run_with_is_spared_the_print(monkeypatch: pytest.MonkeyPatch) -> None:
    [gm] = graphs_of(Layer(), torch.ones(2, 3))
    whole = graph_print.readable(gm)
    monkeypatch.delattr(torch.fx.GraphModule, "print_readable")
    assert graph_print.readable(gm) == whole


def test_a_torch_that_may_tell_more_prints_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    def other(self: Any, nodes: Any) -> list[Any]:
        return [node.meta.get("something_new") for node in nodes]

    monkeypatch.setattr(torch.fx.graph.CodeGen, "_gen_python_code", other)
    assert graph_print._digest(other.__code__) not in graph_print._LEARNED
    monkeypatch.setattr(torch.fx.GraphModule, "print_readable", lambda self, **_: "torch's own")
    gm = torch.fx.GraphModule.__new__(torch.fx.GraphModule)
    assert graph_print.readable(gm) == "torch's own"


def test_names_that_torch_changes_are_left_to_it() -> None:
    graph = torch.fx.Graph()
    x = graph.placeholder("input")
    graph.output(graph.call_function(math.sqrt, (x,)))
    gm = torch.fx.GraphModule({}, graph)
    for node in gm.graph.nodes:
        node.meta["val"] = torch.ones(2)
    with pytest.raises(graph_print._Unusual):
        "".join(graph_print._Writer().module(gm, "GraphModule"))
    assert graph_print.readable(gm) == by_torch(gm)


def test_what_torch_says_above_a_node_is_left_to_it() -> None:
    for gm in graphs_of(lambda x: checkpoint(lambda a: a.sin().cos(), x, use_reentrant=False),
                        torch.ones(4, requires_grad=True), in_autograd=True):
        assert graph_print.readable(gm) == by_torch(gm)
    gm = make_fx(lambda x: x.sin())(torch.ones(2))
    next(iter(gm.graph.find_nodes(op="call_function", target=torch.ops.aten.sin.default))).meta["custom"] = {"a": 1}
    assert graph_print.readable(gm) == by_torch(gm)  # (Torch before 2.10 says nothing.)


@learned
def test_a_graph_that_nothing_is_known_of() -> None:
    gm = torch.fx.symbolic_trace(torch.nn.Sequential(torch.nn.ReLU()))
    assert graph_print.readable(gm) == by_torch(gm)
    assert graph_print._this_torch().same is None  # a sample without a tensor would not tell


@learned
def test_a_torch_that_prints_otherwise_has_the_last_word(monkeypatch: pytest.MonkeyPatch) -> None:
    original = torch.fx.GraphModule.print_readable
    monkeypatch.setattr(torch.fx.GraphModule, "print_readable",
                        lambda self, *args, **kwargs: original(self, *args, **kwargs).replace("f32[", "float32["))
    [gm] = graphs_of(lambda x: x + 1, torch.ones(2))
    assert "float32[2]" in graph_print.readable(gm)
    assert graph_print._this_torch().same is False


def test_errors_are_torchs() -> None:
    with pytest.raises(AttributeError, match="print_readable"):
        graph_print.readable(object())


@learned
def test_an_error_of_ours_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> str:
        raise LookupError("ours")

    monkeypatch.setattr(graph_print._Writer, "_value", fails)
    [gm] = graphs_of(lambda x: x + 1, torch.ones(2))
    with pytest.warns(RuntimeWarning, match="LookupError: ours.*torch prints its graphs") as told:
        assert [graph_print.readable(gm) for _ in range(2)] == [by_torch(gm)] * 2
    assert len(told) == 1
