"""The smallest change of a call with which a version fits it.

    x.shape[0] must be 8, is 1; x.dtype must be torch.float32, is torch.float16      x: f16[1, 4] -> f32[8, 4]
    x.shape[0] must be 2 or more; x.shape[0] == y.shape[0]                           x, y: one more row each

What a condition fixes is set. Where conditions only bound or relate sizes and numbers, values that meet all of them are
searched, the nearest first: of one number, of equal numbers together, or of two. A change counts only if no condition
of the version fails after it.
"""

from __future__ import annotations

import ast
import dataclasses
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from ..records.model import Guard
from ..values import frozen
from .conditions import Facet, Finding, known, tried, value_of
from .given import Given, TensorValue, parsed, words

#: A change may make other conditions fail; so many rounds of changes are tried.
_ROUNDS = 6
#: All values within this distance are tried; others only if a condition suggests them.
_NEAR = 8
_MOST_NUMBERS, _TRIALS = 12, 800


@frozen
class Change:
    """A value that has to change.

    Attributes:
        path: in the user's words, ``"x"``, ``"self.training"``.
        node: the same as an expression of torch's.
    """

    path: str
    before: Any
    after: Any
    node: ast.expr = dataclasses.field(compare=False, repr=False)


@frozen
class _Number:
    """A size or a number that conditions relate to others."""

    path: str
    index: int | None
    node: ast.expr = dataclasses.field(compare=False)


def smallest_change(guards: Sequence[Guard], given: Given) -> tuple[Change, ...]:
    """Return what has to change in a call so that no condition of a version fails; ``()`` where that was not found."""
    nodes: dict[str, ast.expr] = {}
    changed: dict[str, Any] = {}
    for _ in range(_ROUNDS):
        current = given.changed(changed)
        failing = [finding for guard in guards if (finding := tried(guard, current)).holds is False]
        if not failing:
            return tuple(Change(path, given.state[path] if path in given.state else value_of(nodes[path], given), after,
                                nodes[path]) for path, after in changed.items())
        fixed = _fixed(failing, current, nodes) or _searched(guards, failing, current, nodes)
        if not fixed:
            break
        changed.update(fixed)
    return ()


# --- what a condition fixes -----------------------------------------------------------------------------
def _fixed(failing: Sequence[Finding], given: Given, nodes: dict[str, ast.expr]) -> dict[str, Any]:
    """Return values by path, as the failing conditions fix them."""
    result: dict[str, Any] = {}
    by_path: dict[str, list[Facet]] = {}
    for finding in failing:
        for facet in finding.facets:
            by_path.setdefault(facet.path, []).append(facet)
    for path, facets in by_path.items():
        nodes[path] = facets[0].node
        if facets[0].part in ("value", "state"):
            result[path] = facets[0].wanted
        elif isinstance(value := value_of(facets[0].node, given), TensorValue):
            after = _tensor_with(value, facets)
            if after is not None:
                result[path] = after
    return result


def _tensor_with(tensor: TensorValue, facets: Sequence[Facet]) -> TensorValue | None:
    """Return the tensor as the conditions want it: sizes first, as the layout follows them."""
    parts = {facet.part for facet in facets}
    fields = {facet.part: facet.wanted for facet in facets if facet.part in (
        "dtype", "device", "requires_grad", "cls", "inference")}
    result = dataclasses.replace(tensor, **fields)
    shape, stride = list(result.shape), list(result.stride)
    for facet in facets:
        if facet.part == "ndim":
            spare = shape[:len(facet.wanted)] + [2] * (len(facet.wanted) - len(shape))
            return result.with_shape([old if new is None else new for old, new in zip(spare, facet.wanted)])
        if facet.part == "shape":
            shape[facet.index] = facet.wanted
        elif facet.part == "stride":
            stride[facet.index] = facet.wanted
    if any(type(number) is not int or number < 0 for number in (*shape, *stride)):
        return None
    if "shape" in parts:
        return result.with_shape(shape)
    return dataclasses.replace(result, stride=tuple(stride)) if "stride" in parts else result


# --- what conditions only bound ---------------------------------------------------------------------------
def _searched(
    guards: Sequence[Guard], failing: Sequence[Finding], given: Given, nodes: dict[str, ast.expr]
) -> dict[str, Any]:
    """Return the nearest sizes and numbers with which the failing conditions hold, and others as before."""
    numbers: dict[_Number, int] = {}
    for finding in failing:
        own = dict(_numbers(finding.guard, given))
        if not own:
            return {}  # (it is about something else)
        numbers.update(own)
    related = [dict(_numbers(guard, given)) for guard in guards]
    for _ in related:  # (numbers that other conditions relate to these)
        tied = {number: value for own in related if own.keys() & numbers.keys() for number, value in own.items()}
        if tied.keys() <= numbers.keys():
            break
        numbers.update(tied)
    if len(numbers) > _MOST_NUMBERS:
        return {}
    paths = {number.path for number in numbers}
    failed = [finding.guard for finding in failing]
    about = [*failed, *(guard for guard, own in zip(guards, related) if guard not in failed and (
        paths & {number.path for number in own} or _subject(guard) in paths))]
    for moved in itertools.islice(_moves(numbers, _targets(failed, numbers)), _TRIALS):
        changed = _applied(moved, given)
        trial = given.changed(changed)
        if all(tried(guard, trial).holds is not False for guard in about):
            nodes.update({number.path: number.node for number in moved})
            return changed
    return {}


def _targets(failed: Sequence[Guard], numbers: dict[_Number, int]) -> set[int]:
    """Return values that conditions suggest: those next to their constants and to the other numbers."""
    nodes = [node for guard in failed for node in ast.walk(parsed(guard.expression) or ast.Pass())]
    indexes = [node.slice for node in nodes if isinstance(node, ast.Subscript)]
    constants = {node.value for node in nodes if isinstance(node, ast.Constant) and type(node.value) is int
                 and node.value < 10**9 and node not in indexes}
    known = {*constants, *numbers.values()}
    factors = {1, *(each for each in constants if 1 < each <= 64)}
    return {value + step for each in known for factor in factors
            for value in (each, each * factor, each // factor, each - each % factor, each - each % factor + factor)
            for step in (-1, 0, 1)}


def _moves(numbers: dict[_Number, int], targets: set[int]) -> Iterator[dict[_Number, int]]:
    """Yield new values, the nearest first: of one number, of equal numbers together, or of two."""
    groups: list[list[_Number]] = [[number] for number in numbers]
    for value in dict.fromkeys(numbers.values()):
        equal = [number for number in numbers if numbers[number] == value]
        if len(equal) > 1:
            groups.append(equal)
    single = [(abs(value - now), -value, place, value) for place, group in enumerate(groups)
              for now in [numbers[group[0]]] for value in {*targets, *range(now - _NEAR, now + _NEAR + 1)}
              if value != now and (value >= 0 or group[0].index is None)]
    for *_, place, value in sorted(single):
        yield dict.fromkeys(groups[place], value)
    for first, second in itertools.combinations(groups, 2):
        if not {*first} & {*second}:
            for one, two in itertools.product(sorted(targets), repeat=2):
                if min(one, two) >= 0:
                    yield {**dict.fromkeys(first, one), **dict.fromkeys(second, two)}


def _applied(moved: dict[_Number, int], given: Given) -> dict[str, Any]:
    changed: dict[str, Any] = {}
    for number, value in moved.items():
        if number.index is None:
            changed[number.path] = value
            continue
        tensor = changed[number.path] if number.path in changed else value_of(number.node, given)
        shape = list(tensor.shape)
        shape[number.index] = value
        changed[number.path] = tensor.with_shape(shape)
    return changed


def _numbers(guard: Guard, given: Given) -> Iterator[tuple[_Number, int]]:
    """Yield the sizes and whole numbers that a condition is about, with their values."""
    tree = parsed(guard.expression)
    pending: list[ast.expr] = [tree] if isinstance(tree, ast.Compare | ast.BoolOp | ast.UnaryOp) else []
    while pending:
        node = pending.pop()
        match node:
            case ast.Subscript(ast.Call(ast.Attribute(inner, "size" | "stride" as method), [], []),
                               ast.Constant(int(index))):
                tensor = known(inner, given)
                if isinstance(tensor, TensorValue) and index < len(tensor.shape):
                    sizes = [index] if method == "size" else range(len(tensor.shape))
                    yield from ((_Number(words(inner), at, inner), tensor.shape[at]) for at in sizes)
                continue
            case ast.Subscript() | ast.Attribute():
                value = known(node, given)
                if type(value) is int:
                    yield _Number(words(node), None, node), value
                continue
        pending += [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]


def _subject(guard: Guard) -> str:
    """Return the first argument of a condition that is a call, in the user's words."""
    tree = parsed(guard.expression)
    return words(tree.args[0]) if isinstance(tree, ast.Call) and tree.args else ""
