"""What watching costs a fresh process, from the first call to the end of all writing (``make bench-cold``).

    python benchmarks/cold.py [--rounds 5] [--models bert ...] [--backend eager] [--write docs/measured/cold.md]

Each run is a process of its own: plain, inside ``prepare_debug`` (once more with ``later=True``), with ``TORCH_TRACE``
and with ``TORCH_COMPILE_DEBUG``, in turns; the order is turned round each round.  "Seconds" are from before the first
call at two input lengths to the end of ``prepare_debug``; importing torch and transformers and making the model comes
before.  Ratios are medians of those within a round.  No compile cache is used.  "Entering and leaving" is
``prepare_debug`` round nothing, with torch imported and depyf not.  Modules are compiled to ``.pyc``
before, as an installer does.
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


def seconds(name: str, backend: str, peer: str) -> float:
    """Return what one process took."""
    environment = {**os.environ, "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1", "PYTHONDONTWRITEBYTECODE": ""}
    with tempfile.TemporaryDirectory() as folder:
        if peer == "TORCH_TRACE":
            environment["TORCH_TRACE"] = os.path.join(folder, "trace")
        elif peer == "TORCH_COMPILE_DEBUG":
            environment["TORCH_COMPILE_DEBUG"] = "1"
        command = [sys.executable, os.path.abspath(__file__), "--child", name, backend, peer]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=folder)
        if done.returncode:
            raise SystemExit(f"{name} {peer} failed:\n{done.stderr[-3000:]}")
        return float(json.loads(done.stdout.splitlines()[-1]))


def measure(name: str, backend: str, rounds: int) -> tuple[float, dict[str, float]]:
    """Return the median seconds of plain runs, and the median ratio of each peer."""
    ratios: dict[str, list[float]] = {peer: [] for peer in PEERS[1:]}
    plain = []
    for number in range(rounds):
        order = PEERS if number % 2 == 0 else PEERS[::-1]
        times = {peer: seconds(name, backend, peer) for peer in order}
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
    parser.add_argument("--write", metavar="FILE")
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
        plain, ratios = measure(name, chosen.backend, chosen.rounds)
        all_ratios.append(ratios)
        rows.append((name, f"{plain:.2f} s", *(f"{ratios[peer]:.2f}" for peer in PEERS[1:])))
        print(*rows[-1], flush=True)
    medians = [statistics.median(each[peer] for each in all_ratios) for peer in PEERS[1:]]
    rows.append(("**median**", "", *(f"**{each:.2f}**" for each in medians)))
    words = " ".join(sys.argv[1:])
    text = (
        "# What watching costs a fresh process\n\n"
        f"{dated()}, Python {platform.python_version()}, torch {version('torch')}, {os.cpu_count()} cores. Command: "
        f"`python benchmarks/cold.py{' ' + words if words else ''}`. Ratios to the plain run, each in a process of its "
        f"own, medians of {chosen.rounds} rounds (`benchmarks/cold.py` says how).\n\n"
        f"Entering and leaving `prepare_debug` with nothing compiled: {1000 * entering:.0f} ms.\n\n"
        f"## {chosen.backend}\n\n" + table(("model", "plain", *PEERS[1:]), rows))
    print(text)
    if chosen.write:
        pathlib.Path(chosen.write).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
