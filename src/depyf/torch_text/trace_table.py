"""What each event of torch's structured trace has: one table, by the event's kind or by the name of its artifact.

An event that the table lacks is recorded as it is, and counted in the notes.
"""

from __future__ import annotations

import enum
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ..records import naming
from ..records.model import ExportIssue, ExpressionStep, ScheduledOperation, SourceLocation, TritonKernel, UnreadEvent

#: Names of artifacts with facts about a graph.
FACTS = frozenset({"inductor_collective_schedule", "inductor_runtime_and_tensor_meta", "triton_kernel_info"})
FIXED = "symbolic_shape_specialization"  #: The kind of event of a size that has one value only.
CREATED = "expression_created"  #: The kind of event of an expression on sizes that was computed.
_MOST_STEPS = 20  #: Steps of a computation that are recorded.
#: Kinds of events with what an export could not know. (A guard is one only while a program is exported.)
ISSUES = {
    "propagate_real_tensors_provenance": "data", "missing_fake_kernel": "no fake kernel",
    "mismatched_fake_kernel": "wrong fake kernel", FIXED: "fixed", CREATED: ""}
#: Names of artifacts with graphs that ran, which are recorded as torch wrote them.
EXECUTIONS = frozenset({"graph_execution", "inductor_graph_execution"})


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


# --- facts about one graph ---------------------------------------------------------------------------
# =====================================  =====================================================================
# event (its kind, or the artifact)      what it says
# =====================================  =====================================================================
# `inductor_collective_schedule`         the collectives of the generated code, in order
# `inductor_runtime_and_tensor_meta`     each kernel and collective: estimated time, shapes of what it gives
# `triton_kernel_info`                   how Triton kernels were compiled and tuned
# `propagate_real_tensors_provenance`    a condition on data that `draft_export` took from the real tensors
# `symbolic_shape_specialization`        a size of an input that the export takes to have one value
# `missing_fake_kernel`, `mismatched_fake_kernel`, `guard_added` (while exporting)
# `graph_execution`                      graphs in the order in which they ran
def executed(events: Iterable[UnreadEvent]) -> list[str]:
    """Return the graphs in the order in which they ran, by torch's ids (``"0/1"``) or its names of them."""
    found: list[str] = []
    for event in events:
        if event.name in EXECUTIONS:
            try:
                value = json.loads(event.text)
                for each in value["graph_execution_order"] if "graph_execution_order" in value else [value]:
                    found.append(f"[{each['compile_id']}]" if each.get("compile_id") else str(each.get("graph")))
            except (ValueError, TypeError, AttributeError):  # (not as torch writes it)
                continue
    return found


def graph_facts(artifact: str, payload: str) -> dict[str, Any]:
    """Return the fields of a graph that an artifact has.

    Raises:
        ValueError, TypeError, KeyError, AttributeError: it is not as torch writes it.
    """
    value = json.loads(payload)
    if artifact == "inductor_collective_schedule":
        return {"collectives": tuple(map(str, value))}
    if artifact == "inductor_runtime_and_tensor_meta":
        return {"schedule": tuple(
            ScheduledOperation(str(each["name"]), each.get("type") == "collective",
                               float(each.get("estimated_runtime_ns") or 0) / 1e9,
                               tuple(_tensor(output) for output in each.get("outputs") or () if output.get("dtype")))
            for each in value["ops"])}
    return {"triton": tuple(
        TritonKernel(str(name), str(each.get("autotune_cache_state") or ""), int(each.get("num_configs") or 1),
                     tuple(f"{option} {setting}" for option, setting in
                           each.get("only_config") or each.get("best_config") or ()),
                     float(each.get("compile_time_us") or 0) / 1e6)
        for name, each in value.items())}


def add_facts(known: dict[str, Any], facts: Mapping[str, tuple[Any, ...]]) -> None:
    """Add values to the fields that a graph has: those of its backward code come after those of its forward code.

    An export decides the same thing several times: that is one issue.
    """
    for name, values in facts.items():
        before = known.get(name, ())
        known[name] = (*before, *(each for each in values if name != "issues" or each not in before))


def _tensor(value: Mapping[str, Any]) -> str:
    """Return ``float16[1024, 4]``, with strides unless the tensor is contiguous."""
    shape, stride = list(value.get("shape") or ()), list(value.get("stride") or ())
    contiguous = [math.prod(shape[place + 1 :]) for place in range(len(shape))] if all(
        isinstance(size, int) for size in shape) else stride
    strides = "" if stride == contiguous else f", strides {stride}"
    return f"{value.get('dtype', '')}{shape}{strides}"


def export_issue(
    kind: str, event: Mapping[str, Any], location: SourceLocation | None,
    expressions: Mapping[Any, tuple[ExpressionStep, Sequence[Any]]],
) -> ExportIssue | None:
    """Return the issue of an event; ``None`` for one that only names an expression.

    Args:
        expressions: those on sizes that were computed so far, by torch's number of the result, with its numbers of what
            they were computed of.
    """
    what = ISSUES.get(kind, "guard")
    if not what:
        return None
    frame = event.get("frame_locals")
    known = frame if isinstance(frame, dict) else {}
    values = tuple((str(name), str(value)) for part in ("symbols", "locals")
                   for name, value in (known.get(part) or {}).items())
    if kind == FIXED:
        return ExportIssue(what, ", ".join(map(str, event.get("sources") or ())), str(event.get("value", "")), location)
    subject, outcome = str(event.get("expr") or event.get("op") or ""), event.get("result") or event.get("reason")
    steps: dict[int, ExpressionStep] = {}
    pending = [event.get("expr_node_id")]
    while pending and len(steps) < _MOST_STEPS:
        number = pending.pop(0)
        if isinstance(number, int) and number in expressions and number not in steps:
            steps[number], numbers = expressions[number]
            pending += numbers
    return ExportIssue(what, subject, str(outcome or ""), location, values, tuple(steps.values()))


def export_failure(kind: str, message: str, location: SourceLocation | None) -> ExportIssue:
    """Return the issue of an export that raised at a line of the program, with the changes that torch suggests."""
    first, _, rest = message.strip().partition("\n")
    fixes = rest.partition("Suggested fixes:\n")[2].partition("\n\n")[0].splitlines()
    return ExportIssue("failed", kind, first, location, tuple(
        (name.strip(), value.strip()) for name, sign, value in (line.partition("=") for line in fixes) if sign))
