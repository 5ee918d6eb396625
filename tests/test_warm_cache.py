"""torch's caches hold what an earlier process compiled; the files must be the same all the same."""

import os
import re
import subprocess
import sys

import pytest

pytest.importorskip("torch")

from depyf.capture.torch_private import private_api
from torch_forks import torch_python

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
    subprocess.run([*torch_python(), str(script), str(target)], env=environment, check=True, timeout=300,
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


@pytest.fixture(scope="module")
def dumps(tmp_path_factory):
    """Two dumps of one program, from folders of its own; a program with the same graphs filled the cache before.

    That program ran without the tool. Each folder is another one, so that a line of an earlier program shows.
    """
    base = tmp_path_factory.mktemp("warm")
    for name in ("plain", "first", "again"):
        (base / name).mkdir()
        (base / name / "program.py").write_text("\n" * (name == "plain") + PROGRAM)
        run(base / name / "program.py", "plain" if name == "plain" else base / name / "dump", base / "cache")
    return base / "first" / "dump", base / "again" / "dump"


def test_a_second_process_writes_the_same_files(dumps):
    first, second = map(contents, dumps)
    assert set(first) == set(second)
    stages = {name.split(".")[1] for name in first if name.startswith("__compiled_fn_")}
    assert stages >= {"Captured_Graph", "Joint_graph", "Forward_graph", "Backward_graph", "AFTER_POST_GRAD", "kernel_0"}
    graphs = [name for name in first if "_graph" in name.lower()]
    assert [name for name in graphs if first[name] != second[name]] == []
    if not private_api.POST_GRAD_KEPT.as_expected():
        assert "were not used" in (dumps[1] / "notes.txt").read_text()


def test_a_program_with_the_same_graphs_names_its_own_lines(dumps):
    for dump in dumps:
        texts = {each.name: each.read_text() for each in dump.iterdir() if each.name.startswith("__compiled_fn")}
        folders = {name: set(re.findall(r"/(\w+)/program\.py", text)) for name, text in texts.items()}
        assert set().union(*folders.values()) == {dump.parent.name}, folders
