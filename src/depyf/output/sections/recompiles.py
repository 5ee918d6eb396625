"""Recompiles: which guard of which version did not hold."""

from __future__ import annotations

from collections.abc import Sequence

from ...capture.records import Compilation, GuardFailure
from ..markdown import code, count, link, one_line, some
from ..story import failures_by_kind, kind_of_failure, recompiles_by_reason
from .told import Told

#: How many of a kind are told one by one: reasons of a function, values of a guard.
GROUPS, VALUES = 8, 4


def recompiles(story: Told) -> list[str]:
    lines: list[str] = []
    for unit in story.units:
        recompiled = unit.recompiles
        if not recompiled:
            continue
        groups = recompiles_by_reason(unit)
        lines += ["", f"{link(code(unit.title), unit.file)}, {story.place(unit.location)}: "
                      f"{count(len(recompiled), 'recompile')}", ""]
        for members in groups[:GROUPS]:
            lines += _recompile_group(story, members)
        if len(groups) > GROUPS:
            lines.append(f"* ... for {len(groups) - GROUPS} more reasons (`records.jsonl` has all)")
    if not lines:
        return []
    return ["## Recompiles", "", "A call that fits no version is compiled again. Too many versions, and torch gives up "
            "(`torch._dynamo.config.recompile_limit`).", *lines]


def _recompile_group(story: Told, members: list[Compilation]) -> list[str]:
    ids = [code(str(c.compile_id)) for c in members]
    shown = _span(ids) + (f", {len(ids)} times" if len(ids) > 3 else "")
    lines = [f"* {shown}, {story.subject(members[0])}:"]
    kinds = failures_by_kind(members)
    for found_all in kinds[:3]:
        lines += [f"  * {line}" for line in failure_lines(story, found_all)]
    if len(kinds) > 3:
        lines.append(f"  * ... and {len(kinds) - 3} other guards of older versions")
    return lines


def _span(ids: list[str]) -> str:
    return ", ".join(ids) if len(ids) < 4 else f"{ids[0]} to {ids[-1]}"


def failure_lines(story: Told, failures: Sequence[GuardFailure]) -> list[str]:
    """Failures of one kind of guard: which, expected and seen, against which versions, made by which line."""
    first = failures[0]
    texts = dict.fromkeys(one_line(found.text) for found in failures)
    values = []
    for word, items in (("expected", [f.expected for f in failures]), ("seen", [f.seen for f in failures])):
        different = [code(item, 60) for item in dict.fromkeys(items) if item]
        if different:
            values.append(f"{word} {some(different, VALUES)}")
    if len(texts) == 1 or not values:
        what = some([code(text, 160) for text in texts], 2)
    else:
        what = code(kind_of_failure(first), 160)
    against = dict.fromkeys(code(str(found.entry)) for found in failures if found.entry)
    line = what
    if values and not all(v in one_line(first.text) for v in (first.expected, first.seen) if v) or len(texts) > 1:
        line += "; " + ", ".join(values) if values else ""
    if against:
        line += f" (so {some(list(against), 3)} did not fit)"
    lines = [line]
    causes = dict.fromkeys(
        f"{story.place(f.cause)}: {code(f.cause.text, 100)}" for f in failures if f.cause is not None)
    if causes:
        lines.append(f"guarded because of {some(list(causes), 2)}")
    return lines
