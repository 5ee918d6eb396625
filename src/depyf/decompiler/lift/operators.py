"""Constants, variables, attributes, items: loaded, stored, deleted, unpacked into; operators on them."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Any

from ...bytecode import operations as o
from ...bytecode.code import Code
from ...bytecode.operations import registrar
from ...guarded import unwarned
from ..constants import constant
from ..emit.text import unparse
from ..nodes import (
    KINDS,
    AssertionErrorName,
    BuildClassName,
    Literal,
    UnfoldedCompare,
    as_literal,
    offset_of,
)
from . import stack as s
from .spelling import CONTRARY, contrary_comparison

if TYPE_CHECKING:
    from .executor import SymbolicExecutor

BINARY_OPS: dict[str, type[ast.operator]] = {
    "+": ast.Add, "-": ast.Sub, "*": ast.Mult, "/": ast.Div, "//": ast.FloorDiv, "%": ast.Mod,
    "@": ast.MatMult, "**": ast.Pow, "<<": ast.LShift, ">>": ast.RShift, "&": ast.BitAnd,
    "|": ast.BitOr, "^": ast.BitXor,
}
UNARY_OPS: dict[str, type[ast.unaryop]] = {
    "-": ast.USub, "+": ast.UAdd, "~": ast.Invert, "not": ast.Not,
}
COMPARE_OPS: dict[str, type[ast.cmpop]] = {
    "<": ast.Lt, "<=": ast.LtE, "==": ast.Eq, "!=": ast.NotEq, ">": ast.Gt, ">=": ast.GtE,
}

#: The first version whose compiler makes ``"%s" % (x,)`` the operations of an f-string.
FORMATS_PERCENT = (3, 11)
#: The ``%`` formats that ``optimize_format`` in ast_opt.c (3.11) understands.
_FORMAT = re.compile(r"(?:[^%]|%%|%-?\d{0,3}(?:\.\d{0,3})?[sra])*")

#: Operations that are one expression, or one statement, of what they take off the stack.
RULES: dict[str, s.Rule] = {
    o.MAKE_CELL: lambda executor, state, _: None,
    o.SETUP_ANNOTATIONS: lambda executor, state, _: None,
    o.LOAD_CLOSURE: lambda executor, state, name: ast.Name(name, s.LOAD),
    o.LOAD_ASSERTION_ERROR: lambda executor, state, _: AssertionErrorName(),
    o.LOAD_BUILD_CLASS: lambda executor, state, _: BuildClassName(),
    o.LOAD_LOCALS: lambda executor, state, _: state.stack.append(s.Special("locals")),
    o.LOAD_FAST_AND_CLEAR: lambda executor, state, name: state.stack.append(s.Special("null", name)),
    o.LOAD_ATTR: lambda executor, state, name: ast.Attribute(
        s.operand(executor, state.pop()), executor.scope.plain_name(name), s.LOAD),
    o.DELETE_ATTR: lambda executor, state, name: executor.emit(state, ast.Delete(
        [ast.Attribute(executor.pop(state), executor.scope.plain_name(name), s.DEL)])),
    o.PRINT_EXPR: lambda executor, state, _: executor.emit(state, ast.Expr(executor.pop(state))),
    o.UNPACK: lambda executor, state, count: unpack(executor, state, count),
    o.UNPACK_EX: lambda executor, state, arg: unpack(executor, state, arg[0] + 1 + arg[1], arg[0]),
    o.COMPARE: lambda executor, state, op: compare(executor, state, COMPARE_OPS[op]()),
    o.IS: lambda executor, state, inverted: compare(executor, state, ast.IsNot() if inverted else ast.Is()),
    o.YIELD_FROM: lambda executor, state, _: ast.YieldFrom(executor.pop(state)),
}
rule = registrar(RULES)


@rule(o.CONST)
def _(executor: SymbolicExecutor, state: s.State, value: Any) -> ast.expr | None:
    if type(value) is Code:
        state.stack.append(s.Special("code", value))
        return None
    return as_literal(constant(value), value)


@rule(o.LOAD_FAST, o.LOAD_GLOBAL, o.LOAD_NAME, o.LOAD_DEREF, o.LOAD_CLASSDEREF)
def load_name(executor: SymbolicExecutor, state: s.State, name: str) -> ast.expr | None:
    """Return a variable of any kind to push; ``.0`` is the iterator that a comprehension is called with."""
    if name == ".0":
        state.stack.append(s.Iter(s.StackParameter(0)))
        return None
    if name in executor.hidden:
        state.stack.append(executor.hidden[name])
        return None
    return ast.Name(executor.scope.plain_name(name), s.LOAD)


@rule(o.LOAD_FROM_DICT_OR_GLOBALS, o.LOAD_FROM_DICT_OR_DEREF)
def _(executor: SymbolicExecutor, state: s.State, name: str) -> ast.expr | None:
    state.pop()
    return load_name(executor, state, name)


@rule(o.STORE_FAST, o.STORE_GLOBAL, o.STORE_NAME, o.STORE_DEREF)
def store_name(executor: SymbolicExecutor, state: s.State, name: str) -> None:
    """Store the top of the stack to a variable of any kind."""
    target = ast.Name(executor.scope.plain_name(name), s.STORE)
    target.end_col_offset = executor.offset
    executor.store_value(state, target, state.pop())


@rule(o.DELETE_FAST, o.DELETE_GLOBAL, o.DELETE_NAME, o.DELETE_DEREF)
def delete_name(executor: SymbolicExecutor, state: s.State, name: str) -> None:
    """Write ``del name``."""
    executor.emit(state, ast.Delete([ast.Name(executor.scope.plain_name(name), s.DEL)]))


@rule(o.STORE_ATTR)
def _(executor: SymbolicExecutor, state: s.State, name: str) -> None:
    owner = s.operand(executor, state.pop())
    store_checked(executor, state, ast.Attribute(owner, executor.scope.plain_name(name), s.STORE))


def store_checked(executor: SymbolicExecutor, state: s.State, target: Any) -> None:
    """Store to an attribute or item, of which a part may be a duplicate.

    With the in-place result of the same place on the stack it is ``a.b += c``, which evaluates its parts once.
    """
    value = state.pop()
    if isinstance(target.value, s.Duplicate) or isinstance(getattr(target, "slice", None), (s.Duplicate, ast.Slice)):
        if isinstance(value, s.Augmented) and s.same_target(target, value.left):
            target = s.deduplicated(target)
            value = s.Augmented(target, value.op, value.right)
        elif isinstance(target.value, s.Duplicate):
            target.value = executor.resolve(target.value)
        if isinstance(getattr(target, "slice", None), s.Duplicate):
            target.slice = executor.resolve(target.slice)
    executor.store_value(state, target, value)


@rule(o.LOAD_SUPER_ATTR)
def _(executor: SymbolicExecutor, state: s.State, arg: Any) -> ast.expr:
    name, has_arguments = arg
    super_, *arguments = executor.popn(state, 3)
    call = ast.Call(super_, arguments if has_arguments else [], [])
    return ast.Attribute(call, executor.scope.plain_name(name), s.LOAD)


@rule(o.BUILD_SLICE)
def _(executor: SymbolicExecutor, state: s.State, count: int) -> ast.expr:
    step = s.operand(executor, state.pop()) if count == 3 else None
    upper, lower = (None if s.is_none(end) else end for end in (s.operand(executor, state.pop()) for _ in range(2)))
    return ast.Slice(lower, upper, step)


@rule(o.GETITEM)
def _(executor: SymbolicExecutor, state: s.State, _: Any) -> ast.expr:
    index = s.operand(executor, state.pop())
    return unfolded_operation(executor, ast.Subscript(s.operand(executor, state.pop()), index, s.LOAD), "value")


@rule(o.SETITEM)
def _(executor: SymbolicExecutor, state: s.State, _: Any) -> None:
    index = s.operand(executor, state.pop())
    value = s.operand(executor, state.pop())
    store_checked(executor, state, ast.Subscript(value, index, s.STORE))


@rule(o.DELITEM)
def _(executor: SymbolicExecutor, state: s.State, _: Any) -> None:
    index = executor.pop(state)
    executor.emit(state, ast.Delete([ast.Subscript(executor.pop(state), index, s.DEL)]))


def unpack(executor: SymbolicExecutor, state: s.State, count: int, star: int | None = None) -> None:
    """Replace the top of the stack by the pending targets of its elements."""
    owner = s.Unpack(state.pop(), count, star, executor.offset)
    if not count:
        executor.store_value(state, ast.Tuple([], s.STORE), owner.source)
        return
    state.stack.extend(s.PendingTarget(owner, index) for index in range(count - 1, -1, -1))


# --- operators and comparisons ----------------------------------------------------------------------
@rule(o.BINARY)
def _(executor: SymbolicExecutor, state: s.State, op: str) -> ast.expr:
    right = executor.pop(state)
    left = executor.pop(state)
    version = executor.scope.code.version
    if op == "%" and version >= FORMATS_PERCENT and _would_be_formatted(left, right):
        left = ast.JoinedStr([left])
    if op == "+" and version < (3, 14) and all(
            isinstance(each, Literal) and isinstance(each.literal, str) for each in (left, right)):
        # (One is an f-string without fields, as the compiler joins all others. The span of its text is that of the
        # f-string; from 3.12 on it is without the quotes.)
        place = executor.scope.position(offset_of(right))
        width = (place.end_column or 0) - (place.column or 0) - len(unparse(right)) if place is not None else 0
        left, right = (left, ast.JoinedStr([right])) if width in (1, -2) else (ast.JoinedStr([left]), right)
    return unfolded_operation(executor, ast.BinOp(left, BINARY_OPS[op](), right), "left")


@rule(o.INPLACE)
def _(executor: SymbolicExecutor, state: s.State, op: str) -> ast.expr:
    right = executor.pop(state)
    if executor.spill:
        value = executor.pop(state)
        executor.spill_pending(state)
        name = executor.temporary(state, value)
        state.stmts.append(ast.AugAssign(ast.Name(name.id, s.STORE), BINARY_OPS[op](), right))
        return name
    left = state.pop()
    if isinstance(left, ast.Name) and executor.scope.is_handed_over(left) and all(
        isinstance(entry, ast.expr) and executor.scope.is_handed_over(entry) for entry in state.stack
    ):
        # (The place that it is to be stored in is on the stack, too: its value is not read there again.)
        executor.emit(state, ast.AugAssign(ast.Name(left.id, s.STORE), BINARY_OPS[op](), right), before=True)
        return left
    return s.Augmented(left, op, right)


@rule(o.UNARY)
def unary(executor: SymbolicExecutor, state: s.State, op: str) -> ast.expr:
    """Return ``op operand``."""
    operand = executor.pop(state)
    flipped = contrary_comparison(operand) if op == "not" and not isinstance(operand, UnfoldedCompare) else None
    return flipped or unfolded_operation(executor, ast.UnaryOp(UNARY_OPS[op](), operand), "operand")


def compare(executor: SymbolicExecutor, state: s.State, op: ast.cmpop) -> ast.expr:
    """Return ``left op right``; the right one may be a duplicate, in a chain of comparisons."""
    right = state.pop()
    left = executor.pop(state)
    kind = ast.Compare if type(op) not in CONTRARY or executor.scope.code.version < (3, 14) else UnfoldedCompare
    return kind(left, [op], [s.operand(executor, right)])


@rule(o.IN)
def _(executor: SymbolicExecutor, state: s.State, inverted: bool) -> ast.expr:
    if state.stack and isinstance(state.stack[-1], ast.expr):
        state.stack[-1] = executor.scope.looked_through(state.stack[-1])
    return compare(executor, state, ast.NotIn() if inverted else ast.In())


def _would_be_formatted(left: ast.expr, right: ast.expr) -> bool:
    """Return whether the compiler makes an f-string of ``"%s" % (x,)``; it leaves one without fields as it is."""
    return (
        isinstance(left, ast.Constant) and isinstance(left.value, str) and isinstance(right, ast.Tuple)
        and not isinstance(right, Literal) and not any(isinstance(item, ast.Starred) for item in right.elts)
        and _FORMAT.fullmatch(left.value) is not None
        and left.value.replace("%%", "").count("%") == len(right.elts)
    )


# --- Operations on constants alone, which compilers do themselves ------------------------------
# Where one is left in a program, an operand came after a jump that the compiler decided later (``1 or x``). It is
# written as such a one again (:meth:`CodeScope.in_barrier`).
def unfolded(executor: SymbolicExecutor, items: list[ast.expr], least: int = 1) -> list[ast.expr]:
    """Return items, the first in a fold barrier, in place, if there are ``least`` or more and all are constants."""
    if len(items) >= least and all(isinstance(item, Literal) for item in items):
        items[0] = executor.scope.in_barrier(items[0])
    return items


def unfolded_operation(executor: SymbolicExecutor, node: ast.expr, first: str) -> ast.expr:
    """Return an operation, its first operand in a fold barrier, in place, if the compiler would make it a constant."""
    if isinstance(getattr(node, first), Literal) and all(
            isinstance(each, (Literal, *KINDS)) for each in ast.iter_child_nodes(node)):
        with unwarned():
            lengths = {len(compile(f"({text})", "", "eval").co_code) for text in ("0", unparse(node))}
        if len(lengths) == 1:
            setattr(node, first, executor.scope.in_barrier(getattr(node, first)))
    return node
