"""torch's caches hold what an earlier process compiled; the files must be the same all the same."""

import os
import re
import subprocess
import sys

import pytest

pytest.importorskip("torch")

from depyf.capture.torch_private import private_api

PROGRAM = """\
import sys, torch, depyf

@torch.compile(backend="inductor")
def f(a, b):
    x = a / (torch.abs(a) + 1)
    if b.sum() < 0:
        b = b * -1
    return x * b

def run():
    for seed in range(4):
        torch.manual_seed(seed)
        a = torch.randn(10, requires_grad=True)
        f(a, torch.randn(10)).sum().backward()

if sys.argv[1] == "plain":
    run()
else:
    with depyf.prepare_debug(sys.argv[1]):
        run()
"""


def run(script, target, cache):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TORCHINDUCTOR_CACHE_DIR": str(cache)}
    environment.pop("TORCHINDUCTOR_FORCE_DISABLE_CACHES", None)
    subprocess.run([sys.executable, str(script), str(target)], env=environment, check=True, timeout=300,
                   capture_output=True)


def contents(directory):
    """``{name: text}`` without what differs from run to run: temporary paths, ids and hashes."""
    texts = {}
    for name in sorted(os.listdir(directory)):
        if name.endswith(".py"):
            with open(os.path.join(directory, name), encoding="utf-8") as file:
                text = file.read()
            texts[name] = re.sub(r"(/tmp/\S*|[0-9a-f]{8}_[0-9a-f_]{20,}|_\d{10,}_|c[a-z2-7]{40,})", "<id>", text)
    return texts


def test_a_second_process_writes_the_same_files(tmp_path):
    """The cache is filled by a run without the tool first, then by the tool itself."""
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    cache = tmp_path / "cache"
    run(script, "plain", cache)
    run(script, tmp_path / "first", cache)
    run(script, tmp_path / "second", cache)
    first, second = contents(tmp_path / "first"), contents(tmp_path / "second")
    assert set(first) == set(second)
    stages = {name.split(".")[1] for name in first if name.startswith("__compiled_fn_")}
    assert stages >= {"Captured_Graph", "Joint_graph", "Forward_graph", "Backward_graph", "AFTER_POST_GRAD", "kernel_0"}
    graphs = [name for name in first if "_graph" in name.lower()]
    assert [name for name in graphs if first[name] != second[name]] == []
    if not private_api.POST_GRAD_KEPT.as_expected():
        with open(tmp_path / "second" / "notes.txt") as notes:
            assert "were not used" in notes.read()


def test_a_program_with_the_same_graphs_names_its_own_lines(tmp_path):
    """Two programs share a cache directory, and their graphs do the same."""
    cache = tmp_path / "cache"
    for name in ("one", "other"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / f"{name}_program.py").write_text("\n" * len(name) + PROGRAM)
        run(folder / f"{name}_program.py", folder / "dump", cache)
    dump = tmp_path / "other" / "dump"
    texts = {each.name: each.read_text() for each in dump.iterdir() if each.name.startswith("__compiled_fn")}
    assert any("other_program.py" in text for text in texts.values())
    assert [name for name, text in texts.items() if "one_program.py" in text] == []
