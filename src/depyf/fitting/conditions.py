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
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

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


@dataclass(frozen=True, slots=True)
class Facet:
    """A part of a value that a condition fixes.

    Attributes:
        path: of the value, in the user's words: ``"x"``.
        part: ``"value"``, ``"shape"``, ``"stride"``, ``"dtype"``, ``"device"``, ``"requires_grad"``, ``"state"``.
        index: of the dimension.
        wanted: what it must be.
        node: the path as an expression of torch's.
    """

    path: str
    part: str
    index: int
    wanted: Any
    node: ast.expr = field(default=ast.Constant(None), compare=False, repr=False)


@frozen
class Finding:
    """A condition, evaluated for a call.

    Attributes:
        holds: ``None`` where it cannot be decided.
        subject, wanted, met: of one that does not hold: what is compared, what it must be, what it is.
        facets: what of the values must change, as far as the condition fixes it.
        missing: of one that is undecided: what was not given.
    """

    guard: Guard
    holds: bool | None
    subject: str = ""
    wanted: str = ""
    met: str = ""
    facets: tuple[Facet, ...] = ()
    missing: str = ""


def tried(guard: Guard, given: Given) -> Finding:
    """Evaluate a condition for a call."""
    missing = ""
    roots = frame_roots(guard.expression)
    try:
        if (not roots or given.may_know(roots)) and (tree := parsed(guard.expression)) is not None:
            return _tried(guard, tree, given)
    except Undecided as undecided:
        missing = str(undecided)
    except (TypeError, ValueError, LookupError, ArithmeticError, AttributeError, RecursionError):
        pass  # (the values are not of a kind that it is meant for)
    return Finding(guard, None, missing=missing or _subject_of(guard))


def _subject_of(guard: Guard) -> str:
    if guard.source:
        return user_expression(guard.source)
    return min(frame_roots(guard.expression), default="torch's state")


def _tried(guard: Guard, tree: ast.expr, given: Given) -> Finding:
    one = condition_of(guard)
    match one, tree:
        case State(), _:
            return _state_finding(guard, dict(one.settings), given)
        case NoAliasing(), ast.Call(_, tensors):
            return _alias_finding(guard, tensors, given)
        case (Tensor() | Type() | SameObject() | Marks(but=""), ast.Call(_, [subject, *_])):
            value = value_of(subject, given)
            match one:
                case Tensor():
                    return _tensor_finding(guard, one, subject, value, given)
                case SameObject():
                    return _object_finding(guard, one.name, words(subject), value)
                case Type() if (met := type_name(value)):
                    return Finding(guard, True) if _same_type(met, one.name) else Finding(
                        guard, False, f"type({words(subject)})", one.name, met, _conversion(subject, value, one.name))
                case Marks() if isinstance(value, TensorValue):
                    return Finding(guard, True)  # (described tensors have no marks)
            raise Undecided(words(subject))
    return _expression_finding(guard, tree, given)


def _expression_finding(guard: Guard, tree: ast.expr, given: Given) -> Finding:
    evaluator = _Evaluator(given)
    facets: tuple[Facet, ...] = ()
    of_one_type = True
    match tree:
        case ast.Compare(left, [ast.Eq()], [right]):
            value, other = evaluator.value(left), evaluator.value(right)
            if guard.kind in _OF_ONE_TYPE:
                of_one_type = "" in (type_name(value), type_name(other)) or type_name(value) == type_name(other)
            if _is_path(left) and not _is_path(right):
                facets = (_facet(left, other),)
        case ast.Compare(left, [ast.Is()], [ast.Constant(None)]) if _is_path(left):
            facets = (_facet(left, None),)
    if of_one_type and bool(evaluator.value(tree)):
        return Finding(guard, True)

    def seen(expression: str) -> str:
        inner = parsed_expression(expression)
        try:
            return "" if inner is None else shown(evaluator.value(inner))
        except (Undecided, TypeError, ValueError, LookupError, ArithmeticError):
            return ""

    compared = comparison(guard.expression, seen)
    subject = user_expression(compared.subject)
    return Finding(guard, False, in_shape_words(subject), in_shape_words(compared.expected), compared.seen, facets)


def _same_type(met: str, wanted: str) -> bool:
    return met == wanted or met.rpartition(".")[2] == wanted and "." not in wanted


def _conversion(node: ast.expr, value: Any, wanted: str) -> tuple[Facet, ...]:
    """Return the same value in another type, where it has one: ``4`` for ``4.0``."""
    kinds: dict[str, Callable[[Any], Any]] = {"int": int, "float": float, "bool": bool, "list": list, "tuple": tuple,
                                              "str": str}
    if wanted == "NoneType":
        return (_facet(node, None),)
    try:
        converted = kinds[wanted](value)
    except (KeyError, TypeError, ValueError, OverflowError):
        return ()
    return (_facet(node, converted),) if converted == value or wanted in ("list", "tuple") else ()


# --- tensors ------------------------------------------------------------------------------------------
def _tensor_finding(guard: Guard, wanted: Tensor, node: ast.expr, value: Any, given: Given) -> Finding:
    path = words(node)
    if isinstance(value, Opaque) and value.type_name in ("", f"torch.{wanted.cls or 'Tensor'}"):
        raise Undecided(path)  # (a tensor of which guards see more than can be written)
    if not isinstance(value, TensorValue):
        return Finding(guard, False, f"type({path})", "a tensor", type_name(value))
    mode = given.state.get("inference_mode")
    if mode is None and wanted.inference == value.inference + 1:
        raise Undecided("torch.is_inference_mode_enabled()")
    differences = list(_tensor_differences(value, wanted, path, node, bool(mode)))
    if not differences:
        return Finding(guard, True)
    name, text, met, _ = differences[0]
    return Finding(guard, False, name, text, met, tuple(facet for *_, facet in differences))


def _tensor_differences(
    value: TensorValue, wanted: Tensor, path: str, node: ast.expr, is_inference_mode: bool,
) -> Iterator[tuple[str, str, str, Facet]]:
    """Yield the differences of a tensor from a condition, in torch's order: subject, wanted, met, facet."""
    inference = value.inference + is_inference_mode
    if inference != wanted.inference:
        either = "and" if wanted.inference + (inference == 2) > 1 else "or"
        yield (f"{path}.is_inference() {either} torch.is_inference_mode_enabled()",
               str(wanted.inference > inference), str(inference > wanted.inference),
               Facet(path, "inference", 0, wanted.inference > is_inference_mode, node))
    # (Of `cuda`, the first device is meant.)
    device = value.device if wanted.device in ("", value.device.removesuffix(":0")) else wanted.device
    rows: tuple[tuple[str, str, Any, Any, Callable[[Any], str]], ...] = (
        ("cls", f"type({path})", wanted.cls or "Tensor", value.cls, str),
        ("device", f"{path}.device", device, value.device, repr),
        ("dtype", f"{path}.dtype", wanted.dtype, value.dtype, "torch.{}".format),
        ("requires_grad", f"{path}.requires_grad", wanted.requires_grad, value.requires_grad, str))
    for part, subject, one, other, as_text in rows:
        if one != other:
            yield subject, as_text(one), as_text(other), Facet(path, part, 0, one, node)
    if len(wanted.size) != len(value.shape):
        yield (f"{path}.ndim", str(len(wanted.size)), str(len(value.shape)), Facet(path, "ndim", 0, wanted.size, node))
        return
    for part, method, sizes, met in (("shape", "shape", wanted.size, value.shape),
                                     ("stride", "stride()", wanted.stride, value.stride)):
        for index, (size, actual) in enumerate(zip(sizes, met)):
            if size is not None and size != actual:
                yield f"{path}.{method}[{index}]", str(size), str(actual), Facet(path, part, index, size, node)


def _alias_finding(guard: Guard, tensors: list[ast.expr], given: Given) -> Finding:
    seen: dict[int, str] = {}
    missing = ""
    for node in tensors:
        try:
            value = value_of(node, given)
        except Undecided as undecided:
            missing = missing or str(undecided)
            continue
        if id(value) in seen:
            return Finding(guard, False, f"{seen[id(value)]} is {words(node)}", "False", "True")
        seen[id(value)] = words(node)
    if missing:
        raise Undecided(f"{missing} (may be the same tensor as another)")
    return Finding(guard, True)


def _object_finding(guard: Guard, wanted: str, path: str, value: Any) -> Finding:
    if wanted and not _same_type(type_name(value), wanted):
        # (Of a class, torch prints its own name.)
        if isinstance(value, TensorValue | int | float | str | list | tuple | dict) and wanted != "type":
            return Finding(guard, False, path, "the same object", shown(value))
    if value is None and wanted == "NoneType":
        return Finding(guard, True)
    raise Undecided(f"{path} (which object it is)")


def _state_finding(guard: Guard, settings: Mapping[str, str], given: Given) -> Finding:
    for name, wanted in settings.items():
        met = given.state.get(name)
        if name in given.state and wanted not in (str(met), repr(met), shown(met, 1000)):
            return Finding(guard, False, name.replace("_", " "), wanted, shown(met),
                             (Facet(name, "state", 0, _state_value(wanted)),))
    missing = [name for name in settings if name not in given.state]
    if missing:
        raise Undecided(f"torch's state ({', '.join(missing)})")
    return Finding(guard, True)


def state_of(guard: Guard) -> dict[str, Any]:
    """Return the settings of torch that a condition on its state asks for."""
    one = condition_of(guard)
    return {name: _state_value(value) for name, value in one.settings} if isinstance(one, State) else {}


def _state_value(text: str) -> Any:
    node = parsed_expression(text)
    return node and symbol_of(node) or literal(text, text)


# --- expressions ----------------------------------------------------------------------------------------
def _is_path(node: ast.expr) -> bool:
    match node:
        case ast.Subscript(ast.Name("L" | "G"), ast.Constant()):
            return True
        case ast.Subscript(inner, ast.Constant()) | ast.Attribute(inner) | ast.Call(
                ast.Attribute(inner, "size" | "stride"), [], []):
            return _is_path(inner)
    return False


def _facet(node: ast.expr, wanted: Any) -> Facet:
    match node:
        case ast.Subscript(ast.Call(ast.Attribute(inner, "size" | "stride" as method), [], []),
                           ast.Constant(int(index))):
            return Facet(words(inner), "shape" if method == "size" else "stride", index, wanted, inner)
    return Facet(words(node), "value", 0, wanted, node)


def _floor_div(a: Any, b: Any) -> Any:
    return a // b


_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: lambda a, b: a + b, ast.Sub: lambda a, b: a - b, ast.Mult: lambda a, b: a * b,
    ast.FloorDiv: _floor_div, ast.Div: lambda a, b: a / b, ast.Mod: lambda a, b: a % b,
    ast.Pow: lambda a, b: a**b, ast.BitAnd: lambda a, b: a & b, ast.BitOr: lambda a, b: a | b,
    ast.LShift: lambda a, b: a << b, ast.RShift: lambda a, b: a >> b}
_COMPARED: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Lt: lambda a, b: a < b, ast.LtE: lambda a, b: a <= b, ast.Gt: lambda a, b: a > b,
    ast.GtE: lambda a, b: a >= b, ast.Eq: lambda a, b: a == b, ast.NotEq: lambda a, b: a != b,
    ast.In: lambda a, b: a in b, ast.NotIn: lambda a, b: a not in b}
#: Functions of numbers, as torch prints them in conditions on sizes.
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "Max": max, "Min": min, "max": max, "min": min, "abs": abs, "Abs": abs, "int": int, "float": float, "bool": bool,
    "round": round, "Mod": lambda a, b: a % b, "PythonMod": lambda a, b: a % b, "FloorDiv": _floor_div,
    "CleanDiv": _floor_div, "CeilDiv": lambda a, b: -(-a // b), "IntTrueDiv": lambda a, b: a / b,
    "FloatTrueDiv": lambda a, b: a / b, "TrueDiv": lambda a, b: a / b, "ToFloat": float,
    "OpaqueUnaryFn_sqrt": math.sqrt, "FloatPow": lambda a, b: float(a) ** b, "PowByNatural": lambda a, b: a**b,
    "TruncToInt": math.trunc, "FloorToInt": math.floor, "CeilToInt": math.ceil}
_MATH = ("isnan", "isinf", "sqrt", "floor", "ceil", "trunc")


def value_of(node: ast.expr, given: Given) -> Any:
    """Return the value of an expression over ``L`` and ``G``, or of one in the user's words.

    Raises:
        Undecided: something in it was not given.
    """
    return _Evaluator(given).value(node)


def known(node: ast.expr, given: Given) -> Any:
    """Return the value of such an expression; ``UNKNOWN`` where it was not given."""
    try:
        return value_of(node, given)
    except (Undecided, LookupError, TypeError):
        return UNKNOWN


class _Evaluator:
    def __init__(self, given: Given) -> None:
        self._given = given

    def value(self, node: ast.expr) -> Any:
        match node:
            case ast.Constant(value):
                return value
            case ast.BoolOp(operator, parts):
                return self._junction(isinstance(operator, ast.And), parts)
            case ast.UnaryOp(ast.Not(), inner):
                return not self._plain(inner)
            case ast.UnaryOp(ast.USub(), inner):
                return -self.value(inner)
            case ast.BinOp(left, operator, right) if type(operator) in _BINARY:
                return _BINARY[type(operator)](self.value(left), self.value(right))
            case ast.IfExp(test, body, orelse):
                return self.value(body if self.value(test) else orelse)
            case ast.Compare(left, operators, rights):
                return self._comparison(left, operators, rights)
            case ast.List(items) | ast.Tuple(items) | ast.Set(items):
                kind: Any = {ast.List: list, ast.Tuple: tuple, ast.Set: set}[type(node)]
                return kind(self.value(item) for item in items)
            case ast.Name("inf" | "nan" as name):
                return float(name)
        return self._read(node)

    def _plain(self, node: ast.expr) -> Any:
        """Return a value that is tested; the truth of tensors and of the user's objects is not known."""
        value = self.value(node)
        if isinstance(value, TensorValue | Opaque | Symbol):
            raise Undecided(words(node))
        return value

    def _junction(self, every: bool, parts: list[ast.expr]) -> bool:
        missing: Undecided | None = None
        for part in parts:
            try:
                if bool(self._plain(part)) != every:
                    return not every
            except Undecided as undecided:
                missing = missing or undecided
        if missing is not None:
            raise missing
        return every

    def _comparison(self, left: ast.expr, operators: list[ast.cmpop], rights: list[ast.expr]) -> bool:
        """Return whether all comparisons of a chain hold; one that does not decides it, whatever is missing."""
        nodes, values, missing = (left, *rights), list[Any](), None
        for node in nodes:
            try:
                values.append(self.value(node))
            except Undecided as undecided:
                values.append(UNKNOWN)
                missing = missing or undecided
        for node, operator, value, other in zip(nodes, operators, values, values[1:]):
            if value is UNKNOWN or other is UNKNOWN:
                continue
            try:
                if not self._two(operator, value, other):
                    return False
            except Undecided as undecided:
                raise Undecided(f"{words(node)} ({undecided})") from None
        if missing is not None:
            raise missing
        return True

    def _two(self, operator: ast.cmpop, value: Any, other: Any) -> bool:
        if isinstance(operator, ast.Is | ast.IsNot):
            if isinstance(value, Opaque) and isinstance(other, Opaque) and value is not other:
                raise Undecided("which object it is")
            plain = value is None or other is None or isinstance(value, TensorValue | bool)
            if not plain and not isinstance(value, Opaque | list | dict):
                raise Undecided("which object it is")
            return (value is other) == isinstance(operator, ast.Is)
        if isinstance(value, Opaque) or isinstance(other, Opaque):
            raise Undecided("what an object compares equal to")
        if isinstance(value, TensorValue) or isinstance(other, TensorValue):
            raise Undecided("the values of a tensor")
        return _COMPARED[type(operator)](value, other)

    # --- reading ----------------------------------------------------------------------------------------
    def _read(self, node: ast.expr) -> Any:
        given = self._given.get(node)
        if given is not UNKNOWN:
            return given
        symbol = symbol_of(node)
        if symbol is not None:
            return symbol
        match node:
            case ast.Call(called, arguments, []):
                return self._called(node, called, arguments)
            case ast.Subscript(ast.Name("L" | "G"), _):
                raise Undecided(words(node))
            case ast.Subscript(inner, key):
                return self._item(node, self.value(inner), self.value(key))
            case ast.Attribute(inner, name):
                return self._attribute(node, self.value(inner), name)
        raise Undecided(words(node))

    def _item(self, node: ast.expr, value: Any, key: Any) -> Any:
        if isinstance(value, list | tuple | str | bytes) and type(key) is int or type(value) is dict:
            return value[key]
        raise Undecided(words(node))

    def _attribute(self, node: ast.expr, value: Any, name: str) -> Any:
        match value, name:
            case TensorValue(), "dtype":
                return Symbol(f"torch.{value.dtype}", "torch.dtype")
            case TensorValue(), "shape" | "requires_grad":
                return getattr(value, name)
            case TensorValue(), "ndim":
                return len(value.shape)
        raise Undecided(words(node))

    def _called(self, node: ast.expr, called: ast.expr, arguments: list[ast.expr]) -> Any:
        match called, arguments:
            case ast.Attribute(inner, "size" | "stride" | "dim" | "numel" as name), []:
                return self._tensor_finding(node, self.value(inner), name)
            case ast.Attribute(ast.Name("math"), name), [inner] if name in _MATH:
                return getattr(math, name)(self.value(inner))
            case ast.Attribute(ast.Name("dict"), "keys"), [inner]:
                return list(self._a(dict, inner))
            case ast.Name("dict_contains"), [key, inner]:
                return self.value(key) in self._a(dict, inner)
            case ast.Attribute(ast.Name("set"), "__contains__"), [inner, key]:
                return self.value(key) in self._a(set, inner)
            case ast.Name("set"), []:
                return set()
            case ast.Name("hasattr"), [inner, ast.Constant(str(name))] if name.startswith("_dynamo_"):
                if isinstance(self.value(inner), TensorValue):
                    return False  # (described tensors have no marks)
            case ast.Name("len"), [inner]:
                return len(self._sized(inner))
            case ast.Name("list"), [inner]:
                return list(self._sized(inner))
            case ast.Name(name), _ if name in _FUNCTIONS:
                return _FUNCTIONS[name](*(self.value(each) for each in arguments))
        raise Undecided(words(node))

    def _tensor_finding(self, node: ast.expr, value: Any, name: str) -> Any:
        if not isinstance(value, TensorValue):
            raise Undecided(words(node))
        return {"size": value.shape, "stride": value.stride, "dim": len(value.shape),
                "numel": math.prod(value.shape)}[name]

    def _a(self, kind: type, node: ast.expr) -> Any:
        value = self.value(node)
        if type(value) is not kind:
            raise Undecided(words(node))
        return value

    def _sized(self, node: ast.expr) -> Any:
        value = self.value(node)
        if not isinstance(value, list | tuple | dict | set | str | bytes):
            raise Undecided(words(node))
        return value
