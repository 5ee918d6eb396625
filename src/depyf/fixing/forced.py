"""Conditions of a change, forced to either side in the program's own functions.

For generated calls, in plain Python, `if n > 0:` of a file becomes `if __depyf_force__(0, n > 0):`, and
`torch.where(n > 0, a, b)` becomes `torch.where(__depyf_force__(0, n > 0), a, b)`. Compiled code is not changed.
"""

from __future__ import annotations

import ast
import builtins
import itertools
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..advice import Advice

_HELPER = "__depyf_force__"
#: By file, the tests that choose between two sides, each as the old and the new text have it.
Conditions = Mapping[str, Sequence[tuple[str, ...]]]


def conditions_of(advices: Iterable[Advice]) -> dict[str, list[tuple[str, ...]]]:
    """Return the conditions of changes by the real path of their files."""
    found: dict[str, dict[tuple[str, ...], None]] = {}
    for advice in advices:
        for edit in advice.edits if advice.condition else ():
            texts = tuple(ast.unparse(ast.parse(test, mode="eval")) for test in advice.condition)
            found.setdefault(os.path.realpath(edit.filename), {})[texts] = None
    return {path: list(tests) for path, tests in sorted(found.items())}


class Forcing:
    """Forces conditions to a side, in this process.

    Attributes:
        choices: the ways to force the conditions: none, then each by itself, as sides by number.
        to: the current choice.
        taken: the sides that were taken since it was last cleared, as (number, side).
    """

    def __init__(self, conditions: Conditions) -> None:
        count = itertools.count()
        self._numbers = {path: {text: number for texts, number in zip(tests, count) for text in texts}
                         for path, tests in conditions.items()}
        self.choices: list[Mapping[int, bool]] = [{}, *(
            {number: side} for number in range(next(count)) for side in (True, False))]
        self.to: Mapping[int, bool] = {}
        self.taken: set[tuple[int, bool]] = set()
        setattr(builtins, _HELPER, self)

    def put_into(self, tree: ast.Module, path: str) -> None:
        """Wrap the conditions of a file in calls of this object."""
        ast.fix_missing_locations(_Instrumented(self._numbers.get(path, {})).visit(tree))

    def __call__(self, number: int, test: Any) -> Any:
        """Return the test, or the side to which it is forced."""
        import torch

        side = self.to.get(number)
        is_tensor = isinstance(test, torch.Tensor)
        if side is None:
            sides = set(test.detach().bool().flatten().tolist()) if is_tensor else {bool(test)}
            self.taken |= {(number, each) for each in sides}
            return test
        self.taken.add((number, side))
        return torch.full_like(test, side, dtype=torch.bool) if is_tensor else side


class _Instrumented(ast.NodeTransformer):
    def __init__(self, numbers: Mapping[str, int]) -> None:
        self.numbers = numbers

    def _wrapped(self, test: ast.expr) -> ast.expr:
        number = self.numbers.get(ast.unparse(test))
        match test:
            case _ if number is not None:
                return ast.Call(ast.Name(_HELPER, ast.Load()), [ast.Constant(number), test], [])
            case ast.BoolOp(ast.And(), [first, *rest]):  # (What is asked of Python's values first stays an `if`.)
                test.values = [first, self._wrapped(ast.BoolOp(ast.And(), rest) if rest[1:] else rest[0])]
        return test

    def visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, (ast.If, ast.IfExp)):
            node.test = self._wrapped(node.test)
        elif isinstance(node, ast.Call) and node.args and isinstance(node.func, ast.Attribute) and (
                node.func.attr in ("where", "cond")):
            node.args[0] = self._wrapped(node.args[0])
        return self.generic_visit(node)
