"""Views of a thousand ranks, nearly all alike: how long `depyf report` and `depyf explain` take, how large the page is.

    python benchmarks/many_ranks.py [--ranks 1024] [--dump DUMP] [--write docs/measured/many_ranks.md]
    python benchmarks/many_ranks.py --log tlparse/tests/inputs/inductor_provenance_jit_cuda_log.txt
    python benchmarks/many_ranks.py --one LOG --megabytes 212

The dump of one process (without ``--dump`` that of a llama of two layers) becomes those of many ranks: each has its own
times, ids of objects, ids of graphs and numbers of devices, as real ranks have. Rank 3 breaks a graph, rank 700 has
another graph, rank 900 was killed, rank 901 left nothing, and rank 1023 did not start.

A log of TORCH_TRACE from a GPU (``--log``) becomes those of many ranks in the same way. In that of rank 3 a graph calls
another operation, the compilation of rank 700 failed, and rank 900 was killed before it had kernels.

One log as long as ``--megabytes`` (``--one``): a log once more and once more, each time with frames and names of inputs
of its own.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import os
import pathlib
import platform
import random
import re
import resource
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


_OF_LOG = re.compile(
    r"(?m)(?<=^[VIWE]\d{4} )(?P<time>[\d:.]+ \d+)|(?<=\"ts\": )(?P<ts>[\d.]+)|(?<=_us\": )(?P<us>\d+)"
    r"|(?<=_time_s\": )(?P<s>[\d.]+)|(?<=cuda:)(?P<device>\d+)|(?<=index=)(?P<index>\d+)"
    r"|(?<=get_raw_stream\()(?P<stream>\d+)|(?<![\d.])(?P<id>\d{12,})(?![\d.])")
_OPERATION = ".default("


def log_of_rank(text: str, number: int) -> str:
    """A log as another rank would have written it: with the times, ids and device of that."""
    own = random.Random(number)
    ids: dict[str, str] = {}
    later = own.uniform(0, 3e6)  # microseconds

    def other(found: re.Match[str]) -> str:
        kind, value = found.lastgroup, found[0]
        if kind == "time":
            return f"12:{own.randrange(60):02}:{own.uniform(10, 59):09.6f} {1000 + number}"
        if kind == "id":
            return ids.setdefault(value, str(own.randrange(139 * 10**12, 140 * 10**12)))
        if kind == "ts":
            return repr(float(value) + later)
        if kind in ("us", "s"):
            return str(type(json.loads(value))(float(value) * own.uniform(0.9, 1.2)))
        return str(number % 8)

    text = _OF_LOG.sub(other, text)
    if number == 3:
        at = text.rindex(_OPERATION, 0, text.index("inductor_output_code"))
        text = text[:at] + "_.default(" + text[at + len(_OPERATION) :]
    if number == 700:
        text = text.replace('"fail_type": null', '"fail_type": "RuntimeError"').replace(
            '"fail_reason": null', '"fail_reason": "out of memory"').replace(
            '"has_guarded_code": true', '"has_guarded_code": false')
    if number == 900:
        text = text[: text.index("inductor_output_code")]
        text = text[: text.rindex("\n") + 1]
    return _with_digests(text, number)


def _with_digests(text: str, number: int | None) -> str:
    """The log with the rank, if it has one, and the digests of its payloads as torch writes them."""
    lines = text.splitlines(keepends=True)
    begins = [at for at, line in enumerate(lines) if not line.startswith("\t")]
    for at, end in zip(begins, [*begins[1:], len(lines)]):
        if '"has_payload": "' in lines[at]:
            payload = "".join(line[1:] for line in lines[at + 1 : end]).removesuffix("\n")
            digest = hashlib.md5(payload.encode()).hexdigest()
            lines[at] = re.sub(r'(?<="has_payload": ")\w+', digest, lines[at])
        lines[at] = re.sub(r', "rank": \d+', "", lines[at])
        if number is not None:
            lines[at] = re.sub(r"\}\n$", f', "rank": {number}}}\n', lines[at])
    return "".join(lines)


def of_logs(log: pathlib.Path, count: int) -> list[tuple[str, str]]:
    """Return the figures of ``depyf report`` of a folder of logs."""
    text = log.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        logs = pathlib.Path(folder, "logs")
        logs.mkdir()
        for number in range(count):
            (logs / f"dedicated_log_torch_trace_rank_{number}_x.log").write_text(log_of_rank(text, number))
        return reported(logs)


def of_one(log: pathlib.Path, megabytes: float) -> list[tuple[str, str]]:
    """Return the figures of ``depyf report`` of one long log."""
    text = re.sub(r', "rank": \d+', "", log.read_text(encoding="utf-8"))
    frames = 1 + max(map(int, re.findall(r'"frame_id": (\d+)', text)))
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "logs", "dedicated_log_torch_trace_x.log")
        path.parent.mkdir()
        with open(path, "w", encoding="utf-8") as file:
            for number in itertools.takewhile(lambda _: file.tell() < megabytes * 1e6, itertools.count()):
                own = re.sub(r'(?<="frame_id": )\d+', lambda found: str(int(found[0]) + number * frames), text)
                named = re.sub(r"\b(arg|primals)(?=_?\d+\b|\d+_\d+\b)", rf"\1_of_{number}_", own)
                if named == own:
                    raise SystemExit(f"{log} has no input of a graph that can be renamed; its copies would be alike")
                file.write(_with_digests(named, None))
        return reported(path.parent)


def reported(logs: pathlib.Path) -> list[tuple[str, str]]:
    """Return the figures of ``depyf report`` of a folder."""
    with tempfile.TemporaryDirectory() as folder:
        target = pathlib.Path(folder, "out")
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        timed("report", str(logs), "-o", str(target))
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        print((target / "index.md").read_text()[:3000])
        processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return [("logs", _megabytes(logs)), ("processor time", f"{processor:.1f} s"),
                ("memory", f"{after.ru_maxrss / 1e3:.0f} MB"), ("files", _megabytes(target))]


def _megabytes(folder: pathlib.Path) -> str:
    return f"{sum(each.stat().st_size for each in folder.rglob('*') if each.is_file()) / 1e6:.1f} MB"


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
    parser.add_argument("--log", type=pathlib.Path, help="of a GPU: measure logs made of it, too")
    parser.add_argument("--one", type=pathlib.Path, metavar="LOG", help="measure one long log made of it, and no more")
    parser.add_argument("--megabytes", type=float, default=212)
    parser.add_argument("--write", metavar="FILE")
    given = parser.parse_args()
    if given.one:
        print(table(("what", "figure"), of_one(given.one, given.megabytes)))
        return
    of_log = of_logs(given.log, given.ranks) if given.log else []
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
    if of_log:
        text += (f"\n{given.ranks} logs made of `{given.log.name}` with three planted differences, `depyf report LOGS "
                 f"-o DIR` (`benchmarks/many_ranks.py --log LOG`), once:\n\n" + table(("what", "figure"), of_log))
    print(text)
    if given.write:
        pathlib.Path(given.write).write_text(f"# A thousand ranks\n\n{text}")


if __name__ == "__main__":
    main()
