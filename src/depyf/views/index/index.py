"""``index.md``: the tables of what was compiled, with links to its files, and the whole.

A pure function of a :class:`~depyf.records.model.Capture`, so that it can be made again from ``records.jsonl``. What
repeats is said once with a count: the same break at the same line, the same reason for a recompile.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...model.graph_text import read_graph
from ...records.model import CacheEntry, Capture, Compilation, CompiledGraph, SourceLocation
from ...records.naming import direction
from ...torch_text.global_names import resumed_function
from ..causes import cause, path_to
from ..collectives import collectives
from ..dump.folder import INDEX
from ..dump.guards.sizes import symbol_names
from ..formatting import OUTCOMES, WITHOUT_CODE, by_call, is_from_file, seconds, stage_name, without_frame
from ..function_summary import FunctionSummary, arguments_section, functions_by_setting, is_among
from ..markdown import code, count, link, prose, some, table
from ..verdict import Totals
from . import IN_ORDER, NOTES
from .breaks import breaks, not_compiled
from .overview import LEAST, ROWS, SectionContext, context_of, cost, first, glossary, head, left_out, start
from .recompiles import recompiles, shapes

FILE = INDEX
NOTES_SHOWN = 6  #: How many notes are shown.


def index(capture: Capture, notes_file: str = "", page: str = "", later: bool = False) -> str:
    """Return the text of ``index.md``, with links to its files; ``later``: the page is made on request."""
    run = context_of(capture)
    sections = [
        [*head(run), *start(run, page, later)], first(run), functions(run), timeline(run), pieces(run),
        by_calls(run), collectives(capture), breaks(run), recompiles(run), not_compiled(run), shapes(run), cost(run),
        _notes(run, notes_file), glossary(run)]
    return "\n\n".join("\n".join(lines) for lines in sections if lines) + "\n"


def _notes(run: SectionContext, notes_file: str) -> list[str]:
    notes = run.capture.notes
    lines: list[str] = []
    if notes:
        lines += [f"## {NOTES}", "", *(f"* {prose(note, 300)}" for note in notes[:NOTES_SHOWN])]
        if len(notes) > NOTES_SHOWN:
            rest = count(len(notes) - NOTES_SHOWN, "note")
            lines.append(f"* ... and {rest} more in {link(code(notes_file), notes_file)}" if notes_file else
                         f"* ... and {rest} more")
    files: dict[str, str] = {}
    for path in run.named:
        short = run.short.get(path, path)
        if short != path:
            files[short] = max(path, files.get(short, ""), key=len)  # (torch cuts some)
    if files:
        lines += [""] * bool(lines) + ["Places: " + some(
            [f"{code(short)} is {code(path)}" for short, path in files.items()], 12) + "."]
    return lines


def functions(run: SectionContext) -> list[str]:
    """Return the table of functions: versions, graphs, breaks, times, and the backends where these differ."""
    # (The breaks of functions that were not compiled count, too: the column has the number of all breaks.)
    if is_from_file(run.capture):  # (which says nothing of breaks, reasons and times)
        return []
    summaries = [each for each in run.summaries if each.function or any(c.breaks for c in each.compilations)]
    # (Options of Inductor that no ``options=`` sets, for each graph that was looked up in its cache.)
    options = functions_by_setting(summaries, lambda one: [
        tuple(sorted(each for each in lookup.options if not is_among(each, one.arguments)))
        for lookup in one.caches if lookup.cache == "fx_graph" and one.outcome == "compiled"])
    arguments = arguments_section(run.summaries)
    if not options and not arguments and len(summaries) < 2 and all(
            len(summary.compilations) < 2 and not summary.wrappers for summary in summaries):
        return []
    rows = []
    differ = len({graph.backend for graph in run.graphs.values() if graph.backend}) > 1
    for summary in summaries[:ROWS]:
        graphs, totals = run.graphs_of([summary]), Totals.of(run, [summary])
        backends = sorted({graph.backend for name in graphs if (graph := run.graphs.get(name)) and graph.backend})
        rows.append((
            link(code(summary.title), summary.file), run.place(summary.location), *[", ".join(backends)] * differ,
            _versions(summary), str(totals.graphs), str(totals.breaks), str(totals.recompiles),
            seconds(totals.seconds)))
    lines = ["## Functions", "", *table(
        ("function", "where", *["backend"] * differ, "versions", "graphs", "breaks", "recompiles", "time"), rows)]
    lines += left_out(len(summaries) - ROWS, "function")
    wrapped = [summary for summary in summaries[:ROWS] if summary.wrappers]
    if wrapped:
        lines.append("")
    for summary in wrapped:
        name = summary.function.frames[0].title if summary.function else summary.title
        lines.append(f"* {code(name)} is {run.called_through(summary.wrappers)}")
    if arguments:
        lines += ["", *arguments]
    if options:
        head = "Options of Inductor that were not at their default, by a mode or by `torch._inductor.config`:"
        lines += ["", head, "", *(f"* {some(of, 3)}: {', '.join(map(code, shown))}" for shown, of in options.items())]
    return lines


def _versions(summary: FunctionSummary) -> str:
    """Return ``3 + 6 after breaks``: those of the function itself, and of the resume functions that continue it."""
    if not summary.compilations:
        return "?"
    resumed = sum(resumed_function(c.function) is not None for c in summary.done)
    own = len(summary.done) - resumed
    return f"{own} + {resumed} of resume functions" if resumed else str(own)


def timeline(run: SectionContext) -> list[str]:
    """Return the table of compilations, each with its files."""
    compilations = run.capture.compilations
    if is_from_file(run.capture):  # (which says nothing of how versions were compiled)
        saved = [(
            link(code(frame.name if resumed_function(frame.code_name) else frame.title or frame.name), function.file),
            code(str(entry.compile_id)),
            _links([run.graphs[name] for name in entry.graph_names if name in run.graphs]) or "not in the file",
            _code_of(entry))
            for function in run.capture.functions for frame in function.frames for entry in frame.entries]
        return ["## Functions", "", *table(("function", "version", "graph", "code"), saved[:ROWS]),
                *left_out(len(saved) - ROWS, "version")] if saved else []
    if not compilations:
        return []
    rows = [(code(str(each.compile_id)), run.subject(each), _came_of_it(run, each), _graph_links(run, each),
             _code_of(entry) if (entry := run.entry(each)) is not None else "",
             "" if each.outcome == "open" else seconds(each.seconds))
            for each in compilations[:ROWS]]
    heads = "compilation", "of", "what came of it", "graph", "code", "time"
    return [f"## {IN_ORDER}", "", *table(heads, rows), *left_out(len(compilations) - ROWS, "compilation")]


def _came_of_it(run: SectionContext, compilation: Compilation) -> str:
    if compilation.outcome == "limit":
        return "recompile limit: plain Python"
    if compilation.outcome != "compiled":
        return {**OUTCOMES, "skipped": "skipped: plain Python"}.get(compilation.outcome, prose(compilation.outcome))
    words = ["recompiled" if run.is_recompile(compilation) else "compiled"]
    if compilation.breaks:
        last = compilation.breaks[-1]
        where = f"at {run.place(last.location)}" if last.location else f"({prose(cause(last))})"
        path = path_to(last, compilation)
        begins, shown = "", compilation.place
        if len(path) > 1:  # (where a function is called through a wrapper in another file, a line of that)
            is_here = shown is None or shown.filename == path[0].filename
            begins = f"{f'line {path[0].line}' if is_here else run.place(path[0])}, which leads to "
        words.append(f"up to {begins}the graph break {where}")
    return " ".join(words)


def _graph_links(run: SectionContext, compilation: Compilation) -> str:
    names = run.graph_names(compilation) or [  # (no code calls them)
        name for name, graph in run.graphs.items()
        if compilation.outcome in WITHOUT_CODE and graph.compile_id.key == compilation.compile_id.key]
    links = _links([graph for name in names if (graph := run.graphs.get(name)) is not None])
    split = sum(len(run.pieces.get(name, ())) for name in names)
    if split:
        links += f", [split into {count(split, 'piece')}](#pieces)"
    return links or ("none" if compilation.outcome == "compiled" else "")


def pieces(run: SectionContext) -> list[str]:
    """Return the pieces of graphs that their backends split: what each is of, and its files."""
    rows = [row for name, of_graph in run.pieces.items() for each in of_graph for row in _piece(run, name, each)]
    if not rows:
        return []
    several = len(run.pieces) > 1
    heads = ("graph", "piece", "modules", "lines", "files")
    lines = ["## Pieces", "", "The backend split " + (
        "these graphs" if several else f"the graph {code(next(iter(run.pieces)))}")
        + ": each piece is compiled alone, in this order." + (
            " Later calls compiled pieces again, by a direct call of a compiler." if run.again else ""), ""]
    lines += table(heads[not several :], [row[not several :] for row in rows[:ROWS]])
    return lines + left_out(len(rows) - ROWS, "piece")


def _piece(run: SectionContext, whole: str, piece: CompiledGraph) -> Iterator[tuple[str, ...]]:
    """Yield the row of a piece, and those of the graphs that are that piece again."""
    name = code(piece.name.removeprefix(f"{whole}."))
    # (The first and the last module that is called in it: ``layers.0.mlp to layers.1.norm``.)
    paths = [code(call.path) for stage in piece.stages[:1] for call in stage.modules if call.nodes and call.path]
    modules = " to ".join(dict.fromkeys([*paths[:1], *paths[-1:]]))
    yield code(whole), name, modules, _user_lines(run, piece), _links([piece])
    names = {symbol: expression for expression, symbol in symbol_names(
        run.capture.by_id.get(piece.compile_id.key)).items()}
    for again in run.again.get(piece.name, ()):
        sizes = some([f"{code(names.get(symbol, symbol))} = {size}" for symbol, size in again.sizes.items()], _VALUES)
        yield code(whole), f"{name} again" + (f", for {sizes}" if sizes else ""), "", "", _links([again.graph])


def _user_lines(run: SectionContext, piece: CompiledGraph) -> str:
    """Return the user's lines that a piece is of: ``model.py:12 to 19``."""
    by_file: dict[str, list[int]] = {}
    for node in read_graph(piece.stages[0].text).nodes if piece.stages else ():
        if node.location is not None:
            by_file.setdefault(node.location.filename, []).append(node.location.line)
    shown = []
    for filename, lines in by_file.items():
        place = run.place(SourceLocation(filename, min(lines)))
        shown.append(place if min(lines) == max(lines) else f"{place} to {max(lines)}")
    return some(shown, 3)


def by_calls(run: SectionContext) -> list[str]:
    """Return the graphs that no frame of torch's is of, each with the call that it was compiled by and its files."""
    again = {each.graph.name for pieces in run.again.values() for each in pieces}
    graphs = [each for each in without_frame(run.graphs.values())
              if each.name not in again and (each.issues or _links([each]))]
    if not graphs:
        return []
    has_times = any(graph.phases for graph in graphs)
    rows = [(code(graph.name), f"{text[:1].upper()}{text[1:]}", _links([graph]), *[", ".join(
        f"{prose(each.name)} {seconds(each.seconds)}" for each in graph.phases if each.seconds >= LEAST)][:has_times])
            for graph in graphs[:ROWS] for text in by_call(graph, run.place)]
    heading = ["## In the file"] if is_from_file(run.capture) else [
        "## Without a function", "",
        "These belong to no compiled function: a compiler or `torch.export` was called directly, or a graph was shown "
        "by a thread that compiled nothing."]
    return [*heading, "",
            *table(("files", "by what", "graph", *["time"][:has_times]), rows), *left_out(len(graphs) - ROWS, "graph"),
            *(line for graph in graphs[:ROWS] for line in _issues(run, graph))]


def _issues(run: SectionContext, graph: CompiledGraph) -> list[str]:
    """Return what ``torch.export`` could not know and decided, and why it failed, as lists; empty for nothing."""
    decided: list[str] = []
    failed: list[str] = []
    for each in graph.issues[:ROWS]:
        place = f"{run.place(each.location)}, {code(each.location.text)}: " if each.location is not None else ""
        known = some([f"{code(name)} is {code(value)}" for name, value in each.values] + [
            f"{code(step.result)} was computed at {run.place(step.location)}" for step in each.steps
            if step.location is not None and step.location != each.location], _VALUES)
        known = f"torch suggests: {known}" if known and each.kind == "failed" else known
        what = _ISSUES.get(each.kind, "{subject}").format(subject=code(each.subject), outcome=code(each.outcome))
        (failed if each.kind == "failed" else decided).append(f"* {place}{what}" + (f" ({known})" if known else ""))
    decided += left_out(len(graph.issues) - ROWS, "decision")
    return [*(["", f"What was decided for {code(graph.name)} while it was exported:", "", *decided] if decided else []),
            *(["", f"Why {code(graph.name)} was not exported:", "", *failed] if failed else [])]


_VALUES = 4  #: Values that are shown with a decision.
#: What an export decided, by the kind of issue.
_ISSUES = {
    "fixed": "{subject} can only be {outcome}",
    "guard": "{subject} was evaluated; what is exported is for sizes with this outcome alone",
    "data": "{subject} depends on data; it was taken to be {outcome}, as in this run, and the exported program checks "
            "that",
    "failed": "{subject}: {outcome}",
    "no fake kernel": "the operator {subject} has no fake kernel, so what it gives was taken from the real one",
    "wrong fake kernel": "the fake kernel of {subject} does not give what the real one gives: {outcome}",
}


def _links(graphs: Sequence[CompiledGraph]) -> str:
    links = []
    for graph in graphs:
        for stage in graph.stages:
            if stage.internal or not stage.file:
                continue
            outline = f" ({link('outline', stage.outline)})" if stage.outline else ""
            links.append(link(stage_name(stage), stage.file) + outline)
        directions = {f"{stage.stage}.{stage.index}": direction(stage) for stage in graph.stages}
        for kernel in graph.kernels:
            if kernel.file:
                outline = f" ({link('outline', kernel.outline)})" if kernel.outline else ""
                what = directions.get(kernel.stage) or str(kernel.index)
                links.append(link(f"kernels {what}" if what.isalpha() else f"kernel {what}", kernel.file) + outline)
    return some(links, 12) if links else ""


def _code_of(entry: CacheEntry) -> str:
    transformed = entry.transformed
    if not transformed.known:
        return "not in the log"
    doubt = "" if transformed.source.fidelity in ("exact", "equivalent") else f" ({prose(transformed.source.fidelity)})"
    guards = f", {link('guards', entry.guards_file)}" if entry.guards_file else ""
    return link("transformed", transformed.file) + doubt + guards
