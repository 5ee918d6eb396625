"""Each compilation of the zoo and of models as a program that runs alone (``make repro``).

    python benchmarks/repro.py [--only NAME ...] [--every N] [--backends NAME ...] [--keep DIR]
                               [--write docs/measured/repro.md]

A process runs the programs of tests/zoo and ten models on ``eager``, a dump each. ``depyf repro`` then writes a program
for every graph, and each runs in a process of its own: a fork of a process that compiled one small function of its own
and ran nothing of depyf or of the program, and for every twentieth a new interpreter. It runs on ``eager`` and on
``aot_eager``, or on the backends that are given. Right means that it ends with "equal".
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import io
import logging
import os
import pathlib
import random
import runpy
import subprocess
import sys
import tempfile
import time
import warnings

from _shared import dated, table

ROOT = pathlib.Path(__file__).resolve().parent.parent
BACKENDS = ("eager", "aot_eager")
SECONDS = 120


def make_dumps(folder: pathlib.Path, only: list[str]) -> None:
    """Runs all programs, each with a dump in a folder of its name."""
    import numpy
    import torch
    from fits import MODELS
    from identical_runs import models

    import depyf

    sys.path[:0] = [str(ROOT / "tests" / "zoo")]
    from programs import PROGRAMS, Compiled

    warnings.simplefilter("ignore")
    logging.disable(logging.ERROR)
    programs = {f"zoo_{name}": lambda each=each: each(Compiled("eager")) for name, each in PROGRAMS.items()}
    programs |= {f"model_{name}": each for name, each in models().items() if name in MODELS}
    for name, program in programs.items():
        if only and name.partition("_")[2] not in only:
            continue
        torch._dynamo.reset()
        for seed in (torch.manual_seed, numpy.random.seed, random.seed):
            seed(0)
        with depyf.prepare_debug(str(folder / name), page=False), contextlib.redirect_stdout(io.StringIO()), \
                contextlib.suppress(Exception):
            program()


def write_programs(dumps: pathlib.Path, programs: pathlib.Path) -> list[str]:
    """Writes a program for each graph; returns those that could not be written, and why."""
    from depyf.finishing.frames import read_records
    from depyf.views.repro import NotReproducible, repro

    refused = []
    for dump in sorted(dumps.iterdir()):
        capture = read_records(str(dump))
        for graph in capture.graphs:
            try:
                text = repro(capture, graph.name)
            except NotReproducible as error:
                refused.append(f"{dump.name} {graph.name}: {error}")
                continue
            (programs / f"{dump.name}.{graph.name}.py").write_text(text, encoding="utf-8")
    return refused


def warm_up(backends: list[str]) -> None:
    """Imports what compiling needs, once for all forks."""
    import torch
    import torch._inductor.config

    torch.set_num_threads(1)  # (threads do not live on in a fork)
    torch._inductor.config.compile_threads = 1
    for backend in backends:
        torch.compile(lambda x: x + 1, backend=backend)(torch.ones(2, requires_grad=True)).sum()
    torch._dynamo.reset()


def forked(program: pathlib.Path, backend: str) -> tuple[int, str]:
    """Runs a program in a fork of this process; returns its exit status and its output."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        status = 3
        try:
            os.close(reading)
            os.dup2(writing, 1)
            os.dup2(writing, 2)
            sys.argv = [str(program), backend]
            import signal

            signal.alarm(SECONDS)
            runpy.run_path(str(program), run_name="__main__")
        except SystemExit as error:
            status = int(error.code or 0)
        except BaseException as error:
            print(f"{type(error).__name__}: {error}")
        finally:
            sys.stdout.flush()
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8", errors="replace") as stream:
        text = stream.read()
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), text.strip()


def started(program: pathlib.Path, backend: str) -> tuple[int, str]:
    """Runs a program in a new interpreter."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run([sys.executable, str(program), backend], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, env=environment, cwd=program.parent, timeout=SECONDS)
    return done.returncode, done.stdout.strip()


def outcome(status: int, text: str) -> str:
    last = text.splitlines()[-1] if text else ""
    if status == 2 and last.startswith("not judged: both raise"):
        return "both raise"
    if status == 0 and last.startswith("equal up to rounding"):
        return "up to rounding"
    if status == 1 and all("its numbers are equal" in line for line in text.splitlines() if " differ: " in line):
        return "strides only"
    return "equal" if status == 0 and last.startswith("equal") else "different" if status == 1 else "did not run"


def document(
    every: int, counts: dict[tuple[str, str, str], collections.Counter[str]], refused: list[str], seconds: float
) -> str:
    kinds = ("equal", "up to rounding", "both raise", "strides only", "different", "did not run")
    rows = [[group, how, backend, sum(counter.values()), *(counter[kind] for kind in kinds)]
            for (group, how, backend), counter in sorted(counts.items())]
    lines = "".join(f"* {each}\n" for each in refused) or "None.\n"
    given = " ".join(word for word in sys.argv[1:] if word != "--write" and not word.endswith(".md"))
    command = "make repro" + (f' REPRO="{given}"' if given else "")
    chosen = "Each graph" if every == 1 else f"One in {every} graphs"
    return f"""# Each compilation as a program that runs alone

`{command}` ({dated()}; recorded with the backend `eager`, two cores that others used, too; {seconds:.0f} s).
{chosen} of the programs is written by `depyf repro` as a program, which runs in a process of its own: a fork of one
that compiled one small function, every twentieth also in a new interpreter. "both raise": eager PyTorch raises an error
for the random inputs, and the backend the same one. "up to rounding": further apart than `torch.testing.assert_close`
allows, but by no more than ten times what eager PyTorch's own result moves if the inputs move in their last digit.
"strides only": the numbers are equal, a result lies otherwise in memory.

{table(["of", "in", "checked", "programs", *kinds], rows)}
## Could not be written

{lines}"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=[], metavar="NAME")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="every N-th graph only")
    parser.add_argument("--backends", nargs="*", default=list(BACKENDS), metavar="NAME")
    parser.add_argument("--keep", metavar="DIR", help="where dumps and programs are left")
    parser.add_argument("--write", metavar="FILE")
    parser.add_argument("--dump", metavar="DIR", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.dump:
        return make_dumps(pathlib.Path(chosen.dump), chosen.only)
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="depyf_repro_") as temporary:
        top = pathlib.Path(chosen.keep or temporary).resolve()
        dumps, programs = top / "dumps", top / "programs"
        dumps.mkdir(parents=True, exist_ok=True)
        programs.mkdir(exist_ok=True)
        if not any(dumps.iterdir()):
            only = ["--only", *chosen.only] if chosen.only else []
            subprocess.run([sys.executable, __file__, "--dump", str(dumps), *only], check=True,
                           stdout=subprocess.DEVNULL)
        refused = write_programs(dumps, programs)
        warm_up(chosen.backends)

        counts: dict[tuple[str, str, str], collections.Counter[str]] = {}
        bad = 0
        for number, program in enumerate(sorted(programs.iterdir())[::chosen.every]):
            group = "models" if program.name.startswith("model_") else "tests/zoo"
            ways = [("a fork", forked, backend) for backend in chosen.backends]
            if number % 20 == 0:
                ways.append(("a new interpreter", started, BACKENDS[0]))
            for how, run, backend in ways:
                status, text = run(program, backend)
                kind = outcome(status, text)
                counts.setdefault((group, how, backend), collections.Counter())[kind] += 1
                if kind not in ("equal", "up to rounding", "both raise"):
                    bad += 1
                if kind != "equal":
                    print(f"{kind} {program.name} {backend}: {text[-600:]}", flush=True)
    text = document(chosen.every, counts, refused, time.perf_counter() - begin)
    print(text)
    if chosen.write:
        pathlib.Path(chosen.write).write_text(text, encoding="utf-8")
    raise SystemExit(bool(bad or refused))


if __name__ == "__main__":
    main()
