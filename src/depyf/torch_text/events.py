"""Events of torch's structured trace -> :class:`~depyf.records.model.Compilation` records.

The same events come from a running torch (``torch_private.trace_events.on_trace``) and from a log that ``TORCH_TRACE``
wrote (:mod:`depyf.capture.trace_log`), so they are read in one place. An event is a dictionary with one key that
names its kind, ``frame_id``, ``frame_compile_id`` and ``attempt``, and for some kinds a text, the payload
(torch/_logging/_internal.py, ``trace_structured``).

Data that an event lacks, because its torch is older or the log was cut off, is empty in the record.
"""

from __future__ import annotations

import itertools
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..reading import json_value
from ..records import model as records
from . import libraries, trace_table
from .met import IN_LOOP, frames_in
from .modules import cache_lookup

if TYPE_CHECKING:
    from ..records.store import RecordLog
    from .guard_failures import Seen

#: Fields of an event's metadata that say which compilation of a frame it is of.
OF_A_FRAME = ("frame_id", "frame_compile_id", "attempt")
#: Events inside of which the frame that is compiled can be seen.
_BEGINNING = ("dynamo_start", "artifact")
_CACHE = re.compile(r"(?P<cache>fx_graph(?:_bundled)?|aotautograd)_cache_(?P<outcome>hit|miss|bypass)")
#: Fields of ``CompilationMetrics`` (torch/_dynamo/utils.py) that are times, in microseconds, and their names here.
_PHASES = {
    "dynamo_cumulative_compile_time_us": "dynamo",
    "dynamo_compile_time_before_restart_us": "tracing before restarts",
    "aot_autograd_cumulative_compile_time_us": "AOTAutograd and backend",
    "inductor_cumulative_compile_time_us": "inductor",
    "pre_grad_pass_time_us": "pre-grad passes",
    "joint_graph_pass_time_us": "joint-graph passes",
    "post_grad_pass_time_us": "post-grad passes",
    "inductor_code_gen_cumulative_compile_time_us": "inductor code generation",
    "triton_compile_time_us": "kernel compilation",
    "async_compile_time_us": "waiting for kernels",
    "backward_cumulative_compile_time_us": "backward",
    "gc_time_us": "garbage collection",
    "structured_logging_overhead_us": "structured logging",
}
_COUNTS = {
    "guard_count": "guards", "graph_op_count": "operations", "graph_node_count": "nodes",
    "graph_input_count": "inputs", "cache_size": "cache_entries", "accumulated_cache_size": "all_cache_entries",
    "shape_env_guard_count": "shape_guards", "guard_latency_us": "guard_microseconds",
}
_SHORTEST = 0.001  #: Shorter ones are left out of the timeline, in seconds.
AT_HAND = 8  #: Number of finished compilations in memory: they nest, and a backward graph follows its forward graph.
#: The stack of a graph break, and the local variables there.
_Broken = tuple[Sequence[records.SourceLocation], tuple[records.NamedValue, ...]]
#: Name and place of a frame's function, and the user's function.
_Function = tuple[str, "records.SourceLocation | None", "records.UserFunction | None"]
AT_LIMIT = "FailOnRecompileLimitHit"  # (raised where `fullgraph=True` is set)
_LIMIT = rf"recompile limit exceeded|cache_size_limit|RecompileLimitExceeded|CacheLimitExceeded|{AT_LIMIT}"


def piece_compiled_by_vllm(metadata: Mapping[str, Any], payload: str) -> str:
    """Return the name of the piece of a graph, ``"submod_0"``, that vLLM begins to compile; ``""`` for other events.

    (vllm/compilation/piecewise_backend.py, ``_log_compile_start``)
    """
    about = metadata.get(trace_table.kind_of(metadata))
    name = str(about.get("name", "")) if isinstance(about, dict) else ""
    if name == "vllm_piecewise_compile_start":
        return str(json.loads(payload).get("submod_name") or "")
    return name.removeprefix("vllm_") if name.startswith(("vllm_submod_", "vllm_subgraph_")) else ""


def unread_event(
    name: str, metadata: Mapping[str, Any], payload: Any, compile_id: records.CompileId | None, number: int,
) -> records.UnreadEvent:
    """Return the record of an event that depyf does not read, without its graph."""
    about = metadata.get(trace_table.kind_of(metadata))
    text = payload if isinstance(payload, str) and payload else json.dumps(about, default=str)
    return records.UnreadEvent(name, text, compile_id, number=number)


def unread_note(events: Iterable[records.UnreadEvent]) -> str:
    """Return the note that counts the events which depyf does not read, by name; ``""`` for none."""
    names = Counter(each.name for each in events if each.name not in trace_table.EXECUTIONS)
    counts = (f"{name} ({number} times)" if number > 1 else name for name, number in sorted(names.items()))
    return f"events of torch's trace that depyf does not read, as they are in records.jsonl: {', '.join(counts)}" \
        if names else ""


class _Builder:
    """A compilation while its events arrive."""

    def __init__(self, known: records.Compilation) -> None:
        self.known = known  # its record but for the other attributes
        self.symbols = [*known.symbols]
        self.phases = [*known.phases]
        self.spans: list[records.Span | None] = [*known.timeline]
        # those that have no end yet, by thread: `(name, start, index in spans)`
        self.open_spans: dict[Any, list[tuple[str, float, int]]] = {}
        self.finished = known.outcome != "unknown"  # (then its backward graph is compiled now)
        self.guarded = known.outcome == "compiled"
        self.changed = True  # since its record was written
        self.goes_on = False  # it outlives the run

    def update(self, **fields: Any) -> None:
        """Set fields of the record."""
        self.known = replace(self.known, **fields)
        self.changed = True

    def record(self) -> records.Compilation:
        return replace(
            self.known, outcome=self._outcome(), failure=None if self.guarded else self.known.failure,
            symbols=tuple(self.symbols), phases=tuple(self.phases),
            timeline=tuple(span for span in self.spans if span is not None))

    def _outcome(self) -> str:
        failure = self.known.failure
        if self.guarded:
            return "compiled"
        if failure is None:
            if any(lookup.cache == trace_table.BUNDLED for lookup in self.known.caches):
                return "loaded"
            return "skipped" if self.finished else "open" if self.goes_on else "unknown"
        if re.search(_LIMIT, failure.reason) or re.search(_LIMIT, failure.kind):
            return "limit"
        skipped = failure.kind in ("SkipFrame", "SkipCodeRecursiveException") or any(
            broken.skips_function for broken in self.known.breaks)
        return "skipped" if skipped else "failed"


class EventReader:
    """Collects the data of the events on each compilation."""

    def __init__(
        self, string_of: Callable[[int], str] | None = None, full_path: Callable[[str], str] = str,
        spill: RecordLog | None = None,
    ) -> None:
        self._string_of = string_of  # the file name of torch's number of it, where no `str` event explains that
        self._strings: dict[int, str] = {}
        self._expressions: dict[Any, tuple[records.ExpressionStep, Sequence[Any]]] = {}  # by torch's number
        self._torch_folders: set[str] = set()
        self._full_path = full_path  # path as torch shortened it -> path (see `trace_events.full_paths`)
        self._spill = spill  # takes the records of finished compilations (`ended`), which then need not be in memory
        #: Those in memory, by ``CompileId.key``, the last used one last.
        self._builders: dict[tuple[int, int, int], _Builder] = {}
        #: All in the order in which they began, with the places of their records, if there is a spill.
        self._recorded: dict[tuple[int, int, int], Any] = {}
        #: By ``CompileId.frame_key``, interned.
        self._functions: dict[tuple[int, int], _Function] = {}
        self._known_functions: dict[_Function, _Function] = {}
        #: The functions of compilations that torch knows by a wrapper, by ``CompileId.key``.
        self._wrapped: dict[tuple[int, int, int], tuple[str, records.SourceLocation | None]] = {}
        #: What torch traces for a call, not for a frame: no compilations of a function.
        self._without_frame: set[tuple[int, int, int]] = set()
        #: The number of payloads that are no JSON, though torch writes JSON there.
        self.unreadable = 0
        self._resets = 0
        self._latest = records.CompileId(-1, -1)
        self.files: dict[str, None] = {}  #: User files that written records name, in their order.

    def count(self) -> int:
        """Return the number of compilations."""
        return len(self._recorded)

    def strings(self) -> Iterable[str]:
        """Return the strings that events explained by number: file names, for the most part."""
        return self._strings.values()

    def is_begun(self, key: tuple[int, int, int]) -> bool:
        """Return whether torch said that it begins to compile a frame."""
        builder = self._known(key)
        return builder is not None and builder.known.location is not None

    def export_issue(self, metadata: Mapping[str, Any]) -> records.ExportIssue | None:
        """Return what an event says that ``torch.export`` could not know; ``None`` for another event."""
        kind = trace_table.kind_of(metadata)
        event = metadata.get(kind)
        if not isinstance(event, dict) or kind not in trace_table.ISSUES and (
                kind != "guard_added" or event.get("prefix") != "eval") or kind == trace_table.FIXED and not any(
                    libraries.is_of("export", place.filename) for place in self._stack(metadata.get("stack"))):
            return None
        place = next((each for each in reversed(self._stack(event.get("user_stack")))
                      if not self._is_torchs(each.filename)), None)
        if kind == trace_table.CREATED and isinstance(number := event.get("result_id"), int):
            of = event.get("argument_ids")
            self._expressions[number] = records.ExpressionStep(str(event.get("result", "")), place), (
                of if isinstance(of, list) else [])
        return trace_table.export_issue(kind, event, place, self._expressions)

    def _is_torchs(self, filename: str) -> bool:
        """Return whether a file is torch's or the standard library's, on the machine of the log."""
        return libraries.is_library(filename) or filename.startswith(tuple(self._torch_folders))

    def direct_call(self, metadata: Mapping[str, Any]) -> records.SourceLocation:
        """Return the place in the program that called a compiler of torch's, of an event without a frame.

        Its function is the one that was called: the first public one of torch's after the place.
        """
        stack = self._stack(metadata.get("stack"))
        begin = next((number for number, place in enumerate(stack) if libraries.is_of_compiler(place.filename)
                      and (os.path.basename(place.filename), place.function) not in _RUN_COMPILED), len(stack))
        last = max((number for number, place in enumerate(stack[:begin]) if not self._is_torchs(place.filename)),
                   default=-1)
        called = next((place.function for place in stack[last + 1 :] if libraries.is_public(place.function)), "program")
        return replace(stack[last], function=called) if last >= 0 else records.SourceLocation("", 0, called)

    def compilations(self) -> tuple[records.Compilation, ...]:
        """Return all in the order in which they began."""
        return tuple(self._record(self._builders[key]) if key in self._builders else self._read(key)
                     for key in self._recorded if key not in self._without_frame)

    def _read(self, key: tuple[int, int, int]) -> records.Compilation:
        assert self._spill is not None
        compilation: records.Compilation = self._spill.read(self._recorded[key])
        return compilation

    def ended(self, compile_id: records.CompileId) -> None:
        """Write the record of a compilation that has ended, or whose backward has, as far as it is known."""
        builder = self._known(compile_id.key)
        if builder is None or self._spill is None:
            return
        self._append(compile_id.key, builder)
        for key in list(itertools.islice(self._builders, max(0, len(self._builders) - AT_HAND))):
            builder = self._builders[key]
            if builder.finished:
                if builder.changed:  # torch's timeline goes on for a moment
                    self._append(key, builder)
                del self._builders[key]

    def all_ended(self) -> None:
        """Write the records of all compilations, as far as they are known."""
        for key, builder in self._builders.items():
            if key not in self._without_frame and (builder.changed or self._recorded[key] is None):
                self._append(key, builder)

    def _append(self, key: tuple[int, int, int], builder: _Builder) -> None:
        assert self._spill is not None
        record = self._record(builder)
        self._recorded[key] = self._spill.append(record)
        builder.changed = False
        self.files.update((each.filename, None) for each in record.traced)
        self.files.update((place.filename, None) for broken in record.breaks for place in broken.stack[-1:])
        if record.location is not None:
            self.files[record.location.filename] = None

    def _known(self, key: tuple[int, int, int]) -> _Builder | None:
        if key not in self._recorded:
            return None
        builder = self._builders.pop(key, None) or _Builder(self._read(key))
        self._builders[key] = builder
        return builder

    def compile_id(self, frame: int, recompile: int, attempt: int = 0) -> records.CompileId:
        """Return the id that torch's numbers mean now: after ``torch._dynamo.reset()`` it counts from 0 again."""
        known = self._latest
        if (known.frame, known.recompile, known.attempt, known.resets) != (frame, recompile, attempt, self._resets):
            known = self._latest = records.CompileId(frame, recompile, attempt, self._resets)
        return known  # (one for all that is known of a compilation)

    def compilation(self, compile_id: records.CompileId) -> records.Compilation | None:
        """Return the record of a compilation so far; ``None`` if there is none."""
        builder = self._known(compile_id.key)
        return None if builder is None else self._record(builder)

    def without_frame(self, compile_id: records.CompileId) -> None:
        """Note that torch traces a call, not a frame: there is no record of it as a compilation."""
        self._without_frame.add(compile_id.key)

    def goes_on(self, compile_id: records.CompileId) -> None:
        """Note that a compilation outlives the run."""
        builder = self._known(compile_id.key)
        if builder is not None and not builder.finished:
            builder.goes_on = builder.changed = True

    def traced(self, key: tuple[int, int, int], lines: tuple[records.TracedLines, ...]) -> None:
        """Note the lines that the last attempt of a compilation came to."""
        if (builder := self._known(key)) is not None:
            builder.update(traced=lines)

    def _record(self, builder: _Builder) -> records.Compilation:
        known = builder.known
        # A compilation that torch refused early does not say of which function; the frame is the same function.
        if not known.function and known.compile_id.frame_key in self._functions:
            function, place, user_function = self._functions[known.compile_id.frame_key]
            builder.update(function=function, location=known.location or place,
                           user_function=known.user_function or user_function)
        record = builder.record()
        # Bound methods, partial functions and the like are compiled with one wrapper of torch's, whose versions are
        # those of all of them: failed guards of versions of other functions are none of this one's, but at the limit
        # they all count.
        wrapped = self._wrapped.get(record.compile_id.key)
        if wrapped is None or record.outcome == "limit" or not record.guard_failures:
            return record
        return replace(record, guard_failures=tuple(
            failure for failure in record.guard_failures
            if failure.entry is None or self._wrapped.get(failure.entry.key, wrapped) == wrapped))

    def _know_function(self, known: records.Compilation) -> None:
        if known.function and known.compile_id.frame_key not in self._functions:
            function = known.function, known.location, known.user_function
            # (After a reset the same function is compiled in another frame.)
            self._functions[known.compile_id.frame_key] = self._known_functions.setdefault(function, function)

    def feed(
        self, metadata: Mapping[str, Any], payload: Any = None, seen: Seen = lambda expression: "",
        broken_at: Callable[[], _Broken] = lambda: ((), ()),
        callers: Callable[[], Iterable[records.SourceLocation]] = tuple,
        meant: Callable[[], records.UserFunction | None] = lambda: None, options: Callable[[], Iterable[str]] = tuple,
        arguments: Callable[[], Mapping[str, str] | None] = lambda: None,
    ) -> None:
        """Read one event.

        Args:
            seen: for ``recompile_reasons``: the present value of a guarded expression, as text; ``""`` if unknown.
            broken_at: for ``dynamo_graph_break_reason``: the places in the compiled frame and in each function that was
                inlined on the way to the break, and the local variables there.
            callers: for ``dynamo_start``: who called the frame, outermost first.
            meant: the user's function, not its wrapper, of the frame that torch begins to compile.
            options: for lookups in Inductor's cache: its options that are not at their default.
            arguments: those of ``torch.compile`` for the frame that torch begins to compile (:class:`Compilation`).
        """
        text = metadata.get("str")
        if isinstance(text, (list, tuple)) and len(text) == 2 and isinstance(text[0], str):
            self._strings[text[1]] = text[0]
            if folder := libraries.torch_folder(text[0]):
                self._torch_folders.add(folder)
            return
        if not isinstance(metadata.get("frame_id"), int):
            return
        builder = self._builder(metadata)
        if not metadata.keys().isdisjoint(_BEGINNING):
            known = builder.known
            if isinstance(metadata.get("dynamo_start"), dict) and not known.stack:
                builder.update(stack=tuple(callers()))
            if known.user_function is None and (function := meant()) is not None:
                builder.update(user_function=function)
                if function.wrappers:
                    self._wrapped[known.compile_id.key] = function.name, function.location
            if known.arguments is None and (given := arguments()) is not None:
                builder.update(arguments=dict(given))
        kind = next((kind for kind in trace_table.OF_A_COMPILATION if isinstance(metadata.get(kind), dict)), "")
        event = metadata.get(kind, {})
        if kind == "dynamo_start":
            stack, known = self._stack(event.get("stack")), builder.known
            if stack and known.location is None:
                builder.update(stack=known.stack or stack[:-1], location=stack[-1],
                               function=known.function or stack[-1].function)
                self._know_function(builder.known)
        elif kind == "compilation_metrics":
            self._metrics(builder, event)
        elif kind == "bwd_compilation_metrics":
            known = builder.known
            builder.update(seconds=known.seconds + _backward_seconds(event),
                           backward_failure=_failure(event) or known.backward_failure)
            builder.phases += phases(event)
        elif kind:
            self._symbol(builder, kind, event)
        elif "chromium_event" in metadata:
            self._time(builder, payload)
        elif isinstance(artifact := metadata.get("artifact"), dict):
            self._artifact(builder, str(artifact.get("name", "")), payload if isinstance(payload, str) else "", seen,
                           broken_at, options)

    def _builder(self, metadata: Mapping[str, Any]) -> _Builder:
        frame, recompile = metadata["frame_id"], int(metadata.get("frame_compile_id") or 0)
        key = self.compile_id(frame, recompile).key
        builder = self._known(key)
        if isinstance(metadata.get("dynamo_start"), dict):
            if builder is not None and builder.finished:
                self._resets += 1  # torch counts anew: these numbers are another compilation's
                builder = None
            elif key in self._without_frame:  # (and here, after what was traced for a call)
                self._without_frame.discard(key)
                builder = None
        ids = self.compile_id(frame, recompile, int(metadata.get("attempt") or 0))
        if builder is None:
            builder = self._builders[ids.key] = _Builder(records.Compilation(ids))
            self._recorded[ids.key] = None
        builder.changed = True
        if ids.attempt > builder.known.compile_id.attempt:
            builder.update(compile_id=ids)
            builder.symbols.clear()  # tracing began again, and decides again
        return builder

    # --- one kind each ----------------------------------------------------------------------------

    def _metrics(self, builder: _Builder, event: Mapping[str, Any]) -> None:
        known = builder.known
        builder.finished = True
        # (A frame in which there was nothing to compile counts as guarded, without the number of guards.)
        builder.guarded = bool(event.get("has_guarded_code")) and event.get("guard_count", 0) is not None
        function, location = event.get("co_name") or known.function, known.location
        if event.get("co_filename"):
            location = records.SourceLocation(event["co_filename"], int(event.get("co_firstlineno") or 0), function)
        builder.update(
            function=function, location=location, failure=_failure(event) or known.failure,
            # (A set of torch's, which its trace makes a list of: in an order that is another one in each process.)
            restarts=tuple(sorted(map(str, event.get("restart_reasons") or ()))),
            start=float(event.get("start_time") or 0.0),
            seconds=known.seconds + _whole_seconds(event),
            counts={**known.counts, **{ours: event[name] for name, ours in _COUNTS.items()
                                       if isinstance(event.get(name), int)}})
        self._know_function(builder.known)
        builder.phases += phases(event)

    def _time(self, builder: _Builder, payload: Any) -> None:
        """Read one event of torch's timeline (``ChromiumEventLogger``, torch/_dynamo/utils.py): a begin or an end."""
        try:
            event = json.loads(payload) if isinstance(payload, str) else payload
        except ValueError:
            self.unreadable += 1
            return
        try:
            kind, name, moment, thread = event["ph"], str(event["name"]), float(event["ts"]) / 1e6, event.get("tid")
        except (ValueError, KeyError, TypeError):  # (an event of another kind)
            return
        opened = builder.open_spans.setdefault(thread, [])
        if kind == "B":
            opened.append((name, moment, len(builder.spans)))
            builder.spans.append(None)
        elif kind == "E" and any(begun[0] == name for begun in opened):
            while (begun := opened.pop())[0] != name:
                pass  # (a part inside of it, whose end is not said)
            _, start, place = begun
            if moment - start >= _SHORTEST:
                builder.spans[place] = records.Span(name, start, moment - start, len(opened))

    def _symbol(self, builder: _Builder, kind: str, event: Mapping[str, Any]) -> None:
        stack = [each for each in self._stack(event.get("user_stack")) if not libraries.is_of_compiler(each.filename)]
        # (Layers of torch's evaluate sizes; the user knows the line that called them.)
        users = [place for place in stack if not libraries.is_library(place.filename)] or stack
        location = users[-1] if users else None
        symbol, source, value, bounds, reason, condition = (
            str(event.get(name, "")) for name in ("symbol", "source", "val", "vr", "reason", "expr"))
        if kind == "create_symbol":
            decision = records.SymbolDecision("created", symbol, source, value, bounds, location=location)
        elif kind == "create_unbacked_symbol":
            decision = records.SymbolDecision("unbacked", symbol, range=bounds, location=location)
        elif kind == "symbolic_shape_specialization":
            decision = records.SymbolDecision("fixed", symbol, ", ".join(map(str, event.get("sources") or ())),
                                      str(event.get("value", "")), reason=reason, location=location)
        else:
            # (A backend has no line of the user's.)
            places = () if location else self._places_in_backend(event.get("stack"))
            decision = records.SymbolDecision(
                "guarded", condition, location=location or (places[-1] if places else None), stack=places[:-1])
        if decision not in builder.symbols:
            builder.symbols.append(decision)

    def _artifact(
        self, builder: _Builder, name: str, payload: str, seen: Seen, broken_at: Callable[[], _Broken],
        options: Callable[[], Iterable[str]],
    ) -> None:
        known = builder.known
        cache = _CACHE.fullmatch(name) if "_cache_" in name else None
        if cache is not None:
            lookup = records.CacheLookup(
                cache["cache"], cache["outcome"], *cache_lookup(payload),
                tuple(options()) if cache["cache"] == "fx_graph" else ())
            builder.update(caches=(*known.caches, lookup))
        elif name == "dynamo_graph_break_reason":
            broken = graph_break(known.compile_id, payload, *broken_at())
            if all(each.raw != broken.raw for each in known.breaks):
                # (A frame ends at one break. Where a new trace meets another one, that is before it; where it meets the
                # same one, torch gives the function up for it.)
                others = [each for each in known.breaks if each.compile_id.attempt == broken.compile_id.attempt or (
                    broken.skips_function or each.skips_function) and (
                    each.location, each.reason) != (broken.location, broken.reason)]
                builder.update(breaks=(*others, broken))
        elif name == "recompile_reasons":
            from .guard_failures import guard_failures

            builder.update(guard_failures=tuple(
                replace(failure, entry=self.compile_id(failure.entry.frame, failure.entry.recompile))
                if failure.entry else failure for failure in guard_failures(payload, self._full_path, seen)))

    def _places_in_backend(self, frames: Any) -> tuple[records.SourceLocation, ...]:
        """Return the place in Inductor that evaluates a condition, or those in the program's backend, of torch's stack.

        The latter outermost first; none where another part of torch evaluates it.
        """
        stack = self._stack(frames)
        asking = [place for place in stack if libraries.asks_for_sizes(place.filename)]
        if asking and libraries.is_of("backend", asking[-1].filename):
            return (asking[-1],)
        from_dynamo = itertools.dropwhile(lambda place: not libraries.is_of_dynamo(place.filename), stack)
        return tuple(place for place in from_dynamo if libraries.asks_for_sizes(place.filename)
                     and not libraries.is_library(place.filename) and not libraries.is_generated(place.filename))

    def _stack(self, frames: Any) -> tuple[records.SourceLocation, ...]:
        return tuple(
            records.SourceLocation(
                file, int(frame.get("line") or 0), str(frame.get("name") or ""), str(frame.get("loc") or ""))
            for frame in (frames if isinstance(frames, list) else ()) if isinstance(frame, dict)
            and not libraries.is_of("hooks", file := self._string(frame.get("filename"))))

    def _string(self, value: Any) -> str:
        if not isinstance(value, int):
            return str(value or "")
        if value not in self._strings and self._string_of is not None:
            self._strings[value] = self._string_of(value)
        return self._strings.get(value, f"<file {value}>")


def phases(event: Mapping[str, Any]) -> tuple[records.Phase, ...]:
    """Return the times of a compilation, by part, in its metrics."""
    return tuple(records.Phase(ours, event[name] / 1e6) for name, ours in _PHASES.items()
                 if isinstance(event.get(name), (int, float)))


#: Files and functions of Dynamo's that run compiled code.
_RUN_COMPILED = {("eval_frame.py", name) for name in ("__call__", "_fn", "compile_wrapper")}
_METRICS = re.compile(rb'\] (\{"(?:bwd_)?compilation_metrics": .*)')


def seconds_of(log: bytes) -> float | None:
    """Return how long the compilations of a log took, without reading the rest of it; ``None`` where it is damaged."""
    whole = 0.0
    try:
        for found in _METRICS.finditer(log):
            event = json_value(found[1])
            for kind, seconds in (
                    ("compilation_metrics", _whole_seconds), ("bwd_compilation_metrics", _backward_seconds)):
                whole += seconds(event[kind]) if isinstance(event.get(kind), dict) else 0.0
    except (ValueError, TypeError):
        return None
    return whole


def _backward_seconds(event: Mapping[str, Any]) -> float:
    return float(event.get("duration_us") or 0) / 1e6


def _whole_seconds(event: Mapping[str, Any]) -> float:
    """Return the seconds that a frame took (torch 2.6 gives only those that Dynamo counted)."""
    return float(event.get("entire_frame_compile_time_s") or 0.0) or (
        float(event.get("dynamo_cumulative_compile_time_us") or 0) / 1e6)


def _failure(event: Mapping[str, Any]) -> records.Failure | None:
    kind, reason, file = (str(event.get(name) or "") for name in (
        "fail_type", "fail_reason", "fail_user_frame_filename"))
    place = records.SourceLocation(file, int(event.get("fail_user_frame_lineno") or 0)) if file else None
    return records.Failure(kind, reason, place) if kind or reason else None


# --- graph breaks ---------------------------------------------------------------------------------
# (Compiled at their first use, by `re`: most programs have no break.)
_HEADING = r"(?m)^(?:Graph Break )?Reason: (?P<reason>.*)$"
_END = r"(?m)^(?:User code traceback:|Traceback \(most recent call last\):)"
_URL = r"https?://\S*?/gb/?(?:gb)?(?P<number>\d+)(?:\.html)?"
_WRAPPED = (r"^(?:Failed to handle graph break gracefully|Encountered graph break when attempting to|"
            r"Encountered graph break that we cannot resume from)")
#: The error that broke the graph there. (If it does not describe a break, torch has that in the traceback alone.)
_ERROR_IN_LOOP = (
    r"(?ms)^torch\._dynamo\.exc\.UserError: (?P<message>(?:(?!^Traceback ).)*?)"
    r"\n+The above exception was the direct cause of the following exception:\n(?!.*The above exception was)")
_ANOTHER = "*** While handling this graph break, another graph break occurred: ***"
#: The parts of torch's account after its heading, and their names here.
_PARTS = {"Explanation": "explanation", "Hint": "hint", "Developer debug context": "context"}
_PART = (r"(?m)^\s*(Explanation|Hint|Developer debug context|For more details about this graph break)(?:: ?|, )")
#: The hint that ``SymNodeVariable.evaluate_expr`` (``torch/_dynamo/variables/tensor.py``) puts before an error.
_HINT_FIRST = r"(?P<hint>(?:Consider|Please|Try) (?:(?!\.\s)[^\n])*?)(?:\.\s+(?=[A-Z])|\.?$)"


def graph_break(
    compile_id: records.CompileId, text: str, inner: Sequence[records.SourceLocation] = (),
    values: tuple[records.NamedValue, ...] = (),
) -> records.GraphBreak:
    """Read torch's account of a graph break (``InstructionTranslatorBase.log_graph_break``).

    Args:
        inner: the stack from the compiled frame on, where it is known. Torch's text leaves out every frame that is
            called by one of the same name (``forward`` by ``forward``).
        values: local variables at the break.
    """
    begin = re.search(_HEADING, text)
    end = re.compile(_END).search(text, begin.end() if begin else 0)
    account = text[begin.start("reason") if begin else 0 : end.start() if end else len(text)]
    # A heading of torch's with its attempt comes before the break itself.
    skips = account.startswith("Failed to handle graph break gracefully")
    gave_up = account.partition(".")[0] if account.startswith("Encountered graph break that we cannot resume") else ""
    if re.match(_WRAPPED, account):
        account = account.partition("\n\n")[2] or account
    _, another, second = account.partition(_ANOTHER)
    fields = _fields(account)
    later = _fields(second.strip()) if another else None  # Where it went on and gave up: the parts of what it met then.
    if fields["reason"][0].startswith(IN_LOOP) and (error := re.search(_ERROR_IN_LOOP, text)):
        account, later = error["message"], fields
        fields = _fields(account)
    if later is not None:
        gave_up = "\n".join(filter(None, (later["reason"][0].partition("\n")[0], *later["explanation"])))
    url = re.search(_URL, account)
    tail = text[end.end() :].partition("\nTraceback (most recent call last)")[0] if end else ""
    stack = frames_in(tail)
    # (The end of torch's stack is replaced by the frames that it was made of.)
    texts = {(place.filename, place.line): place.text for place in stack}
    names = {(place.filename, place.line) for place in inner}
    while stack and (stack[-1].filename, stack[-1].line) in names:
        stack.pop()
    stack += [replace(place, text=place.text or texts.get((place.filename, place.line), "")) for place in inner]
    # (The line that calls `any` is the place: that torch traces another function for it does not matter.)
    own = [at for at, place in enumerate(stack, 1) if not libraries.is_of("polyfills", place.filename)]
    polyfills = len(stack) - own[-1] if own else 0
    return records.GraphBreak(
        compile_id, fields["reason"][0], "\n".join(fields["explanation"]), tuple(fields["hint"]),
        "\n".join(fields["context"]), f"GB{int(url['number']):04d}" if url else "", url[0] if url else "",
        tuple(stack[: len(stack) - polyfills]), skips, text.removesuffix("\nNoneType: None\n").strip(),
        max(len(inner) - polyfills, 0), gave_up, values)


def _fields(account: str) -> dict[str, list[str]]:
    """Return the parts of an account, a heading and then ``Explanation:``, ``Hint:`` and so on, as lines of text."""
    reason, *parts = ("\n".join(filter(None, map(str.strip, each.splitlines())))
                      for each in re.split(_PART, account.partition(_ANOTHER)[0]))
    fields: dict[str, list[str]] = {"reason": [reason], "explanation": [], "hint": [], "context": []}
    if first := re.match(_HINT_FIRST, reason):
        fields["hint"], fields["reason"] = [first["hint"]], [reason[first.end() :]]
    for kind, text in zip(parts[::2], parts[1::2]):
        if kind in _PARTS and text:
            fields[_PARTS[kind]].append(text)
    return fields
