"""What is loaded from a saved package or file: it was compiled before, and no call of it runs in plain Python."""

import json
import os
import subprocess
import textwrap

import pytest

torch = pytest.importorskip("torch")

from depyf.records.store import read  # noqa: E402
from depyf.views.page import unpacked
from torch_forks import torch_python

pytestmark = pytest.mark.torch_since((2, 11), "saved functions and packages are experimental")

PRECOMPILED = textwrap.dedent("""
    import torch

    def scaled(x):
        y = x * 2
        torch._dynamo.graph_break()
        return (y + 1).sum(-1)

    with torch._dynamo.config.patch(caching_precompile=True):
        print(torch.compile(scaled)(torch.ones(4, 3)).tolist())
        saved, _ = torch.compiler.save_cache_artifacts()
        torch._dynamo.reset()
        torch.compiler.load_cache_artifacts(saved)
        print(torch.compile(scaled)(torch.ones(4, 3)).tolist())
""")

SAVED = textwrap.dedent("""
    import sys
    import torch

    def scaled(x):
        return (x * 2).sum(-1)

    torch.compile(scaled, fullgraph=True).aot_compile(((torch.ones(4, 3),), {})).save_compiled_function(sys.argv[1])
    with open(sys.argv[1], "rb") as file:
        print(torch.compiler.load_compiled_function(file)(torch.ones(4, 3)).tolist())
""")


def run(tmp_path, program):
    """Run a program with a cache of its own; return the records, the index and the summary."""
    (tmp_path / "program.py").write_text(program)
    dump = tmp_path / "dump"
    ended = subprocess.run([*torch_python(), "-m", "depyf", "run", "--page", "-o", str(dump), str(tmp_path / "program.py"),
                    str(tmp_path / "saved")], check=True, capture_output=True, text=True,
                   env={**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache")})
    return read(str(dump)), (dump / "index.md").read_text(), ended.stderr


def test_versions_of_a_package(tmp_path):
    capture, text, summary = run(tmp_path, PRECOMPILED)
    assert "2 loaded from a package" in summary
    assert [each.outcome for each in capture.compilations] == ["compiled", "compiled", "loaded", "loaded"]
    assert "Loaded from a package of versions that were compiled before: `scaled`, `scaled` from line 6 on." in text
    assert "Not compiled" not in text and "not finished" not in text
    shown = subprocess.run([*torch_python(), "-m", "depyf", "explain", "--json", str(tmp_path / "dump")], check=True,
                           capture_output=True, text=True).stdout
    assert json.loads(shown)["runs"][0]["not_compiled"] == []
    page, = unpacked((tmp_path / "dump" / "index.html").read_text())["runs"]
    assert {words for unit in page["units"] for _, words in unit["open"]} == {"loaded from a package"}


@pytest.mark.torch_since((2, 13), "torch has no `aot_compile`")
def test_a_saved_function(tmp_path):
    _, text, _ = run(tmp_path, SAVED)
    assert "Compiled by `aot_compile` at `program.py:8`" in text
    assert "Loaded by `load_compiled_function` at `program.py:10`" in text
    assert "does not read" not in text
