"""How much of real code decompiles to the same program (``make roundtrip``).

    python benchmarks/roundtrip.py [--corpus stdlib tests PACKAGE ...] [--python PATH] [--limit N] [--seed S]
                                   [--jobs N] [--show N] [--json FILE]

Every module of a corpus is compiled, decompiled with proof (``decompile_code``), and the text compiled once more
and compared with the original by the prover, apart from what fell back.  Corpora: ``stdlib`` (the interpreter's own
library without its tests), ``tests`` (the tests of it), a folder, or the name of an installed package.  Modules are
done by worker processes, each module under a time limit.  Nothing is imported or executed.  With ``--jobs 0`` all is
done in this process, without limit: for ``node scripts/python314.mjs --mount FOLDER benchmarks/roundtrip.py --jobs 0
--corpus FOLDER``, where there are neither processes nor signals (and the library is a zip: unpack it somewhere).

Counted are code objects: *exact*, *equivalent*, *fallback*; *wrong* is a text said to be proven that the comparison
refuses, *invalid* one that does not compile, *crash* an exception of ours, *timeout* a module that took too long.
``lines %`` is the share of instructions of exact code objects (those that have a line in the original) to which the
line map gives a line of the text.
``units/s`` are code units (two bytes) a second of one process, proof included, before the comparison here.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import importlib.util
import json
import multiprocessing
import os
import platform
import random
import subprocess
import sys
import sysconfig
import time
import warnings
from types import CodeType

from _shared import TooLong, code_objects, time_limit

from depyf.bytecode.code import Code
from depyf.decompiler import Fidelity, decompile_code
from depyf.decompiler.proof.exact import same_code
from depyf.decompiler.result import Tiers

MODULE_SECONDS = 120


@dataclasses.dataclass
class Row:
    """What became of one module. ``reasons``: ``[class of failure, place]`` of each code object not exact."""

    file: str
    outcome: str = "ok"
    parts: dict[str, int] = dataclasses.field(default_factory=dict)
    reasons: list[tuple[str, str]] = dataclasses.field(default_factory=list)
    units: int = 0
    seconds: float = 0.0
    instructions: int = 0  # of exact code objects, as far as control can reach them
    mapped: int = 0  # those that the line map gives a line of the text


def corpus_files(corpus: str) -> list[str]:
    """Files of a corpus; test data that is broken on purpose is sorted out when it does not compile."""
    library = sysconfig.get_path("stdlib")
    if corpus in ("stdlib", "tests"):
        roots = [library]
    elif os.path.isdir(corpus):
        roots = [corpus]
    else:
        spec = importlib.util.find_spec(corpus)
        if spec is None:
            raise SystemExit(f"{corpus} is not installed in {sys.executable}")
        roots = list(spec.submodule_search_locations or [spec.origin])
    files = []
    for root in roots:
        for folder, folders, names in os.walk(root):
            folders[:] = sorted(f for f in folders if f not in ("site-packages", "__pycache__"))
            inside = os.path.relpath(folder, library).split(os.sep)
            is_test = "test" in inside or "tests" in inside or "idle_test" in inside
            if corpus not in ("stdlib", "tests") or is_test == (corpus == "tests"):
                files += [os.path.join(folder, name) for name in sorted(names) if name.endswith(".py")]
    return files


def roundtrip(file: str) -> Row | None:
    """One module; ``None`` if it is not Python of this version."""
    try:
        with open(file, "rb") as stream:
            code = Code.of(compile(stream.read(), file, "exec", dont_inherit=True))
    except (SyntaxError, ValueError, UnicodeDecodeError, RecursionError, OSError):
        return None
    row = Row(file)
    try:
        with time_limit(MODULE_SECONDS):
            _roundtrip(code, row)
    except TooLong:
        row.outcome = "timeout"
    except (Exception, RecursionError) as error:
        row.outcome = "crash"
        row.reasons.append((f"{type(error).__name__}: {error}"[:160], file))
    if row.outcome != "ok":
        row.parts = {row.outcome: sum(1 for _ in code_objects(code))}
        row.reasons = row.reasons or [(row.outcome, file)]
    return row


def _roundtrip(code: Code, row: Row) -> None:
    begun = time.process_time()
    result = decompile_code(code)
    row.seconds = time.process_time() - begun
    row.units = sum(part.units for part in result.parts)
    try:
        again: CodeType = compile(result.text, row.file, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        row.outcome = "invalid"
        row.reasons.append((f"invalid: {type(error).__name__}: {error}"[:160], row.file))
        return
    counts = collections.Counter(part.fidelity.value for part in result.parts)
    for part in result.parts:
        if part.fidelity is not Fidelity.EXACT:
            place = f"{row.file}:{part.line} {part.name}"
            row.reasons.append((f"{part.fidelity.value}: {_class_of(part.reason)}", place))
    for original, part in zip(Tiers(code).names, result.parts):
        if part.fidelity is Fidelity.EXACT and part.verdict is not None and original.origin is not None:
            with_line = {offset for begin, end, line in original.origin.co_lines() if line is not None
                         for offset in range(begin, end, 2)}
            offsets = {offset for offset, _ in part.verdict.pairs} & with_line
            row.instructions += len(offsets)
            row.mapped += len(offsets & set(part.line_map))
    wrong = _wrong(code, Code.of(again), {(p.name, p.line) for p in result.parts if p.fidelity is not Fidelity.EXACT})
    for name, where in wrong:
        counts["exact"] -= 1
        counts["wrong"] += 1
        row.reasons.append((f"wrong: {where[:120]}", f"{row.file} {name}"))
    row.parts = dict(counts)


def _wrong(code: Code, again: Code, apart: set[tuple[str, int]]) -> list[tuple[str, str]]:
    """Code objects said to be exact that differ (by name), each compared on its own."""
    problems = []
    work: list[tuple[Code, Code, str]] = [(code, again, "")]
    while work:
        left, right, path = work.pop()
        assert isinstance(left, Code) and isinstance(right, Code)
        if any(left.firstlineno == line and name.split(".")[-1] == left.name for name, line in apart):
            continue
        verdict, nested = same_code(left, right, path=path, ignore_name=left is code)
        if not verdict:
            problems.append((path or left.name, verdict.where))
        else:
            work += nested  # type: ignore[arg-type]
    return problems


def _class_of(reason: str) -> str:
    """The kind of a failure, without what is particular to the place."""
    first = reason.split("; ")[0]
    words = first.split(" at offset ")[0]
    return words[-70:] if " became " in first else first[:90]


def measure(corpus: str, limit: int, seed: int, jobs: int) -> list[Row]:
    files = corpus_files(corpus)
    if limit:
        random.Random(seed).shuffle(files)
        files = files[:limit]
    if not jobs:
        warnings.simplefilter("ignore")
        return [row for row in map(roundtrip, files) if row is not None]
    context = multiprocessing.get_context("spawn")
    with context.Pool(jobs, initializer=warnings.simplefilter, initargs=("ignore",), maxtasksperchild=200) as pool:
        return [row for row in pool.imap_unordered(roundtrip, files, chunksize=1) if row is not None]


OUTCOMES = ("exact", "equivalent", "fallback", "wrong", "invalid", "crash", "timeout")


def summary(corpus: str, rows: list[Row]) -> dict[str, object]:
    counts: collections.Counter[str] = collections.Counter()
    for row in rows:
        counts.update(row.parts)
    total = sum(counts.values())
    timed = [row for row in rows if row.seconds]
    return {
        "python": platform.python_version(), "corpus": corpus, "modules": len(rows),
        "modules valid": sum(row.outcome == "ok" for row in rows), "code objects": total,
        **{name: counts[name] for name in OUTCOMES},
        "exact %": round(100 * counts["exact"] / max(1, total), 3),
        "lines %": round(100 * sum(row.mapped for row in rows) / max(1, sum(row.instructions for row in rows)), 3),
        "units": sum(row.units for row in timed),
        "units/s": round(sum(row.units for row in timed) / max(1e-9, sum(row.seconds for row in timed))),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", nargs="+", default=["stdlib"])
    parser.add_argument("--python", help="run with another interpreter (3.10 or later)")
    parser.add_argument("--limit", type=int, default=0, help="that many modules, chosen by the seed")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--show", type=int, default=12, help="how many classes of failure to print")
    parser.add_argument("--json", metavar="FILE", help="append the figures as one JSON line a corpus")
    parser.add_argument("--files", nargs="+", help="only these files")
    chosen = parser.parse_args()
    if chosen.python:
        arguments = [a for i, a in enumerate(sys.argv) if a != "--python" and sys.argv[i - 1] != "--python"]
        source = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "src")
        done = subprocess.run([chosen.python, *arguments], env={**os.environ, "PYTHONPATH": source})
        raise SystemExit(done.returncode)
    if chosen.files:
        warnings.simplefilter("ignore")
        for file in chosen.files:
            print(roundtrip(file))
        return
    for corpus in chosen.corpus:
        rows = measure(corpus, chosen.limit, chosen.seed, chosen.jobs)
        figures = summary(corpus, rows)
        print("  ".join(f"{key}: {value}" for key, value in figures.items()), flush=True)
        classes: dict[str, list[str]] = {}
        for row in rows:
            for reason, place in row.reasons:
                classes.setdefault(reason, []).append(place)
        ranked = sorted(classes.items(), key=lambda item: -len(item[1]))
        for reason, places in ranked[: chosen.show]:
            print(f"{len(places):6}  {reason}\n        {places[0]}")
        if chosen.json:
            with open(chosen.json, "a", encoding="utf-8") as file:
                file.write(json.dumps({**figures, "classes": [[len(p), r, p[0]] for r, p in ranked]}) + "\n")


if __name__ == "__main__":
    main()
