"""``name: annotation`` in modules and classes."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from ...bytecode import operations as o
from ..names import is_name
from ..nodes import NumberedAnnotation, at_line, line_of
from ..rules import registrar
from .rule import Rule
from .stack import STORE, Special, State

if TYPE_CHECKING:
    from .executor import SymbolicExecutor

RULES: dict[str, Rule] = {}
rule = registrar(RULES)


@rule(o.SETUP_ANNOTATIONS)
def _(executor: SymbolicExecutor, state: State, _: Any) -> None:
    pass


def as_annotation(executor: SymbolicExecutor, state: State, stmt: ast.Assign) -> bool:
    """Write ``__annotations__["x"] = T`` as ``x: T``, and return whether ``stmt`` is such a store."""
    target = stmt.targets[0]
    if not (
        len(stmt.targets) == 1 and type(target) is ast.Subscript and type(target.value) is ast.Name
        and target.value.id == "__annotations__" and isinstance(target.slice, ast.Constant)
        and isinstance(target.slice.value, str) and is_name(target.slice.value)
    ):
        return False
    annotate(executor, state, executor.scope.plain_name(target.slice.value), executor.scope.annotation(stmt.value))
    return True


def annotate(
    executor: SymbolicExecutor, state: State, name: str, annotation: ast.expr, number: int | None = None
) -> None:
    """Write ``name: annotation``, with the value if that was assigned right before on the same line."""
    last = state.stmts[-1] if state.stmts else None
    value = None
    if (
        type(last) is ast.Assign and len(last.targets) == 1 and type(last.targets[0]) is ast.Name
        and last.targets[0].id == name and line_of(last) == executor.line
    ):
        value = last.value
        state.stmts.pop()
    target = ast.Name(name, STORE)
    if number is None:
        statement = ast.AnnAssign(target, annotation, value, 1)
    else:
        statement = NumberedAnnotation(target, annotation, value, number)
    state.stmts.append(at_line(statement, executor.line))


def reached(executor: SymbolicExecutor, state: State, number: ast.expr) -> bool:
    """Replace the set of ``__conditional_annotations__.add(number)`` by the annotation that this means (3.14).

    It is written when it is popped.

    Returns:
        Whether there is such an annotation.
    """
    owner = state.stack[-1] if state.stack else None
    if not isinstance(owner, ast.Name) or not isinstance(number, ast.Constant):
        return False
    annotation = executor.scope.conditional_annotation(owner.id, number.value)
    if annotation is None:
        return False
    state.stack[-1] = Special("annotation", annotation)
    return True
