"""The interpreter's intrinsic functions (3.12 and later): mostly type parameters. Changes with their list."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ...bytecode import operations as o
from ..generics import GenericBase, TypeAlias, TypeParameter, parameters_of
from ..rules import registrar
from .displays import list_to_tuple
from .imports import import_star
from .operators import unary
from .rule import Rule
from .stack import FunctionExpr, State, Unliftable, is_none

if TYPE_CHECKING:
    from .machine import Machine

RULES: dict[str, Rule] = {}
rule = registrar(RULES)


@rule(o.INTRINSIC_1)
def _(machine: Machine, state: State, name: str) -> None:
    if name == "list_to_tuple":
        list_to_tuple(machine, state, None)
    elif name == "unary_positive":
        unary(machine, state, "+")
    elif name == "import_star":
        import_star(machine, state, None)
    elif name == "stopiteration_error" or name == "async_gen_wrap":
        pass
    else:
        type_parameter(machine, state, name, machine.pop(state))


def type_parameter(machine: Machine, state: State, name: str, value: ast.expr) -> None:
    if name in ("typevar", "typevartuple", "paramspec") and (parameter := text_of(value)) is not None:
        machine.push(state, TypeParameter(name, machine.scope.plain_name(parameter)))
        return
    parameters = parameters_of(value)
    if name == "subscript_generic" and parameters:
        machine.push(state, GenericBase(parameters))
        return
    if name == "typealias" and isinstance(value, ast.Tuple) and len(value.elts) == 3:
        shown, parameters_node, made = value.elts
        given = [] if is_none(parameters_node) else parameters_of(parameters_node)
        alias = text_of(shown)
        if given is not None and alias is not None and isinstance(made, FunctionExpr):
            machine.push(state, TypeAlias(alias, given, machine.scope.later(made)))
            return
    raise Unliftable(f"intrinsic {name}")


def text_of(node: ast.expr) -> str | None:
    """Return the string that an expression is."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


@rule(o.INTRINSIC_2)
def _(machine: Machine, state: State, name: str) -> None:
    first, second = machine.popn(state, 2)
    parameters = parameters_of(second)
    if name == "set_function_type_params" and isinstance(first, FunctionExpr) and parameters:
        first.type_parameters = parameters
        machine.push(state, first)
    elif name == "set_typeparam_default" and isinstance(first, TypeParameter) and isinstance(second, FunctionExpr):
        first.default = machine.scope.later(second)
        machine.push(state, first)
    elif name in ("typevar_with_bound", "typevar_with_constraints") and isinstance(second, FunctionExpr) and (
        (parameter := text_of(first)) is not None
    ):
        shown = machine.scope.plain_name(parameter)
        machine.push(state, TypeParameter("typevar", shown, machine.scope.later(second)))
    else:
        raise Unliftable(f"intrinsic {name}")
