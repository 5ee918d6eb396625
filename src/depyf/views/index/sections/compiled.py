"""The section on what was compiled: function by function, and compilation by compilation with its files."""

from __future__ import annotations

from collections.abc import Sequence

from ....records.model import Compilation
from ....records.stages import direction
from ....torch_text.resumes import resumed_function
from ...causes import cause
from ...markdown import code, link, prose, some, table
from ...story import Unit
from ...words import seconds, stage_name
from .told import ROWS, Told, left_out


def functions(story: Told) -> list[str]:
    # (The breaks of functions that were not compiled count, too: the column has the number of all breaks.)
    units = [unit for unit in story.units if unit.function or any(c.breaks for c in unit.compilations)]
    if len(units) < 2 and all(len(unit.compilations) < 2 and not unit.wrappers for unit in units):
        return []
    rows = []
    for unit in units[:ROWS]:
        graphs = {name for c in unit.done for name in story.graph_names(c)}
        rows.append((
            link(code(unit.title), unit.file), story.place(unit.location),
            _versions(unit), str(len(graphs)),
            str(sum(len(c.breaks) for c in unit.compilations)), str(len(unit.recompiles)),
            seconds(sum(c.seconds for c in unit.compilations))))
    lines = ["## Functions", "", *table(
        ("function", "where", "versions", "graphs", "breaks", "recompiles", "time"), rows)]
    lines += left_out(len(units) - ROWS, "function")
    wrapped = [unit for unit in units[:ROWS] if unit.wrappers]
    if wrapped:
        lines.append("")
    for unit in wrapped:
        name = unit.function.frames[0].title if unit.function else unit.title
        lines.append(f"* {code(name)} is {story.called_through(unit.wrappers)}")
    return lines


def _versions(unit: Unit) -> str:
    """``3 + 6 after breaks``: those of the function itself, and of the resume functions that continue it."""
    if not unit.compilations:
        return "?"
    resumed = sum(resumed_function(c.function) is not None for c in unit.done)
    own = len(unit.done) - resumed
    return f"{own} + {resumed} of resume functions" if resumed else str(own)


def timeline(story: Told) -> list[str]:
    """Each compilation with its files; the middle of a long series of one frame is left out."""
    compilations = story.capture.compilations
    if not compilations:
        return []
    of_frame: dict[tuple[int, int], list[Compilation]] = {}
    for compilation in compilations:
        of_frame.setdefault(compilation.compile_id.frame_key, []).append(compilation)
    rows, shown = [], 0
    places: dict[tuple[int, int], int] = {}  # of the next one in the series of its frame
    for compilation in compilations:
        frame = compilation.compile_id.frame_key
        series, at = of_frame[frame], places.get(frame, 0)
        places[frame] = at + 1
        if len(series) > 6 and 3 <= at < len(series) - 1:
            if at == 3:
                rest = series[3:-1]
                rows.append((f"{code(str(rest[0].compile_id))} to {code(str(rest[-1].compile_id))}",
                             story.subject(compilation), f"compiled {len(rest)} more times", "",
                             _guards_links(story, rest), seconds(sum(c.seconds for c in rest))))
            continue
        shown += 1
        if shown > ROWS:
            continue
        rows.append((code(str(compilation.compile_id)), story.subject(compilation), _came_of_it(story, compilation),
                     _graph_links(story, compilation), _code_link(story, compilation), seconds(compilation.seconds)))
    lines = ["## In order", "", *table(("compilation", "of", "what came of it", "graph", "code", "time"), rows[:ROWS])]
    return lines + left_out(len(rows) + max(0, shown - ROWS) - ROWS, "compilation")


def _guards_links(story: Told, compilations: Sequence[Compilation]) -> str:
    """The guards of versions that are told together, each by its number."""
    found = [link(code(str(c.compile_id)), entry.guards_file) for c in compilations
             if (entry := story.entry(c)) is not None and entry.guards_file]
    return f"guards {some(found, 6)}" if found else ""


def _came_of_it(story: Told, compilation: Compilation) -> str:
    if compilation.outcome == "limit":
        return "recompile limit: plain Python"
    if compilation.outcome != "compiled":
        return {"skipped": "skipped: plain Python", "unknown": "not finished"}.get(
            compilation.outcome, compilation.outcome)
    words = ["recompiled" if compilation.guard_failures or compilation.compile_id.recompile else "compiled"]
    if compilation.breaks:
        last = compilation.breaks[-1]
        where = f"at {story.place(last.location)}" if last.location else f"({prose(cause(last))})"
        words.append(f"up to the graph break {where}")
    return " ".join(words)


def _graph_links(story: Told, compilation: Compilation) -> str:
    """The graph, its outline and its other stages, each of which has a file."""
    found = []
    for name in story.graph_names(compilation):
        graph = story.graphs.get(name)
        if graph is None:
            continue
        for stage in graph.stages:
            if stage.internal or not stage.file:
                continue
            outline = f" ({link('outline', stage.outline)})" if stage.outline else ""
            found.append(link(stage_name(stage), stage.file) + outline)
        directions = {f"{stage.stage}.{stage.index}": direction(stage) for stage in graph.stages}
        for kernel in graph.kernels:
            if kernel.file:
                outline = f" ({link('outline', kernel.outline)})" if kernel.outline else ""
                what = directions.get(kernel.stage) or str(kernel.index)
                found.append(link(f"kernels {what}" if what.isalpha() else f"kernel {what}", kernel.file) + outline)
    return some(found, 12) if found else ("none" if compilation.outcome == "compiled" else "")


def _code_link(story: Told, compilation: Compilation) -> str:
    found = story.entries.get(compilation.compile_id.key)
    if found is None:
        return ""
    transformed = found[1].transformed
    if not transformed.known:
        return "not in the log"
    doubt = "" if transformed.source.fidelity in ("exact", "equivalent") else f" ({transformed.source.fidelity})"
    guards = f", {link('guards', found[1].guards_file)}" if found[1].guards_file else ""
    return link("transformed", transformed.file) + doubt + guards
