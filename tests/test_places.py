"""What a program writes to standard error names the same lines of its own with depyf as without."""

import os
import re
import subprocess
import sys

import pytest

pytest.importorskip("torch")

from depyf.capture.torch_private import private_api
from torch_forks import torch_python

SOURCES = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "src")
PROGRAM = '''
import logging, sys, traceback, warnings
import torch
from torch import nn

def warn_behind_a_break(x):
    y = x * 2
    torch._dynamo.graph_break()
    warnings.warn("my own warning")
    return y + 1

@torch._dynamo.disable
def helper(x, fail):
    warnings.warn("of my caller", stacklevel=2)
    return int("no number") if fail else x

def call_a_helper(x, fail):
    y = x * 2
    z = helper(y, fail)
    return z + 1

def fail_behind_a_break(x):
    y = x * 2
    torch._dynamo.graph_break()
    return int("no number") + y

def fail_in_the_graph(x, index):
    y = x * 2
    return nn.functional.embedding(index, y)

def deprecated(x):
    return torch.range(0, 3) + x.sum()

def broken_in_a_loop(x):
    for i in range(3):
        x = x + 1
        torch._dynamo.graph_break()
    return x

def branch(x):
    if x.sum() > 0:
        return x + 1
    return x - 1

def log(x):
    y = x * 2
    logging.getLogger("mine").warning("behind a break", stack_info=True)
    return y

def caught_inside(x):
    try:
        y = x * 2
        torch._dynamo.graph_break()
        int("no number")
    except ValueError:
        traceback.print_exc()
    return y + 1

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        y = self.layer(x)
        print("in forward", tuple(y.shape), file=sys.stderr)
        warnings.warn("in forward")
        return y.relu()

class Bad(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        raise RuntimeError("bad backward")

def bad_backward(x):
    return Bad.apply(x).sum()

def mismatch(x):
    return x @ torch.ones(7, 2)

def backend(level):
    def compiler(gm, inputs):
        warnings.warn(f"backend, {level}", stacklevel=level)
        return gm.forward
    return compiler

def compiled(function, *arguments, **options):
    return torch.compile(function, **{"backend": "eager", **options})(*arguments)

def recompiled(x):
    function = torch.compile(branch, backend="eager", dynamic=False)
    for size in range(2, 12):
        function(torch.ones(size))

x = torch.ones(3)
cases = {
    "warning": lambda: [compiled(warn_behind_a_break, x) for _ in range(2)],
    "warning of the caller": lambda: compiled(call_a_helper, x, False),
    "exception through compiled code": lambda: compiled(call_a_helper, x, True),
    "exception behind a break": lambda: compiled(fail_behind_a_break, x),
    "exception in the graph": lambda: compiled(fail_in_the_graph, torch.ones(3, 3), torch.tensor([7])),
    "warning of torch": lambda: compiled(deprecated, x, backend="aot_eager"),
    "loop": lambda: compiled(broken_in_a_loop, x),
    "branch": lambda: compiled(branch, x),
    "log": lambda: compiled(log, x),
    "caught": lambda: compiled(caught_inside, x),
    "model": lambda: compiled(Model(), torch.ones(2, 4)),
    "backward": lambda: compiled(bad_backward, torch.ones(3, requires_grad=True)).backward(),
    "full graph": lambda: compiled(warn_behind_a_break, x, fullgraph=True),
    "mismatch": lambda: compiled(mismatch, torch.ones(3, 3)),
    "backend 1": lambda: compiled(branch, torch.ones(20), backend=backend(1)),
    "backend 2": lambda: compiled(branch, torch.ones(21), backend=backend(2)),
    "recompile limit": lambda: recompiled(x),
}
for name, case in cases.items():
    print("=====", name, file=sys.stderr)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        try:
            case()
        except Exception:
            traceback.print_exc()
print("===== uncaught", file=sys.stderr)
compiled(fail_behind_a_break, torch.ones(2))
'''


def output_of(tmp_path, *command, **environment):
    """What the program writes to standard error, without what differs from run to run."""
    (tmp_path / "program.py").write_text(PROGRAM)
    environment = dict(os.environ, PYTHONPATH=SOURCES, TORCH_LOGS="graph_breaks,recompiles", NO_COLOR="1", **environment)
    done = subprocess.run([*torch_python(), *command, "program.py"], cwd=tmp_path, env=environment, text=True,
                          capture_output=True, timeout=300)
    assert done.returncode == 1
    text = done.stderr
    text = re.sub(r"^([VIWE])\d{4} \d\d:\d\d:\d\d\.\d+ \d+ ", r"\1 ", text, flags=re.M)
    text = re.sub(r"\b0x[0-9a-f]+|_[0-9a-f]{8}(_[0-9a-f]{4}){3}_[0-9a-f]{12}|(?<=obj_id\().*?\d+(?=\))", "...", text)
    # The graph's own lines are nobody's: torch has no file for them.
    text = re.sub(r'^  File "(<eval_with_key>.*?|.*?\.Captured_Graph\.0\.py)", line .*\n(    .*\n)*', "  the graph\n", text,
                  flags=re.M)
    return re.sub(r"(?s)\ndepyf: .*", "\n", text)  # the summary of `depyf run`


def cases(text):
    parts = re.split(r"^===== (.*)\n", text, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2]))


@pytest.mark.skipif(not private_api.ADD_VERSION.present(), reason=f"missing: {private_api.ADD_VERSION.lost}")
def test_the_same_lines_with_and_without(tmp_path):
    plain = cases(output_of(tmp_path))
    inside = cases(output_of(tmp_path, "-m", "depyf", "run", "-o", "dump"))
    assert len(plain) == len(inside) == 18
    assert (tmp_path / "dump" / "records.jsonl").exists()
    different = {name: (plain[name], inside[name]) for name in plain if plain[name] != inside[name]}
    assert not different, "\n".join(f"=== {name}\n{a}\n--- inside\n{b}" for name, (a, b) in different.items())
    for name in ("warning", "caught", "model", "uncaught", "exception through compiled code"):
        assert re.search(r"program\.py(:|\", line )\d+", plain[name]), name


FAILING = """
import traceback
import torch
from torch._dynamo.backends.common import aot_autograd

def fails(graph, inputs):
    raise RuntimeError("no such target")

def f(x):
    return x.sin() + 1

for backend in (fails, aot_autograd(fw_compiler=fails),
                aot_autograd(fw_compiler=lambda graph, inputs: graph.forward, bw_compiler=fails)):
    torch._dynamo.reset()
    try:
        torch.compile(f, backend=backend)(torch.ones(3, requires_grad=True)).sum().backward()
    except Exception:
        traceback.print_exc()
"""


@pytest.mark.skipif(sys.version_info < (3, 11), reason="a raise adds its frame again")
@pytest.mark.parametrize("verbose", ["0", "1"])
def test_the_traceback_of_a_failing_backend_has_no_frame_of_ours(tmp_path, verbose):
    (tmp_path / "program.py").write_text(FAILING)
    environment = dict(os.environ, PYTHONPATH=SOURCES, TORCHDYNAMO_VERBOSE=verbose)
    done = subprocess.run([*torch_python(), "-m", "depyf", "run", "-o", "dump", "program.py"], cwd=tmp_path, text=True,
                          env=environment, capture_output=True, timeout=300)
    assert done.stderr.count("in fails\n") >= 3 and "Traceback" in done.stderr
    assert SOURCES not in done.stderr
