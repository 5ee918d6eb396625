"""How well code of another Python version is decompiled: that version's own library, there and back.

    PYTHONPATH=src python benchmarks/foreign.py 3.8
    PYTHONPATH=src python benchmarks/foreign.py 3.7 --corpus tests --limit 200 --seed 1

The other interpreter compiles each module of its library; the host reads the ``.pyc`` and decompiles it; the
other interpreter compiles that text; the host reads the result and compares every code object with the
original (:func:`depyf.decompiler.proof.exact.same_code`). Nothing is executed except the two compilers.

Each code object is compared by itself (a nested one counts once, on its own). What a module's text cannot
be compiled with costs all of its code objects. Printed: modules, code objects, how many are exact,
modules whose text is invalid, modules at which we crashed, and classes of failure, largest first.
"""

from __future__ import annotations

import argparse
import collections
import pathlib
import random
import re
import sys
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field

from _shared import TooLong, code_objects, find_interpreter, time_limit

from depyf.bytecode.code import Code
from depyf.decompiler import decompile_code
from depyf.decompiler.proof.exact import same_code
from depyf.decompiler.proof.recompile import ForeignError, Interpreter
from depyf.decompiler.result import Options, Tiers
from depyf.decompiler.scopes import top_level

#: Modules handed to one process of the other interpreter.
CHUNK = 12


@dataclass
class Score:
    """Figures of some modules; they add up."""

    modules: int = 0
    codes: int = 0
    exact: int = 0
    invalid: int = 0
    crashes: int = 0
    #: class of failure -> places
    classes: dict[str, list[str]] = field(default_factory=dict)

    def fail(self, what: str, where: str, count: int = 1) -> None:
        self.classes.setdefault(what, []).extend([where] * count)

    def add(self, other: Score) -> None:
        for name in ("modules", "codes", "exact", "invalid", "crashes"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for what, places in other.classes.items():
            self.classes.setdefault(what, []).extend(places)


def library(interpreter: pathlib.Path, version: str) -> pathlib.Path:
    for folder in (interpreter.parents[1] / "lib", interpreter.resolve().parents[1] / "lib"):
        if (folder / f"python{version}" / "os.py").exists():
            return folder / f"python{version}"
    raise SystemExit(f"{interpreter} has no library beside it")


def corpus(base: pathlib.Path, which: str) -> list[pathlib.Path]:
    """The library without its tests, or its tests."""
    def is_test(path: pathlib.Path) -> bool:
        parts = path.relative_to(base).parts[:-1]
        return any(part in ("test", "tests", "idle_test") for part in parts)

    files = [path for path in sorted(base.rglob("*.py")) if "site-packages" not in path.parts]
    return [path for path in files if is_test(path) == (which == "tests")]


def by_name(a: Code, b: Code) -> Iterator[tuple[Code, Code | None]]:
    """Code objects in the original with those of the same name in the result."""
    left = [c for c in b.consts if isinstance(c, Code)]
    for code in a.consts:
        if isinstance(code, Code):
            match = next((c for c in left if c.name == code.name), None)
            if match is not None:
                left.remove(match)
            yield code, match


def reason(code: Code, where: str) -> str:
    """The class of a failure: why there is no structured form, or what differs."""
    if not code.name.startswith("<") and code.flags & 1:
        try:
            top_level(code, Options(Tiers(code)))
        except Exception as error:  # whatever it is, it is counted
            return f"{type(error).__name__}: {str(error)[:70]}"
    text = where.partition(": ")[2] or where
    return "different: " + re.sub(r" at offset \d+|'[^']*'|-> \d+|\d+", "*", text)[:70]


def measure(path: pathlib.Path, files: list[pathlib.Path], base: pathlib.Path, seconds: int) -> Score:
    """The score of some modules."""
    warnings.simplefilter("ignore")
    sys.setrecursionlimit(max(sys.getrecursionlimit(), 5000))
    interpreter = Interpreter(path)
    score = Score()
    originals = compiled(interpreter, [(str(file), file.read_bytes()) for file in files])
    texts: list[tuple[str, str]] = []
    done: list[Code] = []
    for file, original in zip(files, originals):
        name = str(file.relative_to(base))
        if isinstance(original, ForeignError):
            continue  # not a module of this version (2to3's samples, bad_coding)
        score.modules += 1
        try:
            with time_limit(seconds):
                text = decompile_code(original, verify=False).text
        except (Exception, TooLong) as error:  # whatever goes wrong is counted
            count = sum(1 for _ in code_objects(original))
            score.codes += count
            score.crashes += 1
            score.fail(f"CRASH {type(error).__name__}: {str(error)[:90]}", name, count)
            continue
        texts.append((name, text))
        done.append(original)
    for (name, _), original, result in zip(texts, done, compiled(interpreter, texts)):
        if isinstance(result, ForeignError):
            count = sum(1 for _ in code_objects(original))
            score.codes += count
            score.invalid += 1
            score.fail(f"INVALID {re.sub(r'[(].*', '', str(result))[:90]}", f"{name} {result}", count)
            continue
        compare(original, result, name, score)
    return score


def compiled(interpreter: Interpreter, texts: list[tuple[str, bytes]] | list[tuple[str, str]]) -> list[
    Code | ForeignError
]:
    """The code of each text, or why there is none."""
    answers: list[Code | ForeignError] = []
    for name, text in texts:
        try:
            answers.append(interpreter.compile(text, name))
        except ForeignError as error:
            answers.append(error)
    return answers


def compare(original: Code, result: Code, name: str, score: Score) -> None:
    """Each code object by itself; what an exact one holds and never loads is lost, and missed by nobody."""
    work: list[tuple[Code, Code | None]] = [(original, result)]
    seen: set[Code] = set()
    while work:
        code, other = work.pop()
        if code in seen:
            continue
        seen.add(code)
        score.codes += 1
        where = "it is not there"
        if other is not None:
            try:
                verdict, inside = same_code(code, other)
            except Exception as error:  # code that cannot be read is counted, too
                where = f"{type(error).__name__}: {error}"
            else:
                if verdict:
                    score.exact += 1
                    work += [(getattr(x, "code", x), getattr(y, "code", y)) for x, y, _ in inside]
                    continue
                where = verdict.where
            work += by_name(code, other)
        else:
            work += [(c, None) for c in code.consts if isinstance(c, Code)]
        score.fail(reason(code, where), f"{name}:{code.firstlineno} {code.name}: {where}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("version", help="3.7, 3.8, ...")
    parser.add_argument("--interpreter", type=pathlib.Path, help="instead of the one found under pyenv or on PATH")
    parser.add_argument("--corpus", choices=("stdlib", "tests"), default="stdlib")
    parser.add_argument("--limit", type=int, default=0, help="only so many modules, by chance")
    parser.add_argument("--seed", type=int, default=0, help="of that chance")
    parser.add_argument("--only", default="", help="only modules whose path holds this")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--seconds", type=int, default=60, help="for one module; longer counts as a crash")
    parser.add_argument("--show", type=int, default=20, help="how many classes of failure to print")
    parser.add_argument("--places", type=int, default=1, help="how many places of each")
    given = parser.parse_args()
    path = given.interpreter or find_interpreter(given.version)
    if path is None:
        print(f"there is no Python {given.version} here")
        return 2
    base = library(path, given.version)
    files = [file for file in corpus(base, given.corpus) if given.only in str(file.relative_to(base))]
    random.Random(given.seed).shuffle(files)
    files = files[: given.limit or None]
    started = time.perf_counter()
    score = Score()
    chunks = [files[at : at + CHUNK] for at in range(0, len(files), CHUNK)]
    with ProcessPoolExecutor(given.jobs) as pool:
        for part in [pool.submit(measure, path, chunk, base, given.seconds) for chunk in chunks]:
            score.add(part.result())
    print(f"Python {given.version}, {given.corpus}: {score.modules} modules, {score.codes} code objects, "
          f"{100 * score.exact / max(1, score.codes):.2f} % exact ({score.codes - score.exact} not), "
          f"{score.invalid} invalid, {score.crashes} crashes, {time.perf_counter() - started:.0f} s")
    rng = random.Random(given.seed)
    for what, places in collections.Counter({w: len(p) for w, p in score.classes.items()}).most_common(given.show):
        shown = score.classes[what]
        shown = rng.sample(shown, min(len(shown), given.places))
        print(f"{places:6} {what}", *(f"           {place[:200]}" for place in shown), sep="\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
