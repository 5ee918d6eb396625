"""Does a long life under the tool leave anything behind? (``make long-run``)

    python benchmarks/long_run.py [--compiles 10000] [--cycles 1000] [--write docs/measured/unharmed.md]

Each part is a process of its own; a tiny function is compiled with the eager backend, and ``torch._dynamo.reset()``
follows each compilation.

* ``plain``: without the tool, as the measure for what torch itself leaves behind.
* ``watched``: inside one ``prepare_debug``, which reads all records back and writes the files when it ends.
* ``watched, later``: likewise, with records only.
* ``cycles``: ``prepare_debug`` is entered, compiles once, and is left, again and again.

At ten points of each: resident memory, time per compilation since the last one, open file handles. At the end: whether
torch's hooks, its loggers and the functions that the tool wraps are as before.
"""

from __future__ import annotations

import argparse
import gc
import json
import logging
import os
import pathlib
import platform
import resource
import subprocess
import sys
import tempfile
import time
from typing import Any

import psutil
import torch
from _shared import dated, table

import depyf
from depyf.capture.torch_private import private_api

BEGIN, END = "<!-- long run -->", "<!-- end of long run -->"
POINTS = 10
#: Parts inside one block, and when their files are made.
WATCHED = {"watched": "now", "watched, later": "later"}


def double(x: torch.Tensor) -> torch.Tensor:
    return x * 2


def compile_once() -> None:
    torch._dynamo.reset()
    torch.compile(double, backend="eager")(torch.ones(2))


def hooks_of_torch() -> list[Any]:
    """What a session changes: the functions it wraps, hooks, handlers and filters of torch's loggers."""
    hooks: list[Any] = []
    for api in private_api.TABLE:
        try:
            hooks.append(api.get())
        except private_api.MissingPrivateApi:
            hooks.append(None)
    for name in (private_api.TRACE_LOG.key, private_api.BYTECODE_LOG.key):
        logger = logging.getLogger(name)
        hooks += [list(logger.handlers), list(logger.filters), logger.level]
    hooks.append(list(torch._dynamo.convert_frame._bytecode_hooks.values()))
    return hooks


def measure(step: Any, count: int) -> list[tuple[int, float, float, int]]:
    """``(steps so far, MiB, ms per step since the last point, open handles)`` along a run of ``count`` steps."""
    process = psutil.Process()
    points = []
    done = 0
    for number in range(1, POINTS + 1):
        until = count * number // POINTS
        begun = time.process_time()
        for _ in range(done, until):
            step()
        spent = (time.process_time() - begun) * 1000 / max(until - done, 1)
        done = until
        gc.collect()
        points.append((done, process.memory_info().rss / 2**20, spent, process.num_fds()))
    return points


def part(name: str, count: int, folder: str) -> dict[str, Any]:
    """Runs one part in this process."""
    process = psutil.Process()
    compile_once()  # what torch makes once
    if name != "plain":
        with depyf.prepare_debug(os.path.join(folder, "first"), files=WATCHED.get(name, "now")):
            compile_once()
    gc.collect()
    hooks, handles = hooks_of_torch(), process.num_fds()
    result: dict[str, Any] = {"begin": process.memory_info().rss / 2**20}
    if name == "plain":
        result["points"] = measure(compile_once, count)
    elif name in WATCHED:
        with depyf.prepare_debug(os.path.join(folder, "dump"), files=WATCHED[name]):
            result["points"] = measure(compile_once, count)
            begun = time.process_time()
        result["end of the block, s"] = time.process_time() - begun
    else:
        def cycle() -> None:
            with tempfile.TemporaryDirectory(dir=folder) as own, depyf.prepare_debug(os.path.join(own, "d")):
                compile_once()

        result["points"] = measure(cycle, count)
    torch._dynamo.reset()
    gc.collect()
    result |= {
        "end": process.memory_info().rss / 2**20, "most": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10,
        "handles": process.num_fds() - handles, "hooks": hooks_of_torch() == hooks}
    return result


def run(name: str, count: int) -> dict[str, Any]:
    """Runs one part in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([sys.executable, __file__, "--part", name, str(count), folder], capture_output=True,
                              text=True)
    if done.returncode:
        raise RuntimeError(f"{name} failed:\n{done.stderr[-2000:]}")
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def report(results: dict[str, dict[str, Any]], command: str) -> str:
    lines = [BEGIN, f"{dated()}, torch {torch.__version__.split('+')[0]}, Python "
             f"{platform.python_version()}, `{command}`. Times are of the processor.", ""]
    rows = []
    for name, result in results.items():
        points = result["points"]
        count, middle = points[-1][0], points[len(points) // 2 - 1]
        rows.append((
            name, f"{count:,}", f"{result['begin']:.0f}", f"{middle[1]:.0f}", f"{points[-1][1]:.0f}",
            f"{result['end']:.0f}", f"{result['most']:.0f}", f"{(points[-1][1] - result['begin']) * 1024 / count:.1f}",
            f"{points[0][2]:.1f}", f"{points[-1][2]:.1f}", str(result["handles"]),
            "yes" if result["hooks"] else "**no**"))
    head = ("part", "compilations", "MiB at the start", "half-way", "at the last", "after it", "at most",
            "KiB for each", "ms each, first tenth", "last tenth", "handles left", "hooks as before")
    lines.append(table(head, rows).rstrip())
    for name, result in results.items():
        if "end of the block, s" in result:
            lines += ["", f"Leaving the block of `{name}` took {result['end of the block, s']:.1f} s."]
    return "\n".join([*lines, END]) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compiles", type=int, default=10_000)
    parser.add_argument("--cycles", type=int, default=1_000)
    parser.add_argument("--write", type=pathlib.Path, metavar="FILE", help="put the table into this file")
    parser.add_argument("--part", nargs=3, metavar=("NAME", "COUNT", "FOLDER"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.part:
        name, count, folder = given.part
        print(json.dumps(part(name, int(count), folder)))
        return 0
    counts = {"plain": given.compiles, **dict.fromkeys(WATCHED, given.compiles), "cycles": given.cycles}
    results = {}
    for name, count in counts.items():
        results[name] = run(name, count)
        print(name, json.dumps(results[name]), flush=True)
    text = report(results, "python benchmarks/long_run.py" + "".join(
        f" --{what} {getattr(given, what)}" for what in ("compiles", "cycles")
        if getattr(given, what) != parser.get_default(what)))
    print(text)
    if given.write:
        page = given.write.read_text()
        head, _, rest = page.partition(BEGIN)
        _, _, tail = rest.partition(END + "\n")
        given.write.write_text(head + text + tail)
    good = all(result["hooks"] and result["handles"] <= 0 for result in results.values())
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
