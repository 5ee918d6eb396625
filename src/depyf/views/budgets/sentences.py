"""The sentences of ``depyf check``: one for each budget, with what is beyond it.

Plain text, as logs of CI show it. What is the same on several ranks is said once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...records.run_directory import RANK
from ..causes import statement
from ..findings import KINDS
from ..markdown import code, some, unmarked
from .budget import Budget
from .judgement import Judgement, Result

#: How many things of a kind are listed.
MOST = 20


def sentences(judgement: Judgement) -> list[str]:
    """Return what became of each budget, those that were kept included; then the notes."""
    return [*_of_results(judgement.results, judgement.results), *judgement.notes]


def exceeded(judgement: Judgement) -> list[str]:
    """Return the sentences of the budgets that were not kept alone."""
    return _of_results([result for result in judgement.results if not result.within], judgement.results)


def _of_results(results: Sequence[Result], among: Sequence[Result]) -> list[str]:
    folders = list(dict.fromkeys(result.folder for result in among))
    groups: dict[tuple[Budget, str], list[Result]] = {}
    for result in results:
        groups.setdefault((result.budget, result.function), []).append(result)
    return [line for members in groups.values() for line in _of_budget(members, folders)]


def _of_budget(results: Sequence[Result], folders: Sequence[str]) -> list[str]:
    """Return the lines on one budget: of the ranks that kept it one, of the others one for each difference."""
    lines: list[str] = []
    alike: dict[tuple[str, ...], list[Result]] = {}
    for result in results:
        if not result.within:
            alike.setdefault(tuple(_beyond(result)), []).append(result)
    for (head, *items), members in alike.items():
        lines += [_where(members, folders) + head, *items]
    kept = [result for result in results if result.within]
    if kept:
        lines.append(_where(kept, folders) + _within(kept))
    return lines


def _beyond(result: Result) -> list[str]:
    counted: dict[str, int] = {}
    for finding, (place, text) in zip(result.findings, result.lines, strict=True):
        where = f"{place} " if place else ""
        shown = f" ({code(statement(text))})" if text else ""
        number = "" if KINDS[finding.kind].at_line else f"{finding.compile_id} "
        of = "" if finding.cause.startswith(finding.frame) else f"{finding.frame}{shown}: "
        line = unmarked(f"  {where}{number}{of}{finding.cause}")
        counted[line] = counted.get(line, 0) + 1
    items = [line + (f", {number} times" if number > 1 else "") for line, number in counted.items()]
    left = len(items) - MOST
    if left > 1:
        items = [*items[:MOST], f"  ... and {left} more"]
    amount = KINDS[result.budget.kind].number(result.amount)
    return [f"{_of(result)}{amount}, beyond the budget of {result.budget.shown}:", *items]


def _within(results: Sequence[Result]) -> str:
    kind = KINDS[results[0].budget.kind]
    least, most = (kind.number(function(each.amount for each in results)) for function in (min, max))
    amount = most if least == most else f"{least.partition(' ')[0]} to {most}"
    return f"{_of(results[0])}{amount}, within the budget of {results[0].budget.shown}"


def _of(result: Result) -> str:
    return f"{result.function}: " if result.function else ""


def _where(results: Iterable[Result], folders: Sequence[str]) -> str:
    """Return ``rank 1: ``; nothing where there is one process only."""
    if len(folders) < 2:
        return ""
    mine = list(dict.fromkeys(result.folder.removeprefix(RANK) for result in results))
    if len(mine) == len(folders):
        return f"each of {len(mine)} ranks: "
    return f"{'rank' if len(mine) == 1 else 'ranks'} {some(mine, 8)}: "
