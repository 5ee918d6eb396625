"""The difference between two runs: breaks, recompiles, what was not compiled, graphs, guards, kernels.

Works from records alone. What belongs together, and what is no difference, says :mod:`depyf.views.diff.pairing`.
The text is Markdown, as that of ``index.md``.
"""

from __future__ import annotations

import difflib
import itertools
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ...model.folding import expression_pattern, fold
from ...model.graph_text import read_graph
from ...records.model import CacheEntry, Capture, CompiledGraph, GraphStage, SourceLocation
from ...records.store import NOT_ENDED
from ...torch_text.global_names import plain_name
from ...torch_text.run_ids import guard_text, module_lines, without_counter, without_values
from .. import cache_keys
from ..causes import heading, kind_of_failure
from ..formatting import OUTCOME_OF_ONE, OUTCOMES, first_line, stage_name, without_frame
from ..function_summary import FunctionSummary, arguments_in_words, arguments_of
from ..markdown import code, count, fenced, prose, some, table
from ..run_index import RunIndex
from ..verdict import Totals, seconds_by_phase
from . import pairing

ROWS = 8  #: How many of a kind are listed one by one, unless all are wanted.
#: Placeholder of a version until it is known how many changed in the same way. (No other text contains it.)
_VERSION = "\ue020"
Number = tuple[str, int, int]  #: What is counted, in the first run and in the second.


@dataclass
class FunctionDifference:
    """The changes in one function: what is ``"new"``, ``"gone"`` or ``"changed"``, with title and lines as Markdown."""

    name: str
    location: SourceLocation | None
    state: str
    numbers: list[Number]
    title: str
    lines: list[str]


@dataclass
class Difference:
    """The changes from one run to another."""

    head: list[str] = field(default_factory=list)  # changed versions of Python and torch, and which run did not end
    # of the whole run, those that changed: `("graph breaks", 4, 8)`
    numbers: list[Number] = field(default_factory=list)
    changed: list[FunctionDifference] = field(default_factory=list)
    # times, caches: seconds by part of torch, and misses in Inductor's cache. They are no difference
    times: list[tuple[str, float, float]] = field(default_factory=list)
    caches: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.changed or self.numbers)

    @property
    def functions(self) -> dict[str, list[str]]:
        """Return what changed by the titles of functions, which two of them may share."""
        result: dict[str, list[str]] = {}
        for each in self.changed:
            result.setdefault(each.title, []).extend(each.lines)
        return result


def difference(before: Capture, after: Capture, full: bool = False, hint: str = " (--full shows all)") -> Difference:
    """Return the difference between two runs.

    Args:
        full: whether to show every change, those of graphs and kernels line by line.
        hint: what follows the number of changes that are left out.
    """
    old, new = RunIndex(before), RunIndex(after)
    first, second = ({"all": sum((c.seconds for c in capture.compilations), 0.0)}
                     | seconds_by_phase(capture.compilations) for capture in (before, after))
    times = [(name, first.get(name, 0.0), second.get(name, 0.0)) for name in first | second]
    result = Difference(
        _heads(before, after), _changed(_numbers(old), _numbers(new)),
        times=[each for each in times if max(each[1:]) >= 0.005], caches=cache_keys.between(before, after))
    compare = _Comparison(old, new, full, hint)
    for summary, other in pairing.summaries(old.summaries, new.summaries):
        if lines := compare.summary(summary, other):
            shown, state = pairing.either(summary, other), _state(summary, other)
            title = code(shown.title) + _place(new if other else old, shown.location)
            changed = _changed(*(_numbers(run, [each]) if each else {} for run, each in ((old, summary), (new, other))))
            if state == "changed" and changed and changed != result.numbers:
                title += f": {_arrows(changed)}"
            result.changed.append(FunctionDifference(shown.title, shown.location, state, changed, title, lines))
    for graph, later in pairing.paired(
            without_frame(before.graphs), without_frame(after.graphs), lambda each: each.name):
        present = pairing.either(graph, later)
        if lines := compare.graph(graph, later, code(present.name)):
            title = code(present.name) + _place(new if later else old, present.call)
            result.changed.append(FunctionDifference(
                present.name, present.call, _state(graph, later), [], title, lines))
    return result


def graphs_of_both(before: Capture, after: Capture) -> dict[str, list[str]]:
    """Return what changed in the graphs and stages that both runs have, by titles of functions.

    For a run that did not end: what it lacks is no difference.
    """
    old, new = RunIndex(before), RunIndex(after)
    compare = _Comparison(old, new, False, "")
    functions = {id(graph): run.summary_of[graph.compile_id.key] for run in (old, new) for graph in run.capture.graphs
                 if graph.compile_id.key in run.summary_of}
    result: dict[str, list[str]] = {}
    graphs = [[each for each in run.capture.graphs if id(each) in functions] for run in (old, new)]
    for graph, other in pairing.paired(graphs[0], graphs[1], lambda each: (functions[id(each)].title, _piece(each))):
        if graph is not None and other is not None:
            first, second = (replace(each, kernels=(), stages=tuple(stage for stage in each.stages if any(
                (stage.stage, stage.index) == (one.stage, one.index) for one in partner.stages)))
                for each, partner in ((graph, other), (other, graph)))
            piece, summary = _piece(other), functions[id(other)]
            if lines := compare.graph(first, second, f"piece {code(piece)}" if piece else "graph"):
                result.setdefault(code(summary.title) + _place(new, summary.location), []).extend(lines)
    return result


def text(result: Difference, names: tuple[str, str]) -> str:
    """Return the difference between runs of these names as Markdown."""
    lines = [f"# What changed from {code(names[0])} to {code(names[1])}"]
    if result.numbers:
        lines += ["", f"{_arrows(result.numbers)}."]
    if result.head:
        lines += ["", *result.head]
    for title, items in result.functions.items():
        lines += ["", f"### {title}", "", *items]
    if not result:
        lines += ["", "No difference."]
        lines += [f"Compile time: {first:.2f} s, now {second:.2f} s." for _, first, second in result.times[:1]]
    elif result.times:
        lines += ["", "## Time", "", "Compile time differs from run to run; it is no difference.", "",
                  *table(("part", "before", "after"), [
                      (prose(name), f"{first:.2f} s", f"{second:.2f} s") for name, first, second in result.times])]
    if result.caches:
        lines += ["", "## Caches", *result.caches]
    return "\n".join(lines) + "\n"


class _Comparison:

    def __init__(self, old: RunIndex, new: RunIndex, full: bool, hint: str) -> None:
        self.old, self.new, self.full, self.hint = old, new, full, hint

    def summary(self, old: FunctionSummary | None, new: FunctionSummary | None) -> list[str]:
        """Items for what changed in a function."""
        if old is None or new is None:
            summary, run = pairing.either(old, new), self.new if new else self.old
            totals = Totals.of(run, [summary])
            what = f"{count(totals.versions, 'version')}, {count(totals.graphs, 'graph')}" + (
                f", {count(totals.breaks, 'graph break')}" if totals.breaks else "")
            return [f"* **new** in this run: {what}" if new else f"* **gone**: it had {what}"]
        lines = self._facts(old, new)
        # (A function of which nothing was compiled has no places.)
        first, second = (pairing.places(summary.function, run.source) if summary.function else []
                         for summary, run in ((old, self.old), (new, self.new)))
        for place, other in pairing.frames(first, second):
            lines += self._frame(place, other)
        return lines

    def _facts(self, old: FunctionSummary, new: FunctionSummary) -> list[str]:
        lines: list[str] = []
        for what, facts in (("graph break", _breaks), ("recompile", _recompiles), ("not compiled", _not_compiled)):
            before, after = (fold(facts(run, summary), lambda fact: fact[0])
                             for run, summary in ((self.old, old), (self.new, new)))
            for key in dict.fromkeys([*after, *before]):
                first, second = len(before.get(key, ())), len(after.get(key, ()))
                if first == second:
                    continue
                word = "**new**" if not first else "**gone**" if not second else (
                    f"({_often(first)}, now {_often(second)})")
                times = f", {first + second} times" if not (first and second) and first + second > 1 else ""
                lines.append(f"* {what} {word}: {(after.get(key) or before[key])[0][1]}{times}")
        was, now = arguments_of(old), arguments_of(new)
        if was is not None and now is not None and was != now:
            lines.append(f"* arguments of `torch.compile`: {arguments_in_words(was)}, now {arguments_in_words(now)}")
        return lines

    def _frame(self, old: pairing.Place | None, new: pairing.Place | None) -> list[str]:
        shown = pairing.either(old, new)
        where = f" {prose(shown.title)}" if shown.title else ""
        name = f" of {code(shown.name)}{where}" if shown.title else ""
        before, after = self._versions(self.old, old), self._versions(self.new, new)
        if old is None or new is None:
            run = self.new if new else self.old
            return [f"* version{name} {_state(old, new)}: {self._sizes(run, entry)}"
                    for entry in (before or after)[:ROWS]]
        # Those whose captured graphs are the same remain together.
        marks = {id(entry): tuple(pairing.graph_lines(stage.text) for graph in entry.graph_names if graph in run.graphs
                                  and (stage := run.graphs[graph].captured) is not None)
                 for run, each in ((self.old, before), (self.new, after)) for entry in each}
        pairs = pairing.aligned(before, after, lambda entry: marks[id(entry)])
        changes: dict[tuple[str, ...], list[int]] = {}  # Versions that changed in the same way are shown together.
        for number, (entry, other) in enumerate(pairs, 1):
            for change in items(self._version(entry, other)):
                changes.setdefault(tuple(change), []).append(number)
        result: list[str] = []
        for together, numbers in changes.items():
            shown_numbers = f" {some(list(map(str, numbers)), 6)}" if len(pairs) > 1 else ""
            version = f"version{'s' * (len(numbers) > 1)}{shown_numbers}{name}"
            unsaid = f" of {_VERSION}" if version == "version" else ""  # (there is one only)
            result += [line.replace(unsaid, "").replace(_VERSION, version) for line in together]
        return result

    @staticmethod
    def _versions(run: RunIndex, place: pairing.Place | None) -> list[CacheEntry]:
        """Return the versions; what torch had made of a compilation that failed is none, and a log does not have it."""
        return sorted((entry for entry in (place.frame.entries if place is not None else ())
                       if entry.compile_id.key not in run.capture.lost), key=lambda entry: entry.compile_id.key)

    def _version(self, entry: CacheEntry | None, other: CacheEntry | None) -> list[str]:
        """Return items for what changed in a version, which is called :data:`_VERSION`."""
        if entry is None or other is None:
            sizes = self._sizes(self.new if other else self.old, pairing.either(entry, other))
            return [f"* {_VERSION} {_state(entry, other)}: {sizes}"]
        of = f" of {_VERSION}"
        lines = self._guards(entry, other, of)
        graphs = [run.with_pieces(each.graph_names) for run, each in ((self.old, entry), (self.new, other))]
        whole = [sum(not graph.piece_of for graph in each) for each in graphs]
        for at, (graph, changed) in enumerate(pairing.paired(graphs[0], graphs[1], _piece), 1):
            piece = _piece(graph or changed)
            which = f"piece {code(piece)}{of}" if piece else f"graph {at}{of}" if max(whole) > 1 else f"graph{of}"
            lines += self.graph(graph, changed, which)
        return lines

    def _sizes(self, run: RunIndex, entry: CacheEntry) -> str:
        graphs = [f"a graph of {_operations(run.graphs[name])}" for name in entry.graph_names if name in run.graphs]
        return ", ".join([count(len(entry.guards), "guard"), *(graphs or ["no graph"])])

    def _guards(self, old: CacheEntry, new: CacheEntry, of: str) -> list[str]:
        before, after = (Counter(map(guard_text, entry.guards)) for entry in (old, new))
        changed = [each for each in (("gone", "-", before - after), ("new", "+", after - before)) if each[2]]
        # (Conditions that differ in the number of a layer only are shown once with their count.)
        items = [f"{sign} {texts[0] if len(texts) == 1 else pairing.times_of(kind, len(texts))}"
                 for _, sign, group in changed for kind, texts in fold(group.elements(), expression_pattern).items()]
        numbers = " and ".join(f"{sum(group.values())} {word}" for word, _, group in changed)
        return [f"* guards{of}: {numbers}", *self._block(items)] if changed else []

    def graph(self, old: CompiledGraph | None, new: CompiledGraph | None, which: str) -> list[str]:
        """Return what changed in a graph."""
        if old is None or new is None:
            return [f"* {which} is {_state(old, new)}: {_operations(pairing.either(old, new))}"]
        lines: list[str] = []
        changed: list[tuple[GraphStage, GraphStage]] = []
        for stage, other in pairing.paired(old.stages, new.stages, lambda each: (each.stage, each.index)):
            if stage is None or other is None:
                present = pairing.either(stage, other)
                if not present.internal:
                    lines.append(f"* {which}: its {stage_name(present)} graph is {_state(stage, other)}")
            elif not pairing.are_equal(stage, other):
                changed.append((stage, other))
        if old.backend != new.backend and old.backend and new.backend:  # (a log names none)
            lines.append(f"* {which}: backend {code(old.backend)}, now {code(new.backend)}")
        if changed:
            stage, other = changed[0]
            more = [stage_name(each) for each, _ in changed[1:]]
            also = f", {'and so' if stage.stage == 'Captured_Graph' else 'also'} {some(more, 8)}" if more else ""
            lines.append(f"* {which} changed: the {stage_name(stage)} {'one' if stage.is_python else 'text'}{also}")
            lines += self._changed_operations(stage, other)
            if self.full:
                for stage, other in changed:
                    lines += _unified(stage_name(stage), pairing.shown_lines(stage), pairing.shown_lines(other))
        return lines + self._kernels(old, new, which)

    def _changed_operations(self, old: GraphStage, new: GraphStage) -> list[str]:
        if not old.is_python:
            differing = difflib.unified_diff(pairing.shown_lines(old), pairing.shown_lines(new), n=0, lineterm="")
            return self._block([f"{line[0]} {line[1:]}" for line in itertools.islice(differing, 2, None)
                                if not line.startswith("@@")])
        changed = pairing.changed_operations(old, new)
        if changed:
            return self._cut([f"  * {each}" for each in changed])
        first = pairing.first_difference(old, new)
        return ["  * the same operations; the first line that differs:", *self._block(first)] if first else [
            "  * the same operations, on other values"]

    def _kernels(self, old: CompiledGraph, new: CompiledGraph, which: str) -> list[str]:
        before, after = (Counter(f"{without_counter(call.name)} ({call.kind})" for kernel in graph.kernels
                                 for call in kernel.calls) for graph in (old, new))
        gone, come = before - after, after - before
        lines: list[str] = []
        if gone or come:
            lines.append(f"* kernels of the {which}: {sum(before.values())} calls, now {sum(after.values())}")
            lines += self._block([f"{sign} {pairing.times_of(name, number)}"
                                  for sign, group in (("-", gone), ("+", come)) for name, number in group.items()])
        elif [module_lines(each.text) for each in old.kernels] != [module_lines(each.text) for each in new.kernels]:
            lines.append(f"* kernels of the {which}: the same calls, other code in them")
        if self.full:
            for kernel, other in pairing.paired(old.kernels, new.kernels, lambda each: each.index):
                if kernel and other and (first := module_lines(kernel.text)) != (second := module_lines(other.text)):
                    lines += _unified(f"kernel {kernel.index}", first, second)
        return lines

    def _block(self, items: Sequence[str]) -> list[str]:
        return ["", *(f"  {line}" for line in fenced("\n".join(self._cut(items)), "diff")), ""]

    def _cut(self, lines: Sequence[str]) -> list[str]:
        if self.full or len(lines) <= ROWS + 1:
            return list(lines)
        sign = "  * " if lines[0].startswith("  * ") else ""
        return [*lines[:ROWS], f"{sign}... and {len(lines) - ROWS} more{self.hint}"]


# --- facts of a function: the keys by which they are compared, and the texts ------------------------
_Fact = tuple[Hashable, str]


def _breaks(run: RunIndex, summary: FunctionSummary) -> Iterator[_Fact]:
    for compilation in summary.compilations:
        for broken in compilation.breaks:
            where = broken.location
            shown = _place(run, where, "") + (f" {code(where.text, 80)}" if where and where.text else "")
            yield ((without_values(broken.reason), where and pairing.base_name(where.filename), where and (
                where.text or where.line)), f"{shown} ({prose(heading(broken), 100)})")


def _recompiles(run: RunIndex, summary: FunctionSummary) -> Iterator[_Fact]:
    for compilation in summary.recompiles:
        failure = compilation.guard_failures[0]
        changes = run.changes(compilation)
        what = changes[0].row() if changes else code(failure.text, 160)
        yield (plain_name(compilation.function), kind_of_failure(failure)), f"{what} in {run.name_of(compilation)}"


def _not_compiled(run: RunIndex, summary: FunctionSummary) -> Iterator[_Fact]:
    for compilation in summary.compilations:
        if compilation.outcome == "compiled":
            continue
        failure = compilation.failure
        reason = first_line(failure) if failure else ""
        key = compilation.outcome, plain_name(compilation.function), failure and failure.kind, without_values(reason)
        yield (key, OUTCOME_OF_ONE.get(compilation.outcome, prose(compilation.outcome))
               + (f", {code(failure.kind)}: {prose(reason, 160)}" if failure else ""))


# --- numbers ---------------------------------------------------------------------------------------------
def _numbers(run: RunIndex, summaries: Sequence[FunctionSummary] | None = None) -> dict[str, int]:
    totals = Totals.of(run, summaries)
    return {"graph breaks": totals.breaks, "recompiles": totals.recompiles,
            **{OUTCOMES.get(outcome, outcome): number for outcome, number in sorted(totals.outcomes.items())},
            "versions": totals.versions, "graphs": totals.graphs}


def _changed(before: Mapping[str, int], after: Mapping[str, int]) -> list[Number]:
    rows = [(name, before.get(name, 0), after.get(name, 0)) for name in {**before, **after}]
    return [row for row in rows if row[1] != row[2]]


def _arrows(numbers: Sequence[Number]) -> str:
    return ", ".join(f"{name} {first} \u2192 {second}" for name, first, second in numbers)


# --- small things ------------------------------------------------------------------------------------
def _heads(before: Capture, after: Capture) -> list[str]:
    lines = []
    for key, word in (("torch", "torch"), ("python", "Python"), ("world_size", "ranks")):
        # (a log has more after the version)
        first, second = (capture.environment.get(key, "").partition(" ")[0] for capture in (before, after))
        if first != second:
            lines.append(f"{word} {prose(first) or 'unknown'}, now {prose(second) or 'unknown'}.")
    return lines + [f"The {word} run did not end: what it lacks may only not have been recorded."
                    for word, capture in (("first", before), ("second", after)) if NOT_ENDED in capture.notes]


def _place(run: RunIndex, where: SourceLocation | None, comma: str = ", ") -> str:
    if where is None or not where.filename:
        return ""
    return f"{comma}{code(f'{run.short.get(where.filename, where.filename)}:{where.line}')}"


def _piece(graph: CompiledGraph | None) -> str:
    """Return the name of a piece within the graph that was split, ``""`` of a whole graph."""
    return graph.name.removeprefix(f"{graph.piece_of}.") if graph is not None and graph.piece_of else ""


def _operations(graph: CompiledGraph) -> str:
    return "an unknown number of operations" if graph.captured is None else count(
        sum(1 for _ in pairing.calls(read_graph(graph.captured.text))), "operation")


def items(lines: Sequence[str]) -> list[list[str]]:
    """Return the items of a list, each with what is below it."""
    begin = [at for at, line in enumerate(lines) if line.startswith("* ")]
    return [list(lines[at:end]) for at, end in zip(begin, [*begin[1:], len(lines)])]


def _state(old: object, new: object) -> str:
    return "new" if old is None else "gone" if new is None else "changed"


def _often(number: int) -> str:
    return {1: "once", 2: "twice"}.get(number, f"{number} times")


def _unified(name: str, old: Sequence[str], new: Sequence[str]) -> list[str]:
    lines = difflib.unified_diff(old, new, f"before: {name}", f"after: {name}", lineterm="", n=2)
    return ["", *(f"  {line}" for line in fenced("\n".join(lines), "diff")), ""]
