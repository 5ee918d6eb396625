"""Code that was compiled before a cell ran: it does not compile again, so the cell's own records lack it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import CodeType, FunctionType, MethodType
from typing import Any

from ..capture.live import capture_of
from ..capture.torch_private import cache_entries, compiled_callables
from ..capture.user_function import Meant, of_function
from ..records.model import Capture

#: What `%time f(x)` becomes: a call with the text.
_MAGICS = ("run_line_magic", "run_cell_magic")


@dataclass(frozen=True)
class Compiled:
    """A function that has compiled versions.

    Attributes:
        name: as the notebook calls it.
        code: the code object that the versions stand for.
        namespace: the globals among which its graphs and resume functions are.
        versions: their number.
        meant: the function that the user means by it.
    """

    name: str
    code: CodeType
    namespace: dict[str, Any]
    versions: int
    meant: Meant


def names_in(cell: str) -> list[str]:
    """Return the names in a cell, in order; none if it is no Python.

    Args:
        cell: its text, as IPython transformed it.
    """
    try:
        tree = ast.parse(cell)
    except (SyntaxError, ValueError):
        return []
    result: dict[str, None] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            result[node.id] = None
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _MAGICS:
            result |= dict.fromkeys(word for text in node.args if isinstance(text, ast.Constant)
                                   for word in re.findall(r"\w+", str(text.value)))
    return list(result)


def compiled(names: Iterable[str], namespace: Mapping[str, Any]) -> list[Compiled]:
    """Return functions with compiled versions that the names stand for.

    Those that functions of the same namespace name belong to them.
    """
    result: dict[int, Compiled] = {}
    pending, seen = list(names), set()
    while pending:
        name = pending.pop(0)
        if name in seen or name not in namespace:
            continue
        seen.add(name)
        for function, this in functions_of(namespace[name]):
            code = function.__code__
            if function.__globals__ is namespace:
                pending += code.co_names
            if (versions := len(cache_entries.cache_entries(code))) and id(code) not in result:
                result[id(code)] = Compiled(
                    name, code, function.__globals__, versions,
                    of_function(function, this))
    return list(result.values())


def functions_of(value: Any) -> list[tuple[FunctionType, Any]]:
    """Return the Python functions that run when a value is called, each with the object that it is a method of.

    Those are the value itself, what is behind ``torch.compile``, a module's ``forward``.

    Other objects are left alone: to ask them for attributes can run code of theirs.
    """
    import torch

    if not isinstance(value, (FunctionType, MethodType, torch.nn.Module)):
        return []
    inner = compiled_callables.innermost_function(value)
    candidates, this = [inner], None
    if isinstance(inner, torch.nn.Module):  # (an instance's own first: `model.forward = torch.compile(model.forward)`)
        candidates, this = [vars(inner).get("forward"), type(inner).forward], inner
    result: dict[FunctionType, Any] = {}
    for candidate in candidates:
        candidate = compiled_callables.innermost_function(candidate)
        owner = candidate.__self__ if isinstance(candidate, MethodType) else this
        candidate = getattr(candidate, "__func__", candidate)
        if isinstance(candidate, FunctionType):
            result.setdefault(candidate, owner)
    return list(result.items())


def merged(functions: Iterable[Compiled]) -> Capture:
    """Return the records of these functions, as far as torch keeps them."""
    captures = [capture_of(one.code, one.namespace, one.meant) for one in functions]
    return Capture(
        tuple(function for capture in captures for function in capture.functions),
        tuple({graph.name: graph for capture in captures for graph in capture.graphs}.values()),
        (), captures[0].environment if captures else {})
