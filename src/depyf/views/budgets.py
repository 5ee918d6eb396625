"""Compare a run with budgets, which users give to ``depyf check`` and ``@pytest.mark.compiles``.

:func:`budget` reads what a user gives, :func:`judge` compares it with each rank, :func:`sentences` says the result::

    budget("breaks", "0")                   -> Budget("breaks", 0.0)
    judge({"": capture}, [that budget])     -> one Result: 2 graph breaks, with the place and cause of each
    sentences(results)                      -> "2 graph breaks, beyond the budget of 0:", "  generate.py:21 in ..."
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..model.folding import fold
from ..records.model import Capture
from ..records.run_directory import RANK
from ..records.store import NOT_ENDED
from ..values import frozen
from .causes import statement
from .choice import fits
from .formatting import is_from_file
from .markdown import code, each_once, some, unmarked
from .run_index import RunIndex
from .verdict import KINDS, Finding, findings


class BudgetError(ValueError):
    """A budget that no run can be compared with; the message says which and what to give."""


@frozen
class Budget:
    """How much of a kind (of :data:`~depyf.views.verdict.KINDS`) there may be.

    Each function that a pattern ``function`` means is judged by itself; empty for the whole run.
    """

    kind: str
    limit: float
    function: str = ""

    @property
    def shown(self) -> str:
        """The limit as it was given: ``2``, ``0.5 s``."""
        return f"{self.limit:g}" + (" s" if self.kind == "seconds" else "")


def budget(kind: str, text: str) -> Budget:
    """Return the budget that a user wrote: ``3``, ``Block.forward:0``; raise :class:`BudgetError` if it is none."""
    if kind not in KINDS:
        raise BudgetError(f"there is no budget {kind!r}; there are {', '.join(KINDS)}")
    function, colon, number = text.rpartition(":")
    try:
        limit = float(number)
    except ValueError:
        limit = -1
    if limit < 0 or not math.isfinite(limit) or kind != "seconds" and limit != int(limit) or colon and not function:
        wanted = "a number of seconds" if kind == "seconds" else "a number from 0 on"
        raise BudgetError(f"{text!r} is no budget for {kind}; give {wanted}, or FUNCTION:NUMBER for one function")
    return Budget(kind, limit, function)


def budgets(given: Mapping[str, Any]) -> list[Budget]:
    """Return the budgets that a user gave by kind: ``{"breaks": 0, "recompiles": ["2", "Block.*:0"]}``."""
    result = []
    for kind, values in given.items():
        for value in values if isinstance(values, (list, tuple)) else [values]:
            if isinstance(value, bool) or not isinstance(value, (int, float, str)):
                raise BudgetError(f"{value!r} is no budget for {kind}; give a number, or 'FUNCTION:NUMBER'")
            result.append(budget(kind, str(value)))
    return result


# --- judging -----------------------------------------------------------------------------------------
#: The beginning of the note of a run of which only a part was written (:class:`depyf.views.choice.Choice`).
_PART = "only a part of the run is here"


@frozen
class Result:
    """The findings of a budget in one process (a folder of the dump), in one function or in the whole run."""

    budget: Budget
    folder: str
    function: str
    amount: float
    findings: tuple[Finding, ...]

    @property
    def within(self) -> bool:
        """Return whether the amount is within the budget."""
        return self.amount <= self.budget.limit


@frozen
class Judgement:
    """All results, in the order of the budgets; ``notes`` says what could not be judged."""

    results: tuple[Result, ...]
    notes: tuple[str, ...] = ()

    @property
    def within(self) -> bool:
        """Return whether all amounts are within their budgets."""
        return all(result.within for result in self.results)


def judge(captures: Mapping[str, Capture], budgets: Sequence[Budget]) -> Judgement:
    """Compare a run with budgets: its captures by folder, ``""`` or those of ranks.

    Raises:
        BudgetError: there is nothing to judge: a pattern matches no function, nothing was compiled.
    """
    runs = {folder: RunIndex(capture) for folder, capture in captures.items()}
    if not any(run.capture.compilations and not is_from_file(run.capture) for run in runs.values()):
        raise BudgetError("no function was compiled in this run, so no budget says anything about it"
                          if not any(run.capture.functions for run in runs.values()) else
                          "this dump does not say what was compiled when, so it cannot be compared with a budget")
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
    of = [("", findings(run, budget.kind))] if not budget.function else [
        (summary.title, findings(run, budget.kind, summary))
        for summary in run.summaries if fits(budget.function, summary)]
    return [Result(budget, folder, function, sum(each.amount for each in found), tuple(
        replace(each, place=each.place and replace(each.place, text=each.place.text or run.source.line(each.place)))
        for each in found)) for function, found in of]


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


# --- sentences ---------------------------------------------------------------------------------------
# Plain text, as logs of CI show it. What is the same on several ranks is said once.
#: How many things of a kind are listed.
MOST = 20


def sentences(judgement: Judgement) -> list[str]:
    """Return what became of each budget, those that were met included; then the notes."""
    return [*_result_lines(judgement.results, judgement.results), *judgement.notes]


def exceeded(judgement: Judgement) -> list[str]:
    """Return the sentences on the exceeded budgets alone."""
    return _result_lines([result for result in judgement.results if not result.within], judgement.results)


def _result_lines(results: Sequence[Result], among: Sequence[Result]) -> list[str]:
    folders = list(dict.fromkeys(result.folder for result in among))
    groups = fold(results, lambda result: (result.budget, result.function))
    return [line for members in groups.values() for line in _budget_lines(members, folders)]


def _budget_lines(results: Sequence[Result], folders: Sequence[str]) -> list[str]:
    """Return the lines on one budget: one for the ranks within it, one for each difference of the others."""
    lines: list[str] = []
    budget, kind = results[0].budget, KINDS[results[0].budget.kind]
    of = f"{results[0].function}: " if results[0].function else ""
    beyond = [result for result in results if not result.within]
    for (amount, *items), members in fold(beyond, lambda result: tuple(_beyond(result))).items():
        lines += [f"{_where(members, folders)}{of}{amount}, beyond the budget of {budget.shown}:", *items]
    if within := [result for result in results if result.within]:
        least, most = (kind.number(function(each.amount for each in within)) for function in (min, max))
        amount = most if least == most else f"{least.partition(' ')[0]} to {most}"
        lines.append(f"{_where(within, folders)}{of}{amount}, within the budget of {budget.shown}")
    return lines


def _beyond(result: Result) -> list[str]:
    """Return the amount, then what it consists of."""
    texts = []
    for each in result.findings:
        at_line = KINDS[each.kind].at_line
        text = each.place.text if each.place is not None and at_line else ""
        shown = f" ({code(statement(text))})" if text else ""
        of = "" if each.cause.startswith(each.frame) else f"{each.frame}{shown}: "
        texts.append(unmarked("  " + " ".join(filter(None, (
            each.shown, "" if at_line else each.compile_id, f"{of}{each.cause}")))))
    items = each_once(texts)
    left = len(items) - MOST
    if left > 1:
        items = [*items[:MOST], f"  ... and {left} more"]
    return [KINDS[result.budget.kind].number(result.amount), *items]


def _where(results: Iterable[Result], folders: Sequence[str]) -> str:
    if len(folders) < 2:
        return ""
    mine = list(dict.fromkeys(result.folder.removeprefix(RANK) for result in results))
    if len(mine) == len(folders):
        return f"each of {len(mine)} ranks: "
    return f"{'rank' if len(mine) == 1 else 'ranks'} {some(mine, 8)}: "
