"""The events of a run as data of the page: compilations, graph breaks, recompiles, what was lost, what it cost."""

from __future__ import annotations

from typing import Any

from ...records.model import Compilation, GraphBreak, GuardFailure
from ...torch_text import events
from ...torch_text.met import in_order
from ...torch_text.run_ids import without_addresses
from ..causes import breaks_by_place, cause, failures_by_kind, heading, path_to
from ..changes import in_words, row
from ..findings import Totals
from ..function_summary import FunctionSummary
from ..index.recompiles import is_of_program, is_used, range_of
from ..markdown import prose, spans, web_address
from ..verdict import why_given_up, why_plain
from .functions import branch_data
from .run import Json, Run


def compilation_data(run: Run, compilation: Compilation) -> Json:
    """Return a compilation: its function, outcome, time and graphs."""
    summary = run.index.summary_of.get(compilation.compile_id.key)
    return {
        "id": str(compilation.compile_id), "subject": run.subject(compilation),
        "unit": run.index.summaries.index(summary) if summary else -1, "place": run.place(compilation.location),
        "outcome": compilation.outcome,
        "again": run.index.is_recompile(compilation),
        "start": compilation.start, "seconds": compilation.seconds, "broke": bool(compilation.breaks),
        "restarts": len(compilation.restarts),
        "graphs": [run.graph_numbers[name] for name in run.index.graph_names(compilation)
                   if name in run.graph_numbers],
        "phases": [[phase.name, phase.seconds] for phase in compilation.phases],
        "counts": dict(compilation.counts)}


def break_data(run: Run, group: list[tuple[GraphBreak, Compilation]]) -> Json:
    """Return the graph breaks of one reason: torch's words, and each place."""
    first = group[0][0]
    places = []
    for members in breaks_by_place(group):
        broken, compilation = members[0]
        where = broken.location
        if where is not None:
            run.statuses.at_break(where, broken.reason)
        resumes = dict.fromkeys(
            name for _, c in members if c.outcome == "compiled" for name in run.index.resume_names(c))
        places.append({
            "place": run.place(where), "text": where.text if where else "",
            "function": run.function_at(where) if where else "",
            "path": [[run.place(step), run.function_at(step)]
                     for step in path_to(broken, compilation)[:-1]],
            "skips": broken.skips_function, "of": run.subject(compilation),
            "advice": [spans(text) for text in run.advice.lines_on(broken, compilation)],
            "resumes": [[name, branch_data(run.index.frames.get(name))] for name in resumes],
            "ids": list(dict.fromkeys(str(c.compile_id) for _, c in members)), "times": len(members)})
    return {
        "title": without_addresses(heading(first)) or "Torch gives no reason", "id": first.registry_id,
        "url": web_address(first.url),
        "explanation": without_addresses(first.explanation),
        "hints": [without_addresses(hint) for hint in run.advice.torchs_hints(broken for broken, _ in group)],
        "context": without_addresses(first.context), "places": places,
        "times": len(group)}


def recompile_data(run: Run, summary: FunctionSummary) -> Json:
    """Return the recompiles of a function, a row for each."""
    rows = []
    for compilation in summary.recompiles:
        changes = run.index.changes(compilation)
        rows.append({
            "id": str(compilation.compile_id), "of": run.subject(compilation),
            "text": spans(". ".join(filter(None, (row(changes), run.index.besides(compilation))))),
            "failures": [_failure(run, members) for members in failures_by_kind([compilation])]})
    return {"unit": run.index.summaries.index(summary), "subject": summary.title, "rows": rows,
            "advice": [spans(text) for text in run.advice.on(summary.recompiles)]}


def _failure(run: Run, failures: list[GuardFailure]) -> Json:
    causes: dict[int, str] = {}
    for failure in failures:
        place = run.index.line_guarded_for(failure)
        if place is not None:
            causes.setdefault(run.place(place), place.text)
    return {
        "texts": list(dict.fromkeys(without_addresses(failure.text) for failure in failures)),
        "entries": list(dict.fromkeys(str(failure.entry) for failure in failures if failure.entry)),
        "causes": [[place, text] for place, text in causes.items()]}


def lost_data(run: Run, members: list[Compilation]) -> Json:
    """Return compilations that gave no code; what torch says of the break that caused it is at the break."""
    first = members[0]
    failure = first.failure
    broken = next((each for each in reversed(first.breaks) if each.skips_function), None)
    account = events.graph_break(first.compile_id, failure.reason) if failure and not broken else None
    why: list[list[str]] = []
    if broken is not None:
        given_up = f" Why torch gives the function up: {why_given_up(broken)}." if broken.gave_up else ""
        why = spans(f"Why it breaks: {prose(cause(broken))}.{given_up}")
    elif account is not None:
        why = spans(prose(without_addresses(account.explanation.partition("\n")[0])))
    changes = [run.index.changes(each)[:1] for each in members] if first.outcome == "limit" else []
    own = run.advice.on_limit(members) if first.outcome == "limit" else run.advice.on_lost(first)
    hints = [prose(without_addresses(hint)) for hint in in_order(account.hints)] if account else []
    return {
        "outcome": first.outcome, "subject": run.subject(first), "place": run.place(first.location),
        "ids": [str(c.compile_id) for c in members], "broke": broken is not None,
        "text": spans(why_plain(run.index, first)) if first.outcome != "unknown" else [], "why": why,
        "at": run.place(failure.location) if failure and failure.location and not broken else -1,
        "rows": [spans(row(each)) for each in changes if each][:3],
        "hints": [spans(hint) for hint in dict.fromkeys([*own, *hints])]}


def symbols_data(run: Run) -> list[Json]:
    """Return the used symbols, each decision once."""
    result: dict[tuple[object, ...], Json] = {}
    for number, summary in enumerate(run.index.summaries):
        for compilation in summary.compilations:
            for symbol in compilation.symbols:
                if not is_used(run.index, symbol, compilation) or not is_of_program(symbol, compilation):
                    continue
                key = (number, symbol.kind, symbol.symbol, symbol.source, symbol.value, symbol.reason)
                known = result.setdefault(key, {
                    "unit": number, "kind": symbol.kind, "symbol": symbol.symbol,
                    "source": in_words(symbol.source, run.index.stack_names(compilation)),
                    "value": symbol.value, "range": spans(range_of(run.index, symbol, compilation)),
                    "reason": without_addresses(symbol.reason),
                    "place": run.place(symbol.location), "ids": []})
                if str(compilation.compile_id) not in known["ids"]:
                    known["ids"].append(str(compilation.compile_id))
    return list(result.values())


def caches_data(run: Run) -> list[list[Any]]:
    """Return ``[cache, outcome, reason, times]`` of the lookups in torch's caches."""
    counts: dict[tuple[str, str, str], int] = {}
    for compilation in run.capture.compilations:
        for lookup in compilation.caches:
            key = lookup.cache, lookup.outcome, without_addresses(lookup.reason)
            counts[key] = counts.get(key, 0) + 1
    return [[*key, times] for key, times in counts.items()]


def summary_data(run: Run) -> Json:
    """Return the totals of the run."""
    totals = Totals.of(run.index)
    return {
        "functions": totals.functions,
        "versions": totals.versions or sum(len(f.entries) for u in run.capture.functions for f in u.frames),
        "graphs": totals.graphs, "seconds": totals.seconds, "breaks": totals.breaks, "places": totals.places,
        "recompiles": totals.recompiles,
        **{outcome: totals.outcomes.get(outcome, 0) for outcome in ("limit", "failed", "skipped", "unknown")}}
