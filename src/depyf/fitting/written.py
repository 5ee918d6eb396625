"""Arguments as users write them -> described values.

    x=f32[3, 4]                        a contiguous tensor on the CPU
    x="f32[3, 4](grad=True, device='cuda:0', stride=(1, 3))"
    n=4  flag=True  mode='train'  xs=[f32[2], f32[3]]  d={'a': i64[]}  y=x
    self.training=False                an attribute, by its name in guards files
    config=...                         something that cannot be written: conditions on it are undecided

The defaults of a tensor: contiguous, on the CPU, no gradient. Lists of sizes: ``x.0=1,2,8`` (or ``x.shape[0]``) is
dimension 0 of ``x``, ``n=1`` a number.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..model.graph import DTYPES
from ..torch_text.parsed import parsed_expression
from .conditions import known
from .given import UNKNOWN, Given, Opaque, Symbol, TensorValue, contiguous

if TYPE_CHECKING:
    from .oracle import Fit

_EXAMPLE = "write it like x=f32[3,4], n=4, flag=True, mode='train' or xs=[f32[2],f32[2]]"
_NAMES = set(DTYPES.values()) | set(DTYPES)
#: A tensor without dimensions, ``f32[]``, is no Python.
_SCALAR = re.compile(rf"\b({'|'.join(sorted(_NAMES))})\[\s*\]")


class NotAValue(ValueError):
    """A text describes no value; the message says what to write."""


def arguments(texts: Sequence[str]) -> dict[str, Any]:
    """Return values by name, of ``NAME=VALUE`` texts; raise :class:`NotAValue` if one is none."""
    values: dict[str, Any] = {}
    for text in texts:
        name, equals, written = text.partition("=")
        tree = parsed_expression(name.strip())
        if not equals or tree is None:
            raise NotAValue(f"{text!r} is no argument: {_EXAMPLE}")
        values[ast.unparse(tree)] = value(written, values)
    return values


def value(text: str, known: Mapping[str, Any]) -> Any:
    """Return the value of a text, ``"f32[3, 4]"`` or ``"4"``; a name in it is the same object as in ``known``."""
    def read(node: ast.expr) -> Any:
        """Return the value that a syntax tree describes."""
        match node:
            case ast.Subscript(ast.Name(dtype)) if dtype in _NAMES:
                return read(ast.Call(node, [], []))
            case ast.Call(ast.Subscript(ast.Name(dtype), sizes), [], options) if dtype in _NAMES:
                shape = read(sizes)
                return _tensor(dtype, shape if isinstance(shape, tuple) else (shape,),
                               {each.arg or "**": read(each.value) for each in options}, text)
            case ast.List(items) | ast.Tuple(items) | ast.Set(items):
                kind: Any = {ast.List: list, ast.Tuple: tuple, ast.Set: set}[type(node)]
                return kind(map(read, items))
            case ast.Dict(keys, items) if None not in keys:
                return {read(key): read(item) for key, item in zip(keys, items) if key is not None}
            case ast.Attribute(ast.Name("torch"), dtype) if dtype in _NAMES:
                return Symbol(f"torch.{dtype}", "torch.dtype")
            case ast.Call(ast.Name("device") | ast.Attribute(ast.Name("torch"), "device"),
                          [ast.Constant(str(name))], []):
                return device(name)
            case ast.Name("inf" | "nan" as name):
                return float(name)
            case ast.Constant(value) if value is ...:
                return Opaque("")
            case ast.Name(name) if name in known:
                return known[name]
        try:
            return ast.literal_eval(node)
        except (ValueError, TypeError, SyntaxError):
            raise NotAValue(f"{text!r} is no value ({ast.unparse(node)} is not known): {_EXAMPLE}") from None

    tree = parsed_expression(_SCALAR.sub(r"\1[()]", text.strip()))
    if tree is None:
        raise NotAValue(f"{text!r} is no value: {_EXAMPLE}")
    return read(tree)


def device(name: str) -> Symbol:
    """Return a device as guards print it."""
    kind, _, index = name.partition(":")
    return Symbol(f"device(type={kind!r}, index={index})" if index else f"device(type={kind!r})", "torch.device")


def _tensor(dtype: str, shape: tuple[Any, ...], options: Mapping[str, Any], text: str) -> TensorValue:
    if not all(type(size) is int and size >= 0 for size in shape):
        raise NotAValue(f"{text!r}: sizes are whole numbers, 0 or more: f32[3,4]")
    fields = {"requires_grad" if name == "grad" else name: value for name, value in options.items()}
    for name in fields:
        if name not in ("requires_grad", "device", "stride", "cls", "inference"):
            raise NotAValue(f"{text!r}: {name} is not known; of a tensor give grad, device, stride, cls or inference")
    stride = tuple(fields.pop("stride", None) or contiguous(shape))
    if len(stride) != len(shape):
        raise NotAValue(f"{text!r} has {len(shape)} sizes and {len(stride)} strides")
    return TensorValue(shape, stride, DTYPES.get(dtype, dtype), **fields)


# --- Lists of sizes ----------------------------------------------------------------------------------
_SIZE = re.compile(r"(.+)\.(?:(?:size\(\)|shape)\[)?(-?\d+)\]?")


class NotGiven(NotAValue):
    """A name in a list of sizes is of nothing that the call has: ``path`` is ``x`` of ``x.0``."""

    def __init__(self, name: str, path: str) -> None:
        super().__init__(f"{name}: the call has no {path}; give {path} to it, or name what it has")
        self.path = path


def answers_by_size(texts: Sequence[str], given: Given, ask: Callable[[Given], Fit]) -> dict[str, dict[int, Fit]]:
    """Return the answers for lists of sizes, by the names of each list and by size.

    Args:
        texts: ``"x.0,y.0=1,2,8"``.

    Raises:
        NotAValue: a text is no list of sizes, or a tensor has no such dimension.
        NotGiven: a name is of no tensor or number of the call.
    """
    lists = [numbers(text) for text in texts]
    return {",".join(names): {size: ask(given.changed(_resized(names, size, given))) for size in sizes}
            for names, sizes in lists}


def numbers(text: str) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Return the names and the sizes of a list of sizes: ``"x.0,y.0=1,2,8"``."""
    names, _, sizes = text.partition("=")
    try:
        found = tuple(int(size) for size in sizes.split(","))
    except ValueError:
        found = ()
    if not found or not all(name.strip() for name in names.split(",")):
        raise NotAValue(f"{text!r} is no list of sizes: write it like x.0=1,2,8,16 (dimension 0 of x), n=1,2 (a "
                        "number) or x.0,y.0=1,2 (both at once)")
    return tuple(name.strip() for name in names.split(",")), found


def _resized(names: Sequence[str], size: int, given: Given) -> dict[str, Any]:
    """Return the values that change if all these names are of a size."""
    changed: dict[str, Any] = {}
    for name in names:
        of_size = _SIZE.fullmatch(name)
        path, index = of_size.groups() if of_size is not None else (name, "")
        tree = parsed_expression(path)
        before = UNKNOWN if tree is None else known(tree, given)
        if before is UNKNOWN:
            raise NotGiven(name, path)
        if not index:
            changed[name] = size
            continue
        value = changed.get(path, before)
        if not isinstance(value, TensorValue) or not -len(value.shape) <= int(index) < len(value.shape):
            raise NotAValue(f"{name}: {path} has no dimension {index}; it is {value}")
        shape = list(value.shape)
        shape[int(index)] = size
        changed[path] = value.with_shape(shape)
    return changed
