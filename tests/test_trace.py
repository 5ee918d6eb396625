"""torch's structured trace is listened to without making it print what nobody asked for."""

import logging
import sys

import pytest

torch = pytest.importorskip("torch")

from depyf.capture.torch_private import hooks  # noqa: E402

ORIGINAL = torch._logging.trace_structured


def emit(event, payload="text", **metadata):
    printed = []

    def print_payload():
        printed.append(event)
        return payload

    torch._logging.trace_structured(
        event, metadata_fn=lambda: metadata, payload_fn=print_payload, expect_trace_id=False)
    return bool(printed)


class Listener(logging.Handler):
    def __init__(self):
        super().__init__(logging.DEBUG)
        self.events = []

    def emit(self, record):
        self.events += [name for name in ("graph", "artifact", "other") if name in record.metadata]


@pytest.fixture
def trace_logger():
    logger = logging.getLogger(hooks.TRACE_LOGGER)
    before = list(logger.handlers)
    logger.handlers.clear()
    yield logger
    logger.handlers[:] = before


def wanted(event, artifact):
    return event == "graph" or artifact == "mine"


def test_only_wanted_events_are_made(trace_logger):
    received = []
    undo = hooks.on_trace(lambda metadata, payload: received.append(payload), wanted)
    try:
        assert emit("graph", "a graph")
        assert emit("artifact", "an artifact", name="mine")
        assert not emit("artifact", name="another")
        assert not emit("other")
    finally:
        undo()
    assert received == ["a graph", "an artifact"]
    assert not emit("graph")


def test_other_listeners_get_all(trace_logger):
    other = Listener()
    undo = hooks.on_trace(lambda metadata, payload: None, wanted)
    trace_logger.addHandler(other)
    try:
        assert emit("graph") and emit("artifact", name="another") and emit("other")
    finally:
        undo()
    assert other.events == ["graph", "artifact", "other"]


def test_each_of_two_sessions_gets_what_it_wants(trace_logger):
    first, second = [], []
    undo_first = hooks.on_trace(lambda metadata, payload: first.append(payload), wanted)
    undo_second = hooks.on_trace(lambda metadata, payload: second.append(payload), lambda *_: True)
    try:
        assert emit("other", "something")
    finally:
        undo_first()
        undo_second()
    assert second == ["something"]


def test_torch_is_left_as_it_was(trace_logger):
    holders = {name for name, module in sys.modules.items()
               if getattr(module, "__dict__", {}).get("trace_structured") is ORIGINAL}
    undo = hooks.on_trace(lambda metadata, payload: None, wanted)
    assert torch._logging.trace_structured is not ORIGINAL
    undo()
    assert all(sys.modules[name].trace_structured is ORIGINAL for name in holders)
    assert "torch._logging" in holders
