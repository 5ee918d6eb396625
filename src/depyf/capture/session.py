"""What is on while ``prepare_debug`` is on.

A session listens (hooks of ``torch_private``), keeps drafts of records, and hands every text to its
``sink`` as soon as it is complete, so that a killed run leaves what it had.  Nothing of torch's is kept
alive but code objects; an error in here is reported once and never reaches the program.
"""

from __future__ import annotations

import ast
import dis
import inspect
import os
import re
import sys
import textwrap
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import CodeType
from typing import Any, Protocol

from ..decompiler import Decompiled, Fidelity, decompile_code
from ..output.naming import legal_identifier
from . import events, stages
from .attempt import Made, attempt
from .environment import environment
from .graphs import legal_graph
from .guards import GuardReader, unread_guards
from .modules import module_calls
from .records import (
    CacheEntry,
    Capture,
    CodeText,
    Compilation,
    CompiledFunction,
    CompiledGraph,
    CompileId,
    Frame,
    GraphStage,
    Guard,
    Kernel,
    ModuleCall,
    SourceLocation,
    TracedLines,
    TransformedCode,
)
from .sources import collect
from .store import CompiledCode
from .torch_private import hooks, touchpoints

_IMPORTS = re.compile(r"(?m)^(import|from) ")


class Sink(Protocol):
    """Where texts go; returns the path of the file, or ``None`` if there is none."""

    def graph(self, graph: str, stage: GraphStage) -> str | None: ...

    def kernel(self, graph: str, kernel: Kernel) -> str | None: ...

    def transformed(
        self, code: TransformedCode, location: SourceLocation | None
    ) -> tuple[str, int, str] | None:
        """``(path, line of the file at which the text begins, text of the file)``."""

    def code_object(self, name: str, kind: str, code: CodeType) -> None: ...

    def record(self, record: Any) -> None:
        """A record of a kind that :mod:`depyf.capture.store` writes, complete as far as the run has come."""


class GraphLinker(Protocol):
    """Ties running code to files (see ``depyf.link``)."""

    def link_transformed(
        self, original: CodeType, transformed: CodeType, decompiled: Decompiled,
        place: Any = None, rename: Any = None,
    ) -> CodeType | None: ...

    def link_graph(self, name: str, stage: str, target: Any, text: str, path: str) -> bool: ...


@dataclass
class _Graph:
    """A graph while its compilation goes on."""

    key: tuple[int, int, int]
    attempt: int
    backend: str = ""
    torch_name: str = ""
    name: str = ""
    stages: list[GraphStage] = field(default_factory=list)
    #: Stages that are printed once they are compiled: torch need not print them for its trace.
    printed_later: frozenset[str] = frozenset()
    kernels: list[Kernel] = field(default_factory=list)
    waiting: list[Callable[[], None]] = field(default_factory=list)


@dataclass
class _Compilation:
    """One transformed code."""

    ids: CompileId
    original: CodeType
    #: What torch runs. Torch lets go of a graph when nobody holds this code any more (torch/_dynamo/utils.py,
    #: ``CleanupManager``): we must not.
    running: weakref.ref[CodeType]
    text: TransformedCode
    graph_names: tuple[str, ...]
    resumes: tuple[tuple[str, CodeType], ...]
    title: str


class Session:
    """Watches from :meth:`start` to :meth:`stop`, which returns the :class:`Capture`.

    Args:
        sink: takes each text as it is complete.
        linker: ties running code to the files; ``None`` to link nothing.
        internal_stages: hand on torch's internal graphs too.
        caches: ``"separate"`` (default) keeps entries of torch's compile caches made under the tool apart,
            so that they always hold the graphs (and uses no cache up to torch 2.8, whose entries do not);
            ``"bypass"`` uses no cache; ``"use"`` changes nothing, and graphs that a cache entry lacks are missing.
        log_bytecode: hand code objects to the sink.
        unsimplified: decompile transformed code once more with nothing simplified (``TransformedCode.exact``).
    """

    def __init__(
        self, sink: Sink, linker: GraphLinker | None = None, *, internal_stages: bool = False,
        caches: str = "separate", log_bytecode: bool = False, unsimplified: bool = False,
    ) -> None:
        self.unsimplified = unsimplified
        self.sink = sink
        self.linker = linker
        self.internal_stages = internal_stages
        self.caches = caches
        self.log_bytecode = log_bytecode
        self.notes: list[str] = []
        self.lock = threading.RLock()
        self.undo: list[hooks.Undo] = []
        self.on: set[str] = set()  # what could be switched on
        self.lacking: list[touchpoints.Touchpoint] = []
        self.graphs: dict[tuple[int, int, int], list[_Graph]] = {}
        self.compilations: list[_Compilation] = []
        #: Those of each original by its id, and those that the sink has no record of, by ``CompileId.key``.
        self.by_original: dict[int, list[_Compilation]] = {}
        self.not_handed_on: dict[tuple[int, int, int], list[_Compilation]] = {}
        self.names: dict[str, str] = {}  # torch's name of a graph -> shown name
        self.taken: set[str] = set()
        #: By id: code objects that hold a dictionary (Dynamo makes such) cannot be hashed.
        self.resume_names: dict[int, tuple[CodeType, str]] = {}
        self.guard_texts: dict[tuple[int, int, int], str] = {}
        full_path = hooks.FullPaths(self._known_files)
        self.guard_reader = GuardReader(full_path)
        self.events = events.EventReader(hooks.interned_string, full_path)
        self.files: dict[tuple[Any, ...], str] = {}  # of graphs' stages and kernels
        #: Text of the graph just captured, from torch's trace, by ``CompileId.key`` and attempt.
        self.captured_texts: dict[tuple[int, int, int, int], str] = {}
        #: In which attempt Dynamo came to which lines, ``(file, line)``, by ``CompileId.key``.
        self.traced: dict[tuple[int, int, int], tuple[int, set[tuple[str, int]]]] = {}
        self.process = os.getpid()
        self.warned = False
        self.stopped = False  # a hook that another tool wrapped cannot be taken back: it falls silent
        self.spent = 0.0

    # --- life -------------------------------------------------------------------------------------
    def start(self) -> None:
        for what, install in (
            ("compilation inside compiled frames", lambda: hooks.never_compile("depyf")),
            ("traced lines", lambda: hooks.on_traced_line(self._safely(self._on_lines))),
            ("transformed code", lambda: hooks.on_bytecode(self._safely(self._on_bytecode))),
            ("graphs of the structured trace", lambda: hooks.on_trace(
                self._safely(self._on_trace), self._safely(self._wanted, failed=True))),
            ("captured graphs", lambda: hooks.on_captured_graph(
                self._safely(self._before_backend), self._safely(self._after_backend))),
            ("linking of aot_eager graphs", lambda: hooks.on_aot_graph(
                self._safely(self._before_aot), self._safely(self._on_aot_graph))),
            ("kernels", lambda: hooks.on_kernel_module(self._safely(self._on_kernel))),
            ("caches", self._watch_caches),
        ):
            try:
                undo = install()
            except touchpoints.MissingTouchpoint:
                continue  # the notes below say so
            except Exception as error:  # this torch does it in another way: that artefact only
                self.note(f"not captured with this torch: {what} ({type(error).__name__}: {error})")
            else:
                if undo is not None:
                    self.undo.append(undo)
                self.on.add(what)
        self.lacking = self.attempt(hooks.missing, [])
        for point in self.lacking:
            self.note(f"this torch has no {point.name}; lost: {point.lost}")

    def _watch_caches(self) -> hooks.Undo | None:
        if self.caches == "separate" and not hooks.keeps_post_grad_graphs():
            self.note("torch's compile caches were not used: those of this torch do not hold the graphs after "
                      'Inductor\'s passes (caches="use" uses them, and such graphs are missing)')
            return hooks.bypass_caches()
        if self.caches == "separate":
            undo = hooks.separate_caches("depyf-1")
            self.note("torch's compile caches: entries made under depyf are kept apart from others, so that "
                      'they always hold the graphs (caches="separate")')
            return undo
        if self.caches == "bypass":
            self.note('torch\'s compile caches were not used (caches="bypass")')
            return hooks.bypass_caches()
        self.note('torch\'s compile caches were used as they are (caches="use"): graphs that an entry made '
                  "without depyf does not hold are missing")
        return None

    def detach(self) -> None:
        """Takes back every hook."""
        while self.undo:
            undo = self.undo.pop()
            try:
                undo()
            except Exception as error:
                self.note(f"a hook could not be taken back ({type(error).__name__}: {error})")

    def stop(self) -> Capture:
        self.detach()
        self.stopped = True
        with self.lock:
            for drafts in self.graphs.values():
                for draft in drafts:
                    if not draft.name:
                        self.attempt(lambda: self._name(
                            draft, f"__graph_of_frame_{draft.key[1]}_{draft.key[2]}"), None)
            return self._capture()

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    # --- safety -----------------------------------------------------------------------------------
    def _safely(self, function: Callable[..., Any], failed: Any = None) -> Callable[..., Any]:
        """The function as a hook: it never raises, and is silent in a forked child.

        Args:
            failed: what it returns where the function raised.
        """

        def hook(*args: Any) -> Any:
            if self.stopped or os.getpid() != self.process:
                return None
            begun = time.perf_counter()
            try:
                with self.lock:
                    return function(*args)
            except touchpoints.MissingTouchpoint:
                return None  # said when the session began
            except Exception as error:
                self._report(error)
                return failed
            finally:
                self.spent += time.perf_counter() - begun

        return hook

    def attempt(self, action: Callable[[], Made], otherwise: Made) -> Made:
        """What the action makes; where it raises, that is reported, and ``otherwise`` takes its place."""
        return attempt(action, otherwise, self._report)

    def _report(self, error: Exception) -> None:
        self.note(f"internal error: {type(error).__name__}: {error}")
        if not self.warned:
            self.warned = True
            try:
                warnings.warn(
                    f"depyf: an internal error ({type(error).__name__}: {error}); the program goes on, the dump "
                    "lacks what was being written", RuntimeWarning, stacklevel=2)
            except Exception:
                pass  # warnings may be errors here

    def _on_lines(self) -> Callable[[tuple[str, int]], None] | None:
        """What takes the lines of the attempt that begins or goes on: a plain ``set.add``, as there are thousands."""
        found = hooks.compile_id()
        if found is None:
            return None
        ids = self.events.compile_id(*found)
        known = self.traced.get(ids.key)
        if known is None or known[0] != ids.attempt:  # tracing began again
            known = self.traced[ids.key] = ids.attempt, set()
        return known[1].add

    # --- graphs -----------------------------------------------------------------------------------
    def _draft(self, new: bool = False) -> _Graph | None:
        found = hooks.compile_id()
        if found is None:
            return None
        ids = self.events.compile_id(*found)
        key, attempt = ids.key, ids.attempt
        drafts = self.graphs.setdefault(key, [])
        if drafts and not drafts[-1].name and drafts[-1].attempt != attempt:
            drafts.pop()  # tracing started again: what it had is void
        if not drafts or new and drafts[-1].stages:
            drafts.append(_Graph(key, attempt))
        return drafts[-1]

    def _before_backend(self, gm: Any, backend: Any) -> None:
        draft = self._draft(new=True)
        if draft is None:
            return
        draft.backend = hooks.backend_name(backend)
        # Torch's trace has printed it a moment ago.
        text = self.captured_texts.pop((*draft.key, draft.attempt), None)
        self._stage(draft, "Captured_Graph", text if text is not None else legal_graph(hooks.readable_graph(gm)),
                    modules=module_calls(hooks.node_modules(gm)))

    def _after_backend(self, gm: Any, compiled: Any) -> None:
        draft = self._draft()
        owner = getattr(compiled, "__self__", compiled)
        if draft is None or self.linker is None or owner is not gm:
            return
        # The graph runs as it was captured. (The module is let go once the file is written.)
        captured = [stage for stage in draft.stages if stage.stage == "Captured_Graph"]
        if captured:
            self._link(draft, captured[-1], gm)

    def _before_aot(self, stages: frozenset[str]) -> None:
        draft = self._draft()
        if draft is not None:
            draft.printed_later = stages

    def _on_aot_graph(self, stage: str, gm: Any, compiled: Any) -> None:
        draft = self._draft()
        if draft is None:
            return
        # What runs takes its arguments as one list: the text is that form.
        text = legal_graph(hooks.readable_graph(gm))
        known = [s for s in draft.stages if s.stage == stage]
        replaced = GraphStage(stage, known[-1].index if known else 0, text, False, self._ids(draft))
        if known:
            draft.stages[draft.stages.index(known[-1])] = replaced
            self._when_named(draft, lambda: self._write_stage(draft, replaced))
        else:
            self._stage(draft, stage, text)
            replaced = draft.stages[-1]
        if compiled is None:
            return
        if hooks.interprets(compiled):
            self.note("this torch interprets the graphs of aot_eager: no breakpoint in their files is hit")
        else:
            self._link(draft, replaced, gm)

    def _wanted(self, event: str, artifact: str) -> hooks.Wanted:
        if artifact in events.WITHOUT_PAYLOAD or self._is_printed_later(stages.EVENTS.get(event, "")):
            return "metadata"
        return event in events.EVENTS or artifact in events.ARTIFACTS or event == "dynamo_cpp_guards_str" \
            or event in stages.EVENTS or artifact in stages.ARTIFACTS \
            or (self.internal_stages and stages.may_be_internal(artifact))

    def _is_printed_later(self, stage: str) -> bool:
        draft = self._draft() if stage in ("Forward_graph", "Backward_graph") else None
        return draft is not None and stage in draft.printed_later

    def _on_trace(self, metadata: dict[str, Any], payload: Any) -> None:
        self.events.feed(metadata, payload, hooks.seen_in_recompiled_frame)
        if "frame_id" not in metadata:
            return
        compile_id = self.events.compile_id(
            metadata["frame_id"], metadata.get("frame_compile_id") or 0, metadata.get("attempt") or 0)
        if "compilation_metrics" in metadata or "bwd_compilation_metrics" in metadata:
            self._hand_on_records(compile_id)
        if not isinstance(payload, str):
            return
        if "dynamo_cpp_guards_str" in metadata:
            self.guard_texts[compile_id.key] = payload
            return
        stage, internal = stages.stage_of(metadata), False
        if not stage and self.internal_stages:
            stage, internal = stages.internal_stage_of(metadata, payload), True
        if not stage or not payload and self._is_printed_later(stage):
            return
        text = legal_graph(payload)
        if stage == "Captured_Graph" and "captured graphs" in self.on:
            self.captured_texts[(*compile_id.key, compile_id.attempt)] = text
            return
        draft = self._draft(new=stage == "Captured_Graph")
        if draft is None:
            return
        known = [s for s in draft.stages if s.stage == stage]
        if any(s.text == text for s in known):
            return
        self._stage(draft, stage, text, internal)

    def _hand_on_records(self, compile_id: CompileId) -> None:
        """A compilation is over: the sink gets all that is known of it, in case the process is killed."""
        compilation = self.events.compilation(compile_id)
        if compilation is not None:
            self.sink.record(compilation)
        for draft in self.graphs.get(compile_id.key, ()):
            if draft.name:
                self.sink.record(self._graph(draft))
        for found in self.not_handed_on.pop(compile_id.key, ()):
            self.sink.record(CompiledCode(
                found.text.function_name, found.original.co_name, _location(found.original), found.text,
                found.graph_names, tuple(name for name, _ in found.resumes),
                self.guard_texts.get(compile_id.key, "")))

    def _on_kernel(self, loaded: Any, path: str) -> None:
        draft = self._draft()
        if draft is None:
            return
        try:
            with open(path, encoding="utf-8") as file:
                text = file.read()
        except OSError as error:
            self.note(f"a generated module could not be read: {error}")
            return
        kernel = Kernel(len(draft.kernels), text, path, self._ids(draft))
        if any(k.path == path for k in draft.kernels):
            return
        draft.kernels.append(kernel)

        def write() -> None:
            written = self.sink.kernel(draft.name, kernel)
            self._written(draft, ("kernel", kernel.index), written)
            if written is not None and self.linker is not None:
                self.linker.link_graph(draft.name, f"kernel_{kernel.index}", loaded, text, written)

        self._when_named(draft, write)

    def _ids(self, draft: _Graph) -> CompileId:
        resets, frame, recompile = draft.key
        return CompileId(frame, recompile, draft.attempt, resets)

    def _stage(
        self, draft: _Graph, stage: str, text: str, internal: bool = False,
        modules: tuple[ModuleCall, ...] = (),
    ) -> None:
        index = sum(s.stage == stage for s in draft.stages)
        record = GraphStage(stage, index, text, internal, self._ids(draft), modules=modules)
        draft.stages.append(record)
        self._when_named(draft, lambda: self._write_stage(draft, record))

    def _write_stage(self, draft: _Graph, record: GraphStage) -> None:
        self._written(draft, (record.stage, record.index), self.sink.graph(draft.name, record))

    def _written(self, draft: _Graph, key: tuple[Any, ...], path: str | None) -> None:
        if path is not None:
            self.files[(id(draft), *key)] = os.path.basename(path)

    def _link(self, draft: _Graph, record: GraphStage, target: Any) -> None:
        def link() -> None:
            path = self.sink.graph(draft.name, record)
            self._written(draft, (record.stage, record.index), path)
            if path is not None and self.linker is not None:
                # The file as it stands on disk, header and all: its lines are what running code points at.
                # But for its imports: CPython compiles ``torch.sin(x)`` in another way where it can see that
                # ``torch`` was imported (compile.c, ``is_import_originated``), and torch's own text has none.
                with open(path, encoding="utf-8") as file:
                    text = _IMPORTS.sub(r"# \1 ", file.read())
                self.linker.link_graph(draft.name, record.stage, target, text, path)

        self._when_named(draft, link)

    @staticmethod
    def _when_named(draft: _Graph, action: Callable[[], None]) -> None:
        if draft.name:
            action()
        else:
            draft.waiting.append(action)

    def _name(self, draft: _Graph, torch_name: str) -> None:
        found = hooks.GRAPH_NAME.match(torch_name)
        base = shown = found.group(1) if found else torch_name
        count = 1
        while shown in self.taken:
            count += 1
            shown = f"{base}_{count}"
        self.taken.add(shown)
        draft.torch_name, draft.name = torch_name, shown
        self.names[torch_name] = shown
        waiting, draft.waiting = draft.waiting, []
        for action in waiting:
            self.attempt(action, None)

    # --- transformed code -------------------------------------------------------------------------
    def _on_bytecode(self, original: CodeType, transformed: CodeType) -> CodeType | None:
        found = hooks.compile_id() or (-1, len(self.compilations), 0)
        ids = self.events.compile_id(*found)
        names = transformed.co_names
        graph_names = [n for n in names if hooks.GRAPH_NAME.match(n)]
        drafts = [d for d in self.graphs.get(ids.key, ()) if not d.name]
        for torch_name, draft in zip([n for n in graph_names if n not in self.names], drafts):
            self._name(draft, torch_name)
        resumes = hooks.resume_functions(transformed, hooks.frame_globals())
        for name, resume in resumes.items():
            self.resume_names.setdefault(id(resume.code), (resume.code, name))
        rename = {n: self.names.get(n, n) for n in graph_names}
        rename.update(names_without_ids(transformed))
        # Each compilation gives a resume function a new name, but its code is the same: one name is shown.
        shown = {n: self.resume_names[id(resume.code)][1] for n, resume in resumes.items()}
        rename.update({n: first for n, first in shown.items() if n != first and first not in names})
        parameters = {n: resume.parameters for n, resume in resumes.items()}
        function_name = self._name_of(original)
        name = self._transformed_name(original, function_name)
        decompiled = self._decompiled(transformed, name, parameters, rename)
        source = code_text(decompiled)
        arguments = transformed.co_varnames[: transformed.co_argcount + transformed.co_kwonlyargcount]
        exact = None
        if self.unsimplified and source.fidelity == "equivalent":
            exact = code_text(decompile_code(transformed, name=name, rename=rename))
        record = TransformedCode(ids, function_name, source, exact, tuple(arguments))
        compilation = _Compilation(
            ids, original, weakref.ref(transformed), record, tuple(rename[n] for n in graph_names),
            tuple((rename.get(n, n), resume.code) for n, resume in resumes.items()),
            function_title(original, hooks.frame_locals()))
        self.compilations.append(compilation)  # whatever happens to its files
        self.by_original.setdefault(id(original), []).append(compilation)
        self.not_handed_on.setdefault(ids.key, []).append(compilation)
        running = transformed
        place = self.sink.transformed(record, _location(original))
        if place is not None:
            compilation.text = replace(record, file=os.path.basename(place[0]))
            if self.linker is not None:
                linked = self.linker.link_transformed(
                    original, transformed, decompiled, _place(*place), rename)
                if linked is not None:
                    running = linked
                    compilation.running = weakref.ref(linked)
        if self.log_bytecode:
            for kind, code in (("original", original), ("transformed", transformed), ("recompiled", running)):
                self.sink.code_object(os.path.basename(compilation.text.file) or function_name, kind, code)
        return None if running is transformed else running

    def _decompiled(
        self, code: CodeType, name: str, parameters: dict[str, tuple[str, ...]], rename: dict[str, str]
    ) -> Decompiled:
        """The source; where there is an error of ours, a text that says so. The compilation is shown either way."""
        try:
            return decompile_code(code, name=name, simplify=True, parameter_names=parameters, rename=rename)
        except Exception as error:
            self._report(error)
            listing = "".join(f"    # {line}\n" for line in dis.Bytecode(code).dis().splitlines())
            text = f"def {name}(*args, **kwargs):\n    # not decompiled; its bytecode:\n{listing}    ...\n"
            note = f"not decompiled: {type(error).__name__}: {error}"
            return Decompiled(text, Fidelity.UNPROVEN, note, ast.parse(text))

    def _name_of(self, code: CodeType) -> str:
        known = self.resume_names.get(id(code))
        return known[1] if known is not None else code.co_name

    def _transformed_name(self, original: CodeType, function_name: str) -> str:
        count = len(self.by_original.get(id(original), ()))
        return f"__transformed_code_{count}_for_{legal_identifier(function_name)}"

    # --- the whole --------------------------------------------------------------------------------
    def _capture(self) -> Capture:
        """The records. One that cannot be made is not in it, and that is reported."""
        originals = [compilations[0].original for compilations in self.by_original.values()]
        resumed_by: dict[int, list[CodeType]] = {}
        children: set[int] = set()
        for compilation in self.compilations:
            for _, code in compilation.resumes:
                resumed_by.setdefault(id(compilation.original), []).append(code)
                children.add(id(code))
        functions: list[CompiledFunction | None] = [
            self.attempt(lambda: self._function(code, resumed_by), None)
            for code in originals if id(code) not in children]
        graphs: list[CompiledGraph | None] = [
            self.attempt(lambda: self._graph(draft), None) for drafts in self.graphs.values() for draft in drafts]
        versions: dict[str, str] = self.attempt(environment, {})
        compilations: tuple[Compilation, ...] = self.attempt(self.events.compilations, ())
        compilations = tuple(
            self.attempt(lambda: self._with_lines(compilation), compilation) for compilation in compilations)
        capture = Capture(
            tuple(filter(None, functions)), tuple(filter(None, graphs)), tuple(self.notes), versions, compilations)
        return replace(capture, sources=self.attempt(lambda: collect(capture), ()))

    def _function(self, code: CodeType, resumed_by: dict[int, list[CodeType]]) -> CompiledFunction:
        """The function of a code object, with its resume functions."""
        frames, pending = [], [code]
        seen: set[int] = set()
        while pending:
            here = pending.pop(0)
            if id(here) in seen:
                continue
            seen.add(id(here))
            frames.append(self._frame(here))
            pending.extend(resumed_by.get(id(here), ()))
        return CompiledFunction(frames[0].name, tuple(frames))

    def _with_lines(self, compilation: Compilation) -> Compilation:
        _, traced = self.traced.get(compilation.compile_id.key, (0, set[tuple[str, int]]()))
        files: dict[str, list[int]] = {}
        for name, line in sorted(each for each in traced if isinstance(each[1], int)):
            files.setdefault(name, []).append(line)
        return replace(compilation, traced=tuple(TracedLines(name, tuple(lines)) for name, lines in files.items()))

    def _graph(self, draft: _Graph) -> CompiledGraph:
        def file(*key: Any) -> str:
            return self.files.get((id(draft), *key), "")

        return CompiledGraph(
            draft.name, draft.torch_name, self._ids(draft), draft.backend,
            tuple(replace(stage, file=file(stage.stage, stage.index)) for stage in draft.stages),
            tuple(replace(kernel, file=file("kernel", kernel.index)) for kernel in draft.kernels))

    def _frame(self, code: CodeType) -> Frame:
        entries = []
        order = self._entry_order(code)
        mine = self.by_original.get(id(code), ())
        for compilation in sorted(mine, key=lambda c: order.get(id(c.running() or c), len(order))):
            entries.append(CacheEntry(
                compilation.ids, self._guards(compilation.ids.key), compilation.text, compilation.graph_names,
                tuple(name for name, _ in compilation.resumes)))
        frame = make_frame(code, self._name_of(code), tuple(entries))
        return replace(frame, title=mine[0].title) if mine else frame

    def _entry_order(self, code: CodeType) -> dict[int, int]:
        order: dict[int, int] = {}
        try:
            for index, entry in enumerate(hooks.cache_entries(code)):
                running, ids, print_guards = hooks.entry_facts(entry)
                order[id(running)] = index
                key = self.events.compile_id(*ids).key if ids is not None else None
                if key is not None and key not in self.guard_texts:
                    self.guard_texts[key] = print_guards()
        except Exception as error:
            self.note(f"cache entries of {code.co_name} could not be read ({type(error).__name__}: {error})")
        return order

    def _known_files(self) -> list[Any]:
        files: list[Any] = [c.original.co_filename for c in self.compilations]
        return files + [getattr(module, "__file__", None) for module in list(sys.modules.values())]

    def _guards(self, key: tuple[int, int, int]) -> tuple[Guard, ...]:
        text = self.guard_texts.get(key, "")
        return self.attempt(lambda: self.guard_reader.read(text), unread_guards(text))


def readable_alone(text: str) -> str:
    """A captured variable that is assigned needs ``nonlocal``, which is not valid outside of its function."""
    return re.sub(r"(?m)^    nonlocal (.*)$", r"    global \1  # nonlocal: captured from the enclosing function", text)


#: Torch puts an object into the user's globals under a name with its id and the compile id
#: (torch/_dynamo/output_graph.py, ``install_global_by_id``).
_NAME_WITH_ID = re.compile(r"(?P<name>.*[^\W\d_])_\d{9,}_c\w+")


def names_without_ids(code: CodeType) -> dict[str, str]:
    """``{global name with an id that differs from run to run: the name without it}``."""
    taken = {*code.co_names, *code.co_varnames, *code.co_cellvars, *code.co_freevars}
    shown = {}
    for name in code.co_names:
        found = _NAME_WITH_ID.fullmatch(name)
        if found is not None and found["name"] not in taken:
            shown[name] = found["name"]
            taken.add(found["name"])
    return shown


def code_text(decompiled: Decompiled) -> CodeText:
    """A decompilation as it stands in a record."""
    return CodeText(readable_alone(decompiled.text), decompiled.fidelity.value, decompiled.note)


def _place(path: str, first_line: int, file_text: str) -> Any:
    from ..link import Place

    return Place(path, first_line, file_text)


def _location(code: CodeType) -> SourceLocation | None:
    return SourceLocation(code.co_filename, code.co_firstlineno, code.co_name)


def make_frame(code: CodeType, name: str, entries: tuple[CacheEntry, ...]) -> Frame:
    """The record of a frame's function: its own source text, or decompiled where it has none."""
    is_resume = hooks.is_resume(code)
    text, user = "", False
    if not is_resume:
        try:
            lines, start = inspect.getsourcelines(code)
            text = readable_alone(textwrap.dedent("".join(lines)))
            compile(text, code.co_filename, "exec", dont_inherit=True)
            user = True
        except (OSError, TypeError, SyntaxError, ValueError, IndexError):
            text = ""
    if text:
        original = CodeText(text, "exact")
    else:
        found = decompile_code(
            code, name=name if name.isidentifier() else None, simplify=is_resume, keep_variables=True)
        original = code_text(found)
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & 0x4) + bool(code.co_flags & 0x8)
    return Frame(name, code.co_name, _location(code), original, user, tuple(code.co_varnames[:count]),
                 tuple(code.co_freevars), entries, _signature(code))


def function_title(code: CodeType, arguments: Mapping[str, Any]) -> str:
    """``Conv.forward``: the class of a method, where the code or the object it was called on says it.

    Args:
        code: of the function.
        arguments: local variables of a call.
    """
    if hooks.is_resume(code):
        return ""
    name = str(getattr(code, "co_qualname", code.co_name)).rpartition("<locals>.")[2]
    if "." not in name and code.co_varnames[:1] == ("self",) and "self" in arguments:
        return f"{type(arguments['self']).__qualname__.rpartition('<locals>.')[2]}.{name}"
    return name if name != code.co_name else ""


def _signature(code: CodeType) -> str:
    """Parameters as they stand in a ``def``."""
    names = list(code.co_varnames)
    parts: list[str] = []
    for index in range(code.co_argcount):
        parts.append(names[index])
        if index + 1 == code.co_posonlyargcount:
            parts.append("/")
    at = code.co_argcount + code.co_kwonlyargcount
    if code.co_flags & 0x4:
        parts.append("*" + names[at])
        at += 1
    elif code.co_kwonlyargcount:
        parts.append("*")
    parts += names[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    if code.co_flags & 0x8:
        parts.append("**" + names[at])
    return ", ".join(parts)
