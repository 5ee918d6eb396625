"""Pairs of what belongs together in two runs: functions, frames, versions. By meaning: ids differ."""

from __future__ import annotations

import difflib
import ntpath
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ...records.model import CacheEntry, Capture, CompiledFunction, Frame, SourceLocation
from ...torch_text.global_names import plain_name, resumed_function
from ..function_summary import FunctionSummary

Item = TypeVar("Item")
#: One of the two can be missing.
Pairs = list[tuple[Item | None, Item | None]]


def paired(before: Sequence[Item], after: Sequence[Item], *keys: Callable[[Item], Hashable]) -> Pairs[Item]:
    """Items with the same key, the n-th of one run with the n-th of the other.

    Args:
        before, after: the items of two runs.
        *keys: the strictest first; a later one is for what the earlier ones left.

    Returns:
        In the order of ``after``; what only ``before`` has comes behind the one that it followed.
    """
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
    result: Pairs[Item] = []
    for index, item in enumerate(after):
        result.append((before[partner[index]] if index in partner else None, item))
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
        olds, news = before[begin:end], after[other_begin:other_end]
        for index in range(max(len(olds), len(news))):
            result.append((olds[index] if index < len(olds) else None, news[index] if index < len(news) else None))
    return result


def summaries(before: Sequence[FunctionSummary], after: Sequence[FunctionSummary]) -> Pairs[FunctionSummary]:
    """Functions: by qualified name and file; else by qualified name and the file's name; else by qualified name.

    Not by line: a function that moved is the same.
    """
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
        behind: the text of the line that a resume function goes on with; the line's number from the function's first
            where the text is not known; empty for the function itself.
        title: for people.
    """

    frame: Frame
    name: str
    behind: str
    title: str


def places(function: CompiledFunction, sources: dict[str, list[str]]) -> list[Place]:
    """Return the frames of a function."""
    result = []
    for frame in function.frames:
        resumed = resumed_function(frame.code_name)
        if resumed is None:
            result.append(Place(frame, plain_name(frame.code_name), "", ""))
            continue
        name, line = resumed
        text = _line(sources, frame.location, line)
        first = frame.location.line if frame.location else 0
        result.append(Place(frame, name, text or f"+{line - first}", f"from line {line} on"))
    return result


def frames(before: Sequence[Place], after: Sequence[Place]) -> Pairs[Place]:
    """Frames of a function: itself with itself.

    Resume functions by the line that they go on with, else by their order.
    """
    # (behind a branch there are two that go on with the same line, of which often only one is ever compiled)
    return paired(before, after, lambda place: (place.name, place.behind, bool(place.frame.entries)),
                  lambda place: (place.name, bool(place.behind), bool(place.frame.entries)),
                  lambda place: (place.name, bool(place.behind)))


def entries(before: Sequence[CacheEntry], after: Sequence[CacheEntry], mark: Callable[[CacheEntry], Hashable]
            ) -> Pairs[CacheEntry]:
    """Versions, in the order in which they were compiled; those that are equal stay together."""
    def order(entry: CacheEntry) -> tuple[int, int, int]:
        return entry.compile_id.key

    return aligned(sorted(before, key=order), sorted(after, key=order), mark)


def source_lines(capture: Capture) -> dict[str, list[str]]:
    """Return the user's files by name."""
    return {source.path: source.text.splitlines() for source in capture.sources}


def base_name(path: str) -> str:
    """Return the name of a file without its folders."""
    return ntpath.basename(path)  # of either system: records come from elsewhere


def _line(sources: dict[str, list[str]], location: SourceLocation | None, line: int) -> str:
    lines = sources.get(location.filename, []) if location else []
    return lines[line - 1].strip() if 0 < line <= len(lines) else ""
