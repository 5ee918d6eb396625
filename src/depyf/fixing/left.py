"""What a patch leaves: each break, skip and recompile of the last run, with what there is to say of it in words."""

from __future__ import annotations

import os
from collections.abc import Iterator

from ..records.model import Capture
from ..views.advice import Adviser
from ..views.causes import cause, statement
from ..views.changes import row
from ..views.findings import is_lost
from ..views.grouping import breaks_by_place
from ..views.markdown import plain, prose, unmarked
from ..views.run_index import RunIndex
from ..views.verdict import why_plain


def left(capture: Capture) -> list[str]:
    """Return lines on what torch still breaks, skips and compiles again; what is to be done is indented."""
    run = RunIndex(capture)
    adviser = Adviser(run)
    return [*_breaks(run, adviser), *_skips(run, adviser), *_recompiles(run, adviser)]


def _breaks(run: RunIndex, adviser: Adviser) -> Iterator[str]:
    pairs = [(broken, each) for each in run.capture.compilations for broken in each.breaks]
    for members in breaks_by_place(pairs):
        broken, compilation = members[0]
        where = broken.location
        at = f"{os.path.basename(where.filename)}:{where.line} `{statement(where.text)}`" if where else "somewhere"
        times = f", {len(members)} times" if len(members) > 1 else ""
        yield f"graph break at {at}{times}: {unmarked(prose(cause(broken)))}"
        yield from (f"  {unmarked(line)}" for line in adviser.lines_on(broken, compilation)[:1])


def _skips(run: RunIndex, adviser: Adviser) -> Iterator[str]:
    for each in filter(is_lost, run.capture.compilations):
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
