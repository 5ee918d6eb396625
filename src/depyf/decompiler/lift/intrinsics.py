"""The interpreter's intrinsic functions (3.12 and later): mostly type parameters."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ...bytecode import operations as o
from ..errors import LIFT, CannotDecompile
from ..generics import GenericBase, TypeAlias, TypeParameter, parameters_of
from ..rules import registrar
from .displays import list_to_tuple
from .imports import import_star
from .operators import unary
from .rule import Rule
from .stack import FunctionExpr, State, is_none

if TYPE_CHECKING:
    from .executor import SymbolicExecutor

RULES: dict[str, Rule] = {}
rule = registrar(RULES)


@rule(o.INTRINSIC_1)
def _(executor: SymbolicExecutor, state: State, name: str) -> ast.expr | None:
    if name == "list_to_tuple":
        return list_to_tuple(executor, state, None)
    if name == "unary_positive":
        return unary(executor, state, "+")
    if name == "import_star":
        import_star(executor, state, None)
        return None
    if name == "stopiteration_error" or name == "async_gen_wrap":
        return None
    return type_parameter(executor, name, executor.pop(state))


def type_parameter(executor: SymbolicExecutor, name: str, value: ast.expr) -> ast.expr:
    """Return what an intrinsic of type parameters makes: a parameter, ``Generic[...]`` or an alias."""
    if name in ("typevar", "typevartuple", "paramspec") and (parameter := text_of(value)) is not None:
        return TypeParameter(name, executor.scope.plain_name(parameter))
    parameters = parameters_of(value)
    if name == "subscript_generic" and parameters:
        return GenericBase(parameters)
    if name == "typealias" and isinstance(value, ast.Tuple) and len(value.elts) == 3:
        shown, parameters_node, value_function = value.elts
        given = [] if is_none(parameters_node) else parameters_of(parameters_node)
        alias = text_of(shown)
        if given is not None and alias is not None and isinstance(value_function, FunctionExpr):
            return TypeAlias(alias, given, executor.scope.later(value_function))
    raise CannotDecompile(LIFT, f"intrinsic {name}")


def text_of(node: ast.expr) -> str | None:
    """Return the value of a string constant; ``None`` for any other expression."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


@rule(o.INTRINSIC_2)
def _(executor: SymbolicExecutor, state: State, name: str) -> ast.expr:
    first, second = executor.popn(state, 2)
    parameters = parameters_of(second)
    if name == "set_function_type_params" and isinstance(first, FunctionExpr) and parameters:
        first.type_parameters = parameters
        return first
    if name == "set_typeparam_default" and isinstance(first, TypeParameter) and isinstance(second, FunctionExpr):
        first.default = executor.scope.later(second)
        return first
    if name in ("typevar_with_bound", "typevar_with_constraints") and isinstance(second, FunctionExpr) and (
        (parameter := text_of(first)) is not None
    ):
        shown = executor.scope.plain_name(parameter)
        return TypeParameter("typevar", shown, executor.scope.later(second))
    raise CannotDecompile(LIFT, f"intrinsic {name}")
