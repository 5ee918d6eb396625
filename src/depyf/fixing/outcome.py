"""What a run came to: how often torch broke, skipped and compiled again, and what the program gave."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from typing import Any

from ..records.model import Capture, Compilation
from ..views.findings import lost_functions
from .generated import Generated

#: How a tensor prints the function that it is the result of: another one computes the same.
_GRADIENT = re.compile(r"grad_fn=<\w+>")


@dataclasses.dataclass(frozen=True)
class Outcome:
    """One run of a program.

    Attributes:
        capture: its records; ``None`` where there are none.
        observed: the calls of its compiled functions, in order: of each the name, what it gave, and the calls inside.
        printed: its standard output.
        status: its exit status; ``None`` where it took too long.
        error: the end of its standard error, where it failed.
        generated: its generated calls; ``None`` where none were asked for.
    """

    capture: Capture | None
    observed: Sequence[Any] | None = None
    printed: str = ""
    status: int | None = 0
    error: str = ""
    generated: Sequence[Generated] | None = None

    @property
    def _compilations(self) -> tuple[Compilation, ...]:
        return self.capture.compilations if self.capture is not None else ()

    @property
    def breaks(self) -> int:
        """The number of graph breaks."""
        return sum(len(each.breaks) for each in self._compilations)

    @property
    def broken_at(self) -> set[tuple[str, str]]:
        """The kinds of graph breaks, with the lines that they are at."""
        return {(broken.registry_id or broken.reason, broken.location.text if broken.location else "")
                for each in self._compilations for broken in each.breaks}

    @property
    def skipped(self) -> int:
        """The number of functions that torch gave up or failed to compile, each once."""
        return len(lost_functions(self._compilations))

    @property
    def recompiles(self) -> int:
        """The number of recompiles, without those that torch refused at the limit, which count as lost."""
        return sum(bool(each.guard_failures) and each.outcome != "limit" for each in self._compilations)

    @property
    def operations(self) -> int:
        """The number of operations in graphs."""
        return sum(each.counts.get("operations", 0) for each in self._compilations)

    @property
    def seconds(self) -> float:
        """How long torch compiled."""
        return sum(each.seconds for each in self._compilations)

    @property
    def weight(self) -> int:
        """How much is in the way: a function in plain Python weighs more than a break, and that than a recompile.

        (A function that is given up is never compiled again: recompiles may show when it is compiled at last.)
        """
        return 3 * self.skipped + 2 * self.breaks + self.recompiles

    @property
    def problems(self) -> int:
        """The number of all that advice is for."""
        return self.breaks + self.skipped + self.recompiles

    def same_results(self, other: Outcome) -> bool:
        """Return whether another run printed and gave the same."""
        return (self.status == other.status and _GRADIENT.sub("", self.printed) == _GRADIENT.sub("", other.printed)
                and same_calls(self.observed or (), other.observed or ()))


def same_calls(one: Sequence[Any], other: Sequence[Any]) -> bool:
    """Return whether calls of compiled functions gave the same."""
    return len(one) == len(other) and all(map(_same_call, one, other))


def _same_call(one: Any, other: Any) -> bool:
    (name, given, inside), (other_name, other_given, other_inside) = one, other
    return name == other_name and same(given, other_given) and _same_inside(inside, other_inside)


def _same_inside(one: Sequence[Any], other: Sequence[Any]) -> bool:
    """Return whether the calls that a compiled function made gave the same.

    A function that it calls is a part of its graph where it compiles whole, and is not called by itself then. So a call
    that one run lacks is no difference: what the outer function makes of it is compared.
    """
    for name in {name for name, _, _ in one} & {name for name, _, _ in other}:
        ours, theirs = ([each for each in calls if each[0] == name] for calls in (one, other))
        if len(ours) == len(theirs) and not same_calls(ours, theirs):
            return False
    return True


def same(one: Any, other: Any) -> bool:
    """Return whether what was noted is the same, floating point up to rounding."""
    if type(one) is not type(other):
        return False
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    if hasattr(one, "isclose"):
        if one.shape != other.shape or one.dtype != other.dtype:
            return False
        if one.is_floating_point() or one.is_complex():
            return bool(one.isclose(other, rtol=1e-4, atol=1e-6, equal_nan=True).all())
        return bool((one == other).all())
    if isinstance(one, float):
        return one == other or abs(one - other) <= 1e-6 + 1e-4 * abs(one) or one != one and other != other
    return bool(one == other)
