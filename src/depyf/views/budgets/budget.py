"""A budget: how much of a kind there may be at most, in a whole run or in one function."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..findings import KINDS


class BudgetError(ValueError):
    """A budget that nobody can hold a run against; the message says which and what to give."""


@dataclass(frozen=True)
class Budget:
    """How much of a kind there may be.

    Attributes:
        kind: a key of :data:`~depyf.views.findings.KINDS`.
        limit: that many, or seconds.
        function: a pattern, as ``depyf run --include`` takes it: each function that it means is judged by itself; empty
            for the whole run.
    """

    kind: str
    limit: float
    function: str = ""

    @property
    def shown(self) -> str:
        """Return the limit as it was given: ``2``, ``0.5 s``."""
        return f"{self.limit:g}" + (" s" if self.kind == "seconds" else "")


def budget(kind: str, text: str) -> Budget:
    """Return the budget that a user wrote: ``3``, ``Block.forward:0``, ``models/*.py:1``.

    Raises:
        BudgetError: it is none.
    """
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
    """Return the budgets that a user gave by kind: ``{"breaks": 0, "recompiles": ["2", "Block.*:0"]}``.

    Raises:
        BudgetError: one of them is none.
    """
    result = []
    for kind, values in given.items():
        for value in values if isinstance(values, (list, tuple)) else [values]:
            if isinstance(value, bool) or not isinstance(value, (int, float, str)):
                raise BudgetError(f"{value!r} is no budget for {kind}; give a number, or 'FUNCTION:NUMBER'")
            result.append(budget(kind, str(value)))
    return result
