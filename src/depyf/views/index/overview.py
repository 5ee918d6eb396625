"""The context of all sections; totals of the run, where the time went, where to begin, glossary, first changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from ...advice.breaks import OPTIMIZER
from ...advice.source import is_own
from ...model.folding import fold
from ...model.graph_text import read_graph
from ...records.model import Capture, Compilation, GraphBreak, SourceLocation
from ...records.run_directory import versions_and_rank
from ...records.store import NOT_ENDED
from ...torch_text import global_names
from ...torch_text.global_names import resumed_function
from ...torch_text.modules import bypassing_operation
from ...values import Same, frozen, once
from ..advice import Adviser
from ..causes import path_from_frame
from ..dump.folder import NOTHING, TITLE
from ..formatting import NOT_LOST, OUTCOMES, is_from_file, remarks, seconds, total
from ..function_summary import FunctionSummary
from ..markdown import code, count, link, prose, some
from ..run_index import RunIndex
from ..verdict import Totals, lost_functions, seconds_by_phase, verdict, why_plain
from . import BROWSER, START, WORDS

ROWS = 40  #: How many of a kind are listed one by one.


class SectionContext(RunIndex):
    """The facts, with the words for them."""

    def __init__(self, capture: Capture) -> None:
        super().__init__(capture)
        self.advice = Adviser(self)
        self.named: dict[str, None] = {}  # files that the text names, in order

    def place(self, location: SourceLocation | None) -> str:
        """Return ``model.py:12``; the list of files has its path."""
        if location is None:
            return ""
        self.named[location.filename] = None
        return code(self.short_place(location))

    def called_through(self, wrappers: Sequence[SourceLocation]) -> str:
        """Return ``called through 2 wrappers: `generic.py:1019` `merge_with_config_defaults.wrapper`, ...``."""
        return f"called through {count(len(wrappers), 'wrapper')}: " + ", ".join(
            f"{self.place(wrapper)} {code(wrapper.function)}" for wrapper in wrappers)

    def subject(self, compilation: Compilation) -> str:
        """Return the function of a compilation; of a resume function its name in the files, and where it goes on."""
        frame, _ = self.entries.get(compilation.compile_id.key, (None, None))
        if frame and resumed_function(compilation.function) and frame.name != compilation.function:
            return f"{code(frame.name)} ({self.name_of(compilation)})"
        return self.name_of(compilation)

    def name_in_text(self, summary: FunctionSummary) -> str:
        """Return the function in the user's words."""
        first = next((c for c in summary.compilations if not resumed_function(c.function)), None)
        return self.name_of(first) if first is not None else code(summary.title)


def context_of(capture: Capture) -> SectionContext:
    """Return the context of a run; all views that are made of it at once share it."""
    return once(("run", Same(capture)), lambda: SectionContext(capture))


def left_out(number: int, what: str) -> list[str]:
    """Return the lines that say how many of a kind are not listed."""
    return ["", f"... and {count(number, what)} more (`records.jsonl` has all)."] if number > 0 else []


# --- Head, cost and words ----------------------------------------------------------------------------
def head(run: SectionContext) -> list[str]:
    """Return the title, the verdict and the totals of the run."""
    capture = run.capture
    totals = Totals.of(run)
    where = prose(versions_and_rank(capture.environment))
    from_file = is_from_file(capture)
    calls = total(capture.graphs)
    going_on = [compilation for compilation in capture.compilations if compilation.outcome == "open"]
    if from_file:
        functions = f"{count(len(capture.functions), 'function')} with {count(len(capture.entries), 'version')}, "
        summary = f"{functions * bool(capture.functions)}{count(len(capture.graphs), 'graph')} in the file."
    elif len(going_on) == len(capture.compilations) and not _compiled(run):
        summary = f"{calls}; no function was compiled." if calls else "" if going_on else (
            "The records have no compilation." if NOT_ENDED in capture.notes else NOTHING)
    else:
        summary = (f"{count(totals.functions, 'function')} compiled, {count(totals.versions, 'version')} in all, "
                   f"{count(totals.graphs, 'graph')}{f', {calls}' if calls else ''}, {seconds(totals.seconds)}.")
    lines = ["# What is in the file" if from_file else TITLE, ""]
    for sentence in verdict(run):
        lines += [f"**{sentence}**" if sentence.count("**") == 0 else sentence, ""]
    lines += [line for remark in remarks(capture.notes) for line in (prose(remark), "")]
    lines.append(" ".join(filter(None, (summary, where and f"({where})"))))
    if going_on:
        lines += ["", "The block was entered inside the backend, and the compilation of "
                      f"{some([run.subject(each) for each in going_on], 3)} went on when it ended: what torch made of "
                      "the function after that (guards, code) is not here."]
    loaded = [compilation for compilation in capture.compilations if compilation.outcome == "loaded"]
    if loaded:
        lines += ["", "Loaded from a package of versions that were compiled before: "
                      f"{some([run.subject(each) for each in loaded], 3)}. Torch reports no transformed code of them."]
    problems = []
    if totals.breaks:
        problems.append(f"[{count(totals.breaks, 'graph break')}](#graph-breaks) at {count(totals.places, 'line')}")
    if totals.recompiles:
        problems.append(f"[{count(totals.recompiles, 'recompile')}](#recompiles)")
    outcomes = [f"{totals.outcomes[outcome]} {OUTCOMES[outcome]}" for outcome in ("limit", "failed", "skipped")
                if outcome in totals.outcomes]
    if len(outcomes) > 1:
        outcomes = [f"{count(totals.skipped, 'skipped function')} ({', '.join(outcomes)})"]
    if "unknown" in totals.outcomes:
        outcomes.append(f"{totals.outcomes['unknown']} {OUTCOMES['unknown']}")
    problems += [f"[{outcome}](#not-compiled)" for outcome in outcomes]
    if problems:
        lines += ["", "**" + "**, **".join(problems) + "**."]
    elif any(compilation.outcome not in NOT_LOST for compilation in capture.compilations):
        lines += ["", "No graph breaks, no recompiles; what has no tensor operation is [not compiled](#not-compiled)."]
    elif any(compilation.outcome == "compiled" for compilation in capture.compilations) and not from_file:
        lines += ["", "No graph breaks, no recompiles."]
    return lines


def _compiled(run: SectionContext) -> list[FunctionSummary]:
    return [summary for summary in run.summaries if summary.function and (not summary.compilations or summary.done)]


def start(run: SectionContext, page: str, later: bool) -> list[str]:
    """Return the links to begin with, and how to come to the page."""
    written = [summary for summary in _compiled(run) if summary.file]
    # (a wrapper that broke before it called the user's function has no graph)
    with_graphs = [summary for summary in written if any(run.graph_names(c) for c in summary.done)]
    first = next(iter(with_graphs or written), None)
    lines: list[str] = []
    if first is not None:
        lines += ["", f"{START}{link(code(first.file), first.file)}: the function, its guards, its graphs and the "
                      "code that torch made of it, from top to bottom."]
    if page:
        lines += ["", f"{BROWSER}open {link(code(page), page)}."]
    elif later:
        lines += ["", f"{BROWSER}run `depyf open` with this directory, which makes the page of so large a run first."]
    return lines


# --- the glossary ------------------------------------------------------------------------------------
_WORDS = (
    "**Graph** (`__compiled_fn_1`): the tensor operations of a function as torch traced them; the backend compiles it.",
    "**Version** (`[0/1]`: frame 0, compiled for the second time): what torch made of a function for some calls: "
    "guards, a graph, and the transformed code, which runs in place of the function and calls the graph.",
    "**Guard**: a condition that a call must satisfy to be served by a version. Where no version fits, torch compiles "
    "another one: a recompile.",
    "**Graph break**: what torch cannot trace ends the graph. Python runs that, then a new graph begins.",
    "**Resume function** (`__resume_at_42_3`): the rest of a function after a graph break, compiled as a function of "
    "its own. Where the break is at a branch there are two. The numbers are torch's: a byte offset and a count.",
)

#: (torch/_dynamo/resume_execution.py)
_NESTED = (
    "**`__nested_resume_fns`**, **`__nested_frame_values`** (arguments of resume functions): where torch continues "
    "inside of a function that another one called (`torch._dynamo.config.nested_graph_breaks`, off by default), the "
    "resume functions of what was called and the values of their variables; elsewhere empty lists.")


def glossary(run: SectionContext) -> list[str]:
    """Return what graph, version and guard are; where there are graph breaks, what these and resume functions are."""
    if not run.capture.compilations:
        return []
    words = _WORDS if any(c.breaks for c in run.capture.compilations) else _WORDS[:3]
    if any("__nested_resume_fns" in frame.arguments for frame in run.frames.values()):
        words = (*words, _NESTED)
    texts = (entry.transformed.source.text for frame in run.frames.values() for entry in frame.entries)
    drawn = next((name for text in texts for name in global_names.random_values(text)), "")
    if drawn:
        words = (*words, f"**`{drawn}`** (in transformed code): {global_names.MEANING}.")
    return [f"## {WORDS}", "", *(f"* {text}" for text in words)]


# --- where the time went -----------------------------------------------------------------------------
#: Seconds of a phase that is listed: less is shown as nothing.
LEAST = 0.005
#: Guards of a version that take long enough at each call to be named, and the versions that are named.
_MANY_GUARDS, _VERSIONS = 500, 2


def cost(run: SectionContext) -> list[str]:
    """Return the section on compile time: by phase, the slowest compilations, the caches."""
    compilations = run.capture.compilations
    phases = seconds_by_phase(compilations)
    if not phases:
        return []
    total = sum(c.seconds for c in compilations)
    parts = ", ".join(f"{prose(name)} {seconds(phases[name])}" for name in phases if phases[name] >= LEAST)
    lines = ["## Cost", "",
             f"Compile time {seconds(total)} in all. By part (one inside of another counts in both): {parts}."]
    slowest = sorted(compilations, key=lambda c: -c.seconds)[:3]
    if len(compilations) > 5:
        lines += ["", "Slowest: " + ", ".join(
            f"{code(str(c.compile_id))} {run.subject(c)} {seconds(c.seconds)}" for c in slowest) + "."]
    many = [(len(version.conditions), each) for each in compilations
            if (version := run.version(each)) is not None and len(version.conditions) >= _MANY_GUARDS]
    for number, each in sorted(many, key=lambda one: -one[0])[:_VERSIONS]:
        took = each.counts.get("guard_microseconds", 0) / 1000
        measured = f", which takes {took:.2f} ms" if took else ""
        lines += ["", f"Each call that {code(str(each.compile_id))} {run.subject(each)} serves checks {number:,} "
                      f"conditions{measured}."]
    caches: dict[str, dict[str, int]] = {}
    bypassed: dict[str, list[str]] = {}
    for compilation in compilations:
        for lookup in compilation.caches:
            outcomes = caches.setdefault(lookup.cache, {})
            outcomes[lookup.outcome] = outcomes.get(lookup.outcome, 0) + 1
            if lookup.outcome == "bypass" and lookup.reason:
                bypassed.setdefault(lookup.reason, []).append(_operation_at(run, compilation, lookup.reason))
    if caches:
        plural = {"hit": "hits", "miss": "misses", "bypass": "bypasses"}
        lines += ["", "Torch's caches: " + "; ".join(
            f"{code(name)} " + ", ".join(f"{number} {prose(outcome if number == 1 else plural.get(outcome, outcome))}"
                                         for outcome, number in counts.items())
            for name, counts in caches.items()) + "."]
        for reason, places in list(bypassed.items())[:3]:
            known = some(list(dict.fromkeys(filter(None, places))), 3)
            lines.append(f"Bypassed because: {prose(reason, 200)} ({len(places)}{f', at {known}' if known else ''}).")
    return lines


def _operation_at(run: SectionContext, compilation: Compilation, reason: str) -> str:
    """Return the user's line of the operation for which a cache was bypassed; ``""`` where it is not known."""
    name = bypassing_operation(reason)
    stages = [graph.captured for graph in run.capture.graphs if name
              and graph.compile_id.key == compilation.compile_id.key]
    return next((run.place(node.location) for stage in filter(None, stages) for node in read_graph(stage.text).nodes
                 if node.location is not None and node.target.endswith(name)), "")


# --- Where to begin -----------------------------------------------------------------------------------
#: A run with at most so many places is read at once.
MOST = 3


@frozen
class _Change:
    """A place with its advice, as Markdown, and the functions, seconds and events (``what``) that it is for."""

    in_plain_python: int
    seconds: float
    times: int
    text: str
    what: str


def first(run: SectionContext) -> list[str]:
    """Return the section on where to begin; nothing for a run with few places."""
    texts, of_all = first_changes(run, run.place)
    return ["## Where to begin", "", f"The first {MOST} of {of_all} places: functions that torch gave up "
            "come first, then what took longest to compile:", "", *(f"* {each}" for each in texts)] if texts else []


def first_changes(run: SectionContext, place: Callable[[SourceLocation], str]) -> tuple[list[str], int]:
    """Return the places of a run where a change saves most, with the advice there, as Markdown, and how many there are.

    None are returned where they are few.
    """
    found = [*_changes_of_lost(run, place), *_changes_of_breaks(run, place), *_changes_of_recompiles(run)]
    changes = sorted(fold(found, lambda each: each.text).items(), reverse=True, key=lambda item: [
        sum(amounts) for amounts in zip(*((each.in_plain_python, each.seconds, each.times) for each in item[1]))])
    texts = [f"{text} ({'; '.join(each.what for each in members)})" for text, members in changes[:MOST]]
    return texts if len(changes) > MOST else [], len(changes)


def _changes_of_lost(run: SectionContext, place: Callable[[SourceLocation], str]) -> Iterator[_Change]:
    broken_at = {(at.filename, at.line) for each in run.capture.compilations for broken in each.breaks
                 if (at := _own_place(broken, each)) is not None}
    for each in lost_functions(run.capture.compilations):
        # (The place is one of the recompiles; or the program's own line at which a library's function was called.)
        if each.outcome == "limit" or each.location is not None and not is_own(each.location.filename) and any(
                (step.filename, step.line) in broken_at for step in each.stack):
            continue
        where = "".join(f"{place(at)}: " for at in _lost_at(each)[:1])
        texts, this = run.advice.on_lost(each), code(str(each.compile_id))
        what = "runs in plain Python" if each.outcome == "skipped" else f"was not compiled in {this}"
        yield _Change(1, each.seconds, 1, *(
            (f"{where}{texts[0]}", f"{run.name_of(each)} {what}") if texts else (why_plain(run, each), this)))


def _lost_at(compilation: Compilation) -> list[SourceLocation]:
    """Return the places of the program for which torch gave a function up, or met an exception."""
    found = [_own_place(broken, compilation) for broken in compilation.breaks if broken.skips_function]
    failed = compilation.failure.location if compilation.failure is not None else None
    return [at for at in (*found, failed) if at is not None and is_own(at.filename)]


def _own_place(broken: GraphBreak, compilation: Compilation) -> SourceLocation | None:
    """Return the program's innermost line that led to a graph break; ``None`` where a library's function has it."""
    return next((at for at in reversed(path_from_frame(broken, compilation)) if is_own(at.filename)), None)


def _changes_of_breaks(run: SectionContext, place: Callable[[SourceLocation], str]) -> Iterator[_Change]:
    lost_at = {(at.filename, at.line) for each in lost_functions(run.capture.compilations) for at in _lost_at(each)}
    found = [(place(where), run.advice.change_on(broken), each) for each in run.capture.compilations
             for broken in each.breaks if not broken.skips_function
             and (where := _own_place(broken, each)) is not None and (where.filename, where.line) not in lost_at
             and (advice := run.advice.on_break(broken)) is not None and advice.rule != OPTIMIZER]
    # (One sentence is for the breaks of all functions in which torch met the line.)
    for (at, change), members in fold(found, lambda each: each[:2]).items():
        after = {name for *_, each in members for name in run.resume_names(each)}
        spent = sum(each.seconds for each in run.capture.compilations
                    if (frame := run.frame_of(each)) is not None and frame.name in after)
        yield _Change(0, spent, len(members), f"{at}: {change}", f"{count(len(members), 'graph break')}; what is "
                      f"compiled after it took {seconds(spent)}")


def _changes_of_recompiles(run: SectionContext) -> Iterator[_Change]:
    limits = [each for each in lost_functions(run.capture.compilations) if each.outcome == "limit"]
    for summary in run.summaries:
        advised = run.advice.recompiles_by_advice(summary.recompiles)
        versions = {advice: Counter(each.compile_id.frame_key for each in again) for advice, again in advised.items()}
        for advice, again in advised.items():
            # (A function at the limit begins with what most of its versions are for.)
            reached = [f"{run.name_of(each)} reached the recompile limit; " for each in limits if 0 < versions[advice][
                key := each.compile_id.frame_key] == max(number[key] for number in versions.values())]
            spent = sum(each.seconds for each in again)
            what = f"{''.join(reached)}{count(len(again), 'recompile')} of {summary.title}, {seconds(spent)}"
            yield _Change(len(reached), spent, len(again), advice.change, what)
