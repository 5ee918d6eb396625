"""Four equal layers: a backend splits the graph after each, and compiles every piece by Inductor."""

import torch
from torch._inductor.compile_fx import compile_fx
from torch.fx.passes.split_module import split_module


def backend(gm, inputs):
    """Split after each relu and compile the pieces, as vLLM does."""
    count = 0

    def part(node):
        nonlocal count
        number = count
        count += "relu" in str(node.target)
        return number

    split = split_module(gm, None, part)
    compiled = {}

    class Pieces(torch.fx.Interpreter):
        def call_module(self, target, args, kwargs):
            result = super().call_module(target, args, kwargs)  # (the compiler changes the piece)
            compiled[target] = compile_fx(self.fetch_attr(target), list(args))
            return result

    Pieces(split).run(*inputs)
    for name, run in compiled.items():
        delattr(split, name)
        split.__dict__[name] = run
    return split


model = torch.nn.Sequential(*(torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU()) for _ in range(4)))


def layers(x):
    """Call the model."""
    return model(x)


torch.compile(layers, backend=backend)(torch.ones(2, 4, requires_grad=True)).sum().backward()
