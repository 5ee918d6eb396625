"""``records.jsonl``: the records of a run, a line each, to make every view again later and elsewhere.

The first line names the schema. While the run is in progress, each record is appended as soon as it is complete
(:class:`RecordLog`), so that a killed process leaves what it had; when the run ends, the file is written once
more in its final form. docs/records.md describes the lines.
"""

from __future__ import annotations

import dataclasses
import functools
import io
import json
import os
import re
import threading
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias, TypeVar

from .. import budgets
from ..reading import json_value, opened
from ..reading import lines as lines_of
from . import model, run_directory
from .run_directory import SCHEMA, environment, first_line, last_lines, line_of

FILE = run_directory.FILE
#: The note of a run whose file ends early.
NOT_ENDED = "the run did not end: what was complete when it was killed is here"
#: The note on records that a log of ``TORCH_TRACE`` was read into.
FROM_LOG = (
    "made from a log of TORCH_TRACE: functions and arguments have torch's names; the log has no source of the "
    "original and the transformed functions, and does not say which module a node belongs to")
#: The beginning of the note on records that a file was read into that torch saved; the path of it follows.
FROM_FILE = "read from a file that torch saved: "
#: The beginning of the note on calls of the run that were judged and found to be different.
WRONG_RESULTS = "wrong results: "
#: The beginning of the note on a generator function that the program had torch compile.
GENERATOR = "torch compiles no generator functions: "
#: The beginning of the note on a stance that the program set (``torch.compiler.set_stance``), and what each means.
UNDER_STANCE = "the program set the stance "
STANCES = {
    "force_eager": "all calls of compiled functions ran in plain Python; nothing counts them",
    "eager_on_recompile":
        "torch compiled nothing, and calls that no version fits ran in plain Python; nothing counts them",
    "fail_on_recompile": "torch compiled nothing, and what it would have compiled raised `RuntimeError`",
    "eager_then_compile": "the first call of each function ran in plain Python",
    "skip_guard_eval_unsafe":
        "torch tested only what differs between versions, which may have served calls that other conditions exclude",
}


class RecordsError(ValueError):
    """A file without records that we can read; the message names it, the line, and what to do."""


#: Kinds of lines and their records.
_KINDS: dict[str, type] = {
    "compilation": model.Compilation, "function": model.CompiledFunction, "graph": model.CompiledGraph,
    "source": model.SourceFile, "event": model.UnreadEvent, "rank": model.AlikeRank,
    # while the run is in progress
    "stage": model.StageOfGraph, "kernel": model.KernelOfGraph, "code": model.CodeObject, "bytecode": model.Bytecode,
    "guards": model.GuardsOfEntry,
    # at its end, where the texts are still to be written
    "order": model.OrderOfEntries, "recorded": model.EndOfRecording}
_KIND_OF = {cls: kind for kind, cls in _KINDS.items()}


# --- writing --------------------------------------------------------------------------------------
def line(record: Any, known: dict[int, Any] | None = None) -> str:
    """Return a record as a line; ``known``: parts of records as JSON, by identity, as long as they all live."""
    return line_of({"record": _KIND_OF[type(record)], **_plain(record, {} if known is None else known)})


def lines(capture: model.Capture) -> Iterator[str]:
    """Yield the lines of the file in its final form, which replaces the one written before."""
    yield first_line(capture.environment)
    known: dict[int, Any] = {}
    for record in (*capture.compilations, *capture.functions, *capture.graphs, *capture.sources, *capture.events,
                   *capture.alike_ranks):
        yield line(record, known)
    yield from last_lines(capture.notes)


_ATOMS = frozenset({str, int, float, bool, type(None)})  #: Types of values that JSON has as they are, as most are.


def _plain(value: Any, known: dict[int, Any]) -> Any:
    """Return a value as JSON has it: fields that have their default are left out."""
    kind: Any = type(value)
    if kind in (tuple, list):
        return [item if type(item) in _ATOMS else _plain(item, known) for item in value]
    if kind is dict:
        return {str(key): _plain(item, known) for key, item in value.items()}
    if not dataclasses.is_dataclass(value):
        return value
    fields = known.get(id(value))
    if fields is None:
        fields = known[id(value)] = {}
        for name, default in _defaults(kind):
            item = getattr(value, name)
            if item != default or type(item) is not type(default):
                fields[name] = item if type(item) in _ATOMS else _plain(item, known)
    return fields


@functools.cache
def _defaults(kind: Any) -> list[tuple[str, Any]]:
    """Return ``(field, default)`` of each field of a record, cached: a large model has a million fields."""
    return [(field.name, field.default_factory() if callable(field.default_factory) else field.default)
            for field in dataclasses.fields(kind)]


# --- reading --------------------------------------------------------------------------------------
def read(path: str) -> model.Capture:
    """Read the records of a file, or of the directory of a run.

    A file that ends early (the process was killed) gives what was complete; a note says so. Functions whose texts are
    not written yet are in ``unwritten`` (:func:`depyf.finishing.frames.read_records` writes them).

    Raises:
        RecordsError: it is not there, not of a schema we know, or damaged before its last line.
    """
    if os.path.isdir(path):
        path = os.path.join(path, FILE)
    try:
        return _read(path, lines_of(path, budgets.RUN))
    except OSError as error:
        raise RecordsError(f"{path!r} cannot be read ({error.strerror or error}). Give the directory that "
                           "depyf.prepare_debug wrote, or its records.jsonl.") from error


#: How long a compilation took; only its first: spans of its timeline follow.
_SECONDS = re.compile(rb'(\{"record":"compilation",[^}]*\}).*?"start":[-+.\deE]+,"seconds":([-+.\deE]+)')


def seconds_of(data: bytes) -> float:
    """Return how long the compilations of a file of records took, without reading the rest of it."""
    # (A compilation is written again when its backward graph was compiled: the last line counts.)
    return sum({found[1]: float(found[2]) for found in _SECONDS.finditer(data)}.values())


def is_unwritten(path: str) -> bool:
    """Return whether the run of a directory ended and its files are still to be made."""
    try:
        with opened(os.path.join(path, FILE), budgets.RUN) as file:
            size = file.seek(0, os.SEEK_END)
            block, length = b"", _CHUNK
            while b"\n" not in block[:-1] and len(block) < min(size, budgets.LINE.allowed):
                file.seek(max(0, size - length))
                block = file.read(length)
                length *= 8  # (the paths of hundreds of files are in this line)
    except OSError:
        return False
    return block.endswith(b"\n") and block[block.rfind(b"\n", 0, -1) + 1 :].startswith(b'{"record":"recorded"')


def checked(record: Any) -> Any:
    """Return a record that was built of foreign values, each field of the type that the schema says.

    Raises:
        RecordsError: a field is of another type.
    """
    try:
        return build(type(record), _plain(record, {}))
    except (TypeError, ValueError) as error:
        raise RecordsError(f"not a {type(record).__name__}: {error}") from error


def filled(capture: model.Capture, streamed: model.Capture) -> model.Capture:
    """Return the capture completed by what was written while the run was in progress."""
    graphs = {graph.name for graph in capture.graphs}
    compilations = {_identity(each, b""): each for each in (*streamed.compilations, *capture.compilations)}
    return dataclasses.replace(
        capture, environment=capture.environment or streamed.environment,
        unwritten=streamed.unwritten if streamed.unwritten is not None else capture.unwritten,
        graphs=(*capture.graphs, *(graph for graph in streamed.graphs if graph.name not in graphs)),
        compilations=tuple(compilations[key] for key in sorted(compilations)))


def _read(path: str, file: Iterable[bytes]) -> model.Capture:
    environment: dict[str, str] = {}
    notes: list[str] = []
    by_kind: dict[str, dict[Any, Any]] = {kind: {} for kind in _KINDS}
    ended, number = False, 0
    pending = iter(file)
    for number, text in enumerate(pending, 1):
        try:
            value = json_value(text)
            kind = str(value.pop("record"))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            if number > 1 and not text.endswith(b"\n") and next(pending, None) is None:
                break  # the line that was being written when the process died
            raise RecordsError(f"{path}:{number} is not a record of depyf ({error}). The file is damaged or not of "
                               "depyf; give a directory that depyf.prepare_debug wrote.") from error
        if number == 1:
            if kind != "schema" or value.get("version") != SCHEMA:
                raise RecordsError(
                    f"{path} is of schema {value.get('version')!r}; this depyf reads schema {SCHEMA}. "
                    "Read it with the version that wrote it (the file .depyf beside it names that).")
            try:
                environment = build(dict[str, str], value.get("environment") or {})
            except (TypeError, ValueError) as error:
                raise RecordsError(f"{path}:1: the environment cannot be read ({error}).") from error
        elif kind == "note":
            notes.append(build(str, str(value.get("text", ""))))
        elif kind == "end":
            ended = True
        elif kind in _KINDS:
            try:
                record = build(_KINDS[kind], value)
                if isinstance(record, model.CompiledFunction) and not record.frames:
                    raise ValueError("it has no frames")
            except (TypeError, ValueError, KeyError) as error:
                raise RecordsError(f"{path}:{number}: this {kind} cannot be read ({error}).") from error
            by_kind[kind][_identity(record, text)] = record
    if number == 0:
        raise RecordsError(f"{path} is empty: the run ended before anything was compiled.")
    if not ended and not by_kind["recorded"]:
        notes.append(NOT_ENDED)
    records = {kind: tuple(known.values()) for kind, known in by_kind.items()}
    end = next(iter(records["recorded"]), None)
    unwritten = model.Unwritten(records["code"], records["bytecode"], records["guards"], records["order"], end)
    return model.Capture(
        records["function"], _complete_graphs(records), tuple(dict.fromkeys(notes)), environment,
        records["compilation"], records["source"], None if ended else unwritten, records["event"],
        records["rank"])


def _complete_graphs(records: Mapping[str, tuple[Any, ...]]) -> tuple[model.CompiledGraph, ...]:
    """Return the graphs with the stages and kernels that were appended while the run continued."""
    stages: dict[str, dict[Any, model.GraphStage]] = {}
    kernels: dict[str, list[model.Kernel]] = {}
    for each in records["stage"]:
        stages.setdefault(each.graph, {})[each.stage.stage, each.stage.index] = each.stage
    for each in records["kernel"]:
        kernels.setdefault(each.graph, []).append(each.kernel)
    return tuple(dataclasses.replace(
        graph, stages=(*graph.stages, *stages.get(graph.name, {}).values()),
        kernels=(*graph.kernels, *kernels.get(graph.name, ()))) for graph in records["graph"])


def _identity(record: Any, text: bytes) -> Any:
    """Return a key of the record of a line.

    Of several lines with a key the last one counts (a compilation gets its backward later); equal lines count once.
    """
    if isinstance(record, model.CompiledGraph):
        return record.name
    if isinstance(record, model.Compilation):
        return record.compile_id.key
    return hash(text)


# --- JSON -> records ---------------------------------------------------------------------------------
# A name or message of absurd length is cut: views work on it many times. Only texts of code may be as long as their
# line.
#: The fields that contain texts of code.
_CODE = {
    model.CodeText: {"text"}, model.GraphStage: {"text"}, model.Kernel: {"text"}, model.SourceFile: {"text"},
    model.GuardsOfEntry: {"text"}, model.UnreadEvent: {"text"}, model.Bytecode: {"facts"}, model.PackedCode: {"data"}}
_Builder = Callable[[Any], Any]  #: Builds the value of a field from a value of JSON.


def build(kind: Any, value: Any) -> Any:
    """Build from a value of JSON what an annotation says.

    Raises:
        TypeError, ValueError: it is of another type, or fields are missing.
    """
    return _builder(kind)(value)


@functools.cache
def _builder(kind: Any) -> _Builder:
    """Return a function that builds what an annotation says."""
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return _record(kind)
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        inner = _builder(next(argument for argument in arguments if argument is not type(None)))
        return lambda value: None if value is None else inner(value)
    if origin is tuple:
        parts = [_builder(argument) for argument in arguments if argument is not Ellipsis]
        if Ellipsis in arguments:
            return lambda value: tuple(map(parts[0], _of(list, value)))
        return lambda value: tuple(part(item) for part, item in zip(parts, _of(list, value), strict=True))
    if origin is dict:
        item = _builder(arguments[1])
        return lambda value: {_text(key): item(each) for key, each in _of(dict, value).items()}
    if kind is float:
        return _number
    return _text if kind is str else functools.partial(_of, kind)


def _of(kind: type, value: Any) -> Any:
    """Return the value if it is of a type; else raise a ``TypeError``."""
    if not isinstance(value, kind):
        names: dict[type, str] = {list: "a list", dict: "a dictionary"}
        called = names.get(kind, kind.__name__)
        raise TypeError(f"{called} expected, not {type(value).__name__}")
    return value


def _text(value: Any) -> str:
    text: str = _of(str, value)
    excess = budgets.TEXT.exceeded(len(text))
    return f"{text[: budgets.TEXT.allowed]} ... (cut: {excess})" if excess else text


def _number(value: Any) -> float:
    if not isinstance(value, (int, float)) or not -1e300 < value < 1e300:
        raise TypeError(f"float expected, not {value if isinstance(value, float) else type(value).__name__}")
    return float(value)


def _record(cls: type) -> _Builder:
    hints = typing.get_type_hints(cls, vars(model))
    builders = {field.name: _builder(hints[field.name]) for field in dataclasses.fields(cls)}
    builders.update((name, functools.partial(_of, str)) for name in _CODE.get(cls, ()))

    def record(value: Any) -> Any:
        if not isinstance(value, dict):
            raise TypeError(f"{cls.__name__} expected, not {type(value).__name__}")
        fields = {}
        for name, item in value.items():
            if (make := builders.get(name)) is not None:  # (a later version may have more fields)
                is_short = make is _text and type(item) is str and len(item) <= budgets.TEXT.most  # (thousands are)
                fields[name] = item if is_short else make(item)
        return cls(**fields)

    return record


# --- the file while the run is in progress -----------------------------------------------------------
#     place = log.append(CompiledGraph("__compiled_fn_1", ...))   # another line
#     log.read(place)                                             # the record again
#
# A process that is killed leaves the lines that it appended. A record need not stay in memory.
R = TypeVar("R")
#: The number of bytes, of those appended last, whose records are in memory, too: most that are read are new.
RECENT = 200_000
_CHUNK = 1 << 16
#: The place of a record that was appended, its first byte; the record itself where that failed.
Recorded: TypeAlias = R | int


class RecordLog:
    """The file. It is created for the first record, and stays open: its folder may be removed meanwhile."""

    def __init__(self, folder: str, failed: Callable[[Exception], None]) -> None:
        self._path = os.path.join(folder, FILE)
        self._failed = failed  # called with the reason why a record could not be written
        self._lock = threading.Lock()
        self._file: io.FileIO | None = None
        self._recent: dict[int, tuple[object, int]] = {}  # by place; with their lengths
        self._size = 0  # of those
        self._complete = True

    def append(self, record: R) -> Recorded[R]:
        """Write a record as a line and return its place; the record itself where that cannot be done."""
        try:
            data = line(record).encode()  # (before the file is created)
            with self._lock:
                place = self._written(data)
                self._recent[place] = record, len(data)
                self._size += len(data)
                while self._size > RECENT:
                    self._size -= self._recent.pop(next(iter(self._recent)))[1]
        except Exception as error:
            self._complete = False
            self._failed(error)
            return record
        return place

    def end(self, record: model.EndOfRecording, notes: Iterable[str]) -> None:
        """Write the notes on the run and its end; where a record is missing no end, so that the file says so."""
        lines = [line_of({"record": "note", "text": note}) for note in notes]
        if self._complete:
            lines.append(line(record))
        try:
            with self._lock:
                self._written("".join(lines).encode())
        except OSError as error:
            self._failed(error)

    def _written(self, data: bytes) -> int:
        if self._file is None:
            self._file = open(self._path, "a+b", buffering=0)
        begin = self._file.seek(0, os.SEEK_END)
        first = b"" if begin else first_line(environment()).encode()
        rest = memoryview(first + data)
        try:
            while rest:
                rest = rest[self._file.write(rest):]
        except OSError:
            self._file.truncate(begin)  # half a line would corrupt the next one
            raise
        return begin + len(first)

    def read(self, recorded: Recorded[R]) -> R:
        """Return the record that :meth:`append` returned a place for, or returned as it is.

        Raises:
            OSError, RecordsError: it cannot be read.
        """
        if not isinstance(recorded, int):
            return recorded
        with self._lock:
            if recorded in self._recent:
                return self._recent[recorded][0]  # type: ignore[return-value]  # what was appended there
            if self._file is None:
                raise OSError(f"{self._path} is closed")
            self._file.seek(recorded)
            buffered = io.BufferedReader(self._file, _CHUNK)
            text = buffered.readline()
            buffered.detach()  # (the file stays open)
        if not text.endswith(b"\n"):
            raise OSError("a record ends early")
        try:
            value = json.loads(text)
            return build(_KINDS[value.pop("record")], value)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise RecordsError(f"a line of {FILE} is not a record of depyf ({error}).") from error

    def close(self) -> None:
        """Close the file; the whole run is written again, in its final form."""
        with self._lock:
            self._recent.clear()
            file, self._file = self._file, None
        try:
            if file is not None:
                file.close()
        except OSError as error:
            self._failed(error)
