"""A log that ``TORCH_TRACE`` wrote -> :class:`~depyf.records.model.Capture`.

The log is made by torch alone, without this tool, and reads into the same records. What it lacks is said in the
notes: the original and the transformed code as source, the modules that nodes belong to.

Format (torch/_logging/_internal.py, ``TorchLogsFormatter`` and ``trace_structured``): a line of glog's form whose text
is a JSON object; a payload follows in lines that begin with a tab.
"""

from __future__ import annotations

import glob
import hashlib
import itertools
import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from .. import budgets
from ..model.graph_text import read_graph
from ..provenance.graph_provenance import Provenance
from ..reading import contents, json_value, lines
from ..records import model as records
from ..records import naming
from ..records.store import FILE, FROM_LOG, RecordsError, checked
from ..torch_text import events as trace_events
from ..torch_text import trace_table
from ..torch_text.global_names import resumed_function, without_ids
from ..torch_text.guards import GuardReader
from ..torch_text.run_ids import AlikeFiles
from ..torch_text.trace_table import Has
from ..torch_text.wrapping import NOT_PYTHON, legal_graph
from ..values import frozen

_RANK = re.compile(rb'"rank": (\d+)')
#: What reading raises where a value is of another type than torch writes.
_NOT_AS_TORCH_WRITES = (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError, RecursionError)
#: Kinds of events that come first when AOTAutograd compiles a graph.
_BEGIN_OF_AOT = ("aot_joint_graph", "aot_inference_graph")
_Text = TypeVar("_Text", records.GraphStage, records.Kernel)
_INTERNAL = "the log has texts of torch's internal stages, too: `depyf report --internal-stages` writes them"
_NO_SOURCE = records.CodeText("# not in the log: TORCH_TRACE does not record it\n", "unproven")


def read_ranks(path: str, internal_stages: bool = False) -> dict[str, records.Capture]:
    """Read the records of each rank whose events a log file has.

    Args:
        internal_stages: read torch's internal graphs, and the texts around them, too.

    Returns:
        The records by rank (``"0"``); by ``""`` where the events name at most one.

    Raises:
        RecordsError: it contains no event.
    """
    readings: dict[str, _Log] = {}
    try:
        for metadata, payload in events(line.decode(errors="surrogateescape") for line in lines(path, budgets.RUN)):
            rank = metadata.get("rank")
            rank = str(rank) if isinstance(rank, int) else next(iter(readings), "")
            if rank and "" in readings:  # (what comes before the first event with a rank belongs to that rank)
                readings[rank] = readings.pop("")
            reading = readings.get(rank) or readings.setdefault(rank, _Log(internal_stages))
            digest = metadata.get("has_payload")
            if isinstance(digest, str) and digest != hashlib.md5(
                    (payload or "").encode(errors="surrogateescape"), usedforsecurity=False).hexdigest():
                reading.damaged += 1
            try:
                reading.take(metadata, payload)
            except _NOT_AS_TORCH_WRITES:
                reading.left_out += 1
    except OSError as error:
        raise RecordsError(f"{path!r} cannot be read ({error.strerror or error}).") from error
    if not readings:
        raise RecordsError(f"{path} contains no event of torch's structured trace; give a log that TORCH_TRACE "
                           "wrote.")
    try:
        captures = {rank: reading.capture() for rank, reading in readings.items()}
    except (RecordsError, *_NOT_AS_TORCH_WRITES) as error:
        raise RecordsError(f"{path} contains events that torch does not write so ({error}).") from error
    return captures if len(captures) > 1 else {"": next(iter(captures.values()))}


@frozen
class RankOfLog:
    """A rank (``""`` where no event names it) of a log: its records, and how long its compilations took."""

    file: str
    rank: str
    capture: records.Capture
    seconds: float


def read_logs(files: Sequence[str], internal_stages: bool = False) -> Iterator[RankOfLog | RecordsError]:
    """Yield the ranks of several logs, or why a log has none. Of logs that are alike one is read for all."""
    alike, of_one_rank = AlikeFiles(), dict[int, records.Capture]()
    for file in files:
        try:
            data = contents(file, budgets.RUN) if len(files) > 1 else b""
            ranks, number = set(_RANK.findall(data)), alike.add(data)
            if number in of_one_rank and len(ranks) < 2 and (seconds := trace_events.seconds_of(data)) is not None:
                yield RankOfLog(file, next(iter(ranks), b"").decode(), of_one_rank[number], seconds)
                continue
            captures = read_ranks(file, internal_stages)
        except OSError as error:
            yield RecordsError(f"{file!r} cannot be read ({error.strerror or error}).")
        except RecordsError as error:
            yield error
        else:
            if len(captures) == 1:
                of_one_rank[number] = captures[""]
            for rank, capture in captures.items():
                yield RankOfLog(file, rank or capture.environment.get("rank", ""), capture,
                                sum(each.seconds for each in capture.compilations))


def logs(directory: str) -> list[str]:
    """Return the log files of a directory, the newest last; raise ``RecordsError`` if there is none."""
    files = sorted(glob.glob(os.path.join(glob.escape(directory), "*.log")), key=os.path.getmtime)
    if not files:
        raise RecordsError(f"{directory!r} contains neither records of depyf ({FILE}) nor a log of TORCH_TRACE "
                           "(dedicated_log_torch_trace_....log).")
    return files


def events(log: Iterable[str]) -> Iterator[tuple[dict[str, Any], str | None]]:
    """``(metadata, payload)`` of each event; lines that are none are left out."""
    metadata: dict[str, Any] | None = None
    payload: list[str] = []
    blank = 0  # lines after those of the payload, which are of it if others follow: some versions do not indent them
    for line in itertools.chain(log, [""]):
        if line.startswith("\t"):
            payload += [*["\n"] * blank, line[1:]]
            blank = 0
        elif payload and line == "\n":
            blank += 1
        else:
            if metadata is not None:
                yield metadata, "".join(payload).removesuffix("\n") if payload else None
            metadata, payload, blank = None, [], 0
            begin = line.find("] {")
            try:
                value = json_value(line[begin + 2 :]) if begin >= 0 else None
            except ValueError:
                continue
            metadata = value if isinstance(value, dict) else None


class _Log:
    """The records of a log while it is read."""

    def __init__(self, internal_stages: bool) -> None:
        self.internal_stages = internal_stages
        self.left_out = 0  # events that are not as torch writes them
        self.damaged = 0  # texts that have another digest than torch's of them
        self._leaves_out_internal = False
        self.reader = trace_events.EventReader(full_path=self._full_path)
        self.guards: dict[tuple[int, int, int], str] = {}
        self.graphs: dict[tuple[int, int, int], _Graph] = {}
        self.calls: list[_Graph] = []  # of what is compiled without a frame, by direct calls
        self._in_call = False  # the last of these goes on
        self.environment: dict[str, str] = {}
        self.unread: list[records.UnreadEvent] = []

    def take(self, metadata: dict[str, Any], payload: str | None) -> None:
        """Read an event."""
        self.reader.feed(metadata, payload)
        if isinstance(metadata.get("rank"), int):
            self.environment["rank"] = str(metadata["rank"])
        metrics = metadata.get("compilation_metrics")
        if isinstance(metrics, dict):
            # (``sys.version``, of which the first word is the version.)
            self.environment.update({key: str(metrics[name]).partition(" ")[0] for key, name in
                                     (("torch", "pytorch_version"), ("python", "python_version")) if metrics.get(name)})
        unknown, ids = trace_table.unread_name(metadata), None
        if isinstance(metadata.get("frame_id"), int) and (unknown or payload is not None):
            ids = self.reader.compile_id(metadata["frame_id"], int(metadata.get("frame_compile_id") or 0))
        if unknown:
            self.unread.append(trace_events.unread_event(unknown, metadata, payload, ids, len(self.unread) + 1))
        if payload is not None and ids is not None:
            self._take_text(ids, metadata, payload)
        elif not isinstance(metadata.get("frame_id"), int):
            self._take_of_call(metadata, payload or "")

    def _take_text(self, ids: records.CompileId, metadata: dict[str, Any], payload: str) -> None:
        # (Since torch 2.15 a call of torch.export has numbers, too.)
        if "artifact" in metadata and trace_table.row_of(metadata).what == Has.EXPORT and (
                not self.reader.is_begun(ids.key)):
            self._begin_call(_Graph(ids, 0), records.SourceLocation("", 0, "export"))
            self._add_text(self.calls[-1], metadata, payload)
            self._in_call = False
            return
        attempt, known = int(metadata.get("attempt") or 0), self.graphs.get(ids.key)
        if "dynamo_cpp_guards_str" in metadata:
            self.guards[ids.key] = without_ids(payload, {}, {})
            if known is not None:
                known.piece = ""  # the backend has returned
            if not self.internal_stages:
                return
        if known is None or attempt > known.attempt:  # (tracing began again)
            known = self.graphs[ids.key] = _Graph(ids, attempt)
        self._add_text(known, metadata, payload)

    def _take_of_call(self, metadata: dict[str, Any], payload: str) -> None:
        """Read an event of what is compiled without a frame, by a direct call of a compiler or of ``torch.export``."""
        kind = trace_table.kind_of(metadata)
        about, issue = metadata.get(kind), self.reader.export_issue(metadata)
        ends = kind in ("compilation_metrics", naming.EXPORTED) or (
            self._in_call and kind == "compilation_metrics_runtime")
        begins = issue or payload and trace_table.row_of(metadata).what != Has.ALSO_TEXT and (
            trace_table.text_of(metadata, payload).stage)
        if self._in_call and begins and metadata.get("stack"):  # (a call that fails reports no end)
            self._in_call = self.reader.direct_call(metadata) == self.calls[-1].call
        if not self._in_call and (begins or ends):
            traced = next(reversed(self.graphs), None)
            if traced is not None and not self.reader.is_begun(traced):  # Dynamo traced it for the call
                self._begin_call(self.graphs.pop(traced), self.reader.direct_call(metadata))
            elif begins:
                self._begin_call(_Graph(records.CompileId(-1, 0), 0), self.reader.direct_call(metadata))
        if self._in_call:
            graph = self.calls[-1]
            if issue:
                trace_table.add_facts(graph.facts, {"issues": (issue,)})
            if payload:
                self._add_text(graph, metadata, payload)
            if ends and isinstance(about, dict) and (found := trace_events.phases(about)):
                graph.facts["phases"] = found
        self._in_call = self._in_call and not ends

    def _begin_call(self, graph: _Graph, place: records.SourceLocation) -> None:
        """Make a graph that of a call, which goes on."""
        self.reader.without_frame(graph.ids)
        graph.ids, graph.call = records.CompileId(-1, len(self.calls)), place
        self.calls.append(graph)
        self._in_call = True

    def _add_text(self, graph: _Graph, metadata: Mapping[str, Any], payload: str) -> None:
        kind = trace_table.kind_of(metadata)
        about = metadata.get(kind)
        event: Mapping[str, Any] = about if isinstance(about, dict) else {}
        if kind == "inductor_output_code":
            graph.kernel(payload, str(event.get("file_path") or event.get("filename") or ""))
        elif kind == trace_table.DDP_PIECE:
            graph.announced.append(str(event["name"]))  # (compiled after those before it)
            graph.texts.append((graph.announced[-1], records.GraphStage(
                "Captured_Graph", 0, legal_graph(payload), False, graph.ids)))
        elif piece := trace_events.piece_compiled_by_vllm(metadata, payload):
            graph.piece = piece
        if kind in _BEGIN_OF_AOT:
            graph.piece = next(iter(graph.announced[graph.begun :]), graph.piece)
            graph.begun += 1
        what, text = trace_table.row_of(metadata).what, trace_table.text_of(metadata, payload)
        if graph.piece and text.shown_as == f"vllm_{graph.piece}":
            graph.stage("Captured_Graph", payload, "", kind)
        if what == Has.OF_GRAPH:
            trace_table.add_facts(graph.facts, trace_table.graph_facts(trace_table.name_of(metadata), payload))
        elif text.internal and not self.internal_stages:
            self._leaves_out_internal |= what != Has.ALSO_TEXT
        elif text.stage and not (text.shown_as == naming.BEFORE_PRE_GRAD and any(
                each.stage == "Captured_Graph" and _operations(each.text) == _operations(legal_graph(payload))
                for each in graph.stages())):
            graph.stage(text.stage, payload, text.shown_as, kind, text.internal)

    def capture(self) -> records.Capture:
        """Return the records."""
        compilations = tuple(map(checked, self.reader.compilations()))
        guard_reader = GuardReader(self._full_path)
        graphs = {key: graph.recorded() for key, graph in self.graphs.items() if graph.stages()}
        for graph in (*self.graphs.values(), *self.calls):
            for each in () if graph.stages() else graph.stages(internal=True):  # (as why it failed)
                self.unread.append(records.UnreadEvent(each.stage, each.text, graph.ids, number=len(self.unread) + 1))
        first = {each.compile_id.frame_key: each for each in reversed(compilations)}
        frames: dict[tuple[int, int], records.Frame] = {}
        for each in compilations:
            if each.outcome == "compiled":
                ids, key = each.compile_id, each.compile_id.frame_key
                names = (graphs[ids.key][0].name,) if ids.key in graphs else ()
                entry = records.CacheEntry(ids, guard_reader.read(self.guards.get(ids.key, "")),
                                   records.TransformedCode(ids, each.function, _NO_SOURCE, None, ()), names)
                name = first[key].function
                frame = frames.get(key) or records.Frame(name, name, first[key].location, _NO_SOURCE, False, (), (), ())
                frames[key] = replace(frame, entries=(*frame.entries, entry))
        left_out = self.left_out + self.reader.unreadable
        notes = filter(None, (
            FROM_LOG,
            f"events of the log that are not as torch writes them are left out: {left_out}" if left_out else "",
            f"texts of the log that have another digest than the one that torch wrote, so that they were changed or "
            f"damaged: {self.damaged}" if self.damaged else "",
            trace_events.unread_note(self.unread), _INTERNAL if self._leaves_out_internal else ""))
        numbers: Counter[str] = Counter()
        calls = []
        for graph in self.calls:
            if graph.stages() or "issues" in graph.facts:
                name = naming.function_identifier(graph.call.function if graph.call is not None else "")
                numbers[name] += 1
                calls += graph.recorded(f"{name}_{numbers[name]}")
        return records.Capture(_functions(frames.values()), (*itertools.chain(*graphs.values()), *calls), tuple(notes),
                       self.environment, compilations, events=tuple(self.unread))

    def _full_path(self, shown: str) -> str:
        """Complete a path that torch cut in a name, where only one file of the log fits."""
        fitting = {path for path in self.reader.strings()
                   if path.endswith(shown) and not path.endswith(("/" + shown, "\\" + shown))}
        return fitting.pop() if len(fitting) == 1 and not os.path.isabs(shown) else shown


def _functions(frames: Iterable[records.Frame]) -> tuple[records.CompiledFunction, ...]:
    """Group frames by the function that they begin or continue.

    The log does not say which; the name and the place of a resume function do: the last function of that name that
    begins above its line.
    """
    members: list[list[records.Frame]] = []
    for frame in frames:
        resumed = resumed_function(frame.code_name)
        owners = [(begun.location.line, of) for of in members if resumed and frame.location
                  and (begun := of[0]).location and begun.code_name == resumed[0]
                  and begun.location.filename == frame.location.filename and begun.location.line <= resumed[1]]
        if owners:
            max(owners, key=lambda each: each[0])[1].append(frame)
        else:
            members.append([frame])
    return tuple(records.CompiledFunction(each[0].name, tuple(each)) for each in members)


class _Graph:
    """The graph of one compilation, with the pieces that its backend split it into, while the log is read."""

    def __init__(self, ids: records.CompileId, attempt: int) -> None:
        self.ids = ids
        self.attempt = attempt  # the attempt of tracing that made it
        self.call: records.SourceLocation | None = None  # by which it was compiled without a frame
        self.facts: dict[str, Any] = {}  # fields of its record that events gave
        self.piece = ""  # the name of the piece that the backend is compiling; `""` for the whole graph
        #: In order, with the names of their pieces.
        self.texts: list[tuple[str, records.GraphStage | records.Kernel]] = []
        self.announced: list[str] = []  # the pieces that are compiled in this order
        self.begun = 0  # the number of graphs that AOTAutograd began to compile
        self._kinds: dict[str, str] = {}

    def stages(self, internal: bool = False) -> list[records.GraphStage]:
        """Return the stages, or the internal ones."""
        return [each for _, each in self.texts if isinstance(each, records.GraphStage) and each.internal == internal]

    def stage(self, stage: str, text: str, shown_as: str, kind: str, internal: bool = False) -> None:
        """Add a text of a stage.

        Torch has two kinds of events for some stages. Equal texts of one kind are of two pieces of a graph.
        """
        graph = legal_graph(text)
        text = text if (shown_as or internal) and graph.startswith(NOT_PYTHON) else graph
        same = (each for each in self._latest(records.GraphStage) if each.stage == stage)
        if kind == self._kinds.setdefault(stage, kind) or all(each.text != text for each in same):
            self.texts.append((self.piece, records.GraphStage(stage, 0, text, internal, self.ids, shown_as=shown_as)))

    def kernel(self, text: str, path: str) -> None:
        if not path or all(each.path != path for each in self._latest(records.Kernel)):
            self.texts.append((self.piece, records.Kernel(0, text, path, self.ids)))

    def _latest(self, kind: type[_Text]) -> Iterator[_Text]:
        """Yield the texts since the last one of another kind, the latest first."""
        texts: Any = (text for _, text in reversed(self.texts))
        return itertools.takewhile(lambda each: isinstance(each, kind), texts)

    def recorded(self, name: str = "") -> list[records.CompiledGraph]:
        """Return the graph, by a name, and its pieces."""
        if self.announced and self.begun != len(self.announced):  # it is not known which ones were compiled
            self.texts = [("" if isinstance(text, records.Kernel) or text.stage != "Captured_Graph" else piece, text)
                          for piece, text in self.texts]
        self._place_backward_graphs()
        # (After a reset torch counts anew.)
        name = name or f"__compiled_fn_of_{self.ids.frame}_{self.ids.recompile}" + (
            f"_after_reset_{self.ids.resets}" if self.ids.resets else "")
        return [self._record(name, piece) for piece in dict.fromkeys(["", *(piece for piece, _ in self.texts)])]

    def _place_backward_graphs(self) -> None:
        """Assign the graphs that Inductor compiles when the backward pass runs to the pieces with the same inputs.

        The log does not name the piece there. Pieces with the same inputs cannot be distinguished: there must be
        one such graph for each of them, and all equal.
        """
        pieces, places = defaultdict[Any, list[str]](list), defaultdict[Any, list[int]](list)
        for place, (piece, text) in enumerate(self.texts):
            if isinstance(text, records.GraphStage) and text.stage == "Backward_graph" and piece:
                pieces[_input_types(text)].append(piece)
            elif isinstance(text, records.GraphStage) and text.stage == "AFTER_POST_GRAD" and not piece:
                places[_input_types(text)].append(place)
        for inputs, found in places.items():
            if len(found) == len(pieces[inputs]) and len({self.texts[place][1].text for place in found}) == 1:
                for place, piece in zip(found, reversed(pieces[inputs])):
                    for number, (_, text) in enumerate(self.texts[place : place + 2], start=place):
                        if number == place or isinstance(text, records.Kernel):
                            self.texts[number] = piece, text

    def _record(self, whole: str, piece: str) -> records.CompiledGraph:
        stages: list[records.GraphStage] = []
        kernels: list[records.Kernel] = []
        files, name = naming.FileNames(), f"{whole}.{naming.legal_identifier(piece)}" if piece else whole
        for _, text in filter(lambda each: each[0] == piece, self.texts):
            if isinstance(text, records.Kernel):
                kernels.append(replace(text, index=len(kernels)))
            else:
                index, is_python = sum(each.stage == text.stage for each in stages), not (
                    text.shown_as or text.internal) or "def " in text.text and not legal_graph(
                        text.text).startswith(NOT_PYTHON)
                file = "" if is_python else files.stage_file(name, text.stage, index, is_python=False)
                stages.append(replace(text, index=index, file=file, compile_id=None if self.call else self.ids))
        graph = records.CompiledGraph(name, "" if piece else name, self.ids, "", _with_inputs(stages), tuple(kernels),
                              call=self.call, piece_of=whole if piece else "",
                              **({} if piece else self.facts))
        return replace(graph, kernels=Provenance(graph).kernels) if graph.kernels else graph


def _operations(text: str) -> list[tuple[str, str, tuple[str, ...]]]:
    return [(node.name, node.target, tuple(node.inputs)) for node in read_graph(text).nodes]


def _input_types(stage: records.GraphStage) -> tuple[tuple[str, str], ...]:
    """Return the names and types of the inputs of a graph."""
    return tuple((each.name, each.type.text if each.type else "") for each in read_graph(stage.text).inputs)


def _with_inputs(stages: Sequence[records.GraphStage]) -> tuple[records.GraphStage, ...]:
    """Return the stages with the inputs of the captured graph, by torch's names of its parameters.

    Only where AOTAutograd compiled that graph as a whole, and gave it no other inputs: they are known by their number.
    """
    captured, forward = ([each for each in stages if each.stage == wanted]
                         for wanted in ("Captured_Graph", "Forward_graph"))
    if len(captured) == len(forward) == 1:
        inputs = read_graph(captured[0].text).inputs
        if len(inputs) == len(read_graph(forward[0].text).inputs):
            whole = replace(captured[0], inputs=tuple(records.GraphInput(each.name) for each in inputs))
            return tuple(whole if each is captured[0] else each for each in stages)
    return tuple(stages)
