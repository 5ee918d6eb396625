"""``debug(stop_on=...)``: planted faults are found at their lines, healthy programs run undisturbed."""

import os
import re
import shutil
import sys

import pytest

torch = pytest.importorskip("torch")

import planted_faults as faults

import depyf
from depyf.capture.torch_private import private_api
from depyf.link import sessions

runs_aot_graphs_as_code = pytest.mark.skipif(
    not private_api.AOT_EAGER_CODE.as_expected(), reason=f"missing: {private_api.AOT_EAGER_CODE.lost}")
COMPILER = shutil.which(os.environ.get("CXX", "g++"))
#: By default Inductor is tried on some of the programs: each takes seconds. (As in tests/zoo.)
ALL = os.environ.get("DEPYF_TEST_BACKENDS", "eager aot_eager").split()
FEW = ("zero_by_zero", "square_root_backward", "inside_a_fused_kernel", "trained")


def cases(names):
    return [pytest.param(name, backend, marks=runs_aot_graphs_as_code if backend == "aot_eager" else ())
            for name in names for backend in ("eager", "aot_eager", "inductor")
            if backend in ALL or (backend == "inductor" and COMPILER and name in FEW)]


@pytest.fixture(autouse=True)
def clean(monkeypatch, tmp_path):
    monkeypatch.setattr(sessions, "_active", [])
    monkeypatch.setattr(sessions, "_ended", [])
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def prepared(function, backend, directory, *inputs, dynamic=False, backward=False, **options):
    """Compiled and run once on harmless inputs."""
    compiled = torch.compile(function, backend=backend, dynamic=dynamic)
    with depyf.prepare_debug(str(directory), caches="bypass", **options):
        run(compiled, inputs, backward)
    return compiled


def run(function, inputs, backward=False):
    """Runs on copies; what comes out, with gradients."""
    torch.manual_seed(0)
    given = [each.clone().requires_grad_(backward and each.is_floating_point()) for each in inputs]
    out = function(*given)
    if backward:
        tensor = out if isinstance(out, torch.Tensor) else out[0]
        tensor.float().sum().backward()
    return out, [each.grad for each in given]


def good(backward=False):
    torch.manual_seed(1)
    return torch.rand(4, 4) * 0.4 + 0.55


def bad(name):
    torch.manual_seed(2)
    x = torch.rand(4, 4) * 0.4 + 0.55
    x[2, 1] = {"square_root_backward": 0.0, "half_overflow": 3.0, "zero_by_zero": 0.0,
               "infinity_minus_infinity": 1.5}.get(name, 1.0)
    return x


@pytest.mark.parametrize(("name", "backend"), cases(faults.FAULTS))
def test_a_planted_fault_is_found(name, backend, tmp_path):
    function, stop_on, backward = faults.FAULTS[name]
    dynamic = name == "dynamic_shapes"
    first = torch.cat([good()] * 3) if dynamic else good()
    compiled = prepared(function, backend, tmp_path, first, dynamic=dynamic, backward=backward)
    value = torch.cat([bad(name)] * 2) if dynamic else bad(name)
    if backward and backend == "eager":
        with depyf.debug(pause=False, stop_on=stop_on):
            run(compiled, [value], backward)  # torch's own autograd runs, no graph
        return
    with pytest.raises(depyf.BadValueFound) as caught, depyf.debug(pause=False, stop_on=stop_on):
        run(compiled, [value], backward)
    error = caught.value
    file, line = faults.fault_line(function)
    places = [(each.location.filename, each.location.line) for each in error.user_lines]
    of_torchs = places and os.path.dirname(torch.__file__) in places[0][0]
    if name == "custom_operation" and (of_torchs or not places and not private_api.ENTRY_BACKEND.present()):
        pytest.skip("this torch (before 2.11) names no line of the user's for a call of a custom operation")
    assert (file, line) in places, str(error)
    assert f"{file}:{line}" in str(error)
    assert os.path.dirname(error.filename) == str(tmp_path)
    with open(error.filename) as text:
        shown = text.read().split("\n")[error.line - 1]
    assert all(each in shown for each in error.names)
    if backend == "inductor":
        assert error.stage.startswith("kernel_")
        assert error.kernel in shown
    else:
        assert len(places) == 1, str(error)
        assert error.stage == ("Captured_Graph" if backend == "eager" else
                               "Backward_graph" if backward else "Forward_graph")
    if name == "deep_module" and backend != "inductor":
        assert "blocks.2" in error.user_lines[0].module


@pytest.mark.parametrize(("name", "backend"), cases(faults.HEALTHY))
def test_healthy_programs_run_as_without(name, backend, tmp_path, capsys):
    function = faults.HEALTHY[name]
    backward = name in ("trained", "masked_softmax")
    compiled = prepared(function, backend, tmp_path, good(), backward=backward)
    state = {key: value.clone() for key, value in getattr(function, "state_dict", dict)().items()}
    plain = run(compiled, [good()], backward)
    if state:
        function.load_state_dict(state)
    capsys.readouterr()
    with depyf.debug(pause=False, stop_on="nan"):
        watched = run(compiled, [good()], backward)
    assert "watched" not in capsys.readouterr().err
    torch.testing.assert_close(watched, plain, rtol=0, atol=0, equal_nan=True)


def guarded(x):
    y = torch.log(x)
    return torch.where(x > 0, y, 0.0)


@pytest.mark.parametrize("backend", ["eager", pytest.param("aot_eager", marks=runs_aot_graphs_as_code)])
def test_everything_is_as_before_afterwards(backend, tmp_path):
    compiled = prepared(guarded, backend, tmp_path, good())
    running = [each.function() for each in sessions.ended_sessions()[-1].functions]
    codes = [each.__code__ for each in running]
    before = sys.gettrace()
    with depyf.debug(pause=False, stop_on="inf"):
        assert all(each.__code__ is not code for each, code in zip(running, codes))
        with depyf.debug(pause=False, stop_on="nan"), pytest.raises(depyf.BadValueFound):
            compiled(-good())
        compiled(-good())  # the inner watch is over
    assert [each.__code__ for each in running] == codes
    assert all(each.__code__ is code for each, code in zip(running, codes))
    assert sys.gettrace() is before
    assert not torch.isnan(compiled(-good())).any()


@runs_aot_graphs_as_code
def test_a_nan_in_the_arguments_is_said_and_nobodys_fault(tmp_path, capsys):
    compiled = prepared(faults.log_of_a_negative, "aot_eager", tmp_path, good())
    value = good()
    value[0, 0] = float("nan")
    with depyf.debug(pause=False, stop_on="nan"):
        compiled(value)  # the log of the others is a NaN, too, but it took one
        compiled(value)
    output = capsys.readouterr().err
    assert output.count("had a NaN already when the graph was called") == 1
    assert "1 of 16 elements, the first at [0, 0]" in output
    assert f"called from {tmp_path}" in output
    assert re.search(r"its input (primals_1|arg0_1) \(x\) had", output), output


def test_a_graph_that_torch_interprets_is_said(tmp_path, capsys):
    compiled = prepared(faults.masked_softmax, "aot_eager", tmp_path, good())
    with depyf.debug(pause=False, stop_on="nan"):
        compiled(good())
    output = capsys.readouterr().err
    assert ("nothing is watched" in output) != private_api.AOT_EAGER_CODE.as_expected(), output


def test_an_unlinked_graph_is_said(tmp_path, capsys):
    compiled = prepared(faults.log_of_a_negative, "eager", tmp_path, good(), link=False)
    with depyf.debug(pause=False, stop_on="nan"):
        compiled(good())
    output = capsys.readouterr().err
    assert "not watched: __compiled_fn_" in output
    assert "nothing is watched" in output


def test_a_backend_of_its_own_is_said(tmp_path, capsys):
    def mine(gm, inputs):
        return torch.jit.trace(gm, inputs)

    compiled = prepared(faults.second_graph, mine, tmp_path, good())
    with depyf.debug(pause=False, stop_on="nan"):
        compiled(good())
    output = capsys.readouterr().err
    assert output.count("not watched: __compiled_fn_") == 2
    assert "mine" in output


def test_a_function_of_the_users(tmp_path):
    def large(name, value):
        return isinstance(value, torch.Tensor) and bool((value.abs() > 100).any())

    def grows(x):
        y = x * 50
        return y * 50 + 1

    compiled = prepared(grows, "eager", tmp_path, good())
    with pytest.raises(depyf.BadValueFound, match="large") as caught, depyf.debug(pause=False, stop_on=large):
        compiled(good())
    assert "y * 50" in str(caught.value)


def test_constants_that_are_infinite_are_no_fault(tmp_path):
    compiled = prepared(faults.masked_softmax, "eager", tmp_path, good())
    with depyf.debug(pause=False, stop_on="inf"):
        compiled(good())


def test_inference_mode_and_in_place(tmp_path):
    with torch.inference_mode():
        compiled = prepared(faults.in_place, "eager", tmp_path, good() + 5)
        with pytest.raises(depyf.BadValueFound), depyf.debug(pause=False, stop_on="nan"):
            compiled(good())
        with depyf.debug(pause=False, stop_on="nan"):
            compiled(good() + 5)


def test_a_bad_value_of_stop_on(tmp_path):
    prepared(faults.in_place, "eager", tmp_path, good())
    with pytest.raises(ValueError, match="stop_on"), depyf.debug(pause=False, stop_on="zero"):
        pass


@runs_aot_graphs_as_code
def test_threads_watch_alike(tmp_path):
    import threading

    compiled = prepared(faults.square_root_backward, "aot_eager", tmp_path, good(), backward=True)
    errors = []

    def work():
        try:
            run(compiled, [bad("square_root_backward")], backward=True)
        except depyf.BadValueFound as error:
            errors.append(error)

    with depyf.debug(pause=False, stop_on="nan"):
        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(errors) == 3


@runs_aot_graphs_as_code
def test_pauses_in_the_frame_of_the_graph(tmp_path, monkeypatch, capsys):
    seen = []

    def hook():
        frame = sys._getframe(1)
        seen.append((frame.f_code.co_filename, frame.f_lineno, dict(frame.f_locals)))

    compiled = prepared(faults.log_of_a_negative, "aot_eager", tmp_path, good())
    monkeypatch.setattr(sys, "breakpointhook", hook)
    with depyf.debug(stop_on="nan"):
        assert seen == []
        compiled(bad(""))
        compiled(bad(""))
    assert len(seen) == 1, "once for each line"
    path, line, names = seen[0]
    assert torch.isnan(names["log"]).any()
    assert names["sub"] is not None, "before the line lets go of what it took"
    output = capsys.readouterr().err
    assert f"{path}:{line}" in output
    assert "paused" in output
