"""Four programs under each of many conditions, plain and watched (``make conditions``).

    python -m conditions [--only KIND ...] [--programs NAME ...] [--jobs 2] [--write docs/measured/conditions.md]

A condition is an option of Python or torch, a limit, a broken disk, a debugger or profiler, a patched function, a
thread, a fork, or a way to end. A program is run under it twice, a process each: plain, and with ``DEPYF_DUMP_DIR``
set. Exit status, standard output and standard error have to be the same (lines that begin with "depyf" aside); what
is in the dump has to be readable. Where no ``.pth`` is read (``python -S``) the program uses ``prepare_debug``.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import os
import pathlib
import re
import resource
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from _shared import dated, table

from .kinds import KINDS, Kind
from .programs import PROGRAMS

SOURCE = pathlib.Path(__file__).resolve().parents[2] / "src"
SECONDS = 600
#: What differs from run to run.
_VARYING = re.compile(r"[VIWE]\d{4} \d\d:\d\d:\d\d\.\d+ \d+|"  # of torch's log: date, time, process
                      r"0x[0-9a-f]{6,}|\b\d+\.\d+ ?m?s\b|/tmp/[\w./-]+|\bpid[= ]\d+|[\w/.-]*/program\.py")

#: What depyf says: a line, with those below it that are set in; a warning, with the line of source that Python shows.
_OURS = re.compile(r"^(?:> )?depyf\b.*\n(?:  .*\n?)*|^.*: RuntimeWarning: depyf: .*\n(?:  .*\n?)?", re.M)


@dataclass(frozen=True)
class Ended:
    """How a run ended."""

    status: int
    out: str
    err: str

    def difference(self, other: Ended, with_errors: bool) -> str:
        """Return what of the two differs, an empty text if nothing does."""
        if self.status != other.status:
            return f"exit status {self.status} and {other.status}: {other.err[-400:]}"
        if self.out != other.out:
            return f"standard output: {self.out[-200:]!r} and {other.out[-200:]!r}"
        if with_errors and self.err != other.err:
            return f"standard error: {self.err[-300:]!r} and {other.err[-600:]!r}"
        return ""


def text_of(kind: Kind, program: str, watched: bool) -> str:
    """Return the program under a condition."""
    run = kind.run
    paths = ""
    if kind.in_program:
        paths = f"import sys\nsys.path[:0] = {[str(SOURCE), *(each for each in sys.path if 'packages' in each)]!r}\n"
        block = "import depyf\nwith depyf.prepare_debug('dump'):\n" if watched else (
            "import contextlib\nwith contextlib.nullcontext():\n")
        run = block + "\n".join(f"    {line}" for line in run.split("\n"))
    return f"{paths}{kind.before}\n{PROGRAMS[program]}\n\nif __name__ == '__main__':\n" + "\n".join(
        f"    {line}" for line in run.strip().split("\n")) + "\n"


def run(kind: Kind, program: str, watched: bool, folder: pathlib.Path) -> Ended:
    """Run a program under a condition."""
    file = folder / "program.py"
    file.write_text(text_of(kind, program, watched))
    environment: dict[str, str] = {**os.environ, "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1"}
    for name in ("PYTHONPATH", "DEPYF_DUMP_DIR"):
        environment.pop(name, None)
    for name, value in kind.environment.items():
        environment.pop(name, None) if value is None else environment.__setitem__(name, value)
    if watched and not kind.in_program:
        environment |= {"DEPYF_DUMP_DIR": str(folder / kind.dump), "DEPYF_DUMP_OPTIONS": "--quiet"}

    def limit() -> None:
        for name, number in kind.limits.items():
            resource.setrlimit(getattr(resource, name), (number, resource.getrlimit(getattr(resource, name))[1]))

    command = kind.shell.format(shlex.join([sys.executable, *kind.options, str(file)]))
    done = subprocess.run(["/bin/sh", "-c", f"exec {command}"], cwd=folder, env=environment, capture_output=True,
                          timeout=SECONDS, preexec_fn=limit if kind.limits else None)
    return Ended(done.returncode, _plain(done.stdout), _plain(done.stderr))


def _plain(text: bytes) -> str:
    """Return what a run printed, without what differs from run to run and what is said to come from depyf."""
    return _VARYING.sub("…", _OURS.sub("", text.decode(errors="replace"))).rstrip()


@contextlib.contextmanager
def prepared(kind: Kind) -> Iterator[pathlib.Path]:
    """Make the folder of a run, with the dump as the condition wants it."""
    with tempfile.TemporaryDirectory(prefix="conditions") as temporary:
        folder = pathlib.Path(temporary)
        dump = folder / kind.dump
        if kind.dump_is == "a file":
            dump.write_text("mine")
        elif kind.dump_is == "a file above":
            dump.parent.write_text("mine")
        elif kind.dump_is == "left over":
            dump.mkdir()
            (dump / "records.jsonl").write_text("no records")
            (dump / "mine.txt").write_text("mine")
        full = kind.dump_is == "full"
        if full:
            dump.mkdir()
            subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(dump)], check=True)
        try:
            yield folder
            if kind.dump_is == "a file" and dump.read_text() != "mine":
                raise AssertionError("the user's file was written over")
        finally:
            if full:
                subprocess.run(["umount", "-l", str(dump)], check=True)


def unreadable(kind: Kind, folder: pathlib.Path) -> str:
    """Return why a dump cannot be read, or what it lacks; an empty text if all is well."""
    from depyf.finishing.frames import read_records
    from depyf.records.store import RecordsError

    dump = folder / kind.dump
    found = sorted(dump.rglob("records.jsonl")) if dump.is_dir() else []
    if not found:
        return "no records were written" if kind.must_write else ""
    for file in found:
        if kind.dump_is == "left over" and file.read_text(errors="replace") == "no records":
            continue
        try:
            read_records(str(file.parent))
        except RecordsError as error:
            if file.stat().st_size:
                return f"unreadable: {error}"
    return ""


def judged(name: str, program: str) -> tuple[str, str, str, float]:
    """Run a program under a condition, plain and watched; return what differs."""
    kind, begin = KINDS[name], time.perf_counter()
    try:
        with prepared(kind) as folder:
            plain = run(kind, program, False, folder)
        with prepared(kind) as folder:
            watched = run(kind, program, True, folder)
            why = plain.difference(watched, kind.same_error_output) or unreadable(kind, folder)
    except (subprocess.SubprocessError, AssertionError, OSError) as error:
        why = f"{type(error).__name__}: {error}"
    return name, program, why, time.perf_counter() - begin


def document(results: Sequence[tuple[str, str, str, float]], seconds: float) -> str:
    """Return the table."""
    different = [each for each in results if each[2]]
    rows = [[name, *("same" if not why else "**different**" for kind, _, why, _ in results if kind == name)]
            for name in dict.fromkeys(each[0] for each in results)]
    text = f"""# Programs under conditions, plain and watched

`make conditions` ({dated()}; {seconds:.0f} s). {len(rows)} conditions, {len(results)} pairs of runs, \
{len(different)} of them different.

Each program (`benchmarks/conditions/programs.py`) is run under each condition (`kinds.py` beside it) plain and watched.
"Same" are exit status, standard output and, where the tools of the condition print nothing of their own, standard
error; and the dump can be read.

{table(["condition", *dict.fromkeys(each[1] for each in results)], rows)}"""
    return text + "".join(f"\n* {name}, {program}: {why[:300]!r}" for name, program, why, _ in different) + "\n"


def main() -> None:
    """Run all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=list(KINDS), metavar="KIND")
    parser.add_argument("--programs", nargs="*", default=list(PROGRAMS), metavar="NAME")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--write", metavar="FILE")
    chosen = parser.parse_args()
    begin = time.perf_counter()
    tasks = [(name, program) for name in chosen.only for program in chosen.programs]
    with concurrent.futures.ThreadPoolExecutor(chosen.jobs) as pool:
        results = []
        for result in pool.map(lambda task: judged(*task), tasks):
            results.append(result)
            if result[2]:
                print(f"{result[0]}, {result[1]}: {result[2]}", flush=True)
    text = document(results, time.perf_counter() - begin)
    if chosen.write:
        pathlib.Path(chosen.write).write_text(text, encoding="utf-8")
    different = sum(bool(each[2]) for each in results)
    print(f"{len(results)} pairs of runs, {different} different, {time.perf_counter() - begin:.0f} s")
    raise SystemExit(bool(different))


if __name__ == "__main__":
    main()
