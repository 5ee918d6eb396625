"""The data that the page shows: a capture as plain data (JSON), every text once, every link by number.

Terms, also of the page's script:

* a *document* is a text that a pane can show: a user's file, guards, transformed code, a stage of a graph, a generated
  module. Its ``key`` is stable from run to run and is used in links;
* a *place* is a user's line: ``(file, line)``. It has one colour in every document;
* ``nodes`` of a stage: for each node its name, line of the text, place, captured node (index in the captured stage) and
  call of a module; -1 where there is none;
* ``calls`` of a generated module: for each call of a kernel its lines and the nodes of ``stage`` that it computes.

Lines count from 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...provenance import sources
from ...provenance.graph_provenance import Provenance
from ...records.model import Capture, SourceFile
from ..causes import breaks_by_reason, not_compiled
from ..findings import seconds_by_phase
from ..index.overview import first_changes
from ..markdown import code, spans
from ..verdict import verdict
from .events import (
    break_data,
    caches_data,
    compilation_data,
    lost_data,
    recompile_data,
    summary_data,
    symbols_data,
)
from .functions import function_data
from .graphs import graph_data
from .run import Json, Run, plain_lines

FORMAT = 1


def run_data(
    capture: Capture, files: Sequence[SourceFile] | None = None,
    provenances: Mapping[str, Provenance] | None = None, names: Mapping[str, str] | None = None,
) -> Json:
    """Return the data of one run.

    Args:
        capture: its records.
        files: the user's files; ``None``: what the records have of them (:func:`depyf.provenance.sources.of_capture`).
        provenances: those of graphs that are known already, by name of the graph.
        names: names of files, by path, where that is not a part of the path (``In[3]``).
    """
    texts = sources.of_capture(capture) if files is None else files
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
    first, _ = first_changes(run.index, run.advice, lambda place: code(run.index.short_place(place)))
    _traced(run)
    documents = _sources(run)
    short = run.short_names()
    return {
        "environment": dict(capture.environment), "notes": list(capture.notes), "summary": summary_data(run),
        "verdict": [spans(sentence) for sentence in verdict(run.index)], "first": list(map(spans, first)),
        "backends": sorted({graph.backend for graph in capture.graphs if graph.backend}),
        "files": [{"path": name, "short": short[name], "doc": documents.get(name, -1)} for name in run.file_names],
        "places": [number for place in run.places for number in (run.file_numbers[place[0]], place[1])],
        "docs": run.documents, "graphs": graphs, "units": summaries, "breaks": breaks, "recompiles": recompiles,
        "lost": lost, "compilations": compilations, "guards": guards, "symbols": symbols,
        "phases": list(map(list, seconds_by_phase(capture.compilations).items())), "caches": caches_data(run)}


def _traced(run: Run) -> None:
    for compilation in run.capture.compilations:
        # (Of what was given up nothing is left: its function runs in plain Python, and what that calls by itself.)
        for traced in compilation.traced if compilation.outcome in ("compiled", "unknown") else ():
            run.statuses.traced(traced.filename, traced.lines)
        if compilation.outcome in ("skipped", "failed", "limit") and compilation.location is not None:
            run.statuses.in_python(compilation.location, compilation.outcome)
    for function in run.capture.functions:
        for frame in function.frames:
            if frame.location is not None and frame.entries:
                for place in (frame.location, *frame.wrappers):
                    run.statuses.compiled(place)


def _sources(run: Run) -> dict[str, int]:
    documents = {}
    short = run.short_names()
    for file in run.files:
        text = plain_lines(file.text)
        documents[file.path] = run.document(
            "source", short[file.path], short[file.path], text, path=file.path,
            file=run.file_numbers[file.path], status=run.statuses.of(file.path, text))
    return documents
