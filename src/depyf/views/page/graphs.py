"""Graphs and kernels as data of the page."""

from __future__ import annotations

from collections.abc import Sequence

from ...provenance.graph_provenance import Provenance, StageNodes
from ...records.model import CompiledGraph, GraphStage, SourceLocation
from ...records.naming import ADJECTIVES, direction, title
from ..dump import outline
from ..dump.graph_file import stage_view
from ..formatting import what_called
from ..markdown import spans
from .run import Json, Run, plain_lines


def graph_data(run: Run, graph: CompiledGraph, known: Provenance | None = None) -> Json:
    """Return a graph with its stages and kernels; ``known`` is its provenance, where that exists already."""
    provenance = known if known is not None else Provenance(graph)
    number = run.graph_numbers[graph.name]
    captured: dict[str, int] = {}
    if provenance.captured is not None:
        captured = {name: index for index, (name, _) in enumerate(provenance.captured.nodes())}
    indices: dict[str, dict[str, int]] = {}
    stages: dict[str, int] = {}
    for stage in provenance.stages:
        if not stage.record.internal:
            stages[stage.key] = _stage(run, number, graph, provenance, stage, captured)
            indices[stage.key] = {name: index for index, (name, _) in enumerate(stage.nodes())}
    directions = {stage.key: direction_of(stage.record) for stage in provenance.stages}
    kernels = []
    for kernel in provenance.kernels:
        known_nodes = indices.get(kernel.stage, {})
        direction = directions.get(kernel.stage, "")
        shown = f"{direction} kernels" if direction else f"kernels {kernel.index}" if kernel.index else "kernels"
        text = plain_lines(kernel.text)
        lines = text.split("\n")
        calls = [[call.name, call.kind, call.line, _end(lines, call.line), call.call_line,
                  [known_nodes[name] for name in call.nodes if name in known_nodes], int(call.inferred)]
                 for call in kernel.calls]
        kernels.append(run.document(
            "kernel", f"{graph.name}.kernel_{kernel.index}", f"{shown} of {graph.name}", text, shown=shown,
            direction=direction, graph=number, stage=stages.get(kernel.stage, -1), calls=calls, file=kernel.file))
    return {"name": graph.name, "id": "" if graph.call else str(graph.compile_id), "backend": graph.backend,
            "from": [spans(what_called(graph)), run.place(graph.call)] if graph.call is not None else None,
            "stages": list(stages.values()), "kernels": kernels,
            "modules": [[call.path, call.cls, call.outer] for call in provenance.modules]}


def _stage(
    run: Run, number: int, graph: CompiledGraph, provenance: Provenance, stage: StageNodes, captured: dict[str, int]
) -> int:
    record = stage.record
    view = stage_view(record, graph.inputs)
    names: list[str] = []
    flat: list[int] = []
    places: dict[int, int] = {id(None): -1}  # by the identity of the location, which nodes share
    computed: dict[int, SourceLocation | None] = {}
    for name, node in stage.nodes():
        origin, is_call = stage.origins[name], node.is_call
        key = id(origin.location)
        place = places.get(key)
        if place is None:
            place = places[key] = run.place(origin.location)
        if is_call:
            computed[key] = origin.location
        names.append(view.names.get(name, name))
        flat += (view.line(node.line), place, captured.get(origin.captured, -1), origin.module if is_call else -1,
                 int(is_call))
    for key, location in computed.items():
        if location is not None and places[key] >= 0:
            run.statuses.in_graph(location, number)
    shown = title(record)
    lines = outline.outline_lines(provenance, stage, view.line)
    return run.document(
        "graph", f"{graph.name}.{record.stage}.{record.index}", f"{shown} of {graph.name}", view.text,
        stage=shown, direction=direction_of(record), graph=number, names=names, nodes=flat, file=record.file,
        captured=stage is provenance.captured,
        outline=[[line.depth, line.text, line.first] for line in lines], inputs=list(outline.counts(stage.graph)))


def direction_of(stage: GraphStage) -> str:
    """Return ``"forward"`` or ``"backward"`` of a stage; ``""`` of the captured and joint graphs."""
    adjective = ADJECTIVES.get(stage.stage, "")
    return adjective if adjective in ("forward", "backward") else direction(stage)


def _end(lines: Sequence[str], first: int) -> int:
    """Return the last line of a kernel's definition, whose text is a string of many lines."""
    if not 0 < first <= len(lines):
        return first
    for quotes in ("'''", '"""'):
        if lines[first - 1].count(quotes) == 1:
            return next((at for at in range(first + 1, len(lines) + 1) if quotes in lines[at - 1]), first)
    return first
