"""What ``torch.compile`` was told besides the backend, as it is recorded and told."""

import pytest

torch = pytest.importorskip("torch")

import depyf
from depyf.records import store
from depyf.views.diff.difference import difference
from depyf.views.index.index import index


def recorded(tmp_path, *sizes, **arguments):
    """Return the records of a function that was compiled with these arguments."""
    torch._dynamo.reset()

    def double(x):
        return x * 2

    compiled = torch.compile(double, **arguments)
    with depyf.prepare_debug(str(tmp_path), files="now", page=False):
        for size in sizes or (4,):
            compiled(torch.randn(size))
    return store.read(str(tmp_path))


def own_backend(gm, inputs, mode=None, options=None):
    return gm.forward


def keep_all(guards):
    return [True] * len(guards)


class Secret:
    def __repr__(self):
        raise AssertionError("the program's own code was run")


@pytest.mark.parametrize("arguments,told", [
    ({"backend": "eager"}, {}),
    ({"backend": "eager", "dynamic": True}, {"dynamic": "True"}),
    ({"backend": "eager", "dynamic": False, "fullgraph": True}, {"dynamic": "False", "fullgraph": "True"}),
    ({"backend": own_backend, "mode": "fast"}, {"mode": "'fast'"}),
    ({"backend": own_backend, "options": {"level": 3, "of": Secret()}}, {"options": "{'level': 3, 'of': <Secret>}"}),
    ({"backend": "eager", "options": {"guard_filter_fn": keep_all}}, {"options": "{'guard_filter_fn': keep_all}"}),
])
def test_arguments_are_recorded(tmp_path, arguments, told):
    (compilation,) = recorded(tmp_path, **arguments).compilations
    assert compilation.arguments == told
    text = (tmp_path / "index.md").read_text()
    assert ("Arguments of `torch.compile`" in text) == bool(told)
    for name, value in told.items():
        assert f"{name}={value}" in text
        assert f"{name}={value}" in next(tmp_path.glob("full_code_for_*.py")).read_text()


@pytest.mark.parametrize("arguments,told", [
    ({"mode": "default"}, {}),
    ({"mode": "max-autotune-no-cudagraphs"}, {"mode": "'max-autotune-no-cudagraphs'"}),
    ({"options": {"epilogue_fusion": False}}, {"options": "{'epilogue_fusion': False}"})])
def test_arguments_of_inductor_are_read(arguments, told):
    """Without compiling: torch keeps them in what it hands graphs to."""
    from depyf.capture.torch_private.compile_arguments import of_compilation

    backend = torch._TorchCompileInductorWrapper(arguments.get("mode"), arguments.get("options"), None)
    assert of_compilation(backend, False, None) == told


def test_what_torch_compile_did_not_make_is_not_known():
    from depyf.capture.torch_private.compile_arguments import of_compilation

    assert of_compilation(own_backend, True, None) is None


def test_other_arguments_are_a_difference(tmp_path):
    before, after = recorded(tmp_path / "a", backend="eager"), recorded(tmp_path / "b", backend="eager", dynamic=True)
    (changed,) = difference(before, after).changed
    assert "* arguments of `torch.compile`: none, now `dynamic=True`" in changed.lines
    assert "Arguments of `torch.compile`" not in index(before)


def test_what_was_compiled_for_one_size_each_is_told_to_leave_that_out(tmp_path):
    text = index(recorded(tmp_path, 3, 4, backend="eager", dynamic=False))
    assert "`x.shape[0]`: `torch.compile` was told `dynamic=False`" in text
    assert "mark it dynamic" not in text
