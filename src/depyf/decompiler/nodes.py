"""Syntax nodes that know more than :mod:`ast` has fields for, and the line that a statement came from.

A *refinement* is a node of ``ast`` with declared fields of its own, which lifting and structuring use and the text does
not show: an ``assert`` whose test is still to be found, a ``match`` with its subject. It stands in the tree as the node
that it refines: nothing is converted when the tree is written.
"""

from __future__ import annotations

import ast
from typing import TypeVar

Node = TypeVar("Node", bound=ast.AST)
Statement = TypeVar("Statement", bound=ast.stmt)

#: The classes of refinements.
REFINEMENTS: set[type[ast.AST]] = set()


def refinement(kind: type[Node]) -> type[Node]:
    """Let a class of nodes go by the name of the one that it refines.

    ``ast.unparse``, ``ast.dump`` and all ``NodeVisitor`` go by that name. (Its qualified name, which messages and
    pickles use, stays.)
    """
    kind.__name__ = kind.__bases__[0].__name__
    REFINEMENTS.add(kind)
    return kind


# --- lines of statements ----------------------------------------------------------------------------
def at_line(stmt: Statement, line: int | None) -> Statement:
    """The statement, said to stand on a line of the source; one that is known already stays where ``line`` is none."""
    if line is not None:
        stmt.lineno = line
    return stmt


def line_of(stmt: ast.stmt) -> int | None:
    """Return the line of the source that a statement came from."""
    return getattr(stmt, "lineno", None)


# --- assert -----------------------------------------------------------------------------------------
@refinement
class AssertionErrorName(ast.Name):
    """``AssertionError`` as the compiler loads it for an ``assert``, whatever the program calls so."""

    def __init__(self) -> None:
        super().__init__("AssertionError", ast.Load())


@refinement
class UntestedAssert(ast.Assert):
    """``assert False, message``: the failing edge of an ``assert``, until the branch to it brings the test.

    ``if x: pass; else: raise AssertionError(y)``, where the name is an :class:`AssertionErrorName`, is
    ``assert x, y``.
    """

    def __init__(self, message: ast.expr | None) -> None:
        super().__init__(ast.Constant(False), message)


# --- annotations ------------------------------------------------------------------------------------
@refinement
class NumberedAnnotation(ast.AnnAssign):
    """``name: annotation`` that may not be reached (3.14): ``if c: x: int`` adds ``number`` to a set."""

    def __init__(self, target: ast.Name, annotation: ast.expr, value: ast.expr | None, number: int) -> None:
        super().__init__(target, annotation, value, 1)
        self.number = number


@refinement
class AnnotateDefinition(ast.Pass):
    """Where 3.14 stores ``__annotate__``, which no source says: the annotations in it say so."""


# --- match ------------------------------------------------------------------------------------------
@refinement
class MatchOf(ast.Match):
    """``match`` with the marker of its subject, by which further cases find it.

    Attributes:
        of: the :class:`~depyf.decompiler.lift.stack.Subject`.
    """

    def __init__(self, subject: ast.expr, cases: list[ast.match_case], of: object) -> None:
        super().__init__(subject, cases)
        self.of = of
