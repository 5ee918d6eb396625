"""A training step, compiled and linked to files, with nothing but torch and ``depyf.link``.

Run as ``linked_program.py BACKEND DIRECTORY [source]``. Texts are made here in the plainest way (Dynamo's
code as its disassembly), so that linking is tested apart from capturing and decompiling; with ``source``,
transformed code is its decompiled source.
"""

import dis
import os
import sys
from types import SimpleNamespace

import torch
from torch._dynamo.convert_frame import register_bytecode_hook

from depyf.debugging import debug
from depyf.decompiler import decompile_code
from depyf.link.linker import Linker
from depyf.link.sessions import session_ended, session_started

HEADER = "# header\n# of the file\n"


def toy_example(a, b):
    x = a / (torch.abs(a) + 1)
    if b.sum() < 0:
        b = b * -1
    return x * b


class Linking:
    """Links all that is compiled while it is on; counts files by kind."""

    def __init__(self, directory):
        self.directory = directory
        self.linker = Linker(at_once=True)
        self.count = 0

    def write(self, kind, text):
        path = os.path.join(self.directory, f"{kind}_{self.count}.py")
        self.count += 1
        with open(path, "w") as file:
            file.write(text)
        return path

    def source(self, original, code):
        shown = decompile_code(code, simplify=True)
        path = self.write("transformed", HEADER + shown.text)
        return self.linker.link_transformed(original, code, shown, (path, 3, HEADER + shown.text))

    def transformed(self, original, code):
        """Every instruction has its line: those of the disassembly, from line 3 of the file on."""
        shown = [i for i in dis.get_instructions(code)]
        body = "".join(f"pass  # {i.opname} {i.argrepr}\n" for i in shown)
        path = self.write("transformed", HEADER + body)
        line_map = {i.offset: n for n, i in enumerate(shown, 1)}
        decompiled = SimpleNamespace(text=body, fidelity="fallback", note="", line_map=line_map, tree=None, runs=None)
        return self.linker.link_transformed(original, code, decompiled, (path, 3, HEADER + body))

    def graph(self, kind, graph_module):
        path = self.write(kind, HEADER + graph_module.code)
        self.linker.link_graph(kind, "graph", graph_module, path)
        assert path in self.linker.files, self.linker.notes

    def kernels(self):
        from torch._inductor.codecache import PyCodeCache

        for module in PyCodeCache.modules:
            with open(module.__file__) as file:
                text = HEADER + file.read()
            path = self.write("kernel", text)
            self.linker.link_graph("kernel", "kernel", module, path)
            assert path in self.linker.files
        assert not self.linker.notes[-1:] or "differ" not in self.linker.notes[-1], self.linker.notes


def backend_for(name, linking):
    from torch._dynamo.backends.common import aot_autograd
    from torch._functorch.aot_autograd import make_boxed_func

    def eager(gm, inputs):
        linking.graph("captured", gm)
        return gm.forward

    def forward(gm, inputs):
        linking.graph("forward", gm)
        return make_boxed_func(gm.forward)

    def backward(gm, inputs):
        linking.graph("backward", gm)
        return make_boxed_func(gm.forward)

    if name == "eager":
        return eager
    if name == "aot_eager":
        return aot_autograd(fw_compiler=forward, bw_compiler=backward)
    return name


def step(function, seed):
    torch.manual_seed(seed)
    a = torch.randn(10, requires_grad=True)
    b = torch.randn(10, requires_grad=True)
    out = function(a, b)
    out.sum().backward()
    return out.detach(), a.grad, b.grad


def prepare(backend, directory, source=False):
    linking = Linking(directory)
    compiled = torch.compile(toy_example, backend=backend_for(backend, linking))
    session = session_started(directory)
    handle = register_bytecode_hook(linking.source if source else linking.transformed)
    for seed in range(6):
        step(compiled, seed)
    handle.remove()
    if backend == "inductor":
        linking.kernels()
    session.linker = linking.linker
    session_ended(session)
    return compiled, linking


if __name__ == "__main__":
    os.makedirs(sys.argv[2], exist_ok=True)
    compiled, linking = prepare(sys.argv[1], sys.argv[2], "source" in sys.argv[3:])
    with debug():
        for seed in range(6):
            same = all(map(torch.equal, step(compiled, seed), step(toy_example, seed)))
            print("step", seed, "same" if same or sys.argv[1] == "inductor" else "DIFFERENT")
    print("done")
