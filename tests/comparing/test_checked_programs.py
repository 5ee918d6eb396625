"""A program whose calls are checked: all of them are, and it shows what it shows without."""

import os
import pathlib
import subprocess
import textwrap

import pytest

torch = pytest.importorskip("torch")

from depyf.capture import forked
from torch_forks import torch_python

pytestmark = pytest.mark.skipif(bool(forked.why_not()), reason="no process can be forked here")

SRC = pathlib.Path(__file__).resolve().parents[2] / "src"
WARNS = """
    import warnings
    import torch

    def scaled(x):
        return x * 2

    compiled = torch.compile(scaled, backend="eager")
    for _ in range(3):
        warnings.warn("careful")
        compiled(torch.ones(2))
"""


@pytest.mark.parametrize("words, judged", [
    (["-m", "depyf", "run", "-o", "dump"], ""), (["-m", "depyf", "run", "-o", "dump", "--check"], "3 of 3")])
def test_a_line_warns_once(tmp_path, words, judged):
    # (What is done to show no warning of ours must not have Python forget those that it has shown.)
    (tmp_path / "program.py").write_text(textwrap.dedent(WARNS))
    done = subprocess.run([*torch_python(), *words, "program.py"], cwd=tmp_path, capture_output=True, text=True,
                          timeout=300, env={**os.environ, "PYTHONPATH": str(SRC)})
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("UserWarning: careful") == 1, done.stderr
    # The first call is judged, too.
    assert not judged or f"{judged} compiled calls judged: all equal" in done.stderr, done.stderr
