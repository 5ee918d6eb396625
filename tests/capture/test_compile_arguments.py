"""What ``torch.compile`` was told besides the backend, as it is recorded and told."""

import ast
from dataclasses import replace

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

    def __getattr__(self, name):
        raise KeyError(name)


class Named(type):
    @property
    def __name__(cls):
        raise AssertionError("the program's own code was run")


class OfNamed(metaclass=Named):
    pass


@pytest.mark.parametrize("arguments,told", [
    ({"backend": "eager"}, {}),
    ({"backend": "eager", "dynamic": True}, {"dynamic": "True"}),
    ({"backend": "eager", "dynamic": False, "fullgraph": True}, {"dynamic": "False", "fullgraph": "True"}),
    ({"backend": own_backend, "mode": "fast"}, {"mode": "'fast'"}),
    ({"backend": own_backend, "options": {"level": 3, "of": Secret()}}, {"options": "{'level': 3, 'of': Secret}"}),
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
    from depyf.capture.torch_private.compiled_callables import compile_arguments

    backend = torch._TorchCompileInductorWrapper(arguments.get("mode"), arguments.get("options"), None)
    assert compile_arguments(backend, False, None) == told


def endless():
    result = [1]
    result.append(result)
    return result


@pytest.mark.parametrize("given,told", [
    ([len], "len"), ([int], "int"), ([lambda guards: guards], "function"), ([Secret()], "Secret"),
    ([OfNamed()], "OfNamed"), ([OfNamed], "Named"), ([torch.float32], "dtype"),
    (["a" * 301], repr("a" * 300) + " + ..."), ([list(range(40))], str([*range(30)])[:-1] + ", ...]"),
    ([{n: (n,) for n in range(31)}], str({n: (n,) for n in range(30)})[:-1] + ", ...: ...}"),
    ([1 << 9999], "int"), ([endless()], "[1, [1, [1, [1, list]]]]")])
def test_an_option_is_an_expression_of_python(given, told):
    """What is no plain value is a name, and a long one is cut by itself: what stands beside it can be read."""
    from depyf.capture.torch_private.compiled_callables import compile_arguments

    backend = torch._TorchCompileWrapper(own_backend, None, {"first": given[0], "second": 2}, None)
    shown = compile_arguments(backend, False, None)["options"]
    assert shown == f"{{'first': {told}, 'second': 2}}"
    ast.parse(shown, mode="eval")


@pytest.mark.parametrize("missing", ["compiler_fn", "one_graph", "hooks", "guard_filter_fn"])
def test_a_torch_that_keeps_them_elsewhere_loses_the_arguments_alone(tmp_path, monkeypatch, missing):
    from depyf.capture.torch_private import private_api

    for name in ("COMPILE_ARGUMENTS", "GUARD_FILTER"):
        api = getattr(private_api, name)
        monkeypatch.setattr(private_api, name, replace(api, key=api.key.replace(missing, "renamed")))
    (compilation,) = recorded(tmp_path, backend="eager", dynamic=True).compilations
    takes_filter = private_api.GUARD_FILTER_OPTION.as_expected()
    assert compilation.arguments == (None if missing != "guard_filter_fn" or takes_filter else {"dynamic": "True"})
    assert compilation.outcome == "compiled" and compilation.location is not None


def test_an_error_of_ours_loses_the_arguments_alone(tmp_path, monkeypatch):
    from depyf.capture.torch_private import compiled_callables

    monkeypatch.setattr(compiled_callables, "compile_arguments", lambda *given: 1 / 0)
    with pytest.warns(RuntimeWarning, match="the dump lacks what was being written"):
        (compilation,) = recorded(tmp_path, backend="eager", dynamic=True).compilations
    assert compilation.arguments is None
    assert compilation.outcome == "compiled" and compilation.location is not None and compilation.stack


def test_what_torch_compile_did_not_make_is_not_known():
    from depyf.capture.torch_private.compiled_callables import compile_arguments

    assert compile_arguments(own_backend, True, None) is None


def test_other_arguments_are_a_difference(tmp_path):
    before, after = recorded(tmp_path / "a", backend="eager"), recorded(tmp_path / "b", backend="eager", dynamic=True)
    (changed,) = difference(before, after).changed
    assert "* arguments of `torch.compile`: none, now `dynamic=True`" in changed.lines
    assert "Arguments of `torch.compile`" not in index(before)


def test_each_set_of_arguments_is_told_also_the_one_of_the_defaults():
    """Not known is neither."""
    from depyf.records.model import Capture, Compilation, CompileId
    from depyf.views.as_json import explain_document

    def run(*sets):
        return Capture((), (), (), {}, tuple(Compilation(CompileId(0, number), "f", outcome="compiled", arguments=each)
                                             for number, each in enumerate(sets)))

    def told(*sets):
        return explain_document({"": run(*sets)}, "")["runs"][0]["functions"][0]["arguments"]

    dynamic = {"dynamic": "True"}
    assert told(dynamic, {}, dynamic) == [dynamic, {}]
    assert told({}) == [{}] and told(None) is None
    (changed,) = difference(run(dynamic, {}), run(dynamic, dynamic)).changed
    assert changed.lines == ["* arguments of `torch.compile`: `dynamic=True` and the defaults, now `dynamic=True`"]
    assert not difference(run(None), run(dynamic)).changed


def test_what_was_compiled_for_one_size_each_is_told_to_leave_that_out(tmp_path):
    text = index(recorded(tmp_path, 3, 4, backend="eager", dynamic=False))
    assert "`x.shape[0]`: `dynamic=False` is set, so a version is for one size" in text
    assert "mark it dynamic" not in text


class Counting:
    def __call__(self, gm, inputs):
        return gm.forward


def test_a_backend_without_a_name_has_that_of_its_class(tmp_path):
    """Torch names it by its address."""
    assert [graph.backend for graph in recorded(tmp_path, backend=Counting()).graphs] == ["Counting"]
