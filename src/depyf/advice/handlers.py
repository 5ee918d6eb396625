"""Handlers of a program that catch the exception of a check, but no ``RuntimeError`` in its place.

    class TooLarge(ArithmeticError): ...
    if not y.isfinite().all():       ->     torch._assert_async(y.isfinite().all())
        raise TooLarge()
    except ArithmeticError: ...

The handler catches what was raised, and not what is raised now.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable

from .source import last_name

#: The names of what catches a ``RuntimeError``.
_CATCH_IT = frozenset(each.__name__ for each in RuntimeError.__mro__)


def without_runtime_error(tree: ast.Module, raised: str) -> ast.ExceptHandler | None:
    """Return the first handler of a file for an exception of that name which catches no ``RuntimeError``."""
    bases = {node.name: _names(node.bases) for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    classes = _with_bases(raised, bases)
    found = [node for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler) and node.type is not None
             and (names := set(_caught(node.type))) & classes and not names & _CATCH_IT]
    return min(found, key=lambda node: node.lineno, default=None)


def _with_bases(name: str, bases: dict[str, list[str]]) -> set[str]:
    """Return the names of a class and of all that it derives from, as far as the file and Python tell."""
    found: set[str] = set()
    pending = [name]
    while pending:
        name = pending.pop()
        if name not in found:
            found.add(name)
            known = getattr(builtins, name, None)
            pending += bases.get(name) or ([each.__name__ for each in known.__mro__] if isinstance(known, type) else [])
    return found


def _caught(caught: ast.expr) -> list[str]:
    return _names(caught.elts if isinstance(caught, ast.Tuple) else [caught])


def _names(classes: Iterable[ast.expr]) -> list[str]:
    """Return the names of classes, without the modules that they are taken from."""
    return [name for name in map(last_name, classes) if name]
