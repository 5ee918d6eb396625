"""Words and numbers that several texts say in the same way."""

from __future__ import annotations

from ..capture.records import GraphStage
from .markdown import code

#: Words for ``Compilation.outcome``, in the order of their weight.
OUTCOMES = {"failed": "failed", "limit": "stopped at the recompile limit", "skipped": "skipped",
            "unknown": "not finished"}
#: The same for a compilation that is told by itself.
OUTCOME_OF_ONE = OUTCOMES | {"limit": "the recompile limit is reached"}
#: Graphs in the order in which they are made.
_STAGES = {"Captured_Graph": "captured", "Joint_graph": "joint", "Forward_graph": "forward",
           "Backward_graph": "backward", "AFTER_POST_GRAD": "post-grad"}


def stage_name(stage: GraphStage) -> str:
    """``captured``, ``post-grad 2``: a stage of a graph in Markdown."""
    name = _STAGES.get(stage.stage, code(stage.stage))
    return f"{name} {stage.index + 1}" if stage.index else name


def seconds(value: float) -> str:
    return f"{value:.2f} s"
