"""A session: all that is on while ``prepare_debug`` is on.

A session listens (hooks of ``torch_private``), keeps drafts of records, and hands every text to its
``sink`` as soon as it is complete, so that a killed run leaves what it had.  Nothing of torch's is kept
alive but code objects; an error in here is reported once and never reaches the program.
"""

from __future__ import annotations

import ast
import dis
import os
import threading
import time
import warnings
import weakref
from collections.abc import Callable
from dataclasses import replace
from types import CodeType
from typing import Any

from ..attempt import Made, attempt
from ..decompiler import Decompiled, Fidelity, decompile_code
from ..decompiler.dynamo.facts import RememberedFacts
from ..provenance.sources import collect
from ..records import stages
from ..records.environment import environment
from ..records.model import (
    Caller,
    Capture,
    Compilation,
    CompiledFunction,
    CompiledGraph,
    CompileId,
    GraphInput,
    TracedLines,
    TransformedCode,
    UserFunction,
)
from ..torch_text import events
from ..torch_text.legal import legal_graph
from ..torch_text.modules import callers, module_calls
from . import collector
from .caches import watch_caches
from .code_drafts import CodeDrafts
from .frames import code_text, names_without_ids, user_function
from .graph_drafts import GraphDraft, GraphDrafts
from .live_facts import LiveFacts
from .shelf import Kept, Shelf
from .sink import GraphLinker, Sink
from .torch_private import hooks, resume_factories, touchpoints
from .user_function import Meant, of_frame


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
        folder: what is complete is kept on its disk until the session ends (:mod:`depyf.capture.shelf`); ``None``:
            where temporary files are.
    """

    def __init__(
        self, sink: Sink, linker: GraphLinker | None = None, *, internal_stages: bool = False,
        caches: str = "separate", log_bytecode: bool = False, unsimplified: bool = False, folder: str | None = None,
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
        self.shelf = Shelf(folder)
        full_path = hooks.FullPaths(lambda: self.codes.known_files())
        self.events = events.EventReader(hooks.interned_string, full_path, shelf=self.shelf)
        self.graphs = GraphDrafts(sink, linker, self.shelf, self.attempt)
        self.codes = CodeDrafts(self.shelf, self.events, full_path, self.attempt, self.note)
        #: Text of the graph just captured, from torch's trace, by ``CompileId.key`` and attempt.
        self.captured_texts: dict[tuple[int, int, int, int], str] = {}
        #: In which attempt Dynamo came to which lines, ``(file, line)``, by ``CompileId.key``, while it traces.
        self.tracing: dict[tuple[int, int, int], tuple[int, set[tuple[str, int]]]] = {}
        self.traced: Kept[tuple[int, int, int], tuple[TracedLines, ...]] = Kept(self.shelf)
        self.process = os.getpid()
        self.warned = False
        self.stopped = False  # a hook that another tool wrapped cannot be taken back: it falls silent
        self.spent = 0.0

    # --- life -------------------------------------------------------------------------------------
    def start(self) -> None:
        for what, install in (
            ("compilation inside compiled frames", lambda: hooks.never_compile("depyf")),
            ("traced lines", lambda: hooks.on_traced_line(self._safely(self._on_lines))),
            ("resume functions of closures", lambda: resume_factories.install(self._report)),
            ("transformed code", lambda: hooks.on_bytecode(self._safely(self._on_bytecode))),
            ("graphs of the structured trace", lambda: hooks.on_trace(
                self._safely(self._on_trace), self._safely(self._wanted, failed=True))),
            ("captured graphs", lambda: hooks.on_captured_graph(
                self._safely(self._before_backend), self._safely(self._after_backend))),
            ("linking of aot_eager graphs", lambda: hooks.on_aot_graph(
                self._safely(self._before_aot), self._safely(self._on_aot_graph))),
            ("kernels", lambda: hooks.on_kernel_module(self._safely(self._on_kernel))),
            ("caches", lambda: watch_caches(self.caches, self.note)),
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
            self.graphs.name_the_rest()
            capture = self._capture()
            self.shelf.close()
            return capture

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
                with self.lock, collector.paused():
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
        """Run an action and return its result; where it raises, report that and return ``otherwise``."""
        return attempt(action, otherwise, self._report)

    def _report(self, error: Exception) -> None:
        self.note(f"internal error: {type(error).__name__}: {error}")
        if not self.warned:
            self.warned = True
            try:
                warnings.warn(
                    f"depyf: an internal error ({type(error).__name__}: {error}); the program continues, the dump "
                    "lacks what was being written", RuntimeWarning, stacklevel=2)
            except Exception:
                pass  # warnings may be errors here

    def _on_lines(self) -> Callable[[tuple[str, int]], None] | None:
        """Return the function that takes lines of the present attempt: a plain ``set.add``, for there are thousands."""
        found = hooks.compile_id()
        if found is None:
            return None
        ids = self.events.compile_id(*found)
        known = self.tracing.get(ids.key)
        if known is None or known[0] != ids.attempt:  # tracing began again
            known = self.tracing[ids.key] = ids.attempt, set()
        return known[1].add

    # --- graphs -----------------------------------------------------------------------------------
    def _draft(self, new: bool = False) -> GraphDraft | None:
        found = hooks.compile_id()
        return None if found is None else self.graphs.current(self.events.compile_id(*found), new)

    def _before_backend(self, gm: Any, backend: Any) -> None:
        draft = self._draft(new=True)
        if draft is None:
            return
        draft.backend = hooks.backend_name(backend)
        # Torch's trace has printed it a moment ago.
        text = self.captured_texts.pop((*draft.ids.key, draft.ids.attempt), None)
        if text is None:
            text = legal_graph(hooks.readable_graph(gm))
        nothing: list[tuple[str, str]] = []
        inputs = tuple(GraphInput(*each) for each in self.attempt(lambda: hooks.graph_inputs(gm), nothing))
        none: tuple[Caller, ...] = ()
        calls = self.attempt(lambda: callers(hooks.calls_into_torch(gm)), none)
        self.graphs.add_stage(
            draft, "Captured_Graph", text, modules=module_calls(hooks.node_modules(gm)), inputs=inputs, callers=calls)

    def _after_backend(self, gm: Any, compiled: Any) -> None:
        draft = self._draft()
        owner = getattr(compiled, "__self__", compiled)
        if draft is None or self.linker is None or owner is not gm:
            return
        # The graph runs as it was captured. (The module is let go once the file is written.)
        captured = draft.of_stage("Captured_Graph")
        if captured:
            self.graphs.link(draft, captured[-1], gm)

    def _before_aot(self, stages: frozenset[str]) -> None:
        draft = self._draft()
        if draft is not None:
            draft.printed_later = stages

    def _on_aot_graph(self, stage: str, gm: Any, compiled: Any) -> None:
        draft = self._draft()
        if draft is None:
            return
        # What runs takes its arguments as one list: the text is that form.
        record = self.graphs.replace_stage(draft, stage, legal_graph(hooks.readable_graph(gm)))
        if compiled is None:
            return
        if hooks.interprets(compiled):
            self.note("this torch interprets the graphs of aot_eager: no breakpoint in their files is hit")
        else:
            self.graphs.link(draft, record, gm)

    def _wanted(self, event: str, artifact: str) -> hooks.Wanted:
        if artifact in events.WITHOUT_PAYLOAD or self._is_printed_later(stages.EVENTS.get(event, "")):
            return "metadata"
        if event in events.OBJECTS:
            return "object"
        if event in stages.EVENTS:
            return "payload"
        return event in events.EVENTS or artifact in events.ARTIFACTS or event == "dynamo_cpp_guards_str" \
            or artifact in stages.ARTIFACTS \
            or (self.internal_stages and stages.may_be_internal(artifact))

    def _is_printed_later(self, stage: str) -> bool:
        draft = self._draft() if stage in ("Forward_graph", "Backward_graph") else None
        return draft is not None and stage in draft.printed_later

    def _on_trace(self, metadata: dict[str, Any], payload: Any) -> None:
        self.events.feed(
            metadata, payload, hooks.seen_in_recompiled_frame, hooks.stack_of_graph_break, hooks.callers,
            self._function_of_frame)
        if "frame_id" not in metadata:
            return
        compile_id = self.events.compile_id(
            metadata["frame_id"], metadata.get("frame_compile_id") or 0, metadata.get("attempt") or 0)
        if "compilation_metrics" in metadata or "bwd_compilation_metrics" in metadata:
            self._hand_on_records(compile_id)
        if not isinstance(payload, str):
            return
        if "dynamo_cpp_guards_str" in metadata:
            self.codes.guarded_by(compile_id, payload)
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
        if draft is not None and all(known.text != text for known in draft.of_stage(stage)):
            self.graphs.add_stage(draft, stage, text, internal)

    def _hand_on_records(self, compile_id: CompileId) -> None:
        """A compilation is over: the sink gets all that is known of it, in case the process is killed."""
        tracing = self.tracing.pop(compile_id.key, None)
        if tracing is not None:
            self.traced[compile_id.key] = _in_order(tracing[1])
        compilation = self.events.compilation(compile_id)
        if compilation is not None:
            self.sink.record(self._with_lines(compilation))
        for draft in self.graphs.named(compile_id):
            self.sink.record(draft.record())
        for code in self.codes.complete(compile_id):
            self.sink.record(code)

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
        self.graphs.add_kernel(draft, text, path, loaded)

    # --- transformed code -------------------------------------------------------------------------
    def _on_bytecode(self, original: CodeType, transformed: CodeType) -> CodeType | None:
        found = hooks.compile_id() or (-1, self.codes.count(), 0)
        ids = self.events.compile_id(*found)
        names = transformed.co_names
        graph_names = [n for n in names if hooks.GRAPH_NAME.match(n)]
        new = [n for n in graph_names if n not in self.graphs.names]
        for torch_name, draft in zip(new, self.graphs.unnamed(ids)):
            self.graphs.name(draft, torch_name)
        frame = hooks.compiled_frame()
        meant = self._meant(original, frame)
        resumes = hooks.resume_functions(transformed, frame.namespace if frame is not None else {})
        shown = self.codes.shown_resumes(resumes)
        rename = {n: self.graphs.names.get(n, n) for n in graph_names}
        rename.update(names_without_ids(transformed))
        rename.update({n: first for n, first in shown.items() if n != first and first not in names})
        parameters = {n: resume.parameters for n, resume in resumes.items()}
        name = self.codes.transformed_name(original, meant)
        frame_facts = None
        if frame is not None:
            frame_facts = RememberedFacts(LiveFacts(frame.values, frame.namespace), self.attempt)
        decompiled = self._decompiled(transformed, name, parameters, rename, frame_facts)
        source = code_text(decompiled)
        arguments = transformed.co_varnames[: transformed.co_argcount + transformed.co_kwonlyargcount]
        exact = None
        if self.unsimplified and source.fidelity == "equivalent":
            exact = code_text(decompile_code(transformed, name=name, rename=rename))
        record = TransformedCode(
            ids, self.codes.name_of(original, meant), source, exact, tuple(arguments),
            old_name=self.codes.old_name(original))
        code = self.codes.add(  # whatever happens to its files
            original, transformed, record, tuple(rename[n] for n in graph_names),
            tuple((rename.get(n, n), resume.code) for n, resume in resumes.items()), meant)
        running = recompiled = transformed
        compilation = self.events.compilation(ids)
        place = self.sink.transformed(
            record, user_function(meant), compilation.breaks if compilation is not None else (),
            self.codes.branch_of(original))
        if place is not None:
            self.codes.written(code, place[0])
            if self.linker is not None:
                link = original, transformed, decompiled, place, rename, frame_facts
                later = self.linker.link_when_debugging(*link)
                if not later or self.log_bytecode:
                    recompiled = self.linker.link_transformed(*link) or transformed
                if not later and recompiled is not transformed:
                    running = recompiled
                    code.running = weakref.ref(recompiled)
        if self.log_bytecode:
            file = os.path.basename(place[0]) if place is not None else record.function_name
            for kind, each in (("original", original), ("transformed", transformed), ("recompiled", recompiled)):
                self.sink.code_object(file, kind, each)
        if frame_facts is not None:
            frame_facts.release()
        return None if running is transformed else running

    def _meant(self, code: CodeType, frame: hooks.CompiledFrame | None) -> Meant:
        """The function that the user means by a code object that torch compiles; itself, where that cannot be told."""
        values, namespace = (frame.values, frame.namespace) if frame is not None else ({}, {})
        return self.attempt(lambda: of_frame(code, values, namespace), Meant(code.co_name, code))

    def _function_of_frame(self) -> UserFunction | None:
        frame = hooks.compiled_frame()
        return user_function(self._meant(frame.code, frame)) if frame is not None else None

    def _decompiled(
        self, code: CodeType, name: str, parameters: dict[str, tuple[str, ...]], rename: dict[str, str],
        facts: RememberedFacts | None,
    ) -> Decompiled:
        """The source; where there is an error of ours, a text that says so. The compilation is shown either way."""
        try:
            return decompile_code(
                code, name=name, simplify=True, parameter_names=parameters, rename=rename, facts=facts)
        except Exception as error:
            self._report(error)
            listing = "".join(f"    # {line}\n" for line in dis.Bytecode(code).dis().splitlines())
            text = f"def {name}(*args, **kwargs):\n    # not decompiled; its bytecode:\n{listing}    ...\n"
            note = f"not decompiled: {type(error).__name__}: {error}"
            return Decompiled(text, Fidelity.UNPROVEN, note, ast.parse(text))

    # --- the whole --------------------------------------------------------------------------------
    def _capture(self) -> Capture:
        """The records. One that cannot be made is not in it, and that is reported."""
        graphs: list[CompiledGraph | None] = [self.attempt(draft.record, None) for draft in self.graphs.all()]
        versions: dict[str, str] = self.attempt(environment, {})
        compilations: tuple[Compilation, ...] = self.attempt(self.events.compilations, ())
        compilations = tuple(
            self.attempt(lambda: self._with_lines(compilation), compilation) for compilation in compilations)
        functions: tuple[CompiledFunction, ...] = self.attempt(self.codes.functions, ())
        capture = Capture(
            functions, tuple(filter(None, graphs)), tuple(self.notes), versions, compilations)
        return replace(capture, sources=self.attempt(lambda: collect(capture), ()))

    def _with_lines(self, compilation: Compilation) -> Compilation:
        key = compilation.compile_id.key
        if key in self.tracing:
            return replace(compilation, traced=_in_order(self.tracing[key][1]))
        return replace(compilation, traced=self.traced.looked_at(key)) if key in self.traced else compilation


def _in_order(lines: set[tuple[str, int]]) -> tuple[TracedLines, ...]:
    files: dict[str, list[int]] = {}
    for name, line in sorted(each for each in lines if isinstance(each[1], int)):
        files.setdefault(name, []).append(line)
    return tuple(TracedLines(name, tuple(lines)) for name, lines in files.items())

