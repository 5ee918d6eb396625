"""Recompiles: what changed since the versions were compiled, a row for each."""

from __future__ import annotations

from collections.abc import Sequence

from ....records.model import Compilation, GuardFailure
from ....torch_text.global_names import resumed_function
from ...changes import Change, row
from ...grouping import kind_of_failure
from ...inductor_ranges import how_made
from ...markdown import code, count, link, some
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
    shown = [*recompiled[: ROWS - 1], recompiled[-1]] if len(recompiled) > ROWS + 1 else recompiled
    reported: set[tuple[str, ...]] = set()
    for number, each in enumerate(shown):
        if len(shown) < len(recompiled) and number == len(shown) - 1:
            lines.append(f"* ... {len(recompiled) - len(shown)} more, each of its own version")
        lines += event(run, each, reported)
    return lines


def event(run: SectionContext, compilation: Compilation, reported: set[tuple[str, ...]]) -> list[str]:
    """Return the lines on one recompile: what changed, causes not in ``reported`` yet, then torch's own words."""
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
    places = map(run.line_guarded_for, change.failures)
    causes = tuple(dict.fromkeys(f"{run.place(place)}: {code(place.text)}" for place in places if place is not None))
    if not causes or causes in reported:
        return []
    reported.add(causes)
    return [f"  * torch guards it because of {some(list(causes), 2)}"]


def _torchs_words(change: Change) -> str:
    """Return torch's sentences on one change, whole, with the versions that they are about."""
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
