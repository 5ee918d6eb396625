"""A log that ``TORCH_TRACE`` wrote -> :class:`~depyf.records.model.Capture`.

The log is made by torch alone, without this tool, and reads into the same records. What it lacks is said in the
notes: the original and the transformed code as source, the modules that nodes belong to.

Format (torch/_logging/_internal.py, ``TorchLogsFormatter`` and ``trace_structured``): a line of glog's form whose text
is a JSON object; a payload follows in lines that begin with a tab.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from .. import budgets
from ..model.graph_text import read_graph
from ..provenance.graph_provenance import Provenance
from ..reading import json_value, lines
from ..records import naming
from ..records.model import (
    CacheEntry,
    Capture,
    CodeText,
    CompiledFunction,
    CompiledGraph,
    CompileId,
    Frame,
    GraphInput,
    GraphStage,
    Kernel,
    TransformedCode,
    UnreadEvent,
)
from ..records.store import FILE, FROM_LOG, RecordsError, checked
from ..torch_text.events import EventReader, kind_of, unread_event, unread_name, unread_note
from ..torch_text.global_names import resumed_function, without_ids
from ..torch_text.guards import GuardReader
from ..torch_text.wrapping import legal_graph

#: What reading raises where a value is of another type than torch writes.
_NOT_AS_TORCH_WRITES = (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError, RecursionError)
_NO_SOURCE = CodeText("# not in the log: TORCH_TRACE does not record it\n", "unproven")


def read_log(path: str) -> Capture:
    """Read the records of one log file, or of the newest one in a directory.

    Raises:
        RecordsError: there is none, or it contains no event.
    """
    if os.path.isdir(path):
        path = logs(path)[-1]
    try:
        return _capture(path, (line.decode(errors="surrogateescape") for line in lines(path, budgets.RUN)))
    except OSError as error:
        raise RecordsError(f"{path!r} cannot be read ({error.strerror or error}).") from error


def logs(directory: str) -> list[str]:
    """Return the log files of a directory, the newest last.

    Raises:
        RecordsError: there is none.
    """
    files = sorted(glob.glob(os.path.join(glob.escape(directory), "*.log")), key=os.path.getmtime)
    if not files:
        raise RecordsError(f"{directory!r} holds neither records of depyf ({FILE}) nor a log of TORCH_TRACE "
                           "(dedicated_log_torch_trace_....log).")
    return files


def events(log: Iterable[str]) -> Iterator[tuple[dict[str, Any], str | None]]:
    """``(metadata, payload)`` of each event; lines that are none are left out."""
    metadata: dict[str, Any] | None = None
    payload: list[str] = []
    for line in log:
        if line.startswith("\t"):
            payload.append(line[1:])
            continue
        if metadata is not None:
            yield metadata, "".join(payload).removesuffix("\n") if payload else None
        metadata, payload = None, []
        begin = line.find("] {")
        try:
            value = json_value(line[begin + 2 :]) if begin >= 0 else None
        except ValueError:
            continue
        metadata = value if isinstance(value, dict) else None
    if metadata is not None:
        yield metadata, "".join(payload).removesuffix("\n") if payload else None


def _capture(path: str, log: Iterable[str]) -> Capture:
    reading = _Log()
    count, unread = 0, 0
    for metadata, payload in events(log):
        count += 1
        try:
            reading.take(metadata, payload)
        except _NOT_AS_TORCH_WRITES:
            unread += 1
    if not count:
        raise RecordsError(f"{path} holds no event of torch's structured trace; give a log that TORCH_TRACE "
                           "wrote.")
    try:
        return reading.capture(unread)
    except (RecordsError, *_NOT_AS_TORCH_WRITES) as error:
        raise RecordsError(f"{path} holds events that torch does not write so ({error}).") from error


class _Log:
    """The records of a log while it is read."""

    def __init__(self) -> None:
        self.reader = EventReader(full_path=self._full_path)
        self.guards: dict[tuple[int, int, int], str] = {}
        self.graphs: dict[tuple[int, int, int], _Graph] = {}
        self.environment: dict[str, str] = {}
        self.unread: list[UnreadEvent] = []

    def take(self, metadata: dict[str, Any], payload: str | None) -> None:
        """Read an event."""
        self.reader.feed(metadata, payload)
        if isinstance(metadata.get("rank"), int):
            self.environment["rank"] = str(metadata["rank"])
        metrics = metadata.get("compilation_metrics")
        if isinstance(metrics, dict):
            self.environment.update({key: str(metrics[name]) for key, name in
                                     (("torch", "pytorch_version"), ("python", "python_version")) if metrics.get(name)})
        unknown, ids = unread_name(metadata), None
        if isinstance(metadata.get("frame_id"), int) and (unknown or payload is not None):
            ids = self.reader.compile_id(metadata["frame_id"], int(metadata.get("frame_compile_id") or 0))
        if unknown:
            self.unread.append(unread_event(unknown, metadata, payload, ids, len(self.unread) + 1))
        elif payload is not None and ids is not None:
            self._take_text(ids, metadata, payload)

    def _take_text(self, ids: CompileId, metadata: dict[str, Any], payload: str) -> None:
        if "dynamo_cpp_guards_str" in metadata:
            self.guards[ids.key] = without_ids(payload, {}, {})
            return
        graph = self.graphs.setdefault(ids.key, _Graph(ids))
        if isinstance(metadata.get("inductor_output_code"), dict):
            output = metadata["inductor_output_code"]
            graph.kernel(payload, str(output.get("file_path") or output.get("filename") or ""))
        shown = metadata.get("graph_dump")
        name = str(shown.get("name") or "graph_dump") if isinstance(shown, dict) else ""
        stage = naming.shown_stage(name) if name else naming.stage_of(metadata)
        if stage:
            graph.stage(stage, payload, int(metadata.get("attempt") or 0), naming.shown_name(name) if name else "",
                        kind_of(metadata))

    def capture(self, unread: int) -> Capture:
        """Return the records; ``unread`` events were not as torch writes them."""
        compilations = tuple(map(checked, self.reader.compilations()))
        guard_reader = GuardReader(self._full_path)
        graphs = {key: graph.record() for key, graph in self.graphs.items() if graph.stages}
        first = {c.compile_id.frame_key: c for c in reversed(compilations)}
        entries: dict[tuple[int, int], list[CacheEntry]] = {}
        for compilation in compilations:
            if compilation.outcome == "compiled":
                ids = compilation.compile_id
                code = TransformedCode(ids, compilation.function, _NO_SOURCE, None, ())
                names = (graphs[ids.key].name,) if ids.key in graphs else ()
                entries.setdefault(ids.frame_key, []).append(
                    CacheEntry(ids, guard_reader.read(self.guards.get(ids.key, "")), code, names))
        frames = [Frame(first[frame].function, first[frame].function, first[frame].location, _NO_SOURCE, False, (), (),
                        tuple(of_frame)) for frame, of_frame in entries.items()]
        left_out = f"events of the log that are not as torch writes them are left out: {unread}" if unread else ""
        notes = tuple(filter(None, (FROM_LOG, left_out, unread_note(self.unread))))
        return Capture(_functions(frames), tuple(graphs.values()), notes, self.environment, compilations,
                       events=tuple(self.unread))

    def _full_path(self, shown: str) -> str:
        """Complete a path that torch cut in a name (``full_paths.FullPaths``), where only one file of the log fits."""
        fitting = {path for path in self.reader.strings()
                   if path.endswith(shown) and not path.endswith(("/" + shown, "\\" + shown))}
        return fitting.pop() if len(fitting) == 1 and not os.path.isabs(shown) else shown


def _functions(frames: Iterable[Frame]) -> tuple[CompiledFunction, ...]:
    """Group frames by the function that they begin or continue.

    The log does not say which; the name and the place of a resume function do: the last function of that name that
    begins above its line.
    """
    members: dict[int, list[Frame]] = {}
    begun: list[Frame] = []
    for frame in frames:
        resumed = resumed_function(frame.code_name)
        owners = [known for known in begun if resumed and frame.location and known.location
                  and known.code_name == resumed[0] and known.location.filename == frame.location.filename
                  and known.location.line <= resumed[1]]
        if owners:
            members[id(max(owners, key=lambda known: known.location.line if known.location else 0))].append(frame)
        else:
            begun.append(frame)
            members[id(frame)] = [frame]
    return tuple(CompiledFunction(members[id(frame)][0].name, tuple(members[id(frame)])) for frame in begun)


class _Graph:
    """The graph of one compilation while the log is read."""

    def __init__(self, ids: CompileId) -> None:
        self.ids = ids
        self.attempt = 0
        self.stages: list[GraphStage] = []
        self.kernels: list[Kernel] = []
        self.kinds: dict[str, str] = {}

    def stage(self, stage: str, text: str, attempt: int, shown_as: str, kind: str) -> None:
        """Add a text of a stage.

        Torch has two kinds of events for some stages. Equal texts of one kind are of two pieces of a graph.
        """
        if attempt > self.attempt:  # tracing began again
            self.attempt, self.stages, self.kernels, self.kinds = attempt, [], [], {}
        text = legal_graph(text)
        same = [each for each in self.stages if each.stage == stage]
        if kind == self.kinds.setdefault(stage, kind) or all(each.text != text for each in same):
            self.stages.append(GraphStage(stage, len(same), text, False, self.ids, shown_as=shown_as))

    def kernel(self, text: str, path: str) -> None:
        if all(known.path != path or not path for known in self.kernels):
            self.kernels.append(Kernel(len(self.kernels), text, path, self.ids))

    def record(self) -> CompiledGraph:
        name = f"__compiled_fn_of_{self.ids.frame}_{self.ids.recompile}"
        if self.ids.resets:  # (torch counts anew)
            name += f"_after_reset_{self.ids.resets}"
        graph = CompiledGraph(name, name, self.ids, "", _with_inputs(self.stages), tuple(self.kernels))
        return replace(graph, kernels=Provenance(graph).kernels) if graph.kernels else graph


def _with_inputs(stages: Sequence[GraphStage]) -> tuple[GraphStage, ...]:
    """Return the stages with the inputs of the captured graph, by torch's names of its parameters.

    Only where AOTAutograd compiled that graph as a whole, and gave it no other inputs: they are known by their number.
    """
    captured, forward = ([each for each in stages if each.stage == wanted]
                         for wanted in ("Captured_Graph", "Forward_graph"))
    if len(captured) == len(forward) == 1:
        inputs = read_graph(captured[0].text).inputs
        if len(inputs) == len(read_graph(forward[0].text).inputs):
            whole = replace(captured[0], inputs=tuple(GraphInput(each.name) for each in inputs))
            return tuple(whole if each is captured[0] else each for each in stages)
    return tuple(stages)
