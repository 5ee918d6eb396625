"""The section on what the run came to, and where to begin to read."""

from __future__ import annotations

from ....records.store import NOT_ENDED, UNDER_STANCE
from ...dump.folder import TITLE
from ...formatting import OUTCOMES, remarks, seconds
from ...function_summary import FunctionSummary
from ...markdown import code, count, link, prose, some
from ...nothing import NOTHING, versions
from ...verdict import verdict
from ...without_frame import total
from ..totals import Totals
from ..written import BROWSER, START
from .context import SectionContext


def head(run: SectionContext) -> list[str]:
    """Return the title, the verdict and the totals of the run."""
    capture = run.capture
    totals = Totals.of(run)
    where = versions(capture.environment)
    calls = total(capture.graphs)
    going_on = [compilation for compilation in capture.compilations if compilation.outcome == "open"]
    if len(going_on) == len(capture.compilations) and not _compiled(run):
        summary = f"{calls}; no function was compiled." if calls else "" if going_on else (
            "The records hold no compilation." if NOT_ENDED in capture.notes else NOTHING)
    else:
        summary = (f"{count(totals.functions, 'function')} compiled, {count(totals.versions, 'version')} in all, "
                   f"{count(totals.graphs, 'graph')}{f', {calls}' if calls else ''}, {seconds(totals.seconds)}.")
    lines = [TITLE, ""]
    for sentence in verdict(run):
        lines += [f"**{sentence}**" if sentence.count("**") == 0 else sentence, ""]
    lines += [line for remark in remarks(capture.notes) for line in (prose(remark), "")]
    lines.append(" ".join(filter(None, (summary, where and f"({where})"))))
    if going_on:
        lines += ["", "The block was entered inside the backend, and the compilation of "
                      f"{some([run.subject(each) for each in going_on], 3)} went on when it ended: what torch made of "
                      "the function after that (guards, code) is not here."]
    problems = []
    if totals.breaks:
        problems.append(f"[{count(totals.breaks, 'graph break')}](#graph-breaks) at {count(totals.places, 'line')}")
    if totals.recompiles:
        problems.append(f"[{count(totals.recompiles, 'recompile')}](#recompiles)")
    outcomes = [f"{totals.outcomes[outcome]} {OUTCOMES[outcome]}" for outcome in ("limit", "failed", "skipped")
                if outcome in totals.outcomes]
    if len(outcomes) > 1:
        outcomes = [f"{count(totals.skipped, 'skipped function')} ({', '.join(outcomes)})"]
    if "unknown" in totals.outcomes:
        outcomes.append(f"{totals.outcomes['unknown']} {OUTCOMES['unknown']}")
    problems += [f"[{outcome}](#not-compiled)" for outcome in outcomes]
    if problems:
        lines += ["", "**" + "**, **".join(problems) + "**."]
    elif any(compilation.outcome not in ("compiled", "open") for compilation in capture.compilations):
        lines += ["", "No graph breaks, no recompiles; what has no tensor operation is [not compiled](#not-compiled)."]
    elif any(compilation.outcome == "compiled" for compilation in capture.compilations):
        known = not any(note.startswith(UNDER_STANCE) for note in capture.notes)
        lines += ["", f"No graph breaks, no recompiles{', nothing skipped' * known}."]
    return lines


def _compiled(run: SectionContext) -> list[FunctionSummary]:
    return [summary for summary in run.summaries if summary.function and (not summary.compilations or summary.done)]


def start(run: SectionContext, page: str, later: bool) -> list[str]:
    """Return the links to begin with, and how to come to the page."""
    written = [summary for summary in _compiled(run) if summary.file]
    # (a wrapper that broke before it called the user's function has no graph)
    with_graphs = [summary for summary in written if any(run.graph_names(c) for c in summary.done)]
    first = next(iter(with_graphs or written), None)
    lines: list[str] = []
    if first is not None:
        lines += ["", f"{START}{link(code(first.file), first.file)}: the function, its guards, its graphs and the "
                      "code that torch made of it, from top to bottom."]
    if page:
        lines += ["", f"{BROWSER}open {link(code(page), page)}."]
    elif later:
        lines += ["", f"{BROWSER}run `depyf open` with this directory, which makes the page of so large a run first."]
    return lines
