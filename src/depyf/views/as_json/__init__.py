"""JSON for programs: one document of the records or results that a command shows.

    explain_document({"": capture}, "dump")  -> {"depyf": ..., "command": "explain", "version": 1, "runs": [...]}
    written(document)                         -> its text

There is a function for each command that has ``--json``. ``schema.json`` beside this file is the JSON Schema of all
documents, docs/json.md explains it; tests compare what is written with both.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from ... import __version__
from ...model.folding import fold
from ...records.model import Capture, Compilation, CompiledGraph, SourceLocation
from ...records.run_directory import RANK
from ...records.store import NOT_ENDED
from ...torch_text.met import in_order
from ..budgets import Budget, Judgement, sentences
from ..diff.difference import Difference, Number, items
from ..formatting import NOT_LOST, is_from_file, without_frame
from ..function_summary import arguments_of
from ..index.overview import SectionContext, first_changes
from ..markdown import Bullets, CodeBlock, Paragraph, blocks, plain, unmarked
from ..verdict import Finding, Totals, findings, is_lost, seconds_by_phase, verdict, why_plain

VERSION = 1  #: Counted up when a field goes or means something else. New fields do not change it.
SCHEMA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "schema.json")  #: The JSON Schema of all documents.


def head(command: str) -> dict[str, Any]:
    """Return the beginning of a document: who wrote it, of which command it is, and the version of its schema."""
    return {"depyf": __version__, "command": command, "version": VERSION}


def written(document: dict[str, Any]) -> str:
    """Return a document as text. Lone surrogates, which names may contain, are escaped."""
    return json.dumps(document, ensure_ascii=True, indent=2, allow_nan=False) + "\n"


def rank_of(folder: str) -> int | None:
    """Return the number of the rank that a folder of a dump is of; ``None`` where there is one process only."""
    number = folder.removeprefix(RANK)
    return int(number) if folder.startswith(RANK) and number.isdigit() else None


def place(location: SourceLocation | None, text: str = "") -> dict[str, Any] | None:
    """Return a place in the user's files."""
    return {"file": location.filename, "line": location.line, "function": location.function,
            "text": location.text or text} if location is not None else None


def finding(found: Finding, text: str = "") -> dict[str, Any]:
    """Return what counts against a budget; ``text`` is the user's line, where the place does not have it."""
    return {"function": found.function, "frame": plain(found.frame), "compile_id": found.compile_id,
            "place": place(found.place, text), "cause": unmarked(found.cause)}


def seconds(value: float) -> float:
    """Return a time to the microsecond."""
    return round(value, 6)


# --- ``depyf check --json`` --------------------------------------------------------------------------
def check_document(judgement: Judgement, path: str) -> dict[str, Any]:
    """Return the judgement, budget by budget."""
    by_budget = fold(judgement.results, lambda each: each.budget)
    return {
        **head("check"), "path": path, "within": judgement.within,
        "budgets": [{
            "kind": budget.kind, "limit": _number(budget, budget.limit), "function": budget.function or None,
            "within": all(result.within for result in results), "results": [
                {"rank": rank_of(result.folder), "function": result.function or None,
                 "amount": _number(budget, result.amount), "within": result.within,
                 "findings": [{**finding(each), "amount": _number(budget, each.amount)} for each in result.findings]}
                for result in results]} for budget, results in by_budget.items()],
        "sentences": sentences(judgement), "notes": list(judgement.notes)}


def _number(budget: Budget, value: float) -> float:
    return seconds(value) if budget.kind == "seconds" else int(value)


# --- ``depyf diff --json`` ---------------------------------------------------------------------------
def diff_document(differences: Mapping[str, Difference], paths: tuple[str, str], alone: Sequence[Sequence[str]]
             ) -> dict[str, Any]:
    """Return the differences of two runs, of each rank; ``alone``: ranks that only one of the two has."""
    return {
        **head("diff"), "before": paths[0], "after": paths[1],
        "different": any(differences.values()) or any(alone),
        "only_before": [rank_of(folder) for folder in alone[0]], "only_after": [rank_of(folder) for folder in alone[1]],
        "runs": [{
            "rank": rank_of(folder), "different": bool(result), "remarks": [unmarked(line) for line in result.head],
            "numbers": _numbers(result.numbers), "functions": [{
                "name": changed.name, "place": place(changed.location), "state": changed.state,
                "numbers": _numbers(changed.numbers), "changes": [_change(item) for item in items(changed.lines)]}
                for changed in result.changed],
            "times": [{"part": name, "before": seconds(before), "after": seconds(after)}
                      for name, before, after in result.times]} for folder, result in differences.items()]}


def _change(item: Sequence[str]) -> dict[str, Any]:
    """Return an item of a list, with the lines below it: those of a block of code as they are."""
    details = [line for block in blocks([line.removeprefix("  ") for line in item[1:]]) for line in (
        block.lines if isinstance(block, CodeBlock) else [
            unmarked(part.text) for inner in block.items for part in inner if isinstance(part, Paragraph)]
        if isinstance(block, Bullets) else ())]
    return {"text": unmarked(item[0].removeprefix("* ")), "details": details}


def _numbers(numbers: Sequence[Number]) -> list[dict[str, Any]]:
    return [{"what": what, "before": before, "after": after} for what, before, after in numbers]


# --- ``depyf explain --json`` ------------------------------------------------------------------------
def explain_document(captures: Mapping[str, Capture], path: str) -> dict[str, Any]:
    """Return what torch.compile did, of each rank."""
    return {**head("explain"), "path": path,
            "runs": [_run_of_explain(folder, SectionContext(capture)) for folder, capture in captures.items()]}


def _run_of_explain(folder: str, run: SectionContext) -> dict[str, Any]:
    capture, totals = run.capture, Totals.of(run)
    return {
        "rank": rank_of(folder), "alike_ranks": [each.number for each in capture.alike_ranks],
        "environment": dict(capture.environment), "ended": NOT_ENDED not in capture.notes,
        "verdict": [unmarked(sentence) for sentence in verdict(run)],
        "first_changes": [unmarked(text) for text in first_changes(run, run.place)[0]],
        "totals": {
            "functions": totals.functions, "versions": totals.versions, "graphs": totals.graphs,
            **_happened(run, totals.breaks, totals.recompiles, totals.seconds),
            "skipped": None if is_from_file(capture) else totals.skipped},
        "functions": _functions(run),
        "graphs_without_function": [
            {"name": each.name, "by": each.call.function if each.call is not None else "", "place": place(each.call),
             "files": _files(each)} for each in without_frame(capture.graphs)],
        "pieces": [{"name": each.name, "graph": each.piece_of, "files": _files(each),
                    "again": [{"graph": one.graph.name, "sizes": one.sizes} for one in run.again.get(each.name, ())]}
                   for pieces in run.pieces.values() for each in pieces],
        "breaks": _breaks(run), "recompiles": _recompiles(run),
        "not_compiled": [_not_compiled(run, each) for each in capture.compilations
                         if each.outcome not in NOT_LOST],
        "phases": {name: seconds(time) for name, time in seconds_by_phase(capture.compilations).items()},
        "notes": list(capture.notes)}


def _happened(run: SectionContext, breaks: int, recompiles: int, time: float) -> dict[str, Any]:
    """Return numbers of what happened; ``null`` for each of a file that torch saved, which does not say."""
    if is_from_file(run.capture):
        return {"breaks": None, "recompiles": None, "seconds": None}
    return {"breaks": breaks, "recompiles": recompiles, "seconds": seconds(time)}


def _functions(run: SectionContext) -> list[dict[str, Any]]:
    return [{
        "name": summary.title, "place": place(summary.location), "file": summary.file or None,
        "arguments": list(sets.values()) if (sets := arguments_of(summary)) is not None else None,
        "versions": len(summary.done),
        "graphs": list(dict.fromkeys(name for each in summary.done for name in run.graph_names(each))),
        **_happened(run, sum(len(each.breaks) for each in summary.compilations), len(summary.recompiles),
                    sum(each.seconds for each in summary.compilations)),
        "advice": [unmarked(text) for text in run.advice.on(summary.recompiles)]} for summary in run.summaries]


def _files(graph: CompiledGraph) -> list[str]:
    return [*filter(None, (stage.file for stage in graph.stages)), *filter(None, (k.file for k in graph.kernels))]


def _breaks(run: SectionContext) -> list[dict[str, Any]]:
    broken = [(each, compilation) for summary in run.summaries for compilation in summary.compilations
              for each in compilation.breaks]
    return [{
        **finding(found, run.source.line(found.place) if found.place else ""), "reason": each.reason,
        "registry_id": each.registry_id or None, "url": each.url or None, "explanation": each.explanation,
        "hints": in_order(each.hints), "skips_function": each.skips_function,
        "advice": [unmarked(text) for text in run.advice.lines_on(each)]}
        for found, (each, compilation) in zip(findings(run, "breaks"), broken, strict=True)]


def _recompiles(run: SectionContext) -> list[dict[str, Any]]:
    compilations = [each for summary in run.summaries for each in summary.recompiles]
    return [{**finding(found), "changes": [
        {"subject": change.subject, "was": list(filter(None, dict.fromkeys(change.was))), "now": change.now or None}
        for change in run.changes(each)]}
        for found, each in zip(findings(run, "recompiles"), compilations, strict=True)]


def _not_compiled(run: SectionContext, compilation: Compilation) -> dict[str, Any]:
    failure = compilation.failure
    ended = compilation.outcome != "unknown"
    summary = run.summary_of[compilation.compile_id.key]
    return {
        "function": summary.title, "frame": plain(run.name_of(compilation)), "compile_id": str(compilation.compile_id),
        "place": place((failure.location if failure else None) or compilation.place),
        "cause": unmarked(why_plain(run, compilation)) if ended else "the end of its compilation was not seen",
        "outcome": compilation.outcome, "exception": failure.kind if failure and failure.kind else None,
        "lost": is_lost(compilation),
        "advice": [unmarked(text) for text in run.advice.on_lost(compilation)]}
