"""The totals of a run, in numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ...records.model import Compilation
from ..findings import not_compiled_by_outcome
from ..function_summary import FunctionSummary
from ..run_index import RunIndex


@dataclass(frozen=True)
class Totals:
    """The numbers of a run.

    Attributes:
        functions: that were compiled at least once, with their resume functions.
        versions: compilations that gave code.
        graphs: that this code calls.
        breaks, places: graph breaks, each once for every compilation that comes to it, and their lines.
        outcomes: the number of functions that were not compiled, by outcome.
    """

    functions: int
    versions: int
    graphs: int
    breaks: int
    places: int
    recompiles: int
    outcomes: dict[str, int]
    seconds: float

    @classmethod
    def of(cls, run: RunIndex, summaries: Sequence[FunctionSummary] | None = None) -> Totals:
        """Count what is in a run, or in some of its functions."""
        summaries = run.summaries if summaries is None else summaries
        compilations = [each for summary in summaries for each in summary.compilations]
        breaks = [broken for each in compilations for broken in each.breaks]
        return cls(
            sum(bool(summary.function and (not summary.compilations or summary.done)) for summary in summaries),
            sum(each.outcome == "compiled" for each in compilations),
            len(run.graphs_of(summaries)),
            len(breaks),
            len({broken.location and (broken.location.filename, broken.location.line) for broken in breaks}),
            sum(len(summary.recompiles) for summary in summaries),
            not_compiled_by_outcome(compilations),
            sum(each.seconds for each in compilations))

    @property
    def skipped(self) -> int:
        """The functions that run in plain Python although torch could have compiled something, or that failed."""
        return sum(number for outcome, number in self.outcomes.items() if outcome != "unknown")


def seconds_by_phase(compilations: Iterable[Compilation]) -> dict[str, float]:
    """Seconds by part of torch, in the order in which they came up. Inner parts count in outer ones."""
    result: dict[str, float] = {}
    for compilation in compilations:
        for phase in compilation.phases:
            result[phase.name] = result.get(phase.name, 0.0) + phase.seconds
    return result
