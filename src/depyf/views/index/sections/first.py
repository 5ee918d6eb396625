"""What to change first, of a run with more than three changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ....advice.source import is_own
from ....records.model import SourceLocation
from ...advice import Adviser
from ...findings import lost_functions
from ...formatting import seconds
from ...grouping import breaks_by_place
from ...markdown import count
from ...run_index import RunIndex
from .context import SectionContext

#: A run with at most so many changes is read at once.
MOST = 3


@dataclass(frozen=True)
class _Change:
    """A change, as Markdown, with the functions, seconds and events that it is for."""

    in_plain_python: int
    seconds: float
    times: int
    text: str


def first(run: SectionContext) -> list[str]:
    """Return the section on what to change first; nothing for a run with few changes."""
    texts, of_all = first_changes(run, run.advice, run.place)
    return ["## What to change first", "", f"The first {MOST} of {of_all} changes: functions in plain Python "
            "come first, then what took longest to compile:", "", *(f"* {each}" for each in texts)] if texts else []


def first_changes(
    run: RunIndex, adviser: Adviser, place: Callable[[SourceLocation], str],
) -> tuple[list[str], int]:
    """Return the changes of a run that save most, as Markdown, and how many there are; none where they are few."""
    changes = [*_of_lost(run, adviser), *_of_breaks(run, adviser, place), *_of_recompiles(run, adviser)]
    changes.sort(key=lambda each: (each.in_plain_python, each.seconds, each.times), reverse=True)
    return [each.text for each in changes[:MOST]] if len(changes) > MOST else [], len(changes)


def _of_lost(run: RunIndex, adviser: Adviser) -> Iterator[_Change]:
    for each in lost_functions(run.capture.compilations):
        for text in adviser.on_lost(each)[:1]:
            yield _Change(1, each.seconds, 1, f"{text} ({run.name_of(each)} runs in plain Python)")


def _of_breaks(run: RunIndex, adviser: Adviser, place: Callable[[SourceLocation], str]) -> Iterator[_Change]:
    pairs = [(broken, each) for each in run.capture.compilations for broken in each.breaks if not broken.skips_function]
    for members in breaks_by_place(pairs):
        broken, compilation = members[0]
        advice = adviser.on_break(broken)
        if advice is None or advice.leaves or broken.location is None or not is_own(broken.location.filename):
            continue
        after = {name for _, each in members for name in run.resume_names(each)}
        spent = sum(each.seconds for each in run.capture.compilations
                    if (frame := run.frame_of(each)) is not None and frame.name in after)
        what = count(len(members), "graph break")
        yield _Change(0, spent, len(members), f"{place(broken.location)}: {adviser.change_on(broken)} ({what}; "
                                              f"what is compiled after it took {seconds(spent)})")


def _of_recompiles(run: RunIndex, adviser: Adviser) -> Iterator[_Change]:
    for summary in run.summaries:
        again = summary.recompiles
        for text in adviser.on(again, remedies_only=True)[:1]:
            spent = sum(each.seconds for each in again)
            yield _Change(0, spent, len(again), f"{text} ({count(len(again), 'recompile')}, {seconds(spent)})")
