"""Recompiles: what changed since the versions were compiled, a row for each."""

from __future__ import annotations

from collections.abc import Sequence

from ....records.model import Compilation, GuardFailure
from ....torch_text.global_names import resumed_function
from ...changes import Change, row, value
from ...grouping import kind_of_failure
from ...inductor_ranges import how_made
from ...markdown import code, count, link, some
from ...version_differences import MOST, Difference
from .context import SectionContext

#: Recompiles of a function that are listed one by one: the first, and the last one. Those between are counted.
ROWS = 12


def recompiles(run: SectionContext) -> list[str]:
    """Return the section on recompiles: by function, each with what changed, then advice."""
    lines: list[str] = []
    for summary in run.summaries:
        recompiled = summary.recompiles
        if not recompiled:
            continue
        resumed = sum(resumed_function(each.function) is not None for each in recompiled)
        of_resumes = f", {resumed} of them of resume functions" if 0 < resumed < len(recompiled) else ""
        lines += ["", f"{link(run.name_in_text(summary), summary.file)}, {run.place(summary.location)}: "
                      f"{count(len(recompiled), 'recompile')}{of_resumes}", ""]
        lines += _rows(run, recompiled)
        advices = run.advice.on(recompiled) or list(filter(None, [run.advice.on_outer_break(recompiled[0])]))
        if advices:
            lines += ["", "To compile less often:", "", *(f"* {text}" for text in advices)]
    if not lines:
        return []
    return ["## Recompiles", "", "No compiled version matched a call, so torch compiled another one. At too many "
            "versions it stops (`torch._dynamo.config.recompile_limit`, 8 by default). Each row says what "
            "changed: from → to.",
            *lines]


def _rows(run: SectionContext, recompiled: Sequence[Compilation]) -> list[str]:
    lines: list[str] = []
    series = in_series(run, recompiled)
    shown = [*series[: ROWS - 1], series[-1]] if len(series) > ROWS + 1 else series
    reported: set[tuple[str, ...]] = set()
    for number, each in enumerate(shown):
        if len(shown) < len(series) and number == len(shown) - 1:
            lines.append(f"* ... {len(recompiled) - sum(map(len, shown))} more, each of its own version")
        lines += event(run, each[0], reported) if len(each) == 1 else _events(run, each, reported)
    return lines


def _events(run: SectionContext, series: Sequence[Compilation], reported: set[tuple[str, ...]]) -> list[str]:
    """Return the lines on several recompiles that are for one value after another (:func:`event`)."""
    first, last = series[0], series[-1]
    lines = [f"* {code(str(first.compile_id))} to {code(str(last.compile_id))}, one at each value: "
             f"{values_of(run, series)}{_in_part(run, first)}"]
    besides = besides_in(run, series)
    lines += [f"  * {besides}"] if besides else []
    for each in series:
        lines += _guarded_because(run, run.changes(each)[0], reported)
    return [*lines, f"  * torch says: {_torchs_words(run.changes(first)[0])}, and so on"]


def event(run: SectionContext, compilation: Compilation, reported: set[tuple[str, ...]]) -> list[str]:
    """Return the lines on one recompile: what changed, then torch's own words.

    Args:
        run: the facts.
        compilation: the recompile.
        reported: causes that were listed already, which are added to.
    """
    changes = run.changes(compilation)
    of = _in_part(run, compilation)
    if not changes:
        return [f"* {code(str(compilation.compile_id))}{of}"]
    main = changes[0]
    lines = [f"* {code(str(compilation.compile_id))} {row(changes)}{of}"]
    besides = run.besides(compilation)
    if besides:
        lines.append(f"  * {besides}")
    lines += _guarded_because(run, main, reported)
    asked = next(filter(None, map(run.condition_of_inductor, main.failures)), None)
    if asked is not None and asked.location is not None:
        lines.append(f"  * no line of the program asks for it: a condition {how_made(asked.location)}")
    lines.append("  * torch says: " + "; ".join(_torchs_words(change) for change in changes))
    return lines


def _in_part(run: SectionContext, compilation: Compilation) -> str:
    """Return which part was compiled, where several of a summary, itself and resume functions, have recompiles."""
    summary = run.summary_of[compilation.compile_id.key]
    several = len({c.compile_id.frame_key for c in summary.recompiles}) > 1
    return f", in {run.name_of(compilation)}" if several else ""


def _guarded_because(run: SectionContext, change: Change, reported: set[tuple[str, ...]]) -> list[str]:
    """Return the line on what made torch guard something, and add that to what was reported."""
    causes = _causes(run, change)
    if not causes or causes in reported:
        return []
    reported.add(causes)
    return [f"  * torch guards it because of {some(list(causes), 2)}"]


def _causes(run: SectionContext, change: Change) -> tuple[str, ...]:
    places = map(run.line_guarded_for, change.failures)
    return tuple(dict.fromkeys(f"{run.place(place)}: {code(place.text)}" for place in places if place is not None))


def _torchs_words(change: Change) -> str:
    """Torch's sentences of one thing, whole, with the versions that they are about.

    What it says of other versions in the same words stands once.
    """
    kinds: dict[str, list[GuardFailure]] = {}
    for failure in change.failures:
        kinds.setdefault(kind_of_failure(failure), []).append(failure)
    sentences = []
    for members in kinds.values():
        first = members[0]
        alike = [code(str(failure.entry)) for failure in members if failure.entry and failure.text == first.text]
        likewise = [code(str(failure.entry)) for failure in members if failure.entry and failure.text != first.text]
        of = ", ".join(filter(None, (some(alike, 4), f"with another value of {some(likewise, 4)}" if likewise else "")))
        sentences.append(code(first.text) + (f" (of {of})" if of else ""))
    return "; ".join(sentences)


# --- series of recompiles ----------------------------------------------------------------------------
# ::
#
#     [0/1]  self.step: 0 → 1
#     [0/2]  self.step: 1 → 2        [0/1] to [0/7]  self.step: 0 → 1 → 2 → ... → 7
#     ...
#: Recompiles that make a series; fewer have a row each.
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
    follows = all(old.now == new.was for old, new in zip(differences, differences[1:]))
    if differences[0].was.kind == "none" or not follows:
        return code(differences[0].subject)
    values = [differences[0].was.text, *(each.now.text for each in differences)]
    return f"{code(differences[0].subject)}: {_chain(values)}"


def _chain(values: Sequence[str]) -> str:
    shown = [value(each) for each in values]
    return " → ".join(shown if len(shown) <= _SHOWN + 1 else [*shown[: _SHOWN - 1], "...", shown[-1]])
