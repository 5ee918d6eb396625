"""Graphs that a backend shows become stages under the backend's own name, and the program notices nothing."""

import json
import os
import threading

import pytest

torch = pytest.importorskip("torch")

from torch._dynamo.utils import lazy_format_graph_code  # noqa: E402
from torch._logging import trace_structured  # noqa: E402
from torch.fx.passes.split_module import split_module  # noqa: E402

import depyf  # noqa: E402
from depyf.capture.torch_private import private_api  # noqa: E402
from depyf.records import store  # noqa: E402

pytestmark = pytest.mark.usefixtures("fresh_dynamo")


def double(x):
    return torch.relu(x).sin() * 2


def dump_of(path, backend, **options):
    """Compile `double` inside a block; return the files of the dump."""
    with depyf.prepare_debug(str(path), page=False, **options) as on:
        assert torch.equal(torch.compile(double, backend=backend)(torch.ones(3)), double(torch.ones(3)))
    return sorted(os.listdir(on.path))


def text_of(path, name):
    return (path / name).read_text(encoding="utf-8")


def stages_in(files):
    return [name.removeprefix("__compiled_fn_").partition(".")[2] for name in files if ".0." in name or ".1." in name]


def test_graphs_that_are_shown_for_logs(tmp_path):
    shown = []

    def backend(gm, inputs):
        shown.append(lazy_format_graph_code("before split", gm))
        shown.append(lazy_format_graph_code("before split", gm))
        shown.append(lazy_format_graph_code("after: the/../split", gm, 3, colored=True))
        return gm

    expected = type(lazy_format_graph_code("plain", torch.fx.symbolic_trace(double)))
    files = dump_of(tmp_path, backend)
    assert stages_in(files) == ["Captured_Graph.0.py", "after_the_split_3.0.py", "before_split.0.py", "before_split.1.py"]
    name = next(name for name in files if "after" in name)
    assert "after: the/../split 3, compilation [0/0]" in text_of(tmp_path, name).splitlines()[0]
    assert "torch.relu" in text_of(tmp_path, name)
    index = text_of(tmp_path, "index.md")
    assert "`after: the/../split 3`" in index and "`before split`" in index
    assert all(type(each) is expected for each in shown)
    assert "===== before split =====" in str(shown[0]) and "===== after: the/../split 3 =====" in str(shown[2])


def test_errors_of_the_function_itself_are_its_own(tmp_path):
    def backend(gm, inputs):
        with pytest.raises(TypeError):
            lazy_format_graph_code("no graph")
        lazy_format_graph_code("not a graph", 3)
        return gm

    files = dump_of(tmp_path, backend)
    assert stages_in(files) == ["Captured_Graph.0.py"]


def test_graph_dump_and_split_module(tmp_path):
    def backend(gm, inputs):
        trace_structured("graph_dump", lambda: {"name": "fused graph"},
                         payload_fn=lambda: gm.print_readable(print_output=False))
        return split_module(gm, None, lambda node: int("relu" not in str(node)))

    assert stages_in(dump_of(tmp_path, backend)) == [
        "Captured_Graph.0.py", "fused_graph.0.py", "post_split_module.0.py", "pre_split_module.0.py"]


def test_what_torch_shows_of_its_own_is_not_written_twice(tmp_path):
    assert stages_in(dump_of(tmp_path / "a", "aot_eager")) == ["Captured_Graph.0.py", "Forward_graph.0.py"]
    torch._dynamo.reset()
    internal = stages_in(dump_of(tmp_path / "b", "aot_eager", internal_stages=True))
    assert {"Captured_Graph.0.py", "Forward_graph.0.py"} <= set(internal)
    assert not any("compiled_fn" in name for name in internal), "names of graphs differ from run to run"


@pytest.mark.skipif(not private_api.FUSED.present(), reason="this torch has no such name")
def test_operations_of_inductor_on_request(tmp_path):
    stages = stages_in(dump_of(tmp_path, "inductor", internal_stages=True, caches="bypass"))
    before, after = (next(tmp_path.glob(f"*.IR_{when}_fusion.0.txt")).read_text() for when in ("before", "after"))
    assert {"IR_before_fusion.0.txt", "IR_after_fusion.0.txt"} <= set(stages)
    assert "op0: SchedulerNode" in before and "op0" in after
    assert "[`IR before fusion`]" in (tmp_path / "index.md").read_text()


def test_stage(tmp_path):
    def backend(gm, inputs):
        depyf.stage("after <b>fusion</b> | `x`\n", gm)
        depyf.stage("plan", "1. this | that\n2. then that")
        depyf.stage("Forward graph", gm, graph=gm)
        depyf.stage("x" * 500, "a = 1", graph="__compiled_fn_1")
        depyf.stage("lost", "text", graph="__compiled_fn_77")
        return gm

    with depyf.prepare_debug(str(tmp_path)) as on:
        torch.compile(double, backend=backend)(torch.ones(3))
        graph = next(name for name in on._session.graphs.names.values())
        depyf.stage("later", "about it", graph=graph)
        depyf.stage("alone", "of nothing")
    files = [name for name in os.listdir(tmp_path) if name.startswith("__compiled_fn_")]
    stages = {name.partition(".")[2] for name in files}
    assert {"after_b_fusion_b_x.0.py", "plan.0.txt", "backend_Forward_graph.0.py", "later.0.txt"} <= stages
    assert all(len(name) < 200 for name in files)
    plan = text_of(tmp_path, next(name for name in files if ".plan." in name))
    assert plan.endswith("\n\n1. this | that\n2. then that\n") and "import" not in plan
    (alone,) = [name for name in os.listdir(tmp_path) if "alone" in name]
    assert alone == "test_stage_1.alone.0.txt"
    assert "shown by test_stage in a thread that compiled nothing, at " in text_of(tmp_path, alone)
    index = text_of(tmp_path, "index.md")
    assert "after <b>fusion</b> \\| `x`" in index and "`` " in index, "the name is code, not markup"
    assert "depyf.stage('lost') is not recorded: no graph of this run is __compiled_fn_77" in text_of(
        tmp_path, "notes.txt")
    assert "after &lt;b" in text_of(tmp_path, "index.html") or "<b>fusion</b>" not in text_of(tmp_path, "index.html")


def test_names_that_differ_in_case_only_keep_the_name_of_the_graph(tmp_path):
    def backend(gm, inputs):
        for name in ("captured graph", "Before", "before", "BEFORE", "be/fore", "be fore"):
            lazy_format_graph_code(name, gm)
        return gm

    files = [name for name in dump_of(tmp_path, backend) if "fn_" in name]
    assert {name.partition(".")[0] for name in files} == {files[0].partition(".")[0]}
    assert stages_in(files) == ["BEFORE_3.0.py", "Before.0.py", "Captured_Graph.0.py", "be_fore.0.py", "be_fore.1.py",
                                "before_2.0.py", "captured_graph_2.0.py"]


def test_a_helper_thread_shows_the_captured_graph(tmp_path):
    def backend(gm, inputs):
        threads = [threading.Thread(target=show, args=(name, gm)) for show, name in (
            (depyf.stage, "by a thread"), (lazy_format_graph_code, "by another"))]
        for thread in threads:
            thread.start()
            thread.join()
        return gm

    assert stages_in(dump_of(tmp_path, backend)) == ["Captured_Graph.0.py", "by_a_thread.0.py", "by_another.0.py"]


@pytest.mark.parametrize("arguments", [(1, "text"), ("name", 3), ("name", None)])
def test_stage_takes_graphs_and_texts(tmp_path, arguments):
    with pytest.raises(TypeError, match=r"depyf\.stage"):
        depyf.stage(*arguments)
    with pytest.raises(TypeError, match=r"depyf\.stage: graph must be"):
        depyf.stage("name", "text", graph=3)


def test_stage_outside_of_a_block_does_nothing():
    class Graph:
        def print_readable(self):
            raise AssertionError("nobody asked for it")

    depyf.stage("name", Graph())


def test_stage_does_not_raise_into_the_backend(tmp_path, recwarn):
    class Graph:
        def print_readable(self, **options):
            raise ZeroDivisionError("cannot be printed")

    def backend(gm, inputs):
        depyf.stage("broken", Graph())
        depyf.stage("good", gm)
        return gm

    assert stages_in(dump_of(tmp_path, backend)) == ["Captured_Graph.0.py", "good.0.py"]
    assert "depyf.stage('broken') is not recorded: the graph cannot be printed (ZeroDivisionError" in text_of(
        tmp_path, "notes.txt")
    assert not [each for each in recwarn if "depyf" in str(each.message)]


def test_every_block_that_is_on_has_the_stage(tmp_path):
    def backend(gm, inputs):
        depyf.stage("mine", gm)
        lazy_format_graph_code("theirs", gm)
        return gm

    with depyf.prepare_debug(str(tmp_path / "outer"), page=False):
        dump_of(tmp_path / "inner", backend)
    for folder in ("outer", "inner"):
        assert {"mine.0.py", "theirs.0.py"} <= set(stages_in(os.listdir(tmp_path / folder)))


def test_without_the_name_of_torch_all_else_is_there(tmp_path, monkeypatch):
    def backend(gm, inputs):
        lazy_format_graph_code("before split", gm)
        depyf.stage("mine", gm)
        return gm

    missing = private_api.SHOWN_GRAPH.__class__(
        "torch.fx._utils:NoSuchName", private_api.SHOWN_GRAPH.use, private_api.SHOWN_GRAPH.lost)
    monkeypatch.setattr(private_api, "SHOWN_GRAPH", missing)
    assert stages_in(dump_of(tmp_path, backend)) == ["Captured_Graph.0.py", "mine.0.py"]


def test_the_names_are_in_the_records_and_come_back(tmp_path):
    def backend(gm, inputs):
        lazy_format_graph_code("before split", gm)
        return gm

    dump_of(tmp_path, backend)
    (graph,) = store.read(str(tmp_path)).graphs
    assert [(stage.stage, stage.shown_as) for stage in graph.stages] == [
        ("Captured_Graph", ""), ("before_split", "before split")]
    assert any(json.loads(line).get("record") == "graph" for line in text_of(tmp_path, "records.jsonl").splitlines())
