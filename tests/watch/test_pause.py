"""A real pdb in a pseudo-terminal stops in the frame of the graph, at the line at fault."""

import os

import pytest

pytest.importorskip("torch")
pexpect = pytest.importorskip("pexpect")

from depyf.capture.torch_private import private_api
from torch_forks import torch_python

HERE = os.path.dirname(os.path.abspath(__file__))
PROMPT = r"\(Pdb\) "


@pytest.mark.parametrize("backend", ["eager", pytest.param("aot_eager", marks=pytest.mark.skipif(
    not private_api.AOT_EAGER_CODE.as_expected(), reason=f"missing: {private_api.AOT_EAGER_CODE.lost}"))])
def test_stops_in_the_graph_with_live_values(backend, tmp_path):
    environment = dict(os.environ, PYTHONPATH=os.path.join(HERE, "..", "..", "src"), TERM="dumb",
                       PYTHONBREAKPOINT="", NO_COLOR="1", PYTHON_COLORS="0")
    child = pexpect.spawn(
        torch_python()[0], [*torch_python()[1:], os.path.join(HERE, "paused_program.py"), backend, str(tmp_path)],
        env=environment, encoding="utf-8", timeout=150, dimensions=(50, 400))
    child.setecho(False)

    def ask(command):
        child.sendline(command)
        child.expect(PROMPT)
        return child.before

    child.expect(PROMPT)
    result, taken = ("z", "y") if backend == "eager" else ("log", "sub")
    stage = "Captured_Graph" if backend == "eager" else "Forward_graph"
    where = child.before.split("\n> ")[-1]
    assert f"{stage}.0.py(" in where
    assert f"-> {result}: " in where
    assert "planted_faults.py" in child.before
    assert "True" in ask(f"p {result}.isnan().all()")
    assert "torch.Size([4, 4])" in ask(f"p {taken}.shape"), "before the line lets go of it"
    assert f"{stage}.0.py(" in ask("next")
    child.sendline("continue")
    child.expect(pexpect.EOF)
    assert "done" in child.before
    child.close()
    assert child.exitstatus == 0
