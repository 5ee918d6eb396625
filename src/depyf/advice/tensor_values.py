"""Types, shapes and effects of expressions over tensors, as far as the facts recorded at a graph break prove them.

    x: float32 [3, 2]        x * 2 + 1   ->  float32 [3, 2], made of x, finite gradient
                             x.mean(0)   ->  unknown shape
                             x / n       ->  unknown: the gradient where n is 0

Nothing here runs anything; an operation that is not in the tables below is not known.
"""

from __future__ import annotations

import ast
import math
import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from ..records.model import NamedValue
from .source import called

#: Operations that act on each element, never raise, and have a finite gradient at each number, infinities included.
_SMOOTH = frozenset({"abs", "neg", "negative", "relu", "clamp", "clip", "clamp_min", "clamp_max", "tanh", "sigmoid",
                     "nan_to_num", "clone", "contiguous", "positive"})
#: Those of them whose gradient is NaN where the tensor is, also where the result is not used.
NAN_OF_NAN = frozenset({"abs", "tanh", "sigmoid"})
#: Operations of one tensor that give its shape and cannot raise for floating point, but whose gradient may be infinite.
_ELEMENTWISE = _SMOOTH | frozenset({"exp", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "reciprocal", "sin", "cos",
                                    "square", "round", "floor", "ceil", "sign", "erf", "expm1", "isnan", "isinf",
                                    "isfinite", "logical_not", "detach"})
#: Reductions that give one number for any number of elements, none included.
_REDUCING = frozenset({"any", "all", "sum", "mean", "norm", "std", "var", "prod"})
#: Reductions that raise for a tensor without elements.
_PARTIAL = frozenset({"max", "min", "amax", "amin", "argmax", "argmin", "median"})
#: Reductions whose first arguments are dimensions and whether these stay, and that give one tensor.
_OF_DIMENSION = frozenset({"any", "all", "sum", "mean", "amax", "amin", "argmax", "argmin"})
_TRUTHS = frozenset({"any", "all", "isnan", "isinf", "isfinite", "logical_not"})
_RANDOM = frozenset({"rand", "randn", "randint", "randperm", "bernoulli", "multinomial", "normal", "poisson",
                     "rand_like", "randn_like", "randint_like", "sample", "rsample", "gumbel_softmax"})
#: Functions and methods that give Python values, and builtin functions that do.
_OF_PYTHON = frozenset({"item", "tolist", "size", "dim", "numel", "len", "int", "float", "bool", "list", "dict", "str",
                        "equal", "allclose", "is_nonzero"})
_BUILTINS = frozenset({"any", "all", "isinstance", "hasattr", "callable", "sorted"})
_NUMBERS = frozenset({"int", "float", "bool", "str", "NoneType", "SymInt", "SymFloat", "SymBool"})
_FLOATS = frozenset({"float16", "bfloat16", "float32", "float64"})


#: Methods that convert a tensor.
_TO = {"long": "int64", "int": "int32", "half": "float16", "float": "float32", "double": "float64", "bool": "bool",
       "bfloat16": "bfloat16"}


class Unproven(Exception):
    """A rewriting is known not to be the same; the text says why, as a clause."""


@dataclass(frozen=True)
class Kind:
    """The result of an expression.

    Attributes:
        shape, dtype: of a tensor; ``None`` and ``""`` where they are not known.
        is_python: it is a Python value.
        leaves: the variables that it is made of.
        effect: what else it does, as a clause: ``"draws random numbers"``.
        unknown: what has to hold, as clauses, so that computing it at each call changes nothing.
        gradient: what has to hold, as clauses, so that its gradient is none or finite where it is not used.
    """

    shape: tuple[str, ...] | None = None
    dtype: str = ""
    is_python: bool = False
    leaves: frozenset[str] = frozenset()
    effect: str = ""
    unknown: tuple[str, ...] = ()
    gradient: tuple[str, ...] = ()

    def takes(self, number: ast.expr) -> bool:
        """Return whether a tensor of this kind can hold a number that a program writes."""
        match number:
            case ast.Constant(int() | float() as value) if not isinstance(value, bool):
                return self.dtype in _FLOATS or self.dtype != "" and isinstance(value, int)
        return False


def is_total(name: str) -> bool:
    """Return whether a function of this name gives a new tensor for each tensor."""
    return name in _ELEMENTWISE - {"contiguous", "positive", "detach"} or name in _REDUCING or name in _PARTIAL


def may_be_steep(name: str) -> bool:
    """Return whether the gradient of an elementwise function may be infinite or NaN: that of ``log`` at 0."""
    return name in _ELEMENTWISE - _SMOOTH - _TRUTHS - {"detach"}


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

    def requires_grad(self, name: str) -> bool:
        """Return whether a variable is known to be a tensor that requires a gradient."""
        return name in self._by_name and self._by_name[name].requires_grad

    def is_given(self, name: str) -> bool:
        """Return whether a variable came from outside of the function."""
        return name in self._by_name and bool(self._by_name[name].source)

    def is_number(self, name: str) -> bool:
        """Return whether a variable is known to be a number, a text or ``None``, which nothing changes in place."""
        return self.type_of(name) in _NUMBERS

    def is_alone(self, name: str) -> bool:
        """Return whether nothing else refers to a variable's object, or its memory; numbers are alone."""
        return self.is_number(name) or name in self._by_name and not self.is_given(name) and name not in self._shared

    def item(self, node: ast.expr) -> Kind | None:
        """Return what ``x[0]`` is, an item of a tensor that has it; ``None`` for another expression."""
        match node:
            case ast.Subscript(ast.Name(name), ast.Constant(int(index))) if self.is_tensor(name):
                of = self._by_name[name]
                size, *rest = of.shape or ("",)
                if size.isdigit() and index < int(size):
                    return Kind(tuple(rest), of.dtype, leaves=frozenset({name}))
        return None

    def infer(self, node: ast.expr) -> Kind:
        """Return the kind of an expression's result."""
        if (item := self.item(node)) is not None:
            return item
        match node:
            case ast.Constant() | ast.Attribute(_, "shape" | "ndim" | "dtype" | "device") | ast.Attribute(
                    ast.Name("torch")):
                return Kind(is_python=True)
            case ast.List() | ast.Tuple() | ast.Dict() | ast.Set() | ast.ListComp() | ast.DictComp() | ast.JoinedStr():
                return Kind(is_python=True)
            case ast.Attribute(ast.Call(ast.Attribute(ast.Name("torch"), "finfo" | "iinfo" as name), [dtype])):
                kind = "a floating-point" if name == "finfo" else "an integer"
                return Kind(is_python=True, unknown=(f"`{ast.unparse(dtype)}` is always {kind} dtype",))
            case ast.Name(name):
                return self._of_name(name)
            case ast.UnaryOp(ast.USub(), inner):
                return self.infer(inner)
            case ast.BinOp(left, operator, right):
                return self._of_arithmetic(node, left, operator, right)
            case ast.Call(ast.Attribute(ast.Name("torch"), name), [first, *others], keywords) | ast.Call(
                    ast.Attribute(first, name), others, keywords) if (
                        name in _ELEMENTWISE | _REDUCING | _PARTIAL and self._may_be_tensor(first)):
                return self._of_operation(node, name, first, others, keywords)
            case ast.Call(ast.Attribute(ast.Name("torch"), "cat"), [ast.List(items) | ast.Tuple(items), *dims], more
                          ) if (joined := self._of_cat(items, [*dims, *more])) is not None:
                return joined
            case ast.Subscript(inner, ast.Tuple(parts)) if all(
                    isinstance(each, ast.Slice) and ast.unparse(each) == ":" or ast.unparse(each) == "None"
                    for each in parts):
                of = self.infer(inner)
                sizes = iter(of.shape or ())
                new = ["1" if ast.unparse(each) == "None" else next(sizes, "") for each in parts]
                return replace(of, shape=(*new, *sizes) if of.shape is not None and "" not in new else None)
            case ast.Call(ast.Attribute(inner, name), [], []) if name in _TO:
                of = self.infer(inner)
                return of if of.is_python else replace(of, dtype=_TO[name])
            case ast.Call(func):
                return self._of_call(node, func)
            case ast.Compare() | ast.BoolOp() | ast.UnaryOp(ast.Not()):
                return Kind(unknown=(f"`{ast.unparse(node)}` is a tensor",))
        return Kind(leaves=_names(node), unknown=(f"`{ast.unparse(node)}` is a tensor, and never raises",))

    def _of_cat(self, items: Sequence[ast.expr], dims: Sequence[ast.expr | ast.keyword]) -> Kind | None:
        """Return the kind of the concatenation of tensors along a dimension; ``None`` where it is not known."""
        kinds = [self.infer(each) for each in items]
        values = [each.value if isinstance(each, ast.keyword) else each for each in dims] or [ast.Constant(0)]
        shapes = [each.shape for each in kinds if each.shape]
        try:
            dim = ast.literal_eval(values[0])
        except (ValueError, TypeError):
            return None
        is_one = len({each.dtype for each in kinds}) == len({*map(len, shapes)}) == 1 and len(shapes) == len(kinds)
        if not is_one or type(dim) is not int or not -len(shapes[0]) <= dim < len(shapes[0]):
            return None
        sizes, others = zip(*((shape[dim], shape[:dim % len(shape)] + ("",) + shape[dim % len(shape) + 1:])
                              for shape in shapes))
        if len({*others}) > 1:
            return None
        size = str(sum(map(int, sizes))) if all(each.isdigit() for each in sizes) else " + ".join(sizes)
        return Kind(tuple(each or size for each in others[0]), kinds[0].dtype,
                    leaves=frozenset[str]().union(*(each.leaves for each in kinds)),
                    effect=next((each.effect for each in kinds if each.effect), ""),
                    unknown=tuple(each for kind in kinds for each in kind.unknown),
                    gradient=tuple(each for kind in kinds for each in kind.gradient))

    def _may_be_tensor(self, node: ast.expr) -> bool:
        """Return whether an expression may be a tensor, and no module: ``self.relu(x)`` is a call of a module."""
        if isinstance(node, ast.Name):
            return self.is_tensor(node.id) or not self.type_of(node.id) and node.id not in ("self", "cls", "F", "nn")
        return not isinstance(node, ast.Attribute)

    def _of_name(self, name: str) -> Kind:
        value = self._by_name.get(name)
        if value is None or not value.type:
            return Kind(leaves=frozenset({name}), unknown=(f"`{name}` is a tensor",))
        if value.shape is None:
            return Kind(is_python=True)
        return Kind(value.shape, value.dtype, leaves=frozenset({name}))

    def _of_arithmetic(self, node: ast.BinOp, left: ast.expr, operator: ast.operator, right: ast.expr) -> Kind:
        one, other = self.infer(left), self.infer(right)
        unknown, gradient = [*one.unknown, *other.unknown], [*one.gradient, *other.gradient]
        if one.is_python and other.is_python:
            return Kind(is_python=True, unknown=tuple(unknown))
        text = ast.unparse(node)
        match operator:
            case ast.Add() | ast.Sub():
                pass
            case ast.Mod() if isinstance(right, ast.Constant) and isinstance(right.value, int) and right.value > 0:
                pass
            case ast.Mult() if self._is_finite(left) or self._is_finite(right):
                pass
            case ast.Mult():
                gradient.append(f"the gradient of `{text}` is not needed, or its factors are finite")
            case ast.Div() if isinstance(right, ast.Constant) and isinstance(right.value, (int, float)) and (
                    right.value and math.isfinite(right.value)):
                pass
            case ast.Div():
                gradient.append(f"no gradient flows through `{text}` (it may be NaN where that side is not taken)")
            case _:
                unknown.append(f"`{text}` never raises, and no gradient flows through it")
        shape = other.shape if one.is_python else one.shape if other.is_python else _broadcast(one.shape, other.shape)
        numbers = [each for each in (left, right) if self.infer(each).is_python]
        dtypes = {each.dtype for each in (one, other) if not each.is_python}
        dtype = dtypes.pop() if len(dtypes) == 1 else ""
        if dtype not in _FLOATS and not all(isinstance(getattr(each, "value", None), int) for each in numbers):
            dtype = ""  # (a fraction beside integers gives floating point)
        if dtype not in _FLOATS and isinstance(operator, ast.Div):
            dtype = ""
        return Kind(shape, dtype, leaves=one.leaves | other.leaves, effect=one.effect or other.effect,
                    unknown=tuple(unknown), gradient=tuple(gradient))

    def _is_finite(self, node: ast.expr) -> bool:
        """Return whether an expression is a Python number that is neither infinite nor NaN."""
        match node:
            case ast.Constant(int() | float() as value):
                return math.isfinite(value)
            case ast.Name(name):
                return self.type_of(name) == "int"
            case ast.UnaryOp(ast.USub(), inner):
                return self._is_finite(inner)
            case ast.BinOp(left, ast.Add() | ast.Sub() | ast.Mult(), right):
                return self._is_finite(left) and self._is_finite(right)
        return False

    def _of_operation(
        self, node: ast.expr, name: str, first: ast.expr, others: Sequence[ast.expr], keywords: Sequence[ast.keyword],
    ) -> Kind:
        of, arguments = self.infer(first), [*others, *(each.value for each in keywords)]
        if of.is_python:
            return Kind(is_python=True)
        unknown, gradient = list(of.unknown), list(of.gradient)
        effect = of.effect
        for argument in arguments:
            kind = self.infer(argument)
            effect = effect or kind.effect
            unknown += kind.unknown if kind.is_python else [
                f"with `{ast.unparse(argument)}` the shape is the same, and computing it does nothing else"]
        if name not in _SMOOTH and name not in _REDUCING and name not in _TRUTHS:
            gradient.append(f"no gradient flows through `{ast.unparse(node)}` (it may be NaN where that side is not "
                            "taken)")
        if name in _PARTIAL:
            unknown.append(f"`{ast.unparse(first)}` always has elements")
        if name in _REDUCING | _PARTIAL:
            shape = _reduced(name, of.shape, others, keywords) if arguments else ()
            gradient += [f"no gradient flows through `{ast.unparse(node)}`"] if name in ("norm", "std", "prod") else []
        else:
            shape = of.shape
        # (Of `uint8` torch gives no truth values.)
        dtype = "bool" if name in _TRUTHS and of.dtype != "uint8" else of.dtype if of.dtype in _FLOATS else ""
        leaves = frozenset() if name == "detach" else of.leaves
        return Kind(shape, dtype, leaves=leaves, effect=effect, unknown=tuple(unknown), gradient=tuple(gradient))

    def _of_call(self, node: ast.Call, func: ast.expr) -> Kind:
        name = called(node)
        owner = func.value.id if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) else ""
        if name in _RANDOM and (owner == "torch" or self.is_tensor(owner)):
            return Kind(effect="draws random numbers")
        if name.endswith("_") and not name.endswith("__"):
            return Kind(effect="changes a tensor in place")
        if owner in ("np", "numpy", "math") or name in _OF_PYTHON or isinstance(func, ast.Name) and name in _BUILTINS:
            return Kind(is_python=True)
        what = "gives a tensor and does nothing else (no state, no random numbers, no output, no exception)"
        gradient: tuple[str, ...] = ("no gradient is needed",)
        match func:
            case ast.Attribute(ast.Name(owner) | ast.Attribute(ast.Name("torch" as owner))) if (
                    owner in ("torch", "F") or self.is_tensor(owner)):
                what, gradient = "never raises, and its gradient is finite where that side is not taken", ()
        return Kind(leaves=_names(node), unknown=(f"`{ast.unparse(node)}` {what}",), gradient=gradient)


def truth(test: ast.expr, values: Values, text: Callable[[ast.expr], str]) -> tuple[ast.expr, list[str]]:
    """Return a test as one tensor of truth, and what has to hold for it, as clauses.

    Raises:
        Unproven: the test needs a value of Python's.
    """
    match test:
        case ast.BoolOp(operator, parts):
            made = [truth(part, values, text) for part in parts]
            unknown = [each for _, conditions in made for each in conditions]
            for part in parts[1:]:  # (These are now computed whatever the first one is.)
                unknown += to_compute(part, values)
            joined = made[0][0]
            for part, _ in made[1:]:
                joined = ast.BinOp(joined, ast.BitAnd() if isinstance(operator, ast.And) else ast.BitOr(), part)
            return joined, unknown
        case ast.UnaryOp(ast.Not(), inner):
            part, unknown = truth(inner, values, text)
            return ast.UnaryOp(ast.Invert(), part), unknown
        case ast.Compare(left, [operator], [right]) if not isinstance(operator, (ast.Is, ast.IsNot, ast.In, ast.NotIn)):
            unknown, sides = [], []
            for side, beside in ((left, right), (right, left)):
                tensor = _tensor_of(side)
                if tensor is not side and not (isinstance(beside, ast.Constant) and _is_exact(beside.value)):
                    raise Unproven(f"`{text(side)}` is compared as a number of Python's, in double precision")
                sides.append(tensor)
                kind = values.infer(tensor)
                if tensor is not side and kind.dtype in ("float16", "bfloat16"):
                    raise Unproven(f"`{text(side)}` is compared as a number of Python's, and rounded otherwise")
                of = _whole(side.left) if isinstance(side, ast.BinOp) else None
                if of is not None and values.infer(of).dtype not in ("int64", "int32"):
                    raise Unproven(f"`{text(side)}` is computed as a number of Python's, in double precision")
                if kind.effect:
                    raise Unproven(f"the test {kind.effect}")
                if not kind.is_python and kind.shape != ():
                    unknown.append(f"`{text(tensor)}` is one number")
            if all(values.infer(side).is_python for side in sides):
                raise Unproven(f"`{text(test)}` is computed with values of Python's")
            return ast.Compare(sides[0], [operator], [sides[1]]), unknown
    tensor = _tensor_of(test)
    kind = values.infer(tensor)
    if isinstance(test, ast.Compare):
        raise Unproven(f"`{text(test)}` asks for a truth value of Python's")
    if kind.is_python or kind.effect:
        raise Unproven(f"`{text(test)}` is no tensor")
    unknown = [] if kind.shape == () else [f"`{text(tensor)}` is one truth value"]
    return (tensor, unknown) if kind.dtype == "bool" else (
        ast.Compare(tensor, [ast.NotEq()], [ast.Constant(0)]), unknown)


def to_compute(test: ast.expr, values: Values) -> list[str]:
    """Return what has to hold, as clauses, so that a test can be computed at each call: nothing in it raises."""
    match test:
        case ast.BoolOp(_, parts):
            return [each for part in parts for each in to_compute(part, values)]
        case ast.UnaryOp(ast.Not(), inner):
            return to_compute(inner, values)
        case ast.Compare(left, _, others):
            return [each for side in (left, *others) for each in to_compute(side, values)]
    return list(values.infer(_tensor_of(test)).unknown)


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


def _reduced(
    name: str, shape: tuple[str, ...] | None, others: Sequence[ast.expr], keywords: Sequence[ast.keyword],
) -> tuple[str, ...] | None:
    """Return the shape of ``x.mean(0, keepdim=True)``; ``None`` where it is not known, or there are two results."""
    given = dict(zip(("dim", "keepdim"), others)) | {each.arg or "": each.value for each in keywords}
    if shape is None or name not in _OF_DIMENSION or not set(given) <= {"dim", "keepdim"} or len(others) > 2:
        return None
    try:
        dim, keep = (ast.literal_eval(given.get(each, ast.Constant(None))) for each in ("dim", "keepdim"))
    except ValueError:
        return None
    dims = {each % len(shape) for each in (dim if isinstance(dim, tuple) else (dim,)) if type(each) is int and shape}
    return tuple("1" if index in dims else size for index, size in enumerate(shape)
                 if keep is True or index not in dims) if dims and keep in (None, True, False) else None


def _names(node: ast.expr) -> frozenset[str]:
    return frozenset(each.id for each in ast.walk(node) if isinstance(each, ast.Name))
