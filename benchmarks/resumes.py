"""How far resume functions read like the user's lines that they continue (``make natural``).

    python benchmarks/resumes.py [--models NAME ...] [--programs FILE ...] [--keep FOLDER] [--examples FILE]
                                 [--write docs/measured/natural.md]

Where the graph breaks, Dynamo makes a function of the rest of the user's, from bytecode. The dump shows its text. Here
programs run under ``prepare_debug`` on ``eager``: those of ``tests/zoo``, models of transformers whose graphs break
(``architectures.py``), and ``--programs``. The text of each resume function, as the dump has it, is compared with the
rest of the function that it continues, as its author wrote it (``as_written/continuation.py``):

* The rest is told by the line of the break alone. That does not say what of its statement was done; of the ways to go
  on (it is finished; it is done with values at hand; either branch of a test; what is left of a test) the one that is
  most like the text counts. A break inside ``with`` goes on inside a ``with``.
* The names of what lay on the stack (``___stack0``) in the first statement count as the user's expression in their
  place, and so does the context manager that torch enters again. No text could have these. Everything else counts.
* What calls the resume function of an inlined function (``__nested_resume_fns``) is torch's, and its result is such a
  value. A ``while`` that goes on behind its test is ``while True`` with the test at the end: there is no other form.
* Both are normalised as in ``natural.py``. The line of ``def``, which is torch's, and ``global`` and ``nonlocal``,
  which stand before the break, are left out.

*Like lines*: the mean ratio of ``difflib`` over the unparsed lines; a function in a dispatch loop counts as it is. *As
written*: the trees are equal. Resume functions of one text at one place count once; those behind which nothing is left
of the user's function are left out.
"""

from __future__ import annotations

import argparse
import ast
import collections
import contextlib
import copy
import dataclasses
import difflib
import io
import os
import pathlib
import runpy
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator

from _shared import dated, table, write_between
from as_written.classes import difference
from as_written.continuation import continuations, function_at, with_user_words
from as_written.measure import lines
from as_written.normalise import Function, normalise

from depyf.records.model import Frame
from depyf.records.store import read

HERE = pathlib.Path(__file__).resolve().parent
MARK = "resume functions"
RESUME = "torch_dynamo_resume_in_"
#: Models of ``architectures.py`` whose graphs break.
BREAKING = ("bigbird", "deberta", "llava", "longformer", "reformer", "segformer", "switch-transformers", "vilt")
SHOWN = 15


@dataclasses.dataclass
class Row:
    """One resume function beside the rest of the user's function."""

    corpus: str
    place: str
    name: str
    fidelity: str
    kind: str
    like: float
    source: str
    ours: str


# --- running programs (a process of its own) ------------------------------------------------------
def run_programs(folder: str, corpus: str, names: list[str]) -> None:
    """Run what belongs to a corpus, each in a dump of its own."""
    import torch

    import depyf
    warnings.simplefilter("ignore")
    for name, call in _calls(corpus, names):
        torch._dynamo.reset()
        torch.manual_seed(0)
        with contextlib.redirect_stdout(io.StringIO()), depyf.prepare_debug(os.path.join(folder, name)):
            try:
                call()
            except (Exception, SystemExit):  # (Some programs of the zoo end so.)
                continue


def _calls(corpus: str, names: list[str]) -> Iterator[tuple[str, Callable[[], object]]]:
    if corpus == "zoo":
        sys.path[:0] = [str(HERE.parent / "tests" / "zoo")]
        from programs import PROGRAMS, Compiled
        for name, program in PROGRAMS.items():
            yield name, lambda: program(Compiled("eager"))
    elif corpus == "transformers":
        import torch
        from architectures import ARCHITECTURES, LENGTHS
        for name in names:
            architecture = ARCHITECTURES[name]
            model = architecture.make().eval()

            def call() -> None:
                with torch.no_grad():
                    compiled = torch.compile(model, backend="eager")
                    for length in LENGTHS:
                        compiled(**architecture.inputs(length))
            yield name, call
    else:
        for name in names:
            def call() -> None:
                sys.argv = [name, "--backend", "eager"]
                runpy.run_path(name, run_name="__main__")
            yield pathlib.Path(name).stem, call


# --- comparing ------------------------------------------------------------------------------------
def resume_functions(folder: pathlib.Path) -> Iterator[Frame]:
    """The resume functions that the dumps of a folder show."""
    for file in sorted(folder.glob("*/records.jsonl")):
        for function in read(str(file)).functions:
            yield from (frame for frame in function.frames if frame.code_name.startswith(RESUME))


def rows_of(corpus: str, folder: pathlib.Path) -> list[Row]:
    found: dict[tuple[str, int, str], Row] = {}
    trees: dict[str, ast.Module] = {}
    for frame in resume_functions(folder):
        place = frame.location
        text = frame.original.text
        if place is None or not pathlib.Path(place.filename).exists():
            continue
        key = place.filename, place.line, text.partition("\n")[2]
        if key in found:
            continue
        if place.filename not in trees:
            trees[place.filename] = ast.parse(pathlib.Path(place.filename).read_bytes())
        made = compared(corpus, frame, trees[place.filename])
        if made is not None:
            found[key] = made
    return list(found.values())


def compared(corpus: str, frame: Frame, tree: ast.Module) -> Row | None:
    """A resume function beside the closest way in which the user's function may go on."""
    assert frame.location is not None
    user = function_at(tree, frame.location.line)
    if user is None:
        return None
    ours = ast.parse(frame.original.text).body[0]
    assert isinstance(ours, Function)
    given = frozenset(name for name in frame.arguments if name.startswith("___stack"))
    ours.body, torchs = _of_the_user(ours.body)
    given |= torchs
    ways = continuations(user, frame.location.line)
    if not ours.body and [] in ways:
        return None
    best: Row | None = None
    for way in filter(None, ways):
        source, text = _as_function(copy.deepcopy(way)), copy.deepcopy(ours)
        text.body = with_user_words(text.body, source.body, given)
        source, text = normalise(source, sys.version_info[:2]), normalise(_as_function(text.body), sys.version_info[:2])
        kind = difference(source, text)
        left, right = lines(source)[1:], lines(text)[1:]
        ratio = difflib.SequenceMatcher(None, left, right, autojunk=False).ratio() if kind else 1.0
        if best is None or ratio > best.like:
            place = f"{frame.location.filename}:{frame.location.line}"
            best = Row(corpus, place, frame.title or frame.name, frame.original.fidelity, kind, ratio, "\n".join(left),
                       "\n".join(right))
    return best


def _of_the_user(body: list[ast.stmt]) -> tuple[list[ast.stmt], frozenset[str]]:
    """The statements of a text without those that are only torch's, and the names that these bind."""
    called = tuple(f"__nested_{what}" for what in ("resume_fns", "frame_values"))
    kept, names = [], set()
    for stmt in body:
        inside = [node for node in ast.walk(stmt) if isinstance(node, ast.Name)]
        if any(node.id in called for node in inside):
            names |= {node.id for node in inside if isinstance(node.ctx, ast.Store)}
        elif not isinstance(stmt, ast.Pass | ast.Global | ast.Nonlocal):
            kept.append(stmt)
    return kept, frozenset(names)


def _as_function(body: list[ast.stmt]) -> ast.FunctionDef:
    made = ast.parse("def f(): pass").body[0]
    assert isinstance(made, ast.FunctionDef)
    made.body = body
    return made


# --- with all of them -----------------------------------------------------------------------------
def summary(rows: list[Row]) -> str:
    by_corpus = collections.defaultdict(list)
    for row in rows:
        by_corpus[row.corpus].append(row)
    return table(("programs", "resume functions", "as written", "like lines", "in a dispatch loop"), [
        (corpus, len(of), f"{100 * sum(not row.kind for row in of) / len(of):.1f} %",
         f"{100 * sum(row.like for row in of) / len(of):.2f} %", sum(row.fidelity == "fallback" for row in of))
        for corpus, of in [*by_corpus.items(), ("all", rows)]])


def document(rows: list[Row], command: str) -> str:
    kinds = collections.Counter(row.kind for row in rows if row.kind)
    first = {row.kind: row for row in sorted(rows, key=lambda row: -len(row.source))}
    return "\n".join([
        f"{dated()}. Command: `{command}`.\n", summary(rows),
        "Those that differ, by their first difference:\n",
        table(("functions", "class: as written vs decompiled", "place"), [
            (count, kind, f"`{_short(first[kind].place)}` {first[kind].name}")
            for kind, count in kinds.most_common(SHOWN)])])


def _short(place: str) -> str:
    for mark in ("site-packages/", f"{HERE.parent}/"):
        place = place.partition(mark)[2] or place
    return place


def examples(rows: list[Row]) -> str:
    return "\n".join(f"{row.place} {row.name} ({row.corpus}, {row.fidelity}): {row.kind}, {row.like:.2f}\n\n"
                     f"# as written\n{row.source}\n\n# decompiled\n{row.ours}\n\n" for row in rows if row.kind)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="*", default=list(BREAKING))
    parser.add_argument("--programs", nargs="*", default=[], help="run with --backend eager")
    parser.add_argument("--keep", metavar="FOLDER", help="of the dumps; those that are there are not made again")
    parser.add_argument("--examples", metavar="FILE")
    parser.add_argument("--write", metavar="FILE")
    parser.add_argument("--work", nargs="+", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.work:
        run_programs(chosen.work[0], chosen.work[1], chosen.work[2:])
        return
    rows = []
    with tempfile.TemporaryDirectory() as own:
        top = pathlib.Path(chosen.keep or own)
        for corpus, names in (("zoo", []), ("transformers", chosen.models), ("programs", chosen.programs)):
            if corpus != "zoo" and not names:
                continue
            if not (top / corpus).exists():
                subprocess.run(
                    [sys.executable, __file__, "--work", str(top / corpus), corpus, *names], check=True,
                    env={**os.environ, "PYTHONPATH": str(HERE.parent / "src")}, stderr=subprocess.DEVNULL)
            rows += rows_of(corpus, top / corpus)
    if chosen.examples:
        pathlib.Path(chosen.examples).write_text(examples(rows), encoding="utf-8")
    text = document(rows, " ".join(["python", *sys.argv]))
    print(text)
    if chosen.write:
        write_between(pathlib.Path(chosen.write), MARK, text)


if __name__ == "__main__":
    main()
