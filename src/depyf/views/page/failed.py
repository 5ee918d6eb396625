"""The conditions of a version that failed when a call did not match it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...records.model import GuardFailure
from ...torch_text.guard_failures import is_of_tensor

#: The failures of each condition of an object, by its number.
Failed = dict[int, list[GuardFailure]]


def failed(
    groups: Sequence[tuple[str, Sequence[str]]], failures: Sequence[GuardFailure], plain: Callable[[str], str]
) -> tuple[list[Failed], list[GuardFailure]]:
    """Return for each object its conditions that failed, and the failures that fit no condition.

    Torch names the condition, or the object and what differs of it.

    Args:
        groups: each object with its conditions.
        failures: those of the version.
        plain: makes two ways to write an expression one.
    """
    result: list[Failed] = [{} for _ in groups]
    rest = []
    for failure in failures:
        text, source = plain(failure.text), plain(failure.source)
        # (What torch says of a tensor is no condition.)
        hits = [] if is_of_tensor(failure) else [
            (group, at) for group, (_, conditions) in enumerate(groups) for at, condition in enumerate(conditions)
            if plain(condition) == text]
        if not hits and source:
            hits = [(group, condition_of(failure, conditions)) for group, (subject, conditions) in enumerate(groups)
                    if plain(subject) == source and conditions]
        for group, at in hits:
            result[group].setdefault(at, []).append(failure)
        if not hits:
            rest.append(failure)
    return result, rest


def condition_of(failure: GuardFailure, conditions: Sequence[str]) -> int:
    """Return which condition on its object failed.

    That on the tensor, that with the value that was expected, else the first.
    """
    tests: tuple[Callable[[str], bool], ...] = (
        lambda text: is_of_tensor(failure) and "tensor" in text.lower(),
        lambda text: bool(failure.expected) and failure.expected in text)
    return next((at for test in tests for at, text in enumerate(conditions) if test(text)), 0)
