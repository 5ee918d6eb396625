"""The connections in the records of a run: the facts of ``index.md`` and the page."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from ..records.model import (
    CacheEntry,
    Capture,
    Compilation,
    CompiledFunction,
    CompiledGraph,
    CompileId,
    Frame,
    GraphBreak,
    GuardFailure,
    SourceLocation,
)
from ..torch_text.libraries import is_library
from ..torch_text.resumes import plain_name, resumed_function
from ..torch_text.size_names import SYMBOL
from ..torch_text.user_expressions import user_expression
from .causes import in_two_steps
from .changes import Change, Circumstances, advice, changes, in_words
from .dump.guards.versions import Version, by_compile_id, versions
from .index.further import MOST, Difference, as_row, bounds, further, in_sentence, keywords
from .markdown import code, one_line, some
from .user_source import UserSource
from .words import on_branch

#: In torch's reasons and failures: what differs between two of the same kind.
VALUES = re.compile(r"0x[0-9a-f]+|(?<![\w.])-?\d+(?:\.\d+)?(?:e[+-]?\d+)?(?!\w)|'[^']*'")


#: Files of wrappers that torch.compile itself puts around a function.
_OF_DYNAMO = re.compile(r"torch[\\/]_dynamo[\\/]")
#: Files through which torch calls a function of the user's.
_OF_TORCH = re.compile(r"torch[\\/](?:_dynamo[\\/]|nn[\\/]modules[\\/]module\.py$)")
#: Files that another than the user wrote.
_INSTALLED = re.compile(r"[\\/](?:site|dist)-packages[\\/]")
#: An item of a list: versions differ in what it holds.
_HELD = re.compile(r"\[(?:\d+|[i-n])\]$")
#: Versions that failed at once that are compared with what was compiled then.
_COMPARED = 4
#: Recompiles of a function that are looked at for it.
_LOOKED_AT = 12
#: What a call cannot keep by itself: it is what a tensor is like.
_OF_A_TENSOR = re.compile(r"\.shape\[|\.dtype$|\.device$|\.requires_grad$")


@dataclass
class Unit:
    """A function with everything that was compiled of it: itself and what continues after its graph breaks.

    Attributes:
        name: as in texts and files.
        title: in the user's words.
        location: of the function that the user means.
        wrappers: what it is called through, outermost first.
    """

    name: str
    title: str
    location: SourceLocation | None
    wrappers: tuple[SourceLocation, ...] = ()
    function: CompiledFunction | None = None
    compilations: list[Compilation] = field(default_factory=list)

    @classmethod
    def of_function(cls, function: CompiledFunction) -> Unit:
        first = function.frames[0]
        return cls(function.name, first.title or function.name, first.location, first.wrappers, function)

    @classmethod
    def of_compilation(cls, compilation: Compilation) -> Unit:
        """A function that gave no code."""
        name, meant = plain_name(compilation.function), compilation.user_function
        if meant is None:
            return cls(name, name, compilation.location)
        return cls(name, meant.name, meant.location, meant.wrappers)

    @property
    def done(self) -> list[Compilation]:
        return [c for c in self.compilations if c.outcome == "compiled"]

    @property
    def recompiles(self) -> list[Compilation]:
        return recompiles(self.compilations)

    @property
    def file(self) -> str:
        return self.function.file if self.function else ""


class Story:
    """A capture, with its records tied together.

    Attributes:
        graphs: by name.
        entries: the frame and the cache entry of a compilation, by its ``key``.
        frames: by the name that code calls them.
        units: the functions, in the order of their first compilation.
        unit_of: the function of a compilation, by its ``key``.
        short: the shortest ends of paths that tell the files from each other.
        source: what the texts of the user's files say.
    """

    def __init__(self, capture: Capture) -> None:
        self.capture = capture
        self.graphs: dict[str, CompiledGraph] = {graph.name: graph for graph in capture.graphs}
        self.entries: dict[tuple[int, int, int], tuple[Frame, CacheEntry]] = {}
        self.frames: dict[str, Frame] = {}
        self.units: list[Unit] = []
        self.unit_of: dict[tuple[int, int, int], Unit] = {}
        self.source = UserSource(capture.sources)
        self._versions: dict[int, list[Version]] = {}  # by the identity of their frame
        self._of_functions: dict[tuple[int, int], Circumstances] = {}
        self._words: dict[str, frozenset[str]] = {}
        self._tie()
        self.short = short_names(_files(capture))

    def _tie(self) -> None:
        of_compilation: dict[tuple[int, int, int], tuple[CompiledFunction, Frame]] = {}
        of_frame: dict[tuple[int, int], tuple[CompiledFunction, Frame]] = {}
        of_code: dict[tuple[str, str, int], tuple[CompiledFunction, Frame]] = {}
        for function in self.capture.functions:
            for frame in function.frames:
                self.frames.setdefault(frame.name, frame)
                compiled = frame.wrappers[0] if frame.wrappers else frame.location
                if compiled:
                    of_code[(frame.code_name, compiled.filename, compiled.line)] = function, frame
                for entry in frame.entries:
                    self.entries[entry.compile_id.key] = frame, entry
                    of_compilation[entry.compile_id.key] = of_frame[entry.compile_id.frame_key] = function, frame
        units: dict[object, Unit] = {}
        for compilation in self.capture.compilations:
            place = compilation.location
            found = of_compilation.get(compilation.compile_id.key) or of_frame.get(
                compilation.compile_id.frame_key) or (
                place and of_code.get((compilation.function, place.filename, place.line)))
            if found and _same_function(found[1], compilation):
                unit = units.setdefault(id(found[0]), Unit.of_function(found[0]))
            else:
                unit = Unit.of_compilation(compilation)
                unit = units.setdefault((unit.title, unit.location and (unit.location.filename, unit.location.line),
                                         unit.wrappers), unit)
            unit.compilations.append(compilation)
            self.unit_of[compilation.compile_id.key] = unit
        for function in self.capture.functions:  # of a dump whose compilations are not known
            if id(function) not in units:
                units[id(function)] = Unit.of_function(function)
        self.units = list(units.values())
        _tell_apart(self.units)

    def entry(self, compilation: Compilation) -> CacheEntry | None:
        found = self.entries.get(compilation.compile_id.key)
        return found[1] if found else None

    def resume_names(self, compilation: Compilation) -> tuple[str, ...]:
        found = self.entry(compilation)
        return found.resume_names if found else ()

    def graph_names(self, compilation: Compilation) -> tuple[str, ...]:
        found = self.entry(compilation)
        return found.graph_names if found else ()

    def name_of(self, compilation: Compilation) -> str:
        """Its function in the user's words, as Markdown: ``Block.forward``, ``f`` from line 9 on."""
        unit = self.unit_of.get(compilation.compile_id.key)
        name = unit.title if unit else plain_name(compilation.function)
        place = unit.location if unit else compilation.location
        resumed, meant = resumed_function(compilation.function), compilation.user_function
        if resumed and meant is not None:
            name = meant.name  # (of a break in a function that was inlined)
        elif "." not in name and place is not None:
            name = self.source.name_at(place, name)
        shown = code(name or "a function that torch does not name")
        if not resumed:
            return shown
        frame = self.frame_of(compilation)
        return f"{shown} from line {resumed[1]} on{on_branch(frame.branch if frame else None)}"

    def frame_of(self, compilation: Compilation) -> Frame | None:
        """The frame that it compiled, as far as any compilation of it gave code."""
        known = self.entries.get(compilation.compile_id.key)
        return known[0] if known else self._frames_by_number.get(compilation.compile_id.frame_key)

    @cached_property
    def _frames_by_number(self) -> dict[tuple[int, int], Frame]:
        return {key[:2]: frame for key, (frame, _) in self.entries.items()}

    def stack_names(self, compilation: Compilation) -> dict[str, str]:
        """The user's expressions of the values that a resume function takes: ``{"___stack0": "self.log.append"}``."""
        found = self.frame_of(compilation)
        stack = found.stack if found else ()
        return {f"___stack{number}": text for number, text in enumerate(stack) if text}

    @cached_property
    def _changes(self) -> dict[tuple[int, int, int], tuple[Change, ...]]:
        known: dict[tuple[int, int], set[tuple[str, str]]] = {}
        return {c.compile_id.key: tuple(self._with_keywords(c, change) for change in changes(
            c, self.stack_names(c), known.setdefault(c.compile_id.frame_key, set())))
            for c in self.capture.compilations}

    def changes(self, compilation: Compilation) -> tuple[Change, ...]:
        """Return the changes since each version was compiled, the most telling first; none where nothing was compiled
        again."""
        return self._changes[compilation.compile_id.key]

    def _with_keywords(self, compilation: Compilation, change: Change) -> Change:
        """The change with the names of the keyword arguments, where their number changed."""
        if change.subject != "len(kwargs)" or not (change.now.isdigit() and change.was[0].isdigit()):
            return change
        new, old = self.version(compilation), self._version_of(change.failures[0].entry)
        if new is None or old is None:
            return change
        return replace(change, keywords=keywords(old, new, int(change.now) - int(change.was[0])))

    # --- versions ---------------------------------------------------------------------------------
    def version(self, compilation: Compilation) -> Version | None:
        """Return the version that was compiled, with its guards; ``None`` where none was."""
        return self._version_of(compilation.compile_id)

    def _version_of(self, compile_id: CompileId | None) -> Version | None:
        found = self.entries.get(compile_id.key) if compile_id else None
        if found is None:
            return None
        known = self._versions.get(id(found[0]))
        if known is None:
            known = self._versions[id(found[0])] = versions(found[0], by_compile_id(self.capture.compilations))
        return next((each for each in known if each.entry is found[1]), None)

    def _before(self, compilation: Compilation) -> tuple[Version, Version] | None:
        """The version that served last before a recompile (torch names it first), and what was compiled then."""
        new = self.version(compilation)
        old = self._version_of(compilation.guard_failures[0].entry) if new and compilation.guard_failures else None
        return (old, new) if old and new else None

    def _further(self, compilation: Compilation) -> list[Difference]:
        pair = self._before(compilation)
        told = {change.subject for change in self.changes(compilation)}
        return further(*pair, self.stack_names(compilation), told) if pair else []

    def besides(self, compilation: Compilation) -> str:
        """In what else the version that served before differs from what was compiled then, as a clause of Markdown;
        torch names the first difference alone. ``""`` where there is nothing else."""
        pair = self._before(compilation)
        return as_row(*pair, self._further(compilation)) if pair else ""

    # --- advice -----------------------------------------------------------------------------------
    def advices(self, compilations: Iterable[Compilation]) -> list[str]:
        """Return advice on how to spare torch compiling these again, as Markdown; each once."""
        compilations = list(compilations)
        texts = [advice(change, self._circumstances(compilation))
                 for compilation in compilations for change in self.changes(compilation)[:1]]
        found = list(dict.fromkeys(filter(None, texts)))
        others = dict.fromkeys(code(subject) for compilation in compilations[:_LOOKED_AT]
                               for subject in self._others(compilation))
        for change in (each for compilation in compilations for each in self.changes(compilation)[:1]):
            others.pop(code(change.subject), None)
        if found and others:
            found.append(f"that alone may not do: versions also differ in {some(list(others), MOST)}")
        return found

    def _others(self, compilation: Compilation) -> Iterator[str]:
        """Yield the other things that the failed versions differ in from the one compiled then, but for a tensor's
        properties."""
        new, found = self.version(compilation), self.changes(compilation)
        if new is None or not found[0].lasts:
            return
        for failure in compilation.guard_failures[:_COMPARED]:
            old = self._version_of(failure.entry)
            for each in further(old, new, self.stack_names(compilation), ()) if old else ():
                if not _OF_A_TENSOR.search(each.subject) and each.subject != "len(kwargs)":
                    yield _HELD.sub("[...]", each.subject)

    def _circumstances(self, compilation: Compilation) -> Circumstances:
        key = compilation.compile_id.frame_key
        if key not in self._of_functions:  # (the same for all versions of a function, of which there may be hundreds)
            self._of_functions[key] = Circumstances(
                self._fixed(compilation), {}, self._ranges(compilation), self._calls(compilation))
        known = self._of_functions[key]
        return replace(known, modules=self._of_modules(compilation, known.fixed),
                       in_library=self._is_called_by_library(compilation))

    def _of_frame(self, compilation: Compilation) -> list[Compilation]:
        return [c for c in self.capture.compilations if c.compile_id.frame_key == compilation.compile_id.frame_key]

    def _fixed(self, compilation: Compilation) -> dict[str, str]:
        """The sizes that a version of the same function holds for one value of, with the place that fixed them."""
        return {in_words(source, self.stack_names(each)): code(self.short_place(found.location))
                for each in self._of_frame(compilation)
                for found in each.symbols if found.kind == "fixed" and found.location is not None
                for source in found.source.split(", ") if source}

    def _of_modules(self, compilation: Compilation, fixed: Mapping[str, str]) -> dict[str, int]:
        """The fixed sizes that changed along with those of the tensors of ``self``: another module was called."""
        subjects = [change.subject for change in self.changes(compilation)[:1] if change.subject in fixed]
        if not subjects or not any(each.subject.startswith("self.") and ".shape[" in each.subject
                                   for each in self._further(compilation)):
            return {}
        modules = {tuple(one.text for one in version.conditions if one.tensor and one.root == "self")
                   for version in map(self.version, self._of_frame(compilation)) if version is not None}
        return dict.fromkeys(subjects, len(modules))

    def _ranges(self, compilation: Compilation) -> dict[str, str]:
        """The sizes that a version of the same function leaves open, with the range that its guards leave."""
        found = ((in_words(source, self.stack_names(each)), self.bounds(each, source))
                 for each in self._of_frame(compilation)
                 for decision in each.symbols if decision.kind == "created"
                 for source in decision.source.split(", ") if source)
        return {what: f"all sizes {in_sentence(known)}" for what, known in found if known}

    def bounds(self, compilation: Compilation, source: str) -> str:
        """The range that the guards of what was compiled leave for something open: ``"2 to 256"``."""
        version = self.version(compilation)
        return bounds(version, user_expression(source)) if version is not None else ""

    def words_of(self, graph: str) -> frozenset[str]:
        """The names of symbols in the texts of a graph."""
        if graph not in self._words:
            found = self.graphs.get(graph)
            self._words[graph] = frozenset(
                word for stage in (found.stages if found else ()) for word in SYMBOL.findall(stage.text))
        return self._words[graph]

    def _calls(self, compilation: Compilation) -> dict[str, str]:
        """Calls of bound methods whose arguments break the graph, written in two steps."""
        unit = self.unit_of.get(compilation.compile_id.key)
        found = (in_two_steps(broken) for each in (unit.compilations if unit else ()) for broken in each.breaks)
        return dict(filter(None, found))

    def _is_called_by_library(self, compilation: Compilation) -> bool:
        caller = next((place for place in reversed(compilation.stack) if not _OF_TORCH.search(place.filename)), None)
        return caller is not None and (is_library(caller.filename) or _INSTALLED.search(caller.filename) is not None)

    def short_place(self, location: SourceLocation) -> str:
        """``model.py:12``, with as much of the path as tells the files of the run apart."""
        return f"{self.short.get(location.filename, location.filename)}:{location.line}"

    def fate_of(self, resume_name: str) -> str:
        """Return the fate of a resume function: ``"compiled"``, ``"plain"`` (it runs in plain Python), ``"unreached"``
        (no call came there), or ``"unknown"``."""
        frame = self.frames.get(resume_name)
        if frame is None:
            return "unknown"
        if frame.entries:
            return "compiled"

        def same(code_name: str, place: SourceLocation | None) -> bool:
            return code_name == frame.code_name and (
                place is None or frame.location is None or
                (place.filename, place.line) == (frame.location.filename, frame.location.line))

        compiled = {entry.compile_id.frame_key for each in self.frames.values() for entry in each.entries}
        lost = {c.compile_id.frame_key for c in self.capture.compilations
                if same(c.function, c.location) and c.compile_id.frame_key not in compiled}
        if not lost:
            return "plain" if frame.asked else "unreached"
        alike = [each for each in self.frames.values() if not each.entries and same(each.code_name, each.location)]
        return "plain" if len(lost) >= len(alike) else "unknown"

    def knows_code(self, compilation: Compilation) -> bool:
        """Return whether the transformed code was recorded, and with it what it continues in."""
        found = self.entry(compilation)
        return found is not None and found.transformed.known


def _same_function(frame: Frame, compilation: Compilation) -> bool:
    """Return whether a compilation is of what the user means by a frame: several functions can share a wrapper."""
    meant = compilation.user_function
    return meant is None or not (meant.wrappers or frame.wrappers) or (meant.name, meant.location) == (
        frame.title, frame.location)


def _tell_apart(units: list[Unit]) -> None:
    """Name the wrapper in a unit's title where one was compiled without the function that it calls: both have its
    name."""
    titles: dict[str, list[Unit]] = {}
    for unit in units:
        titles.setdefault(unit.title, []).append(unit)
    for same in titles.values():
        for unit in same if len({unit.wrappers for unit in same}) > 1 else ():
            if unit.wrappers:
                own = [each for each in unit.wrappers if not _OF_DYNAMO.search(each.filename)]
                unit.title += f" (its wrapper {(own or unit.wrappers)[0].function})"


def _files(capture: Capture) -> Iterable[str]:
    for compilation in capture.compilations:
        places = [compilation.location, compilation.failure and compilation.failure.location]
        if compilation.user_function is not None:
            places += [compilation.user_function.location, *compilation.user_function.wrappers]
        places += [place for found in compilation.breaks for place in found.stack]
        places += [found.cause for found in compilation.guard_failures]
        places += [found.location for found in compilation.symbols]
        yield from (place.filename for place in places if place)
    for function in capture.functions:
        for frame in function.frames:
            yield from (place.filename for place in (frame.location, *frame.wrappers) if place)


def short_names(files: Iterable[str]) -> dict[str, str]:
    """The shortest ends of paths that tell the files from each other. A path that torch cut has the name of the file
    that it is the end of."""
    paths = dict.fromkeys(files)
    whole = {path: [other for other in paths if other.endswith(("/" + path, "\\" + path))] for path in paths}
    parts = {path: re.split(r"[\\/]", path) for path in paths if len(whole[path]) != 1}
    named = {}
    for path in parts:
        depth = 1
        while depth < len(parts[path]) and any(
                other != path and parts[other][-depth:] == parts[path][-depth:] for other in parts):
            depth += 1
        named[path] = "/".join(parts[path][-depth:])
    return {path: named[path] if path in named else named.get(whole[path][0], path) for path in paths}


# --- breaks ---------------------------------------------------------------------------------------
def breaks_by_reason(compilations: Iterable[Compilation]) -> list[list[tuple[GraphBreak, Compilation]]]:
    """The graph breaks, those of one reason together."""
    found: dict[tuple[str, str], list[tuple[GraphBreak, Compilation]]] = {}
    for compilation in compilations:
        for broken in compilation.breaks:
            found.setdefault((broken.registry_id, one_line(broken.reason)), []).append((broken, compilation))
    return list(found.values())


def breaks_by_place(
    group: Iterable[tuple[GraphBreak, Compilation]]
) -> list[list[tuple[GraphBreak, Compilation]]]:
    """Those of one reason, by place, by function, and by what was given up."""
    found: dict[object, list[tuple[GraphBreak, Compilation]]] = {}
    for broken, compilation in group:
        where, meant = broken.location, compilation.user_function
        # (One wrapper's name is that of many functions.)
        function = (meant.name, meant.wrappers[:1]) if meant is not None else plain_name(compilation.function)
        key = where and (where.filename, where.line), function, broken.skips_function
        found.setdefault(key, []).append((broken, compilation))
    return list(found.values())


def path_to(found: GraphBreak, compilation: Compilation) -> tuple[SourceLocation, ...]:
    """The stack from the user's function to the break; longer than one if functions were inlined."""
    meant = compilation.user_function
    path = path_from_frame(found, compilation)
    if meant is not None and meant.location is not None and meant.wrappers:
        for at, place in enumerate(path):
            if (place.function, place.filename) == (meant.location.function, meant.location.filename):
                return path[at:]
    return path


def path_from_frame(found: GraphBreak, compilation: Compilation) -> tuple[SourceLocation, ...]:
    """The stack from what torch compiled, which may be a wrapper."""
    stack = found.stack
    if 0 < found.depth <= len(stack):
        return stack[-found.depth :]
    own = plain_name(compilation.function)
    for at in range(len(stack) - 1, -1, -1):
        if plain_name(stack[at].function) == own and (
                compilation.location is None or stack[at].filename == compilation.location.filename):
            return stack[at:]
    return stack[-1:]


# --- recompiles -----------------------------------------------------------------------------------
def kind_of_failure(found: GuardFailure) -> str:
    """The text of the guard that failed, values left out."""
    text = one_line(found.text)
    for value in (found.expected, found.seen):
        if value and not value.isnumeric():
            text = text.replace(one_line(value), "_")
    return VALUES.sub(lambda m: m[0] if m[0] == f"'{found.source}'" or m[0] in found.source else "_", text)


def recompiles(compilations: Iterable[Compilation]) -> list[Compilation]:
    """Compilations because no version matched. (At the limit nothing is compiled any more.)"""
    return [c for c in compilations if c.guard_failures and c.outcome != "limit"]


def recompile_reasons(compilation: Compilation) -> list[str]:
    """The guards that failed, values left out, each once."""
    return list(dict.fromkeys(kind_of_failure(found) for found in compilation.guard_failures))


def recompiles_by_reason(unit: Unit) -> list[list[Compilation]]:
    """Recompiles of a function, those of the same guards together."""
    groups: dict[object, list[Compilation]] = {}
    for compilation in unit.recompiles:
        kinds = recompile_reasons(compilation)
        groups.setdefault((compilation.function, tuple(kinds[:2])), []).append(compilation)
    return list(groups.values())


def failures_by_kind(members: Iterable[Compilation]) -> list[list[GuardFailure]]:
    """All failures of the guards, those that differ in values only together."""
    kinds: dict[str, list[GuardFailure]] = {}
    for compilation in members:
        for found in compilation.guard_failures:
            kinds.setdefault(kind_of_failure(found), []).append(found)
    return list(kinds.values())


# --- what was not compiled ------------------------------------------------------------------------
def not_compiled(compilations: Iterable[Compilation]) -> list[list[Compilation]]:
    """Compilations that gave no code, those of one function and reason together."""
    groups: dict[object, list[Compilation]] = {}
    for compilation in compilations:
        if compilation.outcome == "compiled":
            continue
        place = compilation.location
        reason = compilation.failure.reason.partition("\n")[0] if compilation.failure else ""
        groups.setdefault((compilation.outcome, compilation.function, place and (place.filename, place.line),
                           VALUES.sub("_", reason)), []).append(compilation)
    return list(groups.values())
