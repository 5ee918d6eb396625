"""The compiler's quirks with expressions, by version, so that their text becomes the same code again.

Which constants it folds, drops and tests, what it iterates over instead, which jumps it threads across lines.
"""

from __future__ import annotations

import ast

from ..bytecode.code import Code
from ..bytecode.linetable import Position, positions
from .lift import STORE, Scope
from .nodes import Literal, LiteralSet, OneItem, OnItsLine
from .result import Options, Tier


class CompiledScope(Scope):
    """The part of a scope that depends on the version of the compiler."""

    def __init__(self, code: Code, options: Options) -> None:
        self.code = code
        self.options = options
        #: whether operations are at their places in the code, not written anew
        self.has_places = True

    def position(self, offset: int) -> Position | None:
        """Return the place in the source of the operation at a byte offset; ``None`` where its column is not known."""
        position = self._position(offset)
        return position if position is not None and position.column is not None else None

    def line_of_jump(self, offset: int) -> int | None:
        """Return the line of the jump after the operation at a byte offset; before 3.11 it is that of the statement."""
        return self.line(offset + 2) if offset >= 0 and self.code.version < (3, 11) else None

    def line(self, offset: int) -> int | None:
        """Return the line of the operation at a byte offset; ``None`` where it is not known."""
        position = self._position(offset)
        return None if position is None else position.line

    def has_columns(self) -> bool:
        """Return whether columns of the source are known."""
        return self.has_places and any(
            position is not None and position.column is not None for position in positions(self.code))

    def _position(self, offset: int) -> Position | None:
        known = positions(self.code) if self.has_places else []
        return known[offset // 2] if 0 <= offset < 2 * len(known) else None

    def formats_percent(self) -> bool:
        """Return whether the compiler makes ``"%s" % (x,)`` the operations of an f-string."""
        return self.code.version >= (3, 11)

    def dropped_constant(self, node: ast.expr) -> ast.expr:
        """Write a constant that is evaluated and dropped.

        Only an f-string without fields (before 3.12) and a constant that decides a condition (3.10) leave that.
        """
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and self.code.version < (3, 12):
            return ast.JoinedStr([node])
        return decided(node)

    def in_barrier(self, node: ast.expr) -> ast.expr:
        """Keep a constant from being folded with others; from 3.10 on a condition that it decides does."""
        is_exact = self.options.tiers.of(self.code) > Tier.SIMPLIFIED_SPILLED
        return decided(node) if is_exact and self.code.version >= (3, 10) else node

    def folds_not(self) -> bool:
        """Return whether the compiler makes ``a not in b`` of ``not a in b``, also where that decides a jump."""
        return self.code.version < (3, 14)

    def limits_the_stack(self) -> bool:
        """Return whether the compiler puts many parts of an f-string, or many arguments, into a collection first."""
        return self.code.version >= (3, 10)

    def adds_f_strings(self) -> bool:
        """Return whether the compiler leaves the sum of a text and an f-string without fields as it is."""
        return self.options.tiers.of(self.code) > Tier.SIMPLIFIED_SPILLED and self.code.version < (3, 14)

    def has_constant_keys(self) -> bool:
        """Return whether the compiler puts the constant keys of a dictionary into one constant."""
        return self.code.version < (3, 14)

    def tests_constants(self) -> bool:
        """Return whether the compiler leaves conditions of one constant to the interpreter."""
        return not (3, 10) <= self.code.version < (3, 14)

    def looked_through(self, node: ast.expr) -> ast.expr:
        """Write what is iterated over or searched so that the compiler leaves it as it is.

        It makes a list a tuple, and a set of constants one constant (``fold_iter``, ``fold_compare`` in ast_opt.c;
        flowgraph.c of 3.14).
        """
        if isinstance(node, LiteralSet):
            return node
        if (
            isinstance(node, ast.List) and not any(isinstance(item, ast.Starred) for item in node.elts)
            or isinstance(node, ast.Set) and all(isinstance(item, ast.Constant) for item in node.elts)
        ):
            return ast.BoolOp(ast.And(), [ast.Constant(1), node])
        return node

    def begins_a_line(self, node: OnItsLine) -> None:
        """Have an expression begin on another line than the whole, where jumps are threaded within a line only.

        ``(a or b) and c`` tests the value of ``a or b`` again if its parts are on another line than the whole (up to
        3.11; flowgraph of 3.14; ``JUMP_IF_TRUE_OR_POP`` in ``optimize_basic_block``).
        """
        if not (3, 12) <= self.code.version < (3, 14):
            self.begins_another_line(node)

    def begins_another_line(self, node: OnItsLine) -> None:
        """Mark an expression that must not begin on the line of its statement."""
        node.begins_a_line = True
        self.options.has_marks = True

    def dropped_comprehension(self, node: ast.expr, before: bool) -> ast.stmt:
        """Write a statement that drops the value of an inlined comprehension.

        3.13 drops it before it restores the variables, unless a jump leads there; 3.12 only for an annotation
        (``apply_static_swaps`` in flowgraph.c).
        """
        if before and self.code.version < (3, 13):
            return ast.AnnAssign(ast.Name("_", STORE), node, None, 0)
        if not before and self.code.version >= (3, 13):
            return ast.Expr(ast.BoolOp(ast.Or(), [ast.Constant(0), node]))
        return ast.Expr(node)

    def one_item(self, node: ast.expr) -> ast.expr:
        """Write the tuple that a ``with`` statement enters as one; another expression as it is."""
        if not isinstance(node, ast.Tuple) or not node.elts:
            return node
        self.options.has_marks = True
        return OneItem(node.elts, node.ctx)


def decided(node: ast.expr) -> ast.expr:
    """Return a constant as a condition that it decides: from 3.10 on only the constant is left of it."""
    assert isinstance(node, Literal)
    return ast.BoolOp(ast.Or() if node.literal else ast.And(), [node, ast.Constant(0)])
