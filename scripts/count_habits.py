"""Count the forms of ``if`` that people write, for ``depyf.decompiler.structure.habits``.

    python scripts/count_habits.py FOLDER... [--write]

Each folder is a package or a library of sources (tests are left out). What is counted, by what the statements look
like (``habits.looks``):

* ``else``, ``elif``: the branch of an ``if`` never falls off its end, and something follows: is that in an ``else``
  (an ``elif``), or behind the ``if``? Once with the number of lines between them, once without;
* ``join``: the branch falls off its end as the suite around it does: is the rest in an ``else``, or does the branch end
  in a ``return`` or ``continue``?
* ``guard``: all statements to the end of a suite are in an ``if``, or behind an ``if`` that only leaves.

``--write`` writes ``habit_counts.py``.
"""

from __future__ import annotations

import argparse
import ast
import collections
import pathlib
import random
import sys
import warnings
from collections.abc import Iterator

HERE = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(HERE / "src"))

FILE = HERE / "src/depyf/decompiler/structure/habit_counts.py"
if not FILE.exists():
    FILE.write_text("HABITS = {}\n")

from depyf.decompiler.lift.negation import negate  # noqa: E402
from depyf.decompiler.structure.habits import Key, leaves, looks  # noqa: E402

FILES = 600  # of each folder, by chance
FEWEST = 8

Counts = dict[str, dict[Key, collections.Counter[str]]]


class Count:
    """The counts of some sources."""

    def __init__(self) -> None:
        self.counts: Counts = {name: collections.defaultdict(collections.Counter)
                               for name in ("else", "elif", "join", "guard")}

    def add(self, question: str, key: Key, answer: str) -> None:
        self.counts[question][key][answer] += 1

    def suite(self, stmts: list[ast.stmt], end: str) -> None:
        """Count in a suite; ``end`` is what falling off it does."""
        stmts = list(stmts)
        at = 0
        while at < len(stmts):
            stmt = stmts[at]
            if isinstance(stmt, ast.If):
                if leaves(stmt.body) != "falls":
                    self.leaving(stmts, at, end)
                elif at + 1 == len(stmts) and end:
                    self.falling(stmt, end)
            at += 1
        for at, stmt in enumerate(stmts):
            self.inside(stmt, end if at + 1 == len(stmts) else "")

    def leaving(self, stmts: list[ast.stmt], at: int, end: str) -> None:
        stmt = stmts[at]
        assert isinstance(stmt, ast.If)
        rest = [*stmt.orelse, *stmts[at + 1:]]
        if not rest:
            return
        is_if = isinstance(rest[0], ast.If)
        if is_if:
            is_elif = len(stmt.orelse) == 1  # (One ``if`` in an ``else`` is the same tree.)
            answer = "elif" if is_elif else "else" if stmt.orelse else "rest"
        else:
            answer = "else" if stmt.orelse else "rest"
        question = "elif" if is_if else "else"
        room = max(0, rest[0].lineno - max(each.end_lineno or 0 for each in stmt.body) - 1)
        if is_if or room:
            self.add(question, looks(question, stmt, rest, room), answer)
        self.add(question, looks(question, stmt, rest), answer)
        last = stmt.body[-1]
        if end and not stmt.orelse and leaves(rest) == "falls" and (
                isinstance(last, ast.Continue) if end == "continue" else leaves(stmt.body) == "return"):
            if len(stmt.body) == 1:
                turned = ast.If(negate(stmt.test), rest, [])
                self.add("guard", (end, *looks("guard", turned, rest)), "guard")
            else:
                inner = ast.If(stmt.test, stmt.body[:-1], [])
                self.add("join", (end, *looks("join", inner, rest)), "guard")
        stmts[at + 1:] = rest
        stmts[at] = ast.If(stmt.test, stmt.body, [])

    def falling(self, stmt: ast.If, end: str) -> None:
        if stmt.orelse and leaves(stmt.orelse) == "falls":
            self.add("join", (end, *looks("join", stmt, stmt.orelse)), "else")
        elif not stmt.orelse:
            self.add("guard", (end, *looks("guard", stmt, stmt.body)), "nested")

    def inside(self, stmt: ast.stmt, end: str) -> None:
        if isinstance(stmt, (ast.FunctionDef, ast.AsyncFunctionDef)):
            end = "return"
        elif isinstance(stmt, ast.ClassDef):
            end = ""
        loop = isinstance(stmt, (ast.For, ast.AsyncFor, ast.While))
        for field in ("body", "orelse", "finalbody"):
            part = getattr(stmt, field, None)
            if part:
                self.suite(part, "continue" if loop and field == "body" else "" if field == "finalbody" else end)
        for part in (*getattr(stmt, "handlers", ()), *getattr(stmt, "cases", ())):
            self.suite(part.body, end)


def sources(folder: str) -> Iterator[pathlib.Path]:
    files = sorted(file for file in pathlib.Path(folder).rglob("*.py") if "/test" not in str(file))
    return iter(random.Random(1).sample(files, min(FILES, len(files))))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+")
    parser.add_argument("--write", action="store_true")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    count = Count()
    for folder in chosen.folders:
        for file in sources(folder):
            try:
                tree = ast.parse(file.read_bytes())
            except (SyntaxError, ValueError):
                continue
            count.suite(tree.body, "")
    for question, keys in count.counts.items():
        right = sum(max(answers.values()) for answers in keys.values())
        total = sum(sum(answers.values()) for answers in keys.values())
        print(f"{question}: {total} counted, {len(keys)} looks, {100 * right / max(1, total):.1f} % as most write")
    if chosen.write:
        write(count.counts)


def write(counts: Counts) -> None:
    lines = ['"""Which form is written most; made by ``scripts/count_habits.py``."""', "",
             "#: By question and the beginning of what the statements look like: the answer, where it is not that of a",
             "#: shorter beginning, and in how many of how many cases it was so.",
             "HABITS: dict[str, dict[tuple[str, ...], tuple[str, int, int]]] = {"]
    for question, keys in counts.items():
        lines.append(f'    "{question}": {{')
        for key, (answer, cases, total) in answers_of(keys).items():
            shown = ", ".join(f'"{part}"' for part in key) + ("," if len(key) == 1 else "")
            lines.append(f'        ({shown}): ("{answer}", {cases}, {total}),')
        lines.append("    },")
    FILE.write_text("\n".join([*lines, "}", ""]), encoding="utf-8")


def answers_of(keys: dict[Key, collections.Counter[str]]) -> dict[Key, tuple[str, int, int]]:
    """Return the beginnings of keys whose answer differs from that of the next shorter one that is kept."""
    by_beginning: dict[Key, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for key, answers in keys.items():
        for length in range(len(key) + 1):
            by_beginning[key[:length]].update(answers)
    kept: dict[Key, tuple[str, int, int]] = {}
    for key in sorted(by_beginning, key=lambda key: (len(key), key)):
        answers = by_beginning[key]
        answer, cases = answers.most_common(1)[0]
        before = next((kept[key[:length]][0] for length in reversed(range(len(key))) if key[:length] in kept), None)
        if answer != before and answers.total() >= FEWEST:
            kept[key] = answer, cases, answers.total()
    return dict(sorted(kept.items()))


if __name__ == "__main__":
    main()
