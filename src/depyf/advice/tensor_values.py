"""What expressions over tensors are, as far as the facts recorded at a graph break say it: types, effects, tests.

    x: float32        x.mean()                   ->  a tensor, float32
                      len(x)                     ->  a value of Python's
                      x.sum().item() > 0         ->  x.sum() > 0, a tensor of truth

Nothing here runs anything; an operation that is not in the tables below is not known.
"""

from __future__ import annotations

import ast
import struct
from collections.abc import Callable, Iterable

from ..records.model import NamedValue
from .source import called

#: Operations of one tensor that give the type of a floating-point one.
_SAME_TYPE = frozenset({
    "abs", "neg", "negative", "relu", "clamp", "clip", "clamp_min", "clamp_max", "tanh", "sigmoid", "nan_to_num",
    "clone", "contiguous", "positive", "exp", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "reciprocal", "sin",
    "cos", "square", "round", "floor", "ceil", "sign", "erf", "expm1", "detach", "sum", "mean", "norm", "std", "var",
    "prod", "max", "min", "amax", "amin", "median"})
#: Those that give truth values.
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

    def is_python(self, node: ast.expr) -> bool:
        """Return whether an expression is known to give a value of Python's."""
        match node:
            case ast.Constant() | ast.Attribute(_, "shape" | "ndim" | "dtype" | "device") | ast.Attribute(
                    ast.Name("torch")) | ast.Attribute(ast.Call(ast.Attribute(ast.Name("torch"), "finfo" | "iinfo"))):
                return True
            case ast.List() | ast.Tuple() | ast.Dict() | ast.Set() | ast.ListComp() | ast.DictComp() | ast.JoinedStr():
                return True
            case ast.Name(name):
                return bool(self.type_of(name)) and not self.is_tensor(name)
            case ast.UnaryOp(ast.USub(), inner):
                return self.is_python(inner)
            case ast.BinOp(left, _, right):
                return self.is_python(left) and self.is_python(right)
            case ast.Call(ast.Name(name)):
                return name in _OF_PYTHON | _BUILTINS
            case ast.Call(ast.Attribute(ast.Name("np" | "numpy" | "math"))):
                return True
            case ast.Call(ast.Attribute(owner, name)):
                return name in _OF_PYTHON or isinstance(owner, ast.Name) and self.is_number(owner.id)
        return False

    def dtype(self, node: ast.expr) -> str:
        """Return the type of the elements of a tensor; ``""`` where it is not known."""
        match node:
            case ast.Name(name) if self.is_tensor(name):
                return self._by_name[name].dtype
            case ast.UnaryOp(ast.USub(), inner):
                return self.dtype(inner)
            case ast.Call(ast.Attribute(ast.Name("torch"), name), [of, *_]) | ast.Call(ast.Attribute(of, name)) if (
                    name in _TRUTHS | _SAME_TYPE):
                dtype = self.dtype(of)
                if name in _TRUTHS:
                    return "bool" if dtype != "uint8" else ""  # (of `uint8` torch gives no truth values)
                return dtype if dtype in _FLOATS else ""
        return ""


def effect(node: ast.expr) -> str:
    """Return what an expression does besides giving a value, as a clause: ``"draws random numbers"``; else ``""``."""
    for call in (each for each in ast.walk(node) if isinstance(each, ast.Call)):
        name = called(call)
        if name in _RANDOM:
            return "draws random numbers"
        if name.endswith("_") and not name.endswith("__"):
            return "changes a tensor in place"
    return ""


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
            if all(map(values.is_python, sides)):
                raise Unproven(f"`{text(test)}` is computed with values of Python's")
            return ast.Compare(sides[0], [operator], [sides[1]])
    tensor = _tensor_of(test)
    if isinstance(test, ast.Compare):
        raise Unproven(f"`{text(test)}` asks for a truth value of Python's")
    if values.is_python(tensor):
        raise Unproven(f"`{text(test)}` is no tensor")
    return tensor if values.dtype(tensor) == "bool" else ast.Compare(tensor, [ast.NotEq()], [ast.Constant(0)])


def _compared(side: ast.expr, beside: ast.expr, values: Values, text: Callable[[ast.expr], str]) -> ast.expr:
    """Return a side of a comparison as a tensor.

    Raises:
        Unproven: as a tensor it may compare otherwise than its number does.
    """
    tensor = _tensor_of(side)
    if tensor is not side and not (isinstance(beside, ast.Constant) and _is_exact(beside.value)):
        raise Unproven(f"`{text(side)}` is compared as a number of Python's, in double precision")
    if tensor is not side and values.dtype(tensor) in ("float16", "bfloat16"):
        raise Unproven(f"`{text(side)}` is compared as a number of Python's, and rounded otherwise")
    of = _whole(side.left) if isinstance(side, ast.BinOp) else None
    if of is not None and values.dtype(of) not in ("int64", "int32"):
        raise Unproven(f"`{text(side)}` is computed as a number of Python's, in double precision")
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
