"""The executor's questions to the code object around it."""

from __future__ import annotations

import ast
from typing import Any

from ...bytecode.linetable import Position
from ..nodes import OnItsLine
from .stack import FunctionExpr, Iter


class Positions:
    """Something that knows where operations are in the source."""

    def position(self, offset: int) -> Position | None:
        """Return where the operation at a byte offset is in the source; ``None`` where that is not known."""
        return None


class Scope(Positions):
    """The code object around the executor, as far as operations need it (see ``scopes``)."""

    def function(self, expr: FunctionExpr, name: str, decorators: list[ast.expr]) -> ast.stmt | None:
        """Return the definition of a function; ``None`` where its name is another than the variable's."""
        raise NotImplementedError

    def lambda_(self, expr: FunctionExpr) -> ast.expr:
        """Return the ``lambda`` of a function that is called ``<lambda>``."""
        raise NotImplementedError

    def class_(self, expr: FunctionExpr, name: str, bases: list[ast.expr], keywords: list[ast.keyword]) -> ast.ClassDef:
        """Return the definition of a class, given the function of its body."""
        raise NotImplementedError

    def comprehension(self, expr: FunctionExpr, iterable: Iter) -> ast.expr:
        """Return the comprehension or generator expression of a function that is called with an iterator."""
        raise NotImplementedError

    def generic(self, expr: FunctionExpr, values: list[ast.expr]) -> ast.expr:
        """Return the function, class or alias that a hidden function of type parameters returns."""
        raise NotImplementedError

    def later(self, expr: FunctionExpr) -> ast.expr:
        """Return the expression that a function of a bound, a default or a ``type`` statement returns."""
        raise NotImplementedError

    def plain_name(self, name: str) -> str:
        """Return a name as the text has it: renamed, or without the mangling of its class."""
        return name

    def constant(self, value: Any) -> ast.expr:
        """Return a constant as an expression."""
        raise NotImplementedError

    def dropped_constant(self, node: ast.expr) -> ast.expr:
        """Return a constant in a form that the compiler does not drop as an expression statement."""
        raise NotImplementedError

    def in_barrier(self, node: ast.expr) -> ast.expr:
        """Return a constant inside a fold barrier, so that the compiler does not fold it with others."""
        return node

    def folds_not(self) -> bool:
        """Return whether ``not a in b`` is ``a not in b``, also where it decides a jump."""
        return True

    def limits_the_stack(self) -> bool:
        """Return whether many parts of an f-string, or many arguments, are put into a collection first."""
        return False

    def adds_f_strings(self) -> bool:
        """Return whether the sum of a text and an f-string without fields is computed where the program runs."""
        return False

    def has_constant_keys(self) -> bool:
        """Return whether a dictionary of constant keys has them in one constant."""
        return False

    def tests_constants(self) -> bool:
        """Return whether conditions of one constant are tested where the program runs."""
        return True

    def looked_through(self, node: ast.expr) -> ast.expr:
        """Return an expression in the form for one that is iterated over or searched."""
        return node

    def dropped_comprehension(self, node: ast.expr, before: bool) -> ast.stmt:
        """Return a statement that drops the value of an inlined comprehension.

        Args:
            before: it is dropped before the variables of the comprehension get their values back.
        """
        return ast.Expr(node)

    def begins_a_line(self, node: OnItsLine) -> None:
        """Make an expression begin on another line than the one that it is the first part of."""

    def begins_another_line(self, node: OnItsLine) -> None:
        """Make an expression begin on another line than its statement."""

    def one_item(self, node: ast.expr) -> ast.expr:
        """Return an expression in the form for the context manager of a ``with`` statement."""
        return node

    def annotation(self, node: ast.expr) -> ast.expr:
        """Return an annotation as source has it."""
        return node

    def conditional_annotation(self, name: str, number: Any) -> tuple[str, ast.expr, int] | None:
        """Return the name, annotation and number for a number in the set ``name`` (3.14)."""
        return None

    def has_columns(self) -> bool:
        """Return whether columns of the source are known."""
        return False

    def line(self, offset: int) -> int | None:
        """Return the line of the operation at a byte offset."""
        return None

    def line_of_jump(self, offset: int) -> int | None:
        """Return the line of the jump after the operation at a byte offset, if it is not that of the operation."""
        return None

    def formats_percent(self) -> bool:
        """Return whether the compiler makes ``"%s" % (x,)`` the operations of an f-string."""
        return False

    def is_handed_over(self, node: ast.expr) -> bool:
        """Return whether an expression is a value that was on the stack when the graph broke (``___stack0``)."""
        return False

    annotates = False
