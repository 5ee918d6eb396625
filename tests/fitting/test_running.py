"""``depyf.fits``: a running function is asked. ``DEPYF_UPDATE_GOLDEN=1`` writes the text in ``golden`` anew."""

import dataclasses
import functools
import os
import pathlib
import random
import re

import pytest

torch = pytest.importorskip("torch")

import depyf
from depyf.capture.torch_private import cache_entries, private_api

GOLDEN = pathlib.Path(__file__).parent / "golden" / "running.txt"
new_enough = pytest.mark.skipif(
    tuple(map(int, torch.__version__.split(".")[:2])) < (2, 13), reason="other torches word and order guards otherwise")


def join(x, y, n=3):
    return torch.cat([x, y]) * x.shape[0] + n


class Scaled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up = torch.nn.Linear(3, 3)
        self.scale = 2

    def forward(self, x, *more, flag=False):
        return self.up(x) * self.scale if flag else self.up(x)


pytestmark = pytest.mark.usefixtures("fresh_dynamo")


def eager(function, **options):
    return torch.compile(function, backend="eager", **options)


@new_enough
def test_text():
    compiled, ones = eager(join), torch.ones
    told = [depyf.fits(compiled, ones(2), ones(3))]
    for rows in (2, 4, 1):
        compiled(ones(rows), ones(3))
    told += [depyf.fits(compiled, ones(7), ones(3)), depyf.fits(compiled, ones(7).half(), ones(4), n=2.0),
             depyf.fits(compiled, ones(7), ones(3), sizes=["x.0=0,1,2,9", "y.0=3,4", "n=3,4"])]
    with torch.no_grad():
        told.append(depyf.fits(compiled, ones(7), ones(3)))
    model = Scaled()
    scaled = eager(model)
    scaled(ones(2, 3), flag=True)
    told.append(depyf.fits(scaled, ones(2, 3), flag=True))
    model.scale = 5
    told.append(depyf.fits(scaled, ones(4, 3), flag=True))
    text = re.sub(r"\.py:\d+", ".py:N", "\n".join(map(str, told)))
    if os.environ.get("DEPYF_UPDATE_GOLDEN"):
        GOLDEN.write_text(text)
    assert text == GOLDEN.read_text()


def test_a_size_that_must_be_larger_is_changed_with_its_tensor():
    """The program still has the old tensor, of which ``x.size()[0]`` is 1."""
    compiled = eager(lambda x, n: torch.nn.functional.silu(x) * n)
    for rows, n in ((8, 3), (6, 4)):
        compiled(torch.ones(rows, 4), n)
    answer = depyf.fits(compiled, torch.ones(1, 4), 4, sizes=["x.0=1"])
    version = answer.versions[0]
    assert version.name.endswith("/1") and version.certain
    assert [(change.path, str(change.before), str(change.after)) for change in version.changes] == [
        ("x", "f32[1, 4]", "f32[2, 4]")]
    assert "         1  compiled again: x.shape[0] must be 2 or more, is 1" in str(answer)


def test_nothing_runs_or_is_counted():
    calls = []

    def counted(x):
        calls.append(1)
        return x + 1

    compiled = eager(counted)
    for size in (2, 3):
        compiled(torch.ones(size))
    before = [entry.name for entry in cache_entries.entries(counted.__code__)], len(calls)
    frames = {key: dict(value) for key, value in torch._dynamo.utils.counters.items()}
    state = torch.get_rng_state(), random.getstate()
    tensor = torch.ones(2, requires_grad=True)
    for argument in (torch.ones(3), torch.ones(2), tensor, torch.ones(2, 2).half(), 3, "x"):
        depyf.fits(compiled, argument, sizes=["x.0=1,5"] if isinstance(argument, torch.Tensor) else [])
    assert ([entry.name for entry in cache_entries.entries(counted.__code__)], len(calls)) == before
    assert frames == {key: dict(value) for key, value in torch._dynamo.utils.counters.items()}
    assert torch.equal(torch.get_rng_state(), state[0]) and random.getstate() == state[1]
    assert tensor.requires_grad and tensor.grad is None


@pytest.mark.parametrize("compile_it", [
    lambda model: eager(model), lambda model: eager(model.forward),
    lambda model: eager(functools.partial(model, flag=False)), lambda model: eager(Called(model)),
    lambda model: (model.compile(backend="eager"), model)[1]])
def test_callables(compile_it):
    compiled = compile_it(Scaled())
    assert depyf.fits(compiled, torch.ones(2, 3)).served is False
    compiled(torch.ones(2, 3))
    assert depyf.fits(compiled, torch.ones(2, 3)).served
    assert depyf.fits(compiled, torch.ones(2, 4)).served is False


class Called:
    def __init__(self, model):
        self.model = model

    def __call__(self, x):
        return self.model(x)


def test_modules_of_torch_and_wrappers():
    linear, inference = eager(torch.nn.Linear(3, 3)), eager(torch.no_grad()(join))
    linear(torch.ones(2, 3))
    inference(torch.ones(2), torch.ones(2))
    assert depyf.fits(linear, torch.ones(2, 3)).served and depyf.fits(linear, torch.ones(2, 3).half()).served is False
    assert depyf.fits(inference, torch.ones(2), torch.ones(2)).served


def test_what_pre_hooks_make_is_undecided():
    model = Scaled()
    compiled = eager(model)
    compiled(torch.ones(2, 3))
    model.register_forward_pre_hook(lambda module, given: given)
    answer = depyf.fits(compiled, torch.ones(2, 3))
    assert answer.served is None and answer.version is None
    assert "forward pre-hooks make of the arguments" in str(answer)


def test_stances_and_limits():
    compiled = eager(join)
    compiled(torch.ones(2), torch.ones(2))
    call = torch.ones(3), torch.ones(2)
    assert "torch would compile another version (1 of at most 8 so far)" in str(depyf.fits(compiled, *call))
    with torch._dynamo.config.patch(recompile_limit=1):
        assert "it would run in plain Python, as torch makes at most 1 versions" in str(depyf.fits(compiled, *call))
    for stance, words in {"eager_on_recompile": "plain Python, as torch's stance is 'eager_on_recompile'",
                          "fail_on_recompile": "torch would raise an error"}.items():
        with torch.compiler.set_stance(stance):
            assert words in str(depyf.fits(compiled, *call))
            assert depyf.fits(compiled, torch.ones(2), torch.ones(2)).served
    with torch.compiler.set_stance("force_eager"):
        assert depyf.fits(compiled, torch.ones(2), torch.ones(2)).served is False
    with torch.compiler.set_stance("default", skip_guard_eval_unsafe=True):
        assert depyf.fits(compiled, *call).served is None


def test_other_backends_and_regions():
    one, other = eager(join), torch.compile(join, backend="aot_eager")
    one(torch.ones(2), torch.ones(2))
    assert depyf.fits(one, torch.ones(2), torch.ones(2)).served
    assert depyf.fits(other, torch.ones(2), torch.ones(2)).versions == ()
    # Of a plain function any backend's versions are meant.
    assert depyf.fits(join, torch.ones(2), torch.ones(2)).served


def test_changes_are_seen_by_torch():
    compiled = eager(join)
    compiled(torch.ones(2), torch.ones(3))
    failed = depyf.fits(compiled, torch.ones(1).half(), torch.ones(9)).versions[0]
    assert failed.certain and [change.path for change in failed.changes] == ["x", "y"]
    with torch.no_grad():
        failed = depyf.fits(compiled, torch.ones(2), torch.ones(3)).versions[0]
    assert failed.certain and [(change.path, change.after) for change in failed.changes] == [("grad_mode", True)]
    shared = torch.ones(2)
    compiled = eager(lambda x, y: x + y)
    compiled(torch.ones(2), torch.ones(2))
    failed = depyf.fits(compiled, shared, shared).versions[0]
    assert not failed.fits and failed.changes == () and failed.failure.subject == "x is y"


def test_wrong_calls():
    compiled = eager(join)
    with pytest.raises(TypeError):
        depyf.fits(compiled, torch.ones(2))
    with pytest.raises(TypeError, match="depyf.fits got a int"):
        depyf.fits(3)
    compiled(torch.ones(2), torch.ones(2))
    with pytest.raises(ValueError, match="x has no dimension 1"):
        depyf.fits(compiled, torch.ones(2), torch.ones(2), sizes="x.1=3")
    with pytest.raises(ValueError, match=r"^the call has no z. It has n, x, y\.$"):
        depyf.fits(compiled, torch.ones(2), torch.ones(2), sizes="z=3")


@pytest.mark.parametrize("name", ["GUARD_REASON", "CURRENT_STANCE", "RECOMPILE_LIMIT", "GUARD_CHECK", "CACHE_ENTRIES"])
def test_without_a_private_name(name, monkeypatch):
    """Words may be missing; an answer is never made up."""
    compiled = eager(join)
    compiled(torch.ones(2), torch.ones(2))
    absent = dataclasses.replace(getattr(private_api, name), places="torch._dynamo:not_there")
    monkeypatch.setattr(private_api, name, absent)
    if name in ("GUARD_CHECK", "CACHE_ENTRIES"):
        with pytest.raises(private_api.MissingPrivateApi):
            depyf.fits(compiled, torch.ones(2), torch.ones(2))
        return
    assert depyf.fits(compiled, torch.ones(2), torch.ones(2)).version == "0/0"
    answer = depyf.fits(compiled, torch.ones(3), torch.ones(2))
    assert answer.served is False and "x.shape[0] must be 2, is 3" in str(answer)


def test_a_function_that_torch_skips_since_a_compilation_failed():
    """It then runs in plain Python also where a version fits, and torch has no way to be asked."""
    def checked(x, bad):
        if bad:
            raise ValueError("bad")
        return x + 1

    compiled = torch.compile(checked, backend="eager")
    compiled(torch.ones(3), False)
    assert depyf.fits(compiled, torch.ones(3), False).version == "0/0"
    with pytest.raises(ValueError, match="bad"):
        compiled(torch.ones(3), True)
    answer = depyf.fits(compiled, torch.ones(3), False)
    assert answer.served is None and "whether torch skips the function" in str(answer), str(answer)
    torch._dynamo.reset()
    compiled(torch.ones(3), False)
    assert depyf.fits(compiled, torch.ones(3), False).served


def test_unknown_names_are_refused_with_the_closest():
    compiled = eager(join)
    compiled(torch.ones(2), torch.ones(3))
    with pytest.raises(TypeError, match=r"'nn'; did you mean n\?"):
        depyf.fits(compiled, torch.ones(2), torch.ones(3), nn=2)
    with pytest.raises(ValueError, match="the call has no ys; did you mean y"):
        depyf.fits(compiled, torch.ones(2), torch.ones(3), sizes=["ys.0=1,2"])
    sizes = depyf.fits(compiled, torch.ones(2), torch.ones(3), sizes=["x.shape[0]=2,3"]).sizes["x.shape[0]"]
    assert [answer.served for answer in sizes.values()] == [True, False]
