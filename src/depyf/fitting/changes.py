"""The smallest change of a call with which a version fits it.

    x.shape[0] must be 8, is 1; x.dtype must be torch.float32, is torch.float16      x: f16[1, 4] -> f32[8, 4]
    x.shape[0] must be 2 or more; x.shape[0] == y.shape[0]                           x, y: one more row each

What a condition fixes is set. Where conditions only bound or relate sizes and numbers, values that meet all of them are
searched, the nearest first: of one number, of equal numbers together, or of two. A change counts only if no condition
of the version fails after it.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace

from ..records.model import Guard
from ..values import frozen
from .conditions import Change, changed_to, known, tried
from .given import Given, TensorValue, parsed, words

_ROUNDS = 6  #: A change may make other conditions fail; so many rounds of changes are tried.
#: All values within this distance are tried; others only if a condition suggests them.
_NEAR = 8
_MOST_NUMBERS, _TRIALS = 12, 800


@frozen
class _Number:
    """A size or a number that conditions relate to others; ``path`` is of the tensor or the number."""

    path: str
    index: int | None
    node: ast.expr = field(compare=False)


def smallest_change(guards: Sequence[Guard], given: Given) -> tuple[Change, ...]:
    """Return what has to change in a call so that no condition of a version fails; ``()`` where that was not found."""
    changes: dict[str, Change] = {}
    current = given
    for _ in range(_ROUNDS):
        failing, new = list[Guard](), list[Change]()
        for guard in guards:
            finding = tried(guard, current)
            if finding.holds is False:
                failing.append(guard)
                if finding.change is not None:
                    new.append(finding.change)
                    current = current.changed({finding.change.path: finding.change.after})
        if not failing:
            return tuple(changes.values())
        new = new or _searched(guards, failing, current)
        if not new:
            break
        for change in new:
            before = changes[change.path].before if change.path in changes else change.before
            changes[change.path] = replace(change, before=before)
        current = given.changed({path: change.after for path, change in changes.items()})
    return ()


def _searched(guards: Sequence[Guard], failing: Sequence[Guard], given: Given) -> list[Change]:
    """Return the nearest sizes and numbers with which the failing conditions hold, and others as before."""
    numbers: dict[_Number, int] = {}
    for guard in failing:
        own = dict(_numbers(guard, given))
        if not own:
            return []  # (it is about something else)
        numbers.update(own)
    related = [dict(_numbers(guard, given)) for guard in guards]
    for _ in related:  # (numbers that other conditions relate to these)
        tied = {number: value for own in related if own.keys() & numbers.keys() for number, value in own.items()}
        if tied.keys() <= numbers.keys():
            break
        numbers.update(tied)
    if len(numbers) > _MOST_NUMBERS:
        return []
    paths = {number.path for number in numbers}
    about = [*failing, *(guard for guard, own in zip(guards, related) if guard not in failing and (
        paths & {number.path for number in own} or _subject(guard) in paths))]
    for moved in itertools.islice(_moves(numbers, _targets(failing, numbers)), _TRIALS):
        trial, changes = given, list[Change]()
        for number, value in moved.items():
            change = changed_to(value, number.node, trial)
            if change is not None:
                changes.append(change)
                trial = trial.changed({change.path: change.after})
        if all(tried(guard, trial).holds is not False for guard in about):
            return changes
    return []


def _targets(failed: Sequence[Guard], numbers: Mapping[_Number, int]) -> set[int]:
    """Return values that conditions suggest: those next to their constants and to the other numbers."""
    nodes = [node for guard in failed for node in ast.walk(parsed(guard.expression) or ast.Pass())]
    indexes = [node.slice for node in nodes if isinstance(node, ast.Subscript)]
    constants = {node.value for node in nodes if isinstance(node, ast.Constant) and type(node.value) is int
                 and node.value < 10**9 and node not in indexes}
    factors = {1, *(each for each in constants if 1 < each <= 64)}
    return {value + step for each in (*constants, *numbers.values()) for factor in factors
            for value in (each, each * factor, each // factor, each - each % factor, each - each % factor + factor)
            for step in (-1, 0, 1)}


def _moves(numbers: Mapping[_Number, int], targets: set[int]) -> Iterator[dict[_Number, int]]:
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
                    size = ast.Call(ast.Attribute(inner, "size", ast.Load()), [], [])
                    for at in [index] if method == "size" else range(len(tensor.shape)):
                        yield (_Number(words(inner), at, ast.Subscript(size, ast.Constant(at), ast.Load())),
                               tensor.shape[at])
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
