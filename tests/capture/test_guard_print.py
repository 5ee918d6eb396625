"""Trees of guards are printed into a buffer of ours, as torch prints them; events of sizes lack torch's own frames."""

from __future__ import annotations

import logging

import pytest
import torch

from depyf.capture.torch_private import guard_print, private_api, trace_events

guards = pytest.importorskip("torch._dynamo.guards")
pytestmark = pytest.mark.usefixtures("fresh_dynamo")
has_buffer = pytest.mark.skipif(not private_api.GUARD_BUFFER.present(), reason="this torch has no buffer of guards")
SIZES = frozenset({"create_symbol", "guard_added_fast"})


class Branches(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(3, 3) for _ in range(3))
        self.options = {"scale": 2.0, "names": ["a", "b"]}

    def forward(self, x, y, fields):
        for layer in self.layers:
            x = layer(x) * self.options["scale"]
        for name, field in fields.items():
            x = x + field * len(name)
        return x + y.sum() if x.shape[0] > 2 else x - y.sum()


@pytest.fixture
def managers(monkeypatch):
    """Trees of guards: of a first call, one with open sizes, one with two names of a tensor."""
    made = []
    manager = guards.CheckFunctionManager
    init = manager.__init__

    def keep(self, *args, **kwargs):
        init(self, *args, **kwargs)
        made.append(self.guard_manager)

    monkeypatch.setattr(manager, "__init__", keep)
    compiled = torch.compile(Branches(), backend="eager")
    one = torch.ones(3, 3)
    compiled(one, torch.ones(2), {"f": one + 1, "g": one})
    compiled(torch.ones(4, 3), torch.ones(5), {"f": torch.ones(3)})
    compiled(one, one, {"f": one})
    return made


def buffers_asked_for(monkeypatch):
    asked = []
    init = guard_print._Buffer.__init__
    monkeypatch.setattr(guard_print._Buffer, "__init__", lambda self: (asked.append(self), init(self))[1])
    guard_print._is_alike.cache_clear()
    guard_print._is_alike(guards.IndentedBufferWithPrefix)
    asked.clear()
    return asked


@has_buffer
def test_the_text_is_torchs(managers, monkeypatch):
    asked = buffers_asked_for(monkeypatch)
    assert len(managers) == 3
    for manager in managers:
        expected = str(manager)
        assert guard_print.printed(lambda manager=manager: f"{manager}\nend") == f"{expected}\nend"
    assert len(asked) == 3
    assert guards.IndentedBufferWithPrefix is not guard_print._Buffer


@has_buffer
def test_a_buffer_that_writes_otherwise_is_left(managers, monkeypatch):
    class Other(guards.IndentedBufferWithPrefix):
        def prefix(self):
            return "> " * self._indent

    monkeypatch.setattr(guards, "IndentedBufferWithPrefix", Other)
    expected = str(managers[0])
    assert "\n> +- " in expected and guard_print.printed(lambda: str(managers[0])) == expected


@has_buffer
def test_torch_prints_where_it_asks_more_of_its_buffer(managers):
    def made():
        buffer = guards.IndentedBufferWithPrefix()
        buffer.splice("a\nb")
        return buffer.getvalue()

    assert guard_print.printed(made) == made()


@has_buffer
def test_an_error_is_torchs_own_and_its_buffer_is_back():
    theirs = guards.IndentedBufferWithPrefix

    def failing():
        raise RuntimeError("a guard cannot be printed")

    with pytest.raises(RuntimeError, match="a guard cannot be printed"):
        guard_print.printed(failing)
    assert guards.IndentedBufferWithPrefix is theirs


def test_a_torch_without_the_buffer_prints(monkeypatch):
    monkeypatch.delattr(guards, "IndentedBufferWithPrefix", raising=False)
    assert guard_print.printed(lambda: "tree") == "tree"
    assert not private_api.GUARD_BUFFER.present()


def events_of_sizes(monkeypatch, *others):
    """Return the events of sizes in torch's trace, with ``others`` as the only handlers besides ours: pytest has some."""
    monkeypatch.setattr(logging.getLogger(trace_events.TRACE_LOGGER), "handlers", [*others])
    taken = []
    undo = trace_events.on_trace(lambda metadata, payload: taken.append(metadata), lambda event, artifact: event in SIZES)
    try:
        torch.compile(lambda x: x * 2 if x.shape[0] > 4 else x, backend="eager", dynamic=True)(torch.ones(5))
    finally:
        undo()
    return [event for metadata in taken for kind, event in metadata.items() if kind in SIZES]


def test_events_of_sizes_have_the_users_frames_and_none_of_torchs(monkeypatch):
    events = events_of_sizes(monkeypatch)
    assert len(events) == 2 and all(event["user_stack"] and not event["stack"] for event in events)


def test_who_listens_besides_gets_the_frames_of_torch(monkeypatch):
    events = events_of_sizes(monkeypatch, logging.NullHandler())
    assert len(events) == 2 and all(event["user_stack"] and event["stack"] for event in events)
