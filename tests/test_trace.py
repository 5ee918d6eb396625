"""torch's structured trace is listened to without making it print what nobody asked for."""

import contextlib
import logging
import sys

import pytest

torch = pytest.importorskip("torch")

from torch._guards import CompileContext, CompileId, compile_context  # noqa: E402

from depyf.capture.torch_private import trace_events  # noqa: E402

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


@contextlib.contextmanager
def nobody_listens():
    """(Not a fixture: pytest adds a handler of its own to this logger when the test itself begins.)"""
    logger = logging.getLogger(trace_events.TRACE_LOGGER)
    before = list(logger.handlers)
    logger.handlers.clear()
    try:
        yield logger
    finally:
        logger.handlers[:] = before


@pytest.fixture
def listening():
    """Listens as a session does; all is taken back when the test ends."""
    with contextlib.ExitStack() as stack:
        def listen(wanted):
            received = []
            stack.callback(trace_events.on_trace(lambda metadata, payload: received.append(payload), wanted))
            return received

        yield listen


def wanted(event, artifact):
    return event == "graph" or artifact == "mine"


def test_only_wanted_events_are_made(listening):
    with nobody_listens():
        received = listening(wanted)
        assert emit("graph", "a graph")
        assert emit("artifact", "an artifact", name="mine")
        assert not emit("artifact", name="another")
        assert not emit("other")
    assert received == ["a graph", "an artifact"]


@pytest.mark.parametrize(("wish", "events"), [
    (True, [({"graph": {"sizes": 3}}, '{\n"a": 1\n}')]),
    ("metadata", [({"graph": {"sizes": 3}}, "")]),
    ("payload", [({"graph": {}}, '{\n"a": 1\n}')]),
    ("object", [({"graph": {}, "frame_id": 5, "frame_compile_id": 1, "attempt": 0}, {"a": 1})]),
])
def test_what_is_wanted_of_an_event_is_made(wish, events):
    received = []

    def receive(metadata, payload):
        known = {key: value for key, value in metadata.items() if key != "has_payload"}
        received.append((known if wish == "object" else {"graph": known["graph"]}, payload))

    with nobody_listens(), compile_context(CompileContext(CompileId(frame_id=5, frame_compile_id=1))):
        undo = trace_events.on_trace(receive, lambda event, artifact: wish)
        try:
            emit("graph", {"a": 1}, sizes=3)
        finally:
            undo()
    assert received == events


def test_other_listeners_get_all(listening):
    other = Listener()
    with nobody_listens() as trace_logger:
        listening(wanted)
        trace_logger.addHandler(other)
        assert emit("graph") and emit("artifact", name="another") and emit("other")
    assert other.events == ["graph", "artifact", "other"]


def test_each_of_two_sessions_gets_what_it_wants(listening):
    with nobody_listens():
        listening(wanted)
        assert not emit("other")
        second = listening(lambda event, artifact: True)
        assert emit("other", "something")
    assert second == ["something"]


def test_torch_is_left_as_it_was():
    holders = {name for name, module in sys.modules.items()
               if getattr(module, "__dict__", {}).get("trace_structured") is ORIGINAL}
    undo = trace_events.on_trace(lambda metadata, payload: None, wanted)
    assert torch._logging.trace_structured is not ORIGINAL
    undo()
    assert all(sys.modules[name].trace_structured is ORIGINAL for name in holders)
    assert "torch._logging" in holders


def test_what_is_handed_on_at_once_is_what_torch_would_make():
    """Alone, a listener gets events without torch's record of logging; beside another one with it."""
    kinds = frozenset({"dynamo_start", "dynamo_cpp_guards_str", "compilation_metrics", "artifact"})

    def events_beside(*others):
        received = []

        def receive(metadata, payload):
            name = next(iter(metadata))
            received.append((
                name, [metadata.get(key) for key in ("frame_id", "frame_compile_id", "attempt")],
                (metadata[name].get("name") if name == "artifact" else None), type(payload),
                payload.partition("Guard latency")[0] if name == "dynamo_cpp_guards_str" else None))

        torch._dynamo.reset()
        with nobody_listens() as logger:
            for other in others:
                logger.addHandler(other)
            undo = trace_events.on_trace(receive, lambda event, artifact: event in kinds)
            try:
                for size in (3, 4):
                    torch.compile(double, backend="eager")(torch.ones(size))
            finally:
                undo()
        return [event for event in received if event[0] in kinds]

    alone = events_beside()
    assert {event[0] for event in alone} == kinds
    assert {event[1][1] for event in alone} == {0, 1}, "a function and its recompile"
    beside = events_beside(logging.NullHandler())
    assert alone == [event for event in beside if event[0] != "artifact" or event in alone]


def double(x):
    return x * 2
