"""Calls and their arguments."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from ...bytecode import operations as o
from ...bytecode.operations import registrar
from ..annotations import expression
from ..errors import LIFT, CannotDecompile
from ..generics import HIDDEN, GenericBase, TypeAlias, TypeParameter, parameters_of
from ..names import is_name
from ..nodes import BuildClassName, BuiltTuple, JoinedTuple, LiteralTuple, MergedDict, offset_of
from .definitions import build_class, import_star
from .displays import STACK_USE_GUIDELINE, has_star, long_f_string
from .spelling import end_of
from .stack import LOAD, Exit, FunctionExpr, Iter, Rule, State, is_none

if TYPE_CHECKING:
    from .executor import SymbolicExecutor

RULES: dict[str, Rule] = {}
rule = registrar(RULES)


@rule(o.CALL)
def _(executor: SymbolicExecutor, state: State, arg: Any) -> ast.expr:
    count, names = arg
    total = count + len(names)
    stack = state.stack
    if len(stack) <= total:
        state.need(total + 1)
    function = stack[-total - 1]
    if isinstance(function, Exit):
        raise CannotDecompile(LIFT, "the exit of a with statement is called elsewhere")
    if isinstance(function, FunctionExpr) and not names:
        iterable = stack[-1]
        if count == 1 and isinstance(iterable, Iter):
            del stack[-2:]
            return executor.scope.comprehension(function, iterable)
        if function.code.name.startswith(HIDDEN):
            given = executor.popn(state, total)
            stack.pop()
            return executor.scope.generic(function, given)
    values = executor.popn(state, total)
    keywords: list[ast.keyword] = []
    if names:
        keywords = [ast.keyword(n, v) for n, v in zip(names, values[count:])]  # (no version changes ``_C__x`` again)
        del values[count:]
    function = executor.pop(state)
    if isinstance(function, BuildClassName):
        return build_class(executor, values, keywords)
    if not names and (text := long_f_string(executor, function, values)) is not None:
        return text
    return ast.Call(function, values, keywords)


@rule(o.CALL_EX)
def _(executor: SymbolicExecutor, state: State, has_keywords: bool) -> ast.expr:
    keywords = keywords_of(executor.pop(state)) if has_keywords else []
    arguments = executor.pop(state)
    function = executor.pop(state)
    positional: list[ast.expr] = [ast.Starred(arguments, LOAD)]
    if isinstance(arguments, ast.Tuple) and not isinstance(arguments, JoinedTuple):
        is_constant = isinstance(arguments, LiteralTuple) and not has_keywords
        built_here = isinstance(arguments, (BuiltTuple, LiteralTuple))
        many = executor.scope.limits_the_stack() and len(arguments.elts) + 2 * len(keywords) > STACK_USE_GUIDELINE
        if many and (has_keywords or is_constant) or not is_constant and (
                has_star(arguments) or not built_here or any(k.arg is None for k in keywords)):
            positional = list(arguments.elts)
        if len(positional) > 1 and (has_star(arguments) or is_constant) and _is_display(executor, function, arguments):
            positional = [ast.Starred(arguments, LOAD)]
    if isinstance(function, BuildClassName):
        return build_class(executor, positional, keywords)
    return ast.Call(function, positional, keywords)


def _is_display(executor: SymbolicExecutor, function: ast.expr, arguments: ast.expr) -> bool:
    """Return whether a tuple of arguments was written as one: ``f(*(a, *b))`` is the program of ``f(a, *b)``.

    The tuple that the compiler makes of arguments has the span of the call (``starunpack_helper`` in compile.c).
    """
    tuple_ = executor.scope.position(offset_of(arguments))
    end = end_of(executor.scope, function)
    return tuple_ is not None and tuple_.column is not None and end is not None and (tuple_.line, tuple_.column) > end


def keywords_of(mapping: ast.expr) -> list[ast.keyword]:
    """Return the keyword arguments that a mapping was put together from."""
    if not isinstance(mapping, ast.Dict):
        return [ast.keyword(None, mapping)]
    parts = mapping.parts if isinstance(mapping, MergedDict) else []
    parts = parts or [list(zip(mapping.keys, mapping.values))]
    keywords: list[ast.keyword] = []
    named = True
    for part in parts:
        names: list[Any] = []
        value = ast.Dict([key for key, _ in part], [item for _, item in part]) if isinstance(part, list) else part
        # keywords after a mapping are merged in as a mapping of their own
        if isinstance(value, ast.Dict) and not isinstance(value, MergedDict) and (isinstance(part, list) or not named):
            names = [key.value if isinstance(key, ast.Constant) else None for key in value.keys]
        named = bool(names) and all(isinstance(n, str) and is_name(n) for n in names)
        if named and isinstance(value, ast.Dict):
            keywords += [ast.keyword(str(n), v) for n, v in zip(names, value.values)]
        else:
            keywords.append(ast.keyword(None, value))
    return keywords


# --- The interpreter's intrinsic functions (3.12 and later): mostly type parameters ------------------
@rule(o.INTRINSIC_1)
def _(executor: SymbolicExecutor, state: State, name: str) -> ast.expr | None:
    if name == "import_star":
        import_star(executor, state, None)
        return None
    if name == "stopiteration_error" or name == "async_gen_wrap":
        return None
    return type_parameter(executor, name, executor.pop(state))


def type_parameter(executor: SymbolicExecutor, name: str, value: ast.expr) -> ast.expr:
    """Return the result of an intrinsic of type parameters: a parameter, ``Generic[...]`` or an alias."""
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
            return TypeAlias(alias, given, expression(value_function.code, executor.scope))
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
        first.default = expression(second.code, executor.scope)
        return first
    if name in ("typevar_with_bound", "typevar_with_constraints") and isinstance(second, FunctionExpr) and (
        (parameter := text_of(first)) is not None
    ):
        shown = executor.scope.plain_name(parameter)
        return TypeParameter("typevar", shown, expression(second.code, executor.scope))
    raise CannotDecompile(LIFT, f"intrinsic {name}")
