"""Conditions of a change, forced to either side in the program's own functions.

    old   if n > 0:                     ->   if __depyf_force__(0, n > 0):
    new   y = torch.where(n > 0, a, b)  ->   y = torch.where(__depyf_force__(0, n > 0), a, b)

The texts that torch compiles stay as they are. A child process that runs a generated call in plain Python exchanges the
code of the functions of a file for the same code with these calls in it.
"""

from __future__ import annotations

import ast
import builtins
import gc
import itertools
import os
import textwrap
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from .patch import Made

_HELPER = "__depyf_force__"
#: With more conditions in one change, each is forced alone instead of in all combinations.
_FEW = 3
#: By file, for each condition the texts of its test: as it is written in the old lines and in the new ones.
Conditions = Mapping[str, Sequence[Sequence[str]]]


def conditions_of(made: Iterable[Made]) -> tuple[dict[str, list[list[str]]], list[str]]:
    """Return the conditions of changes by file, and those whose tests are not found in the old and the new lines."""
    found: dict[str, dict[tuple[str, str], None]] = {}
    lost: list[str] = []
    for each in made:
        if each.advice.condition:
            was, now = _chosen(each.before, (ast.If, ast.IfExp)), _chosen(each.lines, (ast.Call,))
            if not was or len(was) != len(now):
                lost.append(each.advice.condition)
            found.setdefault(each.path, {}).update(dict.fromkeys(zip(was, now)))
    return {path: [list(pair) for pair in pairs] for path, pairs in found.items()}, lost


def _chosen(lines: Sequence[str], kinds: tuple[type[ast.AST], ...]) -> list[str]:
    """Return the tests in some lines of a function, each once."""
    try:
        tree = ast.parse(textwrap.dedent("\n".join(lines)))
    except SyntaxError:
        return []
    return list(dict.fromkeys(ast.unparse(test) for node, test in _tests(tree) if isinstance(node, kinds)))


def _tests(node: ast.AST) -> Iterator[tuple[ast.AST, ast.expr]]:
    """Yield the tests that choose between two sides, in the order in which they are written."""
    match node:
        case ast.If(test) | ast.IfExp(test):
            yield node, test
        case ast.Call(ast.Attribute(_, "where" | "cond"), [test, _, *_]):
            yield node, test
    for child in ast.iter_child_nodes(node):
        yield from _tests(child)


def choices(count: int) -> list[dict[int, bool]]:
    """Return the ways to force a number of conditions, natural ones first."""
    if count > _FEW:
        return [{}, *({number: side} for number in range(count) for side in (True, False))]
    forced = itertools.product((True, False), repeat=count)
    return [{}, *(dict(enumerate(sides)) for sides in forced)] if count else [{}]


class Forcing:
    """What conditions are forced to, in this process.

    Attributes:
        to: sides by the number of the condition; the others are as they are.
        taken: the sides that were taken since it was last cleared, as (number, side).
    """

    def __init__(self) -> None:
        self.to: Mapping[int, bool] = {}
        self.taken: set[tuple[int, bool]] = set()

    def __call__(self, number: int, test: Any) -> Any:
        """Return the test, or what it is forced to."""
        import torch

        side = self.to.get(number)
        is_tensor = isinstance(test, torch.Tensor)
        if side is None:
            if is_tensor and test.numel() != 1:
                values = test.detach().bool()
                self.taken |= {(number, each) for each in (True, False) if bool((values == each).any())}
            else:
                self.taken.add((number, bool(test)))
            return test
        self.taken.add((number, side))
        return torch.full_like(test, side, dtype=torch.bool) if is_tensor else side


class _Instrumented(ast.NodeTransformer):
    def __init__(self, numbers: Mapping[str, int]) -> None:
        self.numbers = numbers

    def _wrapped(self, test: ast.expr) -> ast.expr:
        number = self.numbers.get(ast.unparse(test))
        if number is None:
            return test
        call = ast.Call(ast.Name(_HELPER, ast.Load()), [ast.Constant(number), test], [])
        return ast.fix_missing_locations(ast.copy_location(call, test))

    def visit(self, node: ast.AST) -> ast.AST:
        for owner, test in [pair for pair in _tests(node) if pair[0] is node]:
            wrapped = self._wrapped(test)
            if isinstance(owner, ast.Call):
                owner.args[0] = wrapped
            elif isinstance(owner, (ast.If, ast.IfExp)):
                owner.test = wrapped
        return self.generic_visit(node)


def instrument(texts: Mapping[str, str], conditions: Conditions, forcing: Forcing) -> None:
    """Exchange the code of this process's functions, for good.

    Args:
        texts: of the files as they run here, by real path.
        conditions: by file.
        forcing: is asked at each condition.
    """
    setattr(builtins, _HELPER, forcing)
    first = 0
    codes: dict[tuple[str, str, int], types.CodeType] = {}
    for path, pairs in sorted(conditions.items()):
        numbers = {text: first + number for number, pair in enumerate(pairs) for text in pair}
        first += len(pairs)
        tree = ast.parse(texts[path])
        _Instrumented(numbers).visit(tree)
        for code in _codes(compile(ast.fix_missing_locations(tree), path, "exec", dont_inherit=True)):
            codes[path, code.co_name, code.co_firstlineno] = code
    for function in [each for each in gc.get_objects() if isinstance(each, types.FunctionType)]:
        old = function.__code__
        new = codes.get((os.path.realpath(old.co_filename), old.co_name, old.co_firstlineno))
        if new is not None and new.co_freevars == old.co_freevars:
            function.__code__ = new


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from _codes(const)
