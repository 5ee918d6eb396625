"""``depyf diff --json``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..diff.difference import Difference, FunctionDifference, Number, items
from ..markdown import unmarked
from .output import head, place, rank_of, seconds


def document(differences: Mapping[str, Difference], paths: tuple[str, str], alone: Sequence[Sequence[str]]
             ) -> dict[str, Any]:
    """Return the differences of two runs, of each rank.

    Args:
        differences: by folder.
        paths: of the two runs.
        alone: folders of ranks that only the first has, and only the second.
    """
    return {
        **head("diff"), "before": paths[0], "after": paths[1],
        "different": any(differences.values()) or any(alone),
        "only_before": [rank_of(folder) for folder in alone[0]], "only_after": [rank_of(folder) for folder in alone[1]],
        "runs": [_run(folder, each) for folder, each in differences.items()]}


def _run(folder: str, result: Difference) -> dict[str, Any]:
    return {
        "rank": rank_of(folder), "different": bool(result), "remarks": [unmarked(line) for line in result.head],
        "numbers": _numbers(result.numbers), "functions": [_function(each) for each in result.changed],
        "times": [{"part": name, "before": seconds(before), "after": seconds(after)}
                  for name, before, after in result.times]}


def _function(changed: FunctionDifference) -> dict[str, Any]:
    return {"name": changed.name, "place": place(changed.location), "state": changed.state,
            "numbers": _numbers(changed.numbers), "changes": [_change(item) for item in items(changed.lines)]}


def _change(item: Sequence[str]) -> dict[str, Any]:
    """Return an item of a list, with the lines below it: those of a block of code as they are."""
    details, fence = [], ""
    for line in item[1:]:
        text = line.removeprefix("  ")
        if not fence and text.startswith("```"):
            fence = text[: len(text) - len(text.lstrip("`"))]
        elif fence and text == fence:
            fence = ""
        elif fence:
            details.append(text)
        elif text.strip():
            details.append(unmarked(text.strip().removeprefix("* ")))
    return {"text": unmarked(item[0].removeprefix("* ")), "details": details}


def _numbers(numbers: Sequence[Number]) -> list[dict[str, Any]]:
    return [{"what": what, "before": before, "after": after} for what, before, after in numbers]
