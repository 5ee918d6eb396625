"""Descriptions of the live values of a frame, made without running the user's code."""

from __future__ import annotations

import ast
import sys
from collections.abc import Mapping
from typing import Any

from ..capture.object_facts import MISSING, attribute
from ..torch_text.parsed import parsed_expression
from .conditions import Undecided, value_of
from .given import UNKNOWN, Given
from .values import Opaque, Symbol, TensorValue, shown
from .written import device

#: Containers with more items are not looked into.
_MOST_ITEMS = 1000


class Described:
    """Descriptions of the values of a frame that guards name, made without running the user's code."""

    def __init__(self, values: Mapping[str, Any], namespace: Mapping[str, Any]) -> None:
        self._values = values
        self._namespace = namespace
        self._known: dict[int, tuple[Any, Any]] = {}  # by identity: the object, which stays alive, and its description

    def look(self, node: ast.expr) -> Any:
        """Return the description of an expression's value; ``UNKNOWN`` where reading it may run code."""
        try:
            return self.describe(self._live(node))
        except (LookupError, TypeError, ValueError):
            return UNKNOWN

    def shown(self, expression: str) -> str:
        """Return the value of an expression in the user's words or torch's, as text; ``""`` where it is not known."""
        tree = parsed_expression(expression)
        try:
            match tree:
                case None:
                    return ""
                case ast.Call(ast.Name("type"), [inner, *_]):
                    return _type_name(self._live(inner))
                case ast.Call(ast.Attribute(ast.Name("torch"), "is_grad_enabled"), [], []):
                    return str(sys.modules["torch"].is_grad_enabled())
            return shown(value_of(tree, Given({}, {}, self.look)))
        except (Undecided, LookupError, TypeError, ValueError, ArithmeticError):
            return ""

    def _live(self, node: ast.expr) -> Any:
        match node:
            case ast.Name("L"):
                return self._values
            case ast.Name("G"):
                return self._namespace
            case ast.Name(name):
                return self._values[name] if name in self._values else self._namespace[name]
            case ast.Subscript(inner, ast.Constant(key)):
                value = self._live(inner)
                if type(value) in (list, tuple, dict) or value is self._values or value is self._namespace:
                    return value[key]
            case ast.Attribute(inner, name):
                value = attribute(self._live(inner), name)
                if value is not MISSING:
                    return value
        raise LookupError(ast.dump(node))

    def describe(self, value: Any) -> Any:
        """Return the description of a value; the same object for the same object."""
        known = self._known.get(id(value))
        if known is None:
            known = self._known[id(value)] = (value, self._new(value))
        return known[1]

    def _new(self, value: Any) -> Any:
        torch = sys.modules["torch"]
        kind = type(value)
        if value is None or kind in (bool, int, float, complex, str, bytes):
            return value
        if kind in (torch.Tensor, torch.nn.Parameter) and _plain(value):
            return TensorValue(tuple(map(int, value.shape)), tuple(map(int, value.stride())),
                               str(value.dtype).removeprefix("torch."), str(value.device), value.requires_grad,
                               kind.__name__, value.is_inference())
        if kind is torch.dtype:
            return Symbol(str(value), "torch.dtype")
        if kind is torch.device:
            return device(str(value))
        if kind in (list, tuple, set) and len(value) <= _MOST_ITEMS:
            return kind(map(self.describe, value))
        if kind is dict and len(value) <= _MOST_ITEMS:
            return {self.describe(key): self.describe(item) for key, item in value.items()}
        return Opaque(_type_name(value))


def _plain(tensor: Any) -> bool:
    """Return whether shape, strides, dtype, device and gradient are all that torch's guards see of a tensor."""
    return (tensor.layout is sys.modules["torch"].strided
            and not (tensor.is_conj() or tensor.is_neg() or tensor.is_quantized))


def _type_name(value: Any) -> str:
    kind = type(value)
    return f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.")


def state() -> dict[str, Any]:
    """Return torch's settings that have public names, by their names in ``check_global_state``."""
    torch = sys.modules["torch"]
    return {
        "grad_mode": torch.is_grad_enabled(), "default_dtype": Symbol(str(torch.get_default_dtype()), "torch.dtype"),
        "num_threads": torch.get_num_threads(),
        "autocast": {device: Symbol(str(torch.get_autocast_dtype(device)), "torch.dtype") for device in ("cpu", "cuda")
                     if torch.is_autocast_enabled(device)},
        "deterministic_algorithms": torch.are_deterministic_algorithms_enabled()}
