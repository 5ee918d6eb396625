"""Views of a thousand ranks, nearly all alike: how long `depyf report` and `depyf explain` take, how large the page is.

    python benchmarks/many_ranks.py [--ranks 1024] [--dump DUMP] [--write docs/measured/many_ranks.md]

The dump of one process (without ``--dump`` that of a llama of two layers) becomes those of many ranks: each has its own
times, ids of objects, ids of graphs and numbers of devices, as real ranks have. Rank 3 breaks a graph, rank 700 has
another graph, rank 900 was killed, rank 901 left nothing, and rank 1023 did not start.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import platform
import random
import re
import subprocess
import sys
import tempfile
import time

from _shared import dated, table

from depyf.records import store

_ID = re.compile(r"(?<![\d.])\d{12,}(?!\d|\.\d)")
_GRAPH = re.compile(r"(?<=__compiled_fn_\d)_[0-9a-f]{8}(?=_[0-9a-f]{4}_)")
_SECONDS, _START = re.compile(r'(?<="seconds":)[\d.]+(?:e-\d+)?'), re.compile(r'(?<="start":)[\d.]+')
_DEVICE = re.compile(r"(?<=cuda:)\d+|(?<=index=)\d+")


def as_rank(lines: list[str], number: int, world: int) -> list[str]:
    """The lines of a dump as another rank would have written them."""
    own = random.Random(number)
    first = json.loads(lines[0])
    first["environment"] |= {"rank": str(number), "world_size": str(world)}
    result = [json.dumps(first, separators=(",", ":")) + "\n"]
    ids: dict[str, str] = {}
    for line in lines[1:]:
        line = _ID.sub(lambda found: ids.setdefault(found[0], str(own.randrange(139 * 10**12, 140 * 10**12))), line)
        line = _SECONDS.sub(lambda found: repr(float(found[0]) * own.uniform(0.9, 1.2)), line)
        line = _START.sub(lambda found: repr(float(found[0]) + own.uniform(0, 3)), line)
        line = _GRAPH.sub(f"_{number:08x}", line)
        result.append(_DEVICE.sub(str(number % 8), line))
    return result


def broken(lines: list[str]) -> list[str]:
    """The same with a graph break in the first compilation."""
    at = next(at for at, line in enumerate(lines) if line.startswith('{"record":"compilation"'))
    record = json.loads(lines[at])
    place = {"filename": "/model/train.py", "line": 12, "function": "step"}
    record["breaks"] = [{"compile_id": record["compile_id"], "reason": "Call to print", "stack": [place]}]
    return [*lines[:at], json.dumps(record, separators=(",", ":")) + "\n", *lines[at + 1 :]]


def ranks(dump: pathlib.Path, target: pathlib.Path, count: int) -> int:
    """Write the folders of ranks; returns the size of the records."""
    lines = (dump / store.FILE).read_text().splitlines(keepends=True)
    size = 0
    for number in range(count - 1):
        folder = target / f"rank_{number}"
        folder.mkdir(parents=True)
        if number == 901:
            continue
        own = as_rank(lines, number, count)
        if number == 3:
            own = broken(own)
        if number == 700:
            at = next(at for at, line in enumerate(own) if line.startswith('{"record":"graph"'))
            own[at] = own[at].replace("functional.silu(", "functional.gelu(")
        if number == 900:
            own = own[: len(own) // 2]
        else:
            (folder / "index.md").write_text("")
        size += (folder / store.FILE).write_text("".join(own))
    return size


def timed(*command: str) -> tuple[float, str]:
    begun = time.perf_counter()
    done = subprocess.run([sys.executable, "-m", "depyf", *command], capture_output=True, text=True)
    took = time.perf_counter() - begun
    if done.returncode:
        raise SystemExit(done.stderr[-3000:])
    return took, done.stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=1024)
    parser.add_argument("--dump", type=pathlib.Path)
    parser.add_argument("--write", metavar="FILE")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        dump = given.dump
        if dump is None:
            dump = pathlib.Path(folder, "dump")
            subprocess.run([sys.executable, str(pathlib.Path(__file__).with_name("large_model.py")), "--layers", "2",
                            "--one", str(dump)], check=True, capture_output=True)
        target = pathlib.Path(folder, "ranks")
        size = ranks(dump, target, given.ranks)
        reporting = min(timed("report", str(target))[0] for _ in range(3))
        explaining = min(timed("explain", str(target))[0] for _ in range(3))
        page, index = (os.path.getsize(target / name) for name in ("index.html", "index.md"))
    rows = [("records", f"{size / 1e6:.0f} MB"), ("`depyf report`", f"{reporting:.1f} s"),
            ("the page", f"{page / 1e6:.2f} MB"), ("`index.md`", f"{index / 1e3:.1f} kB"),
            ("`depyf explain`", f"{explaining:.1f} s")]
    text = (f"{dated()}, Python {platform.python_version()}, {os.cpu_count()} cores, least of 3. Command: "
            f"`make bench-ranks` ({given.ranks} ranks).\n\n" + table(("what", "figure"), rows))
    print(text)
    if given.write:
        pathlib.Path(given.write).write_text(f"# A thousand ranks\n\n{text}")


if __name__ == "__main__":
    main()
