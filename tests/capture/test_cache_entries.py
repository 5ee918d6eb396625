"""Cache entries of a function, and which of them serves a call."""

import pytest
import torch

from depyf.capture.torch_private import cache_entries, private_api


def scaled(x, factor):
    return x * factor


class Doubled(torch.nn.Module):
    def forward(self, x):
        return x * 2


pytestmark = pytest.mark.usefixtures("fresh_dynamo")


def serving(code, values, compiled_with):
    return next((entry for entry in cache_entries.entries(code, compiled_with)
                 if not entry.given_up and entry.check(values).fits), None)


def test_the_first_whose_guards_hold_serves():
    compiled = torch.compile(scaled, backend="eager")
    tensor = torch.ones(3)
    for factor in (5, 6):
        compiled(tensor, factor)
    given = cache_entries.compiled_with(compiled)
    names = [entry.name for entry in cache_entries.entries(scaled.__code__, given)]
    assert sorted(names) == ["[0/0]", "[0/1]"]

    assert serving(scaled.__code__, {"x": tensor, "factor": 77}, given).name == "[0/1]"
    assert serving(scaled.__code__, {"x": tensor, "factor": 2.5}, given) is None
    first = next(each for each in cache_entries.entries(scaled.__code__) if each.compile_id == (0, 0))
    check = first.check({"x": tensor, "factor": 77})
    assert not check.fits and "L['factor'] == 5" in check.failed[0]
    # Asking changed nothing.
    assert [entry.name for entry in cache_entries.entries(scaled.__code__, given)] == names


def test_entries_of_another_backend_are_not_looked_at():
    one, other = torch.compile(scaled, backend="eager"), torch.compile(scaled, backend="aot_eager")
    one(torch.ones(3), 1)
    if not private_api.ENTRY_BACKEND.present():
        with pytest.raises(private_api.MissingPrivateApi, match="which of 2 backends a compiled version is of"):
            cache_entries.entries(scaled.__code__, cache_entries.compiled_with(one))
        return
    assert serving(
        scaled.__code__, {"x": torch.ones(3), "factor": 1}, cache_entries.compiled_with(other)) is None
    assert serving(
        scaled.__code__, {"x": torch.ones(3), "factor": 1}, cache_entries.compiled_with(one)) is not None


@pytest.mark.parametrize("compile_module", ["wrapped", "in place", "forward"])
def test_how_a_module_was_compiled(compile_module):
    module = Doubled()
    called = module
    if compile_module == "wrapped":
        called = torch.compile(module, backend="eager")
    elif compile_module == "in place":
        module.compile(backend="eager")
    else:
        module.forward = torch.compile(module.forward, backend="eager")
    called(torch.ones(3))
    given = cache_entries.compiled_with(called)
    assert given is not None
    entry = serving(Doubled.forward.__code__, {"self": module, "x": torch.ones(3)}, given)
    assert (entry is not None) and entry.name == "[0/0]"
    assert cache_entries.compiled_with(Doubled()) is None


def test_a_guard_that_cannot_be_evaluated_does_not_hold():
    torch.compile(scaled, backend="eager")(torch.ones(3), 1)
    check = cache_entries.entries(scaled.__code__)[0].check({"x": torch.ones(3)})
    assert not check.fits and "factor" in check.failed[0]
