"""What became of budgets in a run: each of them held against each rank."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ...records.model import Capture
from ...records.run_directory import RANK
from ...records.store import NOT_ENDED
from ..choice import fits
from ..findings import KINDS, Finding, findings
from ..markdown import some
from ..run_index import RunIndex
from .budget import Budget, BudgetError

#: The beginning of the note of a run of which only a part was written (:class:`depyf.views.choice.Choice`).
_PART = "only a part of the run is here"


@dataclass(frozen=True)
class Result:
    """A budget, held against one process.

    Attributes:
        folder: of the process in the dump, ``"rank_0"``; empty where there is one only.
        function: title of the one that was judged; empty for the whole run.
        amount: how much there is.
        findings: of which that is the sum.
        lines: places of the findings, with the user's lines: ``("generate.py:21", "if token.item() == 2")``.
    """

    budget: Budget
    folder: str
    function: str
    amount: float
    findings: tuple[Finding, ...]
    lines: tuple[tuple[str, str], ...]

    @property
    def within(self) -> bool:
        """Return whether the budget was kept."""
        return self.amount <= self.budget.limit


@dataclass(frozen=True)
class Judgement:
    """All results, in the order of the budgets.

    Attributes:
        notes: what could not be judged, a sentence each.
    """

    results: tuple[Result, ...]
    notes: tuple[str, ...] = ()

    @property
    def within(self) -> bool:
        """Return whether every budget was kept."""
        return all(result.within for result in self.results)


def judge(captures: Mapping[str, Capture], budgets: Sequence[Budget]) -> Judgement:
    """Hold budgets against a run.

    Args:
        captures: by folder: one ``""``, or those of ranks.
        budgets: at least one.

    Raises:
        BudgetError: there is nothing that could be judged: no function is meant by a pattern, nothing was compiled.
    """
    runs = {folder: RunIndex(capture) for folder, capture in captures.items()}
    if not any(run.capture.compilations for run in runs.values()):
        raise BudgetError("nothing was compiled in this run, so no budget says anything about it"
                          if not any(run.capture.functions for run in runs.values()) else
                          "this dump does not say what was compiled when, so no budget can be held against it")
    results: list[Result] = []
    for each in budgets:
        found = [result for folder, run in runs.items() for result in _results(run, folder, each)]
        if not found:
            titles = dict.fromkeys(summary.title for run in runs.values() for summary in run.summaries)
            raise BudgetError(f"no function of the run is meant by {each.function!r}; there are "
                              f"{some(list(titles), 12)}")
        results += found
    return Judgement(tuple(results), tuple(_notes(captures)))


def _results(run: RunIndex, folder: str, budget: Budget) -> list[Result]:
    if not budget.function:
        return [_result(run, folder, budget, "", findings(run, budget.kind))]
    return [_result(run, folder, budget, summary.title, findings(run, budget.kind, summary))
            for summary in run.summaries if fits(budget.function, summary)]


def _result(run: RunIndex, folder: str, budget: Budget, function: str, found: list[Finding]) -> Result:
    found = [replace(each, place=each.place and replace(each.place, text=each.place.text or run.source.line(
        each.place))) for each in found]
    return Result(
        budget, folder, function, sum(each.amount for each in found), tuple(found),
        tuple((run.short_place(each.place), each.place.text if KINDS[each.kind].at_line else "") if each.place
              else ("", "") for each in found))


def _notes(captures: Mapping[str, Capture]) -> list[str]:
    notes = []
    for folder, capture in captures.items():
        whose = f" of {folder.replace('_', ' ')}" if folder else ""
        if not capture.compilations:
            notes.append(f"Nothing was compiled on {folder.replace('_', ' ')}.")
        if NOT_ENDED in capture.notes:
            notes.append(f"The run{whose} did not end: only what was recorded until then is judged.")
        if any(note.startswith(_PART) for note in capture.notes):
            notes.append(f"Only a part of the run{whose} was written, and only that is judged.")
    world = [int(capture.environment["world_size"]) for capture in captures.values()
             if capture.environment.get("world_size", "").isdigit()]
    there = {folder.removeprefix(RANK) for folder in captures if folder.startswith(RANK)}
    missing = [str(number) for number in range(max(world, default=0)) if there and str(number) not in there]
    if missing:
        notes.append(f"Not judged, as there are no records of it: rank {some(missing, 8)}.")
    return notes
