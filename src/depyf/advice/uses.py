"""What the lines of a function or file do with variables and attributes: add to them, set their items, test them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

#: Methods that make a list, set or dictionary longer.
ADDING = frozenset({"append", "appendleft", "extend", "extendleft", "insert", "add"})
#: Methods that set items of a dictionary by their keys, which may be there.
SETTING = frozenset({"update", "setdefault"})


def names_added_to(function: ast.AST) -> set[str]:
    """Return the names of variables that a function adds something to, or to a part of."""
    return {_root(owner) for owner in [*added_to(function), *set_by_key(function)]}


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


def set_by_key(tree: ast.AST) -> list[ast.expr]:
    """Return what has an item that is set by a key."""
    return [node.value for node in ast.walk(tree)
            if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store)
            or isinstance(node, ast.Attribute) and node.attr in SETTING]


def added_to(tree: ast.AST) -> Iterator[ast.expr]:
    """Yield what something is added to, other than by a key."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(ast.Attribute(owner, method)) if method in ADDING:
                yield owner
            case ast.AugAssign(target):
                yield target


def attributes_set(tree: ast.AST) -> Iterator[tuple[str, bool]]:
    """Yield the attributes that a file sets, with whether an ``__init__`` does so; ``""`` for one of unknown name."""
    pending = [(tree, False)]
    while pending:
        node, in_init = pending.pop()
        match node:
            case ast.Attribute(_, name, ast.Store() | ast.Del()):
                yield name, in_init
            case ast.Call(ast.Name("setattr"), [_, name, _]):
                yield (str(name.value) if isinstance(name, ast.Constant) else ""), False
            case ast.FunctionDef():
                in_init = node.name == "__init__"
        pending += [(child, in_init) for child in ast.iter_child_nodes(node)]


def lone_tests(tree: ast.AST) -> Iterator[ast.expr]:
    """Yield the tests of statements on whose lines nothing else is computed."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.If, ast.While)) and node.body[0].lineno > (node.test.end_lineno or node.test.lineno):
            yield node.test


def branch_tests(tree: ast.AST) -> Iterator[ast.expr]:
    """Yield the tests that decide where Python goes on, in statements and expressions."""
    for node in ast.walk(tree):
        match node:
            case ast.If() | ast.While() | ast.IfExp():
                yield node.test
            case ast.comprehension():
                yield from node.ifs


def read_by_tests(tree: ast.AST) -> Iterator[ast.expr]:
    """Yield the variables, attributes and items that decide where Python goes on: ``a`` of ``if a > 1``, ``a[0]``."""
    pending = list(branch_tests(tree))
    for node in ast.walk(tree):
        match node:
            case ast.Assert():
                pending.append(node.test)
            case ast.Call(ast.Name("any" | "all"), [ast.GeneratorExp() | ast.ListComp() as each]):
                pending.append(each.elt)
    while pending:
        node = pending.pop()
        match node:
            case ast.BoolOp():
                pending += node.values
            case ast.UnaryOp(_, operand):
                pending.append(operand)
            case ast.BinOp(left, _, right):
                pending += (left, right)
            case ast.Compare(left, operators, others) if not any(
                    isinstance(each, (ast.Is, ast.IsNot, ast.In, ast.NotIn)) for each in operators):
                pending += (left, *others)
            case ast.Name() | ast.Attribute() | ast.Subscript(_, ast.Constant(str() | int())):
                yield node


def _root(node: ast.expr) -> str:
    """Return the variable that an expression begins with; ``""`` for another beginning."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
