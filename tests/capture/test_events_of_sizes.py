"""Events of sizes lack torch's own frames."""

from __future__ import annotations

import logging

import pytest
import torch

from depyf.capture.torch_private import trace_events

pytest.importorskip("torch._dynamo.guards")
pytestmark = pytest.mark.usefixtures("fresh_dynamo")
SIZES = frozenset({"create_symbol", "guard_added_fast"})


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
