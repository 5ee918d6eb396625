"""Hugging Face models from tiny configs, with and without the tool (``make models``).

    python benchmarks/models.py [name ...] [--backends eager aot_eager inductor] [--write docs/measured/models.md]

On ``eager`` each model of ``architectures.py`` runs forward at two input lengths; on the other backends those of
``TRAINED`` run forward and backward. Each does so twice, plain and inside ``prepare_debug``. Outputs and gradients
are compared bit for bit, the files that were written are compiled, their fidelities counted. A crash is a row; it
says whether torch crashed by itself or with the tool. The exit status is 1 if any row failed.
"""

from __future__ import annotations

import os

os.environ["TORCHINDUCTOR_FORCE_DISABLE_CACHES"] = "1"  # read when torch is imported

import argparse
import collections
import dataclasses
import gc
import logging
import platform
import re
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterator
from typing import Any

import torch
import transformers
from _shared import dated, table
from architectures import ARCHITECTURES, LENGTHS, TRAINED, Architecture

import depyf

BACKENDS = ("eager", "aot_eager", "inductor")
GOOD = {"exact", "equivalent"}
TITLES = {
    "eager": "forward in eval mode without gradients, at two input lengths",
    "aot_eager": "forward and backward, at two input lengths",
    "inductor": "forward and backward, at two input lengths",
}


@dataclasses.dataclass
class Results:
    """What a run computed, and how many graphs torch says that it made."""

    outputs: list[torch.Tensor]
    gradients: dict[str, torch.Tensor]
    graphs: int


@dataclasses.dataclass
class Dump:
    """What is in a directory that depyf wrote."""

    files: int
    graphs: int
    invalid: list[str]
    fidelities: collections.Counter[str]
    internal_errors: list[str]


@dataclasses.dataclass
class Row:
    name: str
    backend: str
    kind: str
    crash: str = ""
    plain: Results | None = None
    watched: Results | None = None
    dump: Dump | None = None
    unstable: bool = False  # two plain runs differ as well: the model says nothing about the tool

    def problems(self) -> list[str]:
        if self.crash:
            return [self.crash]
        problems = []
        if not same_results(self.plain, self.watched):
            problems.append("two plain runs differ too" if self.unstable else "results differ")
        problems += [f"invalid file: {name}" for name in self.dump.invalid]
        problems += [f"{count} {kind}" for kind, count in self.dump.fidelities.items() if kind not in GOOD]
        problems += self.dump.internal_errors
        if not self.dump.fidelities:
            problems.append("nothing was compiled")
        if self.dump.graphs != self.watched.graphs or self.plain.graphs != self.watched.graphs:
            problems.append(f"graphs: {self.plain.graphs} in the plain run, {self.watched.graphs} in the watched one, "
                            f"{self.dump.graphs} written")
        return problems

    def cells(self) -> list[str]:
        if self.crash:
            return [self.name, self.kind, self.crash, *[""] * (len(columns(self.backend)) - 3)]
        fidelities = ", ".join(f"{count} {kind}" for kind, count in sorted(self.dump.fidelities.items()))
        gradients = [] if self.backend == "eager" else [
            f"{'yes' if same_gradients(self.plain, self.watched) else 'NO'} ({len(self.plain.gradients)})"]
        return [
            self.name, self.kind, "yes" if same_outputs(self.plain, self.watched) else "NO", *gradients,
            str(len(self.dump.invalid)), fidelities, str(len(self.dump.internal_errors)), str(self.dump.graphs),
            str(self.dump.files)]


def columns(backend: str) -> list[str]:
    gradients = [] if backend == "eager" else ["gradients equal (tensors)"]
    return ["model", "kind", "outputs equal", *gradients, "invalid files", "transformed functions",
            "internal errors", "graphs", "files"]


def bits(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().contiguous().reshape(-1).view(torch.uint8)


def identical(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.dtype == other.dtype and one.shape == other.shape and torch.equal(bits(one), bits(other))


def same_outputs(one: Results, other: Results) -> bool:
    return len(one.outputs) == len(other.outputs) and all(map(identical, one.outputs, other.outputs))


def same_gradients(one: Results, other: Results) -> bool:
    return one.gradients.keys() == other.gradients.keys() and all(
        identical(gradient, other.gradients[name]) for name, gradient in one.gradients.items())


def same_results(one: Results, other: Results) -> bool:
    return same_outputs(one, other) and same_gradients(one, other)


def tensors(output: Any) -> Iterator[torch.Tensor]:
    """The tensors of a model's output, those in its caches included."""
    if isinstance(output, torch.Tensor):
        yield output
        return
    if isinstance(output, dict):
        output = list(output.values())
    elif type(output).__module__.startswith("transformers.") and hasattr(output, "__dict__"):
        output = list(vars(output).values())
    if isinstance(output, (list, tuple)):
        for value in output:
            yield from tensors(value)


def backward(outputs: list[torch.Tensor]) -> None:
    """Through the sine: the plain sum of what a layer norm returns is constant, its gradient mere noise."""
    differentiable = [t for t in outputs if t.requires_grad and t.is_floating_point()]
    sum(t.float().sin().sum() for t in differentiable).backward()


def run(architecture: Architecture, backend: str) -> Results:
    torch._dynamo.reset()
    gc.collect()
    torch._dynamo.utils.counters.clear()
    torch.manual_seed(0)
    model = architecture.make().eval()
    compiled = torch.compile(model, backend=backend)
    results = Results([], {}, 0)
    for length in LENGTHS:
        torch.manual_seed(length)
        inputs = architecture.inputs(length)
        model.zero_grad(set_to_none=True)
        with torch.set_grad_enabled(backend != "eager"):
            outputs = list(tensors(compiled(**inputs)))
        if backend != "eager":
            backward(outputs)
            results.gradients |= {
                f"{name} at {length}": parameter.grad.clone() for name, parameter in model.named_parameters()
                if parameter.grad is not None}
        results.outputs += [output.detach().clone() for output in outputs]
    results.graphs = torch._dynamo.utils.counters["stats"]["unique_graphs"]
    return results


def read(path: str) -> Dump:
    names = sorted(os.listdir(path))
    graphs = {match[0] for name in names if (match := re.match(r"__compiled_fn_\w+", name))}
    dump = Dump(len(names), len(graphs), [], collections.Counter(), [])
    for name in names:
        if not name.endswith((".py", ".txt")):
            continue
        with open(os.path.join(path, name), encoding="utf-8") as file:
            text = file.read()
        if name == "notes.txt":
            dump.internal_errors += [line for line in text.splitlines() if "internal error" in line]
        if name.endswith(".py"):
            try:
                compile(text, name, "exec")
            except SyntaxError:
                dump.invalid.append(name)
        if name.startswith("__transformed_code_"):
            match = re.search(r"^# fidelity: (\w+)", text, re.M)
            dump.fidelities[match[1] if match else "unstated"] += 1
    return dump


def crash(error: Exception, where: str) -> str:
    traceback.print_exception(error, file=sys.stderr)
    return one_line(f"crash {where}: {type(error).__name__}: {error}")[:200]


def one_line(text: str) -> str:
    return " ".join(text.split()).replace("|", "/")


def measure(name: str, backend: str, keep: str | None) -> Row:
    architecture = ARCHITECTURES[name]
    row = Row(name, backend, architecture.kind)
    try:
        row.plain = run(architecture, backend)
    except Exception as error:
        row.crash = crash(error, "without the tool")
        return row
    try:
        with tempfile.TemporaryDirectory() as folder:
            wanted = os.path.join(keep, f"{name}.{backend}") if keep else os.path.join(folder, "dump")
            with depyf.prepare_debug(wanted) as on:
                row.watched = run(architecture, backend)
            row.dump = read(on.path)
    except Exception as error:
        row.crash = crash(error, "with the tool")
        return row
    if not same_results(row.plain, row.watched):
        row.unstable = not same_results(row.plain, run(architecture, backend))
    return row


def summary(rows: list[Row]) -> str:
    lines = []
    for backend in BACKENDS:
        mine = [row for row in rows if row.backend == backend]
        if mine:
            fidelities = sum((row.dump.fidelities for row in mine if row.dump), collections.Counter())
            counts = ", ".join(f"{count} {kind}" for kind, count in sorted(fidelities.items()))
            lines.append([
                backend, str(len(mine)), str(sum(bool(row.problems()) for row in mine)),
                str(sum(row.dump.graphs for row in mine if row.dump)), counts])
    return table(["backend", "models", "failed", "graphs", "transformed functions"], lines)


def document(rows: list[Row], command: str) -> str:
    versions = (
        f"Python {platform.python_version()}, torch {torch.__version__}, transformers {transformers.__version__}")
    parts = [
        "# Models\n",
        f"{dated()}, {versions}, {os.cpu_count()} cores. Command: `{command}`.\n",
        "Tiny models, built from configs by `benchmarks/architectures.py`, run plain and inside `prepare_debug`. "
        "Outputs and gradients are compared bit for bit.\n",
        summary(rows)]
    for backend in BACKENDS:
        mine = [row for row in rows if row.backend == backend]
        if mine:
            parts += [f"## {backend}\n", f"{TITLES[backend][0].upper()}{TITLES[backend][1:]}.\n",
                      table(columns(backend), [row.cells() for row in mine])]
    failures = [f"* {row.name}, {row.backend}: {one_line('; '.join(row.problems()))}"
                for row in rows if row.problems()]
    if failures:
        parts += ["## Failures\n", "\n".join(failures) + "\n"]
    return "\n".join(parts)


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", metavar="name", help="models (all if none is named)")
    parser.add_argument("--backends", nargs="+", choices=BACKENDS, default=list(BACKENDS))
    parser.add_argument("--write", metavar="FILE", help="write the tables there")
    parser.add_argument("--keep", metavar="DIRECTORY", help="keep the dumps there")
    chosen = parser.parse_args()
    unknown = set(chosen.names) - set(ARCHITECTURES)
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}; known: {', '.join(ARCHITECTURES)}")
    return chosen


def quiet() -> None:
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    transformers.logging.disable_progress_bar()


def main() -> bool:
    chosen = options()
    quiet()
    torch.set_num_threads(1)  # threads add in any order, and then no two runs are equal bit for bit
    rows = []
    for backend in BACKENDS:
        if backend not in chosen.backends:
            continue
        begun = time.monotonic()
        for name in chosen.names or (ARCHITECTURES if backend == "eager" else TRAINED):
            rows.append(measure(name, backend, chosen.keep))
            print(f"{backend:9}", " | ".join(rows[-1].cells()), *[f"! {p}" for p in rows[-1].problems()], flush=True)
        print(f"{backend:9} took {time.monotonic() - begun:.0f} s", flush=True)
    if chosen.write:
        with open(chosen.write, "w", encoding="utf-8") as file:
            file.write(document(rows, " ".join(["python", *sys.argv])))
    return any(row.problems() for row in rows)


if __name__ == "__main__":
    sys.exit(main())
