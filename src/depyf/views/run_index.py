"""The records of a run, tied together: which compilation is of which function, frame, version and graphs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from ..advice.recompiles import A_VIEW
from ..model.arithmetic import Interval
from ..model.folding import fold
from ..model.graph_text import read_graph
from ..model.reading import is_literal, is_read_by_place
from ..records import model
from ..records.model import CacheEntry, Compilation, CompiledGraph, Frame, GuardFailure, SymbolDecision
from ..records.naming import BEFORE_PRE_GRAD
from ..torch_text.global_names import plain_name, resumed_function
from ..torch_text.guard_failures import is_without_tensor, number
from ..torch_text.libraries import is_library, is_of_dynamo, short_path_of_torch
from ..torch_text.size_names import is_symbol, symbols_in
from ..torch_text.user_expressions import known_on_stack, sources_in_words, user_expression
from ..values import frozen
from .changes import ELSEWHERE, Change, changes, in_words
from .dump.guards.sizes import failed_condition, fixed_symbols, is_made_by_inductor, range_left
from .dump.guards.versions import Change as VersionChange
from .dump.guards.versions import Version, as_row, keywords, nearest, version_differences, versions
from .formatting import LOST, files_of, on_branch, short_names
from .function_summary import FunctionSummary
from .markdown import code
from .user_source import UserSource


class RunIndex:
    """A capture with its records linked to each other."""

    def __init__(self, capture: model.Capture) -> None:
        self.capture = capture
        self.graphs = capture.by_name  # by name
        self.pieces = pieces_of(capture.graphs)  # of each graph that its backend split, by its name
        # the frame and the cache entry of a compilation, by its `key`
        self.entries: dict[tuple[int, int, int], tuple[Frame, CacheEntry]] = {}
        self.frames: dict[str, Frame] = {}  # by the name that code calls them
        self.summaries: list[FunctionSummary] = []  # the functions, in the order of their first compilation
        self.summary_of: dict[tuple[int, int, int], FunctionSummary] = {}  # the function of a compilation, by its `key`
        self.source = UserSource(capture.sources)
        self._versions: dict[int, list[Version]] = {}  # by the identity of their frame
        self._symbols: dict[str, frozenset[str]] = {}
        self._sizes: dict[tuple[int, int, int], tuple[dict[str, model.SourceLocation | None], dict[str, str]]] = {}
        self._known_changes: dict[tuple[int, int, int], tuple[Version, Version, list[VersionChange]] | None] = {}
        self._match()
        self.short = short_names(files_of(capture))  # the shortest ends of paths that distinguish the files

    def _match(self) -> None:
        of_compilation: dict[tuple[int, int, int], tuple[model.CompiledFunction, Frame]] = {}
        of_frame: dict[tuple[int, int], list[tuple[model.CompiledFunction, Frame]]] = {}
        of_code: dict[tuple[str, str, int], tuple[model.CompiledFunction, Frame]] = {}
        for function in self.capture.functions:
            for frame in function.frames:
                self.frames.setdefault(frame.name, frame)
                compiled = frame.wrappers[0] if frame.wrappers else frame.location
                if compiled:
                    of_code[(frame.code_name, compiled.filename, compiled.line)] = function, frame
                for entry in frame.entries:
                    self.entries[entry.compile_id.key] = frame, entry
                    of_compilation[entry.compile_id.key] = function, frame
                    of_frame.setdefault(entry.compile_id.frame_key, []).append((function, frame))
        summaries: dict[object, FunctionSummary] = {}
        for compilation in self.capture.compilations:
            place = compilation.location
            pairs = (of_compilation.get(compilation.compile_id.key),
                     *of_frame.get(compilation.compile_id.frame_key, ()),
                     place and of_code.get((compilation.function, place.filename, place.line)))
            meant = compilation.user_function  # (several functions can share a wrapper)
            pair = next((pair for pair in pairs if pair and (
                meant is None or not (meant.wrappers or pair[1].wrappers)
                or (meant.name, meant.location) == (pair[1].title, pair[1].location))), None)
            if pair:
                summary = summaries.setdefault(id(pair[0]), FunctionSummary.from_function(pair[0]))
            else:
                name = plain_name(compilation.function)
                summary = FunctionSummary(name, name, place) if meant is None else FunctionSummary(
                    name, meant.name, meant.location, meant.wrappers)
                place = summary.location
                key = summary.title, place and (place.filename, place.line), summary.wrappers
                summary = summaries.setdefault(key, summary)
            summary.compilations.append(compilation)
            self.summary_of[compilation.compile_id.key] = summary
        for function in self.capture.functions:  # of a dump whose compilations are not known
            if id(function) not in summaries:
                summaries[id(function)] = FunctionSummary.from_function(function)
        self.summaries = list(summaries.values())
        # (Where a wrapper was compiled without the function that it calls, both have the name of that.)
        for same in fold(self.summaries, lambda summary: summary.title).values():
            for summary in same if len({summary.wrappers for summary in same}) > 1 else ():
                if summary.wrappers:
                    own = [each for each in summary.wrappers if not is_of_dynamo(each.filename)]
                    summary.title += f" (its wrapper {(own or summary.wrappers)[0].function})"

    @cached_property
    def again(self) -> dict[str, list[Again]]:
        """The graphs by direct calls that are pieces once more, by the names of the pieces."""
        pieces = fold((graph for graph in self.capture.graphs if graph.piece_of and graph.captured),
                      lambda graph: graph.captured and _operations(graph.captured))
        result: dict[str, list[Again]] = {}
        for graph in self.capture.graphs if pieces else ():
            given = next((each for each in graph.stages if each.shown_as == BEFORE_PRE_GRAD), None)
            found = pieces.get(_operations(given), ()) if given and graph.call is not None else ()
            if len(found) == 1:
                result.setdefault(found[0].name, []).append(Again(graph, _sizes(found[0], graph)))
        return result

    @cached_property
    def inner(self) -> list[FunctionSummary]:
        """The functions that the program did not ask to compile: compiled functions call them."""
        from .verdict import is_outermost  # (which imports this module)

        return [summary for summary in self.summaries if not is_outermost(summary)]

    def is_recompile(self, compilation: Compilation) -> bool:
        """Return whether a function was compiled again: torch counts versions by frame, which functions can share."""
        if compilation.guard_failures:
            return True
        this, summary = compilation.compile_id, self.summary_of.get(compilation.compile_id.key)
        return this.recompile > 0 and (summary is None or any(
            each.compile_id.frame_key == this.frame_key and each.compile_id.key < this.key
            for each in summary.compilations))

    def entry(self, compilation: Compilation) -> CacheEntry | None:
        """Return the cache entry that a compilation made."""
        return self.entries.get(compilation.compile_id.key, (None, None))[1]

    def resume_names(self, compilation: Compilation) -> tuple[str, ...]:
        """Return the names of resume functions that the code of a compilation calls."""
        entry = self.entry(compilation)
        return entry.resume_names if entry else ()

    def with_pieces(self, names: Iterable[str]) -> list[CompiledGraph]:
        """Return the graphs of these names that there are, each before the pieces that its backend split it into."""
        return [graph for name in names if name in self.graphs
                for graph in (self.graphs[name], *self.pieces.get(name, ()))]

    def graph_names(self, compilation: Compilation) -> tuple[str, ...]:
        """Return the names of graphs that the code of a compilation calls."""
        entry = self.entry(compilation)
        return entry.graph_names if entry else ()

    def graphs_of(self, summaries: Sequence[FunctionSummary]) -> set[str]:
        """Return the names of graphs that the code of functions calls."""
        lost = self.capture.lost
        called = {name for summary in summaries for each in summary.done for name in self.graph_names(each)}
        # (Of an older dump the compilations are not known.)
        return called | {name for summary in summaries if summary.function and not summary.compilations
                         for frame in summary.function.frames for entry in frame.entries
                         if entry.compile_id.key not in lost for name in entry.graph_names}

    def name_of(self, compilation: Compilation) -> str:
        """Its function in the user's words, as Markdown: ``Block.forward``, ``f`` from line 9 on."""
        summary = self.summary_of.get(compilation.compile_id.key)
        name = summary.title if summary else plain_name(compilation.function)
        place = summary.location if summary else compilation.location
        resumed, meant = resumed_function(compilation.function), compilation.user_function
        if resumed and meant is not None:
            name = meant.name  # (of a break in a function that was inlined)
        elif "." not in name and place is not None:
            name = self.source.name_at(place, name)
        shown = code(name or "a function that torch does not name")
        if not resumed:
            return shown
        return f"{shown} from line {resumed[1]} on{on_branch(self.branch_of(compilation))}"

    def branch_of(self, compilation: Compilation) -> model.Branch | None:
        """Return the branch that a resume function continues; ``None`` where it continues none, and of a function."""
        if not resumed_function(compilation.function):
            return None
        if (frame := self.frame_of(compilation)) is not None:
            return frame.branch
        # (Of one that was given up: where only one frame can be meant, of two branches.)
        frames = _only_asked([each for each in self.frames.values() if not each.entries and each.may_be_of(
            compilation.function, compilation.location)])
        return frames[0].branch if len(frames) == 1 else None

    def frame_of(self, compilation: Compilation) -> Frame | None:
        """Return the frame that it compiled, as far as any compilation of it gave code."""
        known = self.entries.get(compilation.compile_id.key)
        return known[0] if known else self._frames_by_number.get(compilation.compile_id.frame_key)

    @cached_property
    def _frames_by_number(self) -> dict[tuple[int, int], Frame]:
        return {key[:2]: frame for key, (frame, _) in self.entries.items()}

    def stack_names(self, compilation: Compilation) -> dict[str, str]:
        """Return the user's expressions of the values that a resume function takes.

        ``{"___stack0": "self.log.append"}``. (A constant is no name for the value that it has.)
        """
        return {name: text for name, text in self.values_on_stack(compilation).items() if number(text) is None}

    def values_on_stack(self, compilation: Compilation) -> Mapping[str, str]:
        """Return the same with constants: ``{"___stack0": "self.log.append", "___stack1": "7"}``."""
        frame = self.frame_of(compilation)
        return known_on_stack(frame.stack) if frame is not None else {}

    @cached_property
    def _changes(self) -> dict[tuple[int, int, int], tuple[Change, ...]]:
        earlier: dict[tuple[int, int], dict[tuple[int, int, int], dict[str, str]]] = {}
        result, times = {}, Counter(each.compile_id.frame_key for each in self.capture.compilations)
        for each in self.capture.compilations:
            key, known = each.compile_id.key, earlier.setdefault(each.compile_id.frame_key, {})
            found = changes(each, self.stack_names(each), known)
            result[key] = tuple(self._completed(each, change) for change in found)
            if times[each.compile_id.frame_key] > 1:
                known[key] |= dict.fromkeys(self.sizes(each)[1], "") | (of.wanted if (of := self.version(each)) else {})
        return result

    def sizes(self, compilation: Compilation) -> tuple[dict[str, model.SourceLocation | None], dict[str, str]]:
        """Return the sizes and numbers that a version fixes, with the places, and those left open, with their names."""
        key = compilation.compile_id.key
        if key not in self._sizes:
            decisions = [] if compilation.outcome in LOST else compilation.symbols
            fixed = {name: each.location for name, each in self.with_names(
                compilation, fixed_symbols(compilation, self.version(compilation)) if decisions else ())}
            self._sizes[key] = fixed, {name: each.source for name, each in self.with_names(compilation, (
                each for each in decisions if each.kind == "created")) if name not in fixed}
        return self._sizes[key]

    def with_names(
        self, compilation: Compilation, decisions: Iterable[SymbolDecision],
    ) -> Iterator[tuple[str, SymbolDecision]]:
        """Yield the sizes and numbers of decisions, in the user's words, with these."""
        names = self.stack_names(compilation)
        for decision in decisions:
            for name in sources_in_words(decision.source, names):
                yield name, decision

    def changes(self, compilation: Compilation) -> tuple[Change, ...]:
        """Return the changes since each version was compiled, most informative first; none for a first compilation."""
        return self._changes[compilation.compile_id.key]

    def _completed(self, compilation: Compilation, change: Change) -> Change:
        """Return the change with what the new version says: the value, or the keyword arguments that it got."""
        if (view := self._view(change)):
            return replace(change, subject=view, was=(A_VIEW,) * len(change.was), now="no view")
        known = self.version_of(change.failures[0].entry) if is_read_by_place(change.subject) else None
        if known is not None:
            change = replace(change, subject=known.keys.named(change.subject))
        if "the same object" in change.was:  # (of an enumeration, whose members the guards name)
            was, now = self._expected(change), self._value(compilation.compile_id, change.subject)
            if "the same object" not in was and now not in ("", *was):
                return replace(change, was=was, now=now)
        if change.before == "there":
            change = self._moved(compilation, change)
        elif "there" in change.was:
            change = replace(change, was=self._expected(change))
        if not change.now and change.before and is_literal(change.before):
            names = self.stack_names(compilation)
            # (else the number that it was when the compilation left it open)
            now = self._value(compilation.compile_id, change.subject) or next((
                each.value for each in compilation.symbols if each.kind == "created" and is_literal(each.value)
                and change.subject in sources_in_words(each.source, names)), "")
            if now not in ("", change.before):
                change = replace(change, now=now)
        if change.subject != "len(kwargs)" or not (change.now.isdigit() and change.was[0].isdigit()):
            return change
        new, old = self.version(compilation), self.version_of(change.failures[0].entry)
        if new is None or old is None:
            return change
        return replace(change, keywords=keywords(old, new, int(change.now) - int(change.was[0])))

    def _moved(self, compilation: Compilation, change: Change) -> Change:
        """Return the change of an attribute that torch found in another dictionary of its module, with its values."""
        new = self.version(compilation)
        facts = new.facts if new is not None else {}
        known = facts.get(f"type({change.subject})", facts.get(change.subject))
        now = self._value(compilation.compile_id, change.subject) or (known.text if known is not None else "")
        if not now and any(f"{change.subject}." in fact for fact in facts):
            now = "a module" if any(f"{change.subject}._modules" in fact for fact in facts) else "another object"
        now = now or change.now
        was = self._expected(change)
        if set(was) == {now}:
            return replace(change, now=ELSEWHERE)
        return change if now == "missing" else replace(change, was=was, now=now)

    def _expected(self, change: Change) -> tuple[str, ...]:
        return tuple(self._value(failure.entry, change.subject) or was
                     for was, failure in zip(change.was, change.failures))

    def _view(self, change: Change) -> str:
        """Return the argument that is no view of a tensor, where versions read the sizes of that tensor; else ``""``.

        (Torch compares those sizes without asking whether there is such a tensor.)
        """
        if not is_without_tensor(change.subject):
            return ""
        known = (self.version_of(failure.entry) for failure in change.failures)
        views = [{view for each in (version.conditions if version else ())
                  for view, found, _ in [f"{each.subject}.".partition("._base.")] if found} for version in known]
        return min(views[0]) if len(views[0]) == 1 and all(each == views[0] for each in views) else ""

    def _value(self, compile_id: model.CompileId | None, subject: str) -> str:
        """Return the value that a version wants of something; ``""`` where it names none."""
        version = self.version_of(compile_id)
        fact = version.facts.get(subject) if version is not None else None
        return fact.text if fact is not None and fact.kind == "value" else ""

    # --- versions ---------------------------------------------------------------------------------
    def version(self, compilation: Compilation) -> Version | None:
        """Return the version that was compiled, with its guards; ``None`` where none was."""
        return self.version_of(compilation.compile_id)

    def version_of(self, compile_id: model.CompileId | None) -> Version | None:
        """Return the version with an id, with its guards; ``None`` where it is not known."""
        frame, entry = self.entries.get(compile_id.key, (None, None)) if compile_id is not None else (None, None)
        return next((each for each in self._versions_of(frame) if each.entry is entry), None) if frame else None

    def versions_beside(self, compilation: Compilation) -> Sequence[Version]:
        """Return all versions of the frame that was compiled, in the order in which they were compiled."""
        return self._versions_of(frame) if (frame := self.frame_of(compilation)) is not None else ()

    def _versions_of(self, frame: Frame) -> Sequence[Version]:
        if id(frame) not in self._versions:
            self._versions[id(frame)] = versions(frame, self.capture)
        return self._versions[id(frame)]

    def _compared(self, compilation: Compilation) -> tuple[Version, Version, list[VersionChange]] | None:
        """Return the version that a recompile is compared with, as in the full code, what was compiled, and changes."""
        key = compilation.compile_id.key
        if key not in self._known_changes:  # (each version is compared with all before it)
            new = self.version(compilation)
            old = nearest(new, self._versions_of(new.frame)) if new is not None and compilation.guard_failures else None
            self._known_changes[key] = (old, new, version_differences(old, new, self.stack_names(compilation))) \
                if new is not None and old is not None else None
        return self._known_changes[key]

    def _others(self, compilation: Compilation) -> list[VersionChange]:
        """Return in what a version differs from the earlier one most like it, besides what failed."""
        names = self.stack_names(compilation)
        # (A variable of a closure has its name in a change, and its place in the guards.)
        reported = {subject for change in self.changes(compilation) for subject in (
            change.subject, *(in_words(failure.subject, names) for failure in change.failures))}
        compared = self._compared(compilation)
        return [each for each in (compared[2] if compared else ()) if each.subject not in reported]

    def besides(self, compilation: Compilation) -> str:
        """Return in what else a version differs from the earlier one most like it, as a clause; ``""`` for nothing."""
        compared = self._compared(compilation)
        return as_row(*compared[:2], self._others(compilation)) if compared is not None else ""

    def new_in_each(self, compilations: Iterable[Compilation]) -> list[str]:
        """Return what each of several versions wants another value of than all before it, besides what failed."""
        def is_new(new: Version, subject: str) -> bool:
            known = [each.facts.get(subject) for each in self._versions_of(new.frame)[: new.number + 1]
                     if not each.failed]
            texts = [each.text for each in known if each is not None and each.kind == "value"]
            return len(texts) == len(known) and texts.index(texts[-1]) == len(texts) - 1

        found = [[other.subject for other in self._others(each) if is_new(new, other.subject)]
                 for each in compilations if (new := self.version(each)) is not None]
        return [each for each in found[0] if all(each in others for others in found)] if len(found) > 1 else []

    def range_of(self, compilation: Compilation, source: str) -> Interval:
        """Return the range that the guards of the compiled code leave for something open."""
        version = self.version(compilation)
        return range_left(version.sizes, version.conditions, user_expression(source)) if version else Interval()

    def condition_of_inductor(self, failure: GuardFailure) -> SymbolDecision | None:
        """Return the condition of Inductor's that failed; ``None`` where another did, or if unknown."""
        failed = self._failed_condition(failure)
        return failed if failed is not None and is_made_by_inductor(failed) else None

    def _failed_condition(self, failure: GuardFailure) -> SymbolDecision | None:
        version = self.version_of(failure.entry)
        compilation = version.compilation if version is not None else None
        return failed_condition(failure, compilation, self.stack_names(compilation)) if compilation else None

    def line_guarded_for(self, failure: GuardFailure) -> model.SourceLocation | None:
        """Return the user's line because of which torch guards what failed; ``None`` where no record has it.

        Of a condition on sizes torch names one line, that of its own layer if the size was first used there. The record
        of the symbol has the user's line that calls the layer.
        """
        if (failed := self._failed_condition(failure)) is not None:  # (torch names the line of the size's first use)
            if is_made_by_inductor(failed):
                return None
            if failed.location is not None and not self._is_torchs(failed.location.filename):
                return failed.location
        if failure.cause is None or not self._is_torchs(failure.cause.filename):
            return failure.cause
        version = self.version_of(failure.entry)
        compilation = version.compilation if version is not None else None
        if compilation is None:
            return None
        names = self.stack_names(compilation)
        subject = in_words(failure.subject, names)
        return next((each.location for each in compilation.symbols
                     if each.kind == "created" and each.source and in_words(each.source, names) == subject
                     and each.location is not None and not self._is_torchs(each.location.filename)), None)

    def _is_torchs(self, filename: str) -> bool:
        """Return whether a path is of a library's file, as it is or as torch shortens it: ``nn/modules/sparse.py``."""
        return is_library(filename) or filename in self._short_paths_of_torch

    @cached_property
    def _short_paths_of_torch(self) -> frozenset[str]:
        return frozenset(short_path_of_torch(lines.filename) for compilation in self.capture.compilations
                         for lines in compilation.traced if is_library(lines.filename))

    def decisions(self, compilation: Compilation) -> list[SymbolDecision]:
        """Return the decisions on symbols; that of `mark_unbacked` is on the size of an argument, like others."""
        given = {each.name: each.source for name in self.graph_names(compilation) if name in self.graphs
                 for each in self.graphs[name].inputs if each.source}
        return [replace(each, kind="created", source=given[each.symbol])
                if each.kind == "unbacked" and each.symbol in given else each for each in compilation.symbols]

    def symbols_in(self, graph: str) -> frozenset[str]:
        """Return the names of symbols in the texts of a graph."""
        if graph not in self._symbols:
            stages = self.graphs[graph].stages if graph in self.graphs else ()
            self._symbols[graph] = frozenset(word for stage in stages for word in symbols_in(stage.text))
        return self._symbols[graph]

    def short_place(self, location: model.SourceLocation) -> str:
        """Return ``model.py:12``, with as much of the path as distinguishes the files of the run."""
        return f"{self.short.get(location.filename, location.filename)}:{location.line}"

    def fate_of(self, resume_name: str) -> str:
        """Return a resume function's fate: ``compiled``, ``plain``, ``failed``, ``unreached`` or ``unknown``."""
        frame = self.frames.get(resume_name)
        if frame is None:
            return "unknown"
        if frame.entries:
            return "compiled"
        compiled = {entry.compile_id.frame_key for each in self.frames.values() for entry in each.entries}
        of_it = [c for c in self.capture.compilations
                 if frame.may_be_of(c.function, c.location) and c.compile_id.frame_key not in compiled]
        lost = {c.compile_id.frame_key for c in of_it}
        if not lost:
            return "plain" if frame.asked else "unreached"
        alike = _only_asked([each for each in self.frames.values()
                             if not each.entries and frame.may_be_of(each.code_name, each.location)])
        if frame not in alike:
            return "unreached"  # (the other branch was given up)
        if len(lost) < len(alike):
            return "unknown"
        return "failed" if all(c.outcome == "failed" for c in of_it) else "plain"

    def knows_code(self, compilation: Compilation) -> bool:
        """Return whether the transformed code was recorded, and with it what it continues in."""
        entry = self.entry(compilation)
        return entry is not None and entry.transformed.known


def _only_asked(frames: list[Frame]) -> list[Frame]:
    """Return those of the frames that torch was asked to compile; all where it is not known of any."""
    return [frame for frame in frames if frame.asked] or frames


# --- Pieces of graphs that a backend split, and compiled again for other sizes when called, as vLLM does ---------
# The first time a backend compiles a piece within the compilation of a frame, later by a direct call of a compiler:
#
#     __compiled_fn_1.submod_0                 a piece, for every x.shape[0]
#     compile_fx_1        Again(graph, {"s77": "4"})
#     compile_fx_2        Again(graph, {"s77": "8"})
#
# Such a graph has the operations, names and user lines of exactly one piece.
@frozen
class Again:
    """A piece that was compiled again: the graph, and the values of sizes that the piece has open, by torch's names."""

    graph: CompiledGraph
    sizes: dict[str, str]


def pieces_of(graphs: Iterable[CompiledGraph]) -> dict[str, list[CompiledGraph]]:
    """Return the pieces of each graph that its backend split, by the name of the graph."""
    return fold((graph for graph in graphs if graph.piece_of), lambda graph: graph.piece_of)


def _operations(stage: model.GraphStage) -> Any:
    graph = read_graph(stage.text)
    return (tuple(each.name for each in graph.inputs),
            tuple((node.name, " ".join(node.value.split()), node.location) for node in graph.nodes
                  if node.op not in ("placeholder", "output")))


def _sizes(piece: CompiledGraph, graph: CompiledGraph) -> dict[str, str]:
    """Return the values of the sizes that the inputs of a piece have open and those of the graph have not."""
    stages = piece.captured, next((each for each in graph.stages if each.stage == "Forward_graph"), None)
    types = [[each.type.shape if each.type is not None else None for each in read_graph(stage.text).inputs]
             for stage in stages if stage is not None]
    if len(types) != 2 or len(types[0]) != len(types[1]):
        return {}
    sizes = fold((pair for before, now in zip(*types) for pair in zip(before or (), now or ()) if is_symbol(pair[0])),
                 lambda pair: pair[0])
    return {symbol: pairs[0][1] for symbol, pairs in sizes.items() if len(set(pairs)) == 1 and pairs[0][1].isdigit()}
