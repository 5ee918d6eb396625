"""Types, shapes and effects of expressions over tensors, as far as the facts recorded at a graph break say them.

    x: float32 [3, 2]        x * 2 + 1   ->  float32 [3, 2]
                             x.mean()    ->  float32 []
                             f(x)        ->  not known

Nothing here runs anything; an operation that is not in the tables below is not known.
"""

from __future__ import annotations

import ast
import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ..records.model import NamedValue
from .source import called

#: Operations of one tensor that give its shape, and the type of a floating-point one.
_ELEMENTWISE = frozenset({
    "abs", "neg", "negative", "relu", "clamp", "clip", "clamp_min", "clamp_max", "tanh", "sigmoid", "nan_to_num",
    "clone", "contiguous", "positive", "exp", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "reciprocal", "sin",
    "cos", "square", "round", "floor", "ceil", "sign", "erf", "expm1", "isnan", "isinf", "isfinite", "logical_not",
    "detach"})
#: Operations that give one number if they have no arguments.
_REDUCING = frozenset({"any", "all", "sum", "mean", "norm", "std", "var", "prod", "max", "min", "amax", "amin",
                       "argmax", "argmin", "median"})
_TRUTHS = frozenset({"any", "all", "isnan", "isinf", "isfinite", "logical_not"})
_RANDOM = frozenset({"rand", "randn", "randint", "randperm", "bernoulli", "multinomial", "normal", "poisson",
                     "rand_like", "randn_like", "randint_like", "sample", "rsample", "gumbel_softmax"})
#: Functions and methods that give Python values, and builtin functions that do.
_OF_PYTHON = frozenset({"item", "tolist", "size", "dim", "numel", "len", "int", "float", "bool", "list", "dict", "str",
                        "equal", "allclose", "is_nonzero"})
_BUILTINS = frozenset({"any", "all", "isinstance", "hasattr", "callable", "sorted"})
_NUMBERS = frozenset({"int", "float", "bool", "str", "NoneType", "SymInt", "SymFloat", "SymBool"})
_FLOATS = frozenset({"float16", "bfloat16", "float32", "float64"})


class Unproven(Exception):
    """A rewriting is known not to be the same; the text says why, as a clause."""


@dataclass(frozen=True)
class Kind:
    """The result of an expression.

    Attributes:
        shape, dtype: of a tensor; ``None`` and ``""`` where they are not known.
        is_python: it is a Python value.
        effect: what else it does, as a clause: ``"draws random numbers"``.
    """

    shape: tuple[str, ...] | None = None
    dtype: str = ""
    is_python: bool = False
    effect: str = ""


class Values:
    """The local variables at a graph break."""

    def __init__(self, values: Iterable[NamedValue]) -> None:
        self._by_name = {each.name: each for each in values}
        self._shared = {name for each in values if each.same_as for name in (each.name, each.same_as)}
        self._shared |= {each.name for each in values if each.shares_memory}

    def type_of(self, name: str) -> str:
        """Return the name of a variable's type; ``""`` where it is not known."""
        return self._by_name[name].type if name in self._by_name else ""

    def is_tensor(self, name: str) -> bool:
        """Return whether a variable is known to be a tensor."""
        return name in self._by_name and self._by_name[name].shape is not None

    def is_given(self, name: str) -> bool:
        """Return whether a variable came from outside of the function."""
        return name in self._by_name and bool(self._by_name[name].source)

    def is_number(self, name: str) -> bool:
        """Return whether a variable is known to be a number, a text or ``None``, which nothing changes in place."""
        return self.type_of(name) in _NUMBERS

    def is_alone(self, name: str) -> bool:
        """Return whether nothing else refers to a variable's object, or its memory; numbers are alone."""
        return self.is_number(name) or name in self._by_name and not self.is_given(name) and name not in self._shared

    def infer(self, node: ast.expr) -> Kind:
        """Return the kind of an expression's result."""
        match node:
            case ast.Constant() | ast.Attribute(_, "shape" | "ndim" | "dtype" | "device") | ast.Attribute(
                    ast.Name("torch")) | ast.Attribute(ast.Call(ast.Attribute(ast.Name("torch"), "finfo" | "iinfo"))):
                return Kind(is_python=True)
            case ast.List() | ast.Tuple() | ast.Dict() | ast.Set() | ast.ListComp() | ast.DictComp() | ast.JoinedStr():
                return Kind(is_python=True)
            case ast.Name(name) if self.type_of(name):
                value = self._by_name[name]
                return Kind(is_python=True) if value.shape is None else Kind(value.shape, value.dtype)
            case ast.UnaryOp(ast.USub(), inner):
                return self.infer(inner)
            case ast.BinOp(left, operator, right):
                return self._of_arithmetic(left, operator, right)
            case ast.Call(ast.Attribute(ast.Name("torch"), name), [first, *others], keywords) | ast.Call(
                    ast.Attribute(first, name), others, keywords) if (
                        name in _ELEMENTWISE | _REDUCING and self._may_be_tensor(first)):
                return self._of_operation(name, first, [*others, *(each.value for each in keywords)])
            case ast.Call(func):
                return self._of_call(node, func)
        return Kind()

    def _may_be_tensor(self, node: ast.expr) -> bool:
        """Return whether an expression may be a tensor, and no module: ``self.relu(x)`` is a call of a module."""
        if isinstance(node, ast.Name):
            return self.is_tensor(node.id) or not self.type_of(node.id) and node.id not in ("self", "cls", "F", "nn")
        return not isinstance(node, ast.Attribute)

    def _of_arithmetic(self, left: ast.expr, operator: ast.operator, right: ast.expr) -> Kind:
        one, other = self.infer(left), self.infer(right)
        effect = one.effect or other.effect
        if one.is_python and other.is_python:
            return Kind(is_python=True, effect=effect)
        shape = other.shape if one.is_python else one.shape if other.is_python else _broadcast(one.shape, other.shape)
        dtypes = {each.dtype for each in (one, other) if not each.is_python}
        dtype = dtypes.pop() if len(dtypes) == 1 else ""
        # (Beside integers the type depends on the number, and on the operator.)
        known = dtype in _FLOATS or not (one.is_python or other.is_python or isinstance(operator, ast.Div))
        return Kind(shape, dtype if known else "", effect=effect)

    def _of_operation(self, name: str, first: ast.expr, arguments: Sequence[ast.expr]) -> Kind:
        of = self.infer(first)
        if of.is_python:
            return Kind(is_python=True)
        effect = next(filter(None, [of.effect, *(self.infer(each).effect for each in arguments)]), "")
        shape = of.shape if name in _ELEMENTWISE else None if arguments else ()
        # (Of `uint8` torch gives no truth values.)
        dtype = "bool" if name in _TRUTHS and of.dtype != "uint8" else of.dtype if of.dtype in _FLOATS else ""
        return Kind(shape, "" if name in ("argmax", "argmin") else dtype, effect=effect)

    def _of_call(self, node: ast.Call, func: ast.expr) -> Kind:
        name = called(node)
        owner = func.value.id if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) else ""
        if name in _RANDOM and (owner == "torch" or self.is_tensor(owner)):
            return Kind(effect="draws random numbers")
        if name.endswith("_") and not name.endswith("__"):
            return Kind(effect="changes a tensor in place")
        is_python = owner in ("np", "numpy", "math") or name in _OF_PYTHON or (
            isinstance(func, ast.Name) and name in _BUILTINS)
        return Kind(is_python=is_python)


def truth(test: ast.expr, values: Values, text: Callable[[ast.expr], str]) -> ast.expr:
    """Return a test as one tensor of truth.

    Raises:
        Unproven: the test needs a value of Python's.
    """
    match test:
        case ast.BoolOp(operator, parts):
            first, *others = (truth(part, values, text) for part in parts)
            for part in others:
                first = ast.BinOp(first, ast.BitAnd() if isinstance(operator, ast.And) else ast.BitOr(), part)
            return first
        case ast.UnaryOp(ast.Not(), inner):
            return ast.UnaryOp(ast.Invert(), truth(inner, values, text))
        case ast.Compare(left, [operator], [right]) if not isinstance(operator, (ast.Is, ast.IsNot, ast.In, ast.NotIn)):
            sides = [_compared(left, right, values, text), _compared(right, left, values, text)]
            if all(values.infer(side).is_python for side in sides):
                raise Unproven(f"`{text(test)}` is computed with values of Python's")
            return ast.Compare(sides[0], [operator], [sides[1]])
    tensor = _tensor_of(test)
    kind = values.infer(tensor)
    if isinstance(test, ast.Compare):
        raise Unproven(f"`{text(test)}` asks for a truth value of Python's")
    if kind.is_python or kind.effect:
        raise Unproven(f"`{text(test)}` is no tensor")
    return tensor if kind.dtype == "bool" else ast.Compare(tensor, [ast.NotEq()], [ast.Constant(0)])


def _compared(side: ast.expr, beside: ast.expr, values: Values, text: Callable[[ast.expr], str]) -> ast.expr:
    """Return a side of a comparison as a tensor.

    Raises:
        Unproven: as a tensor it may compare otherwise than its number does.
    """
    tensor = _tensor_of(side)
    kind = values.infer(tensor)
    if tensor is not side and not (isinstance(beside, ast.Constant) and _is_exact(beside.value)):
        raise Unproven(f"`{text(side)}` is compared as a number of Python's, in double precision")
    if tensor is not side and kind.dtype in ("float16", "bfloat16"):
        raise Unproven(f"`{text(side)}` is compared as a number of Python's, and rounded otherwise")
    of = _whole(side.left) if isinstance(side, ast.BinOp) else None
    if of is not None and values.infer(of).dtype not in ("int64", "int32"):
        raise Unproven(f"`{text(side)}` is computed as a number of Python's, in double precision")
    if kind.effect:
        raise Unproven(f"the test {kind.effect}")
    return tensor


def _tensor_of(node: ast.expr) -> ast.expr:
    """Return the tensor of a number: ``x.sum()`` for ``x.sum().item()``, ``n % 2`` of ``int(n) % 2``."""
    match node:
        case ast.Call(ast.Attribute(inner, "item"), [], []):
            return inner
        case ast.Call(ast.Name("float" | "bool"), [inner], []) if not isinstance(inner, ast.Constant):
            return _tensor_of(inner)
        case ast.BinOp(ast.Call() as number, ast.Mod(), ast.Constant(int(value)) as right) if (
                value > 0 and (of := _whole(number))):
            if called(number) == "int":  # (of 1.5, in another call, it is 1)
                of = ast.Call(ast.Attribute(of, "long", ast.Load()), [], [])
            return ast.BinOp(of, ast.Mod(), right)
    return node


def _whole(node: ast.expr) -> ast.expr | None:
    """Return the tensor of ``int(x)`` or ``x.item()``; ``None`` for another expression."""
    match node:
        case ast.Call(ast.Name("int"), [inner], []) | ast.Call(ast.Attribute(inner, "item"), [], []):
            return _tensor_of(inner)
    return None


def _is_exact(value: object) -> bool:
    """Return whether single precision has the number, so that a comparison in it gives the same."""
    if isinstance(value, int):
        return abs(value) < 2**24
    return isinstance(value, float) and abs(value) < 3e38 and struct.unpack("f", struct.pack("f", value))[0] == value


def _broadcast(one: tuple[str, ...] | None, other: tuple[str, ...] | None) -> tuple[str, ...] | None:
    if one is None or other is None:
        return None
    if len(one) < len(other):
        one, other = other, one
    other = ("1",) * (len(one) - len(other)) + other
    if all(left == right or "1" in (left, right) for left, right in zip(one, other)):
        return tuple(right if left == "1" else left for left, right in zip(one, other))
    return None
