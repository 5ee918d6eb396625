"""A graph break in a closure: on every torch what comes before it is proven source that runs, and what comes after it
goes by a name."""

import functools
import os
from types import CodeType, FunctionType

import pytest

torch = pytest.importorskip("torch")

import depyf
from depyf.capture.torch_private import hooks, private_api, resume_code
from depyf.records import store
from depyf.torch_text.global_names import is_resume

ONES = torch.ones(3)


def closure(scale=3.0):
    bias = torch.ones(3)

    def inner(x):
        x = torch.sin(x) * scale
        torch._dynamo.graph_break()
        return torch.cos(x + bias)

    return inner


def writing():
    """The cell is written after the break; who shares it sees that."""
    def outer(x):
        count = 1.0

        def step(z):
            nonlocal count
            count = count + 1
            torch._dynamo.graph_break()
            return z * count

        y = step(torch.sin(x))
        torch._dynamo.graph_break()
        return step(y) + count

    return outer


class Base(torch.nn.Module):
    def forward(self, x):
        return torch.sin(x)


class Derived(Base):
    def forward(self, x):
        y = super().forward(x)  # ``__class__`` is a cell
        torch._dynamo.graph_break()
        return super().forward(y) + 1


def raising():
    limit = 2

    def inner(x):
        y = x + 1
        torch._dynamo.graph_break()
        if y.shape[0] > limit:
            raise ValueError(f"more than {limit}")
        return y

    return inner


pytestmark = pytest.mark.usefixtures("fresh_dynamo")


def watched(function, path):
    with depyf.prepare_debug(str(path)) as on:
        compiled = torch.compile(function, backend="eager")
        result = compiled(ONES)
    with open(os.path.join(on.path, "notes.txt")) as notes:
        return compiled, result, store.read(on.path), notes.read()


@pytest.mark.parametrize("make", [closure, writing, Derived])
def test_what_comes_before_a_break_in_a_closure_is_proven_and_runs(make, tmp_path):
    wanted = make()(ONES)
    compiled, result, capture, notes = watched(make(), tmp_path / "d")
    assert torch.equal(result, wanted) and torch.equal(compiled(ONES), wanted)
    assert "internal error" not in notes and "not linked" not in notes
    frames = [frame for function in capture.functions for frame in function.frames]
    texts = [entry.transformed.source for frame in frames for entry in frame.entries]
    assert len(frames) >= 2 and {each.fidelity for each in texts} <= {"exact", "equivalent"}
    names = [frame.name for frame in frames[1:] if frame.name.startswith("__resume_at_")]
    assert any(f"{name}((" in each.text for each in texts for name in names), "the cells are handed to it"


def test_an_exception_behind_the_break_is_the_users_own(tmp_path):
    with depyf.prepare_debug(str(tmp_path / "d")), pytest.raises(ValueError, match="more than 2") as caught:
        torch.compile(raising(), backend="eager")(ONES)
    assert not any(str(entry.path) == resume_code.__file__ for entry in caught.traceback)


def codes_made(function):
    """Code objects of resume functions among the constants of what Dynamo makes of a function."""
    codes = []

    def look(_, transformed):
        codes.extend(each for each in transformed.co_consts if isinstance(each, CodeType) and is_resume(each.co_name))

    undo = hooks.on_bytecode(look)
    try:
        torch.compile(function, backend="eager")(ONES)
    finally:
        undo()
    return codes


def test_torch_is_as_before_afterwards(tmp_path):
    api = private_api.RESUME_FACTORY
    before, names = vars(api.owner())[api.attribute], set(globals())
    codes = codes_made(closure())
    torch._dynamo.reset()
    watched(closure(), tmp_path / "d")
    assert vars(api.owner())[api.attribute] is before
    torch._dynamo.reset()
    assert len(codes_made(closure())) == len(codes)
    torch._dynamo.reset()
    assert all(name.startswith("__") for name in set(globals()) - names)


makes_them_itself = pytest.mark.skipif(
    private_api.RESUME_FACTORY.attribute != "make_function_with_closure", reason="this torch has factories of its own")


@makes_them_itself
def test_the_global_makes_the_function_of_dynamos_own_code():
    undo = resume_code.install(pytest.fail)
    try:
        assert codes_made(closure()) == []
    finally:
        undo()
    makers = [each for name, each in globals().items() if name.startswith("__resume_at_")]
    factory = makers[-1]
    assert isinstance(factory, functools.partial) and factory.func is FunctionType
    assert factory.args[0].co_freevars == ("bias", "scale") and factory.args[1] is globals()


@makes_them_itself
def test_another_form_is_left_as_it_is_and_said(tmp_path, monkeypatch):
    def unknown(output, begin, name, code):
        raise LookupError("how this torch makes the function")

    monkeypatch.setattr(resume_code, "_making", unknown)
    with pytest.warns(RuntimeWarning, match="how this torch makes"):
        _, result, _, notes = watched(closure(), tmp_path / "d")
    assert torch.equal(result, closure()(ONES)) and "how this torch makes" in notes
