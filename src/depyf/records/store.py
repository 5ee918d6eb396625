"""``records.jsonl``: the records of a run, a line each, to make every view again later and elsewhere.

The first line names the schema. While the run goes on, each record is appended as soon as it is complete
(:mod:`depyf.records.log`), so that a killed process leaves what it had; when the run ends, the file is written once
more in its final form. docs/records.md describes the lines.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from . import plain_lines
from .building import build
from .model import (
    Capture,
    Compilation,
    CompiledCode,
    CompiledFunction,
    CompiledGraph,
    CompileId,
    GraphStage,
    GuardsOfEntry,
    Kernel,
    KernelOfGraph,
    SourceFile,
    StageOfGraph,
)
from .plain_lines import SCHEMA, first_line, last_lines, line_of

FILE = plain_lines.FILE
#: The note of a run whose file ends early.
NOT_ENDED = "the run did not end: what was complete when it was killed is here"
#: The note on records that a log of ``TORCH_TRACE`` was read into.
FROM_LOG = (
    "made from a log of TORCH_TRACE: functions and arguments have torch's names; the log holds no source of the "
    "original and the transformed functions, and does not say which module a node belongs to")


#: How the note begins that says which calls of the run were judged and found to be different.
WRONG_RESULTS = "wrong results: "


class RecordsError(ValueError):
    """A file that holds no records we can read; the message names it, the line, and what to do."""


#: Kinds of lines and what they hold.
_KINDS: dict[str, type] = {
    "compilation": Compilation, "function": CompiledFunction, "graph": CompiledGraph, "source": SourceFile,
    # while the run goes on
    "stage": StageOfGraph, "kernel": KernelOfGraph, "code": CompiledCode, "guards": GuardsOfEntry}


# --- writing --------------------------------------------------------------------------------------
def line(record: Any, known: dict[int, Any] | None = None) -> str:
    """One record (of a kind in ``_KINDS``) as a line.

    Args:
        record: what is written.
        known: parts of records as JSON has them, by identity, as long as they all live: versions share most guards.
    """
    kind = next(kind for kind, cls in _KINDS.items() if isinstance(record, cls))
    return line_of({"record": kind, **_plain(record, {} if known is None else known)})


def lines(capture: Capture) -> Iterator[str]:
    """Yield the lines of the file in its final form, which replaces the one written while the run went on."""
    yield first_line(capture.environment)
    known: dict[int, Any] = {}
    for record in (*capture.compilations, *capture.functions, *capture.graphs, *capture.sources):
        yield line(record, known)
    yield from last_lines(capture.notes)


def _plain(value: Any, known: dict[int, Any]) -> Any:
    """As JSON has it: fields that have their default are left out."""
    kind: Any = type(value)
    if kind in _ATOMS:
        return value
    defaults = _defaults(kind)
    if defaults is not None:
        fields = known.get(id(value))
        if fields is None:
            fields = known[id(value)] = {}
            for name, default in defaults:
                item = getattr(value, name)
                if item != default or type(item) is not type(default):
                    fields[name] = item if type(item) in _ATOMS else _plain(item, known)
        return fields
    if kind in (tuple, list):
        return [_plain(item, known) for item in value]
    if kind is dict:
        return {str(key): _plain(item, known) for key, item in value.items()}
    return value


_ATOMS = frozenset({str, int, float, bool, type(None)})


@functools.cache
def _defaults(kind: Any) -> tuple[tuple[str, Any], ...] | None:
    """Return ``(field, default)`` of each field of a record; ``None`` if the type is none.

    (Cached: a large model has a million fields.)
    """
    if not dataclasses.is_dataclass(kind):
        return None
    return tuple(
        (field.name,
         field.default_factory() if field.default_factory is not dataclasses.MISSING else field.default)
        for field in dataclasses.fields(kind))


# --- reading --------------------------------------------------------------------------------------
def read(path: str) -> Capture:
    """Read the records of a file, or of the directory of a run.

    A file that ends early (the process was killed) gives what was complete; a note says so. Its functions are not put
    together yet (:func:`depyf.torch_text.recorded.read_records` does that).

    Raises:
        RecordsError: it is not there, not of a schema we know, or damaged before its last line.
    """
    if os.path.isdir(path):
        path = os.path.join(path, FILE)
    try:
        with open(path, encoding="utf-8") as file:
            return _read(path, file)
    except OSError as error:
        raise RecordsError(f"{path!r} cannot be read ({error.strerror or error}). Give the directory that "
                           "depyf.prepare_debug wrote, or its records.jsonl.") from error
    except UnicodeDecodeError as error:
        raise RecordsError(f"{path!r} is not a file of records ({error}).") from error


def read_line(text: str) -> Any:
    """Return the record of one line.

    Raises:
        RecordsError: it is none.
    """
    try:
        value = json.loads(text)
        return build(_KINDS[value.pop("record")], value)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise RecordsError(f"a line of {FILE} is not a record of depyf ({error}).") from error


def checked(record: Any) -> Any:
    """Return a record that was built of foreign values; each field has the type that the schema says.

    Raises:
        RecordsError: one has not.
    """
    try:
        return build(type(record), _plain(record, {}))
    except (TypeError, ValueError) as error:
        raise RecordsError(f"not a {type(record).__name__}: {error}") from error


def filled(capture: Capture, streamed: Capture) -> Capture:
    """Return the capture completed by what was written while the run went on."""
    entries = {entry.compile_id for function in capture.functions for frame in function.frames
               for entry in frame.entries}
    graphs = {graph.name for graph in capture.graphs}
    compilations = {_identity(each, 0): each for each in (*streamed.compilations, *capture.compilations)}
    return dataclasses.replace(
        capture, environment=capture.environment or streamed.environment,
        functions=(*capture.functions, *filter(None, (_without(each, entries) for each in streamed.functions))),
        graphs=(*capture.graphs, *(graph for graph in streamed.graphs if graph.name not in graphs)),
        compilations=tuple(compilations[key] for key in sorted(compilations)))


def _without(function: CompiledFunction, known: set[CompileId]) -> CompiledFunction | None:
    """Return the function without the entries that are known; ``None`` if all are."""
    first, *others = (
        dataclasses.replace(frame, entries=tuple(entry for entry in frame.entries if entry.compile_id not in known))
        for frame in function.frames)
    others = [frame for frame in others if frame.entries]
    return dataclasses.replace(function, frames=(first, *others)) if first.entries or others else None


def _read(path: str, file: Iterable[str]) -> Capture:
    environment: dict[str, str] = {}
    notes: list[str] = []
    by_kind: dict[str, dict[Any, Any]] = {kind: {} for kind in _KINDS}
    ended, number = False, 0
    pending = iter(file)
    for number, text in enumerate(pending, 1):
        try:
            value = json.loads(text)
            kind = str(value.pop("record"))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            if number > 1 and not text.endswith("\n") and next(pending, None) is None:
                break  # the line that was being written when the process died
            raise RecordsError(f"{path}:{number} is not a record of depyf ({error}).") from error
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
            notes.append(str(value.get("text", "")))
        elif kind == "end":
            ended = True
        elif kind in _KINDS:
            try:
                record = build(_KINDS[kind], value)
                if isinstance(record, CompiledFunction) and not record.frames:
                    raise ValueError("it has no frames")
            except (TypeError, ValueError, KeyError) as error:
                raise RecordsError(f"{path}:{number}: this {kind} cannot be read ({error}).") from error
            by_kind[kind][_identity(record, number)] = record
    if number == 0:
        raise RecordsError(f"{path} is empty: the run ended before anything was compiled.")
    if not ended:
        notes.append(NOT_ENDED)
    return Capture(
        tuple(by_kind["function"].values()), tuple(map(_put_together(by_kind), by_kind["graph"].values())),
        tuple(notes), environment, tuple(by_kind["compilation"].values()), tuple(by_kind["source"].values()),
        tuple(map(_with_guards(by_kind["guards"]), by_kind["code"].values())))


def _put_together(by_kind: Mapping[str, Mapping[Any, Any]]) -> Callable[[CompiledGraph], CompiledGraph]:
    """Make a function that adds to a graph what came in lines of its own while the run went on."""
    stages: dict[str, dict[Any, GraphStage]] = {}
    kernels: dict[str, list[Kernel]] = {}
    for each in by_kind["stage"].values():
        stages.setdefault(each.graph, {})[each.stage.stage, each.stage.index] = each.stage
    for each in by_kind["kernel"].values():
        kernels.setdefault(each.graph, []).append(each.kernel)
    return lambda graph: dataclasses.replace(
        graph, stages=(*graph.stages, *stages.get(graph.name, {}).values()),
        kernels=(*graph.kernels, *kernels.get(graph.name, ())))


def _with_guards(guards: Mapping[Any, GuardsOfEntry]) -> Callable[[CompiledCode], CompiledCode]:
    texts = {each.compile_id.key: each.text for each in guards.values()}
    return lambda code: dataclasses.replace(
        code, guards=code.guards or texts.get(code.transformed.compile_id.key, ""))


def _identity(record: Any, number: int) -> Any:
    """Lines of the same record: the last one counts (a compilation gets its backward later)."""
    if isinstance(record, CompiledGraph):
        return record.name
    if isinstance(record, Compilation):
        return record.compile_id.key
    return number
