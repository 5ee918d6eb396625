"""What watching costs in instructions, a count that nothing else on the machine disturbs (``make instructions``).

    python benchmarks/instructions.py [--models electra ...] [--layers 48] [--peers depyf TORCH_TRACE] [--write FILE]

Seconds of two runs differ by several per cent on a machine that others use, too: more than what watching costs.  Here
valgrind counts the instructions of the program's process; from run to run, what is counted here differs by a few
tenths of a per cent (the order of sets, when the garbage collector runs).  Each run is a process of its own as in
``cold.py`` (``eager``, two input lengths) and, with ``--layers``, as in ``large_model.py`` (``aot_eager``, forward and
backward).  What a run takes up to the first call (imports, making the model) is counted in one that stops there, and
taken off.  The process that makes the files beside the program is not counted.

An instruction is not a second: a loop in C runs several in the time of one that waits for memory.  Valgrind shows the
program a processor without some instructions that the real one has (those for SHA-256 among them).
"""

from __future__ import annotations

import argparse
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version

from _shared import dated, geometric_mean, table
from cold import NOT_CALLED, environment_of

HERE = pathlib.Path(__file__).resolve().parent


def counted(command: Sequence[str], peer: str) -> int:
    """Return the instructions of a process that runs a benchmark's script.

    Args:
        command: the script and its arguments.
        peer: what watches.
    """
    with tempfile.TemporaryDirectory() as folder:
        environment = {**environment_of(peer, folder), "PYTHONHASHSEED": "0"}
        done = subprocess.run(
            ["valgrind", "--tool=cachegrind", "--cache-sim=no", f"--cachegrind-out-file={folder}/counts",
             sys.executable, *command], capture_output=True, text=True, env=environment, cwd=folder)
        total = re.search(r"I\s+refs:\s+([\d,]+)", done.stderr)
        if done.returncode or total is None:
            raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr[-3000:]}")
        return int(total[1].replace(",", ""))


def of_model(name: str, peer: str) -> int:
    """Return the instructions of a cold run of a model."""
    return counted([str(HERE / "cold.py"), "--child", name, "eager", peer], peer)


def of_layers(layers: int, peer: str) -> int:
    """Return the instructions of a run of the deep model."""
    where = {NOT_CALLED: "-", "depyf": "dump"}.get(peer, "")
    return counted([str(HERE / "large_model.py"), "--layers", str(layers), "--one", where], peer)


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="*", default=["electra", "llama", "t5", "resnet"])
    parser.add_argument("--layers", type=int, default=0, help="of the deep model; 0: it is left out")
    parser.add_argument("--peers", nargs="+", default=["depyf", "TORCH_TRACE"], choices=["depyf", "TORCH_TRACE"])
    parser.add_argument("--together", type=int, default=os.cpu_count() or 1, help="processes at once")
    parser.add_argument("--write", metavar="FILE", help="write the table below what the file holds")
    chosen = parser.parse_args()
    if shutil.which("valgrind") is None:
        raise SystemExit("valgrind is not installed: apt-get install valgrind")
    runs = (NOT_CALLED, "plain", *chosen.peers)
    rows: list[tuple[str, ...]] = []
    ratios: dict[str, list[float]] = {peer: [] for peer in chosen.peers}
    names = [*chosen.models, *([f"{chosen.layers} layers"] if chosen.layers else [])]
    with ThreadPoolExecutor(chosen.together) as pool:
        waiting = {(name, run): pool.submit(of_model, name, run) for name in chosen.models for run in runs}
        if chosen.layers:
            waiting.update(((names[-1], run), pool.submit(of_layers, chosen.layers, run)) for run in runs)
        for name in names:
            before, plain, *watched = (waiting[name, run].result() for run in runs)
            plain -= before
            of = [(each - before) / plain for each in watched]
            for peer, ratio in zip(chosen.peers, of):
                ratios[peer].append(ratio)
            rows.append((name, f"{plain / 1e9:.2f}", *(f"{ratio:.3f}" for ratio in of)))
            print(*rows[-1], flush=True)
    words = [word for word in sys.argv[1:] if word not in ("--write", chosen.write)]
    part = (
        f"## Instructions\n\n{dated()}, Python {platform.python_version()}, torch {version('torch')}. Command: "
        f"`{' '.join(['python benchmarks/instructions.py', *words])}`. Billions of instructions of the plain run from "
        "the first call on, and the ratios to it.\n\n" + table(("model", "plain", *chosen.peers), rows)
        + "\nGeometric means: " + "; ".join(
            f"{peer} {geometric_mean(each).split()[0]}" for peer, each in ratios.items()) + ".\n")
    print(part)
    if chosen.write:
        file = pathlib.Path(chosen.write)
        file.write_text(f"{file.read_text(encoding='utf-8').rstrip()}\n\n{part}", encoding="utf-8")


if __name__ == "__main__":
    main()
