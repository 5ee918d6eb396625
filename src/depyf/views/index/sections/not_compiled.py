"""The section on what was not compiled: skipped, failed, beyond the recompile limit."""

from __future__ import annotations

from ....advice.source import is_own
from ....records.model import Compilation, Frame
from ....torch_text.events import graph_break
from ....torch_text.global_names import resumed_function
from ....torch_text.met import in_order
from ...causes import cause
from ...formatting import NO_TENSORS, on_branch
from ...grouping import not_compiled as groups_not_compiled
from ...markdown import code, fenced, prose
from ...verdict import break_given_up_at, since_then, why_given_up, why_plain
from .context import ROWS, SectionContext, left_out
from .recompiles import event


def not_compiled(run: SectionContext) -> list[str]:
    """Return the section on what runs in plain Python, and why."""
    groups = groups_not_compiled(run.capture.compilations)
    left_alone = [frame for frame in run.frames.values() if frame.without_tensors]
    if not groups and not left_alone:
        return []
    lines = ["## Not compiled", "", "These run in plain Python, as if there were no `torch.compile`, unless an "
             "exception is named.", ""]
    for members in groups[:ROWS]:
        lines += _not_compiled(run, members)
    lines += left_out(len(groups) - ROWS, "reason")
    for frame in left_alone[:ROWS]:
        lines += _without_tensors(run, frame)
    return lines + left_out(len(left_alone) - ROWS, "function")


def _without_tensors(run: SectionContext, frame: Frame) -> list[str]:
    """Return the lines on a resume function that torch left alone; there is no compilation of it."""
    resumed = resumed_function(frame.code_name)
    rest = f" from line {resumed[1]} on{on_branch(frame.branch)}" if resumed else ""
    return [f"* {run.place(frame.location) or 'place unknown'}: **{code(frame.title or frame.name)}{rest} runs in "
            f"plain Python: {NO_TENSORS}.**",
            "  * how to have it compiled, where it computes with tensors and changes no object from call to call: give "
            "it a tensor that it uses, as an argument of the function or in a variable that is set before the graph "
            "break and read after it"]


def _not_compiled(run: SectionContext, members: list[Compilation]) -> list[str]:
    first = members[0]
    times = f", {len(members)} times" if len(members) > 1 else ""
    meant = first.user_function
    place = meant.location if meant is not None and meant.location is not None else first.location
    head = f"* {run.place(place) or 'place unknown'}, {code(str(first.compile_id))}{times}: "
    if first.outcome == "unknown":
        return [f"{head}the end of the compilation of {run.name_of(first)} was not seen (the run ended before, or an "
                "exception of the program came first)"]
    lines = [f"{head}**{why_plain(run, first)}.**{since_then(run, first)}"]
    failure = first.failure
    account = graph_break(first.compile_id, failure.reason) if failure else None
    broken = break_given_up_at(first)
    if broken is not None:
        lines.append(f"  * why it breaks: {prose(cause(broken))}; [Graph breaks](#graph-breaks) has torch's words")
        lines += [f"  * how to fix it: {text}" for text in run.advice.on_lost(first)]
        if broken.gave_up:
            lines.append(f"  * why torch gives the function up: {why_given_up(broken)}.")
        return lines
    if first.outcome == "limit":
        for compilation in members[:3]:
            lines += ["  " + line for line in event(run, compilation, set())]
        lines += [f"  * how to fix it: {text}" for text in run.advice.on_limit(members)]
    else:
        lines += [f"  * how to fix it: {text}" for text in run.advice.on_lost(first)]
        if failure is None and place is not None and is_own(place.filename) and not resumed_function(first.function):
            lines.append("  * how to fix it, where other calls of it compute with tensors: leave out those that do not "
                         "(test that before the call), since for one of them torch gives the function up for all")
    if account is not None:
        explanation, _, rest = account.explanation.partition("\n")
        if explanation:
            lines.append(f"  * torch explains: {prose(explanation)}")
            lines += [f"    {line}" for line in fenced(rest)] if rest else []
        lines += [f"  * torch's advice: {prose(hint)}" for hint in in_order(account.hints)]
    return lines
