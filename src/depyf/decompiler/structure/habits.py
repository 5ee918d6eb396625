"""What people write most, where nothing tells which of several forms was written.

The forms of statements that are one program are counted over real code (``scripts/count_habits.py``), by what the
statements look like: how many there are, what they end in, how many lines there are for them. The answers are decision
trees: the script finds which look tells most, then which tells most among the statements that look so, and so on.

Example: ``if a: return b`` and one statement behind it, ``return c``. If there is no line for an ``else``, there is
none; if there is one, most write it.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from ..nodes import all_statements
from .habit_counts import HABITS
from .suites import is_nothing, word_of

#: What statements look like, by the name of the look.
Looks = Mapping[str, str]
#: An answer, with the number of cases in which it was so and that of all; for a look also what to go on with.
Tree: TypeAlias = "tuple[str, int, int] | tuple[str, int, int, str, Mapping[str, Tree]]"


def written_most(question: str, looks: Looks) -> str:
    """Return the answer to a question that was counted most often.

    Args:
        question: ``else`` and so on (see the script).
        looks: what the statements look like.
    """
    tree: Tree = HABITS[question]
    while len(tree) == 5:
        below = tree[4].get(looks[tree[3]])
        if below is None:
            break
        tree = below
    return tree[0]


@dataclass
class Space:
    """The space that the text of a function has.

    Attributes:
        spare: the number of lines that are not taken yet; ``None`` where that is not known.
        places: the number of places for an ``else`` that were not yet looked at.
        size: the number of its statements.
        has_doc: whether it has a docstring. (An empty line may stand behind that.)
    """

    spare: int | None = None
    places: int = 0
    size: int = 0
    has_doc: bool = False

    def looks(self) -> dict[str, str]:
        """Return what the space looks like."""
        if self.spare is None:
            return {"spare": "", "fits": "", "size around": "", "doc": ""}
        fits = "none" if self.spare < 1 else "some" if self.spare < self.places else (
            "all" if self.spare == self.places else "more")
        return {"spare": str(max(-3, min(self.spare, 5))), "fits": fits, "doc": str(self.has_doc),
                "size around": next((str(most) for most in (4, 8, 16, 32) if self.size <= most), "more")}


def place_of(stmt: ast.stmt, suite: list[ast.stmt]) -> str:
    """Return where a suite of a compound statement stands, as a look: only ``if`` and its ``else`` are told apart."""
    if isinstance(stmt, ast.If):
        return "if" if suite is stmt.body else "else" if suite[1:] else "elif"
    return type(stmt).__name__


def looks_of_leaving(stmt: ast.If, rest: list[ast.stmt], before: int, room: int | None, space: Space) -> Looks:
    """Return what an ``if`` that is never left at its end looks like.

    Args:
        stmt: the ``if``.
        rest: the statements behind it, or in its ``else``.
        before: the number of statements before it in its suite.
        room: the number of lines between them, if it is known.
        space: of the function.
    """
    return {
        "room": "" if room is None else str(min(room, 2)), **space.looks(),
        "kind": leaves(stmt.body), "ends": leaves(rest), "count": str(min(len(rest), 3)),
        "size": str(_size(rest, 6)), "own": str(_size(stmt.body, 4)),
        "values": _values(stmt.body, rest), "test": _test(stmt.test), "subject": str(_same_subject(stmt, rest[0])),
        "before": str(min(before, 2)), "chain": _chain(rest[0]),
    }


def looks_of_branches(stmt: ast.If, rest: list[ast.stmt], end: str, space: Space) -> Looks:
    """Return what two branches look like that are left in the same way.

    Args:
        stmt: the ``if``, its branch without what leaves it.
        rest: what runs where it does not, without what leaves it.
        end: how they are left: ``return`` (of nothing), ``continue``.
        space: of the function.
    """
    return {
        "end": end, **space.looks(), "ends": leaves(rest) if rest else "", "count": str(min(len(rest), 4)),
        "own": str(_size(stmt.body, 5)), "size": str(_size(rest, 6)),
        "is if": str(bool(rest) and isinstance(rest[0], ast.If)), "test": _test(stmt.test),
        "inner": type(stmt.body[-1]).__name__,
    }


def looks_of_rest(stmt: ast.If, end: str, before: int, space: Space) -> Looks:
    """Return what an ``if`` looks like that has all statements to the end of a suite in it.

    Args:
        stmt: the ``if``.
        end: what the end of the suite does: ``return`` (of nothing), ``continue``.
        before: the number of statements before it in its suite.
        space: of the function.
    """
    return {
        "end": end, **space.looks(), "size": str(_size(stmt.body, 12)), "count": str(min(len(stmt.body), 3)),
        "test": kind_of(stmt.test), "first": type(stmt.body[0]).__name__, "before": str(min(before, 2)),
    }


def leaves(stmts: list[ast.stmt]) -> str:
    """Return how control leaves the end of a suite."""
    last = stmts[-1]
    if isinstance(last, ast.Return):
        return "return" if is_nothing(last) else "value"
    if isinstance(last, (ast.Raise, ast.Continue, ast.Break)):
        return word_of(last)
    if isinstance(last, ast.If) and last.orelse and leaves(last.body) != "falls" != leaves(last.orelse):
        return "if"
    return "falls"


def _size(stmts: list[ast.stmt], most: int) -> int:
    """Return the number of statements in statements, counted up to ``most``."""
    return min(len(stmts) if len(stmts) >= most else len(all_statements(stmts)), most)


def _values(branch: list[ast.stmt], rest: list[ast.stmt]) -> str:
    """Return whether two values of one kind are returned."""
    one, other = getattr(branch[-1], "value", None), getattr(rest[-1], "value", None)
    if isinstance(one, ast.Constant):
        return "constants" if isinstance(other, ast.Constant) else "constant"
    return "alike" if one is not None and type(one) is type(other) else ""


def _test(test: ast.expr) -> str:
    """Return the kind of a test."""
    if isinstance(test, ast.UnaryOp):
        return "not"
    if isinstance(test, ast.Compare) and isinstance(test.ops[0], (ast.NotIn, ast.NotEq)):
        return "not"
    return "and" if isinstance(test, ast.BoolOp) else ""


def kind_of(test: ast.expr) -> str:
    """Return the kind of a test: that of its contrary tells, too, as nobody writes ``not a == b``."""
    if isinstance(test, ast.UnaryOp):
        return "not a comparison" if isinstance(test.operand, ast.Compare) else "not"
    if isinstance(test, ast.Compare):
        return "is" if isinstance(test.ops[0], (ast.Is, ast.IsNot)) else "comparison"
    return type(test).__name__


def _chain(first: ast.stmt) -> str:
    """Return how the ``if`` that begins a rest goes on."""
    if not isinstance(first, ast.If):
        return ""
    if not first.orelse:
        return "if"
    return "elif" if isinstance(first.orelse[0], ast.If) and len(first.orelse) == 1 else "else"


def _same_subject(stmt: ast.If, other: ast.stmt) -> bool:
    """Return whether two tests compare one value."""
    one, two = stmt.test, getattr(other, "test", None)
    return isinstance(one, ast.Compare) and isinstance(two, ast.Compare) and ast.dump(one.left) == ast.dump(two.left)
