"""torch takes the stand-ins: closures, star arguments, methods under ``with``; values stay bit for bit.

The sources here are dispatch loops, the total fallback of the decompiler, which is right by construction
but not proven. They are passed off as proven, because the question is what torch and the interpreter make
of recompiled code, and these are the recompilations least like Dynamo's own.
"""

from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

from torch._dynamo.convert_frame import register_bytecode_hook

from depyf.capture.torch_private import resume_code
from depyf.decompiler import decompile_code
from depyf.link.linker import Linker


def branching(a, b):
    x = a / (torch.abs(a) + 1)
    if b.sum() < 0:
        b = b * -1
    return x * b


def make_closure():
    scale = [1.5]
    unused = 3

    def closure(a, *rest, s=2, **named):
        if len(rest) > 5:
            return unused
        y = a * scale[0] + s
        torch._dynamo.graph_break()
        return y + sum(rest) + len(named)

    return closure


class Module(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, x):
        with torch.no_grad():
            y = self.linear(x)
            torch._dynamo.graph_break()
            y = y + 1
        return y.relu()


CALLS = [
    (lambda: branching, lambda: ((torch.randn(10), torch.randn(10)), {})),
    (make_closure, lambda: ((torch.randn(3), 1, torch.ones(3)), {"s": 4, "z": 1})),
    (Module, lambda: ((torch.randn(2, 4),), {})),
]


def results(make, arguments):
    torch._dynamo.reset()
    compiled = torch.compile(make(), backend="eager")
    values = []
    for seed in range(5):
        torch.manual_seed(seed)
        args, named = arguments()
        values.append(compiled(*args, **named))
    torch._dynamo.reset()
    return values


@pytest.mark.parametrize("make, arguments", CALLS, ids=["branch", "closure", "module"])
def test_recompiled_code_runs_in_place_of_dynamos(make, arguments, tmp_path):
    linker = Linker()
    linked = []

    def hook(original, code):
        shown = decompile_code(code)
        path = str(tmp_path / f"{len(linked)}.py")
        source = SimpleNamespace(
            text=shown.text, tree=shown.tree, line_map=shown.line_map, note="", fidelity="equivalent", runs=None
        )
        replaced = linker.link_transformed(original, code, source, (path, 2, "# header\n" + shown.text))
        linked.append((replaced, code))
        return replaced

    plain = results(make, arguments)
    failed = []
    undo = resume_code.install(failed.append) or (lambda: None)  # as prepare_debug does
    handle = register_bytecode_hook(hook)
    try:
        tied = results(make, arguments)
    finally:
        handle.remove()
        undo()
    assert failed == []
    assert all(map(torch.equal, plain, tied))
    assert len(linked) >= 2
    for replaced, code in linked:
        assert replaced is not None, linker.notes
        assert replaced.co_filename.startswith(str(tmp_path))
        assert replaced.co_name == code.co_name
        assert getattr(replaced, "co_qualname", "") == getattr(code, "co_qualname", "")
