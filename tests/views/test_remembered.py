"""What several views of a run need is made once."""

import pytest

torch = pytest.importorskip("torch")

import depyf
from depyf.views.dump.guards import versions
from depyf.views.remembered import Same, once, remembered


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
