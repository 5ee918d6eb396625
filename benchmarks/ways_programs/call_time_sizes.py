"""Pieces with an open size, compiled again for each size of a list when they are first called with it, as vLLM does."""

import copy

import torch
from torch._inductor.compile_fx import compile_fx
from torch.fx.passes.split_module import split_module

SIZES = (4, 8)


@torch.library.custom_op("ways::attention", mutates_args=())
def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Attend; the backend splits the graph here."""
    return torch.softmax(q @ k.T, -1) @ v


@attention.register_fake
def _(q, k, v):
    return torch.empty_like(q)


class Layer(torch.nn.Module):
    """A layer with attention."""

    def __init__(self, width=16):
        super().__init__()
        self.qkv = torch.nn.Linear(width, 3 * width)
        self.out = torch.nn.Linear(width, width)
        self.norm = torch.nn.LayerNorm(width)

    def forward(self, x):
        q, k, v = self.qkv(self.norm(x)).chunk(3, -1)
        return x + self.out(attention(q, k, v))


class Piece:
    """A piece for any size, and for each of the list."""

    def __init__(self, graph, inputs):
        self.graph = graph
        self.number = next((at for at, each in enumerate(inputs) if isinstance(each, torch.SymInt)), None)
        self.general = compile_fx(copy.deepcopy(graph), list(inputs))
        self.of_size = {}

    def __call__(self, *args):
        size = args[self.number]
        if size not in SIZES:
            return self.general(*args)
        if size not in self.of_size:
            self.of_size[size] = compile_fx(copy.deepcopy(self.graph), list(args))
        return self.of_size[size](*args)


class Pieces(torch.fx.Interpreter):
    """Compiles the pieces while the split graph runs with fake tensors."""

    def call_module(self, target, args, kwargs):
        result = super().call_module(target, args, kwargs)
        piece = self.fetch_attr(target)
        if not any(node.op == "call_function" and "attention" in str(node.target) for node in piece.graph.nodes):
            self.module.__dict__[target] = Piece(piece, args)
        return result


def backend(gm, inputs):
    """Split at attention and compile what is between."""
    parts, number = {}, 0
    for node in gm.graph.nodes:
        splits = "attention" in str(node.target)
        number += splits
        parts[node] = number
        number += splits
    split = split_module(gm, None, parts.__getitem__, keep_original_order=True)
    mode = torch._guards.detect_fake_mode(inputs)
    with mode:
        Pieces(split).run(*(mode.from_tensor(each) if type(each) in (torch.Tensor, torch.nn.Parameter) else each
                            for each in inputs))
    return split


model = torch.nn.Sequential(Layer(), Layer())
with torch.no_grad():
    step = torch.compile(model, backend=backend, fullgraph=True)
    for size in (6, 4, 8, 10, 4):
        x = torch.randn(size, 16)
        torch._dynamo.mark_dynamic(x, 0)
        torch.testing.assert_close(step(x), model(x))
