"""What a patch leaves: each break, skip and recompile of the last run, with what there is to say of it in words."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping

from ..advice import candidates
from ..records.model import Capture
from ..views.advice import Adviser
from ..views.causes import cause, statement
from ..views.changes import row
from ..views.findings import lost_functions
from ..views.grouping import breaks_by_place
from ..views.markdown import plain, prose, unmarked
from ..views.run_index import RunIndex
from ..views.verdict import why_plain


def left(capture: Capture, rejected: Mapping[str, str] | None = None) -> list[str]:
    """Return lines on what torch still breaks, skips and compiles again; what is to be done is indented.

    Args:
        capture: the last run.
        rejected: changes that were tried and not taken, with why not; they are no advice.
    """
    run = RunIndex(capture)
    adviser = Adviser(run)
    return [*_breaks(run, adviser, rejected or {}), *_skips(run, adviser), *_recompiles(run, adviser)]


def _breaks(run: RunIndex, adviser: Adviser, rejected: Mapping[str, str]) -> Iterator[str]:
    """Yield lines on the breaks; a line of the user's that breaks several functions stands once."""
    pairs = [(broken, each) for each in run.capture.compilations for broken in each.breaks]
    times: Counter[tuple[str, str, tuple[str, ...]]] = Counter()
    for members in breaks_by_place(pairs):
        broken, compilation = members[0]
        where = broken.location
        at = f"{os.path.basename(where.filename)}:{where.line} `{statement(where.text)}`" if where else "somewhere"
        tried = [each.change for each in candidates(run.source.site(broken, compilation.function))]
        advice = adviser.on_break(broken)
        if advice is not None:
            tried.append(advice.change)
        said = tuple(unmarked(f"tried, and not taken: {each}: {rejected[each]}")
                     for each in dict.fromkeys(tried) if each in rejected)
        said = said or tuple(map(unmarked, adviser.lines_on(broken, compilation)[:1]))
        times[at, unmarked(prose(cause(broken))), said] += len(members)
    for (at, why, said), count in times.items():
        yield f"graph break at {at}{f', {count} times' if count > 1 else ''}: {why}"
        yield from (f"  {line}" for line in said)


def _skips(run: RunIndex, adviser: Adviser) -> Iterator[str]:
    for each in lost_functions(run.capture.compilations):
        yield unmarked(why_plain(run, each))
        if not any(broken.skips_function for broken in each.breaks):  # (what is to be done about these stands there)
            yield from (f"  change: {unmarked(text)}" for text in adviser.on_lost(each))


def _recompiles(run: RunIndex, adviser: Adviser) -> Iterator[str]:
    for summary in run.summaries:
        again = summary.recompiles
        for each in again[:3]:
            yield f"recompile of {plain(run.name_of(each))}: {unmarked(row(run.changes(each)))}"
        if len(again) > 3:
            yield f"and {len(again) - 3} more of {summary.title}"
        yield from (f"  {unmarked(text)}" for text in adviser.on(again)[:2])
