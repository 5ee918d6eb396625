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
def _(executor: SymbolicExecutor, state: State, name: str) -> None:
    if name == "list_to_tuple":
        list_to_tuple(executor, state, None)
    elif name == "unary_positive":
        unary(executor, state, "+")
    elif name == "import_star":
        import_star(executor, state, None)
    elif name == "stopiteration_error" or name == "async_gen_wrap":
        pass
    else:
        type_parameter(executor, state, name, executor.pop(state))


def type_parameter(executor: SymbolicExecutor, state: State, name: str, value: ast.expr) -> None:
    """Push what an intrinsic of type parameters makes: a parameter, ``Generic[...]`` or an alias."""
    if name in ("typevar", "typevartuple", "paramspec") and (parameter := text_of(value)) is not None:
        executor.push(state, TypeParameter(name, executor.scope.plain_name(parameter)))
        return
    parameters = parameters_of(value)
    if name == "subscript_generic" and parameters:
        executor.push(state, GenericBase(parameters))
        return
    if name == "typealias" and isinstance(value, ast.Tuple) and len(value.elts) == 3:
        shown, parameters_node, value_function = value.elts
        given = [] if is_none(parameters_node) else parameters_of(parameters_node)
        alias = text_of(shown)
        if given is not None and alias is not None and isinstance(value_function, FunctionExpr):
            executor.push(state, TypeAlias(alias, given, executor.scope.later(value_function)))
            return
    raise CannotDecompile(LIFT, f"intrinsic {name}")


def text_of(node: ast.expr) -> str | None:
    """Return the value of a string constant; ``None`` for any other expression."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


@rule(o.INTRINSIC_2)
def _(executor: SymbolicExecutor, state: State, name: str) -> None:
    first, second = executor.popn(state, 2)
    parameters = parameters_of(second)
    if name == "set_function_type_params" and isinstance(first, FunctionExpr) and parameters:
        first.type_parameters = parameters
        executor.push(state, first)
    elif name == "set_typeparam_default" and isinstance(first, TypeParameter) and isinstance(second, FunctionExpr):
        first.default = executor.scope.later(second)
        executor.push(state, first)
    elif name in ("typevar_with_bound", "typevar_with_constraints") and isinstance(second, FunctionExpr) and (
        (parameter := text_of(first)) is not None
    ):
        shown = executor.scope.plain_name(parameter)
        executor.push(state, TypeParameter("typevar", shown, executor.scope.later(second)))
    else:
        raise CannotDecompile(LIFT, f"intrinsic {name}")
