"""Peak memory of a chain of graph breaks, plain and linked: tensors of 10 MB, read off the process."""

import os
import re
import subprocess
import sys

import pytest

pytest.importorskip("torch")

PROGRAM = """
import contextlib, sys, tempfile
import torch
import depyf
from depyf.capture.torch_private import cache_entries

@torch._dynamo.disable
def look(value):
    return value.shape

def chain(x):
    used = x * 2; x = used + 1; look(used)
    used = x * 2; x = used + 1; look(used)
    used = x * 2; x = used + 1; look(used)
    used = x * 2; x = used + 1; look(used)
    used = x * 2; x = used + 1; look(used)
    used = x * 2; x = used + 1; look(used)
    used = x * 2; x = used + 1; look(used)
    used = x * 2; x = used + 1; look(used)
    used = x * 2; x = used + 1; look(used)
    used = x * 2; x = used + 1; look(used)
    return x

def peak():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM"))

compiled = torch.compile(chain, backend="eager")
cache_entries.can_replace = lambda: False  # linked code runs, as it does inside debug()
x = torch.ones(2_621_440)
on = depyf.prepare_debug(tempfile.mkdtemp()) if sys.argv[1:] else contextlib.nullcontext()
with torch.no_grad():
    with on:
        compiled(x)
        compiled(x)
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    before = peak()
    compiled(x)
    print("peak", peak() - before)
"""


def peak(*arguments):
    """KiB above the rest, for one call."""
    folder = os.path.dirname(os.path.abspath(__file__))
    # Tensors get pages of their own, which are given back at once.
    environment = dict(os.environ, PYTHONPATH=os.path.join(folder, "..", "..", "src"), OMP_NUM_THREADS="1",
                       MALLOC_MMAP_THRESHOLD_="1000000", MALLOC_TRIM_THRESHOLD_="100000")
    done = subprocess.run([sys.executable, "-c", PROGRAM, *arguments], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return int(re.search(r"peak (\d+)", done.stdout)[1])


@pytest.mark.skipif(not os.access("/proc/self/clear_refs", os.W_OK), reason="needs Linux")
def test_a_chain_of_ten_breaks_needs_no_more_memory():
    plain, linked = peak(), peak("linked")
    assert plain > 5 * 10_240, "the tensors are seen"
    assert linked <= plain * 1.01, f"{plain} KiB plain, {linked} KiB linked"
