"""What was not compiled: skipped, failed, beyond the recompile limit."""

from __future__ import annotations

from ...capture.events import graph_break
from ...capture.records import Compilation
from ..markdown import code, prose
from ..story import failures_by_kind, not_compiled
from .recompiles import failure_lines
from .told import ROWS, Told, left_out


def left_alone(story: Told) -> list[str]:
    groups = not_compiled(story.capture.compilations)
    if not groups:
        return []
    lines = ["## Not compiled", "", "These run in plain Python, as if there were no `torch.compile`, unless an "
             "exception is named.", ""]
    for members in groups[:ROWS]:
        lines += _not_compiled(story, members)
    return lines + left_out(len(groups) - ROWS, "reason")


def _not_compiled(story: Told, members: list[Compilation]) -> list[str]:
    first = members[0]
    times = f", {len(members)} times" if len(members) > 1 else ""
    name = f"* **{story.subject(first)}**, {story.place(first.location) or 'place unknown'}, " \
           f"{code(str(first.compile_id))}{times}: "
    failure = first.failure
    account = graph_break(first.compile_id, failure.reason) if failure else None
    reason = prose(account.reason, 200) if account else ""
    if failure and failure.location:
        reason += f" (at {story.place(failure.location)})"
    explanation = prose(account.explanation.partition("\n")[0], 400) if account and account.explanation else ""
    lines = []
    if first.outcome == "limit":
        lines.append(f"{name}**the recompile limit is reached.** Calls that fit no version run in plain Python from "
                     "now on.")
        lines += [f"  * {explanation}"] if explanation else []
        for found_all in failures_by_kind(members)[:3]:
            lines += [f"  * {line}" for line in failure_lines(story, found_all)]
    elif first.outcome == "skipped" and first.breaks:
        lines.append(f"{name}skipped because of a [graph break](#graph-breaks): {prose(first.breaks[-1].reason, 200)} "
                     f"(at {story.place(first.breaks[-1].location)})")
        return lines
    elif first.outcome == "skipped":
        lines.append(f"{name}skipped: " + (reason or "torch found nothing to compile in it (no tensor operation)"))
    elif first.outcome == "failed":
        kind = f"{code(failure.kind)}: " if failure and failure.kind else ""
        lines.append(f"{name}**failed**: {kind}{reason}")
        lines += [f"  * {explanation}"] if explanation else []
    else:
        return [f"{name}its end was not seen (the run ended before, or an exception of the program came first)"]
    if account is not None and account.hints and first.outcome != "skipped":
        lines += [f"  * torch's advice: {prose(hint, 400)}" for hint in account.hints[:4]]
    return lines
