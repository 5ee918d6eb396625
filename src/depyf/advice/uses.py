"""The variables of a function, and the methods that add to what a variable holds."""

from __future__ import annotations

import ast

#: Methods that make a list, set or dictionary longer.
ADDING = frozenset({"append", "appendleft", "extend", "extendleft", "insert", "add"})
#: Methods that set items of a dictionary by their keys, which may be there.
SETTING = frozenset({"update", "setdefault"})


def names_set(tree: ast.AST) -> set[str]:
    """Return the variables that are set somewhere in a tree."""
    return {each.id for each in ast.walk(tree) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}


def own_variables(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """Return the parameters of a function and what its lines set; without what it declares ``global`` or ``nonlocal``.

    (With those of functions in it, since a name of theirs is rarely another variable.)
    """
    own = {each.arg for each in ast.walk(function.args) if isinstance(each, ast.arg)}
    own |= names_set(function)
    return own - {name for each in ast.walk(function) if isinstance(each, (ast.Global, ast.Nonlocal))
                  for name in each.names}


def kept_parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """Return the parameters of a function to which its lines give no other value."""
    return {each.arg for each in ast.walk(function.args) if isinstance(each, ast.arg)} - names_set(function)
