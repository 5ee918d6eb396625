"""Each artefact of a dump, one test each: what ``make matrix`` reports of each torch (docs/measured/compatibility.md)."""

import os
import sys

import pytest

torch = pytest.importorskip("torch")

import depyf
from depyf.capture.torch_private import private_api
from depyf.cli.doctor import examine
from depyf.records import store

BREAK_LINE = 'if y.sum() < 0:'


def broken(x, y):
    x = torch.sin(x) + 1
    if y.sum() < 0:
        y = -y
    return x * y


def scaled(x, k):
    return x * k.shape[0]


def trained(x):
    return torch.nn.functional.gelu(x) * 2


class Dump:
    """A run of all three on backends that are quick."""

    def __init__(self, path):
        torch._dynamo.reset()
        self.broken = torch.compile(broken, backend="eager", dynamic=False)
        self.trained = torch.compile(trained, backend="aot_eager")
        scale = torch.compile(scaled, backend="eager")
        with depyf.prepare_debug(path) as on:
            self.call()
            self.broken(torch.ones(3), torch.ones(3))
            for n in (2, 3, 5):
                scale(torch.ones(2), torch.ones(n))
        self.path = on.path
        self.capture = store.read(os.path.join(on.path, store.FILE))

    def call(self):
        for sign in (1.0, -1.0):
            self.broken(torch.ones(2), torch.full((2,), sign))
        self.trained(torch.ones(4, requires_grad=True)).sum().backward()

    def function(self, name):
        return next(each for each in self.capture.functions if each.name == name)

    def stages(self):
        return [stage for graph in self.capture.graphs for stage in graph.stages]

    def of(self, function):
        return [each for each in self.capture.compilations if each.function == function]


@pytest.fixture(scope="module")
def dump(tmp_path_factory, record_testsuite_property):
    for each in examine().findings:  # for the report of make matrix
        if each.state != "present":
            record_testsuite_property("lacks", f"`{each.api.name}` is {each.state}; lost: {each.api.lost}")
    yield Dump(str(tmp_path_factory.mktemp("artefacts") / "d"))
    torch._dynamo.reset()


def transformed_code(dump):
    frames = [frame for function in dump.capture.functions for frame in function.frames]
    entries = [entry for frame in frames for entry in frame.entries]
    assert len(entries) >= 6
    assert {entry.transformed.source.fidelity for entry in entries} <= {"exact", "equivalent"}
    assert len(dump.function("broken").frames) == 3, "a function and its two continuations"


def guards(dump):
    first, second = dump.function("broken").frames[0].entries
    for entry in (first, second):
        assert any(guard.expression.startswith("check_tensor(L['x'], dtype=torch.float32, device='cpu', size=(")
                   for guard in entry.guards)
        assert not [guard for guard in entry.guards if guard.expression.startswith("torch_guard(") and "L[" in guard.expression]


def captured_graph(dump):
    texts = [stage.text for stage in dump.stages() if stage.stage == "Captured_Graph"]
    assert any("sin" in text and "f32[2]" in text for text in texts)


def aot_graphs(dump):
    assert {"Joint_graph", "Forward_graph", "Backward_graph"} <= {stage.stage for stage in dump.stages()}


def breaks(dump):
    graph_breaks = [each for compilation in dump.of("broken") for each in compilation.breaks]
    assert graph_breaks and graph_breaks[0].reason and graph_breaks[0].location.filename == __file__
    with open(__file__, encoding="utf-8") as file:
        assert file.read().splitlines()[graph_breaks[0].location.line - 1].strip() == BREAK_LINE


def recompiles(dump):
    failed = [each for compilation in dump.of("broken") for each in compilation.guard_failures]
    assert failed and "x" in failed[0].text and failed[0].text


def symbols(dump):
    kinds = {each.kind for compilation in dump.of("scaled") for each in compilation.symbols}
    assert "created" in kinds


def metrics(dump):
    done = [each for each in dump.capture.compilations if each.outcome == "compiled"]
    assert done and all(each.seconds > 0 and each.phases for each in done)


def full_code(dump):
    names = [name for name in os.listdir(dump.path) if name.startswith("full_code_for_")]
    assert {"full_code_for_broken_0.py", "full_code_for_scaled_0.py", "full_code_for_trained_0.py"} <= set(names)
    with open(os.path.join(dump.path, "full_code_for_broken_0.py"), encoding="utf-8") as file:
        text = file.read()
    space = {}
    exec(compile(text, "full", "exec"), space)
    x, y = torch.ones(2), torch.full((2,), -1.0)
    assert torch.equal(space["compiled_broken"](x, y), broken(x, y))


def linking(dump):
    """Lines of dumped files run, so that a breakpoint in them is hit."""
    if not private_api.ENTRY_BACKEND.present():
        pytest.skip("missing: breakpoints in transformed code where the process has several backends, which this torch "
                    "does not tell apart")
    seen = set()

    def trace(frame, event, argument):
        if frame.f_code.co_filename.startswith(dump.path):
            seen.add(os.path.basename(frame.f_code.co_filename))
            return trace
        return None

    sys.settrace(trace)
    try:
        with depyf.debug(pause=False):
            dump.call()
    finally:
        sys.settrace(None)
    assert any(name.startswith("__transformed_code_0_for_broken") for name in seen)
    assert any("Captured_Graph" in name for name in seen)
    if not private_api.AOT_EAGER_CODE.as_expected():
        pytest.skip(f"missing: {private_api.AOT_EAGER_CODE.lost}")
    assert any("Forward_graph" in name for name in seen) and any("Backward_graph" in name for name in seen)


def debug(dump, capsys):
    """Nothing is compiled inside, and the function that fits no version is named."""
    before = torch._dynamo.utils.counters["stats"]["unique_graphs"]
    capsys.readouterr()
    with depyf.debug(pause=False):
        dump.broken(torch.ones(7), torch.ones(7))
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == before
    if not private_api.STANCE_ANSWER.present():
        pytest.skip(f"missing: {private_api.STANCE_ANSWER.lost}")
    assert "broken (" in capsys.readouterr().err


def kernels(dump, tmp_path):
    compiled = torch.compile(trained, backend="inductor")
    with depyf.prepare_debug(str(tmp_path / "d")) as on:
        compiled(torch.ones(4))
    graphs = store.read(os.path.join(on.path, store.FILE)).graphs
    assert any(kernel.text and kernel.file for graph in graphs for kernel in graph.kernels)
    assert any(stage.stage == "AFTER_POST_GRAD" for graph in graphs for stage in graph.stages)


ARTEFACTS = {
    "transformed code": transformed_code, "guards": guards, "captured graph": captured_graph,
    "AOT graphs": aot_graphs, "kernels": kernels, "breaks": breaks, "recompiles": recompiles, "symbols": symbols,
    "metrics": metrics, "linking (breakpoints)": linking, "debug()": debug, "full code": full_code,
}


@pytest.mark.parametrize("name", ARTEFACTS)
def test_artefact(name, dump, request):
    check = ARTEFACTS[name]
    needed = check.__code__.co_varnames[1 : check.__code__.co_argcount]
    check(dump, *(request.getfixturevalue(each) for each in needed))
