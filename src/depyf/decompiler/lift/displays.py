"""Tuples, lists, sets, dicts and texts: built, and filled; calls with their arguments."""

from __future__ import annotations

import ast
import itertools
import re
from typing import TYPE_CHECKING, Any

from ...bytecode import operations as o
from ...bytecode.operations import registrar
from .. import nodes
from ..annotations import HIDDEN, GenericBase, TypeAlias, TypeParameter, expression, parameters_of
from ..constants import constant
from ..emit.text import Interpolation, template
from ..errors import LIFT, CannotDecompile
from ..names import is_name
from .definitions import build_class, reached
from .operators import FORMATS_PERCENT, unfolded
from .spelling import start_of
from .stack import LOAD, Accumulator, FunctionExpr, Iter, Rule, State, is_none

if TYPE_CHECKING:
    from .executor import SymbolicExecutor

#: From how many constants on a list or set is made of one constant.
FEW = 3

RULES: dict[str, Rule] = {
    o.BUILD_TUPLE: lambda executor, state, count: nodes.BuiltTuple(
        unfolded(executor, executor.popn(state, count)), LOAD),
    o.BUILD_LIST: lambda executor, state, count: ast.List(unfolded(executor, executor.popn(state, count), FEW), LOAD),
    o.BUILD_SET: lambda executor, state, count: ast.Set(unfolded(executor, executor.popn(state, count), FEW)),
    o.BUILD_CONST_KEY_MAP: lambda executor, state, keys: ast.Dict(
        [constant(key) for key in keys], executor.popn(state, len(keys))),
    o.CONVERT: lambda executor, state, conversion: ast.JoinedStr(
        [ast.FormattedValue(executor.pop(state), ord(conversion), None)]),
}
rule = registrar(RULES)


@rule(o.BUILD_MAP)
def _(executor: SymbolicExecutor, state: State, count: int) -> ast.expr:
    items = executor.popn(state, 2 * count)
    keys = items[::2]
    if executor.scope.code.version < (3, 14):  # (whose compilers put constant keys into one constant)
        unfolded(executor, keys, 2)
    return ast.Dict([*keys], items[1::2])


@rule(o.BUILD_UNPACK)
def _(executor: SymbolicExecutor, state: State, arg: tuple[str, int]) -> ast.expr:
    """Join parts of a display (3.8 and before): items between two stars are a separate tuple or dict."""
    kind, count = arg
    parts = executor.popn(state, count)
    if kind in ("dict", "keywords"):
        return _joined_mapping(parts, kind == "keywords")
    elts: list[ast.expr] = []
    inner = ast.Set if kind == "set" else ast.Tuple
    spliced = False
    for part in parts:
        if isinstance(part, inner) and part.elts and not spliced and not has_star(part):
            elts += part.elts
            spliced = True
        else:
            elts.append(ast.Starred(part, LOAD))
            spliced = False
    if kind == "set":
        return ast.Set(elts)
    if kind == "list":
        return ast.List(elts, LOAD)
    return nodes.JoinedTuple(elts, LOAD) if kind == "tuple" else ast.Tuple(elts, LOAD)


def _joined_mapping(parts: list[ast.expr], keywords: bool) -> ast.Dict:
    """Return a dictionary of parts: displays are spliced in, and other mappings follow ``**``."""
    merged = nodes.MergedDict([], [])
    merged.parts = []
    spliced = False
    for part in parts:
        if isinstance(part, ast.Dict) and part.keys and None not in part.keys and not spliced and (
            not keywords or all(isinstance(k, ast.Constant) for k in part.keys)
        ):
            merged.keys += part.keys
            merged.values += part.values
            merged.parts.append(list(zip(part.keys, part.values)))
            spliced = True
        else:
            merged.keys.append(None)
            merged.values.append(part)
            merged.parts.append(part)
            spliced = False
    return merged if keywords else ast.Dict(merged.keys, merged.values)


def container(state: State, depth: int, *kinds: type[ast.expr]) -> Any:
    """Return the container at ``depth`` that an element is added to: one of these kinds."""
    state.need(depth)
    entry = state.stack[-depth]
    if isinstance(entry, kinds):
        return entry
    raise CannotDecompile(LIFT, "an element is added to something else")


@rule(o.LIST_APPEND)
def _(executor: SymbolicExecutor, state: State, depth: int) -> None:
    value = executor.pop(state)
    owner = container(state, depth, ast.List, Accumulator)
    if not isinstance(owner, Accumulator) and any(isinstance(e, Iter) for e in state.stack[-depth:]):
        raise CannotDecompile(LIFT, "a comprehension that is not looked at as a whole")
    owner.elts.append(value)


@rule(o.SET_ADD)
def _(executor: SymbolicExecutor, state: State, depth: int) -> None:
    value = executor.pop(state)
    if not (executor.scope.annotates and depth == 1 and reached(executor, state, value)):
        container(state, depth, ast.Set, Accumulator).elts.append(value)


@rule(o.MAP_ADD)
def _(executor: SymbolicExecutor, state: State, depth: int) -> None:
    key, value = executor.popn(state, 2)
    owner = container(state, depth, ast.Dict, Accumulator)
    owner.keys.append(key)
    owner.values.append(value)


@rule(o.LIST_EXTEND)
def _(executor: SymbolicExecutor, state: State, depth: int) -> None:
    value = executor.pop(state)
    owner = container(state, depth, ast.List)
    if isinstance(value, nodes.Literal) and isinstance(value, ast.Tuple) and not owner.elts and len(value.elts) > 2:
        # the compiler makes a constant of three elements or more (``starunpack_helper`` in compile.c)
        owner.elts.extend(value.elts)
    else:
        owner.elts.append(ast.Starred(value, LOAD))


@rule(o.SET_UPDATE)
def _(executor: SymbolicExecutor, state: State, depth: int) -> None:
    value = executor.pop(state)
    owner = container(state, depth, ast.Set)
    if isinstance(value, nodes.Literal) and isinstance(value, ast.Set) and not owner.elts:
        # the compiler makes a constant of three elements or more: some of them were equal
        owner.elts.extend([*value.elts, *value.elts[-1:] * (3 - len(value.elts))])
    else:
        owner.elts.append(ast.Starred(value, LOAD))


#: The number of entries that the compiler puts into one part of a dictionary (``STACK_USE_GUIDELINE``).
_FULL_PART = 15


@rule(o.DICT_UPDATE)
def _(executor: SymbolicExecutor, state: State, depth: int) -> None:
    value = executor.pop(state)
    owner = container(state, depth, ast.Dict)
    # Entries are a separate part after ``**``, and where a part is full (``compiler_dict`` in compile.c).
    is_part = bool(owner.keys) and (owner.keys[-1] is None or len(owner.keys) >= _FULL_PART)
    if is_part and isinstance(value, ast.Dict) and value.values and None not in value.keys:
        owner.keys.extend(value.keys)
        owner.values.extend(value.values)
    else:
        owner.keys.append(None)
        owner.values.append(value)


@rule(o.DICT_MERGE)
def _(executor: SymbolicExecutor, state: State, depth: int) -> None:
    value = executor.pop(state)
    owner = container(state, depth, ast.Dict)
    if not isinstance(owner, nodes.MergedDict):
        merged = nodes.refined(owner, nodes.MergedDict)
        merged.parts = [list(zip(owner.keys, owner.values))] if owner.keys else []
        owner = state.stack[-depth] = merged
    owner.parts.append(value)


@rule(o.LIST_TO_TUPLE)
def list_to_tuple(executor: SymbolicExecutor, state: State, _: Any) -> ast.expr:
    """Make a tuple of the list on top, which was filled because of a star: ``(*a, b)``."""
    value = executor.pop(state)
    if not isinstance(value, ast.List):
        raise CannotDecompile(LIFT, "LIST_TO_TUPLE of something else")
    return ast.Tuple(value.elts, LOAD)


def has_star(node: ast.Tuple | ast.Set) -> bool:
    """Return whether a display has a starred element."""
    return any(isinstance(e, ast.Starred) for e in node.elts)


# --- f-strings, t-strings, ``%`` ---------------------------------------------------------------------
#: An f-string of more parts than this is compiled to a list and a call of ``join``, a call of more arguments (a keyword
#: counts twice) to one with stars (3.10 and later).
STACK_USE_GUIDELINE = 30
#: The forms that ``optimize_format`` gives width and precision; ``-`` in front of the width is no ``>``.
_SPEC = re.compile(r"(>)?([1-9]\d{0,2})?(\.\d{1,3})?")


@rule(o.FORMAT)
def _(executor: SymbolicExecutor, state: State, arg: Any) -> ast.expr:
    conversion, has_spec = arg
    spec = None
    if has_spec:
        spec = executor.pop(state)
        if isinstance(spec, nodes.Formatted):
            spec = ast.JoinedStr(spec.fields)
        elif isinstance(spec, ast.Constant):
            spec = ast.JoinedStr([spec])
        elif not isinstance(spec, ast.JoinedStr):
            spec = ast.JoinedStr([ast.FormattedValue(spec, -1, None)])
    value = executor.pop(state)
    field = ast.FormattedValue(value, ord(conversion) if conversion else -1, spec)
    may_be = bool(conversion) and executor.scope.code.version >= FORMATS_PERCENT
    return formatted([field], with_percent(executor, value) if may_be else False)


@rule(o.BUILD_STRING)
def _(executor: SymbolicExecutor, state: State, count: int) -> ast.expr:
    fields: list[ast.expr] = []
    by_percent: list[bool | None] = []
    for part in executor.popn(state, count):
        fields.extend(part.fields if isinstance(part, nodes.Formatted) else
                      part.values if isinstance(part, ast.JoinedStr) else
                      [part if isinstance(part, ast.Constant) else ast.FormattedValue(part, -1, None)])
        if not isinstance(part, ast.Constant):
            by_percent.append(part.percent if isinstance(part, nodes.Formatted) else False)
    percent = None if by_percent and not {True, False} & {*by_percent} else bool(by_percent) and False not in by_percent
    return formatted(fields, percent)


def long_f_string(executor: SymbolicExecutor, function: ast.expr, arguments: list[ast.expr]) -> ast.expr | None:
    """Return the f-string that was compiled to ``"".join([...])``; ``None`` for other calls.

    ``compiler_joined_str`` does so from 3.10 on if it has many parts; all parts of the call have its span then.
    """
    only = arguments[0] if len(arguments) == 1 else None
    match function:
        case ast.Attribute(ast.Constant("") as start, "join") if isinstance(only, ast.List):
            same_span = executor.scope.position(nodes.offset_of(start)) == executor.scope.position(executor.offset)
        case _:
            return None
    if executor.scope.code.version < (3, 10) or len(only.elts) <= STACK_USE_GUIDELINE or not same_span:
        return None
    fields: list[ast.expr] = []
    for part in only.elts:
        fields += part.fields if isinstance(part, nodes.Formatted) else [part]
    kinds = [type(part) is ast.FormattedValue for part in fields]
    texts = [part for part in fields if not isinstance(part, ast.FormattedValue)]
    if not all(isinstance(part, ast.Constant) and isinstance(part.value, str) and part.value for part in texts) or any(
            not one and not other for one, other in itertools.pairwise(kinds)):
        return None
    return formatted(fields, False)


def with_percent(executor: SymbolicExecutor, value: ast.expr) -> bool | None:
    """Return whether the field that formats a value was written as one of ``%``; ``None`` where it is unknown.

    ``optimize_format`` in ast_opt.c (3.11 to 3.13) gives the field the span of its value. That of an f-string has the
    span of all the string in 3.11, and from 3.12 on the one with its braces.
    """
    field = executor.scope.position(executor.offset)
    if field is None or field.column is None or field.end_column is None:
        return None
    if isinstance(value, ast.Name):
        return field.end_column - field.column == len(value.id)
    start = start_of(executor.scope, value)
    is_at_start = start == (field.line, field.column)
    if start is None or start < (field.line, field.column) or not is_at_start and isinstance(
            value, (ast.BoolOp, ast.IfExp, ast.Compare)):  # their first part may be in parentheses
        return None
    return is_at_start


def formatted(fields: list[ast.expr], percent: bool | None) -> ast.expr:
    """Return a text with fields: with ``%`` if it was written so, or has ``!s``, which f-strings hardly have."""
    if percent is None:
        likely = any(isinstance(part, ast.FormattedValue) and part.conversion == ord("s") for part in fields)
    else:
        likely = percent
    parts = percent_text(fields) if likely else None
    return nodes.FormattedText(fields, percent) if parts is None else nodes.PercentText(*parts, fields, percent)


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
            spec = ("-" if width and not right else "") + width + precision
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
    fields, strings = ([*getattr(executor.pop(state), "elts", [])] for _ in range(2))
    texts = [each.value for each in strings if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    if not all(isinstance(each, Interpolation) for each in fields) or not len(texts) == len(strings) == len(fields) + 1:
        raise CannotDecompile(LIFT, "a template made in another way")
    return template(texts, fields)


# --- calls ------------------------------------------------------------------------------------------
@rule(o.CALL)
def _(executor: SymbolicExecutor, state: State, arg: Any) -> ast.expr:
    count, names = arg
    total = count + len(names)
    stack = state.stack
    if len(stack) <= total:
        state.need(total + 1)
    function = stack[-total - 1]
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
    if isinstance(function, nodes.BuildClassName):
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
    if isinstance(arguments, ast.Tuple) and not isinstance(arguments, nodes.JoinedTuple):
        is_constant = isinstance(arguments, nodes.Literal) and not has_keywords
        built_here = isinstance(arguments, (nodes.BuiltTuple, nodes.Literal))
        many = executor.scope.code.version >= (3, 10) and len(arguments.elts) + 2 * len(keywords) > STACK_USE_GUIDELINE
        if many and (has_keywords or is_constant) or not is_constant and (
                has_star(arguments) or not built_here or any(k.arg is None for k in keywords)):
            positional = list(arguments.elts)
    if isinstance(function, nodes.BuildClassName):
        return build_class(executor, positional, keywords)
    return ast.Call(function, positional, keywords)


def keywords_of(mapping: ast.expr) -> list[ast.keyword]:
    """Return the keyword arguments that a mapping was put together from."""
    if not isinstance(mapping, ast.Dict):
        return [ast.keyword(None, mapping)]
    parts = mapping.parts if isinstance(mapping, nodes.MergedDict) else []
    parts = parts or [list(zip(mapping.keys, mapping.values))]
    keywords: list[ast.keyword] = []
    named = True
    for part in parts:
        names: list[Any] = []
        value = ast.Dict([key for key, _ in part], [item for _, item in part]) if isinstance(part, list) else part
        # keywords after a mapping are merged in as a mapping of their own
        if isinstance(value, ast.Dict) and not isinstance(value, nodes.MergedDict) and (
                isinstance(part, list) or not named):
            names = [key.value if isinstance(key, ast.Constant) else None for key in value.keys]
        named = bool(names) and all(isinstance(n, str) and is_name(n) for n in names)
        if named and isinstance(value, ast.Dict):
            keywords += [ast.keyword(str(n), v) for n, v in zip(names, value.values)]
        else:
            keywords.append(ast.keyword(None, value))
    return keywords


# --- The interpreter's intrinsic functions (3.12 and later): type parameters -------------------------
@rule(o.INTRINSIC_1)
def _(executor: SymbolicExecutor, state: State, name: str) -> ast.expr:
    value = executor.pop(state)
    match name, value:
        case ("typevar" | "typevartuple" | "paramspec"), ast.Constant(str(parameter)):
            return TypeParameter(name, executor.scope.plain_name(parameter))
        case "subscript_generic", _ if parameters := parameters_of(value):
            return GenericBase(parameters)
        case "typealias", ast.Tuple([ast.Constant(str(alias)), given, FunctionExpr() as function]):
            parameters = [] if is_none(given) else parameters_of(given)
            if parameters is not None:
                return TypeAlias(alias, parameters, expression(function.code, executor.scope))
    raise CannotDecompile(LIFT, f"intrinsic {name}")


@rule(o.INTRINSIC_2)
def _(executor: SymbolicExecutor, state: State, name: str) -> ast.expr:
    first, second = executor.popn(state, 2)
    match name, first, second:
        case "set_function_type_params", FunctionExpr(), _ if parameters := parameters_of(second):
            first.type_parameters = parameters
            return first
        case "set_typeparam_default", TypeParameter(), FunctionExpr():
            first.default = expression(second.code, executor.scope)
            return first
        case ("typevar_with_bound" | "typevar_with_constraints"), ast.Constant(str(parameter)), FunctionExpr():
            shown = executor.scope.plain_name(parameter)
            return TypeParameter("typevar", shown, expression(second.code, executor.scope))
    raise CannotDecompile(LIFT, f"intrinsic {name}")
