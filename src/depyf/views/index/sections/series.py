"""Recompiles one after another for one thing that has another value at each call: told once, with its values.

::

    [0/1]  self.step: 0 → 1
    [0/2]  self.step: 1 → 2        [0/1] to [0/7]  self.step: 0 → 1 → 2 → ... → 7
    ...
"""

from __future__ import annotations

from collections.abc import Sequence

from ....records.model import Compilation
from ...changes import Change, value
from ...markdown import code
from ...version_differences import MOST, Difference
from .context import SectionContext

#: Recompiles that make a series; fewer are told one by one.
_LEAST = 3
#: Values of a series that are shown: the first of them and the last one.
_SHOWN = 5


def in_series(run: SectionContext, recompiled: Sequence[Compilation]) -> list[list[Compilation]]:
    """Return recompiles in their order, those of a series together, and each other one alone."""
    series: list[list[Compilation]] = []
    for each in recompiled:
        if series and _follows(run, series[-1][-1], each):
            series[-1].append(each)
        else:
            series.append([each])
    return [part for found in series for part in ([found] if len(found) >= _LEAST else [[each] for each in found])]


def values_of(run: SectionContext, series: Sequence[Compilation]) -> str:
    """Return the values that what changes in a series had: ```self.step`: 0 → 1 → 2``, as Markdown."""
    changed = [run.changes(each)[0] for each in series]
    return f"{changed[0].subject_text()}: {_chain([changed[0].before, *(each.now for each in changed)])}"


def besides_in(run: SectionContext, series: Sequence[Compilation]) -> str:
    """Return in what else the versions of a series differ from earlier ones, as Markdown; ``""`` for nothing."""
    told = [_of_subject(each) for each in zip(*(run.differences(each) for each in series))]
    more = f"; and {len(told) - MOST} more" if len(told) > MOST + 1 else ""
    shown = told[:MOST] if more else told
    return f"each differs from an earlier one in this, too: {'; '.join(shown)}{more}" if told else ""


def _follows(run: SectionContext, before: Compilation, after: Compilation) -> bool:
    """Return whether a recompile is for the next value of the same thing, and differs in the same besides."""
    if before.compile_id.frame_key != after.compile_id.frame_key:
        return False
    old, new = run.changes(before), run.changes(after)
    if len(old) != 1 or len(new) != 1 or not (_is_of_value(old[0]) and _is_of_value(new[0])):
        return False
    differ = [[each.subject for each in run.differences(compilation)] for compilation in (before, after)]
    asked = any(run.condition_of_inductor(failure) for failure in (*old[0].failures, *new[0].failures))
    return not asked and old[0].subject == new[0].subject and old[0].now == new[0].before and differ[0] == differ[1]


def _is_of_value(change: Change) -> bool:
    return change.lasts and not change.keywords and bool(change.before and change.now)


def _of_subject(differences: Sequence[Difference]) -> str:
    """Return a difference of each version of a series; where one does not follow from another, its subject alone."""
    values = [differences[0].was, *(each.now for each in differences)]
    if not all(values) or any(old.now != new.was for old, new in zip(differences, differences[1:])):
        return code(differences[0].subject)
    return f"{code(differences[0].subject)}: {_chain(values)}"


def _chain(values: Sequence[str]) -> str:
    shown = [value(each) for each in values]
    return " → ".join(shown if len(shown) <= _SHOWN + 1 else [*shown[: _SHOWN - 1], "...", shown[-1]])
