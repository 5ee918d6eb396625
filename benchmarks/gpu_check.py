"""Does it work with Triton kernels? To be run on a machine with a GPU of NVIDIA's; needs torch and nothing else.

    PYTHONPATH=src python benchmarks/gpu_check.py [--device cuda]

Four models are trained two steps with inductor, first as they are, then under ``prepare_debug`` (with running code tied
to the files). Told for each: kernels found, shares that lead to graph nodes and to user lines, whether torch itself
named the nodes of the first calls of Triton kernels, whether values and gradients are the same bit for bit. Ends with
status 1 if a share is under 95 %, if values differ, if no kernel is found, or if the dump notes an error of ours.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Callable

import torch
from torch import nn

import depyf
from depyf.records import store
from provenance import Shares, shares

GOAL = 0.95


class Perceptron(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(64, 128)
        self.norm = nn.LayerNorm(128)
        self.second = nn.Linear(128, 32)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = nn.functional.gelu(self.norm(self.first(x)))
        return self.second(x).log_softmax(-1)


class Pictures(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 16, 3, padding=1)
        self.norm = nn.BatchNorm2d(16)
        self.second = nn.Conv2d(16, 16, 3, padding=1)
        self.head = nn.Linear(16, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.norm(self.first(x)))
        x = nn.functional.max_pool2d(torch.relu(x + self.second(x)), 2)
        return self.head(x.mean((2, 3)))


class Attention(nn.Module):
    """Causal attention written out, with a residual and two layers that share their kernels."""

    def __init__(self) -> None:
        super().__init__()
        self.projections = nn.ModuleList(nn.Linear(64, 192, bias=False) for _ in range(2))
        self.norms = nn.ModuleList(nn.LayerNorm(64) for _ in range(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        length = x.shape[1]
        future = torch.ones(length, length, dtype=torch.bool, device=x.device).triu(1)
        for projection, norm in zip(self.projections, self.norms):
            q, k, v = projection(norm(x)).chunk(3, dim=-1)
            scores = (q @ k.transpose(-1, -2)) * 0.125
            scores = scores.masked_fill(future, float("-inf")).softmax(-1)
            x = x + torch.tanh(scores @ v)
        return x


class Encoder(nn.Module):
    """A layer of torch's own, called from a line of ours. (Torch names no line within its own files.)"""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x)


MODELS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "perceptron": (Perceptron, (32, 64)), "encoder layer": (Encoder, (4, 24, 64)),
    "convolutions": (Pictures, (4, 3, 32, 32)), "attention": (Attention, (4, 24, 64))}


def trained(make: Callable[[], nn.Module], shape: tuple[int, ...], device: str, dump: str) -> list[torch.Tensor]:
    """Output, gradients and buffers after two steps; under ``prepare_debug`` where there is a dump."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    model = make().to(device).train()
    inputs = torch.randn(shape, device=device)
    compiled = torch.compile(model)

    def steps() -> list[torch.Tensor]:
        for _ in range(2):
            result = compiled(inputs)
            result.sin().sum().backward()
        given = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
        return [item.detach().cpu() for item in (result, *given, *model.buffers())]

    if not dump:
        return steps()
    with depyf.prepare_debug(dump, files="now"):
        return steps()


def checked(name: str, device: str) -> bool:
    make, shape = MODELS[name]
    plain = trained(make, shape, device, "")
    with tempfile.TemporaryDirectory() as folder:
        dump = os.path.join(folder, "dump")
        watched = trained(make, shape, device, dump)
        capture = store.read(dump)
        files = os.listdir(dump)
    counts: Shares = shares(capture)
    calls = [call for graph in capture.graphs for kernel in graph.kernels for call in kernel.calls]
    kinds = Counter(call.kind for call in calls)
    named = sum(not call.inferred for call in calls)
    same = len(plain) == len(watched) and all(map(torch.equal, plain, watched))
    errors = [note for note in capture.notes if note.startswith("internal error")]
    outlines = sum(".kernel_" in file and file.endswith(".outline.txt") for file in files)
    modules = sum(len(graph.kernels) for graph in capture.graphs)
    print(f"{name}: {modules} generated modules, {counts.calls} kernel calls "
          f"({', '.join(f'{count} {kind}' for kind, count in sorted(kinds.items()))}; "
          f"torch names the nodes of {named})")
    rates = {"kernel calls that lead to graph nodes": (counts.calls_with_nodes, counts.calls),
             "kernel calls that lead to user lines": (counts.calls_with_lines, counts.calls),
             "graph nodes that lead to a user line": (counts.nodes_with_line, counts.nodes)}
    for what, (part, whole) in rates.items():
        print(f"    {what}: {part} of {whole}, {100 * part / max(whole, 1):.1f} %")
    print(f"    values, gradients and buffers bit for bit the same: {'yes' if same else 'NO'}")
    for error in errors:
        print(f"    {error}")
    good = same and not errors and counts.calls > 0 and outlines == modules and all(
        part >= GOAL * whole for part, whole in rates.values())
    return good and (device == "cpu" or kinds["Triton"] > 0 and named > 0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    device = parser.parse_args().device
    gpu = torch.cuda.get_device_name() if device.startswith("cuda") else "no GPU"
    print(f"torch {torch.__version__}, Python {sys.version.split()[0]}, {gpu}")
    bad = [name for name in MODELS if not checked(name, device)]
    print(f"not as it should be: {', '.join(bad)}" if bad else "all as it should be")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
