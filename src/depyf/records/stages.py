"""The events of torch's structured trace with a graph, and the names of stages in the dump."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .model import GraphStage
from .naming import legal_identifier

#: Graphs of the structured trace that everybody wants, and their stage.
EVENTS = {
    "dynamo_output_graph": "Captured_Graph",
    "aot_joint_graph": "Joint_graph",
    "aot_forward_graph": "Forward_graph",
    "aot_inference_graph": "Forward_graph",
    "aot_backward_graph": "Backward_graph",
    "inductor_post_grad_graph": "AFTER_POST_GRAD",
}
#: Artifacts of the trace with a graph of a stage (by name), written as that stage.
ARTIFACTS = {"inductor_post_grad_graph": "AFTER_POST_GRAD", "after_post_grad_graph": "AFTER_POST_GRAD"}
#: Texts of AOTAutograd and Inductor around the graphs: what is done to inputs and outputs, which are changed or share
#: memory, the graph as a script.
AROUND = frozenset({
    "runtime_wrapper_orchestration", "compiled_function_forward", "compiled_function_backward", "compiled_fn_wrapper",
    "backward_prologue", "backward_epilogue", "aot_forward_graph_fw_metadata", "fx_graph_runnable"})

#: What Inductor is given: mostly the captured graph once more.
BEFORE_PRE_GRAD = "BEFORE PRE GRAD"
#: Names of stages of torch's own that it shows by ``lazy_format_graph_code`` and that everybody wants: what Inductor is
#: given, and what a graph is split into. The others are in the trace, or internal.
SHOWN_BY_TORCH = frozenset({BEFORE_PRE_GRAD, "pre split_module", "post split_module"})
#: Artifacts of the trace that are shown so, too.
ALSO_SHOWN = frozenset({"before_pre_grad_graph"})
#: How names of stages begin that the trace has, too.
_TRACED = ("AFTER POST GRAD", "Joint graph", "Forward graph", "Backward graph", "__compiled_fn")
#: Characters of a name that a backend gives a stage.
_LONGEST = 160


#: Adjectives for the graphs of a compilation, in the order in which they are made.
ADJECTIVES = {"Captured_Graph": "captured", "Joint_graph": "joint", "Forward_graph": "forward",
              "Backward_graph": "backward", "AFTER_POST_GRAD": "post-grad"}


def title(stage: GraphStage) -> str:
    """Return the name of a stage, in words: ``"captured graph"``, ``"after Inductor's passes, backward"``."""
    if stage.shown_as:
        return shown_name(stage.shown_as)  # (records may come from anywhere)
    if stage.stage == "AFTER_POST_GRAD":
        return ", ".join(filter(None, ("after Inductor's passes", direction(stage))))
    return graph_name(stage.stage) or stage.stage.replace("_", " ")


def graph_name(stage: str) -> str:
    """Return ``"captured graph"`` for ``"Captured_Graph"``; ``""`` for a stage that :data:`ADJECTIVES` lacks."""
    return f"{ADJECTIVES[stage]} graph" if stage in ADJECTIVES else ""


def direction(stage: GraphStage) -> str:
    """Return the direction of a graph after Inductor's passes, ``"forward"`` or ``"backward"``.

    ``""`` for a graph of any other stage, and where there is no backward graph. A graph that takes gradients is the
    backward one; for one that takes ``primals_1`` there is a backward one.
    """
    if stage.stage != "AFTER_POST_GRAD":
        return ""
    signature = stage.text[: stage.text.find("):\n", stage.text.find("def "))]
    return "backward" if "tangents_" in signature else "forward" if "primals_" in signature else ""


def is_traced(name: str) -> bool:
    """Return whether a graph that torch shows by a name is among those in its trace."""
    return name.startswith(_TRACED) and "before" not in name


def shown_name(name: str) -> str:
    """Return the name that a backend gives a stage as one line of bounded length."""
    line = " ".join("".join(each if each.isprintable() else " " for each in name).split()) or "unnamed"
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 4]} ..."


def shown_stage(name: str) -> str:
    """Return the stage, an identifier, for a name that a backend gives: ``before_split`` for ``before split``."""
    stage = legal_identifier(name)
    return f"backend_{stage}" if stage in ADJECTIVES or stage in AROUND else stage


def stage_of(metadata: Mapping[str, Any]) -> str:
    """Return the stage of the graph in an event; ``""`` if there is none that everybody wants."""
    for event, stage in EVENTS.items():
        if event in metadata:
            return stage
    artifact = metadata.get("artifact")
    return ARTIFACTS.get(str(artifact.get("name", "")), "") if isinstance(artifact, dict) else ""


def internal_stage_of(metadata: Mapping[str, Any], payload: str) -> str:
    """Return the name of one of torch's inner graphs, or of a text around them, written on request; else ``""``."""
    artifact = metadata.get("artifact")
    name = str(artifact.get("name", "")) if isinstance(artifact, dict) else ""
    return name if name in AROUND or "graph" in name and "class " in payload else ""


def may_be_internal(artifact: str) -> bool:
    """Return whether an artifact of a name may be what :func:`internal_stage_of` looks for."""
    return "graph" in artifact or artifact in AROUND
