"""Findings: what of a run counts against a budget, each with its place and its cause; from records alone.

    Finding("breaks", "Generator.forward", "`Generator.forward`", SourceLocation("/home/me/generate.py", 21, ...),
            "generate.py:21", "`.item()` needs a value out of a tensor, ...", "[0/0]")

The numbers are those of ``depyf explain`` and ``depyf fix``. A function in which torch found no tensor operation (most
often what follows the last graph break) does not count as skipped: nothing is lost by it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from ..records.model import Compilation, SourceLocation
from ..values import frozen
from .causes import cause
from .function_summary import FunctionSummary
from .markdown import code, count, prose
from .run_index import RunIndex
from .verdict import break_given_up_at, why_plain


@frozen
class Finding:
    """One thing that counts against a budget.

    Attributes:
        frame: the part of it, as Markdown: "`f` from line 9 on".
        shown: the place in short, ``model.py:12``.
        cause: as Markdown, a clause.
        amount: 1; of compile time its seconds, of guards and kernels their number.
    """

    kind: str
    function: str
    frame: str
    place: SourceLocation | None
    shown: str
    cause: str
    compile_id: str
    amount: float = 1


#: The cause of a finding in a compilation, its amount, and its place, where that is not the function's.
_Found = tuple[str, float, "SourceLocation | None"]


def _why_again(run: RunIndex, compilation: Compilation) -> Iterator[_Found]:
    changes, first = run.changes(compilation), not compilation.guard_failures
    yield changes[0].row() if changes else "the first version" if first else "no version matched a call", 1, None


def _skipped(run: RunIndex, compilation: Compilation) -> Iterator[_Found]:
    failure, broken = compilation.failure, break_given_up_at(compilation)
    place = failure.location if failure is not None else None
    yield why_plain(run, compilation), 1, place or (broken.location if broken is not None else None)


def _graphs(run: RunIndex, compilation: Compilation) -> Iterator[_Found]:
    operations = compilation.counts.get("operations")
    for name in run.graph_names(compilation):
        yield code(name) + (f" has {count(operations, 'operation')}" if operations else ""), 1, None


def _guards(run: RunIndex, compilation: Compilation) -> Iterator[_Found]:
    entry = run.entry(compilation)
    number = len(entry.guards) if entry is not None and entry.guards else compilation.counts.get("guards", 0)
    if number:
        yield f"the version has {count(number, 'guard')}", number, None


def _kernels(run: RunIndex, compilation: Compilation) -> Iterator[_Found]:
    for graph in run.with_pieces(run.graph_names(compilation)):
        calls = sum(len(kernel.calls) for kernel in graph.kernels)
        if calls:
            yield f"the generated code of {code(graph.name)} has {count(calls, 'kernel call')}", calls, None


@frozen
class Kind:
    """A kind of finding.

    Attributes:
        among: the compilations of a function that there may be such findings of.
        at_line: it is at the line of its place, not in the function that begins there.
    """

    one: str
    many: str
    of: Callable[[RunIndex, Compilation], Iterable[_Found]]
    among: Callable[[FunctionSummary], Iterable[Compilation]] = lambda summary: summary.done
    at_line: bool = False

    def number(self, amount: float) -> str:
        """Return an amount in words: "2 graph breaks", "1.50 s of compiling"."""
        if self.one == "s":
            return f"{amount:.2f} {self.many}"
        return count(int(amount), self.one, self.many) if amount else f"no {self.many}"


#: By the name that options, markers and JSON have for them.
KINDS = {
    "breaks": Kind("graph break", "graph breaks", lambda run, compilation: [
        (prose(cause(each)), 1, each.location) for each in compilation.breaks], lambda one: one.compilations, True),
    "recompiles": Kind("recompile", "recompiles", _why_again, lambda summary: summary.recompiles),
    "skipped": Kind("skipped function", "skipped functions", _skipped, lambda each: lost_functions(each.compilations)),
    "versions": Kind("version", "versions", _why_again),
    "graphs": Kind("graph", "graphs", _graphs),
    "guards": Kind("guard", "guards", _guards),
    "kernels": Kind("kernel call", "kernel calls", _kernels),
    "seconds": Kind("s", "s of compiling", lambda run, each: [
        (f"it took {each.seconds:.2f} s to compile", each.seconds, None)] if each.seconds else [],
        lambda summary: summary.compilations),
}


def findings(run: RunIndex, kind: str, summary: FunctionSummary | None = None) -> list[Finding]:
    """Return what there is of a kind, in one function or in the whole run."""
    of = KINDS[kind]
    found = []
    for one in [summary] if summary else run.summaries:
        for each in of.among(one):
            for why, amount, place in of.of(run, each):
                place = place if of.at_line else place or each.place or one.location
                found.append(Finding(kind, one.title, run.name_of(each), place, run.short_place(place) if place else "",
                                     why, str(each.compile_id), amount))
    return sorted(found, key=lambda each: -each.amount) if kind == "seconds" else found


def is_lost(compilation: Compilation) -> bool:
    """Return whether something that torch could have compiled runs in plain Python."""
    if compilation.outcome == "skipped":
        return bool(compilation.failure and compilation.failure.reason or compilation.breaks)
    return compilation.outcome in ("failed", "limit")


def lost_functions(compilations: Iterable[Compilation]) -> list[Compilation]:
    """Return the first compilation by which something was lost, of each function that has one.

    (A function that fails is compiled again at its next call. A resume function counts by itself, as torch gives it
    up by itself.)
    """
    return _first_of_each(filter(is_lost, compilations))


def _first_of_each(compilations: Iterable[Compilation]) -> list[Compilation]:
    """Return the first compilation of each function: several functions in one wrapper share torch's frame."""
    first: dict[object, Compilation] = {}
    for each in compilations:
        first.setdefault((each.compile_id.frame_key, each.user_function), each)
    return list(first.values())


# --- Totals ------------------------------------------------------------------------------------------
@frozen
class Totals:
    """The numbers of a run.

    Attributes:
        functions: that were compiled at least once, with their resume functions.
        versions: compilations that gave code.
        graphs: that this code calls.
        breaks, places: graph breaks, each once for every compilation that reaches it, and their lines.
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
            sum(bool(summary.done or summary.function and not summary.compilations) for summary in summaries),
            sum(each.outcome == "compiled" for each in compilations),
            len(run.graphs_of(summaries)),
            len(breaks),
            len({broken.location and (broken.location.filename, broken.location.line) for broken in breaks}),
            sum(len(summary.recompiles) for summary in summaries),
            dict(Counter(each.outcome for each in (*lost_functions(compilations), *_first_of_each(
                each for each in compilations if each.outcome == "unknown")))),
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
