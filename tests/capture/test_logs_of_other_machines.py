"""Logs of TORCH_TRACE as other versions of torch wrote them elsewhere: what ``depyf report`` says of them."""

import json
import os

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


def test_times_of_torch_2_5_are_in_seconds(tmp_path):
    log = write_log(tmp_path / "a.log", [
        (frame(0, dynamo_start={"stack": [place(9, "<module>"), place(3, "f")]}), None),
        (frame(0, compilation_metrics=metrics(
            guard_count=1, has_guarded_code=True, entire_frame_compile_time_s=5.75, inductor_compile_time_s=4.61)),
         None)])
    assert "Compile time 5.75 s in all. By part (one inside of another counts in both): inductor 4.61 s." in index_of(
        log, tmp_path)
