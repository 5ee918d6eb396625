"""What a run came to: how often torch broke, skipped and compiled again, and what the program gave."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..records.model import Capture, Compilation
from ..views.findings import lost_functions
from .generated import Generated

#: How a tensor prints the function that it is the result of: another one computes the same.
_GRADIENT = re.compile(r"grad_fn=<\w+>")


@dataclass(frozen=True)
class Outcome:
    """One run of a program.

    Attributes:
        capture: its records; ``None`` where there are none.
        observed: the calls of its compiled functions in order, each as ``(name, comparing.outcome.Outcome)``.
        printed: its standard output.
        status: its exit status; ``None`` where it took too long.
        error: the end of its standard error, where it failed.
        generated: its generated calls.
    """

    capture: Capture | None
    observed: Sequence[tuple[str, Any]] = ()
    printed: str = ""
    status: int | None = 0
    error: str = ""
    generated: Sequence[Generated] = ()

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
        return not self.difference(other)

    def difference(self, before: Outcome) -> str:
        """Return in words where this run printed or gave something else than one before; ``""``: nowhere."""
        from ..comparing.outcome import disagreements
        from ..comparing.tensors import Tolerance

        if self.status != before.status:
            return "the exit status is another one"
        if _GRADIENT.sub("", self.printed) != _GRADIENT.sub("", before.printed):
            return "the program prints something else"
        if [name for name, _ in self.observed] != [name for name, _ in before.observed]:
            return "the program calls its compiled functions in another order"
        for (name, new), (_, old) in zip(self.observed, before.observed):
            for each in disagreements(new, old, Tolerance(1e-4, 1e-5)):  # (rounding differs where graphs do)
                return f"{name}: {each}".replace("in eager Python", "before")
        return ""
