"""Functions and classes: made, decorated, named."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from ...bytecode import operations as o
from ..errors import LIFT, CannotDecompile
from ..generics import GenericBase, with_parameters
from ..nodes import BuildClassName
from ..rules import registrar
from .rule import Rule
from .stack import ClassExpr, FunctionExpr, Special, State

if TYPE_CHECKING:
    from .executor import SymbolicExecutor

RULES: dict[str, Rule] = {}
rule = registrar(RULES)


@rule(o.LOAD_BUILD_CLASS)
def _(executor: SymbolicExecutor, state: State, _: Any) -> ast.expr:
    return BuildClassName()


def build_class(executor: SymbolicExecutor, values: list[ast.expr], keywords: list[ast.keyword]) -> ast.expr:
    """Return the class that ``__build_class__(function, name, *bases, **keywords)`` makes."""
    function, name = values[:2] if len(values) > 1 else (None, None)
    if not isinstance(function, FunctionExpr) or not isinstance(name, ast.Constant) or not isinstance(name.value, str):
        raise CannotDecompile(LIFT, "a class that is made in another way")
    parameters = [p for v in values if isinstance(v, GenericBase) for p in v.parameters]
    bases = [v for v in values[2:] if not isinstance(v, GenericBase)]
    class_node = executor.scope.class_(function, name.value, bases, keywords)
    return ClassExpr(class_node, function.code, parameters)


@rule(o.MAKE_FUNCTION)
def _(executor: SymbolicExecutor, state: State, flags: int) -> ast.expr:
    code = state.pop()
    arguments: dict[str, ast.expr] = {}
    for bit, key in ((8, "closure"), (16, "annotate"), (4, "annotations"), (2, "kwdefaults"), (1, "defaults")):
        if flags & bit:
            arguments[key] = executor.pop(state)
    if not (isinstance(code, Special) and code.kind == "code"):
        raise CannotDecompile(LIFT, "a function made of something else")
    expr = FunctionExpr(code.value, arguments)
    if code.value.name == "<lambda>":
        return executor.scope.lambda_(expr)
    return expr


def definition(executor: SymbolicExecutor, name: str, value: ast.expr) -> ast.stmt | None:
    """Return the ``def`` or ``class`` if ``value`` is a (decorated) new one called ``name``, else ``None``."""
    decorators: list[ast.expr] = []
    inner = value
    while type(inner) is ast.Call and len(inner.args) == 1 and not inner.keywords:
        decorators.append(inner.func)
        inner = inner.args[0]
    if type(inner) is FunctionExpr:
        statement = executor.scope.function(inner, name, decorators)
        return statement if statement is None else with_parameters(statement, inner.type_parameters)
    if type(inner) is ClassExpr:
        if executor.scope.plain_name(inner.node.name) != executor.scope.plain_name(name):
            return None
        inner.node.decorator_list = decorators
        return with_parameters(inner.node, inner.type_parameters)
    return None
