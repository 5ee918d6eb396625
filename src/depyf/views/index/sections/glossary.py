"""The words of the index, for who meets them for the first time."""

from __future__ import annotations

from ....torch_text import random_values
from ..written import WORDS
from .context import SectionContext

_WORDS = (
    "**Graph** (`__compiled_fn_1`): the tensor operations of a function as torch traced them; the backend compiles it.",
    "**Version** (`[0/1]`: frame 0, compiled for the second time): what torch made of a function for some calls: "
    "guards, a graph, and the transformed code, which runs in place of the function and calls the graph.",
    "**Guard**: a condition that a call must satisfy to be served by a version. Where no version fits, torch compiles "
    "another one: a recompile.",
    "**Graph break**: what torch cannot trace ends the graph. Python runs that, then a new graph begins.",
    "**Resume function** (`__resume_at_42_3`): the rest of a function after a graph break, compiled as a function of "
    "its own. Where the break is at a branch there are two. The numbers are torch's: a byte offset and a count.",
)
#: (torch/_dynamo/resume_execution.py)
_NESTED = (
    "**`__nested_resume_fns`**, **`__nested_frame_values`** (arguments of resume functions): where torch continues "
    "inside of a function that another one called (`torch._dynamo.config.nested_graph_breaks`, off by default), the "
    "resume functions of what was called and the values of their variables; elsewhere empty lists.")


def glossary(run: SectionContext) -> list[str]:
    """Return what graph, version and guard are; where there are graph breaks, what these and resume functions are."""
    if not run.capture.compilations:
        return []
    words = _WORDS if any(c.breaks for c in run.capture.compilations) else _WORDS[:3]
    if any("__nested_resume_fns" in frame.arguments for frame in run.frames.values()):
        words = (*words, _NESTED)
    texts = (entry.transformed.source.text for frame in run.frames.values() for entry in frame.entries)
    drawn = next((name for text in texts for name in random_values.random_values(text)), "")
    if drawn:
        words = (*words, f"**`{drawn}`** (in transformed code): {random_values.MEANING}.")
    return [f"## {WORDS}", "", *(f"* {text}" for text in words)]
