"""``depyf explain --json``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...records.model import Capture, Compilation, CompiledGraph, GraphBreak
from ...records.store import NOT_ENDED
from ..advice import in_order
from ..compile_arguments import of_function
from ..findings import findings, is_lost
from ..index.sections.context import SectionContext
from ..index.sections.first import first_changes
from ..index.totals import Totals, seconds_by_phase
from ..markdown import plain, unmarked
from ..verdict import verdict, why_plain
from ..without_frame import without_frame
from .output import finding, head, place, rank_of, seconds


def document(captures: Mapping[str, Capture], path: str) -> dict[str, Any]:
    """Return what torch.compile did, of each rank."""
    return {**head("explain"), "path": path,
            "runs": [_run(folder, SectionContext(capture)) for folder, capture in captures.items()]}


def _run(folder: str, run: SectionContext) -> dict[str, Any]:
    capture, totals = run.capture, Totals.of(run)
    return {
        "rank": rank_of(folder), "environment": dict(capture.environment), "ended": NOT_ENDED not in capture.notes,
        "verdict": [unmarked(sentence) for sentence in verdict(run)],
        "first_changes": [unmarked(text) for text in first_changes(run, run.advice, run.place)[0]],
        "totals": {
            "functions": totals.functions, "versions": totals.versions, "graphs": totals.graphs,
            "breaks": totals.breaks, "recompiles": totals.recompiles,
            "skipped": totals.skipped,
            "seconds": seconds(totals.seconds)},
        "functions": _functions(run),
        "graphs_without_function": [_graph(each) for each in without_frame(capture.graphs)],
        "breaks": _breaks(run), "recompiles": _recompiles(run),
        "not_compiled": [_not_compiled(run, each) for each in capture.compilations
                         if each.outcome not in ("compiled", "open")],
        "phases": {name: seconds(time) for name, time in seconds_by_phase(capture.compilations).items()},
        "notes": list(capture.notes)}


def _functions(run: SectionContext) -> list[dict[str, Any]]:
    return [{
        "name": summary.title, "place": place(summary.location), "file": summary.file or None,
        "arguments": list(sets.values()) if (sets := of_function(summary)) is not None else None,
        "versions": len(summary.done),
        "graphs": list(dict.fromkeys(name for each in summary.done for name in run.graph_names(each))),
        "breaks": sum(len(each.breaks) for each in summary.compilations), "recompiles": len(summary.recompiles),
        "seconds": seconds(sum(each.seconds for each in summary.compilations)),
        "advice": [unmarked(text) for text in run.advice.on(summary.recompiles)]} for summary in run.summaries]


def _graph(graph: CompiledGraph) -> dict[str, Any]:
    files = [*(stage.file for stage in graph.stages), *(kernel.file for kernel in graph.kernels)]
    return {
        "name": graph.name, "by": graph.call.function if graph.call is not None else "", "place": place(graph.call),
        "files": list(filter(None, files))}


def _breaks(run: SectionContext) -> list[dict[str, Any]]:
    broken = [(each, compilation) for summary in run.summaries for compilation in summary.compilations
              for each in compilation.breaks]
    return [{**finding(found, run.source.line(found.place) if found.place else ""), **_in_torchs_words(each),
             "advice": [unmarked(text) for text in run.advice.lines_on(each, compilation)]}
            for found, (each, compilation) in zip(findings(run, "breaks"), broken, strict=True)]


def _in_torchs_words(broken: GraphBreak) -> dict[str, Any]:
    return {"reason": broken.reason, "registry_id": broken.registry_id or None, "url": broken.url or None,
            "explanation": broken.explanation, "hints": in_order(broken.hints), "skips_function": broken.skips_function}


def _recompiles(run: SectionContext) -> list[dict[str, Any]]:
    compilations = [each for summary in run.summaries for each in summary.recompiles]
    return [{**finding(found), "changes": [
        {"subject": change.subject, "was": list(filter(None, dict.fromkeys(change.was))), "now": change.now or None}
        for change in run.changes(each)]}
        for found, each in zip(findings(run, "recompiles"), compilations, strict=True)]


def _not_compiled(run: SectionContext, compilation: Compilation) -> dict[str, Any]:
    failure, meant = compilation.failure, compilation.user_function
    ended = compilation.outcome != "unknown"
    summary = run.summary_of[compilation.compile_id.key]
    return {
        "function": summary.title, "frame": plain(run.name_of(compilation)), "compile_id": str(compilation.compile_id),
        "place": place((failure.location if failure else None) or (meant.location if meant else None)
                       or compilation.location),
        "cause": unmarked(why_plain(run, compilation)) if ended else "the end of its compilation was not seen",
        "outcome": compilation.outcome, "exception": failure.kind if failure and failure.kind else None,
        "lost": is_lost(compilation),
        "advice": [unmarked(text) for text in run.advice.on_lost(compilation)]}
