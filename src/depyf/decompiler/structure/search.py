"""Search for a form among those that source allows.

Where code can be written in several forms (where a ``break`` leads, where the arms of an ``if`` meet), the writer asks
:meth:`Search.choose` with the candidates, the likeliest first. The first attempt takes the first candidate everywhere.
Where it cannot be written, or is not proven, further attempts differ from it at one place: limited discrepancy search
(Harvey and Ginsberg, 1995), with one discrepancy. The first place, on which all others depend, is tried first, then
the last ones.

Example: a loop has the candidates ``[B7, B9]`` for its exit, and two ``if`` in it ``[B4, B5]`` and ``[B5, B6]`` for
their joins. The attempts are ``B7, B4, B5``; then ``B9`` and the first candidates after it; then ``B7, B4, B6``;
then ``B7, B5`` and the first candidates after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

#: Attempts to write one body, the first included; fewer for one of many instructions, but two at least.
_MOST_ATTEMPTS = 8
_MOST_INSTRUCTIONS = 40_000


class Search:
    """The choices of the attempts to write one body.

    An attempt must meet the same places in the same order as the first up to where it differs; it does, as it makes
    the same choices there.
    """

    def __init__(self, size: int = 0) -> None:
        """Begin with the first attempt.

        Args:
            size: of the body, in instructions.
        """
        self._left = max(2, min(_MOST_ATTEMPTS, _MOST_INSTRUCTIONS // max(size, 1))) - 1
        #: The number of candidates at each place of the first attempt.
        self._counts: list[int] = []
        #: ``(place, candidate)`` of the attempts that are left, the next last; ``None`` during the first.
        self._plans: list[tuple[int, int]] | None = None
        self._plan = (-1, 0)
        self._place = 0

    def begin(self) -> None:
        """Begin writing: the next choice is at the first place."""
        self._place = 0
        if self._plans is None:
            self._counts.clear()

    def choose(self, candidates: Sequence[T]) -> T:
        """Return the candidate that this attempt takes at the current place.

        Args:
            candidates: at least one, the likeliest first.
        """
        place = self._place
        self._place += 1
        if self._plans is None:
            self._counts.append(len(candidates))
        return candidates[self._plan[1]] if place == self._plan[0] and self._plan[1] < len(candidates) \
            else candidates[0]

    def advance(self) -> bool:
        """Go to the next attempt; ``False`` where all were made."""
        if self._plans is None:
            places = [0, *reversed(range(1, len(self._counts)))]
            # In the order of the attempts: all second candidates, then all third ones, ...
            plans = [(place, candidate) for candidate in range(1, max(self._counts, default=1))
                     for place in places if candidate < self._counts[place]]
            self._plans = plans[::-1]
        if not self._plans or not self._left:
            self._plan = (-1, 0)
            return False
        self._left -= 1
        self._plan = self._plans.pop()
        return True
