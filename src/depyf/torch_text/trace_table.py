"""What each event of torch's structured trace has: one table, by the event's kind or by the name of its artifact.

An event that the table lacks is recorded as it is, and counted in the notes.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ..records import naming
from .graph_facts import FACTS, FIXED, ISSUES


class Has(enum.Enum):
    """What an event has."""

    READ = "something about a compilation"
    REPEATED = "what another event has, or data for other tools"
    OBJECT = "an object, which is taken before torch makes JSON of it"
    GRAPH = "a graph of a stage that everybody wants"
    ALSO_SHOWN = "a graph that a session sees when torch shows it"
    EXPORT = "a text of an export"
    DUMP = "a graph that a backend shows"
    INNER = "one of torch's inner graphs, written on request"
    AROUND = "a text around the graphs, written on request"
    ALSO_TEXT = "guards, or a look-up in a cache: read, and written on request"
    OF_GRAPH = "facts about a graph"
    ISSUE = "what an export could not know"
    UNREAD = "nothing that the table knows"


#: Kinds of events about a compilation.
OF_A_COMPILATION = (
    "dynamo_start", "compilation_metrics", "bwd_compilation_metrics", "create_symbol", "create_unbacked_symbol", FIXED,
    "guard_added", "guard_added_fast")
#: The graph that DDPOptimizer made of calls of pieces, and one of the pieces. (A session that watches the process sees
#: both when they are made.)
DDP_SPLIT, DDP_PIECE = "optimize_ddp_split_graph", "optimize_ddp_split_child"
#: The cache of graphs that are in a saved package of Dynamo's versions, or in a saved function.
BUNDLED = "fx_graph_bundled"
#: An artifact of which it is enough to know that it was there: its text says no more.
WITHOUT_PAYLOAD = "aotautograd_cache_miss"
#: Fields that every event may have, beside the one that names its kind.
_GENERAL = frozenset({
    "rank", "frame_id", "frame_compile_id", "attempt", "compile_id", "compiled_autograd_id", "has_payload", "stack",
    "pathname", "lineno", "timestamp", "thread", "process"})
_TORCH = "torch."


class Row(NamedTuple):
    """What an event has."""

    what: Has
    stage: str = ""  # that of its graph, or the name by which its text is shown


def _rows(names: Mapping[Has, Iterable[str]]) -> dict[str, Row]:
    return {name: Row(what) for what, each in names.items() for name in each}


#: Of compiled autograd, and those before and after passes up to torch 2.7 (also artifacts).
_INNER = ("compiled_autograd_graph", "before_recompile_pre_grad", "after_recompile_pre_grad",
          "before_recompile_post_grad", "after_recompile_post_grad", "inductor_pre_grad_graph")
_EXPORTS = {name: Row(Has.EXPORT, title) for name, title in naming.OF_EXPORTS.items()}
_KINDS = {
    **_rows({
        Has.READ: (*OF_A_COMPILATION, "str", DDP_PIECE),
        Has.REPEATED: (
            "describe_source", "describe_storage", "describe_tensor", "link", "dump_file", "inductor_output_code",
            "export", "propagate_real_tensors", "compilation_metrics_runtime", "bwd_compilation_metrics_runtime"),
        Has.OBJECT: ("chromium_event",), Has.DUMP: ("graph_dump",), Has.INNER: _INNER, Has.AROUND: ("dynamo_guards",),
        Has.ALSO_TEXT: ("dynamo_cpp_guards_str",), Has.ISSUE: ISSUES.keys() - {FIXED}}),
    **{name: Row(Has.GRAPH, stage) for name, stage in naming.GRAPHS.items()},
    **_EXPORTS, DDP_SPLIT: Row(Has.ALSO_SHOWN, naming.POST_SPLIT),
}
_ARTIFACTS = {
    **_rows({
        Has.READ: ("dynamo_graph_break_reason", "recompile_reasons"), Has.INNER: _INNER, Has.AROUND: naming.AROUND,
        Has.ALSO_TEXT: (
            "fx_graph_cache_hit", "fx_graph_cache_miss", "fx_graph_cache_bypass", "aotautograd_cache_hit",
            WITHOUT_PAYLOAD, "aotautograd_cache_bypass", f"{BUNDLED}_cache_hit"),
        Has.OF_GRAPH: FACTS}),
    **{name: Row(Has.GRAPH, naming.GRAPHS[name]) for name in ("inductor_post_grad_graph", "after_post_grad_graph")},
    **_EXPORTS, "before_pre_grad_graph": Row(Has.ALSO_SHOWN, naming.BEFORE_PRE_GRAD),
}
#: Ends of names of artifacts: inner graphs; side effects and bytecode of transformed code once more.
_ENDS = {
    Has.INNER: ("graph", "graphs", "graph_before", "graph_after", "graph_pre_reordering", "graph_after_hop_passes"),
    Has.REPEATED: ("torch_version", "_side_effects", "_ORIGINAL_BYTECODE", "_MODIFIED_BYTECODE", "_code_state")}


def kind_of(metadata: Mapping[str, Any]) -> str:
    """Return the kind of an event: the field that others lack."""
    return next((key for key in metadata if key not in _GENERAL), "")


def name_of(metadata: Mapping[str, Any]) -> str:
    """Return the name of an event's artifact, without ``torch.``, or its kind; ``""`` for an empty event."""
    kind = kind_of(metadata)
    about = metadata.get(kind)
    return str(about.get("name", "")).removeprefix(_TORCH) if kind == "artifact" and isinstance(about, dict) else kind


def row(name: str, is_artifact: bool) -> Row:
    """Return the row of a kind of event, or of an artifact."""
    if not is_artifact:
        return _KINDS.get(name, Row(Has.UNREAD if name else Has.READ))
    return _ARTIFACTS.get(name.removeprefix(_TORCH)) or next(
        (Row(what) for what, ends in _ENDS.items() if name.endswith(ends)), Row(Has.UNREAD))


def row_of(metadata: Mapping[str, Any]) -> Row:
    """Return the row of an event."""
    return row(name_of(metadata), "artifact" in metadata)


class Text(NamedTuple):
    """The text of an event as a stage of a graph."""

    stage: str = ""  # of the graph; `""` for no text
    shown_as: str = ""  # the name by which torch or a backend shows it, if that is not the stage's
    internal: bool = False  # it is written on request only


def text_of(metadata: Mapping[str, Any], payload: str) -> Text:
    """Return what the text of an event is."""
    what, stage = row_of(metadata)
    if what == Has.GRAPH:
        return Text(stage)
    if what == Has.DUMP:
        about = metadata["graph_dump"]
        stage = str(isinstance(about, dict) and about.get("name") or "graph_dump")
    if what in (Has.DUMP, Has.EXPORT, Has.ALSO_SHOWN):
        return Text(naming.shown_stage(stage), naming.shown_name(stage))
    if what in (Has.AROUND, Has.ALSO_TEXT) or what == Has.INNER and "class " in payload:
        return Text(name_of(metadata), internal=True)
    return Text()


def unread_name(metadata: Mapping[str, Any]) -> str:
    """Return the name of an event, or of its artifact, if nothing of depyf reads it; ``""`` otherwise."""
    return (name_of(metadata) or kind_of(metadata)) if row_of(metadata).what == Has.UNREAD else ""
