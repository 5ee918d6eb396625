"""A backward pass that compiled autograd compiles has the name of the line that asked for it."""

import pytest

torch = pytest.importorskip("torch")

import depyf  # noqa: E402
from depyf.records.store import read

compiled_autograd = pytest.importorskip("torch._dynamo.compiled_autograd")


@pytest.mark.skipif(not hasattr(compiled_autograd, "_enable"), reason="this torch enables it otherwise")
def test_it_is_called_by_the_line_of_the_program(tmp_path):
    x = torch.ones(3, requires_grad=True)
    with depyf.prepare_debug(str(tmp_path)):
        with compiled_autograd._enable(torch.compile(backend="eager")):
            x.sin().sum().backward()  # (backward)
    with open(__file__) as file:
        line, = (number for number, text in enumerate(file, 1) if text.endswith("# (backward)\n"))
    capture = read(str(tmp_path))
    assert [each.user_function.name for each in capture.compilations] == [f"backward at line {line}"]
    text = (tmp_path / f"full_code_for_backward_at_line_{line}_0.py").read_text()
    assert "# the original function, as torch.fx wrote it" in text
    captured, = tmp_path.glob("*.Captured_Graph.0.py")
    assert "# node of autograd: SinBackward0 (NodeCall " in captured.read_text()
