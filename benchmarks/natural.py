"""How far decompiled text is what its author wrote, as trees (``make natural``).

    python benchmarks/natural.py [--versions 3.11 ...] [--packages networkx ...] [--modes whole lines none]
                                 [--modules N] [--seed S] [--jobs N] [--only PART] [--examples FILE]
                                 [--write docs/measured/natural.md]

Each module of the standard library of each interpreter (and of packages, on the running one) is compiled by that
interpreter and decompiled with proof, whole, as ``depyf decompile`` does.  For each function (those inside others
belong to these) the source's tree and the text's are normalised for what bytecode does not hold
(``as_written/normalise.py``) and compared.  *As written*: they are equal.  *Like lines*: the mean ratio of ``difflib``
over their unparsed lines.  *check*: the same for the source unparsed and parsed again, which must be 100 %.

Modes: ``whole`` as compiled; ``lines`` without columns; ``none`` without lines and columns (``code.replace``).  Code of
3.7 to 3.9 is read on this interpreter, ``whole`` only.  3.14 is Pyodide, if ``PYODIDE`` names its folder (see
``scripts/python314.mjs``), with the library that it has.  Nothing is executed but compilers.

``--examples FILE`` writes the classes of difference with the smallest functions of each (Markdown; all differences as
JSON lines if its name ends in ``.jsonl``).
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import inspect
import json
import multiprocessing
import os
import pathlib
import platform
import random
import subprocess
import sys
import tempfile
import warnings
import zipfile
from typing import Any

from _shared import dated, find_interpreter, table, write_between
from as_written.measure import UGLY, Module, Row, measure
from as_written.normalise import RULES
from as_written.stripped import MODES
from roundtrip import corpus_files

import foreign
from depyf.decompiler.proof.recompile import ForeignError, Interpreter

HERE = pathlib.Path(__file__).parent
SMALLEST = 3  # examples of each class
SHOWN = 25  # classes in the document
CHUNK = 12


@dataclasses.dataclass(frozen=True)
class Task:
    """Modules of one corpus in one mode; ``interpreter`` if they are of another version."""

    files: tuple[str, ...]
    mode: str
    interpreter: str = ""


@dataclasses.dataclass
class Figures:
    """What was found in one corpus with one interpreter in one mode."""

    python: str
    corpus: str
    mode: str
    rows: list[Row]
    modules: int = 0
    ugly: dict[str, int] = dataclasses.field(default_factory=dict)
    author_ugly: dict[str, int] = dataclasses.field(default_factory=dict)

    @property
    def as_written(self) -> float:
        return 100 * sum(not row.kind for row in self.rows) / max(1, len(self.rows))

    @property
    def like_lines(self) -> float:
        return 100 * sum(row.like for row in self.rows) / max(1, len(self.rows))

    @property
    def check(self) -> float:
        return 100 * sum(row.checked for row in self.rows) / max(1, len(self.rows))


# --- with the running interpreter -----------------------------------------------------------------
def work(task: Task) -> list[Module]:
    """The modules of a task; those that are not Python of the version are left out."""
    warnings.simplefilter("ignore")
    sys.setrecursionlimit(max(sys.getrecursionlimit(), 5000))
    texts = [(file, pathlib.Path(file).read_bytes()) for file in task.files]
    interpreter = Interpreter(task.interpreter) if task.interpreter else None
    codes = foreign.compiled(interpreter, texts) if interpreter else [_compiled(*text) for text in texts]
    found = []
    for (file, text), code in zip(texts, codes):
        if code is not None and not isinstance(code, ForeignError):
            try:
                found.append(measure(file, code, text, task.mode, interpreter))
            except (SyntaxError, RecursionError):  # a source that the running interpreter does not read
                continue
    return found


def _compiled(file: str, text: bytes) -> Any:
    try:
        return compile(text, file, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError):
        return None


def here(chosen: argparse.Namespace) -> list[Figures]:
    """The figures of the running interpreter (or of the other one whose code it reads)."""
    result = []
    for corpus in chosen.corpus:
        if chosen.foreign:
            base = foreign.library(pathlib.Path(chosen.foreign), chosen.version)
            files, python = [str(path) for path in foreign.corpus(base, corpus)], chosen.version
        else:
            files, python = corpus_files(corpus), platform.python_version()
        files = [file for file in files if chosen.only in file]
        if chosen.modules:
            files = random.Random(chosen.seed).sample(files, min(chosen.modules, len(files)))
        for mode in chosen.modes:
            if mode == "lines" and sys.version_info < (3, 11):
                continue  # (that is what the version has)
            size = CHUNK if chosen.foreign else 1
            tasks = [Task(tuple(files[at:at + size]), mode, chosen.foreign) for at in range(0, len(files), size)]
            figures = Figures(python, corpus, mode, [])
            ugly: collections.Counter[str] = collections.Counter()
            author_ugly: collections.Counter[str] = collections.Counter()
            for done in _in_processes(tasks, chosen.jobs):
                for module in done:
                    figures.modules += 1
                    figures.rows += module.rows
                    ugly.update(module.ugly)
                    author_ugly.update(module.author_ugly)
            figures.ugly, figures.author_ugly = dict(ugly), dict(author_ugly)
            result.append(figures)
    return result


def _in_processes(tasks: list[Task], jobs: int) -> Any:
    if jobs < 2:
        yield from map(work, tasks)
        return
    with multiprocessing.get_context("spawn").Pool(jobs, maxtasksperchild=200) as pool:
        yield from pool.imap_unordered(work, tasks, chunksize=1)


# --- with all of them -----------------------------------------------------------------------------
def with_interpreter(version: str, corpus: list[str], chosen: argparse.Namespace) -> list[Figures]:
    """The figures of a version, from a process of it; none if it is not on the machine."""
    pyodide = os.environ.get("PYODIDE") if version == "3.14" else None
    found = find_interpreter(version) if version and not pyodide else pathlib.Path(sys.executable)
    if found is None:
        print(f"Python {version} is not on this machine: left out", file=sys.stderr)
        return []
    old = version and tuple(map(int, version.split("."))) < (3, 10)
    command, modes = [sys.executable if old else str(found)], ["whole"] if old else chosen.modes
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "figures.json")
        jobs = chosen.jobs
        if pyodide:
            library = os.path.join(folder, "python3.14")
            with zipfile.ZipFile(os.path.join(pyodide, "python_stdlib.zip")) as packed:
                packed.extractall(library, [name for name in packed.namelist() if "pyodide/" not in name])
            command = ["node", str(HERE.parent / "scripts" / "python314.mjs"), "--mount", folder]
            corpus, jobs = [library], 1
        subprocess.run(
            [*command, __file__, "--here", file, "--corpus", *corpus, "--modes", *modes,
             "--modules", str(chosen.modules), "--seed", str(chosen.seed), "--jobs", str(jobs), "--only", chosen.only,
             *(["--foreign", str(found), "--version", version] if old else [])],
            env={**os.environ, "PYTHONPATH": str(HERE.parent / "src")}, check=True)
        with open(file, encoding="utf-8") as stream:
            figures = [Figures(**{**each, "rows": [Row(**row) for row in each["rows"]]}) for each in json.load(stream)]
    for each in figures:
        each.corpus = "stdlib" if pyodide else each.corpus
    return figures


def classes(rows: list[Row]) -> list[tuple[str, list[Row]]]:
    """The rows that differ by class, the largest class first, the smallest functions first in each."""
    by_class: dict[str, list[Row]] = collections.defaultdict(list)
    for row in rows:
        if row.kind:
            by_class[row.kind].append(row)
    for same_kind in by_class.values():
        same_kind.sort(key=lambda row: (not row.source, row.lines, row.file, row.line))
    return sorted(by_class.items(), key=lambda item: (-len(item[1]), item[0]))


def summary(found: list[Figures]) -> str:
    return table(
        ("Python", "corpus", "positions", "modules", "functions", "as written", "like lines", "check",
         *(f"{name} (author's)" for name in UGLY)),
        [(f.python, f.corpus, f.mode, f.modules, len(f.rows), f"{f.as_written:.2f} %", f"{f.like_lines:.2f} %",
          f"{f.check:.2f} %", *(f"{f.ugly.get(name, 0)} ({f.author_ugly.get(name, 0)})" for name in UGLY))
         for f in found])


def examples(found: list[Figures]) -> str:
    """The classes with the smallest functions of each, as Markdown."""
    parts = []
    for figures in found:
        ranked = classes(figures.rows)
        parts.append(f"# Python {figures.python}, {figures.corpus}, positions: {figures.mode}\n")
        parts.append(summary([figures]))
        parts.append(table(("functions", "class"), [(len(rows), name) for name, rows in ranked]))
        for name, rows in ranked:
            parts.append(f"## {name} ({len(rows)})\n")
            for row in [row for row in rows if row.source][:SMALLEST]:
                parts.append(f"`{row.file}:{row.line}` {row.name}\n\n```python\n# as written\n{row.source}\n\n"
                             f"# decompiled\n{row.ours}\n```\n")
    return "\n".join(parts)


def write_examples(path: str, found: list[Figures]) -> None:
    with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
        if not path.endswith(".jsonl"):
            file.write(examples(found))
            return
        for figures in found:
            for row in figures.rows:
                if row.kind:
                    file.write(json.dumps({"python": figures.python, "corpus": figures.corpus, "mode": figures.mode,
                                           **dataclasses.asdict(row)}) + "\n")


def document(found: list[Figures], command: str, modules: int) -> str:
    which = f"{modules} modules of each, chosen by a seed" if modules else "all modules"
    first = found[0].mode if found else MODES[0]
    rows = [row for figures in found if figures.mode == first for row in figures.rows]
    python = {id(row): figures.python for figures in found for row in figures.rows}
    ranked = classes(rows)
    shown = [(len(same_kind), name, f"`{_short(same_kind[0].file)}:{same_kind[0].line}` {same_kind[0].name} "
              f"({python[id(same_kind[0])]})")
             for name, same_kind in ranked[:SHOWN]]
    if len(ranked) > SHOWN:
        left = ranked[SHOWN:]
        shown.append((sum(len(same_kind) for _, same_kind in left), f"{len(left)} others", ""))
    return "\n".join([
        f"{dated()}, {which}. Command: `{command}`.\n", summary(found),
        f"Functions that differ (positions: {first}), by their first difference, with the smallest function of each:\n",
        table(("functions", "class: as written vs decompiled", "place"), shown),
        "What is normalised in both trees, because bytecode and positions do not hold it:\n",
        "".join(f"* {inspect.cleandoc(rule.__doc__ or '')}\n" for rule in RULES)])


def _short(file: str) -> str:
    for mark in ("site-packages/", "/python3."):
        if mark in file:
            rest = file.split(mark)[-1]
            return rest.split("/", 1)[-1] if mark.startswith("/python") else rest
    return file


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--versions", nargs="*", default=["3.10", "3.11", "3.12", "3.13"])
    parser.add_argument("--packages", nargs="*", default=[], help="installed ones, or folders")
    parser.add_argument("--modes", nargs="+", choices=MODES, default=["whole"])
    parser.add_argument("--modules", type=int, default=0, help="that many of each, chosen by the seed (0: all)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", default="", help="only files whose path holds this")
    parser.add_argument("--examples", metavar="FILE")
    parser.add_argument("--write", metavar="FILE")
    # (what a process of one interpreter is asked)
    parser.add_argument("--here", metavar="FILE", help=argparse.SUPPRESS)
    parser.add_argument("--corpus", nargs="+", default=["stdlib"], help=argparse.SUPPRESS)
    parser.add_argument("--foreign", default="", help=argparse.SUPPRESS)
    parser.add_argument("--version", default="", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.write and not os.path.isfile(chosen.write):
        parser.error(f"--write {chosen.write}: there is no such document to put the figures in")
    if chosen.here:
        with open(chosen.here, "w", encoding="utf-8") as file:
            json.dump([dataclasses.asdict(figures) for figures in here(chosen)], file)
        return
    found = [figures for version in chosen.versions for figures in with_interpreter(version, ["stdlib"], chosen)]
    if chosen.packages:
        found += with_interpreter("", chosen.packages, chosen)
    if chosen.examples:
        write_examples(chosen.examples, found)
    text = document(found, " ".join(["python", *sys.argv]), chosen.modules)
    print(text)
    if chosen.write:
        write_between(pathlib.Path(chosen.write), "figures", text)


if __name__ == "__main__":
    main()
