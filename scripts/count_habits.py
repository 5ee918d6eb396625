"""Count the forms of statements that people write, for ``depyf.decompiler.structure.habits``.

    python scripts/count_habits.py FOLDER... [--write]

Each folder is a package or a library of sources (tests are left out). What is counted, by what the statements look
like (``habits.looks_of_...``):

* ``else``, ``elif``: the branch of an ``if`` never falls off its end, and something follows: is that in an ``else``
  (an ``elif``), or behind the ``if``?
* ``join``: the branch falls off its end as the suite around it does: is the rest in an ``else``, or does the branch end
  in a ``return`` or ``continue``?
* ``guard``: all statements to the end of a suite are in an ``if``, or behind an ``if`` that only leaves.

Each is counted with the number of lines that the function has to spare, and without; ``else`` and ``elif`` also with
the number of lines between branch and rest. The answers are a decision tree, grown by what is known of the lines, then
by what tells most (the entropy of the answers), and cut where a look makes no more answers right than chance does.

``--write`` writes ``habit_counts.py``.
"""

from __future__ import annotations

import argparse
import ast
import collections
import math
import pathlib
import random
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

HERE = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(HERE / "src"))

FILE = HERE / "src/depyf/decompiler/structure/habit_counts.py"
if not FILE.exists():
    FILE.write_text("HABITS = {}\n")

from depyf.decompiler.lift.negation import folds_not, negate  # noqa: E402
from depyf.decompiler.nodes import all_statements, suites_of  # noqa: E402
from depyf.decompiler.structure import habits, spare_lines  # noqa: E402
from depyf.decompiler.structure.habits import Looks, Tree, leaves  # noqa: E402
from depyf.decompiler.structure.suites import (  # noqa: E402
    is_nothing,
)

FILES = 600  # of each folder, by chance
FEWEST = 12  # cases of a leaf
GAIN = 4  # (or what chance makes of as many cases, if that is more)
QUESTIONS = ("else", "elif", "join", "guard")

FACTS = frozenset({"fits", "room"})

NOWHERE = habits.Space()

Definition = ast.FunctionDef | ast.AsyncFunctionDef
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@dataclass
class Case:
    """One choice of an author.

    Attributes:
        question: ``else`` and so on.
        looks: what the statements look like.
        answer: what was written.
        cost: the number of lines that this took more than another form.
    """

    question: str
    looks: Looks
    answer: str
    cost: int = 0


class Function:
    """The cases in one function, in the order in which the decompiler meets them."""

    def __init__(self) -> None:
        self.cases: list[Case] = []

    def suite(self, stmts: list[ast.stmt], end: str, place: str = "") -> None:
        """Count in a suite at a place (``habits.place_of``); ``end`` is what falling off it does."""
        stmts = list(stmts)
        found: list[list[Case]] = []
        at = 0
        while at < len(stmts):
            stmt = stmts[at]
            if isinstance(stmt, ast.If):
                before = len(self.cases)
                if leaves(stmt.body) != "falls":
                    self.leaving(stmts, at, end)
                else:
                    self.falling(stmt, stmts[at + 1:], end, at)
                found.append(self.cases[before:])
                del self.cases[before:]
            at += 1
        for case in (case for cases in reversed(found) for case in cases):
            case.looks = {**case.looks, "place": place}
            self.cases.append(case)
        for at in reversed(range(len(stmts))):
            self.inside(stmts[at], end if at + 1 == len(stmts) else "")

    def leaving(self, stmts: list[ast.stmt], at: int, end: str) -> None:
        stmt = stmts[at]
        assert isinstance(stmt, ast.If)
        rest = [*stmt.orelse, *stmts[at + 1:]]
        if not rest:
            return
        if not self.with_common_end(stmt, rest, end, at):
            is_if = isinstance(rest[0], ast.If)
            is_elif = is_if and len(stmt.orelse) == 1  # (One ``if`` in an ``else`` is the same tree.)
            answer = "elif" if is_elif else "else" if stmt.orelse else "rest"
            room = max(0, rest[0].lineno - max(each.end_lineno or 0 for each in stmt.body) - 1)
            for known in (room, None) if room or is_if else (None,):
                self.cases.append(Case("elif" if is_if else "else", habits.looks_of_leaving(
                    stmt, rest, at, known, NOWHERE), answer, int(known is None and answer == "else")))
        stmts[at + 1:] = rest
        stmts[at] = ast.If(stmt.test, stmt.body, [])

    def with_common_end(self, stmt: ast.If, rest: list[ast.stmt], end: str, at: int) -> bool:
        """Count a branch that ends as the suite around it does, or as what is behind it does."""
        last, inner = stmt.body[-1], ast.If(stmt.test, stmt.body[:-1], [])
        cost = spare_lines.lines_of_exit(rest)
        if end and (isinstance(last, ast.Continue) if end == "continue" else leaves(stmt.body) == "return"):
            if len(stmt.body) > 1:
                self.cases.append(Case("join", habits.looks_of_branches(inner, rest, end, NOWHERE), "guard", cost))
                return True
            if leaves(rest) == "falls" and not folds_not(stmt.test):
                turned = ast.If(negate(stmt.test), rest, [])
                self.cases.append(Case("guard", habits.looks_of_rest(turned, end, at, NOWHERE), "guard", 1))
                return True
        elif is_small(last) and inner.body and not stmt.orelse and ast.dump(last) == ast.dump(rest[-1]) and (
                len(rest) > 1 or suites_of(inner.body[-1])):
            return True  # (The decompiler takes the ends for copies of one.)
        return False

    def falling(self, stmt: ast.If, rest: list[ast.stmt], end: str, at: int) -> None:
        if stmt.orelse and end and not rest:
            self.cases.append(Case("join", habits.looks_of_branches(stmt, stmt.orelse, end, NOWHERE), "else"))
        elif not stmt.orelse and end and not rest and not folds_not(stmt.test):
            self.cases.append(Case("guard", habits.looks_of_rest(stmt, end, at, NOWHERE), "nested"))

    def inside(self, stmt: ast.stmt, end: str) -> None:
        if isinstance(stmt, DEFINITIONS):
            return
        loop = isinstance(stmt, (ast.For, ast.AsyncFor, ast.While))
        for field in ("body", "orelse", "finalbody"):
            part = getattr(stmt, field, None)
            if part:
                self.suite(part, "continue" if loop and field == "body" else "" if field == "finalbody" else end,
                           habits.place_of(stmt, part))
        for part in (*getattr(stmt, "handlers", ()), *getattr(stmt, "cases", ())):
            self.suite(part.body, end, habits.place_of(stmt, part.body))

def own_nodes(node: Definition) -> Iterator[ast.AST]:
    """Yield the nodes of a function, without those of definitions in it."""
    work: list[ast.AST] = list(node.body)
    while work:
        each = work.pop()
        yield each
        if not isinstance(each, (*DEFINITIONS, ast.Lambda)):
            work += ast.iter_child_nodes(each)


def begin_of(stmt: ast.stmt) -> int:
    """Return the first line of a definition."""
    return min([stmt.lineno, *(each.lineno for each in getattr(stmt, "decorator_list", ()))])


class Count:
    """The cases of some sources."""

    def __init__(self) -> None:
        self.cases: dict[str, list[Case]] = {question: [] for question in QUESTIONS}

    def definitions(self, body: list[ast.stmt], depth: int, following: int | None) -> None:
        """Count in the functions of a module or class.

        Args:
            body: of it.
            depth: the number of classes around.
            following: the line of the definition behind it, less the empty lines before that; ``None`` if not known.
        """
        for at, stmt in enumerate(body):
            if isinstance(stmt, DEFINITIONS):
                rest = body[at + 1:]
                count = next((number for number, each in enumerate(rest) if isinstance(each, DEFINITIONS)), None)
                end = following if count is None else begin_of(rest[count]) - (1 if depth else 2)
                if end is not None:
                    end -= sum(isinstance(node, ast.stmt) for each in rest[:count] for node in ast.walk(each))
                if isinstance(stmt, ast.ClassDef):
                    self.definitions(stmt.body, depth + 1, end)
                else:
                    self.function(stmt, 4 * depth, end)
            else:
                for field in ("body", "orelse", "handlers", "finalbody"):
                    self.definitions(getattr(stmt, field, []), depth, None)

    def function(self, node: Definition, indentation: int, end: int | None) -> None:
        found = Function()
        found.suite(node.body, "return")
        doc = ast.get_docstring(node) is not None
        space = habits.Space(None, spare_lines.else_places(node.body), len(all_statements(node.body)) - doc, doc)
        if end is not None:
            space.spare = end - begin_of(node) - spare_lines.lines_of_head(node, indentation)
            space.spare -= spare_lines.fewest_lines(node.body, "return", indentation + 4)
        for case in found.cases:
            self.cases[case.question].append(case)
            if not case.looks.get("room"):
                case.looks = {**case.looks, **space.looks()}
                space.places -= case.question == "else"
                if space.spare is not None:
                    space.spare -= case.cost
        for inner in own_nodes(node):
            if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef):
                self.function(inner, indentation + 4, None)


def is_small(stmt: ast.stmt) -> bool:
    """Return whether a statement is a ``return`` of a value that the compiler copies (``Evidence.may_be_copied``)."""
    return isinstance(stmt, ast.Return) and not is_nothing(stmt) and sum(
        isinstance(node, ast.expr) for node in ast.walk(stmt)) <= 3


def sources(folder: str) -> Iterator[pathlib.Path]:
    files = sorted(file for file in pathlib.Path(folder).rglob("*.py")
                   if "/test" not in str(file).removeprefix(folder))
    return iter(random.Random(1).sample(files, min(FILES, len(files))))


# --- trees ------------------------------------------------------------------------------------------
def entropy(cases: list[Case]) -> float:
    """Return how many bits the answers take."""
    answers = collections.Counter(case.answer for case in cases)
    return -sum(count * math.log2(count / len(cases)) for count in answers.values())


def grown(cases: list[Case], looks: tuple[str, ...]) -> tuple[Tree, int]:
    """Return the tree of some cases, and in how many of them it is right.

    Args:
        cases: at least one.
        looks: those that may tell them apart.
    """
    answers = collections.Counter(case.answer for case in cases)
    answer, right = min(answers.items(), key=lambda item: (-item[1], item[0]))
    look = most_telling(cases, looks) if len(answers) > 1 else None
    if look is None:
        return (answer, right, len(cases)), right
    below: dict[str, Tree] = {}
    total = right
    for value, group in sorted(grouped(cases, look).items()):
        if len(group) >= FEWEST:
            tree, rightly = grown(group, tuple(each for each in looks if each != look))
            gain = rightly - sum(case.answer == answer for case in group)
            if gain >= max(GAIN, math.sqrt(len(group))):
                below[value] = tree
                total += gain
    return (answer, right, len(cases), look, below) if below else (answer, right, len(cases)), total


def most_telling(cases: list[Case], looks: tuple[str, ...]) -> str | None:
    """Return the look by which cases that look alike have the most equal answers; ``None`` if there is none.

    What is known of the lines comes before all others, which are habits only.
    """
    best = {look: sum(map(entropy, groups.values())) for look in ([*FACTS & {*looks}] or looks)
            if len(groups := grouped(cases, look)) > 1}
    if not best and FACTS & {*looks}:
        return most_telling(cases, tuple(look for look in looks if look not in FACTS))
    return min(best, key=lambda look: best[look]) if best else None


def grouped(cases: list[Case], look: str) -> dict[str, list[Case]]:
    groups: dict[str, list[Case]] = collections.defaultdict(list)
    for case in cases:
        groups[case.looks[look]].append(case)
    return groups


def tree_of(cases: list[Case]) -> Tree:
    return grown(cases, tuple(cases[0].looks))[0]


def answer_of(tree: Tree, looks: Looks) -> str:
    habits.HABITS = {"": tree}
    return habits.written_most("", looks)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+")
    parser.add_argument("--write", action="store_true")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    counts = Count(), Count()
    for folder in chosen.folders:
        for number, file in enumerate(sources(folder)):
            try:
                tree = ast.parse(file.read_bytes())
            except (SyntaxError, ValueError):
                continue
            counts[number % 2].definitions(tree.body, 0, None)
    trees = {}
    for question in QUESTIONS:
        halves = [count.cases[question] for count in counts]
        cases = [*halves[0], *halves[1]]
        trees[question] = tree_of(cases)
        right = sum(answer_of(tree, case.looks) == case.answer
                    for one, other in (halves, halves[::-1]) for tree in [tree_of(one)] for case in other)
        most = collections.Counter(case.answer for case in cases).most_common(1)[0]
        print(f"{question}: {len(cases)} counted, {100 * right / len(cases):.1f} % as the other half writes "
              f"({most[0]} always: {100 * most[1] / len(cases):.1f} %)")
    if chosen.write:
        write(trees)


def write(trees: dict[str, Tree]) -> None:
    lines = ['"""Which form is written most; made by ``scripts/count_habits.py``."""', "",
             "from __future__ import annotations", "",
             "from typing import Any", "",
             "#: By question a decision tree: the answer, in how many of how many cases it was so; the look that tells",
             "#: more, and the trees of its values that tell otherwise.",
             "HABITS: dict[str, Any] = {"]
    for question, tree in trees.items():
        lines += shown(question, tree, 1)
    FILE.write_text("\n".join([*lines, "}", ""]), encoding="utf-8")


def shown(value: str, tree: Tree, depth: int) -> list[str]:
    margin = "    " * depth
    if len(tree) == 3:
        return [f'{margin}"{value}": ("{tree[0]}", {tree[1]}, {tree[2]}),']
    return [f'{margin}"{value}": ("{tree[0]}", {tree[1]}, {tree[2]}, "{tree[3]}", {{',
            *(line for inner, below in tree[4].items() for line in shown(inner, below, depth + 1)), f"{margin}}}),"]


if __name__ == "__main__":
    main()
