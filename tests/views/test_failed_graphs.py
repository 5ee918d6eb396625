"""Graphs of compilations that failed: kept, linked by the index, and said to be of such on their face."""

import pytest

torch = pytest.importorskip("torch")

import depyf


def refusing(gm, inputs):
    raise ValueError("no such operator here")


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)

    def forward(self, x):
        return self.layer(x).relu()


def test_the_graph_that_the_backend_refused(tmp_path):
    torch._dynamo.reset()
    with depyf.prepare_debug(str(tmp_path), files="now", page=False), pytest.raises(Exception, match="no such operator"):
        torch.compile(Model(), backend=refusing)(torch.ones(2, 4))
    (graph,) = tmp_path.glob("*.Captured_Graph.0.py")
    lines = graph.read_text().splitlines()
    assert lines[1].startswith("# compilation [0/0] failed: BackendCompilerFailed: backend='refusing' raised: ")
    assert lines[1].endswith("ValueError: no such operator here") and "relu" in graph.read_text()
    assert "# so nothing calls this graph" in lines[:4]
    shown = graph.with_suffix(".outline.txt").read_text()
    assert shown.splitlines()[1].startswith("# compilation [0/0] failed: BackendCompilerFailed")
    number = next(int(line.rpartition("line ")[2]) for line in shown.splitlines() if "layer" in line and "  line " in line)
    assert "layer" in lines[number - 1] or "linear" in lines[number - 1]
    assert f"| failed | [captured]({graph.name})" in (tmp_path / "index.md").read_text()


def test_a_part_of_a_function_that_failed_is_said_first_and_runs_not_in_plain_python(tmp_path):
    """The failure ended the call: nothing of it ran."""
    def step(x):
        torch._dynamo.graph_break()
        return x * 2

    torch._dynamo.reset()
    with depyf.prepare_debug(str(tmp_path), files="now", page=False), pytest.raises(Exception, match="no such operator"):
        torch.compile(step, backend=refusing)(torch.ones(2, 4))
    text = (tmp_path / "index.md").read_text()
    first = next(line for line in text.splitlines() if line.startswith("**"))
    assert "from line" in first and "was not compiled: `BackendCompilerFailed`" in first
    assert "([was not compiled](#not-compiled))" in text and "runs in plain Python, too" not in text
