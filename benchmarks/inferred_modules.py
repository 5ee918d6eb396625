"""Counts for how many operations of later stages the inferred module is the one that torch has (``make provenance``).

    python benchmarks/inferred_modules.py [--models bert ...] [--write docs/measured/inferred_modules.md]

Each model (tiny, of ``architectures.py``) makes one step, forward and backward, on ``aot_eager`` and on
``aot_eager_decomp_partition``, whose graphs have inductor's decompositions. Torch keeps the module of a node in
``node.meta`` while it compiles (``nn_module_stack``; of a gradient ``fwd_nn_module_stack``); its prints, from which
:mod:`depyf.provenance` infers it, do not have it. "one line": a ``Sequential`` of many kinds of modules;
"layers on one line": layers whose ``forward`` is one line; "units of a diffusion model": such with norms, convolutions
and an embedding that all of them take, called on one line one after another; "adapters side by side": low-rank
adapters of which none takes what another one gives, on lines that all of them pass.
"""

from __future__ import annotations

import argparse
import pathlib
import platform
import tempfile
from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
from _shared import dated, table
from torch import nn

import depyf
from depyf.capture.session import Session
from depyf.provenance.graph_provenance import Provenance
from depyf.records import store
from depyf.records.model import Capture
from depyf.torch_text.modules import module_path
from provenance import total

MODELS = ("bert", "gpt2", "llama", "phi3", "mixtral", "t5", "deberta-v2", "resnet", "vit", "whisper")
BACKENDS = ("aot_eager", "aot_eager_decomp_partition")
STAGES = ("Forward_graph", "Backward_graph")
ONE_LINE = "one line"
LAYERS = "layers on one line"
UNITS = "units of a diffusion model"
ADAPTERS = "adapters side by side"
#: ``{(compilation, stage): {node: path of its module}}``
Stacks = dict[tuple[object, str], dict[str, str]]


def on_one_line() -> nn.Module:
    """Make a model whose modules are all called on one line of torch's."""
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.GroupNorm(2, 8), nn.SiLU(), nn.Conv2d(8, 8, 3), nn.BatchNorm2d(8),
        nn.Hardswish(), nn.Conv2d(8, 8, 1), nn.Softplus(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 16),
        nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 16), nn.SiLU(), nn.RMSNorm(16), nn.Linear(16, 8), nn.Mish(),
        nn.LeakyReLU(), nn.Linear(8, 4), nn.LogSoftmax(-1))


class Layer(nn.Module):
    """A layer that is all on one line."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the layer's result."""
        result: torch.Tensor = x + self.mlp(self.norm(x))
        return result


class Unit(nn.Module):
    """A unit of a diffusion model that is all on one line."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(4, width)
        self.conv = nn.Conv2d(width, width, 3, padding=1)
        self.time = nn.Linear(32, width)

    def forward(self, x: torch.Tensor, emb: torch.Tensor) -> torch.Tensor:
        """Return the unit's result."""
        return x + self.conv(nn.functional.silu(self.norm(x)) + self.time(emb)[:, None, None])  # type: ignore[no-any-return]


class Units(nn.Module):
    """Such units, one after another."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, width, 3, padding=1)
        self.units = nn.ModuleList(Unit(width) for _ in range(4))

    def forward(self, x: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
        """Return the result of all of them."""
        frequencies = t * torch.exp(torch.arange(16) / 16)
        emb = torch.cat([frequencies.sin(), frequencies.cos()])
        x = self.first(x)
        for unit in self.units:
            x = unit(x, emb)
        return x


class Adapter(nn.Module):
    """A linear layer with a low-rank one beside it."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.base = nn.Linear(width, width, bias=False)
        self.down = nn.Parameter(torch.randn(4, width))
        self.up = nn.Parameter(torch.randn(width, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the sum of both."""
        result: torch.Tensor = self.base(x) + x @ self.down.t() @ self.up.t() * 2.0
        return result


class Adapters(nn.Module):
    """Attention of two adapters, both called on one line."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.q, self.v = Adapter(width), Adapter(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return scores."""
        q, v = (each(x) for each in (self.q, self.v))
        return (q.softmax(-1) @ v.transpose(-1, -2)).cos()


def step(name: str, backend: str) -> Callable[[], object]:
    """Return one step of a model."""
    torch.manual_seed(0)
    if name in (ONE_LINE, LAYERS):
        layers = on_one_line() if name == ONE_LINE else nn.Sequential(*(Layer(16) for _ in range(6)))
        run = torch.compile(lambda x: layers(x), backend=backend)
        return lambda: run(torch.randn(*((2, 3, 8, 8) if name == ONE_LINE else (4, 16)))).sum().backward()
    if name == UNITS:
        units = torch.compile(Units(), backend=backend)
        return lambda: units(torch.randn(2, 3, 8, 8), torch.tensor(3.0)).sum().backward()
    if name == ADAPTERS:
        adapters = torch.compile(Adapters(), backend=backend)
        return lambda: adapters(torch.randn(2, 8, 16, requires_grad=True)).sum().backward()
    from architectures import ARCHITECTURES  # (transformers)

    model, inputs = ARCHITECTURES[name].make().eval(), ARCHITECTURES[name].inputs(8)
    compiled = torch.compile(model, backend=backend)

    def once() -> None:
        loss = total(compiled(**inputs))
        assert isinstance(loss, torch.Tensor)
        loss.backward()

    return once


def recorded(once: Callable[[], object], folder: str) -> tuple[Capture, Stacks]:
    """Return the records of a step that is watched, and what torch has of its nodes."""
    stacks: Stacks = {}
    original = Session._on_aot_graph

    def noted(self: Session, stage: str, gm: Any, compiled: Any) -> Any:
        graph = self._graph()
        if graph is not None:
            known = stacks.setdefault((graph.ids.key, stage), {})
            for node in gm.graph.nodes:
                stack = node.meta.get("fwd_nn_module_stack") or node.meta.get("nn_module_stack")
                if stack:
                    known[node.name] = module_path(list(stack.values())[-1][0])
        return original(self, stage, gm, compiled)

    torch._dynamo.reset()
    Session._on_aot_graph = noted  # type: ignore[method-assign]
    try:
        with depyf.prepare_debug(folder, files="now"):
            once()
    finally:
        Session._on_aot_graph = original  # type: ignore[method-assign]
    return store.read(folder), stacks


def counted(capture: Capture, stacks: Stacks) -> Counter[tuple[str, bool]]:
    """Count nodes by their stage and by whether the inferred module is torch's."""
    counts: Counter[tuple[str, bool]] = Counter()
    for graph in capture.graphs:
        provenance = Provenance(graph)
        for stage in provenance.stages:
            known = stacks.get((graph.compile_id.key, stage.record.stage), {})
            for name, node in stage.nodes():
                if node.is_call and name in known:
                    index = stage.origins[name].module
                    path = provenance.modules[index].path if index >= 0 else None
                    counts[stage.record.stage, path == known[name]] += 1
    return counts


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=[*MODELS, ONE_LINE, LAYERS, UNITS, ADAPTERS])
    parser.add_argument("--write", metavar="FILE")
    chosen = parser.parse_args()
    rows = []
    for name in chosen.models:
        row = [name]
        for backend in BACKENDS:
            with tempfile.TemporaryDirectory() as folder:
                counts = counted(*recorded(step(name, backend), folder))
            for stage in STAGES:
                right, wrong = counts[stage, True], counts[stage, False]
                row.append(f"{right} of {right + wrong}, {100 * right / max(right + wrong, 1):.1f} %")
        rows.append(row)
        print(*row, sep="  ", flush=True)
    text = (f"{dated()}, Python {platform.python_version()}, torch {torch.__version__}. Command: "
            "`python benchmarks/inferred_modules.py`.\n\n" + table(
                ("model", "forward", "backward", "forward, decomposed", "backward, decomposed"), rows))
    print(text)
    if chosen.write:
        head = ("# Modules of operations, inferred\n\nOf the operations of forward and backward graphs of which torch "
                "has the module while it compiles, for how many the same is inferred from the print of the graph "
                "([provenance.md](../provenance.md)).\n\n")
        pathlib.Path(chosen.write).write_text(head + text)


if __name__ == "__main__":
    main()
