"""``torch._dynamo.reset()`` makes torch number its compilations from 0 again."""

import os

import pytest

torch = pytest.importorskip("torch")

import depyf
from depyf.records import store
from depyf.records.model import CompileId
from depyf.torch_text.events import EventReader


def first(x):
    return x * 2


def second(x):
    y = torch.sin(x)
    torch._dynamo.graph_break()
    return y + 1


def test_nothing_is_taken_for_what_had_its_number_before(tmp_path):
    with depyf.prepare_debug(str(tmp_path / "d")) as on:
        for function in (first, second, first):
            torch._dynamo.reset()
            torch.compile(function, backend="eager")(torch.ones(2))
    torch._dynamo.reset()
    capture = store.read(on.path)
    assert [(c.function, c.compile_id.resets, c.outcome) for c in capture.compilations if c.compile_id.frame == 0] == [
        ("first", 0, "compiled"), ("second", 1, "compiled"), ("first", 2, "compiled")]
    versions = {function.name: function.frames[0].entries for function in capture.functions}
    assert [sorted(entry.compile_id.resets for entry in versions[name]) for name in ("first", "second")] == [[0, 2], [1]]
    files = [entry.transformed.file for entries in versions.values() for entry in entries]
    assert len(set(files)) == 3 and set(files) <= set(os.listdir(on.path))
    texts = {graph.name: graph.stages[0].text for graph in capture.graphs}
    for entry in versions["first"]:
        assert [len(entry.graph_names), "* 2" in texts[entry.graph_names[0]]] == [1, True]
    with open(os.path.join(on.path, "index.md")) as index:
        assert "`[0/0] after reset 2` | `first` | compiled" in index.read()


def test_numbers_are_used_again_only_after_the_end():
    """An id that starts again is another compilation's; events that come late go on with the one that has it."""
    reader = EventReader()

    def event(frame, recompile, **what):
        reader.feed({"frame_id": frame, "frame_compile_id": recompile, **what})

    def compiled(frame, name):
        event(frame, 0, dynamo_start={"stack": []})
        event(frame, 0, compilation_metrics={"co_name": name, "has_guarded_code": True})

    compiled(0, "a")
    compiled(1, "b")
    event(1, 0, bwd_compilation_metrics={"duration_us": 2e6})
    event(0, 1, dynamo_start={"stack": []})
    compiled(0, "c")
    compiled(1, "d")
    event(1, 0, attempt=1, dynamo_compile={})
    assert [(c.function, c.compile_id.resets) for c in reader.compilations()] == [
        ("a", 0), ("b", 0), ("a", 0), ("c", 1), ("d", 1)]
    assert reader.compile_id(7, 0) == CompileId(7, 0, 0, 1)
    assert reader.compilation(CompileId(1, 0)).seconds == 2.0
