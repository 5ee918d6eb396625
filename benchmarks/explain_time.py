"""How long ``depyf explain DIR`` takes, a process each: of a dump as it is, and of its records alone, in turn.

    python benchmarks/explain_time.py DIR ... [--rounds 9]
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from depyf.records import store


def seconds(directory: str) -> float:
    begun = time.perf_counter()
    subprocess.run([sys.executable, "-m", "depyf", "explain", directory], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begun


def main() -> None:
    command_line = argparse.ArgumentParser()
    command_line.add_argument("dumps", nargs="+", metavar="DIR")
    command_line.add_argument("--rounds", type=int, default=9)
    given = command_line.parse_args()
    print("| dump | graphs | versions | records | its index is shown | made of the records |")
    print("|---|---|---|---|---|---|")
    for dump in given.dumps:
        with tempfile.TemporaryDirectory() as alone:
            shutil.copy(os.path.join(dump, store.FILE), alone)
            times = [(seconds(dump), seconds(alone)) for _ in range(given.rounds)]
        capture = store.read(dump)
        versions = sum(len(frame.entries) for function in capture.functions for frame in function.frames)
        shown, made = (statistics.median(column) for column in zip(*times))
        size = os.path.getsize(os.path.join(dump, store.FILE))
        print(f"| {os.path.basename(os.path.abspath(dump))} | {len(capture.graphs)} | {versions} | "
              f"{size / 1e6:.1f} MB | {shown:.3f} s | {made:.3f} s |")


if __name__ == "__main__":
    main()
