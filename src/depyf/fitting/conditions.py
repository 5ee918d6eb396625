"""Recorded conditions, evaluated for a call of which some values are known.

    check_tensor(L['x'], dtype=torch.float32, size=(8, 4), ...)    x.shape[0] must be 8, is 1
    2 <= L['x'].size()[0]                                          holds, or x.shape[0] must be 2 or more, is 1
    check_same_object(L['fn'], 'function')                         undecided: which object it is was not given

Every condition is true, false, or undecided; nothing is guessed. What a condition compares is said in the words of
torch's reasons for a recompile (``torch_text/guard_failures.py``).
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Iterable, Iterator
from dataclasses import field, replace
from functools import partial
from typing import Any

from ..model.graph_text import OPERATORS
from ..model.guards import Marks, NoAliasing, SameObject, State, Tensor, Type
from ..model.reading import condition_of, in_shape_words
from ..records.model import Guard
from ..torch_text.guard_failures import comparison
from ..torch_text.parsed import literal, parsed_expression
from ..torch_text.user_expressions import frame_roots, user_expression
from ..values import frozen
from .given import UNKNOWN, Given, Opaque, Symbol, TensorValue, parsed, shown, symbol_of, type_name, words

#: Conditions that compare the type as well (torch/csrc/dynamo/guards.cpp, ``EQUALS_MATCH``).
_OF_ONE_TYPE = ("EQUALS_MATCH", "TRUE_MATCH", "FALSE_MATCH", "CONSTANT_MATCH")


class Undecided(Exception):
    """A value is not known; the message names it."""


@frozen
class Change:
    """A value that has to change."""

    path: str  # in the user's words, `"x"`, `"self.training"`; or a setting of torch's
    before: Any
    after: Any
    node: ast.expr = field(compare=False, repr=False)  # the same as an expression of torch's


@frozen
class Finding:
    """A condition, evaluated for a call."""

    guard: Guard
    holds: bool | None  # `None` where it cannot be decided
    # subject, wanted, met: of one that does not hold: what is compared, what it must be, what it is
    subject: str = ""
    wanted: str = ""
    met: str = ""
    change: Change | None = None  # with which it would hold, where the condition fixes a value
    missing: str = ""  # of one that is undecided: what was not given


#: Of a condition that does not hold: subject, wanted, met, change, as in a finding.
_Difference = tuple[str, str, str, Change | None]


def tried(guard: Guard, given: Given) -> Finding:
    """Evaluate a condition for a call."""
    missing = ""
    roots = frame_roots(guard.expression)
    try:
        if (not roots or given.may_know(roots)) and (tree := parsed(guard.expression)) is not None:
            difference = _difference(guard, tree, given)
            return Finding(guard, True) if difference is None else Finding(guard, False, *difference)
    except Undecided as undecided:
        missing = str(undecided)
    except (TypeError, ValueError, LookupError, ArithmeticError, AttributeError, RecursionError):
        pass  # (the values are not of a kind that it is meant for)
    return Finding(guard, None, missing=missing or (
        user_expression(guard.source) if guard.source else min(roots, default="torch's state")))


def _difference(guard: Guard, tree: ast.expr, given: Given) -> _Difference | None:
    """Return what of a condition does not hold, ``None`` if it holds; raise :class:`Undecided` if that is not known."""
    one = condition_of(guard)
    match one, tree:
        case State(settings=settings), _:
            return _state_difference(settings, given)
        case NoAliasing(), ast.Call(_, tensors):
            return _shared_tensor(tensors, given)
        case (Tensor() | Type() | SameObject() | Marks(but=""), ast.Call(_, [subject, *_])):
            value = value_of(subject, given)
            match one:
                case Tensor():
                    return _tensor_difference(one, subject, value, given)
                case SameObject(name=name):
                    return _object_difference(name, words(subject), value)
                case Type(name=name) if (met := type_name(value)):
                    return None if _same_type(met, name) else (
                        f"type({words(subject)})", name, met, _conversion(subject, value, name))
                case Marks() if isinstance(value, TensorValue):
                    return None  # (described tensors have no marks)
            raise Undecided(words(subject))
    return _expression_difference(guard, tree, given)


def _expression_difference(guard: Guard, tree: ast.expr, given: Given) -> _Difference | None:
    change = None
    of_one_type = True
    match tree:
        case ast.Compare(left, [ast.Eq()], [right]):
            value, other = value_of(left, given), value_of(right, given)
            if guard.kind in _OF_ONE_TYPE:
                of_one_type = "" in (type_name(value), type_name(other)) or type_name(value) == type_name(other)
            if _is_path(left) and not _is_path(right):
                change = changed_to(other, left, given)
        case ast.Compare(left, [ast.Is()], [ast.Constant(None)]) if _is_path(left):
            change = changed_to(None, left, given)
    if of_one_type and bool(value_of(tree, given)):
        return None

    def seen(expression: str) -> str:
        inner = parsed_expression(expression)
        value = UNKNOWN if inner is None else known(inner, given)
        return "" if value is UNKNOWN else shown(value)

    compared = comparison(guard.expression, seen)
    return (in_shape_words(user_expression(compared.subject)), in_shape_words(compared.expected), compared.seen, change)


def _is_path(node: ast.expr) -> bool:
    match node:
        case ast.Subscript(ast.Name("L" | "G"), ast.Constant()):
            return True
        case ast.Subscript(inner, ast.Constant()) | ast.Attribute(inner) | ast.Call(
                ast.Attribute(inner, "size" | "stride"), [], []):
            return _is_path(inner)
    return False


def changed_to(wanted: Any, node: ast.expr, given: Given) -> Change | None:
    """Return the change with which an expression has a value; of a size or stride, the change of its tensor."""
    match node:
        case ast.Subscript(ast.Call(ast.Attribute(inner, "size" | "stride" as method), [], []),
                           ast.Constant(int(index))):
            tensor = known(inner, given)
            if not isinstance(tensor, TensorValue) or type(wanted) is not int or wanted < 0:
                return None
            numbers = list(tensor.shape if method == "size" else tensor.stride)
            numbers[index] = wanted
            return Change(words(inner), tensor, tensor.with_shape(numbers) if method == "size" else replace(
                tensor, stride=tuple(numbers)), inner)
    return Change(words(node), known(node, given), wanted, node)


def _same_type(met: str, wanted: str) -> bool:
    return met == wanted or met.rpartition(".")[2] == wanted and "." not in wanted


def _conversion(node: ast.expr, value: Any, wanted: str) -> Change | None:
    """Return the change to the same value in another type, where it has one: ``4`` for ``4.0``."""
    if wanted == "NoneType":
        return Change(words(node), value, None, node)
    kind = {each.__name__: each for each in (int, float, bool, list, tuple, str)}.get(wanted)
    try:
        converted = kind(value) if kind is not None else None
    except (TypeError, ValueError, OverflowError):
        return None
    is_same = kind is not None and (converted == value or kind in (list, tuple))
    return Change(words(node), value, converted, node) if is_same else None


def _tensor_difference(wanted: Tensor, node: ast.expr, value: Any, given: Given) -> _Difference | None:
    path = words(node)
    if isinstance(value, Opaque) and value.type_name in ("", f"torch.{wanted.cls or 'Tensor'}"):
        raise Undecided(path)  # (a tensor of which guards see more than can be written)
    if not isinstance(value, TensorValue):
        return f"type({path})", "a tensor", type_name(value), None
    mode = given.state.get("inference_mode")
    if mode is None and wanted.inference == value.inference + 1:
        raise Undecided("torch.is_inference_mode_enabled()")
    # (Of `cuda`, the first device is meant.)
    device = value.device if wanted.device in ("", value.device.removesuffix(":0")) else wanted.device
    after = replace(value, dtype=wanted.dtype, device=device, requires_grad=wanted.requires_grad,
                    cls=wanted.cls or "Tensor", inference=wanted.inference > bool(mode))
    first = next(_tensor_differences(value, after, wanted, path, bool(mode)), None)
    if first is None:
        return None
    count = len(wanted.size)
    spare = (*value.shape[:count], *[2] * (count - len(value.shape)))
    shape = tuple(old if new is None else new for old, new in zip(spare, wanted.size))
    if shape != value.shape:
        after = after.with_shape(shape)  # (what the strides must be, the next round says)
    else:
        after = replace(after, stride=tuple(
            old if new is None else new for old, new in zip(value.stride, wanted.stride)))
    return (*first, Change(path, value, after, node))


def _tensor_differences(
    value: TensorValue, after: TensorValue, wanted: Tensor, path: str, is_inference_mode: bool,
) -> Iterator[tuple[str, str, str]]:
    """Yield the differences of a tensor from a condition, in torch's order: subject, wanted, met."""
    inference = value.inference + is_inference_mode
    if inference != wanted.inference:
        either = "and" if wanted.inference + (inference == 2) > 1 else "or"
        yield (f"{path}.is_inference() {either} torch.is_inference_mode_enabled()",
               str(wanted.inference > inference), str(inference > wanted.inference))
    for subject, name, form in (("type({})", "cls", "{}"), ("{}.device", "device", "{!r}"),
                                ("{}.dtype", "dtype", "torch.{}"), ("{}.requires_grad", "requires_grad", "{}")):
        one, met = getattr(after, name), getattr(value, name)
        if one != met:
            yield subject.format(path), form.format(one), form.format(met)
    if len(wanted.size) != len(value.shape):
        yield f"{path}.ndim", str(len(wanted.size)), str(len(value.shape))
        return
    for name, sizes, met in (("shape", wanted.size, value.shape), ("stride()", wanted.stride, value.stride)):
        for index, (size, actual) in enumerate(zip(sizes, met)):
            if size is not None and size != actual:
                yield f"{path}.{name}[{index}]", str(size), str(actual)


def _shared_tensor(tensors: list[ast.expr], given: Given) -> _Difference | None:
    seen: dict[int, str] = {}
    missing = ""
    for node in tensors:
        try:
            value = value_of(node, given)
        except Undecided as undecided:
            missing = missing or str(undecided)
            continue
        if id(value) in seen:
            return f"{seen[id(value)]} is {words(node)}", "False", "True", None
        seen[id(value)] = words(node)
    if missing:
        raise Undecided(f"{missing} (may be the same tensor as another)")
    return None


def _object_difference(wanted: str, path: str, value: Any) -> _Difference | None:
    # (Of a class, torch prints its own name.)
    if wanted and not _same_type(type_name(value), wanted) and wanted != "type" and isinstance(
            value, TensorValue | int | float | str | list | tuple | dict):
        return path, "the same object", shown(value), None
    if value is None and wanted == "NoneType":
        return None
    raise Undecided(f"{path} (which object it is)")


def _state_difference(settings: Iterable[tuple[str, str]], given: Given) -> _Difference | None:
    missing = []
    for name, wanted in settings:
        met = given.state.get(name)
        if name not in given.state:
            missing.append(name)
        elif wanted not in (str(met), repr(met), shown(met, 1000)):
            return (name.replace("_", " "), wanted, shown(met),
                    Change(name, met, _state_value(wanted), ast.Constant(None)))
    if missing:
        raise Undecided(f"torch's state ({', '.join(missing)})")
    return None


def state_of(guard: Guard) -> dict[str, Any]:
    """Return the settings of torch that a condition on its state asks for."""
    one = condition_of(guard)
    return {name: _state_value(value) for name, value in one.settings} if isinstance(one, State) else {}


def _state_value(text: str) -> Any:
    node = parsed_expression(text)
    return node and symbol_of(node) or literal(text, text)


# --- values of expressions ------------------------------------------------------------------------------
#: Functions of numbers in conditions on sizes.
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "Max": max, "Min": min, **{each.__name__: each for each in (max, min, abs, int, float, bool, round)}}
_MATH = ("isnan", "isinf", "sqrt", "floor", "ceil", "trunc")


def known(node: ast.expr, given: Given) -> Any:
    """Return the value of an expression as :func:`value_of` does; ``UNKNOWN`` where it was not given."""
    try:
        return value_of(node, given)
    except (Undecided, TypeError, ValueError, LookupError, ArithmeticError):
        return UNKNOWN


def value_of(node: ast.expr, given: Given) -> Any:
    """Return the value of an expression over ``L`` and ``G``, or of one in the user's words.

    Raises:
        Undecided: something in it was not given.
    """
    match node:
        case ast.Constant(value):
            return value
        case ast.BoolOp(junction, parts):
            return _joined(isinstance(junction, ast.And), [partial(_truth, part, given) for part in parts])
        case ast.UnaryOp(ast.Not(), inner):
            return not _truth(inner, given)
        case ast.UnaryOp(ast.USub(), inner):
            return -value_of(inner, given)
        case ast.BinOp(left, sign, right):
            return getattr(operator, OPERATORS[type(sign)])(value_of(left, given), value_of(right, given))
        case ast.IfExp(test, body, orelse):
            return value_of(body if value_of(test, given) else orelse, given)
        case ast.Compare(left, signs, rights):
            return _joined(True, [partial(_compared, *each, given) for each in zip((left, *rights), signs, rights)])
        case ast.List(items) | ast.Tuple(items) | ast.Set(items):
            kind: Any = {ast.List: list, ast.Tuple: tuple, ast.Set: set}[type(node)]
            return kind(value_of(item, given) for item in items)
        case ast.Name("inf" | "nan"):
            return float(node.id)
    if (there := given.get(node)) is not UNKNOWN:
        return there
    if (symbol := symbol_of(node)) is not None:
        return symbol
    match node:
        case ast.Call(called, arguments, []):
            return _result(node, called, arguments, given)
        case ast.Subscript(ast.Name("L" | "G"), _):
            pass
        case ast.Subscript(inner, index):
            value, key = value_of(inner, given), value_of(index, given)
            if isinstance(value, list | tuple | str | bytes) and type(key) is int or type(value) is dict:
                return value[key]
        case ast.Attribute(inner, name):
            match value_of(inner, given), name:
                case TensorValue(dtype=dtype), "dtype":
                    return Symbol(f"torch.{dtype}", "torch.dtype")
                case TensorValue() as tensor, "shape" | "requires_grad":
                    return getattr(tensor, name)
                case TensorValue(shape=shape), "ndim":
                    return len(shape)
    raise Undecided(words(node))


def _result(node: ast.expr, called: ast.expr, arguments: list[ast.expr], given: Given) -> Any:
    """Return the value of a call."""
    match called, arguments:
        case ast.Attribute(inner, "size" | "stride" | "dim" | "numel" as name), []:
            tensor = _of((TensorValue,), inner, given, node)
            return {"size": tensor.shape, "stride": tensor.stride, "dim": len(tensor.shape),
                    "numel": math.prod(tensor.shape)}[name]
        case ast.Attribute(ast.Name("math"), name), [inner] if name in _MATH:
            return getattr(math, name)(value_of(inner, given))
        case ast.Attribute(ast.Name("dict"), "keys"), [inner]:
            return list(_of((dict,), inner, given))
        case ast.Name("dict_contains"), [key, inner]:
            return value_of(key, given) in _of((dict,), inner, given)
        case ast.Attribute(ast.Name("set"), "__contains__"), [inner, key]:
            return value_of(key, given) in _of((set,), inner, given)
        case ast.Name("set"), []:
            return set()
        case ast.Name("hasattr"), [inner, ast.Constant(str(name))] if name.startswith("_dynamo_"):
            _of((TensorValue,), inner, given, node)
            return False  # (described tensors have no marks)
        case ast.Name("len" | "list" as name), [inner]:
            items = _of((list, tuple, dict, set, str, bytes), inner, given)
            return len(items) if name == "len" else list(items)
        case ast.Name(name), _ if name in _FUNCTIONS:
            return _FUNCTIONS[name](*(value_of(each, given) for each in arguments))
    raise Undecided(words(node))


def _of(kinds: tuple[type, ...], node: ast.expr, given: Given, whole: ast.expr | None = None) -> Any:
    """Return a value of one of these types; that of another is not known, nor that of the expression it is in."""
    value = value_of(node, given)
    if not isinstance(value, kinds):
        raise Undecided(words(whole or node))
    return value


def _truth(node: ast.expr, given: Given) -> bool:
    """Return whether a value is true; that of tensors and of the user's objects is not known."""
    value = value_of(node, given)
    if isinstance(value, TensorValue | Opaque | Symbol):
        raise Undecided(words(node))
    return bool(value)


def _joined(every: bool, tests: Iterable[Callable[[], bool]]) -> bool:
    """Return whether every test, or any of them, holds; one that decides it does so whatever is missing of others."""
    missing: Undecided | None = None
    for test in tests:
        try:
            if test() != every:
                return not every
        except Undecided as undecided:
            missing = missing or undecided
    if missing is not None:
        raise missing
    return every


def _compared(left: ast.expr, sign: ast.cmpop, right: ast.expr, given: Given) -> bool:
    value, other = value_of(left, given), value_of(right, given)
    objects = isinstance(value, Opaque), isinstance(other, Opaque)
    why = ""
    if isinstance(sign, ast.Is | ast.IsNot):
        is_known = value is None or other is None or isinstance(value, TensorValue | bool | Opaque | list | dict)
        if all(objects) and value is not other or not is_known:
            why = "which object it is"
    elif any(objects):
        why = "what an object compares equal to"
    elif isinstance(value, TensorValue) or isinstance(other, TensorValue):
        why = "the values of a tensor"
    if why:
        raise Undecided(f"{words(left)} ({why})")
    if isinstance(sign, ast.In | ast.NotIn):
        return (value in other) == isinstance(sign, ast.In)
    return bool(getattr(operator, OPERATORS[type(sign)])(value, other))
