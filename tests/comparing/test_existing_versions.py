"""``depyf.compare`` on the versions that exist: what is wrong in them is found and named, and nothing is left behind."""

import random
import subprocess

import pytest

torch = pytest.importorskip("torch")

import depyf
from depyf.capture import forked
from depyf.capture.torch_private import cache_entries
from torch_forks import torch_python

pytestmark = pytest.mark.skipif(bool(forked.why_not()), reason="no process can be forked here")
log = []


@pytest.fixture(autouse=True)
def nothing_logged(fresh_dynamo):
    log.clear()


def test_a_version_whose_guards_allow_too_much():
    def scaled(x, factor):
        return x * factor + 1

    compiled = torch.compile(scaled, backend="eager", options={
        "guard_filter_fn": lambda guards: [each.name != "L['factor']" and "factor" not in each.name for each in guards]})
    tensor = torch.ones(3)
    compiled(tensor, 2)
    result = depyf.compare(compiled, tensor, 5, stages=("captured",))
    assert result.stage("captured").equal and not result.running.equal
    assert result.running.served == ("scaled [0/0]",)
    fault = result.running.fault
    assert (fault.part, fault.name) == ("guard", "L['factor']"), str(result)
    assert "version [0/0] of scaled serves factor = 5" in fault.text


def planted(gm, inputs):
    for node in gm.graph.nodes:
        if node.target in (torch.sin, "sin"):
            node.target = torch.cos
    gm.recompile()
    return gm.forward


def waves(x):
    y = x + 1
    z = torch.sin(y)
    return z * 2


def test_a_backend_that_changes_a_graph():
    compiled = torch.compile(waves, backend=planted)
    compiled(torch.ones(3))
    fault = depyf.compare(compiled, torch.ones(3), stages=()).running.fault
    assert fault.part == "graph" and fault.name in ("z", "sin"), str(fault)
    assert fault.user_lines[0].location.text == "z = torch.sin(y)"


@pytest.fixture
def children_that_run_backward():
    """Skip where a test that came before ran a backward pass, and this torch, built for GPUs, minds."""
    if why := forked.why_no_backward():
        pytest.skip(why)


def appends(x, seen):
    seen.append(x.sum().item())
    log.append(len(seen))
    return x + len(seen)


def loses(x, seen):
    seen.append(1)
    return x + 1


@pytest.mark.usefixtures("children_that_run_backward")
def test_an_effect_that_is_lost(monkeypatch):
    from torch._dynamo import side_effects

    # Dynamo then writes no code that brings the user's objects up to date.
    monkeypatch.setattr(side_effects.SideEffects, "codegen_update_mutated", lambda self, *args, **kwargs: None)
    compiled, seen = torch.compile(loses, backend="eager"), []
    compiled(torch.ones(2), seen)
    assert seen == []
    result = depyf.compare(compiled, torch.ones(2), seen, stages=("captured",))
    assert not result.running.equal and not result.stage("captured").equal
    fault = result.running.fault
    assert (fault.part, fault.name) == ("side effect", "args[1]"), str(result)
    assert "list of 0; in eager Python list of 1" in str(result)
    assert seen == []


@pytest.mark.usefixtures("children_that_run_backward")
def test_nothing_is_left():
    compiled = torch.compile(appends, backend="eager")
    seen, tensor = [], torch.ones(2)
    compiled(tensor, seen)
    compiled(tensor, seen)

    def state():
        entries = [(code.co_name, entry.name, id(entry.code)) for code in cache_entries.known_codes()
                   for entry in cache_entries.entries(code)]
        return (list(seen), list(log), entries, random.getstate(), torch.get_rng_state().tolist(),
                {name: dict(values) for name, values in torch._dynamo.utils.counters.items()},
                torch._dynamo.convert_frame.FRAME_COUNTER, sorted(name for name in globals()), tensor._version)

    before = state()
    result = depyf.compare(compiled, tensor, seen, stages=("captured",))
    assert result.equal and result.running.equal, str(result)
    assert state() == before
    assert result.running.served


def test_a_number_that_the_compile_cache_keeps(tmp_path):
    """A known silent error of torch 2.13, in a process of its own: its caches are fresh."""
    program = tmp_path / "stale.py"
    program.write_text('''
import torch, torch.nn.functional as F, depyf
torch.manual_seed(0); x, y = torch.randn(4, 4), torch.randn(4, 4)
def g(x, s): return F.huber_loss(x * s, y, delta=s + 1e-3)
c = torch.compile(g)
for s in (0.5, 1.0, 2.0): c(x, s)
print(depyf.compare(c, x, 4.0, stages=()))
print(c(x, 4.0).item() == g(x, 4.0).item())
''')
    import os

    environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache")}
    for name in ("TORCHINDUCTOR_FORCE_DISABLE_CACHES", "TORCHINDUCTOR_FX_GRAPH_CACHE"):
        environment.pop(name, None)
    done = subprocess.run([*torch_python(), str(program)], env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    if done.stdout.endswith("True\n"):
        pytest.skip("this torch does not have the error")
    assert "DIFFERENT" in done.stdout
    assert "at fault: cache of g [0/3]: version [0/3] of g serves this call; its guards fit" in done.stdout, done.stdout


@pytest.mark.usefixtures("children_that_run_backward")
def test_calls_are_checked_while_the_program_runs(tmp_path, capfd):
    def scaled(x, factor):
        print("factor", factor)
        return torch.sin(x) * factor

    right = torch.compile(scaled, backend="eager")
    wrong = torch.compile(lambda x, factor: x + factor, backend="eager", options={
        "guard_filter_fn": lambda guards: ["factor" not in each.name for each in guards]})

    def program():
        return [(right(torch.ones(2), each).tolist(), wrong(torch.ones(2), each).tolist()) for each in (2, 3)]

    with depyf.prepare_debug(str(tmp_path / "dump"), check=True):
        results = program()
    assert results[1][1] == [3.0, 3.0]  # as wrong as without
    out, err = capfd.readouterr()
    assert out == "factor 2\nfactor 3\n"
    assert "4 of 4 compiled calls judged: 3 equal to eager Python, 1 DIFFERENT" in err
    text = (tmp_path / "dump" / "checked_calls.txt").read_text()
    assert "call 4, <lambda>(x=f32[2], factor=3) at test_existing_versions.py:" in text, text
    assert "guard L['factor']" in text, text
    # What opens the dump says it first.
    index = (tmp_path / "dump" / "index.md").read_text()
    assert "Wrong results: 1 of 4 judged calls gives something else" in index, index


def test_calls_of_one_version_are_told_together(tmp_path):
    wrong = torch.compile(lambda x, factor: x + factor, backend="eager", options={
        "guard_filter_fn": lambda guards: ["factor" not in each.name for each in guards]})
    with depyf.prepare_debug(str(tmp_path / "dump"), check=True):
        for factor in (2, 3, 4, 5):
            wrong(torch.ones(2), factor)
    text = (tmp_path / "dump" / "checked_calls.txt").read_text()
    assert text.count("at fault: guard") == 1 and "likewise calls 3, 4" in text, text


@pytest.mark.usefixtures("children_that_run_backward")
def test_one_call_in_three(tmp_path, capfd):
    compiled = torch.compile(waves, backend="eager")
    with depyf.prepare_debug(str(tmp_path / "dump"), check=3):
        for _ in range(7):
            compiled(torch.ones(2))
    assert "3 of 7 compiled calls judged: all equal" in capfd.readouterr().err


@pytest.mark.parametrize("words, spelled", [
    (["--check", "a.py"], ["--check=1", "a.py"]), (["-o", "dir", "--check", "a.py", "--check"],
                                                    ["-o", "dir", "--check=1", "a.py", "--check"]),
    (["--check=4", "a.py"], ["--check=4", "a.py"]), (["a.py", "--check"], ["a.py", "--check"])])
def test_a_plain_check_takes_no_value(words, spelled):
    from depyf.program.options import spelled_out

    assert spelled_out(words) == spelled


def test_random_numbers_of_numpy_that_torch_draws():
    """Torch draws them from its own generator, unless ``use_numpy_random_stream`` is set: that is no error."""
    numpy = pytest.importorskip("numpy")

    def noisy(x):
        return x + float(numpy.random.uniform(0, 1)) + torch.rand(2)

    compiled = torch.compile(noisy, backend="eager")
    compiled(torch.ones(2))
    result = depyf.compare(compiled, torch.ones(2))
    assert result.equal and result.running.served, str(result)


def test_gradients_that_share_memory():
    """A silent error of torch 2.13: a slice of a gradient is another's, and changing one in place changes both."""
    token, places = torch.nn.Parameter(torch.ones(1, 1, 4)), torch.nn.Parameter(torch.ones(1, 3, 4))
    patches = torch.arange(8.0).reshape(1, 2, 4)

    def embedded(x):
        return (torch.cat([token, x], 1) + places).pow(2)

    compiled = torch.compile(embedded, backend="aot_eager")
    compiled(patches).sum().backward()
    if token.grad.untyped_storage().data_ptr() != places.grad.untyped_storage().data_ptr():
        pytest.skip("this torch does not have the error")
    if forked.why_no_backward():
        pytest.skip("no forked process can run a backward pass here")
    token.grad = places.grad = None
    running = depyf.compare(compiled, patches, stages=()).running
    assert not running.equal and running.fault.part == "backward graph", str(running)
    assert "shares memory with gradient of " in running.fault.text, str(running)


def test_where_no_child_can_run_a_backward_pass(monkeypatch):
    """Torch built for GPUs: after a backward pass in the process, autograd refuses to run in a forked one."""
    monkeypatch.setattr(forked, "why_no_backward", lambda: "a reason")
    weight = torch.nn.Parameter(torch.ones(3))
    compiled = torch.compile(lambda x: x * weight, backend="eager")
    compiled(torch.ones(3))
    result = depyf.compare(compiled, torch.ones(3), stages=())
    assert result.equal and result.running.served
    result = depyf.compare(compiled, torch.ones(3), stages=("aot",), backward=True)
    assert result.equal and result.running.served and [stage.stage for stage in result.stages] == ["aot"]
    assert "note: all was run on copies in this process, and no part at fault was looked for: a reason" in str(result)


def test_a_child_tells_why_autograd_refuses(monkeypatch):
    def refuse(*args, **kwargs):
        raise RuntimeError("Unable to handle autograd's threading in combination with fork-based multiprocessing")

    monkeypatch.setattr(forked, "_may_lack_backward", lambda: True)
    assert forked.why_no_backward() == "" or "cu" in torch.__version__
    monkeypatch.setattr(torch.Tensor, "backward", refuse)
    assert "after which a forked process can run none" in forked.why_no_backward()
