"""Events of torch's trace that depyf does not read: they are recorded as they are, and counted in the notes."""

import os
import subprocess

import pytest
import torch
from torch._logging import _internal

import depyf
from depyf.capture.trace_log import logs, read_ranks
from depyf.records.store import read
from torch_forks import torch_python

try:
    from torch._functorch._aot_autograd import graph_compile
except ImportError:  # (up to torch 2.7)
    from torch._functorch._aot_autograd import jit_compile_runtime_wrappers as graph_compile


def layer(x):
    return torch.relu(x).sin()


@pytest.fixture(autouse=True)
def nothing_compiled():
    torch._dynamo.reset()


@pytest.fixture
def renamed(monkeypatch):
    """Have torch call the event of the joint graph by another name."""

    def trace_structured(name, *args, **kwargs):
        _internal.trace_structured({"aot_joint_graph": "aot_joined_graph"}.get(name, name), *args, **kwargs)

    monkeypatch.setattr(graph_compile, "trace_structured", trace_structured)


@pytest.mark.torch_since((2, 9), "the notes on names that it lacks fill those of the index")
def test_an_event_that_torch_renamed_is_in_the_records_and_in_the_notes(tmp_path, renamed):
    with depyf.prepare_debug(tmp_path, page=False):
        torch.compile(layer, backend="aot_eager")(torch.ones(3, requires_grad=True))
    capture = read(str(tmp_path))
    event, = capture.events
    assert (event.name, event.graph) == ("aot_joined_graph", capture.graphs[0].name)
    assert "torch.ops.aten.relu" in event.text
    assert any("does not read" in note and "aot_joined_graph" in note for note in capture.notes)
    assert "aot_joined_graph" in (tmp_path / "index.md").read_text()


def test_a_file_of_it_on_request(tmp_path, renamed):
    with depyf.prepare_debug(tmp_path, page=False, internal_stages=True):
        torch.compile(layer, backend="aot_eager")(torch.ones(3, requires_grad=True))
    assert any("aot_joined_graph" in name for name in os.listdir(tmp_path))


def test_the_tree_of_guards_on_request(tmp_path):
    with depyf.prepare_debug(tmp_path, page=False, internal_stages=True):
        torch.compile(layer, backend="eager")(torch.ones(3))
    text, = (stage.text for graph in read(str(tmp_path)).graphs for stage in graph.stages
             if stage.stage == "dynamo_cpp_guards_str")
    assert "TREE_GUARD_MANAGER" in text


def test_equal_events_are_counted(tmp_path):
    def backend(gm, inputs):
        for _ in range(2):
            _internal.trace_structured(
                "artifact", metadata_fn=lambda: {"name": "splitter", "encoding": "json"}, payload_fn=lambda: "[1, 2]")
        _internal.trace_structured("splits", metadata_fn=lambda: {"at": 3})
        return gm

    with depyf.prepare_debug(tmp_path, page=False):
        torch.compile(layer, backend=backend)(torch.ones(3))
    capture = read(str(tmp_path))
    assert [(each.name, each.text) for each in capture.events] == [
        ("splitter", "[1, 2]"), ("splitter", "[1, 2]"), ("splits", '{"at": 3}')]
    assert any("splits, splitter (2 times)" in note for note in capture.notes)


def test_an_ordinary_run_has_none(tmp_path):
    with depyf.prepare_debug(tmp_path, page=False):
        torch.compile(layer)(torch.ones(3, requires_grad=True)).sum().backward()
    assert read(str(tmp_path)).events == ()


LOGGED = """
import torch
from torch._logging import trace_structured

def backend(gm, inputs):
    trace_structured("artifact", metadata_fn=lambda: {"name": "splitter"}, payload_fn=lambda: "[1]")
    return gm

def f(x): return x + 1
def g(x): return x * 5
torch.compile(f, backend=backend)(torch.ones(2))
torch._dynamo.reset()
torch.compile(g, backend=backend)(torch.ones(2))
"""


def test_events_and_graphs_of_a_log_after_a_reset(tmp_path):
    subprocess.run([*torch_python(), "-c", LOGGED], check=True, env={**os.environ, "TORCH_TRACE": str(tmp_path)})
    (capture,) = read_ranks(logs(str(tmp_path))[-1]).values()
    assert [(each.name, each.compile_id.resets) for each in capture.events] == [("splitter", 0), ("splitter", 1)]
    assert any("splitter (2 times)" in note for note in capture.notes)
    first, second = capture.graphs
    assert first.name != second.name
    assert "+ 1" in first.stages[0].text and "* 5" in second.stages[0].text
    names = [entry.graph_names for function in capture.functions for frame in function.frames
             for entry in frame.entries]
    assert names == [(first.name,), (second.name,)]
