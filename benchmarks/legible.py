"""How the dumps of real models read, counted (``make legible``).

    python benchmarks/legible.py [--models bert llama ...] [--keep DIR] [--counted] [--write docs/measured/legible.md]

Each model of ``architectures.py`` runs on ``eager`` at two input lengths, all of them in one process, and once more in
a second one; a llama of 48 layers runs by itself. Counted are, in the files that were written,

* names and forms that only a compiler writes, in transformed and full code (``UGLY``);
* lines over 120 columns in all Python files but the modules that Inductor generated;
* lines of transformed code (whole files) and of full code, and of guards in the full code;
* proofs of the transformed functions, and the objects whose long form stays because a check on a live module failed;
* models of which ``depyf diff`` tells a difference between the two processes.

The exit status is 1 if a figure is missed.
"""

from __future__ import annotations

import argparse
import ast
import collections
import dataclasses
import itertools
import os
import pathlib
import platform
import re
import statistics
import sys
import tempfile
from collections.abc import Iterable

import identical_runs
import large_model
from _shared import dated, table
from architectures import ARCHITECTURES

LAYERS = 48
LARGE = f"llama_{LAYERS}_layers"
COLUMNS = 120
#: What stands only for the compiler's sake, or is a name that nobody gave.
UGLY = {
    "`tmp_N`": r"\btmp(_\d+)?\b", "`if False:`": r"\bif False\b", "`'key' or 0`": r"['\d\])] or 0\b",
    "`_modules[`": r"_modules\[", "`_parameters[`": r"_parameters\[", "`_buffers[`": r"_buffers\[",
    "`__import_x_dot_y`": r"__import_\w+_dot_",
    "`object_setattr_ignore_descriptor`": "object_setattr_ignore_descriptor",
    "ids of torch": r"_\d{10,}_c\d+"}
_COUNTED = {name: re.compile(pattern) for name, pattern in UGLY.items()}
_GUARDS = re.compile(r"guards?_\d+_for_\w+")
_LONG_FORM = "in torch's long form"
_NAMED = 6  # files that are named for each miss


@dataclasses.dataclass
class Dump:
    """What is counted of one dump. ``ugly`` and ``wide`` by file."""

    name: str
    ugly: dict[str, collections.Counter[str]] = dataclasses.field(default_factory=dict)
    wide: dict[str, int] = dataclasses.field(default_factory=dict)
    transformed: dict[str, int] = dataclasses.field(default_factory=dict)
    full: dict[str, int] = dataclasses.field(default_factory=dict)
    guards: dict[str, int] = dataclasses.field(default_factory=dict)
    fidelities: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    long_forms: list[str] = dataclasses.field(default_factory=list)
    difference: str = ""


@dataclasses.dataclass
class Figure:
    """One row of the result. ``met`` is ``None`` where nothing was there to count."""

    what: str
    measured: str
    wanted: str
    met: bool | None
    where: list[str] = dataclasses.field(default_factory=list)


def read(folder: pathlib.Path) -> Dump:
    dump = Dump(folder.name)
    for path in sorted(folder.glob("*.py")):
        text = path.read_text(encoding="utf-8", errors="surrogateescape")
        lines = text.splitlines()
        wide = sum(len(line) > COLUMNS for line in lines)
        if wide and ".kernel_" not in path.name:
            dump.wide[path.name] = wide
        transformed, full = (path.name.startswith(kind) for kind in ("__transformed_code_", "full_code_for_"))
        if not transformed and not full:
            continue
        dump.ugly[path.name] = collections.Counter({
            name: number for name, form in _COUNTED.items() if (number := len(form.findall(text)))})
        if transformed:
            dump.transformed[path.name] = len(lines)
            match = re.search(r"^# fidelity: (\w+)", text, re.M)
            dump.fidelities[match[1] if match else "unstated"] += 1
            dump.long_forms += [f"{dump.name}, {path.name}: {note}" for note in _notes(text) if _LONG_FORM in note]
        else:
            dump.full[path.name] = len(lines)
            dump.guards[path.name] = max((
                (node.end_lineno or node.lineno) - node.lineno + 1 for node in ast.parse(text).body
                if isinstance(node, ast.FunctionDef) and _GUARDS.fullmatch(node.name)), default=0)
    return dump


def _notes(text: str) -> list[str]:
    """What the header of transformed code says, note by note (lines are wrapped)."""
    header = itertools.takewhile(lambda line: line.startswith("#"), text.splitlines())
    return [note.strip() for note in " ".join(line.strip("# ") for line in header).split(";")]


def make_dumps(models: list[str], top: pathlib.Path) -> None:
    """Writes the dumps: ``first`` and ``second`` of each model, ``large``."""
    only = ["--only", *models] if models else []
    for which in ("first", "second"):
        (top / which).mkdir(parents=True, exist_ok=True)
        identical_runs.started([identical_runs.__file__, "--work", "models", str(top / which), *only])
    identical_runs.started([large_model.__file__, "--layers", str(LAYERS), "--backend", "eager", "--one",
                            str(top / "large" / LARGE)])


def dumps(top: pathlib.Path) -> list[Dump]:
    result = []
    for first in sorted((top / "first").iterdir(), key=lambda path: list(ARCHITECTURES).index(path.name)):
        dump = read(first)
        dump.difference = identical_runs.difference_of(first, top / "second" / first.name)
        result.append(dump)
    return result + [read(path) for path in sorted((top / "large").glob("*"))]


# --- figures --------------------------------------------------------------------------------------
def figures(models: list[Dump]) -> list[Figure]:
    small = [dump for dump in models if dump.name != LARGE]
    large = [dump for dump in models if dump.name == LARGE]
    bert = [dump for dump in small if dump.name == "bert"]
    rows = []
    for name in UGLY:
        places = {f"{dump.name}/{file}": numbers[name] for dump in models for file, numbers in dump.ugly.items()
                  if numbers[name]}
        rows.append(_none(f"{name} in transformed and full code", places))
    rows.append(_none(f"lines over {COLUMNS} columns in any `.py`, kernels aside", {
        f"{dump.name}/{file}": number for dump in models for file, number in dump.wide.items()}))
    # (a model counts with its longest file: that is the function whose graph has the layers)
    longest = {dump.name: max(dump.transformed.items(), key=lambda item: item[1])
               for dump in models if dump.transformed}
    of_small = {f"{name}/{file}": lines for name, (file, lines) in longest.items() if name != LARGE}
    middle = statistics.median(of_small.values()) if of_small else 0
    rows.append(Figure("lines of transformed code, median over the models", f"{middle:g}", "at most 45",
                       middle <= 45 if of_small else None, _most(of_small) if middle > 45 else []))
    rows.append(_most_lines("lines of transformed code, llama of 48 layers",
                            {f"{d.name}/{file}": n for d in large for file, n in d.transformed.items()}, 60))
    rows.append(_most_lines("lines of full code, tiny bert with one recompile",
                            {f"{d.name}/{file}": n for d in bert for file, n in d.full.items()}, 700))
    rows.append(_most_lines("lines of guards in the full code, a version",
                            {f"{d.name}/{file}": n for d in models for file, n in d.guards.items()}, 40))
    proofs = sum((dump.fidelities for dump in models), collections.Counter())
    good = proofs["exact"] + proofs["equivalent"]
    rows.append(Figure("transformed functions `exact` or `equivalent`", f"{good} of {sum(proofs.values())}", "all",
                       good == sum(proofs.values()) if proofs else None,
                       [d.name for d in models if set(d.fidelities) - {"exact", "equivalent"}]))
    differ = [dump.name for dump in small if dump.difference]
    rows.append(Figure("models of which two identical runs differ for `depyf diff`", f"{len(differ)} of {len(small)}",
                       "0", not differ if small else None, differ))
    return rows


def _none(what: str, places: dict[str, int]) -> Figure:
    return Figure(what, f"{sum(places.values()):,}", "0", not places, _most(places))


def _most_lines(what: str, lines: dict[str, int], limit: int) -> Figure:
    longest = max(lines.values(), default=0)
    return Figure(what, f"{longest:,}" if lines else "not run", f"at most {limit}",
                  longest <= limit if lines else None, _most({k: n for k, n in lines.items() if n > limit}))


def _most(places: dict[str, int]) -> list[str]:
    order = sorted(places.items(), key=lambda item: -item[1])
    left = len(order) - _NAMED
    return [f"`{place}` {number:,}" for place, number in order[:_NAMED]] + ([f"and {left} more"] if left > 0 else [])


def document(models: list[Dump], rows: list[Figure], command: str) -> str:
    import torch
    import transformers

    versions = f"Python {platform.python_version()}, torch {torch.__version__}, transformers {transformers.__version__}"
    names = {True: "yes", False: "NO", None: "not counted"}
    parts = [
        "# How dumps of real models read\n",
        f"{dated()}, {versions}, {os.cpu_count()} cores. Command: `{command}`.\n",
        f"{len([d for d in models if d.name != LARGE])} models of `benchmarks/architectures.py`, forward on `eager` at "
        f"two input lengths, and a llama of {LAYERS} layers, forward and backward. A file counts whole, with its "
        "header; a model counts with its longest transformed function.\n",
        table(("what", "found", "to reach", "met"), [(r.what, r.measured, r.wanted, names[r.met]) for r in rows])]
    missed = [row for row in rows if row.met is False]
    if missed:
        parts += ["## Missed\n", "\n".join(f"* {row.what}: {', '.join(row.where)}" for row in missed) + "\n"]
    kept = [line for dump in models for line in dump.long_forms]
    if kept:
        parts += ["## Where the long form stays\n",
                  "A check on the live module failed there.\n", "\n".join(f"* {line}" for line in kept) + "\n"]
    parts += ["## Models\n", table(
        ("model", "transformed functions", "longest, lines", "full code, lines", "guards of a version, lines",
         "compiler's names", f"over {COLUMNS} columns"),
        [(d.name, _sum(d.fidelities.values()), max(d.transformed.values(), default=0), _sum(d.full.values()),
          max(d.guards.values(), default=0), _sum(sum(each.values()) for each in d.ugly.values()),
          _sum(d.wide.values())) for d in models])]
    return "\n".join(parts)


def _sum(numbers: Iterable[int]) -> int:
    return sum(numbers)


def main() -> bool:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="*", default=[], metavar="NAME", help="these only (all if none is named)")
    parser.add_argument("--keep", metavar="DIR", help="where the dumps are left")
    parser.add_argument("--counted", action="store_true", help="count the dumps that lie in --keep already")
    parser.add_argument("--write", metavar="FILE", help="write the result there")
    chosen = parser.parse_args()
    unknown = set(chosen.models) - set(ARCHITECTURES)
    if unknown or chosen.counted and not chosen.keep:
        parser.error(f"unknown: {', '.join(sorted(unknown))}" if unknown else "--counted needs --keep")
    with tempfile.TemporaryDirectory(prefix="depyf_legible_") as temporary:
        top = pathlib.Path(chosen.keep or temporary).resolve()
        if not chosen.counted:
            make_dumps(chosen.models, top)
        measured = dumps(top)
    rows = figures(measured)
    text = document(measured, rows, " ".join(["python", *sys.argv]))
    print(text)
    if chosen.write:
        pathlib.Path(chosen.write).write_text(text, encoding="utf-8")
    return any(row.met is False for row in rows)


if __name__ == "__main__":
    sys.exit(main())
