"""What watching costs on a deep model: a llama of 48 layers, forward and backward (``make large``).

    python benchmarks/large_model.py [--layers 48] [--backend aot_eager] [--rounds 3] [--together]
        [--write FILE]

Plain and watched runs take turns, each in a process of its own without compile caches. "Compile time" is wall time
from the first call to the end of its backward; "all" is to the end of ``prepare_debug``, where all files exist. Memory
is the peak of the program's process. The outline is that of the captured graph. Ratios are medians of those within a
round; below the table is their geometric mean with its standard error, as single ones scatter.

Processes of their own differ by a fifth on a busy machine. ``--together``: plain and watched runs take turns in one
process instead, each with a model of its own, so that neighbours meet the same machine; the ratio is that of medians.
"""

from __future__ import annotations

import argparse
import dataclasses
import gc
import json
import os
import pathlib
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

from _shared import dated, geometric_mean, table


@dataclasses.dataclass
class Run:
    """One process. Times in seconds, memory in MiB, lines of the outline and bytes of the dump of a watched run."""

    compiling: float
    leaving: float
    memory: float
    outline: int = 0
    size: int = 0
    nodes: int = 0


def compiled_model(layers: int, backend: str | Callable[..., object]) -> Callable[[], None]:
    """Return what calls a fresh compiled model for the first time, forward and backward."""
    import torch
    import transformers

    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        hidden_size=32, num_hidden_layers=layers, num_attention_heads=4, num_key_value_heads=2, intermediate_size=64,
        vocab_size=100, max_position_embeddings=64, use_cache=False)
    compiled = torch.compile(transformers.LlamaForCausalLM(config), backend=backend)
    words = torch.randint(3, 100, (2, 16))
    return lambda: compiled(input_ids=words, labels=words).loss.backward()


def measured(step: Callable[[], None], folder: str) -> Run:
    """Return what a first call takes, watched where there is a folder."""
    import depyf

    watching = depyf.prepare_debug(folder, files="now") if folder else None
    if watching is not None:
        watching.__enter__()
    begun = time.perf_counter()
    step()
    compiling = time.perf_counter() - begun
    begun = time.perf_counter()
    if watching is not None:
        watching.__exit__(None, None, None)
    leaving = time.perf_counter() - begun
    return Run(compiling, leaving, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def warmed_up(backend: str) -> None:
    """Have torch import and set up what it needs at its first compilation, which is no part of the model's."""
    import torch

    torch.set_num_threads(1)
    torch.compile(lambda x: x.sin().sum(), backend=backend)(torch.ones(3, requires_grad=True)).backward()


def one(layers: int, backend: str, folder: str) -> Run:
    """Measure one run in this process; where the folder is ``-`` the model is made and not called."""
    warmed_up(backend)
    step = compiled_model(layers, backend)
    return measured((lambda: None) if folder == "-" else step, folder.strip("-"))


def together(layers: int, backend: str, rounds: int) -> str:
    """Measure runs that take turns in this process; return a line of text."""
    import torch

    os.environ.update({"TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1"})
    warmed_up(backend)
    times: dict[bool, list[float]] = {False: [], True: []}
    for number in range(rounds + 1):  # (the first round is not counted)
        for watched in (False, True) if number % 2 == 0 else (True, False):
            torch._dynamo.reset()
            gc.collect()
            with tempfile.TemporaryDirectory() as folder:
                run = measured(compiled_model(layers if number else 2, backend), folder if watched else "")
            if number:
                times[watched].append(run.compiling + run.leaving)
        if number:
            print(f"plain {times[False][-1]:.2f} s, watched {times[True][-1]:.2f} s", flush=True)
    plain, watched_ones = (statistics.median(times[watched]) for watched in (False, True))
    spread = (max(times[False]) - min(times[False])) / plain
    return (f"{layers} layers, {backend}, {rounds} rounds in one process: plain {plain:.2f} s (from the fastest to the "
            f"slowest {100 * spread:.0f} %), ratio of the medians {watched_ones / plain:.3f}, of the fastest "
            f"{min(times[True]) / min(times[False]):.3f}")


def apart(layers: int, backend: str, watched: bool) -> Run:
    environment = {**os.environ, "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1"}
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, "--layers", str(layers), "--backend", backend, "--one",
                   os.path.join(folder, "dump") if watched else ""]
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        if done.returncode:
            raise SystemExit(done.stderr[-3000:])
        result = Run(**json.loads(done.stdout.splitlines()[-1]))
        if watched:
            look_into(os.path.join(folder, "dump"), result)
    return result


def look_into(dump: str, run: Run) -> None:
    """Note what a run left in its dump."""
    from depyf.records import store

    files = [path for path in pathlib.Path(dump).iterdir() if path.is_file()]
    outlines = [path for path in files if path.name.endswith("Captured_Graph.0.outline.txt")]
    run.outline = sum(len(path.read_text().splitlines()) for path in outlines)
    run.size = sum(path.stat().st_size for path in files)
    run.nodes = sum(compilation.counts.get("operations", 0) for compilation in store.read(dump).compilations)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=48)
    parser.add_argument("--backend", default="aot_eager")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--together", action="store_true", help="in one process")
    parser.add_argument("--write", metavar="FILE")
    parser.add_argument("--one", metavar="FOLDER", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.one is not None:
        print(json.dumps(dataclasses.asdict(one(chosen.layers, chosen.backend, chosen.one))))
        return
    if chosen.together:
        print(f"{dated()}: {together(chosen.layers, chosen.backend, chosen.rounds)}")
        return
    pairs = []
    for number in range(chosen.rounds):
        order = (False, True) if number % 2 == 0 else (True, False)
        results = {watched: apart(chosen.layers, chosen.backend, watched) for watched in order}
        pairs.append((results[False], results[True]))
        print(*results.values(), sep="\n", flush=True)
    middle = statistics.median
    watched = pairs[0][1]
    rows = [(
        f"llama, {chosen.layers} layers, {watched.nodes} operations", chosen.backend,
        f"{middle(plain.compiling for plain, _ in pairs):.2f} s",
        f"{middle(seen.compiling / plain.compiling for plain, seen in pairs):.3f}",
        f"{middle((seen.compiling + seen.leaving) / plain.compiling for plain, seen in pairs):.3f}",
        f"{middle(seen.memory / plain.memory for plain, seen in pairs):.3f}",
        f"{watched.size / 1e6:.1f} MB", watched.outline)]
    import torch
    import transformers

    text = (f"{dated()}, Python {platform.python_version()}, torch {torch.__version__}, transformers "
            f"{transformers.__version__}, {os.cpu_count()} cores, medians of {chosen.rounds} rounds. Command: "
            "`make large`.\n\n" + table(
                ("model", "backend", "compile time, plain", "ratio while compiling", "ratio, all", "peak memory, ratio",
                 "dump", "lines of the outline"), rows)
            + "\nThe geometric mean of the ratios while compiling, with its standard error: "
            f"{geometric_mean([seen.compiling / plain.compiling for plain, seen in pairs])}; the ratio of the shortest "
            f"runs: {min(seen.compiling for _, seen in pairs) / min(plain.compiling for plain, _ in pairs):.3f}.\n")
    print(text)
    if chosen.write:
        pathlib.Path(chosen.write).write_text(f"# What watching costs on a deep model\n\n{text}")


if __name__ == "__main__":
    main()
