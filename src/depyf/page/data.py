"""What the page shows: a capture as plain data (JSON), every text once, every link by number.

Terms, as the page's script has them:

* a *document* is a text that a pane can show: a file of the user's, guards, transformed code, a stage of a graph, a
  generated module. Its ``key`` is stable from run to run and stands in links to it;
* a *place* is a line of the user's: ``(file, line)``. What comes from one place has one colour in every document;
* ``nodes`` of a stage: for each node its name, line of the text, place, captured node (index in the captured stage) and
  call of a module; -1 where there is none;
* ``calls`` of a generated module: for each call of a kernel its lines and the nodes of ``stage`` that it computes.

Lines count from 1.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..capture import events, sources
from ..capture.graph_text import Graph
from ..capture.provenance import Provenance, StageNodes
from ..capture.records import (
    CacheEntry,
    Capture,
    Compilation,
    CompiledGraph,
    Frame,
    GraphBreak,
    GuardFailure,
    SourceFile,
    SourceLocation,
)
from ..capture.resumes import plain_name, resumed_function
from ..output import guards_view, outline, story
from .lines import Statuses

FORMAT = 1
Json = dict[str, Any]

STAGES = {"Captured_Graph": "captured graph", "Joint_graph": "joint graph", "Forward_graph": "forward graph",
          "Backward_graph": "backward graph", "AFTER_POST_GRAD": "after Inductor's passes"}
_TORCHS_PAGE = re.compile(r"https?://[\w./%#?=&+-]+")
#: An address in a text differs from run to run and helps nobody.
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def run_data(
    capture: Capture, files: Sequence[SourceFile] | None = None,
    provenances: Mapping[str, Provenance] | None = None, names: Mapping[str, str] | None = None,
) -> Json:
    """The data of one run.

    Args:
        capture: its records.
        files: the user's files; ``None``: those of the records, else of this machine's disk (see
            :func:`depyf.capture.sources.of_capture`).
        provenances: those of graphs that are known already, by name of the graph.
        names: what files are called, by path, where that is not a part of the path (``In[3]``).
    """
    found = sources.of_capture(capture) if files is None else files
    return _Run(capture, found, provenances or {}, names or {}).data()


class _Run:
    def __init__(
        self, capture: Capture, files: Sequence[SourceFile], provenances: Mapping[str, Provenance],
        names: Mapping[str, str],
    ) -> None:
        self.capture = capture
        self.story = story.Story(capture)
        self.files = files
        self.provenances = provenances
        self.names = names
        self.documents: list[Json] = []
        self.keys: set[str] = set()
        self.places: dict[tuple[str, int], int] = {}
        self.file_numbers: dict[str, int] = {}
        self.file_names: list[str] = []
        self.graph_numbers = {graph.name: number for number, graph in enumerate(capture.graphs)}
        self.statuses = Statuses()
        self.whole = _whole_paths(capture, files)

    def data(self) -> Json:
        capture = self.capture
        for file in self.files:
            self._file(file.path)
        graphs = [self._graph(graph) for graph in capture.graphs]
        guards: list[Json] = []
        units = [self._unit(unit, guards) for unit in self.story.units]
        breaks = [self._reason(group) for group in story.breaks_by_reason(capture.compilations)]
        recompiles = [self._recompile(unit, members) for unit in self.story.units
                      for members in story.recompiles_by_reason(unit)]
        lost = [self._not_compiled(members) for members in story.not_compiled(capture.compilations)]
        compilations = [self._compilation(compilation) for compilation in capture.compilations]
        symbols = self._symbols()
        self._traced()
        documents = self._sources()
        short = self._short_names()
        return {
            "environment": dict(capture.environment), "notes": list(capture.notes), "summary": self._summary(),
            "files": [{"path": name, "short": short[name], "doc": documents.get(name, -1)} for name in self.file_names],
            "places": [number for place in self.places for number in (self.file_numbers[place[0]], place[1])],
            "docs": self.documents, "graphs": graphs, "units": units, "breaks": breaks, "recompiles": recompiles,
            "lost": lost, "compilations": compilations, "guards": guards, "symbols": symbols,
            "phases": self._phases(), "caches": self._caches()}

    # --- numbers ----------------------------------------------------------------------------------
    def _file(self, name: str) -> int:
        name = self.whole.get(name, name)
        number = self.file_numbers.setdefault(name, len(self.file_names))
        if number == len(self.file_names):
            self.file_names.append(name)
        return number

    def _short_names(self) -> dict[str, str]:
        return {path: self.names.get(path, short) for path, short in story.short_names(self.file_names).items()}

    def _place(self, location: SourceLocation | None) -> int:
        if location is None or location.line <= 0:
            return -1
        name = self.whole.get(location.filename, location.filename)
        self._file(name)
        return self.places.setdefault((name, location.line), len(self.places))

    def _document(self, kind: str, key: str, title: str, text: str, **more: Any) -> int:
        while key in self.keys:
            key += "'"
        self.keys.add(key)
        self.documents.append({"kind": kind, "key": key, "title": title, "text": plain_lines(text), **more})
        return len(self.documents) - 1

    # --- graphs and kernels -----------------------------------------------------------------------
    def _graph(self, graph: CompiledGraph) -> Json:
        known = self.provenances.get(graph.name)
        provenance = known if known is not None else Provenance(graph)
        number = self.graph_numbers[graph.name]
        captured: dict[str, int] = {}
        if provenance.captured is not None:
            captured = {name: index for index, (name, _) in enumerate(provenance.captured.nodes())}
        indices: dict[str, dict[str, int]] = {}
        stages: dict[str, int] = {}
        for stage in provenance.stages:
            if not stage.record.internal:
                stages[_key(stage)] = self._stage(number, graph, provenance, stage, captured)
                indices[_key(stage)] = {name: index for index, (name, _) in enumerate(stage.nodes())}
        kernels = []
        for kernel in provenance.kernels:
            known_nodes = indices.get(kernel.stage, {})
            text = plain_lines(kernel.text)
            lines = text.split("\n")
            calls = [[call.name, call.kind, call.line, _end(lines, call.line), call.call_line,
                      [known_nodes[name] for name in call.nodes if name in known_nodes], int(call.inferred)]
                     for call in kernel.calls]
            kernels.append(self._document(
                "kernel", f"{graph.name}.kernel_{kernel.index}", f"kernels {kernel.index} of {graph.name}", text,
                graph=number, stage=stages.get(kernel.stage, -1), calls=calls, file=kernel.file))
        return {"name": graph.name, "id": str(graph.compile_id), "backend": graph.backend,
                "stages": list(stages.values()), "kernels": kernels,
                "modules": [[call.path, call.cls, call.outer] for call in provenance.modules]}

    def _stage(
        self, number: int, graph: CompiledGraph, provenance: Provenance, stage: StageNodes, captured: dict[str, int]
    ) -> int:
        record = stage.record
        names, flat = [], []
        for name, node in stage.nodes():
            origin = stage.origins[name]
            place = self._place(origin.location)
            if place >= 0 and node.is_call and origin.location is not None:
                self.statuses.in_graph(origin.location, number)
            names.append(name)
            flat += [node.line, place, captured.get(origin.captured, -1), origin.module if node.is_call else -1,
                     int(node.is_call)]
        title = STAGES.get(record.stage, record.stage.replace("_", " ")) + (f" {record.index + 1}" * bool(record.index))
        lines = outline.outline_lines(provenance, stage)
        return self._document(
            "graph", f"{graph.name}.{record.stage}.{record.index}", f"{title} of {graph.name}", record.text,
            stage=title, graph=number, names=names, nodes=flat, file=record.file, captured=stage is provenance.captured,
            outline=[[line.depth, line.text, line.first] for line in lines], inputs=_inputs(stage.graph))

    # --- functions --------------------------------------------------------------------------------
    def _unit(self, unit: story.Unit, guards: list[Json]) -> Json:
        frames = []
        for frame in unit.function.frames if unit.function else ():
            frames.append(self._frame(unit, frame, guards))
        return {
            "title": unit.title, "place": self._place(unit.location), "frames": frames,
            "versions": len(unit.done), "breaks": sum(len(c.breaks) for c in unit.compilations),
            "recompiles": len(unit.recompiles), "seconds": sum(c.seconds for c in unit.compilations),
            "graphs": len({name for c in unit.done for name in self.story.graph_names(c)}),
            "lost": [[str(c.compile_id), c.outcome] for c in unit.compilations if c.outcome != "compiled"]}

    def _frame(self, unit: story.Unit, frame: Frame, guards: list[Json]) -> Json:
        resumed = resumed_function(frame.code_name)
        shown = frame.original.text if frame.original_is_user_text or "def " in frame.original.text else ""
        original = -1
        if resumed or not frame.original_is_user_text:
            if shown:
                original = self._document(
                    "original", f"original {frame.name}", f"decompiled {frame.name}", shown,
                    fidelity=frame.original.fidelity, note=frame.original.note)
        entries = []
        before: CacheEntry | None = None
        for number, entry in enumerate(frame.entries):
            entries.append(self._entry(frame, entry, number, before, guards))
            before = entry
        name = frame.name if resumed else unit.title
        return {"name": frame.name, "title": name, "resumes": resumed[1] if resumed else 0,
                "place": self._place(frame.location), "original": original, "entries": entries}

    def _entry(
        self, frame: Frame, entry: CacheEntry, number: int, before: CacheEntry | None, guards: list[Json]
    ) -> Json:
        ids = str(entry.compile_id)
        causes = {guards_view.cause_text(guard): guard.cause for guard in entry.guards}
        lines = guards_view.guard_lines(
            f"guard_{number}_for_{frame.name}", entry.guards, before.guards if before else None)
        links = []
        for at, (_, cause) in enumerate(lines, 1):
            place = self._place(causes.get(cause))
            if place >= 0:
                links += [at, at, place]
        document = self._document(
            "guards", f"guards {ids}", f"guards of {ids} {frame.name}", "".join(f"{line}\n" for line, _ in lines),
            links=links)
        guards.append(self._guards(frame, entry, document, causes))
        code = entry.transformed
        transformed = -1
        if code.known:
            transformed = self._document(
                "transformed", f"transformed {ids}", f"transformed code of {ids} {frame.name}", code.source.text,
                fidelity=code.source.fidelity, note=code.source.note, file=code.file)
        return {"id": ids, "guards": len(entry.guards), "guardsDoc": document, "transformed": transformed,
                "fidelity": code.source.fidelity if code.known else "",
                "graphs": [self.graph_numbers[name] for name in entry.graph_names if name in self.graph_numbers],
                "resumes": list(entry.resume_names)}

    def _guards(
        self, frame: Frame, entry: CacheEntry, document: int, causes: Mapping[str, SourceLocation | None]
    ) -> Json:
        failures = [found for compilation in self.capture.compilations for found in compilation.guard_failures
                    if found.entry is not None and found.entry.key == entry.compile_id.key]
        told: set[str] = set()
        groups = []
        for one in guards_view.fold(guards_view.group(entry.guards)):
            source, conditions, loop = guards_view.shown(one)
            said: list[str] = []
            for found in failures:
                plain = _plain(found.text)
                if found.source and _plain(found.source) == _plain(source) or any(
                        _plain(text) == plain for text, _ in conditions):
                    said.append(_difference(found))
                    told.add(found.text)
            groups.append([source, _path(source), max(1, len(one.values)), loop, list(dict.fromkeys(said)),
                           [[text, self._place(causes.get(cause))] for text, cause in conditions]])
        others = list(dict.fromkeys(_words(found.text) for found in failures if found.text not in told))
        looked = [compilation.counts["guard_microseconds"] for compilation in self.capture.compilations
                  if compilation.compile_id.key == entry.compile_id.key and "guard_microseconds" in compilation.counts]
        return {"id": str(entry.compile_id), "frame": frame.name, "doc": document, "count": len(entry.guards),
                "groups": groups, "failed": others,
                "microseconds": looked[0] if looked else 0}

    # --- what happened ----------------------------------------------------------------------------
    def _subject(self, compilation: Compilation) -> str:
        resume = resumed_function(compilation.function)
        unit = self.story.unit_of.get(compilation.compile_id.key)
        title = unit.title if unit else plain_name(compilation.function) or "a function that torch does not name"
        return f"{title}, from line {resume[1]} on" if resume else title

    def _compilation(self, compilation: Compilation) -> Json:
        unit = self.story.unit_of.get(compilation.compile_id.key)
        return {
            "id": str(compilation.compile_id), "subject": self._subject(compilation),
            "unit": self.story.units.index(unit) if unit else -1, "place": self._place(compilation.location),
            "outcome": compilation.outcome,
            "again": bool(compilation.guard_failures or compilation.compile_id.recompile),
            "start": compilation.start, "seconds": compilation.seconds, "broke": bool(compilation.breaks),
            "restarts": len(compilation.restarts),
            "graphs": [self.graph_numbers[name] for name in self.story.graph_names(compilation)
                       if name in self.graph_numbers],
            "phases": [[phase.name, phase.seconds] for phase in compilation.phases],
            "counts": dict(compilation.counts)}

    def _reason(self, group: list[tuple[GraphBreak, Compilation]]) -> Json:
        first = group[0][0]
        places = []
        for members in story.breaks_by_place(group):
            found, compilation = members[0]
            where = found.location
            if where is not None:
                self.statuses.at_break(where, len(self.story.graphs), found.reason)
            resumes = dict.fromkeys(
                name for _, c in members if c.outcome == "compiled" for name in self.story.resume_names(c))
            places.append({
                "place": self._place(where), "text": where.text if where else "",
                "function": plain_name(where.function) if where else "",
                "path": [[self._place(step), plain_name(step.function)]
                         for step in story.path_to(found, compilation)[:-1]],
                "skips": found.skips_function, "of": self._subject(compilation), "resumes": list(resumes),
                "ids": list(dict.fromkeys(str(c.compile_id) for _, c in members)), "times": len(members)})
        return {
            "title": _words(first.reason) or "Torch gives no reason", "id": first.registry_id,
            "url": first.url if _TORCHS_PAGE.fullmatch(first.url) else "", "explanation": _words(first.explanation),
            "hints": [_words(hint) for hint in first.hints], "context": _words(first.context), "places": places,
            "times": len(group)}

    def _recompile(self, unit: story.Unit, members: list[Compilation]) -> Json:
        return {
            "unit": self.story.units.index(unit), "subject": self._subject(members[0]),
            "ids": [str(c.compile_id) for c in members],
            "guards": [self._failure(found) for found in story.failures_by_kind(members)]}

    def _failure(self, failures: list[GuardFailure]) -> Json:
        causes: dict[int, str] = {}
        for found in failures:
            if found.cause is not None:
                causes.setdefault(self._place(found.cause), found.cause.text)
        return {
            "kind": story.kind_of_failure(failures[0]),
            "texts": list(dict.fromkeys(_words(found.text) for found in failures))[:4],
            "source": failures[0].source,
            "expected": list(dict.fromkeys(found.expected for found in failures if found.expected))[:6],
            "seen": list(dict.fromkeys(found.seen for found in failures if found.seen))[:6],
            "entries": list(dict.fromkeys(str(found.entry) for found in failures if found.entry)),
            "causes": [[place, text] for place, text in causes.items()]}

    def _not_compiled(self, members: list[Compilation]) -> Json:
        first = members[0]
        failure = first.failure
        account = events.graph_break(first.compile_id, failure.reason) if failure else None
        return {
            "outcome": first.outcome, "subject": self._subject(first), "place": self._place(first.location),
            "ids": [str(c.compile_id) for c in members], "kind": failure.kind if failure else "",
            "reason": _words(account.reason) if account else "",
            "explanation": _words(account.explanation) if account else "",
            "hints": [_words(hint) for hint in account.hints] if account else [],
            "at": self._place(failure.location) if failure else -1, "broke": bool(first.breaks),
            "guards": [self._failure(found) for found in story.failures_by_kind(members)]}

    def _symbols(self) -> list[Json]:
        found: dict[tuple[object, ...], Json] = {}
        for unit_number, unit in enumerate(self.story.units):
            for compilation in unit.compilations:
                for symbol in compilation.symbols:
                    key = (unit_number, symbol.kind, symbol.symbol, symbol.source, symbol.value, symbol.reason)
                    known = found.setdefault(key, {
                        "unit": unit_number, "kind": symbol.kind, "symbol": symbol.symbol, "source": symbol.source,
                        "value": symbol.value, "range": symbol.range, "reason": _words(symbol.reason),
                        "place": self._place(symbol.location), "ids": []})
                    if str(compilation.compile_id) not in known["ids"]:
                        known["ids"].append(str(compilation.compile_id))
        return list(found.values())

    def _phases(self) -> list[list[Any]]:
        phases: dict[str, float] = {}
        for compilation in self.capture.compilations:
            for phase in compilation.phases:
                phases[phase.name] = phases.get(phase.name, 0.0) + phase.seconds
        return [[name, value] for name, value in phases.items()]

    def _caches(self) -> list[list[Any]]:
        found: dict[tuple[str, str, str], int] = {}
        for compilation in self.capture.compilations:
            for lookup in compilation.caches:
                key = lookup.cache, lookup.outcome, _words(lookup.reason)
                found[key] = found.get(key, 0) + 1
        return [[*key, times] for key, times in found.items()]

    def _summary(self) -> Json:
        compilations = self.capture.compilations
        outcomes = [c.outcome for c in compilations]
        breaks = [found for c in compilations for found in c.breaks]
        return {
            "functions": sum(bool(u.function and (not u.compilations or u.done)) for u in self.story.units),
            "versions": outcomes.count("compiled") or sum(len(f.entries) for u in self.capture.functions
                                                          for f in u.frames),
            "graphs": len({name for _, entry in self.story.entries.values() for name in entry.graph_names}),
            "seconds": sum(c.seconds for c in compilations), "breaks": len(breaks),
            "places": len({(b.reason, b.location and (b.location.filename, b.location.line)) for b in breaks}),
            "recompiles": sum(len(unit.recompiles) for unit in self.story.units),
            **{outcome: outcomes.count(outcome) for outcome in ("limit", "failed", "skipped", "unknown")}}

    # --- the user's files -------------------------------------------------------------------------
    def _traced(self) -> None:
        for compilation in self.capture.compilations:
            for traced in compilation.traced:
                self.statuses.traced(traced.filename, traced.lines)
            if compilation.outcome in ("skipped", "failed", "limit") and compilation.location is not None:
                self.statuses.in_python(compilation.location, compilation.outcome)
        for function in self.capture.functions:
            for frame in function.frames:
                if frame.location is not None and frame.entries:
                    self.statuses.compiled(frame.location)

    def _sources(self) -> dict[str, int]:
        documents = {}
        short = self._short_names()
        for file in self.files:
            text = plain_lines(file.text)
            documents[file.path] = self._document(
                "source", short[file.path], short[file.path], text, path=file.path,
                file=self.file_numbers[file.path], status=self.statuses.of(file.path, text))
        return documents


def _whole_paths(capture: Capture, files: Sequence[SourceFile]) -> dict[str, str]:
    """Torch cuts paths in guards (``transformers/activations.py``) -> the one file that can be meant."""
    known = dict.fromkeys([file.path for file in files] + list(sources.files_named(capture)) + [
        traced.filename for compilation in capture.compilations for traced in compilation.traced])
    ends: dict[str, list[str]] = {}
    for path in known:
        parts = path.replace("\\", "/").split("/")
        for count in range(2, len(parts)):
            ends.setdefault("/".join(parts[-count:]), []).append(path)
    return {end: paths[0] for end, paths in ends.items() if len(paths) == 1 and end not in known}


def _key(stage: StageNodes) -> str:
    return f"{stage.record.stage}.{stage.record.index}"


def plain_lines(text: str) -> str:
    """The text with one kind of line end, as the page counts lines."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _words(text: str) -> str:
    return _ADDRESS.sub("", text)


def _plain(text: str) -> str:
    """A guard as torch's reasons for recompiles have it: ``x.size()[0]`` for ``L['x'].size()[0]``."""
    return re.sub(r"\bL\['(\w+)'\]", r"\1", text)


def _difference(found: GuardFailure) -> str:
    """``"expected 10, seen 12"``; torch's text where it is not known."""
    if found.expected and found.seen:
        return f"expected {found.expected}, seen {found.seen}"
    return _words(found.text)


def _inputs(graph: Graph) -> list[int]:
    """``[inputs, operations, results]``."""
    return [sum(node.op == "placeholder" for node in graph.nodes), sum(node.is_call for node in graph.nodes),
            next((len(node.inputs) for node in graph.nodes if node.op == "output"), 0)]


def _end(lines: Sequence[str], first: int) -> int:
    """The last line of a kernel's definition: its text is a string over many lines."""
    if not 0 < first <= len(lines):
        return first
    for quotes in ("'''", '"""'):
        if lines[first - 1].count(quotes) == 1:
            return next((at for at in range(first + 1, len(lines) + 1) if quotes in lines[at - 1]), first)
    return first


_STEP = re.compile(r"\._(?:modules|parameters|buffers)(?=\[)|\[(?P<index>[^\[\]]*)\]|\.(?P<name>\w+)(?P<call>\(\))?")


def _path(source: str) -> list[str]:
    """A guarded object as the way to it: ``L['self']._modules['layers']._modules[i].x`` is L, self, layers, [i], x."""
    begin = re.match(r"\w+(?=[.\[]|$)", source)
    if begin is None:
        return [source] if source else []
    steps = [begin[0]]
    at = begin.end()
    while at < len(source):
        step = _STEP.match(source, at)
        if step is None:
            return [*steps, source[at:]]
        at = step.end()
        if step["name"]:
            steps.append(step["name"] + (step["call"] or ""))
        elif step["index"] is not None:
            text = step["index"]
            steps.append(text[1:-1] if text[:1] == text[-1:] == "'" and len(text) > 2 else f"[{text}]")
    return steps


def shares(run: Mapping[str, Any]) -> tuple[int, int, int, int]:
    """``(operations of graphs, those that lead to a place, calls of kernels, those that lead to operations)``."""
    nodes = leading = calls = known = 0
    for document in run["docs"]:
        if document["kind"] == "graph":
            flat: Iterable[int] = document["nodes"]
            rows = list(zip(*[iter(flat)] * 5))
            nodes += sum(row[4] for row in rows)
            leading += sum(row[4] and row[1] >= 0 for row in rows)
        elif document["kind"] == "kernel":
            calls += len(document["calls"])
            known += sum(bool(call[5]) for call in document["calls"])
    return nodes, leading, calls, known
