"""``depyf.compare``: where a stage of torch.compile gives something else than eager Python."""

import inspect
import os
import shutil
import tempfile

import pytest

torch = pytest.importorskip("torch")

import depyf
from depyf.capture import forked
from depyf.capture.torch_private import cache_entries

aten = torch.ops.aten
EARLY = ("captured", "aot")
needs_compiler = pytest.mark.skipif(not shutil.which(os.environ.get("CXX", "g++")), reason="needs a C++ compiler")

pytestmark = pytest.mark.usefixtures("fresh_dynamo")


@pytest.fixture(autouse=True, params=["forked", "on copies"])
def place(request, monkeypatch):
    """Where the runs are done: in forked processes, or, as where CUDA is in use, on copies in this one."""
    if request.param == "on copies":
        monkeypatch.setattr(forked, "why_not", lambda: "forking is refused")
    elif forked.why_not():
        pytest.skip("no process can be forked here")


def line_of(function, text):
    """``(file, line)`` of the first line of a function that holds a text."""
    lines, first = inspect.getsourcelines(function)
    return __file__, first + next(index for index, line in enumerate(lines) if text in line)


def places(difference):
    return [(each.location.filename, each.location.line) for each in difference.user_lines]


def chain(x):
    y = x + 1
    z = torch.nn.functional.silu(y)
    w = torch.sin(z)
    return w * 2 + y


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 2))
        self.calls = 0
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x, scale=1.0):
        self.calls += 1
        self.count = self.count + 1
        x.add_(1)
        return {"loss": (self.layers(x) * scale).sum(), "count": self.count}


def test_a_healthy_model_is_equal_and_untouched():
    model, x = Model(), torch.randn(6, 4)
    versions = {name: (id(value), value._version) for name, value in model.state_dict(keep_vars=True).items()}
    state = {name: value.clone() for name, value in model.state_dict().items()}
    before, version, seed = x.clone(), x._version, torch.get_rng_state()
    result = depyf.compare(model, x, scale=2.0, backward=True, stages=EARLY)
    assert result.equal, str(result)
    assert result.first is None
    assert [stage.stage for stage in result.stages] == list(EARLY)
    assert all(stage.graphs for stage in result.stages), str(result)
    assert torch.equal(x, before) and x._version == version
    assert {name: (id(value), value._version)
            for name, value in model.state_dict(keep_vars=True).items()} == versions
    assert all(torch.equal(value, state[name]) for name, value in model.state_dict().items())
    assert all(each.grad is None for each in model.parameters())
    assert model.calls == 0
    assert torch.equal(torch.get_rng_state(), seed)
    assert "equal" in str(result) and "captured graph" in str(result)


def test_gradients_of_arguments_are_compared():
    x = torch.randn(3, requires_grad=True)
    result = depyf.compare(chain, x, backward=True, stages=("captured",))
    assert result.equal, str(result)
    assert x.grad is None


@pytest.mark.torch_since((2, 13), "an operator compiles its functions otherwise in eager Python")
def test_an_operator_that_compiles_in_eager_python_has_its_gradients_there():
    weight = torch.nn.Parameter(torch.ones(3))
    compiled = torch.compile(lambda x: torch.cond(x.sum() > 0, lambda x: x * weight, lambda x: x - weight, (x,)),
                             backend="aot_eager")
    assert depyf.compare(compiled, torch.ones(3)).equal


def test_a_wrong_decomposition_is_found_at_its_node(monkeypatch):
    from torch._inductor import decomposition

    monkeypatch.setitem(
        decomposition.decompositions, aten.silu.default, lambda x: x * torch.sigmoid(x) + 0.01)
    result = depyf.compare(chain, torch.randn(4), stages=EARLY)
    assert not result.equal
    assert result.stage("captured").equal
    first = result.first
    assert (first.stage, first.kind) == ("aot", "node")
    assert places(first) == [line_of(chain, "silu")]
    assert first.max_difference == pytest.approx(0.01, rel=1e-3)
    assert f"{__file__}:{line_of(chain, 'silu')[1]}" in str(result)
    assert "DIFFERENT" in str(result)


def test_a_wrong_gradient_is_found_at_its_node(monkeypatch):
    from torch._inductor import decomposition

    def wrong(grad, x):
        s = torch.sigmoid(x)
        return grad * s * (1 + x * (1 - s)) + 0.01

    monkeypatch.setitem(decomposition.decompositions, aten.silu_backward.default, wrong)
    result = depyf.compare(chain, torch.randn(4, requires_grad=True), stages=EARLY, backward=True)
    assert result.stage("captured").equal
    assert result.stage("aot").differing == ("gradient of args[0]",)
    first = result.first
    assert (first.stage, first.kind, first.backward) == ("aot", "node", True), str(result)
    assert places(first) == [line_of(chain, "silu")]
    assert first.max_difference == pytest.approx(0.01, rel=1e-3)


@needs_compiler
def test_a_wrong_lowering_is_found_at_its_kernel(monkeypatch):
    from torch._inductor import lowering

    monkeypatch.setitem(lowering.lowerings, aten.sin.default, lowering.lowerings[aten.cos.default])
    result = depyf.compare(chain, torch.rand(4) + 1)
    assert result.stage("captured").equal and result.stage("aot").equal, str(result)
    assert result.stage("aot").max_difference < 1e-5
    first = result.first
    assert (first.stage, first.kind) == ("inductor", "kernel"), str(result)
    assert "sin" in first.nodes
    assert line_of(chain, "torch.sin") in places(first)


def wrong_pass(graph):
    for node in graph.nodes:
        if node.target is aten.sin.default:
            node.target = aten.cos.default
            node.name = "cos"


@needs_compiler
def test_a_wrong_pass_of_inductors_is_found_at_its_node():
    from torch._inductor import config

    with config.patch(post_grad_custom_post_pass=wrong_pass):
        result = depyf.compare(chain, torch.rand(4) + 1)
    first = result.first
    assert (first.stage, first.kind) == ("inductor", "node"), str(result)
    assert line_of(chain, "torch.sin") in places(first)


def differs(x):
    y = x + 1
    y = y * (3.0 if torch.compiler.is_compiling() else 2.0)
    return y.sum()


def test_what_runs_otherwise_in_eager_python_is_found():
    result = depyf.compare(differs, torch.ones(3), stages=EARLY)
    first = result.first
    assert (first.stage, first.kind) == ("captured", "node"), str(result)
    assert places(first) == [line_of(differs, "is_compiling")]
    assert first.max_difference == pytest.approx(2.0)
    assert result.stage("aot").first is first, "later stages have it of the captured graph"


def broken(x):
    y = x + 1
    torch._dynamo.graph_break()
    return torch.nn.functional.silu(y)


def test_behind_a_graph_break(monkeypatch):
    from torch._inductor import decomposition

    monkeypatch.setitem(decomposition.decompositions, aten.silu.default, lambda x: x * torch.sigmoid(x) + 1)
    result = depyf.compare(broken, torch.randn(4), stages=EARLY)
    assert (result.first.stage, result.first.graph) == ("aot", 2)
    assert places(result.first) == [line_of(broken, "silu")]


def test_tolerances():
    def grows(x):
        return x * (1.001 if torch.compiler.is_compiling() else 1.0)

    x = torch.ones(3)
    assert not depyf.compare(grows, x, stages=("captured",)).equal
    assert depyf.compare(grows, x, stages=("captured",), rtol=0.01, atol=0.0).equal


def test_the_users_compiled_function_stays_as_it_is():
    compiled = torch.compile(chain, backend="eager", dynamic=False)
    compiled(torch.ones(3))
    entries = cache_entries.cache_entries(chain.__code__)
    codes = [entry.code for entry in entries]
    result = depyf.compare(compiled, torch.ones(5), stages=EARLY)
    assert result.equal and all(stage.graphs for stage in result.stages)
    assert [entry.code for entry in cache_entries.cache_entries(chain.__code__)] == codes
    with torch.compiler.set_stance("fail_on_recompile"):
        compiled(torch.ones(3))


def helper(x):
    torch._dynamo.graph_break()
    return x * 2


def calls_helper(x):
    return helper(x + 1) - 1


def test_nothing_is_left_compiled():
    assert depyf.compare(calls_helper, torch.ones(3), stages=EARLY).equal
    for function in (calls_helper, helper):
        assert cache_entries.cache_entries(function.__code__) == []


def test_what_the_user_compiled_behind_a_break_stays():
    compiled = torch.compile(helper, backend="eager", dynamic=False)
    compiled(torch.ones(3))
    codes = [entry.code for entry in cache_entries.cache_entries(helper.__code__)]
    assert depyf.compare(calls_helper, torch.ones(3), stages=EARLY).equal
    assert [entry.code for entry in cache_entries.cache_entries(helper.__code__) if entry.code is not None] == codes
    with torch.compiler.set_stance("fail_on_recompile"):
        compiled(torch.ones(3))


def test_no_files_are_left(tmp_path, monkeypatch):
    (tmp_path / "cache").mkdir()
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    monkeypatch.chdir(tmp_path)
    depyf.compare(chain, torch.ones(3), stages=EARLY)
    assert os.environ["TORCHINDUCTOR_CACHE_DIR"] == str(tmp_path / "cache")
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_stage_that_cannot_run_is_told(monkeypatch):
    from torch._inductor import decomposition

    def broken_decomposition(x):
        raise ArithmeticError("on purpose")

    monkeypatch.setitem(decomposition.decompositions, aten.silu.default, broken_decomposition)
    result = depyf.compare(chain, torch.ones(3), stages=EARLY)
    assert result.stage("captured").equal
    assert "on purpose" in result.stage("aot").failure
    assert not result.equal
    assert "did not run" in str(result)


def test_an_exception_is_a_result():
    def fails(x):
        raise KeyError("mine")

    assert depyf.compare(fails, torch.ones(3), stages=("captured",)).equal


def test_an_exception_that_only_one_of_them_raises():
    def fails(x):
        if not torch.compiler.is_compiling():
            raise KeyError("mine")
        return x

    assert depyf.compare(lambda x: {}["mine"], torch.ones(3), stages=("captured",)).equal
    result = depyf.compare(fails, torch.ones(3), stages=("captured",))
    assert result.stage("captured").differing == ("exception",), str(result)


def test_wrong_options():
    with pytest.raises(ValueError, match="stages"):
        depyf.compare(chain, torch.ones(3), stages=("kernels",))
    with pytest.raises(ValueError, match="rtol"):
        depyf.compare(chain, torch.ones(3), rtol=1.0)
