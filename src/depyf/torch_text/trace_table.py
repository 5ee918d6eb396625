"""What each event of torch's structured trace has: one table, by the event's kind or by the name of its artifact.

An event that the table lacks is recorded as it is, and counted in the notes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ..records import naming
from .graph_facts import FACTS, FIXED, ISSUES

#: What an event has: something about a compilation; the same once more, or data for other tools; an object that is
#: taken before torch makes JSON of it; a graph of a stage that everybody wants; a graph that a session sees when it is
#: made; a text of an export; a graph that a backend shows; one of torch's inner graphs, or a text around the graphs,
#: both written on request; guards and look-ups in caches, which are read, and written on request; facts about a graph;
#: what an export could not know.
READ, REPEATED, OBJECT, GRAPH, ALSO_SHOWN, EXPORT, DUMP, INNER, AROUND, ALSO_TEXT, OF_GRAPH, ISSUE = range(12)
#: Not in the table.
UNREAD = -1
#: The graph that DDPOptimizer made of calls of pieces, and one of the pieces. (A session that watches the process sees
#: both when they are made.)
DDP_SPLIT, DDP_PIECE = "optimize_ddp_split_graph", "optimize_ddp_split_child"
#: The cache of graphs that are in a saved package of Dynamo's versions, or in a saved function.
BUNDLED = "fx_graph_bundled"
#: Artifacts of which it is enough to know that they were: their texts say no more.
WITHOUT_PAYLOAD = "aotautograd_cache_miss"
#: Fields that every event may have, beside the one that names its kind.
_GENERAL = frozenset({
    "rank", "frame_id", "frame_compile_id", "attempt", "compile_id", "compiled_autograd_id", "has_payload", "stack",
    "pathname", "lineno", "timestamp", "thread", "process"})
_TORCH = "torch."


class Row(NamedTuple):
    """What an event has.

    Attributes:
        what: one of the constants above.
        stage: that of its graph, or the name by which its text is shown.
    """

    what: int
    stage: str = ""


_ROWS: dict[int, tuple[str, ...]] = {
    READ: (
        "dynamo_start", "compilation_metrics", "bwd_compilation_metrics", "create_symbol", "create_unbacked_symbol",
        "guard_added", "guard_added_fast", FIXED, "str", DDP_PIECE, "dynamo_graph_break_reason", "recompile_reasons"),
    REPEATED: (
        "describe_source", "describe_storage", "describe_tensor", "link", "dump_file", "inductor_output_code", "export",
        "propagate_real_tensors", "compilation_metrics_runtime", "bwd_compilation_metrics_runtime", "torch_version"),
    OBJECT: ("chromium_event",),
    DUMP: ("graph_dump",),
    INNER: (
        # (of compiled autograd, and those before and after passes up to torch 2.7)
        "compiled_autograd_graph", "before_recompile_pre_grad", "after_recompile_pre_grad",
        "before_recompile_post_grad", "after_recompile_post_grad", "inductor_pre_grad_graph"),
    AROUND: (*naming.AROUND, "dynamo_guards"),
    ALSO_TEXT: (
        "dynamo_cpp_guards_str", f"{BUNDLED}_cache_hit",
        "fx_graph_cache_hit", "fx_graph_cache_miss", "fx_graph_cache_bypass",
        "aotautograd_cache_hit", WITHOUT_PAYLOAD, "aotautograd_cache_bypass"),
    OF_GRAPH: tuple(FACTS),
    ISSUE: tuple(name for name in ISSUES if name != FIXED),
}
_TABLE = {
    **{name: Row(what) for what, names in _ROWS.items() for name in names},
    **{name: Row(GRAPH, stage) for name, stage in naming.GRAPHS.items()},
    **{name: Row(EXPORT, title) for name, title in naming.OF_EXPORTS.items()},
    "before_pre_grad_graph": Row(ALSO_SHOWN, naming.BEFORE_PRE_GRAD), DDP_SPLIT: Row(ALSO_SHOWN, "post split_module"),
}
#: Ends of names of artifacts: inner graphs, and side effects and bytecode of transformed code once more.
_ENDS = {
    INNER: ("graph", "graphs", "graph_before", "graph_after", "graph_pre_reordering", "graph_after_hop_passes"),
    REPEATED: ("_side_effects", "_ORIGINAL_BYTECODE", "_MODIFIED_BYTECODE", "_code_state")}


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
    known = _TABLE.get(name.removeprefix(_TORCH))
    if known is not None:
        return known
    if is_artifact:
        return next((Row(what) for what, ends in _ENDS.items() if name.endswith(ends)), Row(UNREAD))
    return Row(UNREAD if name else READ)


def row_of(metadata: Mapping[str, Any]) -> Row:
    """Return the row of an event."""
    return row(name_of(metadata), "artifact" in metadata)


class Text(NamedTuple):
    """The text of an event as a stage of a graph.

    Attributes:
        stage: of the graph; ``""`` for no text.
        shown_as: the name by which torch or a backend shows it, if that is not the stage's.
        internal: it is written on request only.
    """

    stage: str = ""
    shown_as: str = ""
    internal: bool = False


def text_of(metadata: Mapping[str, Any], payload: str) -> Text:
    """Return what the text of an event is."""
    what, stage = row_of(metadata)
    if what == GRAPH:
        return Text(stage)
    if what == DUMP:
        about = metadata["graph_dump"]
        stage = str(isinstance(about, dict) and about.get("name") or "graph_dump")
    if what in (DUMP, EXPORT, ALSO_SHOWN):
        return Text(naming.shown_stage(stage), naming.shown_name(stage))
    if what in (AROUND, ALSO_TEXT) or what == INNER and "class " in payload:
        return Text(name_of(metadata), internal=True)
    return Text()


def unread_name(metadata: Mapping[str, Any]) -> str:
    """Return the name of an event, or of its artifact, if nothing of depyf reads it; ``""`` otherwise."""
    name = name_of(metadata)
    return (name or kind_of(metadata)) if row_of(metadata).what == UNREAD else ""
