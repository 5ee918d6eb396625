"""``frozen`` is ``dataclass(frozen=True)`` to whom compares, hashes, shows and replaces; what several views need is made once."""

import dataclasses
import subprocess
import sys
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import depyf
from depyf.values import Same, frozen, once, remembered
from depyf.views.dump.guards import versions


class OneField:
    only: float


class WithDefaults:
    first: int
    second: tuple[Any, ...] = ()
    third: list[int] = dataclasses.field(default_factory=list, compare=False)
    fourth: str = dataclasses.field(default="", repr=False)


@pytest.mark.parametrize(("fields", "values"), [
    (OneField, [(1.0,), (float("nan"),), (2,)]),
    (WithDefaults, [(1,), (1, (), [3]), (1, (2,)), (1, (), [], "x"), (2, ((1,),))]),
], ids=lambda each: getattr(each, "__name__", ""))
def test_frozen_is_a_dataclass(fields, values):
    def variant(make):
        return make(type(fields.__name__, (), {"__qualname__": fields.__name__, **vars(fields)}))

    ours, python = variant(frozen), variant(dataclasses.dataclass(frozen=True))
    assert dataclasses.is_dataclass(ours) and ours.__match_args__ == python.__match_args__
    for one in values:
        assert repr(ours(*one)) == repr(python(*one)) and hash(ours(*one)) == hash(ours(*one))
        assert dataclasses.replace(ours(*one), **dataclasses.asdict(ours(*values[0]))) == ours(*values[0])
        assert ours(*one) != python(*one) and ours(*one) != 1
        for other in values:
            assert (ours(*one) == ours(*other)) is (python(*one) == python(*other))


def test_once_is_for_as_long_as_things_are_remembered():
    calls = []
    with remembered():
        assert [once("key", lambda: calls.append(1) or len(calls)) for _ in range(2)] == [1, 1]
    assert once("key", lambda: calls.append(1) or len(calls)) == 2
    with remembered():
        assert once("key", lambda: calls.append(1) or len(calls)) == 3


def test_an_object_is_a_key_by_its_identity():
    first, second = [], []
    assert Same(first) == Same(first) != Same(second)
    assert hash(Same(first)) == hash(Same(first))


def test_guards_are_put_into_words_once_for_all_views(tmp_path, monkeypatch):
    calls = []
    make = versions._versions
    monkeypatch.setattr(versions, "_versions", lambda frame, known: calls.append(frame.name) or make(frame, known))

    def double(x):
        return x * 2

    torch._dynamo.reset()
    with depyf.prepare_debug(str(tmp_path / "d"), page=True):
        compiled = torch.compile(double, backend="eager")
        compiled(torch.ones(2))
        compiled(torch.ones(3, 3))
    assert len(calls) == 1
    assert len(list((tmp_path / "d").glob("guards_*.py"))) == 2


def test_no_generator_of_ours_is_closed_at_the_end_of_the_interpreter():
    """Closing one runs code, which a debugger's trace function does not survive then (pdb prints a traceback)."""
    code = ("import gc, types, depyf.views.dump.files; print([each for each in gc.get_objects() "
            "if isinstance(each, types.GeneratorType) and 'depyf' in each.gi_code.co_filename])")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
