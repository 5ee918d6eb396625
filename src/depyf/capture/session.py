"""A session: all that is on while ``prepare_debug`` is on.

A session builds records of what the hooks of ``torch_private`` report. Each is appended to the log as soon as it is
complete, so that a killed run leaves what it had. It keeps no object of torch's alive but code objects; an error in
here is reported once and never reaches the program.
"""

from __future__ import annotations

import functools
import importlib.util
import linecache
import os
import threading
import traceback
import weakref
from collections.abc import Callable
from dataclasses import replace
from types import CodeType, FrameType, ModuleType
from typing import Any

from .. import budgets, guarded, reading
from ..guarded import guarded_call, warn_of
from ..records import model as records
from ..records import naming
from ..records.run_directory import environment
from ..records.store import GENERATOR, STANCES, UNDER_STANCE, Recorded, RecordLog
from ..torch_text import events, trace_table
from ..torch_text.libraries import is_library
from ..torch_text.modules import module_calls
from ..torch_text.trace_table import Has
from ..torch_text.wrapping import legal_graph
from . import forked
from .codes import Codes, names_without_ids
from .fact_snapshot import snapshot
from .graphs import GraphBuilder, Graphs
from .import_hook import when_imported
from .torch_private import (
    compiled_callables,
    current_compilation,
    frame_values,
    graph_modules,
    hooks,
    pipeline,
    private_api,
    resume_code,
    trace_events,
)
from .user_function import Meant, meant_by_frame, record_of

_OURS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "")  #: The folder of this package.
#: What records graphs when torch makes them, by their stages or the names by which torch shows them.
_SEEN_BY = {
    "Captured_Graph": "captured graphs", naming.OF_EXPORTS[naming.EXPORTED]: "exports",
    naming.BEFORE_PRE_GRAD: "graphs that a backend shows", naming.POST_SPLIT: "graphs that a backend shows"}


class Session:
    """Watches from :meth:`start` to :meth:`end`; :meth:`capture` has the records until :meth:`close`."""

    def __init__(
        self, writer: Any, linker: Any = None, *, internal_stages: bool = False,
        caches: str = "separate", log_bytecode: bool = False, at_once: bool = False,
    ) -> None:
        # write and link transformed code as soon as Dynamo made it, where this torch does not take other code later
        self.at_once = at_once or log_bytecode
        # a `views.dump.directory.Directory`; a `Folder` where all files are made later
        self.writer = writer
        self.linker = linker  # a `link.linker.Linker`; `None` to link nothing
        self.internal_stages = internal_stages  # record torch's internal graphs, too
        # `"separate"` (default) separates entries of torch's compile caches that are made under the tool, so that they
        # always contain the graphs (and uses no cache up to torch 2.8, whose entries do not); `"bypass"` uses no cache;
        # `"use"` changes nothing, and graphs that a cache entry lacks are missing
        self.caches = caches
        self.log_bytecode = log_bytecode  # pass code objects to the writer
        self.notes: list[str] = []
        self.unread: list[Recorded[records.UnreadEvent]] = []
        self._unread_count = 0  # (those of graphs without a name are not recorded yet)
        self.lock = threading.RLock()
        self.undo: list[hooks.Undo] = []
        self.on: set[str] = set()  # what could be switched on
        self.lacking: list[private_api.PrivateApi] = []
        self.log = RecordLog(writer.path, self._unrecorded)
        full_path = trace_events.full_paths(lambda: self.codes.known_files())
        self.events = events.EventReader(trace_events.interned_string, full_path, self.log)
        self.graphs = Graphs(self.log, writer, linker, self.attempt)
        self.codes = Codes(self.log, writer.names, self.events, self.attempt, self.note)
        #: While Dynamo traces, by ``CompileId.key``: the attempt, and the lines that it came to, by file.
        self.tracing: dict[tuple[int, int, int], tuple[int, dict[str, set[int]]]] = {}
        self.process = os.getpid()
        self._sources: tuple[records.SourceFile, ...] = ()
        self._ending = records.EndOfRecording({}, ())
        self.warned = False
        self.stopped = False  # a hook that another tool wrapped cannot be taken back: it does nothing from then on

    # --- life -------------------------------------------------------------------------------------
    def start(self) -> None:
        """Install every hook that this torch allows; notes say what is not captured without the others.

        Hooks on what only some backends use are installed when torch imports the module that defines a name.
        """
        safely = self._safely
        for what, first, install in (
            ("compilation inside compiled frames", None, hooks.never_compile),
            ("traced lines", None, lambda: hooks.on_traced_line(safely(self._on_line))),
            ("resume functions of closures", None, lambda: resume_code.install(self._report)),
            ("frames without tensors", None, lambda: hooks.on_frame(safely(self._on_frame))),
            ("generator functions", None, lambda: hooks.on_generator(safely(self._on_generator))),
            ("transformed code", None, lambda: hooks.on_bytecode(safely(self._on_bytecode))),
            ("graphs of the structured trace", None, lambda: trace_events.on_trace(
                safely(self._on_trace), safely(self._wanted, failed=True))),
            ("captured graphs", None, lambda: hooks.on_captured_graph(
                safely(self._before_backend), safely(self._after_backend))),
            ("graphs that a backend shows", None, lambda: hooks.on_shown_graph(safely(self._on_shown_graph))),
            ("stances", None, lambda: hooks.on_stance(safely(self._on_stance))),
            ("caches", None, lambda: pipeline.watch_caches(self.caches, self.note)),
            ("linking of aot_eager graphs", private_api.AOT_GRAPHS, lambda: hooks.on_aot_graph(
                safely(self._before_aot), safely(self._on_aot_graph))),
            ("exports", private_api.EXPORT, lambda: hooks.on_export(
                safely(current_compilation.begin_export), safely(self._on_export))),
            ("kernels", private_api.KERNEL_MODULE, lambda: hooks.on_kernel_module(safely(self._on_kernel))),
            ("Inductor's operations before fusion", private_api.UNFUSED, lambda: self._watch_operations(
                private_api.UNFUSED, "IR before fusion")),
            ("Inductor's operations after fusion", private_api.FUSED, lambda: self._watch_operations(
                private_api.FUSED, "IR after fusion")),
            ("entries of caches", private_api.POST_GRAD_KEPT, lambda: (
                pipeline.bypass_poor_caches(self.note) if self.caches == "separate" else None)),
        ):
            module = first.first_place[0] if first is not None else ""
            if module and importlib.util.find_spec(module) is not None:  # (of a package that is imported)
                self.undo.append(when_imported(module, functools.partial(self._install, what, install)))
            else:
                self._install(what, install)

    def _install(self, what: str, install: Callable[[], hooks.Undo | None], imported: ModuleType | None = None) -> None:
        try:
            undo = install()
        except private_api.MissingPrivateApi:
            return  # the notes say so at the end
        except Exception as error:  # this torch does it in another way: that artefact only
            self.note(f"not captured with this torch: {what} ({type(error).__name__}: {error})")
            return
        if undo is not None:
            self.undo.append(undo)
        self.on.add(what)

    def detach(self) -> None:
        """Take back every hook."""
        while self.undo:
            undo = self.undo.pop()
            try:
                undo()
            except Exception as error:
                self.note(f"a hook could not be taken back ({type(error).__name__}: {error})")

    def end(self, options: tuple[str, ...] = ()) -> None:
        """Take back the hooks and complete the file of records; ``options`` as of ``EndOfRecording``."""
        self.lacking = self.attempt(hooks.missing, [])
        for api in self.lacking:
            self.note(f"this torch has no {api.name}; lost: {api.lost}")
        self.detach()
        self.stopped = True
        with self.lock:
            for graph in self.graphs.all():
                self.attempt(lambda: self._print_uncompiled(graph), None)
            self.graphs.name_the_rest()
            if note := self.attempt(lambda: events.unread_note(map(self.log.read, self.unread)), ""):
                self.note(note)
            self._complete(options)

    def close(self) -> None:
        """Close the file of records."""
        self.log.close()

    def note(self, text: str) -> None:
        """Add a line to the notes of the run, unless it is there."""
        if text not in self.notes:
            self.notes.append(text)

    # --- safety -----------------------------------------------------------------------------------
    def _safely(self, function: Callable[..., Any], failed: Any = None) -> Callable[..., Any]:
        """Return the function as a hook, which returns ``failed`` for an error, and is off in a judged call."""

        def hook(*args: Any) -> Any:
            if self.stopped or os.getpid() != self.process:
                return None
            try:
                if forked.is_judging():
                    return None
                with self.lock, guarded.paused():
                    return function(*args)
            except private_api.MissingPrivateApi:
                return None  # said when the session began
            except Exception as error:
                self._report(error)
                return failed

        return hook

    def attempt(self, action: Callable[[], Any], otherwise: Any) -> Any:
        """Run an action and return its result; where it raises, report that and return ``otherwise``."""
        return guarded_call(action, otherwise, self._report)

    def _report(self, error: Exception) -> None:
        self.note(f"internal error: {type(error).__name__}: {error}")
        if not self.warned:
            self.warned = True
            warn_of(error, "the dump lacks what was being written")

    def _unrecorded(self, error: Exception) -> None:
        """Note that a record could not be appended; where the disk is not the reason, report that."""
        self.writer.records_lack = True
        if not isinstance(error, OSError):
            self._report(error)

    def _on_line(self, filename: str, line: int) -> None:
        ids = self._compile_id()
        if ids is None:
            return
        known = self.tracing.get(ids.key)
        if known is None or known[0] != ids.attempt:  # tracing began again
            known = self.tracing[ids.key] = ids.attempt, {}
        known[1].setdefault(filename, set()).add(line)

    def _compile_id(self) -> records.CompileId | None:
        """Return the compilation that this thread is in."""
        current = current_compilation.compile_id()
        return self.events.compile_id(*current) if current is not None else None

    # --- graphs -----------------------------------------------------------------------------------
    def _graph(self, new: bool = False) -> GraphBuilder:
        """Return the graph that this thread works on: of a frame, or of a call of a compiler without one."""
        ids = self._compile_id()
        if ids is None:
            return self.graphs.graph_of_call(current_compilation.current())
        number = None if new else current_compilation.aot_number()
        known = self.graphs.aot_graph(ids, number)
        if known is not None:
            return known
        graph = self.graphs.current(ids, new)
        if not graph.torch_name and not graph.stages:
            graph.torch_name = current_compilation.name_of_graph()
        if graph.module is not None and not graph.name and not new:  # its backend is at work
            graph = self.attempt(lambda: self._piece(graph), graph)
        if number is not None:
            self.graphs.of_aot_number[number] = graph
        return graph

    def _piece(self, whole: GraphBuilder) -> GraphBuilder:
        """Return the piece of a graph that its backend compiles now; the graph itself where it is compiled whole."""
        piece = current_compilation.piece()
        if piece is None:
            return whole
        graph = self.graphs.piece(whole, piece.name)
        if not graph.stages:
            sources = {each.name: each.source for each in self.graphs.inputs(whole)}
            self._add_captured(graph, piece.module, tuple(
                records.GraphInput(name, sources.get(argument, ""))
                for (name, _), argument in zip(graph_modules.graph_inputs(piece.module), piece.arguments)))
        return graph

    def _before_backend(self, gm: Any, backend: Any) -> None:
        if self.caches == "separate" and "caches" in self.on:
            self.attempt(lambda: pipeline.separate_caches_of_lines(gm), None)
        ids = self._compile_id()
        if ids is not None and current_compilation.is_without_frame():
            self.events.without_frame(ids)
            graph = self.graphs.graph_of_call(current_compilation.current(), ids)
        else:
            graph = self._graph(new=True)
        graph.torch_name = current_compilation.name_of_graph(gm)
        graph.backend = compiled_callables.backend_name(backend)
        inputs = self.attempt(lambda: graph_modules.graph_inputs(gm), [])
        self._add_captured(graph, gm, tuple(records.GraphInput(*each) for each in inputs))

    def _add_captured(self, graph: GraphBuilder, gm: Any, inputs: tuple[records.GraphInput, ...]) -> None:
        """Record a graph, or a piece of one, as the backend is given it."""
        graph.module = weakref.ref(gm)
        text = self._text(graph_modules.readable(gm))
        calls = self.attempt(lambda: graph_modules.calls_into_torch(gm), ())
        self.graphs.add_stage(
            graph, "Captured_Graph", text, modules=module_calls(graph_modules.node_modules(gm)), inputs=inputs,
            callers=calls)

    def _after_backend(self, gm: Any, compiled: Any) -> None:
        graph = self._graph()
        if self.linker is not None and getattr(compiled, "__self__", compiled) is gm:
            # The graph runs as it was captured. (The module is released once the file is written.)
            self.graphs.runs(graph, "Captured_Graph", gm)

    def _text(self, printed: str) -> str:
        """Return torch's print of a graph as it is recorded: as Python, where a file of it is written at once."""
        return legal_graph(printed) if self.writer.writes else printed

    def _before_aot(self, stages: frozenset[str]) -> None:
        if private_api.READABLE_GRAPH.present():  # (otherwise there is torch's own print, in its trace)
            self._graph().printed_later = stages

    def _on_aot_graph(self, stage: str, gm: Any, compiled: Any) -> None:
        graph = self._graph()
        # What runs takes its arguments as one list: the text is that form.
        text = self._text(graph_modules.readable(gm))
        if not self.graphs.has(graph, stage, text):
            self.graphs.add_stage(graph, stage, text)
        if graph.later is not None and graph.later[0] == stage:
            graph.later = None
        if graph_modules.interprets(compiled):
            self.note("this torch interprets the graphs of aot_eager: no breakpoint in their files is hit")
        elif compiled is not None:
            self.graphs.runs(graph, stage, gm)

    def _print_uncompiled(self, graph: GraphBuilder) -> None:
        """Note a graph that was not compiled while depyf watched; record it where it was to be printed then."""
        if graph.later is not None:
            stage, text = graph.later
            self.graphs.add_stage(graph, stage, self._text(text))
        elif self.graphs.has_forward_kernel_only(graph):
            stage = "Backward_graph"
        else:
            return
        graph.when_named(lambda: self.note(
            f"the {naming.graph_name(stage)} of {graph.name} was traced, but not compiled while depyf watched"))

    def _on_kernel(self, module: Any, path: str) -> None:
        try:
            text = reading.text(path, budgets.CODE)
        except OSError as error:
            self.note(f"a generated module could not be read: {error}")
            return
        self.graphs.add_kernel(self._graph(), text, path, module)

    # --- exports --------------------------------------------------------------------------------------
    def _on_export(self, call: current_compilation.CompilerCall, program: Any, error: Exception | None) -> None:
        """Record what an export returned, or why it failed."""
        graph = self.graphs.graph_of_call(call)
        if error is not None:
            places = [records.SourceLocation(each.filename, each.lineno or 0, each.name, each.line or "")
                      for each in traceback.extract_tb(error.__traceback__)
                      if not (is_library(each.filename) or each.filename.startswith(_OURS))]
            self.graphs.add_facts(graph, issues=(trace_table.export_failure(
                type(error).__name__, str(error), places[-1] if places else None),))
        elif program is not None:
            name, text = naming.OF_EXPORTS[naming.EXPORTED], self._text(str(program))
            if not self.graphs.has(graph, naming.shown_stage(name), text):
                self._add_shown(graph, name, text)

    # --- graphs that a backend shows -----------------------------------------------------------------
    def _on_shown_graph(self, frame: FrameType) -> None:
        """Record a graph that was passed to ``lazy_format_graph_code``; of torch's own those without an event."""
        shown = hooks.shown_graph(frame)
        if shown is None:
            return
        name, gm, caller = shown
        internal = caller.startswith("torch.") and name not in naming.SHOWN_BY_TORCH
        if not hasattr(gm, "print_readable") or internal and (naming.is_traced(name) or not self.internal_stages):
            return
        if internal:
            name = graph_modules.without_ids(name)
        graph, text = self.graphs.find(gm) or self._graph(), self._text(graph_modules.readable(gm))
        if self.internal_stages or name != naming.BEFORE_PRE_GRAD or not self.graphs.has(graph, "Captured_Graph", text):
            self._add_shown(graph, name, text, internal)

    def _add_shown(self, graph: GraphBuilder, name: str, text: str, internal: bool = False) -> None:
        self.graphs.add_stage(graph, naming.shown_stage(name), text, internal, shown_as=naming.shown_name(name))

    def _watch_operations(self, api: private_api.PrivateApi, name: str) -> hooks.Undo | None:
        """Record Inductor's operations, each time that it logs them by a function, as a stage of a name; on request."""

        def record(text: Callable[[], str]) -> None:
            self._add_shown(self._graph(), name, f"{self._text(text()).rstrip()}\n")

        return hooks.on_operations(api, self._safely(record)) if self.internal_stages else None

    def show(self, name: str, shown: Any, of: Any = None) -> None:
        """Record a graph module or a text as a stage (:func:`depyf.stage`)."""
        self._safely(self._show)(name, shown, of)

    def _show(self, name: str, shown: Any, of: Any) -> None:
        graph = self.graphs.find(shown if of is None and not isinstance(shown, str) else of)
        if graph is None and of is None:
            graph = self._graph()
        lacking = f"depyf.stage({naming.shown_name(name)!r}) is not recorded: "
        if graph is None:
            self.note(f"{lacking}no graph of this run is {of if isinstance(of, str) else 'the one given'}")
            return
        try:
            text = f"{shown.rstrip()}\n" if isinstance(shown, str) else self._text(graph_modules.readable(shown))
        except Exception as error:  # the backend's graph
            self.note(f"{lacking}the graph cannot be printed ({type(error).__name__}: {error})")
            return
        self._add_shown(graph, name, text)

    # --- torch's trace ----------------------------------------------------------------------------
    def _wanted(self, event: str, artifact: str) -> trace_events.Wanted:
        what, stage = trace_table.row(artifact or event, event == "artifact")
        if what == Has.REPEATED or _SEEN_BY.get(stage) in self.on:
            return False
        if what in (Has.INNER, Has.AROUND, Has.ALSO_SHOWN):
            return self.internal_stages
        if artifact == trace_table.WITHOUT_PAYLOAD and not self.internal_stages:
            return "metadata"
        if stage == "Forward_graph" and self._is_printed_later(stage):
            return "metadata"
        if what == Has.OBJECT:
            return "object"
        return "payload" if what == Has.GRAPH and event != "artifact" else True

    def _is_printed_later(self, stage: str) -> bool:
        return stage in ("Forward_graph", "Backward_graph") and stage in self._graph().printed_later

    def _on_trace(self, metadata: dict[str, Any], payload: Any) -> None:
        if current_compilation.is_exporting():
            metadata = {name: value for name, value in metadata.items() if name not in events.OF_A_FRAME}
        # (An error in depyf loses no more than the variables at a break, or the arguments: the event is read after it.)
        self.events.feed(
            metadata, payload, frame_values.seen_in_recompiled_frame,
            lambda: (frame_values.stack(), self.attempt(frame_values.values, ())), current_compilation.callers,
            lambda: record_of(self._meant(frame.code, frame)) if (
                frame := current_compilation.compiled_frame()) is not None else None,
            compiled_callables.options_of_inductor, lambda: self.attempt(current_compilation.arguments, None))
        if name := trace_table.unread_name(metadata):
            self._on_unread(name, metadata, payload)
            return
        what, stage = trace_table.row_of(metadata)
        if what == Has.GRAPH and self._is_printed_later(stage):
            if isinstance(payload, str) and payload:  # (of a backward graph, which is compiled only if it runs)
                self._graph().later = stage, payload
        elif "frame_id" in metadata:
            self._on_event_of_frame(metadata, payload)
        else:
            if issue := self.events.export_issue(metadata):
                self.graphs.add_facts(self._graph(), issues=(issue,))
            if current_compilation.compile_id() is not None:
                return
            if isinstance(payload, str):
                self._on_text(metadata, payload)
            metrics = metadata.get("compilation_metrics")
            if isinstance(metrics, dict) and (found := events.phases(metrics)) and (
                    graph := self.graphs.at_work(current_compilation.current())) is not None:
                self.graphs.add_facts(graph, phases=found)

    def _on_event_of_frame(self, metadata: dict[str, Any], payload: Any) -> None:
        ids = self.events.compile_id(
            metadata["frame_id"], metadata.get("frame_compile_id") or 0, metadata.get("attempt") or 0)
        if "compilation_metrics" in metadata or "bwd_compilation_metrics" in metadata:  # it is over
            if tracing := self.tracing.pop(ids.key, None):
                self.events.traced(ids.key, _in_order(tracing[1]))
            self.events.ended(ids)
        if isinstance(payload, str):
            if "dynamo_cpp_guards_str" in metadata:
                self.codes.guarded_by(ids, payload)
            self._on_text(metadata, payload)

    def _on_unread(self, name: str, metadata: dict[str, Any], payload: Any) -> None:
        """Record an event that nothing here reads, with the graph that is being compiled; a file of it on request."""
        ids = self._compile_id()
        graph = self.graphs.aot_graph(ids, current_compilation.aot_number()) or self.graphs.begun(ids) if ids else None
        self._unread_count += 1
        event = events.unread_event(name, metadata, payload, ids, self._unread_count)
        if graph is None:
            self.unread.append(self.log.append(event))
            return
        graph.when_named(lambda: self.unread.append(self.log.append(replace(event, graph=graph.name))))
        if self.internal_stages:
            self._add_shown(graph, name, event.text, True)

    def _on_text(self, metadata: dict[str, Any], payload: str) -> None:
        """Record what the text of an event is: facts about a graph, or a stage of it."""
        (what, stage), text = trace_table.row_of(metadata), trace_table.text_of(metadata, payload)
        if what == Has.OF_GRAPH:
            self.graphs.add_facts(self._graph(), **trace_table.graph_facts(trace_table.name_of(metadata), payload))
        if not text.stage or _SEEN_BY.get(stage) in self.on or text.internal and not self.internal_stages:
            return
        graph = None
        if text.internal and self._compile_id() is None:
            graph = self.graphs.at_work(current_compilation.current())
        graph, printed = graph or self._graph(new=text.stage == "Captured_Graph"), self._text(payload)
        if what == Has.DUMP or not self.graphs.has(graph, text.stage, printed):
            self.graphs.add_stage(graph, text.stage, printed, text.internal, shown_as=text.shown_as)

    # --- transformed code -------------------------------------------------------------------------

    def _on_bytecode(self, original: CodeType, transformed: CodeType) -> CodeType | None:
        ids = self.events.compile_id(*(current_compilation.compile_id() or (-1, self.codes.count(), 0)))
        frame = current_compilation.compiled_frame()
        meant = self._meant(original, frame)
        resumes = resume_code.resume_functions(transformed, frame.namespace if frame is not None else {})
        graph_names = [name for name in transformed.co_names if graph_modules.GRAPH_NAME.match(name)]
        new = [name for name in graph_names if name not in self.graphs.names]
        for torch_name, graph in zip(new, self.graphs.unnamed(ids)):
            self.graphs.name(graph, torch_name, is_called=True)
        # By what names its text shows torch's own globals.
        shown = {name: self.graphs.names.get(name, name) for name in graph_names} | names_without_ids(transformed)
        shown |= {name: first for name, first in self.codes.shown_resumes(resumes).items()
                  if name != first and first not in transformed.co_names}
        facts = "" if frame is None else self.attempt(lambda: snapshot(transformed, frame.values, frame.namespace), "")
        code, bytecode = self.codes.add(
            ids, original, transformed, meant, tuple(shown[name] for name in graph_names), resumes, shown, facts)
        if self.at_once:
            running = self._written_at_once(original, transformed, bytecode, meant)
            if running is not None:
                code.running = weakref.ref(running)
            return running
        if self.linker is not None:
            self.linker.link_when_debugging(original, transformed, bytecode, self.writer.path_of(bytecode.file))
        return None

    def _written_at_once(
        self, original: CodeType, transformed: CodeType, bytecode: records.Bytecode, meant: Meant,
    ) -> CodeType | None:
        """Write and link transformed code; return what is to run for it, unless that is torch's own."""
        from ..decompiler.dynamo.facts import Facts  # (with files="later" nothing is decompiled)
        from ..finishing.frames import code_text
        from ..finishing.texts import decompiled_bytecode

        compilation = self.events.compilation(bytecode.compile_id)
        breaks = compilation.breaks if compilation is not None else ()
        decompiled = decompiled_bytecode(bytecode, transformed, self.attempt)
        arguments = transformed.co_varnames[: transformed.co_argcount + transformed.co_kwonlyargcount]
        text = records.TransformedCode(
            bytecode.compile_id, bytecode.function_name, code_text(decompiled), None, arguments, bytecode.file)
        place = self.attempt(lambda: self.writer.transformed(text, record_of(meant), breaks), None)
        linked = None
        if place is not None and self.linker is not None:
            facts = self.attempt(lambda: Facts(bytecode.facts), None) if bytecode.facts else None
            linked = self.linker.link_transformed(original, transformed, decompiled, place, bytecode.shown, facts)
        if self.log_bytecode:
            kinds = ("original", original), ("transformed", transformed), ("recompiled", linked or transformed)
            for kind, code in kinds:
                self.writer.code_object(os.path.basename(bytecode.file), kind, code)
        return linked

    def _meant(self, code: CodeType, frame: current_compilation.CompiledFrame | None) -> Meant:
        """Return the function that the user means by code that torch compiles; itself, where that cannot be known."""
        values, namespace = (frame.values, frame.namespace) if frame is not None else ({}, {})
        meant: Meant = self.attempt(lambda: meant_by_frame(code, values, namespace), Meant(code.co_name, code))
        return meant

    def _on_frame(self, code: CodeType, has_tensors: bool) -> None:
        self.codes.asked(code, has_tensors)

    def _on_generator(self, code: CodeType) -> None:
        if current_compilation.is_called_as_compiled():
            self.note(f"{GENERATOR}`{code.co_name}` at `{code.co_filename}:{code.co_firstlineno}` is one; its calls "
                      "run in plain Python, and under `fullgraph=True` they raise an exception")

    def _on_stance(self, stance: str) -> None:
        if stance in STANCES:
            self.note(f"{UNDER_STANCE}`{stance}`: meanwhile {STANCES[stance]}")

    # --- the whole --------------------------------------------------------------------------------
    def _complete(self, options: tuple[str, ...]) -> None:
        ids = self._compile_id()
        if ids is not None:  # the block was entered inside of the backend
            self.attempt(lambda: self.events.goes_on(ids), None)
        for key, (_, lines) in self.tracing.items():  # of compilations that did not end
            self.attempt(lambda: self.events.traced(key, _in_order(lines)), None)
        self.attempt(self.events.all_ended, None)
        self.attempt(self.codes.end, None)
        # Torch names no other files: those of the functions that it compiled, and all that it traced on the way.
        files = dict.fromkeys([*self.codes.own_files(), *self.events.files, *(
            each.call.filename for each in self.graphs.all() if each.call is not None)])
        # (Of files that are on no disk, as cells of notebooks, only the running program knows the texts.)
        texts = self.attempt(lambda: [(name, "".join(linecache.getlines(name))) for name in files
                                      if not os.path.exists(name)], [])
        self._sources = tuple(records.SourceFile(name, text) for name, text in texts if text)
        for source in self._sources:
            self.log.append(source)
        self._ending = records.EndOfRecording(self.attempt(lambda: trace_events.cut_paths(files), {}), options)
        self.attempt(lambda: self.log.end(self._ending, self.notes), None)

    def capture(self) -> records.Capture:
        """Return the records of a run that has ended. One that cannot be read is not in it, and is reported."""
        graphs = [self.attempt(lambda: self.graphs.record(graph), None) for graph in self.graphs.all()]
        return records.Capture(
            (), tuple(filter(None, graphs)), tuple(self.notes), self.attempt(environment, {}),
            self.attempt(self.events.compilations, ()), self._sources,
            self.attempt(lambda: self.codes.unwritten(self._ending), None),
            self.attempt(lambda: tuple(map(self.log.read, self.unread)), ()))


def _in_order(files: dict[str, set[int]]) -> tuple[records.TracedLines, ...]:
    ordered = ((name, sorted(line for line in files[name] if isinstance(line, int))) for name in sorted(files))
    return tuple(records.TracedLines(name, tuple(lines)) for name, lines in ordered if lines)
