"""Events with facts about one graph -> values of :class:`~depyf.records.model.CompiledGraph`.

=====================================  ======================================================================
event (its kind, or the artifact)      what it says
=====================================  ======================================================================
``inductor_collective_schedule``       the collectives of the generated code, in order
``inductor_runtime_and_tensor_meta``   each kernel and collective: estimated time, shapes of what it gives
``triton_kernel_info``                 how Triton kernels were compiled and tuned
``propagate_real_tensors_provenance``  a condition on data that ``draft_export`` took from the real tensors
``symbolic_shape_specialization``      a size of an input that the export takes to have one value
``missing_fake_kernel``, ``mismatched_fake_kernel``, ``guard_added`` (while exporting)
``graph_execution``                    graphs in the order in which they ran (``record_and_log_graph_execution_order``)
=====================================  ======================================================================
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..records.model import ExportIssue, ExpressionStep, ScheduledOperation, SourceLocation, TritonKernel, UnreadEvent

#: Names of artifacts with facts about a graph.
FACTS = frozenset({"inductor_collective_schedule", "inductor_runtime_and_tensor_meta", "triton_kernel_info"})
#: The kind of event of a size that has one value only.
FIXED = "symbolic_shape_specialization"
#: The kind of event of an expression on sizes that was computed.
CREATED = "expression_created"
#: Steps of a computation that are recorded.
_MOST_STEPS = 20
#: Kinds of events with what an export could not know. (A guard is one only while a program is exported.)
ISSUES = {
    "propagate_real_tensors_provenance": "data", "missing_fake_kernel": "no fake kernel",
    "mismatched_fake_kernel": "wrong fake kernel", FIXED: "fixed", CREATED: ""}


#: Names of artifacts with graphs that ran, which are recorded as torch wrote them.
EXECUTIONS = frozenset({"graph_execution", "inductor_graph_execution"})


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
    """Return the issue of an export that raised an exception, with the changes that torch suggests.

    Args:
        location: the program's innermost line, if the exception passed through the exported module.
    """
    first, _, rest = message.strip().partition("\n")
    fixes = rest.partition("Suggested fixes:\n")[2].partition("\n\n")[0].splitlines()
    return ExportIssue("failed", kind, first, location, tuple(
        (name.strip(), value.strip()) for name, sign, value in (line.partition("=") for line in fixes) if sign))
