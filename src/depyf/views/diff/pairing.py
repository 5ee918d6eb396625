"""Pairs of what belongs together in two runs: functions, frames, versions. By meaning: ids differ."""

from __future__ import annotations

import difflib
import itertools
import ntpath
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from ...records.model import CacheEntry, CompiledFunction, Frame
from ...torch_text.global_names import plain_name, resumed_function
from ..function_summary import FunctionSummary
from ..user_source import UserSource

Item = TypeVar("Item")
#: One of the two can be missing.
Pairs = list[tuple[Item | None, Item | None]]


def paired(before: Sequence[Item], after: Sequence[Item], *keys: Callable[[Item], Hashable]) -> Pairs[Item]:
    """Pair items with the same key, in the order of ``after``; a later key is for what the stricter ones left."""
    partner: dict[int, int] = {}  # index in after -> index in before
    left = set(range(len(before)))
    for key in keys:
        free: dict[Hashable, list[int]] = {}
        for index in sorted(left):
            free.setdefault(key(before[index]), []).append(index)
        for index, item in enumerate(after):
            if index not in partner and free.get(key(item)):
                partner[index] = free[key(item)].pop(0)
                left.discard(partner[index])
    result: Pairs[Item] = [
        (before[partner[index]] if index in partner else None, item) for index, item in enumerate(after)]
    for index in sorted(left):
        at = next((place for place, (old, _) in reversed(list(enumerate(result)))
                   if index > 0 and old is before[index - 1]), -1)
        result.insert(at + 1 if index else 0, (before[index], None))
    return result


def aligned(before: Sequence[Item], after: Sequence[Item], mark: Callable[[Item], Hashable]) -> Pairs[Item]:
    """Align two series: those with equal marks first, in order; between them one after the other."""
    result: Pairs[Item] = []
    matcher = difflib.SequenceMatcher(None, [mark(item) for item in before], [mark(item) for item in after], False)
    for _, begin, end, other_begin, other_end in matcher.get_opcodes():
        result += itertools.zip_longest(before[begin:end], after[other_begin:other_end])
    return result


def either(old: Item | None, new: Item | None) -> Item:
    """Return what a pair has, that of the second run rather than that of the first."""
    found = old if new is None else new
    assert found is not None
    return found


def summaries(before: Sequence[FunctionSummary], after: Sequence[FunctionSummary]) -> Pairs[FunctionSummary]:
    """Pair functions by qualified name and file, else by less; not by line: a function that moved is the same."""
    return paired(
        before, after, lambda each: (each.title, each.location and each.location.filename),
        lambda each: (each.title, each.location and base_name(each.location.filename)), lambda each: each.title,
        # (a run that did not end, or a log, does not say of what class a method is)
        lambda each: (each.name, each.location and base_name(each.location.filename)))


@dataclass(frozen=True)
class Place:
    """A frame within its function.

    Attributes:
        frame: the function itself, or a resume function.
        name: the user's function that it is of; with nested breaks another than the function's own.
        line: the text of the line that a resume function continues at, else its number from the function's first.
        title: for people.
    """

    frame: Frame
    name: str
    line: str
    title: str


def places(function: CompiledFunction, source: UserSource) -> list[Place]:
    """Return the frames of a function."""
    result = []
    for frame in function.frames:
        resumed = resumed_function(frame.code_name)
        if resumed is None:
            result.append(Place(frame, plain_name(frame.code_name), "", ""))
            continue
        name, line = resumed
        text, first = "", 0
        if frame.location is not None:
            text, first = source.line(replace(frame.location, line=line)), frame.location.line
        result.append(Place(frame, name, text or f"+{line - first}", f"from line {line} on"))
    return result


def frames(before: Sequence[Place], after: Sequence[Place]) -> Pairs[Place]:
    """Pair the frames of a function: resume functions by the line that they continue at, else by their order."""
    # (after a branch there are two that go on with the same line, of which often only one is ever compiled)
    return paired(before, after, lambda place: (place.name, place.line, bool(place.frame.entries)),
                  lambda place: (place.name, bool(place.line), bool(place.frame.entries)),
                  lambda place: (place.name, bool(place.line)))


def entries(
    before: Sequence[CacheEntry], after: Sequence[CacheEntry], mark: Callable[[CacheEntry], Hashable],
) -> Pairs[CacheEntry]:
    """Pair versions, in the order in which they were compiled; those with equal marks stay together."""
    old, new = (sorted(each, key=lambda entry: entry.compile_id.key) for each in (before, after))
    return aligned(old, new, mark)


def base_name(path: str) -> str:
    """Return the name of a file without its folders."""
    return ntpath.basename(path)  # of either system: records come from elsewhere
