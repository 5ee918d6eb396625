"""What watching costs a fresh process, from the first call to the end of all writing (``make bench-cold``).

    python benchmarks/cold.py [--rounds 5] [--models bert ...] [--backend eager] [--caches off] [--write FILE]

Each run is a process of its own: plain, inside ``prepare_debug`` (once more with ``later=True``), with ``TORCH_TRACE``
and with ``TORCH_COMPILE_DEBUG``, in turns; the order is turned round each round.  "Seconds" are from before the first
call at two input lengths to the end of ``prepare_debug``; importing torch and transformers and making the model comes
before.  Ratios are medians of those within a round.  torch's compile caches are off, empty (a folder of its own for
each run) or full (of the same peer's first run, which is not counted).  "Entering and leaving" is ``prepare_debug``
round nothing, with torch imported and depyf not.  Modules are compiled to ``.pyc`` before, as an installer does.
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
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from importlib.metadata import version

from _shared import dated, table

SOURCE = pathlib.Path(__file__).resolve().parents[1] / "src"
MODELS = ("bert", "electra", "gpt2", "opt", "llama", "phi3", "mixtral", "t5", "deberta-v2", "resnet", "vit", "whisper")
PEERS = ("plain", "depyf", "depyf, later", "TORCH_TRACE", "TORCH_COMPILE_DEBUG")
LENGTHS = (8, 12)
HEAD = """# What watching costs a fresh process

From the first call to the end of all writing, each run in a process of its own. Ratios to the plain run, medians of the
rounds (`benchmarks/cold.py` says how). "depyf, later" writes records only (`prepare_debug(later=True)`).
"""


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
        begun = time.perf_counter()
        block: contextlib.AbstractContextManager[object] = contextlib.nullcontext()
        if peer.startswith("depyf"):
            import depyf

            block = depyf.prepare_debug("dump", later=peer == "depyf, later")
        with block:
            if model is not None:
                compiled = torch.compile(model, backend=backend)
                for one in inputs:
                    compiled(**one)
        print(json.dumps(time.perf_counter() - begun))


def seconds(name: str, backend: str, peer: str, caches: str | None = None) -> float:
    """Return what one process took.

    Args:
        name: of the model; empty: none.
        backend: of ``torch.compile``.
        peer: what watches.
        caches: folder of torch's compile caches; empty: one of its own; ``None``: caches are off.
    """
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "",
                   "PYTHONPATH": os.pathsep.join([str(SOURCE), os.environ.get("PYTHONPATH", "")])}
    with tempfile.TemporaryDirectory() as folder:
        if caches is None:
            environment["TORCHINDUCTOR_FORCE_DISABLE_CACHES"] = "1"
        else:
            environment.pop("TORCHINDUCTOR_FORCE_DISABLE_CACHES", None)
            environment["TORCHINDUCTOR_CACHE_DIR"] = caches or os.path.join(folder, "caches")
        if peer == "TORCH_TRACE":
            environment["TORCH_TRACE"] = os.path.join(folder, "trace")
        elif peer == "TORCH_COMPILE_DEBUG":
            environment["TORCH_COMPILE_DEBUG"] = "1"
        command = [sys.executable, os.path.abspath(__file__), "--child", name, backend, peer]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=folder)
        if done.returncode:
            raise SystemExit(f"{name} {peer} failed:\n{done.stderr[-3000:]}")
        return float(json.loads(done.stdout.splitlines()[-1]))


def measure(name: str, backend: str, rounds: int, caches: str) -> tuple[float, dict[str, float]]:
    """Return the median seconds of plain runs, and the median ratio of each peer."""
    with tempfile.TemporaryDirectory() as folder:
        folders = {peer: None if caches == "off" else os.path.join(folder, str(number)) if caches == "full" else ""
                   for number, peer in enumerate(PEERS)}
        if caches == "full":
            for peer in PEERS:
                seconds(name, backend, peer, folders[peer])
        return _measured(name, backend, rounds, folders)


def _measured(
    name: str, backend: str, rounds: int, folders: dict[str, str | None],
) -> tuple[float, dict[str, float]]:
    ratios: dict[str, list[float]] = {peer: [] for peer in PEERS[1:]}
    plain = []
    for number in range(rounds):
        order = PEERS if number % 2 == 0 else PEERS[::-1]
        times = {peer: seconds(name, backend, peer, folders[peer]) for peer in order}
        plain.append(times["plain"])
        for peer in ratios:
            ratios[peer].append(times[peer] / times["plain"])
    return statistics.median(plain), {peer: statistics.median(values) for peer, values in ratios.items()}


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--models", nargs="+", default=list(MODELS))
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
    entering = statistics.median(seconds("", chosen.backend, "depyf") for _ in range(chosen.rounds))
    rows, all_ratios = [], []
    for name in chosen.models:
        plain, ratios = measure(name, chosen.backend, chosen.rounds, chosen.caches)
        all_ratios.append(ratios)
        rows.append((name, f"{plain:.2f} s", *(f"{ratios[peer]:.2f}" for peer in PEERS[1:])))
        print(*rows[-1], flush=True)
    medians = [statistics.median(each[peer] for each in all_ratios) for peer in PEERS[1:]]
    rows.append(("**median**", "", *(f"**{each:.2f}**" for each in medians)))
    words = [word for word in sys.argv[1:] if word not in ("--append", "--write", chosen.write)]
    caches = "" if chosen.caches == "off" else f", compile caches {chosen.caches}"
    part = (
        f"## {chosen.backend}{caches}\n\n{dated()}, Python {platform.python_version()}, torch {version('torch')}, "
        f"{os.cpu_count()} cores, {chosen.rounds} rounds. Command: "
        f"`{' '.join(['python benchmarks/cold.py', *words])}`.\n\n"
        + table(("model", "plain", *PEERS[1:]), rows)
        + f"\nEntering and leaving `prepare_debug` with nothing compiled: {1000 * entering:.0f} ms.\n")
    print(part)
    if chosen.write:
        file = pathlib.Path(chosen.write)
        before = file.read_text(encoding="utf-8").rstrip() + "\n" if chosen.append else HEAD
        file.write_text(f"{before}\n{part}", encoding="utf-8")


if __name__ == "__main__":
    main()
