"""f-strings and t-strings, and what is written with ``%``."""

from __future__ import annotations

import ast
import itertools
import re
from typing import TYPE_CHECKING, Any

from ...bytecode import operations as o
from ..emit.new_syntax import Interpolation, template
from ..errors import LIFT, CannotDecompile
from ..nodes import Formatted, FormattedText, PercentText, offset_of
from ..rules import registrar
from .spelling import start_of
from .stack import Rule, State

if TYPE_CHECKING:
    from .executor import SymbolicExecutor

#: An f-string of more parts than this is compiled to a list and a call of ``join``.
STACK_USE_GUIDELINE = 30

RULES: dict[str, Rule] = {}
rule = registrar(RULES)

#: What ``optimize_format`` makes of width and precision; ``-`` in front of the width is no ``>``.
_SPEC = re.compile(r"(>)?([1-9]\d{0,2})?(\.\d{1,3})?")


@rule(o.FORMAT)
def _(executor: SymbolicExecutor, state: State, arg: Any) -> ast.expr:
    conversion, has_spec = arg
    spec = None
    if has_spec:
        spec = executor.pop(state)
        if isinstance(spec, Formatted):
            spec = ast.JoinedStr(spec.fields)
        elif isinstance(spec, ast.Constant):
            spec = ast.JoinedStr([spec])
        elif not isinstance(spec, ast.JoinedStr):
            spec = ast.JoinedStr([ast.FormattedValue(spec, -1, None)])
    value = executor.pop(state)
    field = ast.FormattedValue(value, ord(conversion) if conversion else -1, spec)
    may_be = bool(conversion) and executor.scope.formats_percent()
    return formatted([field], with_percent(executor, value) if may_be else False)


@rule(o.CONVERT)
def _(executor: SymbolicExecutor, state: State, conversion: str) -> ast.expr:
    return ast.JoinedStr([ast.FormattedValue(executor.pop(state), ord(conversion), None)])


@rule(o.BUILD_STRING)
def _(executor: SymbolicExecutor, state: State, count: int) -> ast.expr:
    fields: list[ast.expr] = []
    by_percent: list[bool | None] = []
    for part in executor.popn(state, count):
        fields.extend(part.fields if isinstance(part, Formatted) else
                      part.values if isinstance(part, ast.JoinedStr) else [part])
        if not isinstance(part, ast.Constant):
            by_percent.append(part.percent if isinstance(part, Formatted) else False)
    percent = None if by_percent and not {True, False} & {*by_percent} else bool(by_percent) and False not in by_percent
    return formatted(fields, percent)


def long_f_string(executor: SymbolicExecutor, function: ast.expr, arguments: list[ast.expr]) -> ast.expr | None:
    """Return the f-string that was compiled to ``"".join([...])``; ``None`` for other calls.

    ``compiler_joined_str`` in compile.c does so from 3.10 on if it has more than ``STACK_USE_GUIDELINE`` parts. All
    parts of the call have the span of the f-string then.
    """
    only = arguments[0] if len(arguments) == 1 else None
    match function:
        case ast.Attribute(ast.Constant("") as start, "join") if isinstance(only, ast.List):
            same_span = executor.scope.position(offset_of(start)) == executor.scope.position(executor.offset)
        case _:
            return None
    if not executor.scope.joins_long_f_strings() or len(only.elts) <= STACK_USE_GUIDELINE or not same_span:
        return None
    fields: list[ast.expr] = []
    for part in only.elts:
        fields += part.fields if isinstance(part, Formatted) else [part]
    kinds = [type(part) is ast.FormattedValue for part in fields]
    texts = [part for part in fields if not isinstance(part, ast.FormattedValue)]
    if not all(isinstance(part, ast.Constant) and isinstance(part.value, str) and part.value for part in texts) or any(
            not one and not other for one, other in itertools.pairwise(kinds)):
        return None
    return formatted(fields, False)


def with_percent(executor: SymbolicExecutor, value: ast.expr) -> bool | None:
    """Return whether the field that formats a value was written as one of ``%``; ``None`` where nothing tells.

    ``optimize_format`` in ast_opt.c (3.11 to 3.13) gives the field the span of its value. That of an f-string has the
    span of all the string in 3.11, and from 3.12 on the one with its braces.
    """
    field = executor.scope.position(executor.offset)
    if field is None or field.column is None or field.end_column is None:
        return None
    if isinstance(value, ast.Name):
        return field.end_column - field.column == len(value.id)
    start = start_of(executor.scope, value)
    if start is None or start < (field.line, field.column):
        return None
    if isinstance(value, (ast.BoolOp, ast.IfExp, ast.Compare)):  # their first part may stand in parentheses
        return True if start == (field.line, field.column) else None
    return start == (field.line, field.column)


def formatted(fields: list[ast.expr], percent: bool | None) -> ast.expr:
    """Return a text with fields: with ``%`` if it was written so, or has ``!s``, which f-strings hardly have."""
    if percent is None:
        likely = any(isinstance(part, ast.FormattedValue) and part.conversion == ord("s") for part in fields)
    else:
        likely = percent
    parts = percent_text(fields) if likely else None
    return FormattedText(fields, percent) if parts is None else PercentText(*parts, fields, percent)


def percent_text(fields: list[ast.expr]) -> tuple[str, list[ast.expr]] | None:
    """Return the text before ``%`` and the values after it; ``None`` where the compiler makes no such fields."""
    text = ""
    values = []
    for part in fields:
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            text += part.value.replace("%", "%%")
            continue
        if not isinstance(part, ast.FormattedValue) or part.conversion == -1:
            return None
        spec = ""
        if isinstance(part.format_spec, ast.JoinedStr):
            only = part.format_spec.values[0] if len(part.format_spec.values) == 1 else None
            match = _SPEC.fullmatch(str(only.value)) if isinstance(only, ast.Constant) else None
            if match is None:
                return None
            right, width, precision = match.groups(default="")
            if width and not right:
                width = f"-{width}"
            spec = width + precision
        text += f"%{spec}{chr(part.conversion)}"
        values.append(part.value)
    return text, values


@rule(o.BUILD_INTERPOLATION)
def _(executor: SymbolicExecutor, state: State, arg: Any) -> ast.expr:
    conversion, has_spec = arg
    spec = executor.pop(state) if has_spec else None
    text = executor.pop(state)
    if not isinstance(text, ast.Constant) or not isinstance(text.value, str):
        raise CannotDecompile(LIFT, "the text of an interpolation is computed")
    return Interpolation(executor.pop(state), text.value, conversion, spec)


@rule(o.BUILD_TEMPLATE)
def _(executor: SymbolicExecutor, state: State, _: Any) -> ast.expr:
    interpolations, strings = executor.pop(state), executor.pop(state)
    if not isinstance(interpolations, ast.Tuple) or not isinstance(strings, ast.Tuple):
        raise CannotDecompile(LIFT, "a template made in another way")
    fields = [each for each in interpolations.elts if isinstance(each, Interpolation)]
    texts = [each.value for each in strings.elts if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    if len(fields) != len(interpolations.elts) or len(texts) != len(strings.elts) or len(texts) != len(fields) + 1:
        raise CannotDecompile(LIFT, "a template made in another way")
    return template(texts, fields)
