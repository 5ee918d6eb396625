"""What watching costs a fresh process, from the first call to the end of all writing (``make bench-cold``).

    python benchmarks/cold.py [--rounds 5] [--models bert ...] [--peers depyf TORCH_TRACE ...] [--backend eager]
        [--caches off] [--write FILE]

Each run is a process of its own: plain, inside ``prepare_debug`` (once more with ``files="now"``), with ``TORCH_TRACE``
and with ``TORCH_COMPILE_DEBUG``, in turns; the order is turned round each round.  "Seconds" are from before the first
call at two input lengths to the end of ``prepare_debug``, where the program goes on; importing torch and transformers
and making the model comes before.  "Files there" is the same until the process that makes the files is done, too (the
program waits for it here, so that a next run begins when nothing else runs).  Ratios are medians of those within a
round; below the table stand the geometric means of all of them, with standard errors, and of those of depyf to
``TORCH_TRACE`` within a round: single ratios scatter by more than what is to be told.  Then come those of the shortest
run of each model: what disturbs a run only makes it longer.  The next ones leave out the time of Python's garbage
collector: a collection of all objects takes 0.2 s, and a model has one more or one less of them inside of what is
measured by a few thousand objects.  The last ones are of processor time, of the program's own process alone: with
``inductor`` most of the seconds belong to the C++ compiler.  torch's compile caches are off,
empty (a folder of its own for each run) or full (of the same peer's first run, which is not counted).  "Entering and
leaving" is ``prepare_debug`` round nothing, with torch imported and depyf not.  Modules are compiled to ``.pyc``
before, as an installer does.  No texts of earlier runs are kept (``DEPYF_CACHE=off``).
"""

from __future__ import annotations

import argparse
import compileall
import contextlib
import gc
import json
import logging
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any, NamedTuple

from _shared import dated, geometric_mean, table

SOURCE = pathlib.Path(__file__).resolve().parents[1] / "src"
MODELS = ("bert", "electra", "gpt2", "opt", "llama", "phi3", "mixtral", "t5", "deberta-v2", "resnet", "vit", "whisper")
#: A run that makes the model and does not call it (``instructions.py``).
NOT_CALLED = "not called"
PEERS = ("depyf", "depyf, now", "TORCH_TRACE", "TORCH_COMPILE_DEBUG")
#: The second figure of runs with depyf.
THERE = "depyf, files there"
LENGTHS = (8, 12)
HEAD = """# What watching costs a fresh process

From the first call to where the program goes on, each run in a process of its own. Ratios to the plain run, medians of
the rounds (`benchmarks/cold.py` says how). "depyf": as it is by default, where a process beside the program makes the
files; "files there": until that one is done, too. "depyf, now": the program makes them (`prepare_debug(files="now")`).
"""


class Collecting:
    """Adds up the seconds that the garbage collector takes."""

    def __init__(self) -> None:
        self.seconds = self._begun = 0.0
        gc.callbacks.append(self._at)

    def _at(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            self._begun = time.perf_counter()
        else:
            self.seconds += time.perf_counter() - self._begun


def child(name: str, backend: str, peer: str) -> None:
    """Compile one model in this process and print the seconds."""
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    inputs, model = [], None
    if name:
        from architectures import ARCHITECTURES

        model = ARCHITECTURES[name].make().eval()
        inputs = [ARCHITECTURES[name].inputs(length) for length in LENGTHS]
    collecting = Collecting()
    with torch.no_grad():
        begun, busy = time.perf_counter(), time.process_time()
        block: Any = contextlib.nullcontext()
        if peer.startswith("depyf"):
            import depyf

            block = depyf.prepare_debug("dump", files="now" if peer == "depyf, now" else "background")
        with block:
            if model is not None and peer != NOT_CALLED:
                compiled = torch.compile(model, backend=backend)
                for one in inputs:
                    compiled(**one)
        left, busy = time.perf_counter() - begun, time.process_time() - busy
        collected = collecting.seconds
        if peer == "depyf":
            block.wait()
        print(json.dumps([left, time.perf_counter() - begun, left - collected, busy]))


class Seconds(NamedTuple):
    """What one process took.

    Attributes:
        left: until the program went on.
        there: until all files were there.
        uncollected: until the program went on, without the garbage collector.
        busy: processor time of the process until the program went on.
    """

    left: float
    there: float
    uncollected: float
    busy: float


def environment_of(peer: str, folder: str) -> dict[str, str]:
    """Return the environment of a process without compile caches that is watched so.

    Args:
        peer: what watches.
        folder: of what it writes.
    """
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "", "DEPYF_CACHE": "off",
                   "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1",
                   "PYTHONPATH": os.pathsep.join([str(SOURCE), os.environ.get("PYTHONPATH", "")])}
    if peer == "TORCH_TRACE":
        environment["TORCH_TRACE"] = os.path.join(folder, "trace")
    elif peer == "TORCH_COMPILE_DEBUG":
        environment["TORCH_COMPILE_DEBUG"] = "1"
    return environment


def seconds(name: str, backend: str, peer: str, caches: str | None = None) -> Seconds:
    """Return what one process took.

    Args:
        name: of the model; empty: none.
        backend: of ``torch.compile``.
        peer: what watches.
        caches: folder of torch's compile caches; empty: one of its own; ``None``: caches are off.
    """
    with tempfile.TemporaryDirectory() as folder:
        environment = environment_of(peer, folder)
        if caches is not None:
            del environment["TORCHINDUCTOR_FORCE_DISABLE_CACHES"]
            environment["TORCHINDUCTOR_CACHE_DIR"] = caches or os.path.join(folder, "caches")
        command = [sys.executable, os.path.abspath(__file__), "--child", name, backend, peer]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=folder)
        if done.returncode:
            raise SystemExit(f"{name} {peer} failed:\n{done.stderr[-3000:]}")
        return Seconds(*json.loads(done.stdout.splitlines()[-1]))


def measure(
    name: str, backend: str, rounds: int, caches: str, peers: Sequence[str],
) -> tuple[dict[str, list[float]], ...]:
    """Return the seconds of plain runs and of each column, by round; the same without the collector; processor time."""
    runs = ("plain", *peers)
    with tempfile.TemporaryDirectory() as folder:
        folders = {run: None if caches == "off" else os.path.join(folder, str(number)) if caches == "full" else ""
                   for number, run in enumerate(runs)}
        if caches == "full":
            for run in runs:
                seconds(name, backend, run, folders[run])
        taken: dict[str, list[float]] = {column: [] for column in ("plain", *columns(peers))}
        uncollected: dict[str, list[float]] = {run: [] for run in runs}
        busy: dict[str, list[float]] = {run: [] for run in runs}
        for number in range(rounds):
            order = runs if number % 2 == 0 else runs[::-1]
            times = {run: seconds(name, backend, run, folders[run]) for run in order}
            for column, each in taken.items():
                each.append(times["depyf"].there if column == THERE else times[column].left)
            for run in runs:
                uncollected[run].append(times[run].uncollected)
                busy[run].append(times[run].busy)
    return taken, uncollected, busy


def to_plain(taken: dict[str, list[float]], column: str) -> list[float]:
    """Return the ratios of a column to the plain run of the same round."""
    return [seconds / plain for seconds, plain in zip(taken[column], taken["plain"])]


def columns(peers: Sequence[str]) -> list[str]:
    """Return the columns of the table for some peers."""
    return [column for peer in peers for column in ([peer, THERE] if peer == "depyf" else [peer])]


def ratios_of_all(models: Sequence[dict[str, list[float]]], shown: Sequence[str]) -> dict[str, list[float]]:
    """Return the ratios within the rounds of all models, those of depyf to ``TORCH_TRACE`` among them."""
    ratios = {column: [ratio for taken in models for ratio in to_plain(taken, column)] for column in shown}
    if {"depyf", "TORCH_TRACE"} <= set(shown):
        ratios["depyf to TORCH_TRACE"] = [
            ours / trace for ours, trace in zip(ratios["depyf"], ratios["TORCH_TRACE"])]
    return ratios


def means(measured: Sequence[tuple[dict[str, list[float]], ...]], shown: Sequence[str]) -> str:
    """Return what the runs of all models say together, without the garbage collector, and in processor time."""
    both = {"depyf", "TORCH_TRACE"} <= set(shown)
    models, uncollected, busy = zip(*measured)
    runs = [column for column in shown if column != THERE]
    ratios = ratios_of_all(models, shown)
    shortest = {column: [min(taken[column]) / min(taken["plain"]) for taken in models] for column in shown}
    if both:
        shortest["depyf to TORCH_TRACE"] = [min(taken["depyf"]) / min(taken["TORCH_TRACE"]) for taken in models]
    return "".join(
        f"Geometric means of {what}, and their standard errors: "
        + "; ".join(f"{column} {geometric_mean(each)}" for column, each in of.items()) + ".\n"
        for what, of in ((f"all {len(ratios[shown[0]])} runs of each", ratios),
                         ("the ratios of the shortest run of each model", shortest),
                         ("all runs without the garbage collector", ratios_of_all(uncollected, runs)),
                         ("the processor time of all runs", ratios_of_all(busy, runs))))


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--models", nargs="+", default=list(MODELS))
    parser.add_argument("--peers", nargs="+", default=list(PEERS), choices=PEERS)
    parser.add_argument("--backend", default="eager")
    parser.add_argument("--caches", choices=("off", "empty", "full"), default="off", help="torch's compile caches")
    parser.add_argument("--write", metavar="FILE")
    parser.add_argument("--append", action="store_true", help="write below what the file holds")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.child:
        child(*chosen.child)
        return
    compileall.compile_dir(SOURCE, quiet=2)
    seconds(chosen.models[0], chosen.backend, "plain")  # (torch's own modules are compiled by the first who comes)
    entering = statistics.median(seconds("", chosen.backend, "depyf").left for _ in range(chosen.rounds))
    shown = columns(chosen.peers)
    rows: list[tuple[str, ...]] = []
    medians: dict[str, list[float]] = {column: [] for column in shown}
    measured = []
    for name in chosen.models:
        measured.append(measure(name, chosen.backend, chosen.rounds, chosen.caches, chosen.peers))
        taken = measured[-1][0]
        for column in shown:
            medians[column].append(statistics.median(to_plain(taken, column)))
        plain = statistics.median(taken["plain"])
        rows.append((name, f"{plain:.2f} s", *(f"{medians[column][-1]:.2f}" for column in shown)))
        print(*rows[-1], flush=True)
    rows.append(("**median**", "", *(f"**{statistics.median(medians[column]):.2f}**" for column in shown)))
    words = [word for word in sys.argv[1:] if word not in ("--append", "--write", chosen.write)]
    caches = "" if chosen.caches == "off" else f", compile caches {chosen.caches}"
    part = (
        f"## {chosen.backend}{caches}\n\n{dated()}, Python {platform.python_version()}, torch {version('torch')}, "
        f"{os.cpu_count()} cores, {chosen.rounds} rounds. Command: "
        f"`{' '.join(['python benchmarks/cold.py', *words])}`.\n\n"
        + table(("model", "plain", *shown), rows) + f"\n{means(measured, shown)}"
        + f"\nEntering and leaving `prepare_debug` with nothing compiled: {1000 * entering:.0f} ms.\n")
    print(part)
    if chosen.write:
        file = pathlib.Path(chosen.write)
        before = file.read_text(encoding="utf-8").rstrip() + "\n" if chosen.append else HEAD
        file.write_text(f"{before}\n{part}", encoding="utf-8")


if __name__ == "__main__":
    main()
