"""A profile of linked code has the same entries as one of torch's own."""

from collections import Counter

import pytest

torch = pytest.importorskip("torch")

import depyf
from depyf.capture.torch_private import cache_entries


def broken(x):
    y = x * 2
    torch._dynamo.graph_break()
    return y.sin()


def entries(folder):
    torch._dynamo.reset()
    compiled = torch.compile(broken, backend="eager")
    x = torch.ones(3)
    if folder is None:
        compiled(x)
    else:
        with depyf.prepare_debug(str(folder)) as on:
            compiled(x)
        assert not [note for note in on._debug.linker.notes if " runs " in note]
    with torch.profiler.profile() as profile:
        compiled(x)
    return Counter(event.name for event in profile.events())


def test_the_profile_is_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(cache_entries, "can_replace", lambda: False)  # linked code runs, as it does inside debug()
    plain = entries(None)
    linked = entries(tmp_path / "d")
    # (How often torch 2.11 looks into its cache also depends on what ran before.)
    assert linked.keys() == plain.keys()
    assert linked["Pregraph bytecode"] == plain["Pregraph bytecode"]
    assert any("compiled" in name.lower() or "pregraph" in name.lower() for name in plain)
