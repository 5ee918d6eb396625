"""What several benchmarks, scripts and tests need: other interpreters, time limits, code objects, tables."""

from __future__ import annotations

import contextlib
import datetime
import math
import pathlib
import re
import shutil
import signal
import statistics
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from types import CodeType, FrameType
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from depyf.bytecode.code import Code
    from depyf.bytecode.linetable import TableEntry

AnyCode = TypeVar("AnyCode", CodeType, "Code")


def geometric_mean(ratios: Sequence[float]) -> str:
    """Return the geometric mean of ratios, with its standard error: ``"1.024 ± 0.013"``."""
    logs = [math.log(ratio) for ratio in ratios]
    error = statistics.stdev(logs) / math.sqrt(len(logs)) if len(logs) > 1 else math.inf
    middle = math.exp(statistics.fmean(logs))
    return f"{middle:.3f} ± {middle * error:.3f}"


def find_interpreter(version: str) -> pathlib.Path | None:
    """An interpreter of a version (``"3.8"``) that runs: the newest under pyenv, or the one on PATH."""
    def number(path: pathlib.Path) -> list[int]:
        return [int(part) for part in re.findall(r"\d+", path.parents[1].name)]

    installed = pathlib.Path.home().glob(f".pyenv/versions/{version}.*/bin/python")
    on_path = shutil.which(f"python{version}")
    for place in [*sorted(installed, key=number, reverse=True), *([pathlib.Path(on_path)] if on_path else [])]:
        asked = subprocess.run([place, "-I", "-S", "-c", "import sys; print('%d.%d' % sys.version_info[:2])"],
                               capture_output=True, text=True)
        if asked.returncode == 0 and asked.stdout.strip() == version:
            return place
    return None


def dated() -> str:
    """The date and the commit of the working tree, as each table in ``docs/measured`` begins."""
    asked = subprocess.run(["git", "describe", "--always", "--dirty=, with changes"],
                           cwd=pathlib.Path(__file__).parent, capture_output=True, text=True)
    return f"{datetime.date.today()}, commit {asked.stdout.strip() or 'unknown'}"


class TooLong(BaseException):
    """The time limit is over. (No ``Exception``: nothing that is measured may catch it.)"""


@contextlib.contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    """``TooLong`` is raised inside after so many seconds; 0, or a system without alarms, sets no limit."""
    def ring(number: int, frame: FrameType | None) -> None:
        raise TooLong(f"took more than {seconds} s")

    if not seconds or not hasattr(signal, "alarm"):
        yield
        return
    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def code_objects(code: AnyCode) -> Iterator[AnyCode]:
    """A code object (Python's or depyf's) and all that it holds."""
    yield code
    for const in code.co_consts if isinstance(code, CodeType) else code.consts:
        if isinstance(const, type(code)):
            yield from code_objects(const)


def table(head: Sequence[object], rows: Sequence[Sequence[object]]) -> str:
    """A table in Markdown, with a line break at its end."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |\n" for line in lines)


def write_between(path: pathlib.Path, mark: str, text: str) -> None:
    """Replace what stands in a document between ``<!-- mark -->`` and ``<!-- /mark -->``."""
    begin, end = f"<!-- {mark} -->\n", f"<!-- /{mark} -->"
    before, found, rest = path.read_text(encoding="utf-8").partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise SystemExit(f"{path} has no {begin.strip()} ... {end}")
    path.write_text(f"{before}{begin}{text}{end}{after}", encoding="utf-8")


def encode_exception_table(entries: Iterable[TableEntry]) -> bytes:
    """Encode entries as a ``co_exceptiontable``: the inverse of ``linetable.parse_exception_table``."""
    out = bytearray()
    for entry in entries:
        marker = 128  # set on the first byte of an entry, so that a search can find entry borders
        values = (entry.start // 2, (entry.end - entry.start) // 2, entry.target // 2,
                  entry.depth << 1 | entry.lasti)
        for value in values:
            groups = [value & 63]
            while value := value >> 6:
                groups.append(value & 63 | 64)
            groups[-1] |= marker
            out += bytes(reversed(groups))
            marker = 0
    return bytes(out)
