"""Compilations without a Dynamo frame have files of their own; those that outlive the block are called that."""

import copy
import os
import re
import subprocess

import pytest

torch = pytest.importorskip("torch")

from functorch.compile import aot_function, aot_module_simplified, make_boxed_func  # noqa: E402
from torch._dynamo.backends.registry import lookup_backend  # noqa: E402
from torch._inductor.compile_fx import compile_fx  # noqa: E402

import depyf  # noqa: E402
from depyf.capture.torch_private import private_api  # noqa: E402
from depyf.records import store  # noqa: E402
from depyf.views.as_json import explain_document  # noqa: E402
from depyf.views.diff.difference import difference  # noqa: E402
from torch_forks import torch_python

pytestmark = pytest.mark.usefixtures("fresh_dynamo")
HERE = __file__


def wave(x):
    return (torch.relu(x).sin(),)


def compiler(gm, inputs):
    return make_boxed_func(gm.forward)


def line_of(text):
    with open(HERE, encoding="utf-8") as file:
        return next(number for number, line in enumerate(file, 1) if text in line)


def graphs_in(path):
    """Return the graphs by name; Dynamo numbers its own on from test to test."""
    return {re.sub(r"(?<=__compiled_fn_)\d+", "N", graph.name): graph for graph in store.read(str(path)).graphs}


def stages_of(graph):
    return [stage.stage for stage in graph.stages]


def test_aot_autograd_called_directly(tmp_path):
    weight = torch.ones(3, requires_grad=True)
    with depyf.prepare_debug(str(tmp_path)):
        compiled = aot_module_simplified(torch.fx.symbolic_trace(wave), [weight], fw_compiler=compiler)  # (direct)
        compiled(weight)[0].sum().backward()
        aot_function(wave, fw_compiler=compiler)(torch.ones(3))
        lookup_backend("aot_eager")(torch.fx.symbolic_trace(wave), [torch.ones(3)])
    graphs = graphs_in(tmp_path)
    first, second, third = graphs.values()
    assert first.name == "aot_module_simplified_1"
    assert {"Joint_graph", "Forward_graph", "Backward_graph"} <= set(stages_of(first))
    assert stages_of(second) == stages_of(third) == ["Forward_graph"]
    assert (first.call.filename, first.call.line) == (HERE, line_of("# (direct" + ")"))
    assert third.call.function == "aot_eager"
    head = (tmp_path / "aot_module_simplified_1.Forward_graph.0.py").read_text().splitlines()
    assert head[:2] == ["# aot_module_simplified_1: forward graph",
                        f"# given to aot_module_simplified at {HERE}:{first.call.line}"]
    index = (tmp_path / "index.md").read_text()
    assert "3 graphs given to a compiler directly; no function was compiled." in index
    assert "Nothing was compiled" not in index and "not finished" not in index
    assert f"Given to `aot_module_simplified` at `test_direct_calls.py:{first.call.line}`" in index
    (run,) = explain_document({"": store.read(str(tmp_path))}, "")["runs"]
    assert [(each["name"], each["by"]) for each in run["graphs_without_function"]][0] == (
        "aot_module_simplified_1", "aot_module_simplified")
    assert all(os.path.exists(tmp_path / file) for each in run["graphs_without_function"] for file in each["files"])


def direct_calls(path):
    with depyf.prepare_debug(str(path)):
        results = [compile_fx(torch.fx.symbolic_trace(wave), [torch.ones(size)])(torch.ones(size))[0]
                   for size in (3, 3, 4)]
        torch.compile(lambda x: x + 1, backend="eager")(torch.ones(3))
        with pytest.raises(RuntimeError):
            compile_fx(torch.fx.symbolic_trace(lambda x: (torch.mm(x, x),)), [torch.ones(3)])
    for result in results:
        torch.testing.assert_close(result, wave(torch.ones(len(result)))[0])
    return graphs_in(path)


@pytest.mark.torch_since((2, 9), "an error comes before the graph of a failed call")
def test_compile_fx_called_directly_several_times(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "cache"))
    cold = direct_calls(tmp_path / "cold")
    torch._dynamo.reset()
    warm = direct_calls(tmp_path / "warm")
    assert list(cold) == list(warm)
    for graphs in (cold, warm):
        for number in (1, 2, 3):
            graph = graphs[f"compile_fx_{number}"]
            assert len(graph.kernels) == 1 and {"Forward_graph", "AFTER_POST_GRAD"} <= set(stages_of(graph))
            assert len(set(stages_of(graph))) == len(graph.stages)
        assert graphs["compile_fx_4"].kernels == ()
        assert stages_of(graphs["__compiled_fn_N"]) == ["Captured_Graph"]
    index = (tmp_path / "cold" / "index.md").read_text()
    assert "Compiled by `compile_fx` at" in index and "1 graph, 4 graphs given to a compiler directly" in index
    assert index.count("Given to `compile_fx` at") == 1, "the one that failed"


def test_a_graph_that_is_compiled_when_it_runs(tmp_path):
    def backend(gm, inputs):
        compiled = {}

        def run(*args):
            if not compiled:
                compiled[0] = aot_module_simplified(copy.deepcopy(gm), list(args), fw_compiler=compiler)
            return compiled[0](*args)

        return run

    with depyf.prepare_debug(str(tmp_path)):
        torch.compile(lambda x: torch.relu(x) + 1, backend=backend)(torch.ones(3))
    graphs = graphs_in(tmp_path)
    assert stages_of(graphs["__compiled_fn_N"]) == ["Captured_Graph"]
    assert stages_of(graphs["aot_module_simplified_1"]) == ["Forward_graph"]


@pytest.mark.torch_since((2, 9), "the graph has no name yet")
def test_a_block_inside_the_backend(tmp_path):
    def backend(gm, inputs):
        with depyf.prepare_debug(str(tmp_path)):
            return aot_module_simplified(gm, inputs, fw_compiler=compiler)

    def twice(x):
        return x.sin() * 2

    assert torch.equal(torch.compile(twice, backend=backend)(torch.ones(3)), twice(torch.ones(3)))
    capture = store.read(str(tmp_path))
    (compilation,), (graph,) = capture.compilations, capture.graphs
    assert compilation.outcome == "open"
    assert graph.name.startswith("__compiled_fn_") and stages_of(graph) == ["Forward_graph"]
    assert (tmp_path / f"{graph.name}.Forward_graph.0.py").exists()
    index = (tmp_path / "index.md").read_text()
    assert "not finished" not in index and "Not compiled" not in index and "Nothing was compiled" not in index
    assert "the compilation of `twice` went on when it ended" in index.replace("test_a_block_inside_the_backend.", "")
    assert f"{graph.name}.Forward_graph.0.py" in index


def test_a_block_that_is_entered_inside_the_backend_and_left_later(tmp_path):
    block = depyf.prepare_debug(str(tmp_path))

    def backend(gm, inputs):
        block.__enter__()
        return aot_module_simplified(gm, inputs, fw_compiler=compiler)

    torch.compile(lambda x: x.sin() * 2, backend=backend)(torch.ones(3))
    block.__exit__(None, None, None)
    (compilation,), (graph,) = store.read(str(tmp_path)).compilations, graphs_in(tmp_path).values()
    assert compilation.outcome == "compiled" and stages_of(graph) == ["Forward_graph"]
    assert any(name.startswith("full_code_for_") for name in os.listdir(tmp_path))


@pytest.mark.torch_since((2, 10), "backward graphs are always compiled later")
def test_a_backward_graph_that_is_compiled_later(tmp_path, monkeypatch):
    """It is of the call that its forward graph is of, though others were compiled meanwhile."""
    from torch._functorch import config

    weight = torch.ones(3, requires_grad=True)
    with depyf.prepare_debug(str(tmp_path)), config.patch(force_non_lazy_backward_lowering=False):
        first = aot_function(wave, fw_compiler=compiler, dynamic=True)(weight)
        aot_function(wave, fw_compiler=compiler)(torch.ones(5))
        first[0].sum().backward()
    assert [set(stages_of(graph)) for graph in graphs_in(tmp_path).values()] == [
        {"Joint_graph", "Forward_graph", "Backward_graph"}, {"Forward_graph"}]


@pytest.mark.parametrize("name", ["AOT_CONTEXT", "BACKEND_ID", "SHOWN_GRAPH", "COMPILE_ID"])
def test_without_a_name_of_torch_the_program_runs_on(tmp_path, monkeypatch, name):
    api = getattr(private_api, name)
    monkeypatch.setattr(private_api, name, api.__class__(
        "torch.fx._utils:NoSuchName", api.use, api.lost, key=api.key))
    with depyf.prepare_debug(str(tmp_path)):
        aot_function(wave, fw_compiler=compiler)(torch.ones(3))
    assert stages_of(graphs_in(tmp_path)["aot_function_1"]) == ["Forward_graph"]


def test_a_program_that_is_run(tmp_path):
    """`depyf run` sees it as well, though no frame is compiled."""
    script = tmp_path / "direct.py"
    script.write_text("import torch\nfrom functorch.compile import aot_function\n"
                      "print(aot_function(lambda x: x.sin(), fw_compiler=lambda gm, _: gm)(torch.ones(1)))\n")
    done = subprocess.run([*torch_python(), "-m", "depyf", "run", "-o", str(tmp_path / "d"), str(script)], check=True,
                          capture_output=True, text=True)
    assert "tensor([0.8415])" in done.stdout
    assert "0 graphs of 0 functions, 1 graph given to a compiler directly" in done.stdout + done.stderr
    assert (tmp_path / "d" / "aot_function_1.Forward_graph.0.py").exists()


def test_what_differs_between_two_runs(tmp_path):
    def run(name, function):
        with depyf.prepare_debug(str(tmp_path / name), page=False):
            aot_function(function, fw_compiler=compiler)(torch.ones(3))
        return store.read(str(tmp_path / name))

    sine, cosine = run("sine", lambda x: x.sin()), run("cosine", lambda x: x.cos())
    assert not difference(sine, run("again", lambda x: x.sin()))
    (changed,) = difference(sine, cosine).changed
    assert changed.state == "changed" and changed.name == "aot_function_1"
    assert any("sin" in line for line in changed.lines)


def test_a_call_through_a_private_decorator_has_the_name_of_the_function(tmp_path):
    with depyf.prepare_debug(str(tmp_path)):
        torch.export.export(torch.nn.Linear(2, 2), (torch.ones(1, 2),)).run_decompositions()
    exported, graph = store.read(str(tmp_path)).graphs
    assert exported.name == "export_1"
    assert (graph.name, graph.call.function) == ("run_decompositions_1", "run_decompositions")
    assert "1 graph given to a compiler directly, 1 exported program; no function" in (tmp_path / "index.md").read_text()


@pytest.mark.torch_since((2, 10), "a strict export compiles a frame, which has its own graph")
def test_strict_export_is_no_unfinished_compilation(tmp_path):
    """Dynamo traces for the call, without a frame: torch reports neither begin nor end of a compilation."""
    with depyf.prepare_debug(str(tmp_path)):
        torch.export.export(torch.nn.Linear(3, 3), (torch.ones(2, 3),), strict=True)  # (export)
    capture = store.read(str(tmp_path))
    graph, = capture.graphs
    assert capture.compilations == () and stages_of(graph)[:1] == ["Captured_Graph"]
    assert (graph.name, graph.call.function, graph.call.line) == ("export_1", "export", line_of("# (export" + ")"))
    text = (tmp_path / "index.md").read_text()
    assert "`export` at" in text and "not finished" not in text


@pytest.mark.torch_since((2, 10), "a strict export compiles a frame, which has its own graph")
def test_each_strict_export_is_a_graph_of_its_own(tmp_path):
    """After ``reset`` torch counts anew: the second has the numbers of the first."""
    with depyf.prepare_debug(str(tmp_path)):
        torch.export.export(torch.nn.Linear(3, 3), (torch.ones(2, 3),), strict=True)
        torch._dynamo.reset()
        torch.export.export(torch.nn.ReLU(), (torch.ones(2, 3),), strict=True)
    first, second = store.read(str(tmp_path)).graphs
    assert (first.name, second.name) == ("export_1", "export_2")
    assert "linear" in first.stages[0].text and "relu" in second.stages[0].text
    assert all(stages_of(graph).count("Captured_Graph") == 1 for graph in (first, second))
