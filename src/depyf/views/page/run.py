"""Parts of the page's data: status of lines; what has a number (documents, files, places); functions, graphs; ranks."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...advice.source import blocks
from ...model.reading import typed
from ...provenance import sources
from ...provenance.graph_provenance import Provenance, StageNodes
from ...records import model
from ...records.model import Compilation, CompiledGraph, GuardFailure, SourceFile, SourceLocation
from ...records.naming import ADJECTIVES, direction, title
from ...torch_text.global_names import plain_name, resumed_function
from ...torch_text.guard_failures import is_of_tensor
from ...torch_text.parsed import parsed_file
from ...torch_text.run_ids import without_addresses
from ...torch_text.user_expressions import path_steps
from .. import ranks as index
from ..changes import in_words as shape_in_words
from ..dump import outline
from ..dump.directory import stage_view
from ..dump.guards.functions import guard_groups, guard_lines
from ..dump.guards.versions import Version, nearest, versions
from ..formatting import NOT_LOST, OUTCOMES, on_branch, short_names, what_called
from ..function_summary import FunctionSummary
from ..index.overview import context_of
from ..markdown import prose, spans
from ..ranks import RankClass
from ..user_source import definitions

#: What can be said of a line, the weightiest first; docs/page.md says what each means.
BREAK, GRAPH, PYTHON, FOLDED, UNREACHED, UNKNOWN = "break", "graph", "python", "folded", "unreached", "unknown"
_WEIGHT = {status: weight for weight, status in enumerate((BREAK, GRAPH, PYTHON, FOLDED, UNREACHED, UNKNOWN))}


@dataclass
class FileLines:
    """What is known of the lines of a file, and the status of each that follows."""

    graphs: defaultdict[int, set[int]] = field(default_factory=lambda: defaultdict(set))  # in which a line is
    breaks: defaultdict[int, list[str]] = field(default_factory=lambda: defaultdict(list))  # reasons, by line
    traced: set[int] = field(default_factory=set)
    python: dict[int, str] = field(default_factory=dict)  # first line of a function that torch gave up -> why
    compiled: set[int] = field(default_factory=set)  # first lines of functions

    def statuses(self, text: str) -> list[list[Any]]:
        """Return ``[line, status, graphs, why]`` for each line with a status, in order.

        Args:
            text: of the file. Of one that this Python cannot read only what torch said of single lines is known.
        """
        rows: dict[int, list[Any]] = {}

        def say(line: int, status: str, why: str = "") -> None:
            if line not in rows or _WEIGHT[status] < _WEIGHT[rows[line][1]]:
                rows[line] = [line, status, sorted(self.graphs.get(line, ())), why]

        for line, reasons in self.breaks.items():
            say(line, BREAK, reasons[0])
        for line in self.graphs:
            say(line, GRAPH)
        functions = [(range(each.first, each.node.body[0].lineno), [
            range(first, end + 1) for first, end in _statements(each.node.body)])
            for each in definitions(parsed_file(text))]
        heads = {line for head, _ in functions for line in head}
        known = self.graphs.keys() | self.traced | self.breaks.keys()
        for head, statements in functions:
            why = next((self.python[line] for line in head if line in self.python), "")
            compiled = not self.compiled.isdisjoint(head)
            lines = {line for statement in statements for line in statement}
            for statement in statements:
                if not known.isdisjoint(statement):
                    continue
                if why and not compiled:
                    say(statement[0], PYTHON, why)
                elif lines & self.traced:
                    say(statement[0], UNREACHED)
                elif compiled or lines & self.graphs.keys():  # (nothing says which lines were traced)
                    say(statement[0], UNKNOWN)
        for line in self.traced - heads:
            say(line, FOLDED)
        for statement in (each for _, statements in functions for each in statements):
            if own := [rows[line] for line in statement if line in rows]:
                best = min(own, key=lambda item: _WEIGHT[item[1]])
                for line in statement:
                    rows.setdefault(line, [line, *best[1:]])
        return [rows[line] for line in sorted(rows) if 0 < line <= text.count("\n") + 1]


def _statements(body: list[ast.stmt]) -> Iterator[tuple[int, int]]:
    pending = list(reversed(body))
    while pending:
        node = pending.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue  # (what is in it runs when it is called)
        if isinstance(node, (ast.Pass, ast.Global, ast.Nonlocal)) or (
                isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            continue  # leaves no code
        inner = [each for block in blocks(node) for each in block]
        if isinstance(node, ast.Try) or type(node).__name__ == "TryStar":
            pending += reversed(inner)
            continue  # `try:` itself does nothing
        end = node.end_lineno or node.lineno
        if inner:
            head = [value for name in ("test", "iter", "subject") if (value := getattr(node, name, None)) is not None]
            head += [item.context_expr for item in getattr(node, "items", ())]
            end = head[-1].end_lineno if head else max(node.lineno, min(item.lineno for item in inner) - 1)
        yield node.lineno, end
        pending += reversed(inner)


# --- Numbers for documents, files and lines ----------------------------------------------------------
Json = dict[str, Any]


class Run:
    """A run while its data is made."""

    def __init__(self, capture: model.Capture, files: Sequence[SourceFile], names: Mapping[str, str]) -> None:
        self.capture = capture
        self.index = context_of(capture)  # the records with their relations
        self.files = files
        self.names = names
        self.documents: list[Json] = []  # texts that a pane can show, each once
        self.keys: set[str] = set()
        self.places: dict[tuple[str, int], int] = {}  # the user's lines, `(file, line)` -> number
        self.file_numbers: dict[str, int] = {}  # by path, in order
        self.graph_numbers = {graph.name: number for number, graph in enumerate(capture.graphs)}  # by name of the graph
        self.lines: defaultdict[str, FileLines] = defaultdict(FileLines)  # by the paths of the records
        self.whole = _whole_paths(capture, files)

    def file(self, name: str) -> int:
        """Return the number of a file, a new one where it has none."""
        return self.file_numbers.setdefault(self.whole.get(name, name), len(self.file_numbers))

    def short_names(self) -> dict[str, str]:
        """Return the names of files, by path."""
        return {path: self.names.get(path, short) for path, short in short_names(self.file_numbers).items()}

    def place(self, location: SourceLocation | None) -> int:
        """Return the number of a user's line; -1 for none."""
        if location is None or location.line <= 0:
            return -1
        self.file(location.filename)
        name = self.whole.get(location.filename, location.filename)
        return self.places.setdefault((name, location.line), len(self.places))

    def document(self, kind: str, key: str, title: str, text: str, **more: Any) -> int:
        """Add a text that a pane can show, and return its number."""
        while key in self.keys:
            key += "'"
        self.keys.add(key)
        self.documents.append({"kind": kind, "key": key, "title": title, "text": plain_lines(text), **more})
        return len(self.documents) - 1

    def function_at(self, place: SourceLocation) -> str:
        """Return the name of the function of a line, with its class where the user's file says it."""
        return self.index.source.name_at(place, plain_name(place.function))

    def subject(self, compilation: Compilation) -> str:
        """Return the function of a compilation, and from which line on."""
        resume = resumed_function(compilation.function)
        summary = self.index.summary_of.get(compilation.compile_id.key)
        title = summary.title if summary else plain_name(compilation.function) or "a function that torch does not name"
        if not resume:
            return title
        meant = compilation.user_function
        return f"{meant.name if meant else title}, from line {resume[1]} on"


def _whole_paths(capture: model.Capture, files: Sequence[SourceFile]) -> dict[str, str]:
    """Return the only known file for each path that torch may have shortened (``transformers/activations.py``)."""
    known = dict.fromkeys([file.path for file in files] + list(sources.files_named(capture)) + [
        traced.filename for compilation in capture.compilations for traced in compilation.traced])
    ends: dict[str, list[str]] = {}
    for path in known:
        parts = path.replace("\\", "/").split("/")
        for count in range(2, len(parts)):
            ends.setdefault("/".join(parts[-count:]), []).append(path)
    return {end: paths[0] for end, paths in ends.items() if len(paths) == 1 and end not in known}


def plain_lines(text: str) -> str:
    """Return the text with one kind of line end, as the page counts lines."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


# --- Functions: versions with guards and transformed code ----------------------------------------------
def function_data(run: Run, summary: FunctionSummary, guards: list[Json]) -> Json:
    """Return a function with its frames and versions; the texts of guards are added to ``guards``."""
    outcomes = {each.compile_id.key: each.outcome for each in summary.compilations}
    frames = [_frame(run, summary, frame, guards) for frame in (summary.function.frames if summary.function else ())]
    return {
        "title": summary.title, "place": run.place(summary.location), "frames": frames,
        "wrappers": [[run.place(wrapper), wrapper.function] for wrapper in summary.wrappers],
        "versions": len(summary.done), "breaks": sum(len(c.breaks) for c in summary.compilations),
        "recompiles": len(summary.recompiles), "seconds": sum(c.seconds for c in summary.compilations),
        "graphs": len({name for c in summary.done for name in run.index.graph_names(c)}),
        "open": [[number, OUTCOMES[outcomes[graph.compile_id.key]]]
                 for number, graph in enumerate(run.capture.graphs)
                 if outcomes.get(graph.compile_id.key) in ("open", "loaded")],
        "lost": [[str(c.compile_id), c.outcome] for c in summary.compilations
                 if c.outcome not in NOT_LOST]}


def _frame(run: Run, summary: FunctionSummary, frame: model.Frame, guards: list[Json]) -> Json:
    resumed = resumed_function(frame.code_name)
    shown = frame.original.text if frame.original_is_user_text or "def " in frame.original.text else ""
    original = -1
    if shown and (resumed or not frame.original_is_user_text):
        original = run.document(
            "original", f"original {frame.name}", f"decompiled {frame.name}", shown,
            fidelity=frame.original.fidelity, note=frame.original.note)
    compiled = versions(frame, run.capture)
    entries = [_entry(run, version, nearest(version, compiled), guards) for version in compiled]
    name = frame.name if resumed else summary.title
    return {"name": frame.name, "title": name, "resumes": resumed[1] if resumed else 0,
            "branch": branch_data(frame),
            "place": run.place(frame.location), "original": original, "entries": entries,
            "fate": run.index.fate_of(frame.name) if resumed and not entries else ""}


def branch_data(frame: model.Frame | None) -> list[Any] | None:
    """Return the condition after which a resume function continues, and whether it was true."""
    return [frame.branch.condition, frame.branch.held] if frame is not None and frame.branch is not None else None


def _entry(run: Run, version: Version, before: Version | None, guards: list[Json]) -> Json:
    frame, entry = version.frame, version.entry
    ids = str(entry.compile_id)
    lines = guard_lines(version, before)
    failed = ", which failed" * version.failed
    links = []
    for at, (_, cause) in enumerate(lines, 1):
        if cause is not None and (place := run.place(cause)) >= 0:
            links += [at, at, place]
    document = run.document(
        "guards", f"guards {ids}", f"guards of {ids} {frame.name}{failed}", "".join(f"{line}\n" for line, _ in lines),
        links=links)
    guards.append(_guards(run, version, document))
    code = entry.transformed
    transformed = -1
    if code.known:
        transformed = run.document(
            "transformed", f"transformed {ids}", f"transformed code of {ids} {frame.name}{failed}", code.source.text,
            fidelity=code.source.fidelity, note=code.source.note, file=code.file)
    return {"id": ids, "guards": len(version.conditions), "guardsDoc": document, "transformed": transformed,
            "fidelity": code.source.fidelity if code.known else "",
            "graphs": [run.graph_numbers[each] for name in entry.graph_names if name in run.graph_numbers
                       for each in (name, *(piece.name for piece in run.index.pieces.get(name, ())))],
            "resumes": list(entry.resume_names)}


def _guards(run: Run, version: Version, document: int) -> Json:
    entry = version.entry
    failures = [failure for compilation in run.capture.compilations for failure in compilation.guard_failures
                if failure.entry is not None and failure.entry.key == entry.compile_id.key]
    shown = guard_groups(version)
    of_groups, rest = failed(
        [(subject, [text for text, _ in lines]) for (subject, *_), lines in shown.items()], failures,
        lambda text: typed(text).text)
    groups = []
    for ((subject, members, loop), lines), bad in zip(shown.items(), of_groups):
        differences = _differences([each for failures in bad.values() for each in failures])
        groups.append([subject, path_steps(subject), members, loop, differences,
                       [[text, run.place(cause), int(at in bad)] for at, (text, cause) in enumerate(lines)]])
    others = list(dict.fromkeys(without_addresses(each.text) for each in rest))
    looked = [compilation.counts["guard_microseconds"] for compilation in run.capture.compilations
              if compilation.compile_id.key == entry.compile_id.key and "guard_microseconds" in compilation.counts]
    resumed = resumed_function(version.frame.code_name)
    # (``f``; of a resume function ``f from line 9 on, where x.sum() > 0 is true``)
    frame = (version.frame.title or version.frame.name) + (
        f" from line {resumed[1]} on{on_branch(version.frame.branch, str)}" if resumed else "")
    return {"id": str(entry.compile_id), "frame": frame, "doc": document, "count": len(version.conditions),
            "groups": groups, "failed": others, "microseconds": looked[0] if looked else 0}


def _differences(failures: Sequence[GuardFailure]) -> list[str]:
    """Return ``"x.shape[0]: expected 10, seen 12, 14"``; torch's text where it is not known."""
    seen: dict[str, list[str]] = {}
    for failure in failures:
        if failure.expected and failure.seen:
            subject = f"{shape_in_words(failure.subject, {})}: " if failure.subject else ""
            seen.setdefault(f"{subject}expected {failure.expected}, seen ", []).append(failure.seen)
        else:
            seen.setdefault(without_addresses(failure.text), [])
    return [text + ", ".join(dict.fromkeys(values)) for text, values in seen.items()]


# --- The conditions of a version that failed when a call did not match it ----------------------------
#: The failures of each condition of an object, by its number.
Failed = dict[int, list[GuardFailure]]


def failed(
    groups: Sequence[tuple[str, Sequence[str]]], failures: Sequence[GuardFailure], plain: Callable[[str], str]
) -> tuple[list[Failed], list[GuardFailure]]:
    """Return for each object its conditions that failed, and the failures that fit no condition.

    Args:
        groups: each object with its conditions.
        failures: those of the version; each names the condition, or the object and what differs.
        plain: normalises expressions.
    """
    result: list[Failed] = [{} for _ in groups]
    rest = []
    for failure in failures:
        text, source = plain(failure.text), plain(failure.source)
        # (What torch says of a tensor is no condition.)
        hits = [] if is_of_tensor(failure) else [
            (group, at) for group, (_, conditions) in enumerate(groups) for at, condition in enumerate(conditions)
            if plain(condition) == text]
        if not hits and source:  # that on the tensor, else that with the expected value, else the first
            hits = [(group, min(range(len(conditions)), key=lambda at: (
                0 if is_of_tensor(failure) and "tensor" in conditions[at].lower() else
                1 if failure.expected and failure.expected in conditions[at] else 2)))
                for group, (subject, conditions) in enumerate(groups) if plain(subject) == source and conditions]
        for group, at in hits:
            result[group].setdefault(at, []).append(failure)
        if not hits:
            rest.append(failure)
    return result, rest


# --- Graphs ------------------------------------------------------------------------------------------
def graph_data(run: Run, graph: CompiledGraph, known: Provenance | None = None) -> Json:
    """Return a graph with its stages and kernels; ``known`` is its provenance, where that exists already."""
    provenance = known if known is not None else Provenance(graph)
    number = run.graph_numbers[graph.name]
    indices = {stage.key: {name: index for index, (name, _) in enumerate(stage.nodes())}
               for stage in provenance.stages if not stage.record.internal or stage is provenance.captured}
    captured = indices[provenance.captured.key] if provenance.captured is not None else {}
    stages = {stage.key: _stage(run, number, graph, provenance, stage, captured)
              for stage in provenance.stages if not stage.record.internal}
    records = {stage.key: stage.record for stage in provenance.stages}
    kernels = []
    for kernel in provenance.kernels:
        known_nodes = indices.get(kernel.stage, {})
        record = records.get(kernel.stage)
        which = direction(record) if record else ""
        shown = f"{which} kernels" if which else f"kernels {kernel.index}" if kernel.index else "kernels"
        text = plain_lines(kernel.text)
        lines = text.split("\n")
        calls = [[call.name, call.kind, call.line, _end(lines, call.line), call.call_line,
                  [known_nodes[name] for name in call.nodes if name in known_nodes], int(call.inferred)]
                 for call in kernel.calls]
        kernels.append(run.document(
            "kernel", f"{graph.name}.kernel_{kernel.index}", f"{shown} of {graph.name}", text, shown=shown,
            direction=direction_of(record) if record else "", graph=number, stage=stages.get(kernel.stage, -1),
            calls=calls, file=kernel.file))
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
    places: dict[int, int] = {}  # by the identity of the location, which nodes share
    for name, node in stage.nodes():
        origin, is_call = stage.origins[name], node.is_call
        where = origin.location
        if id(where) not in places:
            places[id(where)] = run.place(where)
        names.append(view.names.get(name, name))
        flat += (view.line(node.line), places[id(where)], captured.get(origin.captured, -1),
                 origin.module if is_call else -1, int(is_call))
        if is_call and where is not None and places[id(where)] >= 0:
            run.lines[where.filename].graphs[where.line].add(number)
    shown = title(record)
    lines = outline.outline_lines(provenance, stage, view.line)
    return run.document(
        "graph", f"{graph.name}.{record.stage}.{record.index}", f"{shown} of {graph.name}", view.text,
        stage=shown, direction=direction_of(record), graph=number, names=names, nodes=flat, file=record.file,
        captured=stage is provenance.captured,
        outline=[[line.depth, line.text, line.first] for line in lines], inputs=list(outline.counts(stage.graph)))


def direction_of(stage: model.GraphStage) -> str:
    """Return ``"forward"`` or ``"backward"`` of a stage; ``""`` of the captured and joint graphs.

    Where there is no backward graph, what Inductor's passes left is of the forward graph.
    """
    adjective = ADJECTIVES.get(stage.stage, "")
    known = adjective if adjective in ("forward", "backward") else direction(stage)
    return known or "forward" * (stage.stage == "AFTER_POST_GRAD")


def _end(lines: Sequence[str], first: int) -> int:
    """Return the last line of a kernel's definition, whose text is a string of many lines."""
    head = lines[first - 1] if 0 < first <= len(lines) else ""
    quotes = next((each for each in ("'''", '"""') if head.count(each) == 1), "")
    return next((at for at in range(first + 1, len(lines) + 1) if quotes in lines[at - 1]), first) if quotes else first


# --- several ranks -----------------------------------------------------------------------------------
def run_head(run: Json, ranks: RankClass | None) -> Json:
    """Return the name, the numbers and the functions of a run; ``ranks`` are those that did the same."""
    head: Json = {"name": run["name"], "summary": run["summary"], "units": _functions(run)}
    if ranks is not None:
        seconds = [member.seconds for member in ranks.members]
        head |= {"ranks": len(ranks.members), "ended": ranks.ended, "time": index.time_of(ranks),
                 "seconds": [min(seconds), max(seconds)]}
    return head


def _functions(run: Json) -> list[Json]:
    """Return the numbers of functions, added for equal names, and where their graphs break."""
    result: dict[str, Json] = {}
    numbers = ("versions", "graphs", "breaks", "recompiles", "seconds")
    for unit in run["units"]:
        known = result.setdefault(unit["title"], {"title": unit["title"], **dict.fromkeys(numbers, 0), "at": []})
        for name in numbers:
            known[name] += unit[name]
    for reason in run["breaks"]:
        for at in reason["places"]:
            title = at["of"] if at["of"] in result else at["of"].partition(",")[0]
            if title in result:
                result[title]["at"].append(f"{place_of(run, at['place']) or '?'} {reason['title']}")
    return list(result.values())


def place_of(run: Json, place: int) -> str:
    """Return a place of a run's data: ``model.py:12``; ``""`` for none."""
    if place < 0:
        return ""
    file, line = run["places"][2 * place : 2 * place + 2]
    return f"{run['files'][file]['short']}:{line}"


def ranks_head(classes: Sequence[RankClass]) -> Json:
    """Return the differences between ranks, and the missing ones."""
    missing = [index.missing_ranks(classes)]
    missing += [f"{each.name[:1].upper()}{each.name[1:]}: {prose(each.trouble, 200)}."
                for each in classes if each.capture is None]
    return {"differences": [spans(line.removeprefix("* ")) for line in index.differences(classes) if line],
            "missing": [spans(sentence) for sentence in missing if sentence]}
