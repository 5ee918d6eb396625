"""What watching costs a fresh process: processor time until all files are there (``make bench-cold``).

    python benchmarks/cold.py [--rounds 5] [--models bert ...] [--peers depyf "TORCH_TRACE, tlparse" ...]
        [--backend eager] [--caches off] [--write FILE]

Each run is a process of its own: plain, inside ``prepare_debug``, with ``TORCH_TRACE`` (and ``tlparse`` of its log
afterwards: only then is there something to read), with ``TORCH_COMPILE_DEBUG``. They take turns, in reversed order each
second round. Counted is the processor time of the whole process, its children and ``tlparse``: importing torch and
transformers, making the model, two calls of different lengths, all files. Ratios are medians of those within a round;
below the table are the geometric means of all of them with standard errors, and the same from before the first call on,
without ``tlparse``. torch's compile caches are off, empty (a folder for each run) or full (of the same peer's first
run, which is not counted). Modules are compiled to ``.pyc`` before, as an installer does.
"""

from __future__ import annotations

import argparse
import compileall
import contextlib
import json
import logging
import os
import pathlib
import platform
import resource
import shutil
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
TRACE = "TORCH_TRACE, tlparse"
PEERS = ("depyf", TRACE, "TORCH_COMPILE_DEBUG")
LENGTHS = (8, 12)
HEAD = """# What watching costs a fresh process

Processor time of a whole process until all files exist. Ratios to the plain run,
medians of the rounds (`benchmarks/cold.py` says how).
"""


class Seconds(NamedTuple):
    """Seconds of one run.

    Attributes:
        busy: processor time of the whole process, and of what makes the files.
        compiling: the process's from before the first call on.
        wall: the same on the clock.
    """

    busy: float
    compiling: float
    wall: float


def processor_time() -> float:
    """Return the seconds of processor time of this process and of its ended children."""
    return sum(usage.ru_utime + usage.ru_stime
               for usage in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))


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
    with torch.no_grad():
        begun, busy = time.perf_counter(), processor_time()
        block: Any = contextlib.nullcontext()
        if peer == "depyf":
            import depyf

            block = depyf.prepare_debug("dump", files="now")
        with block:
            if model is not None and peer != NOT_CALLED:
                compiled = torch.compile(model, backend=backend)
                for one in inputs:
                    compiled(**one)
        print(json.dumps([processor_time() - busy, time.perf_counter() - begun]))


def environment_of(peer: str, folder: str) -> dict[str, str]:
    """Return the environment of a process without compile caches that is watched by a peer.

    Args:
        peer: what watches.
        folder: of what it writes.
    """
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "", "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1",
                   "PYTHONPATH": os.pathsep.join([str(SOURCE), os.environ.get("PYTHONPATH", "")])}
    if peer in (TRACE, "TORCH_TRACE"):
        environment["TORCH_TRACE"] = os.path.join(folder, "trace")
    elif peer == "TORCH_COMPILE_DEBUG":
        environment["TORCH_COMPILE_DEBUG"] = "1"
    return environment


def run(name: str, backend: str, peer: str, caches: str | None = None) -> Seconds:
    """Return what one run took.

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
        before = processor_time()
        done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=folder)
        if done.returncode:
            raise SystemExit(f"{name} {peer} failed:\n{done.stderr[-3000:]}")
        if peer == TRACE:
            parse(folder)
        return Seconds(processor_time() - before, *json.loads(done.stdout.splitlines()[-1]))


def parse(folder: str) -> None:
    """Run ``tlparse`` on the log of a run."""
    tlparse = shutil.which("tlparse", path=os.path.dirname(sys.executable)) or shutil.which("tlparse")
    if tlparse is None:
        raise SystemExit("tlparse is not installed: pip install tlparse")
    logs = list(pathlib.Path(folder, "trace").glob("*.log"))
    subprocess.run([tlparse, str(logs[0]), "--no-browser", "-o", os.path.join(folder, "parsed")], check=True,
                   capture_output=True)
    assert os.path.exists(os.path.join(folder, "parsed", "index.html"))


def measure(name: str, backend: str, rounds: int, caches: str, peers: Sequence[str]) -> dict[str, list[Seconds]]:
    """Return the runs of a model, plain and of each peer, by round."""
    names = ("plain", *peers)
    with tempfile.TemporaryDirectory() as folder:
        folders = {peer: None if caches == "off" else os.path.join(folder, str(number)) if caches == "full" else ""
                   for number, peer in enumerate(names)}
        if caches == "full":
            for peer in names:
                run(name, backend, peer, folders[peer])
        result: dict[str, list[Seconds]] = {peer: [] for peer in names}
        for number in range(rounds):
            for peer in names if number % 2 == 0 else names[::-1]:
                result[peer].append(run(name, backend, peer, folders[peer]))
    return result


def ratios(runs: dict[str, list[Seconds]], peer: str, field: str = "busy", to: str = "plain") -> list[float]:
    """Return the ratios of a peer to another one within the rounds."""
    return [getattr(one, field) / getattr(other, field) for one, other in zip(runs[peer], runs[to])]


def means(models: Sequence[dict[str, list[Seconds]]], peers: Sequence[str]) -> str:
    """Return what the runs of all models say together."""
    lines = []
    for what, field in (("Processor time of the whole process", "busy"),
                        ("From before the first call on", "compiling"), ("The same on the clock", "wall")):
        pairs = [(peer, "plain") for peer in peers]
        if field == "busy" and {"depyf", TRACE} <= set(peers):
            pairs.append(("depyf", TRACE))
        lines.append(f"{what}, geometric means of the ratios and standard errors: " + "; ".join(
            f"{peer}{'' if to == 'plain' else f' to {to}'} "
            f"{geometric_mean([ratio for runs in models for ratio in ratios(runs, peer, field, to)])}"
            for peer, to in pairs) + ".\n")
    return "\n".join(lines)


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
    run(chosen.models[0], chosen.backend, "plain")  # (torch's own modules are compiled by the first who comes)
    entering = statistics.median(run("", chosen.backend, "depyf").wall for _ in range(chosen.rounds))
    rows: list[tuple[str, ...]] = []
    measured = []
    for name in chosen.models:
        runs = measure(name, chosen.backend, chosen.rounds, chosen.caches, chosen.peers)
        measured.append(runs)
        rows.append((name, f"{statistics.median(each.busy for each in runs['plain']):.2f} s",
                     *(f"{statistics.median(ratios(runs, peer)):.3f}" for peer in chosen.peers)))
        print(*rows[-1], flush=True)
    rows.append(("**median**", "", *(
        f"**{statistics.median(statistics.median(ratios(runs, peer)) for runs in measured):.3f}**"
        for peer in chosen.peers)))
    words = [word for word in sys.argv[1:] if word not in ("--append", "--write", chosen.write)]
    caches = "" if chosen.caches == "off" else f", compile caches {chosen.caches}"
    part = (
        f"## {chosen.backend}{caches}\n\n{dated()}, Python {platform.python_version()}, torch {version('torch')}, "
        f"{os.cpu_count()} cores, {chosen.rounds} rounds. Command: "
        f"`{' '.join(['python benchmarks/cold.py', *words])}`.\n\n"
        + table(("model", "plain", *chosen.peers), rows) + f"\n{means(measured, chosen.peers)}"
        + f"\nEntering and leaving `prepare_debug` with nothing compiled: {1000 * entering:.0f} ms.\n")
    print(part)
    if chosen.write:
        file = pathlib.Path(chosen.write)
        before = file.read_text(encoding="utf-8").rstrip() + "\n" if chosen.append else HEAD
        file.write_text(f"{before}\n{part}", encoding="utf-8")


if __name__ == "__main__":
    main()
