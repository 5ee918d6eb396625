"""Type parameters and ``type`` statements (3.12, PEP 695).

``def f[T: int](x: T): ...`` is compiled as the call of a hidden function ``<generic parameters of f>`` that makes
the parameters, then the function (or class), and returns it.  Bounds, constraints, defaults and the value of a
``type`` statement are functions of their own, evaluated on demand.  Here are the values these hidden
functions keep on the stack, and what they are written as.
"""

from __future__ import annotations

import ast
from typing import Any

from .emit.new_syntax import TYPE_PARAMETER_DEFAULTS, TYPE_PARAMETERS, newer, written
from .emit.text import checked, checked_text

#: What the name of a hidden function starts with.
HIDDEN = "<generic parameters of "
_STARS = {"typevar": "", "typevartuple": "*", "paramspec": "**"}


class TypeParameter(ast.expr):
    """A type parameter on the stack."""

    _fields = ()

    def __init__(self, kind: str, name: str, bound: ast.expr | None = None) -> None:
        self.kind = kind
        self.name = name
        self.bound = bound
        self.default: ast.expr | None = None

    def text(self) -> str:
        """Return the parameter as it is written in brackets."""
        text = _STARS[self.kind] + checked(self.name)
        if self.bound is not None:
            text += f": {checked_text(self.bound)}"
        if self.default is not None:
            text += f" = {checked_text(self.default)}"
        return text


class GenericBase(ast.expr):
    """``Generic[T]``, the base that a class with type parameters gets."""

    _fields = ()

    def __init__(self, parameters: list[TypeParameter]) -> None:
        self.parameters = parameters


class TypeAlias(ast.expr):
    """The value that a ``type`` statement stores."""

    _fields = ()

    def __init__(self, name: str, parameters: list[TypeParameter], value: ast.expr) -> None:
        self.name = name
        self.parameters = parameters
        self.value = value

    def statement(self, name: str) -> ast.stmt:
        """Return the ``type`` statement that stores the alias under a name."""
        text = f"type {checked(name)}{bracket(self.parameters)} = {checked_text(self.value)}"
        return ast.Expr(written(text, _since(self.parameters)))


def parameters_of(node: Any) -> list[TypeParameter] | None:
    """Return the type parameters in a tuple of them; ``None`` if it contains anything else."""
    if not isinstance(node, ast.Tuple):
        return None
    parameters = [element for element in node.elts if isinstance(element, TypeParameter)]
    return parameters if len(parameters) == len(node.elts) else None


def bracket(parameters: list[TypeParameter]) -> str:
    """Return the type parameters in their brackets; empty without any."""
    return f"[{', '.join(p.text() for p in parameters)}]" if parameters else ""


def _since(parameters: list[TypeParameter]) -> tuple[int, int]:
    return TYPE_PARAMETER_DEFAULTS if any(p.default is not None for p in parameters) else TYPE_PARAMETERS


def with_parameters(node: ast.stmt, parameters: list[TypeParameter]) -> ast.stmt:
    """Write type parameters after the name of a ``def`` or ``class``."""
    if parameters and isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return newer(node, bracket(parameters), _since(parameters))
    return node
