"""What watching costs in instructions, a count that nothing else on the machine disturbs (``make instructions``).

    python benchmarks/instructions.py [--models electra ...] [--backend eager] [--layers 48]
        [--peers depyf TORCH_TRACE] [--write FILE]
    python benchmarks/instructions.py --growth 1000 [--write FILE]
    python benchmarks/instructions.py --trees CHECKOUT ... [--write FILE]

Seconds of two runs differ by several per cent on a machine that others use, too: more than what watching costs.  Here
valgrind counts the instructions of the program's process; from run to run, what is counted here differs by a few
tenths of a per cent (the order of sets, when the garbage collector runs).  Each run is a process of its own as in
``cold.py`` (two input lengths) and, with ``--layers``, as in ``large_model.py`` (``aot_eager``, forward and
backward).  What a run takes up to the first call (imports, making the model) is counted in one that stops there, and
taken off.  The process that makes the files beside the program is not counted.  Of ``inductor``, whose caches are off,
all of Python's work is: it compiles one kernel at a time here, in this process; the C++ compiler itself is left out.

``--growth``: how the instructions of a decompilation with proof grow with the size of a function instead, where
``decompile_speed.py`` shows seconds; and those of Python's own compiler, which a proof calls once.

``--trees``: the instructions of decompiling, with proof, 30 modules of the standard library, by each of some checkouts.

An instruction is not a second: a loop in C runs several in the time of one that waits for memory.  Valgrind shows the
program a processor without some instructions that the real one has (those for SHA-256 among them).
"""

from __future__ import annotations

import argparse
import compileall
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
from cold import NOT_CALLED, SOURCE, environment_of
from decompile_speed import BODIES, SMALL, repeated, size

HERE = pathlib.Path(__file__).resolve().parent
#: Decompiles the first modules of 31 with the code of a checkout; the last one of them always, so that all is imported.
DECOMPILE = """
import glob, os, random, sys
sys.path.insert(0, sys.argv[1] + "/src")
from depyf.bytecode.code import Code
from depyf.decompiler import decompile_code
files = sorted(glob.glob(os.path.dirname(os.__file__) + "/*.py"))
random.Random(1).shuffle(files)
codes = [Code.of(compile(open(file, "rb").read(), file, "exec", dont_inherit=True)) for file in files[:31]]
for code in [codes[-1], *codes[:int(sys.argv[2])]]:
    decompile_code(code)
"""


def without_avx512(folder: str) -> pathlib.Path:
    """Write a C++ compiler for ``inductor`` that leaves out what valgrind cannot run, and return its path."""
    compiler = pathlib.Path(folder, "c++")
    compiler.write_text(f'#!/bin/sh\nexec {shutil.which("g++")} "$@" -march=x86-64-v3\n', encoding="utf-8")
    compiler.chmod(0o755)
    return compiler


def counted(command: Sequence[str], peer: str = "plain") -> int:
    """Return the instructions of a process that runs a benchmark's script.

    Args:
        command: the script and its arguments.
        peer: what watches.
    """
    with tempfile.TemporaryDirectory() as folder:
        environment = {**environment_of(peer, folder), "PYTHONHASHSEED": "0", "DEPYF_BUDGET": "1000",
                       "TORCHINDUCTOR_COMPILE_THREADS": "1", "CXX": str(without_avx512(folder))}
        done = subprocess.run(
            ["valgrind", "--tool=cachegrind", "--cache-sim=no", f"--cachegrind-out-file={folder}/counts",
             sys.executable, *command], capture_output=True, text=True, env=environment, cwd=folder)
        total = re.search(r"I\s+refs:\s+([\d,]+)", done.stderr)
        if done.returncode or total is None:
            raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr[-3000:]}")
        return int(total[1].replace(",", ""))


def of_model(name: str, backend: str, peer: str) -> int:
    """Return the instructions of a cold run of a model."""
    return counted([str(HERE / "cold.py"), "--child", name, backend, peer], peer)


def of_layers(layers: int, peer: str) -> int:
    """Return the instructions of a run of the deep model."""
    where = {NOT_CALLED: "-", "depyf": "dump"}.get(peer, "")
    return counted([str(HERE / "large_model.py"), "--layers", str(layers), "--one", where], peer)


def watched(models: Sequence[str], backend: str, layers: int, peers: Sequence[str], pool: ThreadPoolExecutor) -> str:
    """Return the table of what watching costs, and the means.

    Args:
        models: cold runs of these.
        backend: of ``torch.compile`` in these.
        layers: of the deep model; 0: it is left out.
        peers: what watches.
        pool: runs the processes.
    """
    runs = (NOT_CALLED, "plain", *peers)
    rows: list[tuple[str, ...]] = []
    ratios: dict[str, list[float]] = {peer: [] for peer in peers}
    waiting = {(name, run): pool.submit(of_model, name, backend, run) for name in models for run in runs}
    names = [*models]
    if layers:
        names.append(f"{layers} layers")
        waiting.update(((names[-1], run), pool.submit(of_layers, layers, run)) for run in runs)
    for name in names:
        before, plain, *others = (waiting[name, run].result() for run in runs)
        plain -= before
        of = [(each - before) / plain for each in others]
        for peer, ratio in zip(peers, of):
            ratios[peer].append(ratio)
        rows.append((name, f"{plain / 1e9:.2f}", *(f"{ratio:.3f}" for ratio in of)))
        print(*rows[-1], flush=True)
    means = "; ".join(f"{peer} {geometric_mean(each).split()[0]}" for peer, each in ratios.items())
    return table(("model", "plain", *peers), rows) + f"\nGeometric means: {means}.\n"


def of_body(name: str, repeats: int, times: int, how: str) -> float:
    """Return the instructions a code unit of a decompilation ("proof") of a repeated body, or of a compilation."""
    command = [str(HERE / "decompile_speed.py"), "--often", name, str(repeats)]
    often, never = counted([*command, str(times), how]), counted([*command, "0", how])
    return (often - never) / times / size(repeated(name, repeats)[1])


def growth(bodies: Sequence[str], times_larger: int, pool: ThreadPoolExecutor) -> str:
    """Return the table of how instructions grow with size."""
    sizes = (SMALL, 100), (SMALL * times_larger, 1)  # (of the body, and how often it is done)
    waiting = {(name, how): [pool.submit(of_body, name, repeats, times, how) for repeats, times in sizes]
               for name in bodies for how in ("proof", "compile")}
    rows: list[tuple[str, ...]] = []
    for name in bodies:
        small, large = (each.result() for each in waiting[name, "proof"])
        small_alone, large_alone = (each.result() for each in waiting[name, "compile"])
        rows.append((name, f"{small:,.0f}", f"{large:,.0f}", f"{large / small:.2f}",
                     f"{large_alone / small_alone:.2f}",
                     f"{(large - large_alone) / (small - small_alone):.2f}"))
        print(*rows[-1], flush=True)
    return table(("body, repeated", "a unit", f"a unit at {times_larger:,} times", "ratio", "`compile()` alone, ratio",
                  "without one `compile()`, ratio"), rows)


def of_trees(trees: Sequence[str], pool: ThreadPoolExecutor) -> str:
    """Return the table of what decompiling takes in each checkout, and the ratios to the first."""
    for tree in trees:  # (else the first run of a checkout compiles it)
        compileall.compile_dir(os.path.join(tree, "src"), quiet=2)
    waiting = [[pool.submit(counted, ["-c", DECOMPILE, os.path.abspath(tree), str(number)]) for number in (0, 30)]
               for tree in trees]
    counts = [often.result() - never.result() for never, often in waiting]
    return table(("checkout", "billions of instructions", "ratio"), [
        (os.path.basename(os.path.abspath(tree)), f"{each / 1e9:.2f}", f"{each / counts[0]:.2f}")
        for tree, each in zip(trees, counts)])


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="*", default=["electra", "llama", "t5", "resnet"])
    parser.add_argument("--backend", default="eager", help="of the models; the deep one has aot_eager")
    parser.add_argument("--layers", type=int, default=0, help="of the deep model; 0: it is left out")
    parser.add_argument("--growth", type=int, default=0, metavar="TIMES", help="measure the decompiler instead, on "
                        "functions so many times larger")
    parser.add_argument("--trees", nargs="+", metavar="CHECKOUT", help="measure the decompilers of these instead")
    parser.add_argument("--bodies", nargs="+", default=list(BODIES), choices=BODIES, help="of these functions")
    parser.add_argument("--peers", nargs="+", default=["depyf", "TORCH_TRACE"], choices=["depyf", "TORCH_TRACE"])
    parser.add_argument("--together", type=int, default=os.cpu_count() or 1, help="processes at once")
    parser.add_argument("--write", metavar="FILE", help="write the table below what the file holds")
    chosen = parser.parse_args()
    if shutil.which("valgrind") is None:
        raise SystemExit("valgrind is not installed: apt-get install valgrind")
    compileall.compile_dir(SOURCE, quiet=2)
    words = [word for word in sys.argv[1:] if word not in ("--write", chosen.write)]
    command = f"{dated()}, Python {platform.python_version()}, torch {version('torch')}. Command: " \
        f"`{' '.join(['python benchmarks/instructions.py', *words])}`."
    with ThreadPoolExecutor(chosen.together) as pool:
        part = f"## Instructions\n\n{command} "
        if chosen.growth:
            part += "Instructions a code unit, with proof.\n\n" + growth(chosen.bodies, chosen.growth, pool)
        elif chosen.trees:
            part += "Decompiling 30 modules, with proof.\n\n" + of_trees(chosen.trees, pool)
        else:
            part += ("Billions of instructions of the plain run from the first call on, and the ratios to it.\n\n"
                     + watched(chosen.models, chosen.backend, chosen.layers, chosen.peers, pool))
    print(part)
    if chosen.write:
        file = pathlib.Path(chosen.write)
        file.write_text(f"{file.read_text(encoding='utf-8').rstrip()}\n\n{part}", encoding="utf-8")


if __name__ == "__main__":
    main()
