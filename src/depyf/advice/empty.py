"""What the rest of a loop's turn does with a tensor that has no elements: nothing, as far as its text tells.

total += values[rows].sum()          adds 0
counts[rows] += 1                    stores nothing
out[rows] = expert(x[rows])          stores nothing, if `expert` takes a tensor without rows
kept.append(values[rows] * 2)        makes a list longer: that is something
best = values[rows].max()            raises an error
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from .source import Function, called

#: Methods, and functions of torch by the same name, that compute each element by itself.
_ELEMENTWISE = frozenset({
    "abs", "square", "sqrt", "rsqrt", "exp", "log", "log2", "log10", "sin", "cos", "tanh", "sigmoid", "relu", "neg",
    "pow", "clamp", "detach", "clone", "float", "double", "half", "int", "long", "bool", "logical_not"})


def rest_of_turn(function: Function, node: ast.stmt) -> list[ast.stmt]:
    """Return what follows a statement of a loop's body in that body; nothing where it is in no such body itself."""
    for loop in ast.walk(function):
        if isinstance(loop, (ast.For, ast.While)) and node in loop.body:
            return loop.body[loop.body.index(node) + 1 :]
    return []


def calls_of_nothing(rest: Sequence[ast.stmt], name: str, function: Function) -> list[ast.Call] | None:
    """Return the calls that have to take tensors without elements, so that statements do nothing.

    Args:
        rest: the statements.
        name: of a tensor without elements.
        function: that they are in.

    Returns:
        ``None`` where they may do something.
    """
    turn = _Turn(name)
    inside = {id(each) for statement in rest for each in ast.walk(statement)}
    if not rest or not all(map(turn.does_nothing, rest)) or any(
            isinstance(each, ast.Name) and each.id in turn.made and id(each) not in inside
            for each in ast.walk(function)):
        return None
    return turn.calls


class _Turn:
    """What is known of variables and values where a tensor has no elements.

    Attributes:
        empty: tensors that have no elements either.
        rows: results of calls, which are only stored in place of no elements.
        made: variables that the statements assign.
        calls: of anything, with tensors without elements.
    """

    def __init__(self, name: str) -> None:
        self.empty = {name}
        self.rows: set[str] = set()
        self.made: set[str] = set()
        self.calls: list[ast.Call] = []

    def does_nothing(self, node: ast.stmt) -> bool:
        match node:
            case ast.AugAssign(ast.Name(target), ast.Add() | ast.Sub(), value):
                return target not in self.empty | self.rows and self._is_zero(value)
            case ast.Assign([ast.Name(target)], ast.BinOp(ast.Name(same), ast.Add() | ast.Sub(), value)) if (
                    same == target and target not in self.empty | self.rows):
                return self._is_zero(value)
            case ast.Assign([ast.Name(target)], value):
                found = self.empty if self._is_empty(value) else self.rows if self._fits(value) else None
                if found is None or target in self.empty | self.rows or _is_number(value):
                    return False
                found.add(target)
                self.made.add(target)
                return True
            case ast.Assign([ast.Subscript(owner) as item], value) | ast.AugAssign(
                    ast.Subscript(owner) as item, _, value):
                return _is_variable(owner) and self._chooses_nothing(item) and self._fits(value)
            case ast.Expr(ast.Call(ast.Attribute(owner, "index_add_"), [ast.Constant(), ast.Name(index), value], [])):
                return _is_variable(owner) and index in self.empty and self._fits(value)
        return False

    def _chooses_nothing(self, item: ast.Subscript) -> bool:
        indices = item.slice.elts if isinstance(item.slice, ast.Tuple) else [item.slice]
        return any(isinstance(each, ast.Name) and each.id in self.empty for each in indices) and all(
            isinstance(each, (ast.Name, ast.Constant)) for each in indices)

    def _fits(self, value: ast.expr) -> bool:
        """Return whether a value can be stored in place of no elements, if the calls in it take those."""
        if self._is_empty(value) or _is_number(value):
            return True
        match value:
            case ast.Name(name):
                return name in self.rows
            case ast.BinOp(left, _, right):
                return self._fits(left) and self._fits(right)
            case ast.Call(function, [_, *_] as arguments, []) if not ast.unparse(function).startswith("torch."):
                self.calls.append(value)
                return (_is_variable(function) or isinstance(function, ast.Subscript) and _is_variable(function.value)
                        ) and all(map(self._is_empty, arguments))
        return False

    def _is_empty(self, node: ast.expr) -> bool:
        match node:
            case ast.Name(name):
                return name in self.empty
            case ast.Subscript(owner):
                return _is_variable(owner) and self._chooses_nothing(node)
            case ast.BinOp(left, _, right) | ast.Compare(left, [_], [right]):
                return self._is_empty(left) and (self._is_empty(right) or _is_number(right)) or (
                    _is_number(left) and self._is_empty(right))
            case ast.UnaryOp(ast.USub() | ast.Invert(), inner):
                return self._is_empty(inner)
            case ast.Call(ast.Attribute(ast.Name("torch")), [inner, *numbers], []) | ast.Call(
                    ast.Attribute(inner), [*numbers], []) if called(node) in _ELEMENTWISE:
                return self._is_empty(inner) and all(map(_is_number, numbers))
        return False

    def _is_zero(self, node: ast.expr) -> bool:
        match node:
            case ast.Call(ast.Attribute(ast.Name("torch"), "sum"), [inner], []) | ast.Call(
                    ast.Attribute(inner, "sum" | "numel"), [], []) | ast.Call(ast.Name("len"), [inner], []):
                return self._is_empty(inner)
            case ast.BinOp(left, ast.Mult(), right):
                return self._is_zero(left) and _is_number(right) or _is_number(left) and self._is_zero(right)
            case ast.UnaryOp(ast.USub(), inner):
                return self._is_zero(inner)
        return False


def _is_variable(node: ast.expr) -> bool:
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)


def _is_number(node: ast.expr) -> bool:
    match node:
        case ast.UnaryOp(ast.USub(), ast.Constant(int() | float())) | ast.Constant(int() | float()):
            return True
    return False
