"""Counts how much leads where: kernel calls to graph nodes, graph nodes to user lines.

    python benchmarks/provenance.py [model ...] [--write docs/measured/kernel_mapping.md]

Each model (tiny, of ``architectures.py``) is trained one step with inductor under ``prepare_debug``. What is inferred
is compared with what torch knows while it generates code (``set_kernel_post_grad_provenance_tracing`` in
torch/_inductor/debug.py, which is called for each kernel whether or not anybody asked for provenance; torch 2.9 and
later).
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from _shared import dated, table

import depyf
from depyf.provenance.graph_provenance import Provenance
from depyf.records import store
from depyf.records.model import Capture, Kernel

MODELS = ("bert", "gpt2", "llama", "mixtral", "t5", "mamba", "resnet", "vit", "swin", "whisper")
MARK = "<!-- measured -->"
#: For each module that torch generates: ``(name of a fused kernel, nodes that torch ascribes to it)``, call by call.
Said = list[list[tuple[str, set[str]]]]


@dataclass
class Shares:
    """Counts over a run. ``ours``, ``torchs`` and ``both``: operations ascribed to fused kernels, views left out."""

    nodes: int = 0
    nodes_with_line: int = 0
    calls: int = 0
    calls_with_nodes: int = 0
    calls_with_lines: int = 0
    ours: int = 0
    torchs: int = 0
    both: int = 0


def shares(capture: Capture, named: Said | None = None) -> Shares:
    """Counts over the graphs of a capture; with what torch said, how far both agree."""
    counts = Shares()
    left = list(named or ())
    for graph in capture.graphs:
        provenance = Provenance(graph)
        for stage in provenance.stages:
            for name, node in stage.nodes():
                if node.is_call:
                    counts.nodes += 1
                    counts.nodes_with_line += stage.origins[name].location is not None
        for kernel in provenance.kernels:
            for call in kernel.calls:
                counts.calls += 1
                origins = [stage.origins[name] for stage, name in provenance.nodes_of(kernel, call)]
                counts.calls_with_nodes += bool(origins)
                counts.calls_with_lines += any(origin.location is not None for origin in origins)
            _compare(counts, provenance, kernel, left)
    return counts


def _compare(counts: Shares, provenance: Provenance, kernel: Kernel, left: Said) -> None:
    stage = provenance.kernel_stage(kernel)
    fused = [call for call in kernel.calls if call.kind != "extern"]
    names = [call.name for call in fused]
    match = next((launch for launch in left if [name for name, _ in launch] == names), None)
    if match is None or stage is None:
        return
    left.remove(match)
    counted = {node.name for node in stage.graph.nodes if node.is_call and not node.is_view}
    for call, (_, nodes) in zip(fused, match):
        ours, torchs = counted & set(call.nodes), counted & nodes
        counts.ours += len(ours)
        counts.torchs += len(torchs)
        counts.both += len(ours & torchs)


@contextlib.contextmanager
def what_torch_says() -> Iterator[Said]:
    """Collects torch's own account of fused kernels; stays empty where torch has none (before 2.9)."""
    named: Said = []
    debug = importlib.import_module("torch._inductor.debug")
    original = getattr(debug, "set_kernel_post_grad_provenance_tracing", None)
    lowering = importlib.import_module("torch._inductor.graph").GraphLowering
    codegen = lowering.codegen
    if original is None:
        yield named
        return
    for backend in ("cpp", "triton"):
        importlib.import_module(f"torch._inductor.codegen.{backend}")

    def noted(node_schedule: object, kernel_name: str, is_extern: bool = False) -> object:
        if not is_extern and isinstance(node_schedule, (list, tuple)):
            origins = [origin.name for item in node_schedule if getattr(item, "node", None) is not None
                       for origin in item.node.origins]
            named[-1].append((kernel_name, set(origins)))
        return original(node_schedule, kernel_name, is_extern)

    def generate(self: object, *args: object, **kwargs: object) -> object:
        named.append([])
        return codegen(self, *args, **kwargs)

    holders = [module for name, module in list(sys.modules.items()) if name.startswith("torch._inductor")
               and getattr(module, "__dict__", {}).get(original.__name__) is original]
    for holder in holders:
        setattr(holder, original.__name__, noted)
    lowering.codegen = generate
    try:
        yield named
    finally:
        lowering.codegen = codegen
        for holder in holders:
            setattr(holder, original.__name__, original)


def total(value: object) -> torch.Tensor | float:
    """A number that depends on everything in a model's output."""
    if isinstance(value, torch.Tensor):
        return value.float().sin().sum() if value.is_floating_point() else 0.0
    if isinstance(value, dict):
        value = list(value.values())
    return sum((total(item) for item in value), 0.0) if isinstance(value, (list, tuple)) else 0.0


def watched(step: Callable[[], object], path: str) -> tuple[Capture, Said]:
    """Runs a step under ``prepare_debug``, with everything compiled anew."""
    torch._dynamo.reset()
    with what_torch_says() as named, depyf.prepare_debug(path, caches="bypass"):
        step()
    return store.read(path), named


def _row(name: str) -> list[str]:
    from architectures import ARCHITECTURES

    torch.manual_seed(0)
    model = ARCHITECTURES[name].make().train()
    inputs = ARCHITECTURES[name].inputs(8)
    compiled = torch.compile(model)

    def step() -> None:
        loss = total(compiled(**inputs))
        assert isinstance(loss, torch.Tensor)
        loss.backward()

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "dump")
        capture, named = watched(step, path)
        counts = shares(capture, named)
        begun = time.perf_counter()
        shares(capture)
        seconds = time.perf_counter() - begun
    return [name, str(counts.calls), _share(counts.calls_with_nodes, counts.calls),
            _share(counts.calls_with_lines, counts.calls), str(counts.nodes),
            _share(counts.nodes_with_line, counts.nodes), _share(counts.both, counts.ours),
            _share(counts.both, counts.torchs), f"{seconds:.1f} s"]


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "-"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=MODELS)
    parser.add_argument("--write", metavar="FILE", help=f"put the table behind {MARK} of this file")
    options = parser.parse_args(arguments)
    rows = []
    for name in options.models:
        rows.append(_row(name))
        print(*rows[-1], flush=True)
    text = table(("model", "kernel calls", "to graph nodes", "to user lines", "graph nodes", "to user lines",
                  "of depyf's torch names", "of torch's depyf names", "time"), rows)
    print(text)
    if options.write:
        with open(options.write, encoding="utf-8") as file:
            head = file.read().partition(MARK)[0]
        when = (f"{dated()}, torch {torch.__version__}, Python {platform.python_version()}. "
                "Command: `python benchmarks/provenance.py --write docs/measured/kernel_mapping.md`")
        with open(options.write, "w", encoding="utf-8") as file:
            file.write(f"{head}{MARK}\n\n{when}.\n\n{text}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
