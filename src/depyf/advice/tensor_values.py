"""What expressions over tensors are, as far as the facts recorded at a graph break say it: types and tests.

    x: float32        len(x)                     ->  a value of Python's
                      x.sum().item() > 0         ->  x.sum() > 0, a tensor of truth

Nothing here runs anything; an operation that is not in the tables below is not known.
"""

from __future__ import annotations

import ast
import struct
from collections.abc import Callable, Iterable

from ..records.model import NamedValue

#: Operations of tensors that give truth values.
_TRUTHS = frozenset({"any", "all", "isnan", "isinf", "isfinite", "logical_not"})
#: Functions and methods that give Python values, and builtin functions that do.
_OF_PYTHON = frozenset({"item", "tolist", "size", "dim", "numel", "len", "int", "float", "bool", "list", "dict", "str",
                        "equal", "allclose", "is_nonzero"})
_BUILTINS = frozenset({"any", "all", "isinstance", "hasattr", "callable", "sorted"})
_NUMBERS = frozenset({"int", "float", "bool", "str", "NoneType", "SymInt", "SymFloat", "SymBool"})


class Unproven(Exception):
    """A rewriting is known not to be the same; the text says why, as a clause."""


class Values:
    """The local variables at a graph break."""

    def __init__(self, values: Iterable[NamedValue]) -> None:
        self._by_name = {each.name: each for each in values}
        self._shared = {name for each in values if each.same_as for name in (each.name, each.same_as)}
        self._shared |= {each.name for each in values if each.shares_memory}

    def is_tensor(self, name: str) -> bool:
        """Return whether a variable is known to be a tensor."""
        return name in self._by_name and self._by_name[name].shape is not None

    def is_given(self, name: str) -> bool:
        """Return whether a variable came from outside of the function."""
        return name in self._by_name and bool(self._by_name[name].source)

    def is_number(self, name: str) -> bool:
        """Return whether a variable is known to be a number, a text or ``None``, which nothing changes in place."""
        return name in self._by_name and self._by_name[name].type in _NUMBERS

    def is_alone(self, name: str) -> bool:
        """Return whether nothing else refers to a variable's object, or its memory; numbers are alone."""
        return self.is_number(name) or name in self._by_name and not self.is_given(name) and name not in self._shared

    def is_python(self, node: ast.expr) -> bool:
        """Return whether an expression is known to give a value of Python's."""
        match node:
            case ast.Constant() | ast.Attribute(_, "shape" | "ndim" | "dtype" | "device" | "training") | ast.Attribute(
                    ast.Name("torch")) | ast.Attribute(ast.Call(ast.Attribute(ast.Name("torch"), "finfo" | "iinfo"))):
                return True
            case ast.List() | ast.Tuple() | ast.Dict() | ast.Set() | ast.ListComp() | ast.DictComp() | ast.JoinedStr():
                return True
            case ast.Compare(_, [ast.Is() | ast.IsNot()]):
                return True
            case ast.Name(name):
                return name in self._by_name and bool(self._by_name[name].type) and not self.is_tensor(name)
            case ast.UnaryOp(ast.USub() | ast.Not(), inner) | ast.Subscript(
                    ast.Attribute(attr="shape") as inner, ast.Constant()):
                return self.is_python(inner)
            case ast.BinOp(left, _, right) | ast.Compare(left, _, [right]):
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
            case ast.Call(ast.Attribute(ast.Name("torch"), name), [of, *_]) | ast.Call(ast.Attribute(of, name)) if (
                    name in _TRUTHS and self.dtype(of) != "uint8"):  # (of `uint8` torch gives no truth values)
                return "bool"
        return ""


def truth(test: ast.expr, values: Values, text: Callable[[ast.expr], str]) -> ast.expr:
    """Return a test as one tensor of truth.

    Raises:
        Unproven: the test needs a value of Python's, or as a tensor it may compare otherwise than numbers do.
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
            sides = [_tensor_of(left), _tensor_of(right)]
            if all(map(values.is_python, sides)):
                raise Unproven(f"`{text(test)}` is computed with values of Python's")
            for side, tensor, beside in ((left, sides[0], right), (right, sides[1], left)):
                if tensor is not side and not _is_exact(beside):
                    raise Unproven(f"`{text(side)}` is compared as a number of Python's, in double precision")
            return ast.Compare(sides[0], [operator], [sides[1]])
    tensor = _tensor_of(test)
    if isinstance(test, ast.Compare):
        raise Unproven(f"`{text(test)}` asks for a truth value of Python's")
    if values.is_python(tensor):
        raise Unproven(f"`{text(test)}` is no tensor")
    return tensor if values.dtype(tensor) == "bool" else ast.Compare(tensor, [ast.NotEq()], [ast.Constant(0)])


def _tensor_of(node: ast.expr) -> ast.expr:
    """Return the tensor of a number: ``x.sum()`` for ``x.sum().item()``."""
    match node:
        case ast.Call(ast.Attribute(inner, "item"), [], []):
            return inner
        case ast.Call(ast.Name("float" | "bool"), [inner], []) if not isinstance(inner, ast.Constant):
            return _tensor_of(inner)
    return node


def _is_exact(node: ast.expr) -> bool:
    """Return whether it is a number that single precision has, so that a comparison in it gives the same."""
    value = node.value if isinstance(node, ast.Constant) else None
    if isinstance(value, int):
        return abs(value) < 2**24
    return isinstance(value, float) and abs(value) < 3e38 and struct.unpack("f", struct.pack("f", value))[0] == value
