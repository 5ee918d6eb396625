"""The main job, and its faults: every file valid, values untouched, the program unharmed."""

import errno
import marshal
import os
import re
import subprocess
import sys
import threading
import types
import warnings

import pytest

torch = pytest.importorskip("torch")

import depyf  # noqa: E402
from depyf import pausing  # noqa: E402
from depyf.capture.torch_private import private_api  # noqa: E402
from depyf.records import store  # noqa: E402
from depyf.records.run_directory import DirectoryError  # noqa: E402
from depyf.views.dump import folder  # noqa: E402
from torch_forks import torch_python

EXPECTED = """\
def __transformed_code_0_for_toy_example(a, b):
    graph_out_0 = __compiled_fn_1(a, b)
    x = graph_out_0[1]
    if graph_out_0[0]:
        return {first}([], [], b, x)
    return {second}([], [], b, x)
"""


#: Up to torch 2.7, which returns a tuple of its graphs and hands no frames on.
EXPECTED_OF_OLD = """\
def __transformed_code_0_for_toy_example(a, b):
    x, tmp = __compiled_fn_1(a, b)
    if tmp:
        return {first}(b, x)
    return {second}(b, x)
"""


def toy_example(a, b):
    x = a / (torch.abs(a) + 1)
    if b.sum() < 0:
        b = b * -1
    return x * b


pytestmark = pytest.mark.usefixtures("fresh_dynamo")


def run(function, backend="eager", gradients=False, steps=8):
    compiled = torch.compile(function, backend=backend)
    results = []
    for seed in range(steps):
        torch.manual_seed(seed)
        a, b = torch.randn(10, requires_grad=gradients), torch.randn(10, requires_grad=gradients)
        out = compiled(a, b)
        if gradients:
            out.sum().backward()
            results += [a.grad, b.grad]
        results.append(out.detach())
    return results


def same(left, right):
    return len(left) == len(right) and all(torch.equal(x, y) for x, y in zip(left, right))


def python_files(path):
    return sorted(n for n in os.listdir(path) if n.endswith(".py"))


def read(path, name):
    with open(os.path.join(path, name), encoding="utf-8") as file:
        return file.read()


@pytest.mark.torch_since((2, 9), "variables have other names")
def test_toy_example_reads_as_promised(tmp_path):
    torch._dynamo.utils.counters.clear()
    program = "import sys; sys.path.insert(0, %r)\nimport torch, depyf\nfrom test_prepare_debug import *\nwith depyf.prepare_debug(%r): run(toy_example)" % (
        os.path.dirname(__file__), str(tmp_path / "d"))
    subprocess.run([sys.executable, "-c", program], check=True)
    text = read(tmp_path / "d", "__transformed_code_0_for_toy_example.py")
    resumes = sorted({w for w in text.replace("(", " ").split() if w.startswith("__resume_at_")},
                     key=lambda w: int(w.split("_")[-1]))
    expected = EXPECTED if hasattr(torch._dynamo.utils, "record_pregraph_bytecode_enter") else EXPECTED_OF_OLD
    assert text.endswith(expected.format(first=resumes[0], second=resumes[1]))
    assert "# fidelity: equivalent - proven to do the same" in text
    assert "# graph break at test_prepare_debug.py:" in text and "(if b.sum() < 0): which branch is taken" in text
    files = sorted(name for name in os.listdir(tmp_path / "d") if "_for_torch_dynamo_resume_in_toy_example_at_" in name)
    heads = [" ".join(read(tmp_path / "d", name).partition("def ")[0].replace("#", "").split())
             for name in files if name.startswith("__transformed_code_")]
    for name, branch in zip(resumes, ("true", "false")):
        (head,) = [each for each in heads if f"made of {name}," in each]
        assert (f"b.sum() < 0 is {branch}" in head) == (sys.version_info >= (3, 11))


@pytest.mark.parametrize("backend, gradients", [("eager", False), ("eager", True), ("aot_eager", True),
                                                ("inductor", False)])
def test_values_are_untouched_and_every_file_is_python(tmp_path, backend, gradients):
    plain = run(toy_example, backend, gradients)
    torch._dynamo.reset()
    with depyf.prepare_debug(str(tmp_path / "d")) as on:
        watched = run(toy_example, backend, gradients)
    assert same(plain, watched)
    names = python_files(on.path)
    for name in names:
        compile(read(on.path, name), name, "exec")
    assert "full_code_for_toy_example_0.py" in names
    stages = {n.split(".")[1] for n in names if n.startswith("__compiled_fn_")}
    wanted = {"Captured_Graph"}
    if backend == "aot_eager":
        wanted |= {"Joint_graph", "Forward_graph", "Backward_graph"}
    if backend == "inductor":
        wanted |= {"Forward_graph", "AFTER_POST_GRAD", "kernel_0"}
    assert wanted <= stages
    for name in names:
        if name.startswith("__transformed_code_"):
            assert "# fidelity: fallback" not in read(on.path, name)


def test_both_calls_of_the_documents(tmp_path):
    with depyf.prepare_debug(toy_example, str(tmp_path / "d")):
        run(toy_example)
    assert "full_code_for_toy_example_0.py" in os.listdir(tmp_path / "d")


def test_guards_and_dispatch_in_full_code(tmp_path):
    with depyf.prepare_debug(str(tmp_path / "d")) as on:
        run(toy_example)
    text = read(on.path, "full_code_for_toy_example_0.py")
    assert "check_tensor(a, 'f32[10] on cpu')" in text
    order = [text.index(s) for s in ("\ndef toy_example(a, b)", "\ndef guards_0_for_toy_example(a, b)",
                                     "\ndef __compiled_fn_", "\ndef __transformed_code_0_for_toy_example",
                                     "\ndef compiled_toy_example(a, b)", "\ndef __resume_at_")]
    assert order == sorted(order)
    space: dict = {}
    exec(compile(text, "full", "exec"), space)
    torch.manual_seed(0)
    a, b = torch.randn(10), torch.randn(10)
    assert torch.equal(space["compiled_toy_example"](a, b), toy_example(a, b))


def test_recompiles_give_entries_in_the_order_of_their_guards(tmp_path):
    def scale(x):
        return x * 2

    compiled = torch.compile(scale, backend="eager", dynamic=False)
    with depyf.prepare_debug(str(tmp_path / "d")) as on:
        for size in (3, 4, 5):
            compiled(torch.ones(size))
    text = read(on.path, "full_code_for_scale_0.py")
    assert text.count("\ndef guards_") == 3
    assert sum(n.startswith("__transformed_code_") for n in os.listdir(on.path)) == 3


def test_functions_of_one_name_are_told_apart(tmp_path):
    class Inner(torch.nn.Module):
        def forward(self, x):
            print("break")
            return x + 1

    class Outer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Inner()

        def forward(self, x):
            return self.inner(x * 2) * 3

    with depyf.prepare_debug(tmp_path / "dump"):
        torch.compile(Outer(), backend="eager")(torch.ones(2))
    titles = {frame.title for function in store.read(str(tmp_path / "dump")).functions for frame in function.frames}
    assert {"Outer.forward", "Inner.forward"} <= titles
    story = (tmp_path / "dump" / "index.md").read_text()
    assert "`Outer.forward` from line" in story and "`Inner.forward`" in story
    assert "[`__resume" in story


def test_dump_src_without_a_session():
    compiled = torch.compile(toy_example, backend="eager")
    with pytest.raises(ValueError, match="call it"):
        depyf.explain.dump_src(compiled)
    for seed in range(8):
        torch.manual_seed(seed)
        compiled(torch.randn(10), torch.randn(10))
    text = depyf.explain.dump_src(compiled)
    assert "in a file beside this one" not in text and "are written by depyf.prepare_debug only" in text
    compile(text, "full", "exec")
    assert "torch.abs(" in text and "def compiled_toy_example(a, b)" in text


def test_log_bytecode_can_be_read_with_the_standard_library(tmp_path):
    with depyf.prepare_debug(str(tmp_path / "d"), log_bytecode=True) as on:
        run(toy_example)
    name = next(n for n in os.listdir(on.path) if n.endswith(".transformed.bin"))
    with open(os.path.join(on.path, name), "rb") as file:
        assert isinstance(marshal.load(file), types.CodeType)


def test_clashing_and_odd_names(tmp_path):
    double = torch.compile(lambda x: x * 2, backend="eager")
    triple = torch.compile(lambda x: x * 3, backend="eager")
    with depyf.prepare_debug(str(tmp_path / "d")) as on:
        double(torch.ones(2))
        triple(torch.ones(2))
    names = python_files(on.path)
    assert sum(n.startswith("full_code_for_lambda_") for n in names) == 2
    assert sum(n.startswith("__transformed_code_0_for_lambda_") for n in names) == 2
    for name in names:
        compile(read(on.path, name), name, "exec")


# --- faults ---------------------------------------------------------------------------------------
def test_directory_is_a_file(tmp_path):
    path = tmp_path / "d"
    path.write_text("mine")
    with pytest.raises(DirectoryError, match="it is a file"):
        with depyf.prepare_debug(str(path)):
            pass
    assert path.read_text() == "mine"


def test_directory_that_cannot_be_made():
    with pytest.raises(DirectoryError, match="Give a directory that can be made and written"):
        with depyf.prepare_debug("/proc/depyf"):
            pass


def test_directory_with_spaces_and_other_letters(tmp_path):
    wanted = tmp_path / "a dump" / "größer 图"
    plain = run(toy_example)
    torch._dynamo.reset()
    with depyf.prepare_debug(str(wanted)) as on:
        watched = run(toy_example)
    assert same(plain, watched) and on.path == str(wanted)
    assert "full_code_for_toy_example_0.py" in os.listdir(wanted)


FULL_DISK = """\
import resource, sys, warnings
import torch, depyf

@torch.compile(backend="eager")
def f(a, b):
    x = a / (torch.abs(a) + 1)
    if b.sum() < 0:
        b = b * -1
    return x * b

torch.manual_seed(0)
inputs = [(torch.randn(10), torch.randn(10)) for _ in range(4)]
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    with depyf.prepare_debug(sys.argv[1]) as on:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1500, resource.RLIM_INFINITY))
        results = [f(*i) for i in inputs]
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
torch._dynamo.reset()
assert all(torch.equal(r, f(*i)) for r, i in zip(results, inputs))
print([str(w.message) for w in seen if "depyf" in str(w.message)])
"""


def test_files_that_the_system_refuses(tmp_path):
    """A limit on file sizes: large files fail in the middle of being written, small ones do not."""
    pytest.importorskip("resource")
    script = tmp_path / "program.py"
    script.write_text(FULL_DISK)
    done = subprocess.run([*torch_python(), str(script), str(tmp_path / "d")], capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, timeout=200)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[]\n"
    assert re.fullmatch(r"depyf: missing in \S+/d: \S.* \(File too large\); the records are incomplete, .*\n", done.stderr)
    names = os.listdir(tmp_path / "d")
    assert "__transformed_code_0_for_f.py" in names and "full_code_for_f_0.py" not in names
    assert not [n for n in names if n.endswith(".partial")]
    assert "full_code_for_f_0.py" in (tmp_path / "d" / "notes.txt").read_text()


def test_what_runs_later_cannot_be_decorated():
    async def coroutine():
        pass

    def generator():
        yield

    class Class:
        pass

    for wrong in (coroutine, generator, Class):
        with pytest.raises(TypeError, match=f"cannot decorate .*{wrong.__name__}: its body does not run"):
            depyf.prepare_debug("d")(wrong)


def test_wrong_arguments():
    with pytest.raises(TypeError, match="which None is not"):
        depyf.prepare_debug()
    with pytest.raises(TypeError, match="which 3 is not"):
        depyf.prepare_debug(3)
    with pytest.raises(ValueError, match="caches"):
        depyf.prepare_debug("d", caches="never")


def test_nobody_is_warned_of_caches_that_we_switch_off(tmp_path, monkeypatch):
    monkeypatch.setattr(torch._dynamo.utils, "warn_once_cache", set())
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*force_disable_caches")
        with depyf.prepare_debug(str(tmp_path / "d"), caches="bypass"):
            run(toy_example)
        with torch._inductor.config.patch(force_disable_caches=True), pytest.raises(UserWarning):
            torch._dynamo.pgo.get_cache_key()


def test_second_run_leaves_the_first_alone(tmp_path, capsys):
    for _ in range(2):
        torch._dynamo.reset()
        with depyf.prepare_debug(str(tmp_path / "d ä")):
            run(toy_example)
    assert "is not overwritten" in capsys.readouterr().err
    first, second = tmp_path / "d ä", tmp_path / "d ä" / "run_2"
    assert "full_code_for_toy_example_0.py" in os.listdir(first)
    assert "full_code_for_toy_example_0.py" in os.listdir(second)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_exception_in_the_body_goes_on_and_all_is_written(tmp_path, error):
    with pytest.raises(error):
        with depyf.prepare_debug(str(tmp_path / "d")) as on:
            run(toy_example)
            raise error
    assert "full_code_for_toy_example_0.py" in os.listdir(on.path)
    assert not torch._dynamo.convert_frame._bytecode_hooks


def goes_on_with_one_message(tmp_path, capsys, message):
    """The program computes what it computes without us, and one warning or line says what is broken."""
    plain = run(toy_example)
    torch._dynamo.reset()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        with depyf.prepare_debug(str(tmp_path / "d")):
            watched = run(toy_example)
    assert same(plain, watched)
    messages = [*(str(w.message) for w in seen), *capsys.readouterr().err.splitlines()]
    assert [message in each for each in messages if "depyf" in each] == [True]


def test_disk_full_halfway(tmp_path, monkeypatch, capsys):
    real, count = folder.write_whole, []

    def full(path, *args, **kwargs):
        count.append(path)
        if len(count) > 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(path, *args, **kwargs)

    monkeypatch.setattr(folder, "write_whole", full)
    goes_on_with_one_message(tmp_path, capsys, "No space left")


def test_errors_of_ours_never_reach_the_program(tmp_path, monkeypatch, capsys):
    from depyf.finishing import texts

    def broken(*args, **kwargs):
        raise ZeroDivisionError("ours")

    monkeypatch.setattr(texts, "decompile_code", broken)
    goes_on_with_one_message(tmp_path, capsys, "internal error")


def test_nested_sessions(tmp_path):
    with depyf.prepare_debug(str(tmp_path / "outer")) as outer:
        with depyf.prepare_debug(str(tmp_path / "inner")) as inner:
            run(toy_example)
    assert "full_code_for_toy_example_0.py" in os.listdir(outer.path)
    assert "full_code_for_toy_example_0.py" in os.listdir(inner.path)
    assert not torch._dynamo.convert_frame._bytecode_hooks


def test_compile_error_of_a_backend(tmp_path):
    def backend(gm, inputs):
        raise RuntimeError("no such backend today")

    with pytest.raises(Exception, match="no such backend today"):
        with depyf.prepare_debug(str(tmp_path / "d")):
            torch.compile(toy_example, backend=backend)(torch.ones(3), torch.ones(3))
    assert not torch._dynamo.convert_frame._bytecode_hooks


def test_reset_inside(tmp_path):
    with depyf.prepare_debug(str(tmp_path / "d")) as on:
        run(toy_example)
        torch._dynamo.reset()
    assert "check_tensor(a, " in read(on.path, "full_code_for_toy_example_0.py")


def test_model_deleted_before_the_end(tmp_path):
    import gc
    import weakref

    model = torch.nn.Linear(4, 4)
    with depyf.prepare_debug(str(tmp_path / "d")) as on:
        compiled = torch.compile(model, backend="eager")
        compiled(torch.ones(2, 4))
        gone = weakref.ref(model)
        del model, compiled
        torch._dynamo.reset()
        gc.collect()
        assert gone() is None
    assert any(n.startswith("full_code_for_") for n in os.listdir(on.path))


def test_threads_compile_at_once(tmp_path):
    def work(k):
        def scale(x):
            return x * k + 1

        scale.__name__ = f"scale_{k}"
        results[k] = torch.compile(scale, backend="eager")(torch.ones(3))

    results: dict = {}
    with depyf.prepare_debug(str(tmp_path / "d")) as on:
        threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
        [t.start() for t in threads]
        [t.join() for t in threads]
    assert [results[k][0].item() for k in range(4)] == [1, 2, 3, 4]
    for name in python_files(on.path):
        compile(read(on.path, name), name, "exec")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_fork_leaves_the_files_to_the_parent(tmp_path):
    with depyf.prepare_debug(str(tmp_path / "d")) as on:
        run(toy_example)
        before = sorted(os.listdir(on.path))
        child = os.fork()
        if child == 0:
            status = 1
            try:
                torch.compile(lambda x: x - 1, backend="eager")(torch.ones(2))
                status = 0
            finally:
                os._exit(status)
        assert os.waitpid(child, 0)[1] == 0
        assert sorted(os.listdir(on.path)) == before


def test_import_is_cheap_and_without_torch():
    program = "import sys, depyf; assert 'torch' not in sys.modules; assert 'depyf.decompiler' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_without_torch(tmp_path):
    program = (
        "import sys, importlib.util\n"
        "real = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda n, *a: None if n == 'torch' else real(n, *a)\n"
        "import depyf\n"
        "print(depyf.decompile(lambda x: x + 1))\n"
        "try:\n    depyf.prepare_debug('d').__enter__()\n"
        "except ModuleNotFoundError as error: print(error)\n")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path,
                          env={**os.environ, "PYTHONPATH": os.path.abspath(os.path.join(os.path.dirname(depyf.__file__), ".."))})
    assert "x + 1" in done.stdout and "pip install torch" in done.stdout, done.stderr


@pytest.mark.parametrize("backend, stage", [("eager", "Captured_Graph"), ("aot_eager", "Forward_graph")])
def test_running_graphs_point_at_the_lines_of_their_files(tmp_path, backend, stage):
    """Every line that runs in a dumped file is the line of a statement, and tells the truth about itself."""
    seen = []

    def trace(frame, event, argument):
        if frame.f_code.co_filename.startswith(str(tmp_path)):
            if event == "line":
                seen.append((frame.f_code.co_filename, frame.f_lineno))
            return trace
        return None

    def scale(x):
        return torch.sin(x) * 2

    compiled = torch.compile(scale, backend=backend)
    with depyf.prepare_debug(str(tmp_path / "d")) as on:
        compiled(torch.ones(3))
    with depyf.debug(pause=False):
        sys.settrace(trace)
        try:
            compiled(torch.ones(3))
        finally:
            sys.settrace(None)
    names = {os.path.basename(name) for name, _ in seen}
    assert any(n.startswith("__transformed_code_") for n in names)
    lines = [read(on.path, os.path.basename(name)).splitlines()[line - 1] for name, line in seen]
    assert any("__compiled_fn_" in line for line in lines)
    if backend == "aot_eager" and not private_api.AOT_EAGER_CODE.as_expected():
        assert not any(stage in name for name in names)
        pytest.skip(f"missing: {private_api.AOT_EAGER_CODE.lost}")
    assert any(stage in name for name in names)
    assert any("sin" in line for line in lines)


def test_a_coverage_tool_is_no_debugger():
    seen = []
    before = sys.gettrace()
    sys.settrace(lambda frame, event, argument: None)
    try:
        seen.append(pausing.under_debugger())
    finally:
        sys.settrace(before)
    assert seen == [False]
