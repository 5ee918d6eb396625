"""``debug()`` in a real kernel of Jupyter's: it asks where a reader can answer, and never hangs where none can."""

import os
import queue
import time

import pytest

pytest.importorskip("torch")
pytest.importorskip("ipykernel")
manager = pytest.importorskip("jupyter_client.manager")

SOURCES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "src")
CELL = """
import tempfile, torch, depyf
def toy(a):
    return a * 2
compiled = torch.compile(toy, backend="eager")
with depyf.prepare_debug(tempfile.mkdtemp()):
    compiled(torch.ones(3))
with depyf.debug():
    print(compiled(torch.ones(3)).tolist())
print("done")
"""


def run_cell(answers):
    """What the cell printed, and what it asked; ``None`` for a front end that takes no input."""
    kernel, client = manager.start_new_kernel(env=dict(os.environ, PYTHONPATH=os.pathsep.join(
        [SOURCES, *filter(None, [os.environ.get("PYTHONPATH")])])))
    try:
        request = client.execute(CELL, allow_stdin=answers is not None)
        output, asked, end = "", [], time.monotonic() + 200
        while time.monotonic() < end:
            if answers is not None:
                try:
                    asked.append(client.get_stdin_msg(timeout=0.2)["content"]["prompt"])
                    client.input(answers.pop(0))
                except queue.Empty:
                    pass
            try:
                message = client.get_iopub_msg(timeout=0.5)
            except queue.Empty:
                continue
            if message["parent_header"].get("msg_id") != request:
                continue
            content = message["content"]
            output += content.get("text", "") + "\n".join(content.get("traceback", ()))
            if message["msg_type"] == "status" and content["execution_state"] == "idle":
                return output, asked
        raise AssertionError(f"it hangs: {output}")
    finally:
        client.stop_channels()
        kernel.shutdown_kernel(now=True)


def test_a_notebook_that_runs_by_itself_does_not_hang():
    output, asked = run_cell(None)
    assert "no pause" in output
    assert "[2.0, 2.0, 2.0]" in output
    assert "done" in output
    assert not asked


def test_a_reader_is_asked():
    output, asked = run_cell(["p 6 * 7", "continue"])
    assert "depyf: paused" in output
    assert len(asked) == 2
    assert "42" in output
    assert output.rstrip().endswith("done")
