"""``@pytest.mark.compiles(...)``: budgets of a test, and what is said where they are not kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..records.model import Capture
from ..views.budgets import Budget, BudgetError, budgets, exceeded, judge

if TYPE_CHECKING:
    import pytest

NOTHING = ("Nothing was compiled while this test ran, so its budgets say nothing about it. (It is marked `compiles`; "
           "leave the marker out, or call what torch.compile returned.)")
STALE = " With reset=False, what an earlier test compiled is not compiled again."


@dataclass(frozen=True)
class Marked:
    """The markers of a test, the nearest first: of each kind that counts which is nearest.

    Attributes:
        reset: torch forgets what it compiled before the test begins.
    """

    budgets: tuple[Budget, ...]
    reset: bool = True

    @classmethod
    def of(cls, item: pytest.Item) -> Marked | None:
        """Return the markers of a test; ``None`` where it has none.

        Raises:
            BudgetError: one has arguments that mean nothing.
        """
        given: dict[str, object] = {}
        markers = list(item.iter_markers("compiles"))
        for marker in markers:
            if marker.args:
                raise BudgetError("compiles takes its budgets by name: @pytest.mark.compiles(breaks=0)")
            given = {**marker.kwargs, **given}
        if not markers:
            return None
        reset = given.pop("reset", True)
        if not isinstance(reset, bool):
            raise BudgetError(f"reset={reset!r} is not known; give True or False")
        return cls(tuple(budgets(given)), reset)

    def complaint(self, capture: Capture | None, failed: bool) -> str:
        """Return what is beyond the budgets, as ``depyf check`` says it; empty where all were kept.

        Args:
            capture: what the test compiled.
            failed: the test failed by itself, perhaps before it came to compile anything.
        """
        if capture is None or not capture.compilations:
            return "" if failed else NOTHING + ("" if self.reset else STALE)
        if not self.budgets:
            return ""
        try:
            return "\n".join(exceeded(judge({"": capture}, self.budgets)))
        except BudgetError as error:
            return "" if failed else str(error)
