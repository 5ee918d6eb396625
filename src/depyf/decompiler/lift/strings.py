"""f-strings and t-strings."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from ...bytecode import operations as o
from ..emit.new_syntax import Interpolation, template
from ..errors import LIFT, CannotDecompile
from ..rules import registrar
from .rule import Rule
from .stack import State

if TYPE_CHECKING:
    from .executor import SymbolicExecutor

RULES: dict[str, Rule] = {}
rule = registrar(RULES)


@rule(o.FORMAT)
def _(executor: SymbolicExecutor, state: State, arg: Any) -> None:
    conversion, has_spec = arg
    spec = None
    if has_spec:
        spec = executor.pop(state)
        if isinstance(spec, ast.Constant):
            spec = ast.JoinedStr([spec])
        elif not isinstance(spec, ast.JoinedStr):
            spec = ast.JoinedStr([ast.FormattedValue(spec, -1, None)])
    value = ast.FormattedValue(executor.pop(state), ord(conversion) if conversion else -1, spec)
    executor.push(state, ast.JoinedStr([value]))


@rule(o.CONVERT)
def _(executor: SymbolicExecutor, state: State, conversion: str) -> None:
    executor.push(state, ast.JoinedStr([ast.FormattedValue(executor.pop(state), ord(conversion), None)]))


@rule(o.BUILD_STRING)
def _(executor: SymbolicExecutor, state: State, count: int) -> None:
    parts: list[ast.expr] = []
    for part in executor.popn(state, count):
        parts.extend(part.values if isinstance(part, ast.JoinedStr) else [part])
    executor.push(state, ast.JoinedStr(parts))


@rule(o.BUILD_INTERPOLATION)
def _(executor: SymbolicExecutor, state: State, arg: Any) -> None:
    conversion, has_spec = arg
    spec = executor.pop(state) if has_spec else None
    text = executor.pop(state)
    if not isinstance(text, ast.Constant) or not isinstance(text.value, str):
        raise CannotDecompile(LIFT, "the text of an interpolation is computed")
    executor.push(state, Interpolation(executor.pop(state), text.value, conversion, spec))


@rule(o.BUILD_TEMPLATE)
def _(executor: SymbolicExecutor, state: State, _: Any) -> None:
    interpolations, strings = executor.pop(state), executor.pop(state)
    if not isinstance(interpolations, ast.Tuple) or not isinstance(strings, ast.Tuple):
        raise CannotDecompile(LIFT, "a template made in another way")
    fields = [each for each in interpolations.elts if isinstance(each, Interpolation)]
    texts = [each.value for each in strings.elts if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    if len(fields) != len(interpolations.elts) or len(texts) != len(strings.elts) or len(texts) != len(fields) + 1:
        raise CannotDecompile(LIFT, "a template made in another way")
    executor.push(state, template(texts, fields))
