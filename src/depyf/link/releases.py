"""The releases of a graph's values.

Torch writes them into the text of a graph, after each node (torch/fx/graph.py, ``delete_unused_values``)::

    y = x.sin();  x = None

The file of a graph leaves them out. What runs is the text of the file with the same assignments, after the last
statement that mentions a value and on the line on which that statement begins, so that no debugger stops for them.
Parameters are not released: torch has two names for each, and releases one.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from typing import Any

from ..decompiler.trees import nodes_of
from ..torch_text.subscripts import as_printed

#: A line that may have a slice or an ellipsis in a subscript.
_SLICE = re.compile(r"\w\[[^\"\n]*(?::|\.\.\.)")


def node_groups(body: Sequence[ast.stmt]) -> Iterator[tuple[int, int]]:
    """Yield the first and the last statement of each node of a graph, as indices.

    A node is a statement, with all others on its line. An operation in place (``x += 1``) is followed by another
    name for what it changed (``y = x``).
    """
    first = 0
    while first < len(body):
        last = first
        while last + 1 < len(body) and (body[last + 1].lineno == body[first].lineno
                                        or last == first and _is_second_name(body[last + 1], body[first])):
            last += 1
        yield first, last
        first = last + 1


def release_values(function: ast.FunctionDef, parameters: bool = False) -> None:
    """Insert the releases of the values of a graph into its ``forward``.

    Args:
        function: the ``forward``, which is changed.
        parameters: also of its parameters, as in a graph without second names for them.
    """
    arguments = function.args
    given = {each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)} - {"self"}
    body = function.body
    groups = [(last, [node for node in nodes_of(*body[first : last + 1]) if isinstance(node, ast.Name)])
              for first, last in node_groups(body)]
    values = {name.id for _, names in groups for name in names if isinstance(name.ctx, ast.Store)}
    values = values | given if parameters else values - given
    for last, names in reversed(groups):
        released = dict.fromkeys(name.id for name in names if name.id in values)
        values.difference_update(released)
        if released and not isinstance(body[last], ast.Return) and not _takes_arguments(body[last]):
            body.insert(last + 1, _release(list(released), body[last].lineno))


def running_graph(text: str, path: str, parameters: bool = False) -> ast.Module:
    """Return the syntax tree of a graph's file as it runs; arguments as of :func:`release_values`.

    Raises:
        SyntaxError: and what else ``ast.parse`` raises.
    """
    tree = ast.parse(text, path)
    if _SLICE.search(text):
        tree = as_printed(tree)
    pending: list[ast.stmt] = list(tree.body)
    for statement in pending:
        if isinstance(statement, ast.ClassDef):
            pending += statement.body
        elif isinstance(statement, ast.FunctionDef):
            release_values(statement, parameters)
    return tree


def numbers(tree: ast.Module, line: int) -> frozenset[str]:
    """Return the parameters that the graph which begins at a line annotates as numbers: ``s27: "Sym(s27)"``."""
    pending: list[ast.stmt] = list(tree.body)
    for statement in pending:
        if isinstance(statement, ast.ClassDef):
            pending += statement.body
        elif isinstance(statement, ast.FunctionDef) and statement.lineno == line:
            return frozenset(
                each.arg for each in statement.args.args
                if isinstance(each.annotation, ast.Constant) and str(each.annotation.value).startswith("Sym("))
    return frozenset()


def _is_second_name(statement: ast.stmt, changing: ast.stmt) -> bool:
    """Return whether a statement gives another name to what the one before it changed in place."""
    if isinstance(changing, ast.AugAssign):
        target: ast.expr = changing.target
    elif isinstance(changing, ast.Assign) and isinstance(changing.targets[0], ast.Subscript):
        target = changing.targets[0].value
    else:
        return False
    value = statement.value if isinstance(statement, (ast.Assign, ast.AnnAssign)) else None
    return isinstance(value, ast.Name) and isinstance(target, ast.Name) and value.id == target.id


def _takes_arguments(statement: ast.stmt) -> bool:
    """Return whether a statement is ``args_iter = iter(args_list)`` or ``x = next(args_iter)``: kept even if unread."""
    value = statement.value if isinstance(statement, ast.Assign) else None
    return isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in ("iter", "next")


def _release(names: Sequence[str], line: int) -> ast.stmt:
    """Return ``a = b = None``, all of it on a line."""
    place: dict[str, Any] = {"lineno": line, "end_lineno": line, "col_offset": 0, "end_col_offset": 0}
    return ast.Assign([ast.Name(name, ast.Store(), **place) for name in names], ast.Constant(None, **place), **place)
