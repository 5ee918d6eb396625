"""Changed calls: the local variables of a frame with copies of what changes, to put them before torch's guards.

The user's own objects stay as they are, and modes of the user's see nothing of it.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..capture.torch_private import private_api
from .changes import Change
from .values import Symbol, TensorValue

#: Larger tensors are not made.
_MOST_BYTES = 1 << 27


def named(path: str) -> ast.expr:
    """Return an expression in the user's words with its first name as a local variable: ``L['xs'][0]``."""
    class Local(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            return ast.Subscript(ast.Name("L", ast.Load()), ast.Constant(node.id), ast.Load())

    result = Local().visit(ast.parse(path, mode="eval").body)
    assert isinstance(result, ast.expr)
    return result


def changed(values: Mapping[str, Any], changes: Sequence[Change]) -> dict[str, Any] | None:
    """Return the local variables of a changed call, with copies of what changes; ``None`` where they are not made."""
    result: dict[str, Any] = dict(values)
    for change in changes:
        keys = list(_keys(change.node))
        if not keys:
            return None
        try:
            _put(result, keys, functools.partial(_made, change.after))
        except (_NotMade, LookupError, TypeError):
            return None
    return result


class _NotMade(Exception):
    """A value is not made: too large, or of a kind that cannot be."""


def _keys(node: ast.expr) -> Iterator[Any]:
    """Yield the keys by which a value is read from the locals; nothing if it is read otherwise."""
    keys: list[Any] = []
    while isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        keys.append(node.slice.value)
        node = node.value
    if isinstance(node, ast.Name) and node.id == "L":
        yield from reversed(keys)


def _put(holder: Any, keys: list[Any], make: Any) -> None:
    key, *inner = keys
    old = holder[key]
    if not inner:
        holder[key] = make(old)
        return
    if type(old) not in (list, tuple, dict):
        raise _NotMade
    copy = list(old) if type(old) is tuple else old.copy()
    _put(copy, inner, make)
    holder[key] = tuple(copy) if type(old) is tuple else copy


def _made(wanted: Any, old: Any) -> Any:
    """Return a value as it is described. A tensor's numbers are not set, as no guard looks at them."""
    torch = sys.modules["torch"]
    if isinstance(wanted, Symbol):
        raise _NotMade
    if not isinstance(wanted, TensorValue):
        return wanted
    dtype = getattr(torch, wanted.dtype, None)
    span = 1 + sum((size - 1) * stride for size, stride in zip(wanted.shape, wanted.stride)) if math.prod(
        wanted.shape) else 0
    if dtype is None or span * dtype.itemsize > _MOST_BYTES:
        raise _NotMade
    try:
        with _unseen(), torch.inference_mode(wanted.inference):
            made = torch.empty_strided(wanted.shape, wanted.stride, dtype=dtype, device=wanted.device)
            if wanted.cls == "Parameter":
                return torch.nn.Parameter(made, wanted.requires_grad)
            return made.requires_grad_() if wanted.requires_grad else made
    except (RuntimeError, AssertionError) as error:  # (no such device, no gradient for integers)
        raise _NotMade from error


@contextlib.contextmanager
def _unseen() -> Iterator[None]:
    """Modes of the user's see nothing of what is done inside."""
    with contextlib.ExitStack() as stack:
        for api in (private_api.NO_TORCH_FUNCTION, private_api.NO_DISPATCH_MODES):
            with contextlib.suppress(private_api.MissingPrivateApi):
                stack.enter_context(api.get()())
        yield
