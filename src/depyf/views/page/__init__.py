"""``index.html``: one HTML text made of records, which needs no network and no torch.

    run_data(capture)    {"units": [...], "breaks": [...], "graphs": [...], "docs": [...]}: a run as the page shows it
    run.py               numbers for documents, files and lines, which all parts share; the status of lines; the parts
                         for functions, graphs and kernels
    build(capture)       the data, packed, with the script and the style, under a strict policy

``static/`` has the script and the style, built from ``frontend/`` by ``make page-assets``.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import html
import json
import os
import re
import string
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ... import guarded
from ...harmless import write_whole
from ...model.folding import fold
from ...provenance import sources
from ...provenance.graph_provenance import Provenance
from ...reading import own_text
from ...records.model import Capture, Compilation, GraphBreak, GuardFailure, SourceFile
from ...torch_text import events
from ...torch_text.met import in_order
from ...torch_text.run_ids import without_addresses
from ..causes import breaks_by_place, breaks_by_reason, cause, heading, kind_of_failure, not_compiled, path_to
from ..changes import in_words, row
from ..dump.folder import PAGE
from ..formatting import LOST, is_from_file
from ..function_summary import FunctionSummary
from ..index.overview import first_changes
from ..index.recompiles import is_of_program, is_used, range_of
from ..markdown import code, one_line, prose, spans, web_address
from ..ranks import RankClass
from ..verdict import Totals, break_given_up_at, seconds_by_phase, verdict, why_given_up, why_plain
from .run import Json, Run, branch_data, function_data, graph_data, plain_lines, ranks_head, run_head

FILE = PAGE
FORMAT = 1  #: Of the data.
#: A page that takes longer is left to ``depyf report``. (By the records, not a clock: identical runs have the
#: same files.)
SECONDS, SECONDS_A_CHARACTER = 2.0, 1.5e-6
LARGEST = 6_000_000  #: Characters of a page's data after which further runs are left out.
#: What a page is made of.
Recorded = Capture | Mapping[str, Capture] | Sequence[RankClass]
_DATA = re.compile(r'id="data">(.*?)</script>', re.DOTALL)
_PART = re.compile(r'class="part">(.*?)</script>', re.DOTALL)


def build(
    capture: Recorded, sources: Sequence[SourceFile] | None = None, title: str = "", *,
    provenances: Mapping[str, Provenance] | None = None, names: Mapping[str, str] | None = None,
) -> str:
    """Return the page of a run: one HTML text, ASCII.

    Its Content-Security-Policy allows its script and style and nothing else, so no text of the records can run or fetch
    anything.

    Args:
        capture: the records; for several ranks those of each by its name (``{"rank 0": ...}``), in order, or classes
            of ranks that did the same (:mod:`depyf.views.ranks`).
        sources: the user's files to annotate. ``None``: those in the records, else what the records have of them.
        title: of the page; the command, its backends and the date, if empty.
        provenances: those of graphs that are known already, by name of the graph.
        names: names of files, by path, where that is not a part of the path (a notebook's ``In[3]``).
    """
    shown: list[tuple[str, RankClass | None, Capture]]
    if isinstance(capture, Capture):
        shown = [("", None, capture)]
    elif isinstance(capture, Mapping):
        shown = [(name, None, run) for name, run in capture.items()]
    else:
        shown = [(each.name, each, each.capture) for each in capture if each.capture is not None]
    captures = [run for _, _, run in shown]
    begin, between, end = _shell(title or _title(captures))
    pieces = [begin]  # (then a part of the data for each run, and the head of the data)
    runs: list[Json] = []
    for name, ranks, run in shown:
        if sum(map(len, pieces[1:])) > LARGEST:
            break
        with guarded.paused():
            data = {"name": name, **run_data(run, sources, provenances, names)}
            text = packed(data)
        runs.append(run_head(data, ranks))
        pieces.append(f'<script type="application/json" class="part">{text}</script>\n')
    environment = dict(captures[0].environment) if captures else {}
    head = {
        "format": FORMAT, "title": title, "environment": environment, "runs": runs,
        "backends": _backends(captures),
        "left_out": [name for name, _, _ in shown[len(runs) :]],
        **(ranks_head(capture) if not isinstance(capture, (Capture, Mapping)) else {})}
    return "".join([*pieces, between, packed(head), end])


def is_large(capture: Capture) -> bool:
    """Return whether the page would take more than two seconds: the end of a run leaves it to ``depyf report`` then."""
    size = sum(sum(len(stage.text) for stage in graph.stages) + sum(len(kernel.text) for kernel in graph.kernels)
               for graph in capture.graphs)
    return SECONDS_A_CHARACTER * size > SECONDS


def write(path: str, capture: Recorded, **options: Any) -> str:
    """Write the page.

    Args:
        path: the file, or a directory, in which it is called ``index.html``.
        capture, **options: as of :func:`build`.

    Returns:
        The path of the file.

    Raises:
        OSError: it cannot be written.
    """
    path = os.path.join(path, FILE) if os.path.isdir(path) else path
    write_whole(path, [build(capture, **options).encode()])
    return path


def _shell(title: str) -> tuple[str, str, str]:
    """Return the text of a page before its parts, between these and the head of its data, and after that."""
    script, style, shell = (own_text(f"views/page/static/{name}") for name in ("page.js", "page.css", "shell.html"))
    policy = (f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; base-uri 'none'; "
              "form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'")
    before, after = shell.split("$data")
    before, head, rest = before.rpartition("<script")
    title = html.escape(one_line(title)).encode("ascii", "xmlcharrefreplace").decode("ascii")
    return (string.Template(before).substitute(policy=policy, title=title, style=style),
            head + rest, string.Template(after).substitute(script=script))


def packed(data: Mapping[str, Any]) -> str:
    """Return the data as JSON, compressed: graphs repeat themselves, and a page ten times smaller can be sent by mail.

    It is base64, in which no text of a program is HTML.
    """
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":")).encode("ascii")
    # (31: gzip, without a time in its head. A higher level takes longer and saves little.)
    compressor = zlib.compressobj(1, zlib.DEFLATED, 31)
    packed = base64.b64encode(compressor.compress(text) + compressor.flush()).decode("ascii")
    return json.dumps({"encoding": "gzip", "size": len(text), "data": packed})


def unpacked(page: str) -> Any:
    """Return the data of a page: its head, with the runs that are in it."""
    head, *parts = (json.loads(zlib.decompress(base64.b64decode(json.loads(text)["data"]), 31)) for text in (
        *_DATA.findall(page), *_PART.findall(page)))
    return {**head, "runs": [{**run, **part} for run, part in zip(head["runs"], parts)]}


def _title(runs: Sequence[Capture]) -> str:
    """Return the title: the command, its backends and the date; the compiled functions, where these are unknown."""
    environment = next((run.environment for run in runs), {})
    if environment.get("command"):
        return " \u00b7 ".join(filter(None, (
            environment["command"].removeprefix("python "), ", ".join(_backends(runs)), environment.get("date", ""))))
    names = list(dict.fromkeys(function.frames[0].title or function.name if function.frames else function.name
                               for run in runs for function in run.functions))
    return ": ".join(filter(None, ("torch.compile", ", ".join(names[:3] + ["..."] * (len(names) > 3)))))


def _backends(runs: Sequence[Capture]) -> list[str]:
    return sorted({graph.backend for run in runs for graph in run.graphs if graph.backend})


@functools.cache
def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")


# --- The data that the page shows: a capture as JSON, every text once, every link by number -----------
# Terms, also of the page's script:
#
# * a *document* is a text that a pane can show: a user's file, guards, transformed code, a stage of a graph, a
#   generated module. Its ``key`` is stable from run to run and is used in links;
# * a *place* is a user's line: ``(file, line)``. It has one colour in every document;
# * ``nodes`` of a stage: for each node its name, line of the text, place, captured node (index in the captured stage)
#   and call of a module; -1 where there is none;
# * ``calls`` of a generated module: for each call of a kernel its lines and the nodes of ``stage`` that it computes.
#
# Lines count from 1.
def compilation_data(run: Run, compilation: Compilation) -> Json:
    """Return a compilation: its function, outcome, time and graphs."""
    summary = run.index.summary_of.get(compilation.compile_id.key)
    return {
        "id": str(compilation.compile_id), "subject": run.subject(compilation),
        "unit": run.index.summaries.index(summary) if summary else -1, "place": run.place(compilation.place),
        "outcome": compilation.outcome,
        "again": run.index.is_recompile(compilation),
        "start": compilation.start, "seconds": compilation.seconds, "broke": bool(compilation.breaks),
        "restarts": len(compilation.restarts),
        "graphs": [run.graph_numbers[name] for name in run.index.graph_names(compilation)
                   if name in run.graph_numbers],
        "counts": dict(compilation.counts)}


def break_data(run: Run, group: list[tuple[GraphBreak, Compilation]]) -> Json:
    """Return the graph breaks of one reason: torch's words, and each place."""
    first = group[0][0]
    places = []
    for members in breaks_by_place(group):
        broken, compilation = members[0]
        where = broken.location
        if where is not None:
            run.lines[where.filename].breaks[where.line].append(broken.reason)
        resumes = dict.fromkeys(
            name for _, c in members if c.outcome == "compiled" for name in run.index.resume_names(c))
        places.append({
            "place": run.place(where), "text": where.text if where else "",
            "function": run.function_at(where) if where else "",
            "path": [[run.place(step), run.function_at(step)] for step in path_to(broken, compilation)[:-1]],
            "skips": broken.skips_function, "of": run.subject(compilation),
            "advice": [spans(text) for text in run.index.advice.lines_on(broken)],
            "resumes": [[name, branch_data(run.index.frames.get(name))] for name in resumes],
            "ids": list(dict.fromkeys(str(c.compile_id) for _, c in members)), "times": len(members)})
    return {
        "title": without_addresses(heading(first)) or "Torch gives no reason", "id": first.registry_id,
        "url": web_address(first.url),
        "explanation": without_addresses(first.explanation),
        "hints": [without_addresses(hint) for hint in run.index.advice.torchs_hints(broken for broken, _ in group)],
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
            "failures": [_failure(run, members) for members in fold(
                compilation.guard_failures, kind_of_failure).values()]})
    return {"unit": run.index.summaries.index(summary), "subject": summary.title, "rows": rows,
            "advice": [spans(text) for text in run.index.advice.on(summary.recompiles)]}


def _failure(run: Run, failures: list[GuardFailure]) -> Json:
    places = filter(None, map(run.index.line_guarded_for, failures))
    causes = {number: same[0].text for number, same in fold(places, run.place).items()}
    return {
        "texts": list(dict.fromkeys(without_addresses(failure.text) for failure in failures)),
        "entries": list(dict.fromkeys(str(failure.entry) for failure in failures if failure.entry)),
        "causes": [[place, text] for place, text in causes.items()]}


def lost_data(run: Run, members: list[Compilation]) -> Json:
    """Return compilations that gave no code; what torch says of the break that caused it is at the break."""
    first = members[0]
    failure = first.failure
    broken = break_given_up_at(first)
    account = events.graph_break(first.compile_id, failure.reason) if failure and not broken else None
    why: list[list[str]] = []
    if broken is not None:
        given_up = f" Why torch gives the function up: {why_given_up(broken)}." if broken.gave_up else ""
        why = spans(f"Why it breaks: {prose(cause(broken))}.{given_up}")
    elif account is not None:
        why = spans(prose(without_addresses(account.explanation.partition("\n")[0])))
    changes = [run.index.changes(each)[:1] for each in members] if first.outcome == "limit" else []
    hints = [prose(without_addresses(hint)) for hint in in_order(account.hints)] if account else []
    return {
        "outcome": first.outcome, "subject": run.subject(first), "place": run.place(first.place),
        "ids": [str(c.compile_id) for c in members], "broke": broken is not None,
        "text": spans(why_plain(run.index, first)) if first.outcome != "unknown" else [], "why": why,
        "at": run.place(failure.location) if failure and failure.location and not broken else -1,
        "rows": [spans(row(each)) for each in changes if each][:3],
        "hints": [spans(hint) for hint in dict.fromkeys([*run.index.advice.on_lost(first), *hints])]}


def symbols_data(run: Run) -> list[Json]:
    """Return the used symbols, each decision once."""
    result: dict[tuple[object, ...], Json] = {}
    for number, summary in enumerate(run.index.summaries):
        for compilation in summary.compilations:
            for symbol in run.index.decisions(compilation):
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


def summary_data(run: Run) -> Json:
    """Return the totals of the run."""
    totals = Totals.of(run.index)
    return {
        "functions": totals.functions, "versions": totals.versions or len(run.capture.entries),
        "graphs": totals.graphs, "seconds": totals.seconds, "breaks": totals.breaks, "places": totals.places,
        "recompiles": totals.recompiles, "saved": is_from_file(run.capture),
        **{outcome: totals.outcomes.get(outcome, 0) for outcome in ("limit", "failed", "skipped", "unknown")}}


def run_data(
    capture: Capture, files: Sequence[SourceFile] | None = None,
    provenances: Mapping[str, Provenance] | None = None, names: Mapping[str, str] | None = None,
) -> Json:
    """Return the data of one run.

    Args:
        files: the user's files; ``None``: what the records have of them
            (:func:`depyf.provenance.sources.sources_of_capture`).
        names: names of files, by path, where that is not a part of the path (``In[3]``).
    """
    texts = sources.sources_of_capture(capture) if files is None else files
    run = Run(capture, texts, names or {})
    for file in run.files:
        run.file(file.path)
    # (Numbers are given in this order.)
    graphs = [graph_data(run, graph, (provenances or {}).get(graph.name)) for graph in capture.graphs]
    guards: list[Json] = []
    summaries = [function_data(run, summary, guards) for summary in run.index.summaries]
    breaks = [break_data(run, group) for group in breaks_by_reason(capture.compilations)]
    recompiles = [recompile_data(run, summary) for summary in run.index.summaries if summary.recompiles]
    lost = [lost_data(run, members) for members in not_compiled(capture.compilations)]
    compilations = [compilation_data(run, compilation) for compilation in capture.compilations]
    symbols = symbols_data(run)
    first, _ = first_changes(run.index, lambda place: code(run.index.short_place(place)))
    caches = Counter((lookup.cache, lookup.outcome, without_addresses(lookup.reason))
                     for compilation in capture.compilations for lookup in compilation.caches)
    _traced(run)
    short = run.short_names()
    documents = {}
    for file in run.files:
        text = plain_lines(file.text)
        documents[file.path] = run.document(
            "source", short[file.path], short[file.path], text, path=file.path,
            file=run.file_numbers[file.path], status=run.lines[file.path].statuses(text))
    return {
        "environment": dict(capture.environment), "notes": list(capture.notes), "summary": summary_data(run),
        "verdict": [spans(sentence) for sentence in verdict(run.index)], "first": list(map(spans, first)),
        "backends": sorted({graph.backend for graph in capture.graphs if graph.backend}),
        "files": [{"path": name, "short": short[name], "doc": documents.get(name, -1)} for name in run.file_numbers],
        "places": [number for place in run.places for number in (run.file_numbers[place[0]], place[1])],
        "docs": run.documents, "graphs": graphs, "units": summaries, "breaks": breaks, "recompiles": recompiles,
        "lost": lost, "compilations": compilations, "guards": guards, "symbols": symbols,
        "phases": list(map(list, seconds_by_phase(capture.compilations).items())),
        "caches": [[*key, times] for key, times in caches.items()]}


def _traced(run: Run) -> None:
    for compilation in run.capture.compilations:
        # (Of what was given up nothing is left: its function runs in plain Python, and what that calls by itself.)
        for traced in compilation.traced if compilation.outcome in ("compiled", "unknown") else ():
            run.lines[traced.filename].traced.update(traced.lines)
        if compilation.outcome in LOST and compilation.location is not None:
            run.lines[compilation.location.filename].python[compilation.location.line] = compilation.outcome
    for frame in run.capture.frames:
        if frame.location is not None and frame.entries:
            for place in (frame.location, *frame.wrappers):
                run.lines[place.filename].compiled.add(place.line)
