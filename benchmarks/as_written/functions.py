"""The functions of a source file and of its decompiled text, paired."""

from __future__ import annotations

import ast
import collections
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from depyf.decompiler.result import Fidelity, Part

from .normalise import Function


@dataclass(frozen=True)
class Pair:
    """A function as its author wrote it, and as it was decompiled (``None`` if it is not there)."""

    qualname: str
    line: int
    source: Function
    ours: Function | None
    fidelity: str


def functions(tree: ast.Module) -> Iterator[tuple[str, Function]]:
    """The functions of a module with their qualified names; those inside others belong to these."""
    work: list[tuple[ast.AST, str]] = [(tree, "")]
    while work:
        node, prefix = work.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield prefix + node.name, node
            continue
        if isinstance(node, ast.ClassDef):
            prefix += node.name + "."
        children = [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr)]
        work += [(child, prefix) for child in reversed(children)]


def first_line(function: Function) -> int:
    """The line that the function's code object says it begins at."""
    return min([function.lineno, *(decorator.lineno for decorator in function.decorator_list)])


def paired(source: ast.Module, ours: ast.Module, parts: Sequence[Part]) -> list[Pair]:
    """Each function of a source that was compiled, with its decompiled text.

    A function is known by its code object, which has its qualified name and first line; what the text of that compiles
    to has the line in the text. Where a proof is missing, functions of one name are paired in their order.
    """
    theirs = list(functions(ours))
    by_place = {(name, first_line(function)): function for name, function in theirs}
    code_of = {(part.name, part.line): part for part in parts}
    wanted = [(name, function) for name, function in functions(source) if (name, first_line(function)) in code_of]
    in_order = _in_order(wanted, theirs)
    pairs = []
    for name, function in wanted:
        part = code_of[name, first_line(function)]
        found = None
        if part.recompiled is not None:
            found = by_place.get((name, part.recompiled.firstlineno))
        inner = [other.fidelity for other in parts if other is part or other.name.startswith(f"{name}.<locals>.")]
        worst = max(inner, key=tuple(Fidelity).index) if Fidelity.FALLBACK in inner else part.fidelity
        pairs.append(Pair(name, function.lineno, function, found or in_order.get(id(function)), worst.value))
    return pairs


def _in_order(
    wanted: Iterable[tuple[str, Function]], theirs: Iterable[tuple[str, Function]],
) -> dict[int, Function]:
    left: dict[str, list[Function]] = collections.defaultdict(list)
    for name, function in theirs:
        left[name].append(function)
    return {id(function): left[name].pop(0) for name, function in wanted if left[name]}
