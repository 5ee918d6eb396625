"""``depyf check --json``."""

from __future__ import annotations

from typing import Any

from ..budgets.budget import Budget
from ..budgets.judgement import Judgement, Result
from ..budgets.sentences import sentences
from .output import finding, head, rank_of, seconds


def document(judgement: Judgement, path: str) -> dict[str, Any]:
    """Return the judgement, budget by budget."""
    of_budget: dict[Budget, list[Result]] = {}
    for result in judgement.results:
        of_budget.setdefault(result.budget, []).append(result)
    return {
        **head("check"), "path": path, "within": judgement.within,
        "budgets": [_budget(budget, results) for budget, results in of_budget.items()],
        "sentences": sentences(judgement), "notes": list(judgement.notes)}


def _budget(budget: Budget, results: list[Result]) -> dict[str, Any]:
    return {
        "kind": budget.kind, "limit": _number(budget, budget.limit), "function": budget.function or None,
        "within": all(result.within for result in results), "results": [
            {"rank": rank_of(result.folder), "function": result.function or None,
             "amount": _number(budget, result.amount), "within": result.within,
             "findings": [{**finding(each), "amount": _number(budget, each.amount)} for each in result.findings]}
            for result in results]}


def _number(budget: Budget, value: float) -> float:
    return seconds(value) if budget.kind == "seconds" else int(value)
