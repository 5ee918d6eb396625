"""A real debugpy client: what an editor does when someone clicks beside a line of the dump."""

import os
import textwrap

import pytest

pytest.importorskip("torch")
pytest.importorskip("debugpy")

from dap import Debugpy, Ended

SOURCES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "src")
PROGRAM = """
import sys
import torch
import depyf

def toy_example(a, b):
    x = a / (torch.abs(a) + 1)
    y = x * b
    torch._dynamo.graph_break()
    return y - x

compiled = torch.compile(toy_example, backend="eager")
arguments = torch.arange(10.0), torch.ones(10)
with depyf.prepare_debug(sys.argv[1]):
    compiled(*arguments)
with depyf.debug():
    for turn in range(3):
        print("same", torch.equal(compiled(*arguments), toy_example(*arguments)))
"""


def line_of(path, part):
    with open(path) as file:
        return next(number for number, line in enumerate(file, 1) if part in line)


def test_breakpoints_locals_values_and_steps(tmp_path):
    script, dump = tmp_path / "program.py", tmp_path / "dump"
    script.write_text(textwrap.dedent(PROGRAM))
    environment = dict(os.environ, PYTHONPATH=SOURCES, PYDEVD_DISABLE_FILE_VALIDATION="1")
    session = Debugpy([str(script), str(dump)], environment, just_my_code=True)
    try:
        try:
            path, _ = session.pause()
        except Ended:
            raise AssertionError(session.output()) from None
        assert path == str(script)
        transformed = str(dump / "__transformed_code_0_for_toy_example.py")
        graph = str(dump / "__compiled_fn_1.Captured_Graph.0.py")
        if not os.path.exists(graph):  # (torch counts from another number)
            graph = str(sorted(dump.glob("__compiled_fn_*.Captured_Graph.0.py"))[0])
        line = line_of(transformed, "= __compiled_fn_")
        # Not in the first turn; in the second, where a local tensor says so.
        assert session.break_at(transformed, line, "__import__('__main__').turn == 1 and float(a.sum()) == 45")
        assert session.go() == (transformed, line)
        assert session.value("__import__('__main__').turn") == "1"
        assert {"a", "b"} <= session.names()
        assert session.value("a[3].item() + b.sum().item()") == "13.0"
        place = session.into()
        for _ in range(5):  # with justMyCode, torch's own functions are passed by
            if place[0] == graph:
                break
            place = session.into()
        assert place[0] == graph
        assert session.value("a.shape") == "torch.Size([10])"
        first = session.over()
        second = session.over()
        assert first[0] == second[0] == graph
        assert second[1] > first[1]
        assert session.out()[0] != graph
        session.break_at(transformed, None)
        with pytest.raises(Ended):
            session.go()
        output = session.output()
    finally:
        session.close()
    assert output.count("same True") == 3, output
    assert "no compiled version" not in output
