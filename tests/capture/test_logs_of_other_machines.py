"""Logs of TORCH_TRACE as other versions of torch wrote them elsewhere: what ``depyf report`` says of them."""

import json
import os

import pytest

from depyf import cli
from depyf.capture import trace_log
from depyf.report import report

TORCH = "/home/me/pytorch/torch/"
PROGRAM = "/home/me/app.py"
FILES = [PROGRAM, TORCH + "_dynamo/eval_frame.py", TORCH + "_inductor/__init__.py", TORCH + "export/_trace.py"]


def place(line, name, file=PROGRAM, loc=""):
    return {"line": line, "name": name, "filename": FILES.index(file), "loc": loc}


def write_log(path, events):
    """Write a log: ``(metadata, payload)`` of each event, the payload ``None`` where it has none."""
    strings = [({"str": [file, number]}, None) for number, file in enumerate(FILES)]
    lines = []
    for metadata, payload in [*strings, *events]:
        lines.append(f"V1128 10:00:00.000000 1 torch/_logging/structured.py:22] {json.dumps(metadata)}\n")
        lines += [f"\t{line}\n" for line in (payload or "").splitlines()]
    path.write_text("".join(lines))
    return str(path)


def frame(number, recompile=0, **event):
    return {**event, "frame_id": number, "frame_compile_id": recompile, "attempt": 0}


def of_call(number, **event):
    """An event of a call at line ``number`` of the program, without a frame."""
    return {**event, "stack": [place(number, "<module>"), place(1, "aoti_compile_and_package", FILES[2]),
                               place(2, "_aoti_compile", FILES[2])]}


def metrics(**fields):
    return {"co_name": "f", "co_filename": PROGRAM, "co_firstlineno": 3, **fields}


def index_of(log, tmp_path):
    with open(report(log, str(tmp_path / "out"))) as file:
        return file.read()


def stages_of(folder):
    return sorted(name for name in os.listdir(folder) if name.count(".") > 1)


GRAPH = """class GraphModule(torch.nn.Module):
    def forward(self, L_x_: "f32[3]"):
        sin: "f32[3]" = L_x_.sin();  L_x_ = None
        return (sin,)
"""


def test_a_compilation_that_failed(tmp_path):
    log = write_log(tmp_path / "a.log", [
        (frame(1, dynamo_start={"stack": [place(9, "<module>"), place(3, "f")]}), None),
        (frame(1, dynamo_output_graph={}), GRAPH),
        (frame(1, compilation_metrics=metrics(
            fail_type="BackendCompilerFailed", fail_reason="no", dynamo_cumulative_compile_time_us=157247)), None)])
    text = index_of(log, tmp_path)
    assert "**Torch compiled no function in this run.**" in text
    assert "`f` was not compiled: `BackendCompilerFailed`: no" in text
    assert "Compile time 0.16 s in all" in text  # (torch 2.6 has no time of the whole frame)
    assert "internal error" not in open(os.path.join(tmp_path, "out", "notes.txt")).read()


# --- without a frame ---------------------------------------------------------------------------------------------
def test_aot_inductor_is_a_graph_of_the_call(tmp_path):
    log = write_log(tmp_path / "a.log", [
        (of_call(7, artifact={"name": "before_pre_grad_graph"}), GRAPH),
        (of_call(7, aot_inference_graph={}), GRAPH.replace("L_x_", "arg0_1")),
        (of_call(7, graph_dump={"name": "inductor_aot_wrapper_code"}), "int main() { return 0; }"),
        (of_call(7, compilation_metrics={"inductor_cumulative_compile_time_us": 2_000_000}), None),
        (of_call(8, aot_inference_graph={}), GRAPH)])
    text = index_of(log, tmp_path)
    assert "2 graphs given to a compiler directly; no function was compiled." in text
    assert "| `aoti_compile_and_package_1` | Compiled by `aoti_compile_and_package` at `app.py:7` |" in text
    assert "inductor 2.00 s" in text
    assert "| `aoti_compile_and_package_2` | Given to `aoti_compile_and_package` at `app.py:8` |" in text
    assert stages_of(tmp_path / "out") == [
        "aoti_compile_and_package_1.BEFORE_PRE_GRAD.0.py", "aoti_compile_and_package_1.Forward_graph.0.py",
        "aoti_compile_and_package_1.inductor_aot_wrapper_code.0.txt", "aoti_compile_and_package_2.Forward_graph.0.py"]


def test_an_export_says_what_it_decided(tmp_path):
    user = [place(3, "forward", loc="return z[:a]")]
    stack = [place(9, "<module>"), place(1, "draft_export", FILES[3]), place(3, "forward")]
    log = write_log(tmp_path / "a.log", [
        ({"expression_created": {"result": "-u0", "result_id": 1, "method": "neg", "arguments": ["u0"],
                                 "argument_ids": [7], "user_stack": [place(2, "forward")]}, "stack": stack}, None),
        ({"expression_created": {"result": "-u0 // 3", "result_id": 2, "method": "floordiv", "arguments": ["-u0", "3"],
                                 "argument_ids": [1], "user_stack": user}, "stack": stack}, None),
        ({"propagate_real_tensors_provenance": {"expr": "Eq(u0, 0)", "result": "False", "user_stack": user,
                                                "expr_node_id": 2, "frame_locals": {"symbols": {"u0": "x.item()"}}}, "stack": stack}, None),
        ({"guard_added": {"expr": "Eq(s0, 3)", "prefix": "eval", "user_stack": user}, "stack": stack}, None),
        ({"guard_added": {"expr": "s0 < 9", "user_stack": user}, "stack": stack}, None),
        ({"missing_fake_kernel": {"op": "mine.op"}, "stack": stack}, None),
        ({"exported_program": {}, "stack": stack}, "ExportedProgram:\n    class G: ...\n\n    Range constraints: {}")])
    text = index_of(log, tmp_path)
    assert "| `draft_export_1` | Exported by `draft_export` at `app.py:9` |" in text
    assert ("* `app.py:3`, `return z[:a]`: `Eq(u0, 0)` depends on data; it was taken to be `False`, as in this run, and "
            "the exported program checks that (`u0` is `x.item()`, `-u0` was computed at `app.py:2`)") in text
    assert "`Eq(s0, 3)` was evaluated; what is exported is for sizes with this outcome alone" in text
    assert "* the operator `mine.op` has no fake kernel" in text and "s0 < 9" not in text
    program, = stages_of(tmp_path / "out")
    with open(tmp_path / "out" / program) as file:
        assert "Range constraints" in file.read()  # (after an empty line, which torch does not indent)
    assert "does not read" not in text


def test_each_call_that_reports_no_end_is_one(tmp_path):
    """An export that is not strict reports what it decided, and then nothing."""
    def fixed(line, value):
        return {"symbolic_shape_specialization": {"sources": ["L['x'].size()[0]"], "value": value},
                "stack": [place(line, "<module>"), place(1, "export", FILES[3])]}

    log = write_log(tmp_path / "a.log", [(fixed(7, "4"), None), (fixed(7, "4"), None), (fixed(8, "5"), None)])
    text = index_of(log, tmp_path)
    assert "| `export_1` | Given to `export` at `app.py:7` |" in text
    assert "| `export_2` | Given to `export` at `app.py:8` |" in text
    assert text.count("can only be") == 2 and "* `L['x'].size()[0]` can only be `5`" in text


def test_each_call_of_a_compiler_while_the_program_runs_is_a_graph_of_its_own(tmp_path):
    """A backend compiles a piece again when it is called, beneath compiled code: torch reports the end of each."""
    where = [place(9, "<module>"), place(1166, "compile_wrapper", FILES[1]), place(5, "__call__"),
             place(80, "compile_fx", FILES[2])]
    log = write_log(tmp_path / "a.log", [event for _ in range(2) for event in (
        ({"aot_inference_graph": {}, "stack": where}, GRAPH),
        ({"compilation_metrics_runtime": {"inductor_cumulative_compile_time_us": 5_000_000}, "stack": where}, None))])
    text = index_of(log, tmp_path)
    assert all(f"| `compile_fx_{number}` | Given to `compile_fx` at `app.py:5` |" in text for number in (1, 2))


def test_an_export_that_failed_with_numbers_of_a_frame(tmp_path):
    """Since torch 2.15 a call of ``torch.export`` has such numbers."""
    text = index_of(write_log(tmp_path / "a.log", [
        (frame(0, artifact={"name": "make_fx_fail_partial"}), GRAPH)]), tmp_path)
    assert "Given to `export`" in text and "not finished" not in text


def test_what_dynamo_traces_for_a_strict_export_is_no_compilation(tmp_path):
    log = write_log(tmp_path / "a.log", [
        (frame(0, dynamo_output_graph={}), GRAPH),
        ({"compilation_metrics": {}, "stack": [place(7, "<module>"), place(1, "export", FILES[3])]}, None)])
    text = index_of(log, tmp_path)
    assert "no function was compiled" in text and "Given to `export` at `app.py:7`" in text
    assert "not finished" not in text


# --- damaged and internal texts ------------------------------------------------------------------------------------
def test_a_text_with_another_digest_is_counted(tmp_path):
    log = write_log(tmp_path / "a.log", [(frame(0, dynamo_output_graph={}, has_payload="0" * 32), GRAPH)])
    assert "damaged: 1" in index_of(log, tmp_path)


def test_internal_stages_are_written_on_request(tmp_path):
    log = write_log(tmp_path / "a.log", [
        (frame(0, dynamo_start={"stack": [place(3, "f")]}), None),
        (frame(0, dynamo_output_graph={}), GRAPH),
        (frame(0, inductor_pre_grad_graph={}), GRAPH),
        (frame(0, artifact={"name": "fx_graph_cache_miss"}), '{"key": "abc"}'),
        (frame(0, artifact={"name": "torch._functorch.config"}), '{"debug": false}')])
    assert "`depyf report --internal-stages` writes them" in index_of(log, tmp_path)
    assert stages_of(tmp_path / "out") == ["__compiled_fn_of_0_0.Captured_Graph.0.py"]
    report(log, str(tmp_path / "all"), internal_stages=True)
    assert stages_of(tmp_path / "all") == [
        "__compiled_fn_of_0_0.Captured_Graph.0.py", "__compiled_fn_of_0_0.functorch_config.0.txt",
        "__compiled_fn_of_0_0.fx_graph_cache_miss.0.txt", "__compiled_fn_of_0_0.inductor_pre_grad_graph.0.py"]


# --- ranks ---------------------------------------------------------------------------------------------------------
def ranks_of(tmp_path, of_ranks, names="dedicated_log_torch_trace_rank_{}.log", event_rank=True):
    """Write a log for each rank: ``(collectives, estimated nanoseconds)``; return the folder."""
    folder = tmp_path / "logs"
    folder.mkdir()
    for rank, (collectives, time) in enumerate(of_ranks):
        common = {"rank": rank} if event_rank else {}
        write_log(folder / names.format(rank), [({**common, **metadata}, payload) for metadata, payload in (
            (frame(0, dynamo_start={"stack": [place(9, "<module>"), place(3, "f")]}), None),
            (frame(0, dynamo_output_graph={}), GRAPH),
            (frame(0, artifact={"name": "inductor_collective_schedule"}),
             json.dumps([f"torch.ops._c10d_functional.{name}.default" for name in collectives])),
            (frame(0, artifact={"name": "inductor_runtime_and_tensor_meta"}), json.dumps({"ops": [
                {"name": "mm", "type": "compute", "estimated_runtime_ns": time,
                 "outputs": [{"dtype": "float16", "shape": [4, 2], "stride": [2, 1]}]}]})),
            (frame(0, artifact={"name": "triton_kernel_info"}), json.dumps(
                {"triton_poi_0": {"autotune_cache_state": "miss", "num_configs": 2, "compile_time_us": 5}})),
            (frame(0, compilation_metrics=metrics(guard_count=1, has_guarded_code=True)), None))])
    return str(folder)


@pytest.mark.parametrize("names, event_rank", [
    ("dedicated_log_torch_trace_rank_{}.log", True), ("dedicated_log_torch_trace_rank_{}_x1.log", False),
    ("node-{}.log", True)])
def test_ranks_by_their_events_or_the_names_of_files(names, event_rank, tmp_path):
    text = index_of(ranks_of(tmp_path, [(["all_reduce_"], 1000)] * 3, names, event_rank), tmp_path)
    assert text.startswith("# What torch.compile did on 3 ranks") and "Nowhere: 3 ranks" in text


def test_ranks_whose_logs_say_the_same_are_read_once(tmp_path, capsys, monkeypatch):
    read = []
    whole = trace_log.read_ranks
    monkeypatch.setattr(trace_log, "read_ranks", lambda path, *args: read.append(path) or whole(path, *args))
    logs = ranks_of(tmp_path, [(["all_reduce_"], 1000)] * 2 + [(["wait_tensor"], 1000)] + [(["all_reduce_"], 1000)] * 3)
    text = index_of(logs, tmp_path)
    assert len(read) == 2 and {each.name for each in (tmp_path / "out").glob("rank_*")} == {"rank_0", "rank_2"}
    assert "| 5 ranks alike: 0, 1, 3-5; see [rank 0](rank_0/index.md) |" in text
    assert "* The collectives of `[0/0]` `f` differ, first at number 1:" in text
    assert index_of(str(tmp_path / "out"), tmp_path / "again").startswith("# What torch.compile did on 6 ranks")
    capsys.readouterr()
    for path in (logs, str(tmp_path / "out")):
        assert cli.main(["explain", path, "--rank", "4"]) == 0
        shown = capsys.readouterr()
        assert "all_reduce_" in shown.out and "rank_4 did the same as rank_0" in shown.err
        assert cli.main(["explain", path, "--rank", "6"]) == 2
        assert cli.main(["fits", path, "f", "--rank", "4"]) != 2, capsys.readouterr()
        assert cli.main(["fits", path, "f", "--rank", "6"]) == 2
    capsys.readouterr()
    assert cli.main(["explain", logs, "--json"]) == 0
    assert [run["alike_ranks"] for run in json.loads(capsys.readouterr().out)["runs"]] == [[1, 3, 4, 5], []]


def test_where_ranks_wait_for_each_other(tmp_path):
    folder = ranks_of(tmp_path, [
        (["all_reduce_", "wait_tensor", "all_gather"], 1_000_000), (["all_reduce_", "wait_tensor"], 1_500_000),
        (["all_reduce_", "wait_tensor", "all_gather"], 1_000_000)])
    text = index_of(folder, tmp_path)
    assert ("* The collectives of `[0/0]` `f` differ, first at number 3: ranks 0, 2 call `all_gather`; rank 1 calls "
            "none.") in text
    assert "Inductor estimates 1.00 ms for `[0/0]` `f` on ranks 0, 2 and 1.50 ms on rank 1" in text
    with open(tmp_path / "out" / "rank_0" / "index.md") as file:
        assert "| `[0/0]` `f` | `all_reduce_`, `wait_tensor`, `all_gather` | 1.00 ms, 0.00 ms of it collectives |" in (
            file.read())


def test_collectives_of_backward_code_come_after_those_of_forward_code(tmp_path):
    log = write_log(tmp_path / "a.log", [
        (frame(0, dynamo_start={"stack": [place(3, "f")]}), None), (frame(0, dynamo_output_graph={}), GRAPH),
        *[(frame(0, artifact={"name": "inductor_collective_schedule"}), json.dumps([name]))
          for name in ("all_gather", "reduce_scatter")]])
    assert "| `all_gather`, `reduce_scatter` |" in index_of(log, tmp_path)


def test_logs_that_are_left_out_are_named(tmp_path, capsys):
    folder = tmp_path / "logs"
    folder.mkdir()
    for number, name in enumerate(("a.log", "b.log")):
        write_log(folder / name, [(frame(0, dynamo_output_graph={}), GRAPH)])
        os.utime(folder / name, (number, number))
    (folder / "other.log").write_text("no event\n")
    report(str(folder), str(tmp_path / "out"))
    said = capsys.readouterr().err
    assert "a.log, which is older than" in said and "other.log contains no event" in said


def test_the_order_in_which_graphs_run(tmp_path):
    log = write_log(tmp_path / "a.log", [
        (frame(0, dynamo_start={"stack": [place(3, "f")]}), None), (frame(0, dynamo_output_graph={}), GRAPH),
        ({"artifact": {"name": "graph_execution"}}, json.dumps(
            {"graph_execution_order": [{"compile_id": each} for each in ("0/0", "0/0", "1/0")]}))])
    assert "Graphs ran in this order: `[0/0]` 2 times, `[1/0]`." in index_of(log, tmp_path)
