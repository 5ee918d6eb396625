"""Random programs, decompiled: what becomes of code that nobody would write.

    make fuzz-source
    python benchmarks/random_programs.py --count 1000 --seed 0 --jobs 2 --python /usr/bin/python3.12
    python benchmarks/random_programs.py --count 10000 --versions 3.10 3.11 3.12 3.13

pysource-codegen makes programs by seed. They are compiled, never executed; the module is decompiled, the text
is compiled again and compared with the original by ``verify.same_program``, from the text alone. Printed are the
outcomes and, for what fell back or failed, the reasons by class.

To make the programs takes four times as long as all the rest. With ``--keep DIR`` they are left there and taken from
there the next time, by another interpreter too (the syntax is then that of the version that made them; a program that
the interpreter at hand cannot compile counts as none). In Pyodide only kept programs can be run.

Outcomes: ``exact``, ``equivalent`` and ``fallback`` are what the decompiler says of its text; ``invalid`` is a
text that does not compile, ``wrong`` one that was called exact or equivalent and is not, ``crash`` an exception
or a dead process, ``late`` one that took longer than ``--limit`` seconds.

With ``--minimise DIR`` each class of failure leaves its smallest program there (pysource-minimize).
"""

from __future__ import annotations

import argparse
import ast
import collections
import json
import os
import pathlib
import re
import select
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from types import CodeType
from typing import Any

from _shared import TooLong, find_interpreter, time_limit

ROOT = pathlib.Path(__file__).resolve().parent.parent
#: As in pyproject.toml: another version makes other programs of the same seeds.
GENERATOR = ("pysource-codegen==0.7.1", "pysource-minimize==0.10.1")
#: Outcomes in the order they are printed.
OUTCOMES = ("exact", "equivalent", "fallback", "invalid", "wrong", "crash", "late")


# --- one program, in a process of its own ----------------------------------------------------------
#: The generator knows most rules of the language, and ast.unparse most f-strings, not all.
NO_PROGRAM = (SyntaxError, ValueError, MemoryError, RecursionError, OverflowError)


def program(seed: int, kept: pathlib.Path | None = None) -> str | None:
    """The program of a seed: from a few statements to a few hundred; ``None`` if it does not compile.

    Args:
        kept: directory of programs made before; new ones are put there.
    """
    file = None if kept is None else kept / f"{seed}.py"
    try:
        if file is not None and file.exists():
            source = file.read_text("utf-8")
        else:
            source = random_program(seed)
            if file is not None:
                file.write_text(source, "utf-8")
        compile(source, "<random>", "exec", dont_inherit=True)
    except NO_PROGRAM:
        return None
    return source


def random_program(seed: int) -> str:
    from pysource_codegen import generate

    return generate(seed, node_limit=(20, 60, 200, 600)[seed % 4], depth_limit=(4, 6, 8)[seed % 3])  # type: ignore[no-any-return]


def outcome(source: str) -> tuple[str, list[str], dict[str, int]]:
    """What becomes of a program, the reasons if that is not ``exact``, and how many of its code objects are what."""
    from depyf.bytecode.code import Code
    from depyf.decompiler import decompile_code

    code: CodeType = compile(source, "<random>", "exec", dont_inherit=True)
    try:
        result = decompile_code(code)
    except RecursionError:
        return "crash", ["RecursionError"], {}
    except Exception as error:
        return "crash", [f"{type(error).__name__}: {error}"], {}
    try:
        again = compile(result.text, "<again>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        return "invalid", [f"{type(error).__name__}: {getattr(error, 'msg', error)}"], {}
    kind = result.fidelity.value
    if kind != "fallback":
        where = difference(Code.of(code), Code.of(again), kind == "exact")
        if where:
            return "wrong", [where], {}
    parts = collections.Counter(part.fidelity.value for part in result.parts)
    reasons = [part.reason.split("; ")[0] for part in result.parts if part.fidelity.value != "exact"]
    return kind, reasons, dict(parts)


def difference(original: Any, again: Any, exact: bool) -> str:
    """Where the text is another program, proven anew from the text; empty if nowhere."""
    from depyf.decompiler.proof.equivalence import equivalent
    from depyf.decompiler.proof.exact import same_code, same_program

    if exact:
        return same_program(original, again).where
    work = [(original, again, "")]
    while work:
        left, right, path = work.pop()
        verdict, nested = same_code(left, right, path=path, ignore_name=not path)
        if not verdict:
            nested = []
            verdict = equivalent(left, right, nested=nested)
        if not verdict:
            return f"{path}: {verdict.where}"
        work += nested
    return ""


def reason_class(reason: str) -> str:
    """A reason without the names and numbers of its program."""
    reason = re.sub(r"'[^']*'|\"[^\"]*\"", "_", reason)
    reason = re.sub(r"^[^:]*: (?=[A-Z]+[A-Z_]* )", "", reason)
    reason = re.sub(r"\bat offset \d+|\b0x[0-9a-f]+|-?\d+", "#", reason)
    reason = re.sub(r"<code[^>]*>|\([^)]*\)|\[[^]]*\]", "_", reason)
    return reason[:100]


def work(first: int, after: int, step: int, limit: int, kept: pathlib.Path | None) -> Iterator[dict[str, Any]]:
    """What becomes of the program of each seed, after a notice that it is begun."""
    warnings.simplefilter("ignore")
    for seed in range(first, after, step):
        yield {"seed": seed, "starts": True}
        source = program(seed, kept)
        kind, reasons, parts = "none", [], {}
        if source is not None:
            try:
                with time_limit(limit):
                    kind, reasons, parts = outcome(source)
            except TooLong:
                kind, reasons = "late", [f"more than {limit} s"]
        yield {"seed": seed, "kind": kind, "reasons": reasons, "parts": parts}


# --- many -------------------------------------------------------------------------------------------
class Worker:
    """A process that goes through its seeds, and is started again behind one that killed it."""

    def __init__(self, python: str, first: int, after: int, step: int, limit: int, kept: str) -> None:
        self.python, self.after, self.step, self.limit, self.kept = python, after, step, limit, kept
        self.start(first)

    def start(self, first: int) -> None:
        self.seed, self.since = first, time.monotonic()
        paths = os.pathsep.join([str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])])
        self.process = subprocess.Popen(
            [self.python, __file__, "--worker", *map(str, (first, self.after, self.step, self.limit)), self.kept],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            env={**os.environ, "PYTHONPATH": paths, "PYTHONHASHSEED": "0"})

    def lost(self, kind: str, why: str) -> dict[str, Any]:
        """The program at hand ended the process (or has to be ended with it)."""
        self.process.kill()
        self.process.wait()
        answer = {"seed": self.seed, "kind": kind, "reasons": [why]}
        if self.seed + self.step < self.after:
            self.start(self.seed + self.step)
        return answer


def answers(
    python: str, seed: int, count: int, jobs: int, limit: int, kept: pathlib.Path | None
) -> Iterator[dict[str, Any]]:
    if sys.platform == "emscripten":  # no other processes
        yield from (answer for answer in work(seed, seed + count, 1, 0, kept) if "kind" in answer)
        return
    workers = [Worker(python, seed + n, seed + count, jobs, limit, str(kept or "")) for n in range(min(jobs, count))]
    while workers:
        ready, _, _ = select.select([w.process.stdout for w in workers], [], [], 1.0)
        for worker in list(workers):
            if worker.process.stdout in ready:
                assert worker.process.stdout is not None
                line = worker.process.stdout.readline()
                if line:
                    answer = json.loads(line)
                    worker.seed, worker.since = answer["seed"], time.monotonic()
                    if "kind" in answer:
                        yield answer
                    continue
                status = worker.process.wait()
                if status == 0:
                    workers.remove(worker)
                    continue
                yield worker.lost("crash", f"the process ended with status {status}")
            elif time.monotonic() - worker.since > 3 * limit:
                yield worker.lost("late", "and deaf to its alarm")
            if worker.process.poll() is not None and worker.seed + worker.step >= worker.after:
                workers.remove(worker)


def smallest(python: str, seed: int, kind: str, of: str) -> str:
    """The smallest program that has the same outcome for the same class of reason (in that interpreter)."""
    return subprocess.run(
        [python, __file__, "--smallest", str(seed), kind, of], capture_output=True, text=True, timeout=600,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONHASHSEED": "0"}).stdout


def minimised(seed: int, kind: str, of: str) -> str:
    from pysource_minimize import minimize

    def same(source: str) -> bool:
        try:
            with time_limit(10):
                result, reasons, _ = outcome(source)
        except (Exception, TooLong):
            return False
        return result == kind and any(reason_class(reason) == of for reason in reasons)

    warnings.simplefilter("ignore")
    source = program(seed)
    assert source is not None
    return ast.unparse(ast.parse(minimize(source, same, retries=1)))


def main() -> int:
    if sys.argv[1:2] == ["--worker"]:
        first, after, step, limit = map(int, sys.argv[2:6])
        for answer in work(first, after, step, limit, pathlib.Path(sys.argv[6]) if sys.argv[6] else None):
            print(json.dumps(answer), flush=True)
        return 0
    if sys.argv[1:2] == ["--smallest"]:
        print(minimised(int(sys.argv[2]), sys.argv[3], sys.argv[4]))
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000, help="how many programs")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first; the others count up")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    parser.add_argument("--python", default=sys.executable, help="interpreter that compiles and decompiles")
    parser.add_argument("--limit", type=int, default=30, help="seconds for one program")
    parser.add_argument("--keep", type=pathlib.Path, help="directory of programs made before, and of those made now")
    parser.add_argument("--classes", type=int, default=25, help="how many classes of reasons to print")
    parser.add_argument("--minimise", type=pathlib.Path, help="directory for the smallest program of each class")
    parser.add_argument("--versions", nargs="+", metavar="VERSION", help="run under each of these that is there")
    given = parser.parse_args()
    if given.keep:
        given.keep.mkdir(parents=True, exist_ok=True)
    if not given.versions:
        return measure(given)
    failed = 0
    for version in given.versions:
        with tempfile.TemporaryDirectory() as folder:
            given.python = environment(version, folder)
            if given.python:
                print(f"Python {version}:", flush=True)
                failed |= measure(given)
            else:
                print(f"Python {version} is not on this machine: left out", flush=True)
    return failed


def environment(version: str, folder: str) -> str:
    """The interpreter of an environment with the generator; empty if there is no such version here."""
    path = find_interpreter(version)
    if path is None:
        return ""
    subprocess.run([path, "-m", "venv", folder], check=True)
    python = f"{folder}/bin/python"
    subprocess.run([python, "-m", "pip", "install", "-q", *GENERATOR], check=True)
    return python


def measure(given: argparse.Namespace) -> int:
    """Runs and prints; 1 if anything went wrong."""
    counts: collections.Counter[str] = collections.Counter()
    codes: collections.Counter[str] = collections.Counter()
    classes: dict[tuple[str, str], list[int]] = {}
    started = time.monotonic()
    for answer in answers(given.python, given.seed, given.count, given.jobs, given.limit, given.keep):
        counts[answer["kind"]] += 1
        codes.update(answer.get("parts", {}))
        for of in {reason_class(reason) for reason in answer["reasons"]}:
            classes.setdefault((answer["kind"], of), []).append(answer["seed"])
    programs = sum(counts[kind] for kind in OUTCOMES)
    valid = programs - counts["invalid"] - counts["crash"] - counts["late"]
    print(f"{programs} programs ({counts['none']} seeds gave none), {time.monotonic() - started:.0f} s;",
          f"valid source {100 * valid / max(programs, 1):.2f} %")
    print(", ".join(f"{kind} {counts[kind]}" for kind in OUTCOMES))
    total = max(sum(codes.values()), 1)
    print(f"{total} code objects:",
          ", ".join(f"{kind} {codes[kind]} ({100 * codes[kind] / total:.2f} %)" for kind in OUTCOMES[:3]))
    largest = sorted(classes.items(), key=lambda item: (OUTCOMES.index(item[0][0]) < 4, -len(item[1])))
    for (kind, of), seeds in largest[: given.classes]:
        print(f"{len(seeds):5} {kind}: {of}   seeds {', '.join(map(str, sorted(seeds)[:4]))}")
    if given.minimise:
        given.minimise.mkdir(parents=True, exist_ok=True)
        for number, ((kind, of), seeds) in enumerate(largest):
            if kind in ("equivalent", "late"):
                continue
            text = smallest(given.python, min(seeds), kind, of)
            (given.minimise / f"{number:03}_{kind}.py").write_text(f"# {of} ({len(seeds)} programs)\n{text}")
    return 1 if any(counts[kind] for kind in ("invalid", "wrong", "crash")) else 0


if __name__ == "__main__":
    sys.exit(main())
