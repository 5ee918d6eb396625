"""Breaks what depyf reads besides ``.pyc`` files: records, logs of TORCH_TRACE, command lines, variables.

    PYTHONPATH=src python scripts/fuzz_inputs.py --seconds 600 --seed 1

A small program is run once for its dump and its log. Each run breaks one of the inputs and gives it to a command, in
one process. It must end within five seconds of processor time with an exit status that the command documents, without
an exception, without "internal error" and without a character that a terminal obeys. Runs are numbered; ``--only
NUMBER`` repeats one and prints what it says.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import io
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from depyf import budgets
from depyf.cli import main as command_line
from depyf.program.options import Options

SECONDS = 5
HERE = Path.cwd()
PROGRAM = """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)

    def forward(self, x, mode="a"):
        print("in forward")
        return self.layer(x).relu() if mode == "a" else x + 1

net = torch.compile(Net(), backend="aot_eager")
for size, mode in ((2, "a"), (3, "a"), (4, "b")):
    net(torch.ones(size, 4), mode).sum().backward() if mode == "a" else net(torch.ones(size, 4), mode)
"""
#: What a terminal obeys, and the ends of lines that only some know.
OBEYED = {*map(chr, range(9)), *map(chr, range(11, 32)), *map(chr, range(0x7F, 0xA0)), "\u202e", "\u2028"}
ODD: tuple[Any, ...] = (
    None, True, -1, 0, 2**70, 1e308, float("nan"), "", "\x1b[31m", "\u202e", "\udc80", "a\nb", "../../evil",
    "/etc/passwd", "[0/0]", "s0", "L['x']", "x" * 5000, [], {}, [[]], [None], {"a": None}, "9" * 400, "(" * 300,
    "{" * 300, "%s", "]]>", "</script>")
WORDS = (
    "-h", "--json", "--rank", "--rank=-1", "--rank=x", "-o", "--output", "--max-breaks", "--max-breaks=-1", "1e9",
    "--", "-", "--max-recompiles", "--no-skipped", "--no-page", "--page", "--sources", "0/0", "0/1", "[0/0]", "9/9",
    "forward", "Net.forward", "f", "x=3", "x=[2, 4]", "x=float32[2, 4]", "--stages", "--python", "3.8", "--width", "0",
    "", " ", "*", "\x1b[31m", "\udc80", "é", "a\nb", "/dev/null", "--versions", "--format", "--raw", "--limit",
    "99" * 99)


def spoilt(value: Any, chance: random.Random) -> Any:
    """Return a JSON value with one of its parts replaced, taken out, doubled or put elsewhere."""
    if isinstance(value, dict) and value and chance.randrange(8):
        key = chance.choice(list(value))
        way = chance.randrange(8)
        if not way:
            return {name: each for name, each in value.items() if name != key}
        if way == 1:
            return {**value, str(chance.choice(ODD))[:50]: value[key]}
        return {**value, key: spoilt(value[key], chance)}
    if isinstance(value, list) and value and chance.randrange(8):
        at = chance.randrange(len(value))
        way = chance.randrange(8)
        if not way:
            return value[:at] + value[at + 1:]
        if way == 1:
            return value + [value[at]] * chance.choice((1, 100))
        return [*value[:at], spoilt(value[at], chance), *value[at + 1:]]
    if isinstance(value, str) and value and chance.randrange(3):
        at = chance.randrange(len(value))
        return value[:at] + str(chance.choice(ODD)) + value[at + chance.randrange(3):]
    return chance.choice(ODD)


def broken_lines(text: str, chance: random.Random, prefix: str = "") -> bytes:
    """Return lines of JSON with something wrong: in their values, their order or their bytes."""
    lines = text.splitlines(keepends=True)
    for _ in range(chance.choice((1, 1, 2, 5))):
        at = chance.randrange(len(lines))
        way = chance.randrange(10)
        if way < 7:
            head, brace, rest = lines[at].partition("{")
            try:
                value = json.loads(brace + rest)
            except ValueError:
                lines[at] = lines[at][: chance.randrange(len(lines[at]) + 1)]
                continue
            lines[at] = head + json.dumps(spoilt(value, chance)) + "\n"
        elif way == 7:
            lines.insert(at, chance.choice(lines))
        elif way == 8:
            del lines[at:at + chance.choice((1, 2, 20))]
            lines = lines or ["\n"]
        else:
            chance.shuffle(lines)
    data = bytearray("".join(lines).encode("utf-8", "surrogatepass"))
    if not chance.randrange(4) and data:
        for _ in range(chance.choice((1, 3))):
            data[chance.randrange(len(data))] = chance.randrange(256)
    if not chance.randrange(6):
        del data[chance.randrange(len(data) + 1):]
    return bytes(data)


class Material:
    """What is broken: the dump and the log of a small program."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        program = folder / "program.py"
        program.write_text(PROGRAM)
        self.dump = folder / "dump"
        source = str(Path(__file__).resolve().parents[1] / "src")
        for command, variables in (
                ([sys.executable, "-m", "depyf", "run", "--quiet", "-o", str(self.dump)], {"PYTHONPATH": source}),
                ([sys.executable], {"TORCH_TRACE": str(folder / "trace")})):
            subprocess.run([*command, str(program)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                           env={**os.environ, **variables})
        self.records = next(iter(sorted(self.dump.rglob("records.jsonl")))).read_text("utf-8", "surrogatepass")
        self.log = next(iter(sorted((folder / "trace").iterdir()))).read_text("utf-8", "surrogatepass")

    def commands(self, number: int, seed: int) -> tuple[str, list[list[str]]]:
        """Return what kind of input run ``number`` breaks, with the command lines to give it to."""
        chance = random.Random(f"{seed}:{number}")
        way = chance.randrange(10)
        broken = self.folder / "broken"
        out = str(self.folder / "out")
        if way < 5:
            broken.mkdir(exist_ok=True)
            (broken / "records.jsonl").write_bytes(broken_lines(self.records, chance))
            path = str(broken)
            return "records", [chance.choice((
                ["explain", path], ["explain", path, "--json"], ["diff", path, str(self.dump)],
                ["diff", str(self.dump), path, "--json"], ["check", path, "--max-breaks", "0", "--no-skipped"],
                ["fits", path, "forward"], ["repro", path, chance.choice(("0/0", "0/1")), "-o", out + ".py"],
                ["report", path, "-o", out], ["report", path]))]
        if way < 7:
            log = self.folder / "broken.log"
            log.write_bytes(broken_lines(self.log, chance))
            return "logs", [["report", str(log), "-o", out, *chance.choice(([], ["--no-page"]))]]
        if way < 9:
            words = [chance.choice(("explain", "diff", "check", "fits", "repro", "report", "decompile")),
                     *(chance.choice((*WORDS, str(self.dump), str(self.dump), str(self.folder / "program.py")))
                       for _ in range(chance.randrange(6)))]
            return "command lines", [words]
        return "variables", []

    def variables(self, number: int, seed: int) -> None:
        """Read the variables of the environment, broken."""
        chance = random.Random(f"{seed}:{number}:variables")
        words = ["--include", "--exclude=*", "--backend", "--stage", "captured", "--check", "--check=0", "--caches",
                 "off", "--quiet", "--no-link", "--page", *WORDS, "'", '"', "\\"]
        text = " ".join(chance.choice(words) for _ in range(chance.randrange(6)))
        with contextlib.suppress(ValueError):  # which is told: the options are those by default then
            Options.read(text)
        os.environ[budgets.VARIABLE] = chance.choice(("nan", "inf", "-1", "1e400", "many", "", "0", "2"))
        try:
            budgets.INSTRUCTIONS.exceeded(chance.choice((0, 10**6, 10**12)))
        finally:
            del os.environ[budgets.VARIABLE]


class TooLongError(BaseException):
    """A run took too long."""


@contextlib.contextmanager
def limited() -> Iterator[None]:
    def ring(*_: object) -> None:
        raise TooLongError

    signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def outcome(number: int, seed: int, material: Material, show: bool = False) -> tuple[str, str]:
    """Return the kind of a run and what is wrong with it, an empty text if nothing is."""
    kind, commands = material.commands(number, seed)
    said = io.StringIO()
    try:
        with limited(), contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            if not commands:
                material.variables(number, seed)
            for words in commands:
                with contextlib.suppress(SystemExit):  # (argparse)
                    command_line(words)
    except TooLongError as error:
        return kind, f"takes more than {SECONDS} s at {_place(error)}"
    except BaseException as error:
        return kind, f"{type(error).__name__}: {str(error)[:120]!r} at {_place(error)}"
    text = said.getvalue()
    if show:
        print(commands, ascii(text))
    if "internal error" in text or "Traceback" in text:
        at = text.find("internal error")
        return kind, f"{text[max(0, at - 80):at + 200]!r} of {commands[0][0]}"
    if OBEYED & set(text):
        return kind, f"prints {OBEYED & set(text)} of {commands[0][0]}"
    return kind, ""


def _place(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    return " < ".join(f"{Path(f.filename).name}:{f.lineno}" for f in frames[::-1][:4])


def main() -> int:
    """Run many."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="repeat one run")
    given = parser.parse_args()
    warnings.simplefilter("always")
    counts: collections.Counter[str] = collections.Counter()
    findings: collections.Counter[str] = collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        material = Material(Path(folder))
        os.chdir(folder)  # where a command line may well name a file to write
        ends = time.monotonic() + given.seconds
        for number in range(given.runs) if given.only is None else [given.only]:
            kind, wrong = outcome(number, given.seed, material, given.only is not None)
            counts[kind] += 1
            if wrong:
                key = wrong.rpartition(" at ")[2] or wrong
                findings[key] += 1
                if findings[key] < 3:
                    print(f"run {number}, {kind}: {wrong}", flush=True)
            if time.monotonic() > ends:
                break
        os.chdir(HERE)
    print(f"{sum(counts.values())} runs: " + ", ".join(f"{count} of {kind}" for kind, count in counts.most_common())
          + f"; {sum(findings.values())} findings in {len(findings)} places")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
