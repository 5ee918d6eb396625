"""What watching costs: compile time, time per call and memory, with the tool and without (``make bench``).

    python benchmarks/overhead.py [--rounds 5] [--inductor-rounds 2] [--write docs/measured/overhead.md]

Plain and watched runs take turns in one process, so that both meet the same machine; each figure is the
median of the ratios of neighbours.  "Compile time" is wall time from the first call at two input lengths to
the end of ``prepare_debug``; the process beside the program that makes the files then is waited for.  Peak memory is
that of a process that
does one run.  No compile cache is used.
"""

from __future__ import annotations

import argparse
import dataclasses
import gc
import json
import logging
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import warnings

os.environ["TORCHINDUCTOR_FORCE_DISABLE_CACHES"] = "1"

import torch
import transformers
from _shared import dated, table
from architectures import ARCHITECTURES

import depyf

LENGTHS = (8, 12)
EAGER = ("bert", "gpt2", "llama", "mixtral", "t5", "mamba", "falcon", "deberta-v2", "resnet", "vit", "whisper", "clip")
INDUCTOR = ("bert", "gpt2", "resnet")
CALLS = 100


@dataclasses.dataclass
class Run:
    """One compilation. Times in seconds."""

    compiling: float
    call: float


def run(name: str, backend: str, watched: bool) -> Run:
    torch._dynamo.reset()
    gc.collect()
    torch.manual_seed(0)
    architecture = ARCHITECTURES[name]
    compiled = torch.compile(architecture.make().eval(), backend=backend)
    inputs = [architecture.inputs(length) for length in LENGTHS]
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        begun = time.perf_counter()
        if watched:
            with depyf.prepare_debug(os.path.join(folder, "dump"), files="now"):
                for one in inputs:
                    compiled(**one)
        else:
            for one in inputs:
                compiled(**one)
        compiling = time.perf_counter() - begun
        calls = []
        for _ in range(CALLS):
            begun = time.perf_counter()
            compiled(**inputs[-1])
            calls.append(time.perf_counter() - begun)
    return Run(compiling, statistics.median(calls))


def compare(name: str, backend: str, rounds: int) -> tuple[float, float, float]:
    """``(seconds to compile plain, ratio of compile times, ratio of times per call)``."""
    run(name, backend, False)
    if backend == "eager":
        run(name, backend, True)
    pairs = []
    for number in range(rounds):
        order = (False, True) if number % 2 == 0 else (True, False)
        times = {watched: run(name, backend, watched) for watched in order}
        pairs.append((times[False], times[True]))
    middle = statistics.median
    return (middle(p.compiling for p, _ in pairs), middle(w.compiling / p.compiling for p, w in pairs),
            middle(w.call / p.call for p, w in pairs))


def memory(name: str, backend: str, watched: bool) -> float:
    """Peak resident memory in MiB of a process of its own."""
    command = [sys.executable, __file__, "--one", name, backend, str(int(watched))]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(json.loads(done.stdout.splitlines()[-1]))


def one(name: str, backend: str, watched: str) -> None:
    run(name, backend, watched == "1")
    print(json.dumps(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024))


def measure(backend: str, names: tuple[str, ...], rounds: int) -> str:
    rows, compiling, calls, peaks = [], [], [], []
    for name in names:
        seconds, ratio, call = compare(name, backend, rounds)
        peak = memory(name, backend, True) / memory(name, backend, False)
        compiling.append(ratio)
        calls.append(call)
        peaks.append(peak)
        rows.append((name, f"{seconds:.2f} s", f"{ratio:.3f}", f"{call:.3f}", f"{peak:.3f}"))
        print(backend, *rows[-1], flush=True)
    rows.append(("**median**", "", *(f"**{statistics.median(v):.3f}**" for v in (compiling, calls, peaks))))
    print(backend, *rows[-1], flush=True)
    head = ("model", "compile time, plain", "ratio", "time per call, ratio", "peak memory, ratio")
    return f"## {backend}, {rounds} rounds\n\n" + table(head, rows)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--inductor-rounds", type=int, default=2)
    parser.add_argument("--backends", nargs="+", default=["eager", "inductor"])
    parser.add_argument("--write", metavar="FILE")
    parser.add_argument("--one", nargs=3, metavar=("NAME", "BACKEND", "WATCHED"), help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    logging.getLogger("torch").setLevel(logging.ERROR)
    warnings.simplefilter("ignore")
    transformers.logging.set_verbosity_error()
    torch.set_num_threads(1)
    if chosen.one:
        one(*chosen.one)
        return
    parts = [
        "# What watching costs\n\n"
        f"{dated()}, Python {platform.python_version()}, torch {torch.__version__}, transformers "
        f"{transformers.__version__}, {os.cpu_count()} cores. Command: `make bench`.\n\n"
        "Ratios are with the tool to without, medians of neighbouring runs (`benchmarks/overhead.py` says how). "
        "Compile time ends where the program goes on. No compile cache is used.\n"]
    if "eager" in chosen.backends:
        parts.append(measure("eager", EAGER, chosen.rounds))
    if "inductor" in chosen.backends:
        parts.append(measure("inductor", INDUCTOR, chosen.inductor_rounds))
    if chosen.write:
        with open(chosen.write, "w", encoding="utf-8") as file:
            file.write("\n".join(parts))


if __name__ == "__main__":
    main()
