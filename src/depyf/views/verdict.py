"""The verdict, which a reader has to know before anything else: what is wrong, what was not compiled, and why.

Sentences in Markdown, of the records alone; the index, the page and the terminal say the same ones.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable

from ..records.model import Compilation, GraphBreak, SourceLocation
from ..records.store import WRONG_RESULTS
from ..torch_text.events import graph_break
from ..torch_text.global_names import resumed_function
from ..torch_text.libraries import enters_compiled_code, is_library, wrapper_class
from ..torch_text.met import entered_contexts, met, what_blocks
from .causes import cause, statement
from .function_summary import FunctionSummary
from .grouping import path_to
from .markdown import code, count, prose, some
from .numbers_for_text import NumberForText, numbers_for_text
from .run_index import RunIndex

#: Sentences before "and N more".
MOST = 3


def verdict(run: RunIndex) -> list[str]:
    """Return the sentences, the weightiest first; none where all that was asked for was compiled."""
    wrapped = _wrapped(run)
    lines = list(wrapped)
    units = [_function_itself(run, summary) or summary for summary in run.summaries if is_outermost(summary)]
    units += [summary for summary in run.summaries if not is_outermost(summary) and _is_given_up_at_break(summary)]
    units = list({id(summary): summary for summary in units}.values())
    together = _given_up_together(run, units)
    for summary in units:
        others = together.get(id(summary), [])
        if len(others) < 2:
            lines += _of_unit(run, summary)
        elif summary is others[0]:
            lines += _of_several(run, others)
    rests = {f"{why_plain(run, each)}.": each for summary in run.summaries for each in _lost_rests(summary)}
    failed = [line for line, each in rests.items() if each.outcome == "failed"]
    lines = list(dict.fromkeys([*failed, *lines, *rests]))  # (A failed compilation mostly ends the call.)
    if _made_nothing(run) and not wrapped:
        lines = [f"Nothing of your program was compiled. {line}" if not number else line
                 for number, line in enumerate(lines)] or ["Torch made no graph in this run."]
    if len(lines) > MOST:
        rest = len(lines) - MOST
        lines = [*lines[:MOST], f"{count(rest, 'other function')} {'runs' if rest == 1 else 'run'} in plain Python, "
                                "too."]
    return [*wrong_results(run.capture.notes), *_numbers_for_text(run), *lines]


def _numbers_for_text(run: RunIndex) -> list[str]:
    """Return a sentence on each text of the program for which compiled code has a number."""
    found: dict[tuple[str, NumberForText], list[str]] = {}
    for compilation in run.capture.compilations:
        entry = run.entry(compilation)
        for each in numbers_for_text(entry, compilation, run.source) if entry is not None else ():
            found.setdefault((run.name_of(compilation), each), []).append(code(str(compilation.compile_id)))
    return [f"{name} {'raises a `TypeError` that' if each.raises else 'gives another value than'} plain Python"
            f"{' does not' if each.raises else ''} in {some(ids, 3)}: it {each.sentence} "
            f"({code(run.short_place(each.place))}). That is an error of torch's; what `str.format` makes stays text."
            for (name, each), ids in found.items()]


def _function_itself(run: RunIndex, summary: FunctionSummary) -> FunctionSummary | None:
    """Return the function behind a wrapper, where a break in it had torch compile the wrapper and it apart."""
    place = summary.location
    return next((each for each in run.summaries if summary.wrappers and not each.wrappers
                 and place is not None and place.is_at(each.location)), None)


def _is_given_up_at_break(summary: FunctionSummary) -> bool:
    """Return whether torch gave all of a function up since a graph broke in it."""
    return not summary.done and any(
        broken.skips_function for compilation in summary.compilations for broken in compilation.breaks)


def wrong_results(notes: Iterable[str]) -> list[str]:
    """Return the sentence on judged calls that were different (``depyf run --check``)."""
    return [f"{prose(note[:1].upper() + note[1:])}." for note in notes if note.startswith(WRONG_RESULTS)]


def _made_nothing(run: RunIndex) -> bool:
    """Return whether there is no graph, as far as the records tell."""
    compilations = [c for c in run.capture.compilations if c.outcome not in ("open", "unknown")]
    return bool(compilations) and not any(run.graph_names(c) for c in compilations) and all(
        c.outcome != "compiled" or run.knows_code(c) for c in compilations)


def is_outermost(summary: FunctionSummary) -> bool:
    """Return whether the program asked for a summary's compilation, rather than that a compiled function calls it."""
    return any(_is_asked_for(compilation) for compilation in summary.compilations)


def _is_asked_for(compilation: Compilation) -> bool:
    if resumed_function(compilation.function):
        return False
    if not compilation.stack:  # (nothing tells who called it)
        return compilation.compile_id.frame == 0
    return enters_compiled_code(place.filename for place in reversed(compilation.stack))


# --- one break that several functions were given up at --------------------------------------------------
def _given_up_together(run: RunIndex, units: Iterable[FunctionSummary]) -> dict[int, list[FunctionSummary]]:
    """Return the functions that torch gave up at the same break, by the identity of each of them.

    The outermost one that is traced comes to the break first; then those that it calls do, compiled by themselves.
    """
    groups: dict[object, list[FunctionSummary]] = {}
    for summary in units:
        broken = _break_of_loss(_first(summary))
        if broken is not None and broken.location is not None:
            place = broken.location
            groups.setdefault((place.filename, place.line, broken.reason, broken.gave_up), []).append(summary)
    return {id(each): group for group in groups.values() for each in group}


def _first(summary: FunctionSummary) -> list[Compilation]:
    """Return the compilations of a function from its beginning on."""
    return [c for c in summary.compilations if not resumed_function(c.function)]


def _break_of_loss(compilations: Iterable[Compilation]) -> GraphBreak | None:
    """Return the break at which torch gave a function up, the first time that it did."""
    lost = next(iter(_lost(compilations)), None)
    return next((b for b in reversed(lost.breaks) if b.skips_function), None) if lost is not None else None


def _lost(compilations: Iterable[Compilation]) -> list[Compilation]:
    """Return the compilations that gave no code, none of a function of a library."""
    lost = [c for c in compilations if c.outcome in ("skipped", "failed", "limit")]
    return [] if lost and is_library(lost[0].location.filename if lost[0].location else "") else lost


def _of_several(run: RunIndex, summaries: list[FunctionSummary]) -> list[str]:
    """Return the sentence on functions that torch gave up at the same break."""
    lost = _lost(_first(summaries[-1]))[0]
    broken = _break_of_loss([lost])
    assert broken is not None and broken.location is not None
    names = [run.name_of(_first(summary)[0]) for summary in summaries]
    where = _at(run, broken.location)
    how = ", which each of them comes to inside a loop, breaks the graph" if what_blocks(broken) == "loop" else (
        f" {_no_way_on(run, broken, lost)}")
    below = dict.fromkeys(each for summary in summaries for each in called_below(run, summary))
    compiled = f" What they call is compiled by itself: {_some_of(list(below))}." if below else ""
    since = "".join(since_then(run, _lost(_first(summary))[0], name) for summary, name in zip(summaries, names))
    return [f"{some(names, MOST)} run in plain Python: {where}{how}.{compiled}{since}"]


# --- one function -------------------------------------------------------------------------------------
def _of_unit(run: RunIndex, summary: FunctionSummary) -> list[str]:
    first = _first(summary)
    lost = _lost(first)
    if lost:
        compiled = _what_is_compiled(run, summary) if lost[0].outcome != "limit" else ""
        return [f"{why_plain(run, lost[0])}.{compiled}{since_then(run, lost[0])}"]
    if summary.done and not any(run.graph_names(c) for c in summary.compilations) and not wrappers_of(run, summary):
        broken = next(((b, c) for c in first for b in c.breaks), None)
        if broken is not None and run.knows_code(broken[1]):
            compiled = _what_is_compiled(run, summary)
            return [f"No graph was made of {code(summary.title)}: {_place(run, *broken)} breaks the graph.{compiled}"]
    return []


def _lost_rests(summary: FunctionSummary) -> list[Compilation]:
    """Return the parts of a function behind a break that torch gave up at the next one, or that failed to compile."""
    kept = {c.compile_id.frame_key for c in summary.done}
    lost = {c.compile_id.frame_key: c for c in _lost(c for c in summary.compilations if resumed_function(c.function))
            if c.compile_id.frame_key not in kept and (c.outcome == "failed" or _break_of_loss([c]) is not None)}
    return list(lost.values())


def since_then(run: RunIndex, lost: Compilation, name: str = "it") -> str:
    """Return a sentence on the versions that a function had when torch gave it up; ``""`` where it had none.

    Torch skips all later calls of the code then, whatever its versions would serve (``apply_to_code`` of
    ``ConvertFrameReturn``, torch/_dynamo/types.py); at the recompile limit it goes on to use them.
    """
    before = _versions_before(run, lost)
    if lost.outcome != "skipped" or not before:
        return ""
    versions = "earlier version" if before == 1 else f"{before} earlier versions"
    return f" Since then all calls of {name} do, also those that its {versions} served."


def _versions_before(run: RunIndex, compilation: Compilation) -> int:
    """Return how many versions a function had when a compilation of it began."""
    this = compilation.compile_id
    return sum(c.compile_id.frame_key == this.frame_key and c.compile_id.key < this.key
               for c in run.summary_of[this.key].done)


def why_plain(run: RunIndex, compilation: Compilation) -> str:
    """Return why a function runs in plain Python: a sentence without its full stop.

    ``TinyGPT.forward`` runs in plain Python: line 34 (``if x.abs().max() > 3.0``), reached from line 54, breaks the
    graph inside the loop at line 53
    """
    name = run.name_of(compilation)
    name += "," if run.branch_of(compilation) is not None else ""  # (which ends the clause that names the branch)
    if compilation.outcome == "limit":
        return _at_limit(run, compilation, name)
    failure = compilation.failure
    if compilation.outcome == "failed":
        reason = prose(_first_paragraph(failure.reason, compilation)) if failure else ""
        kind = code(failure.kind) if failure and failure.kind else "an error"
        at = f" at {_at(run, failure.location, compilation)}" if failure and failure.location else ""
        return f"{name} was not compiled: {kind}{at}" + (f": {reason}" if reason else "")
    broken = next((b for b in reversed(compilation.breaks) if b.skips_function), None)
    if broken is not None:
        where, how = _place(run, broken, compilation), _no_way_on(run, broken, compilation)
        path = path_to(broken, compilation)
        named = len(path) > 1 and what_blocks(broken) in ("loop", "context")
        called = f", reached from line {path[0].line}," if named else ""
        return f"{name} runs in plain Python: {where}{called} {how}"
    if failure is not None and failure.reason:
        return f"{name} runs in plain Python: {prose(graph_break(compilation.compile_id, failure.reason).reason)}"
    which = f"the call that {code(str(compilation.compile_id))} began with" if _versions_before(run, compilation) \
        else "its first call"
    return f"{name} runs in plain Python: torch found no tensor operation on the path of {which}"


def _first_paragraph(message: str, compilation: Compilation) -> str:
    """Return the message of an error without what torch says behind it of how to look closer, and stacks."""
    first, reason = message.strip().partition("\n\n")[0], graph_break(compilation.compile_id, message).reason
    return first.rstrip(". ") if reason.startswith(first) else reason


def _no_way_on(run: RunIndex, broken: GraphBreak, compilation: Compilation) -> str:
    if what_blocks(broken) == "loop":
        own = path_to(broken, compilation)[:1]
        loop = run.source.loop_around(own[0]) if own else None
        return "breaks the graph inside " + (f"the loop at line {loop}" if loop else "a loop")
    blocks = _blocks_around(run, broken, compilation)
    if blocks:
        return f"breaks the graph inside {' and '.join(blocks)}, and torch cannot continue there"
    if broken.gave_up:
        return f"breaks the graph, and torch cannot continue after it: {prose(broken.gave_up.partition(chr(10))[0])}"
    return f"breaks the graph where torch cannot continue after it: {prose(cause(broken))}"


def why_given_up(broken: GraphBreak) -> str:
    """Return why torch gave the function of a break up, as Markdown; ``""`` where it does not say."""
    return prose(". ".join(broken.gave_up.split("\n", 1)).rstrip(". "))


def _blocks_around(run: RunIndex, broken: GraphBreak, compilation: Compilation) -> list[str]:
    """Return the statements of a function around a break that keep torch from continuing behind it; none if not known.

    A `try` always does (``BlockStackEntry.can_restore``, torch/_dynamo/symbolic_convert.py), a `with` where torch
    cannot enter its context again. Of a call torch says that; at a branch, which it could split else, the only context
    that is not of torch's own is the one.
    """
    path = path_to(broken, compilation)
    under_context = what_blocks(broken) == "context"
    if not path or broken.gave_up and not under_context:
        return []
    place = path[0]
    tries = run.source.tries_around(place) if len(path) == 1 else []
    at_branch = len(path) == 1 and met(broken).kind == "branch" and not tries
    found = []
    if under_context or at_branch:
        entered = {line: run.source.contexts_of(place, line)
                   for line in entered_contexts(broken.raw, place.filename)}
        others = [line for line, contexts in entered.items()
                  if not contexts or not all(each.startswith("torch.") for each in contexts)]
        found = [f"the `with` at line {line}" for line in others] if len(others) == 1 else []
        if under_context and not found:
            found = ["a `with`"]
    return [f"the `try` at line {line}" for line in tries[-1:]] + found


def _at_limit(run: RunIndex, compilation: Compilation, name: str) -> str:
    summary = run.summary_of[compilation.compile_id.key]
    versions = sum(c.compile_id.frame_key == compilation.compile_id.frame_key for c in summary.done)
    why = _why_so_many(run, compilation)
    calls = f"Calls that match none of its {count(versions, 'version')}" if versions else "Calls"
    return f"{name} reached the recompile limit. {calls} run in plain Python{why}"


def _why_so_many(run: RunIndex, compilation: Compilation) -> str:
    """Return what the versions of a function expect the most values of, as the end of a sentence.

    That is the reason for the limit; the call that came to it may have been another for a reason of its own. (Before it
    comes what lets no version serve a second call.)
    """
    changes = run.changes(compilation)
    if changes and not changes[0].lasts:
        return f": {changes[0].sentence()}"
    own = {change.subject: change for change in reversed(changes)}
    values: dict[str, set[str]] = {subject: set() for subject in reversed(own)}
    times: Counter[str] = Counter()
    for each in run.capture.compilations:
        if each.compile_id.frame_key == compilation.compile_id.frame_key:
            for change in run.changes(each):
                times[change.subject] += 1
                values.setdefault(change.subject, set()).update(change.was)
            for difference in run.differences(each):
                values.setdefault(difference.subject, set()).update((difference.was.text, difference.now.text))
    if not values:
        return ""
    subject = max(values, key=lambda each: (len(values[each]), times[each]))  # (of two, the first of this call)
    as_many = max(3, len(values[subject]) - 1)
    also = [code(each) for each, had in values.items() if each != subject and len(had) >= as_many]
    if subject in own:
        return f": {own[subject].sentence()}" + (f"; the versions differ in {some(also, MOST)}, too" if also else "")
    return f". They differ most in {some([code(subject), *also], MOST)}"


def _place(run: RunIndex, broken: GraphBreak, compilation: Compilation) -> str:
    """Return ``line 34 (`if x.abs().max() > 3.0`)``, with its file where that is not the function's."""
    return _at(run, broken.location, compilation) if broken.location is not None else "something"


def _at(run: RunIndex, where: SourceLocation, compilation: Compilation | None = None) -> str:
    """Return a place with its line of code; without the file where that is the file of the function compiled."""
    text = statement(where.text or run.source.line(where))
    own = compilation.location if compilation is not None else None
    place = f"line {where.line}" if own is not None and own.filename == where.filename else code(run.short_place(where))
    return f"{place} ({code(text)})" if text else place


def _what_is_compiled(run: RunIndex, summary: FunctionSummary) -> str:
    """Return a sentence on what was compiled all the same; ``""`` if nothing was."""
    compiled = compiled_below(run, summary)
    return f" What it calls is compiled by itself: {compiled}." if compiled else ""


def compiled_below(run: RunIndex, summary: FunctionSummary, lost: Compilation | None = None) -> str:
    """Return the functions with graphs that a function calls, and that were compiled by themselves, as Markdown.

    Args:
        run: the facts.
        summary: the function.
        lost: of a resume function, where only what that calls is meant.
    """
    return _some_of(called_below(run, summary, lost))


def called_below(run: RunIndex, summary: FunctionSummary, lost: Compilation | None = None) -> list[str]:
    """Return the same, one by one."""
    return [code(each.title) for each in run.inner if each is not summary and any(
                run.graph_names(c) and _is_called_by(run, summary, c, lost) for c in each.done)]


def breaks_below(run: RunIndex, lost: Compilation) -> list[SourceLocation]:
    """Return the lines that broke the graph of what a function called that torch gave up, but for the line that did it.

    In a graph of the function they would be next.
    """
    summary = run.summary_of[lost.compile_id.key]
    given_up = {_place_of(broken) for broken in lost.breaks}
    return list({_place_of(broken): broken.location for each in run.inner
                 if each is not summary for compilation in each.compilations
                 if compilation.stack and _is_called_by(run, summary, compilation, lost)
                 for broken in compilation.breaks
                 if broken.location is not None and _place_of(broken) not in given_up}.values())


def _place_of(broken: GraphBreak) -> tuple[str, int]:
    """Return the file and the line of a break."""
    return (broken.location.filename, broken.location.line) if broken.location is not None else ("", 0)


def _some_of(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {count(len(names) - 3, 'other')}" if len(names) > 3 else "")


def _is_called_by(
    run: RunIndex, summary: FunctionSummary, compilation: Compilation, lost: Compilation | None = None,
) -> bool:
    """Return whether what was compiled was called by a function, or below it.

    Args:
        run: the facts.
        summary: the function.
        compilation: of what may be called.
        lost: of the function. Where that is of a resume function, what was called before the break does not count.
    """
    caller = summary.location
    resumed = resumed_function(lost.function) if lost is not None else None
    if caller is None or not compilation.stack:
        return resumed is None  # (nothing tells otherwise)
    definition = run.source.function_at(caller)
    first, last = (definition.first, definition.last) if definition is not None else (caller.line, math.inf)
    if resumed is not None and lost is not None:
        # (The line of the break calls before the break and after it; what the resume function calls has its name.)
        first = max(first, run.source.end_of_statement(SourceLocation(caller.filename, resumed[1], "")) + 1)
        if any((place.filename, place.function) == (caller.filename, lost.function) for place in compilation.stack):
            return True
    return any(place.filename == caller.filename and first <= place.line <= last for place in compilation.stack)


# --- wrappers of torch's around a module of the user's ---------------------------------------------------
def wrapper_of(compilation: Compilation, broken: GraphBreak) -> str:
    """Return the class of torch's in whose own code a graph broke, before or after it called the user's module."""
    places: tuple[SourceLocation, ...] = broken.stack or compilation.stack
    for place in reversed(places):
        if name := wrapper_class(place.filename):
            return name
        if not is_library(place.filename) and "__transformed_code_" not in place.filename:
            return ""
    return ""


def compiled_in(run: RunIndex, wrapper: str) -> list[FunctionSummary]:
    """Return the functions with graphs that a class of torch's around a module of the user's calls."""
    compiled = [summary for summary in run.summaries if any(run.graph_names(c) for c in summary.done)]
    if not any(c.stack for summary in compiled for c in summary.done):
        return compiled  # (an older dump, which does not tell who called)
    return [summary for summary in compiled
            if any(wrapper_class(place.filename) == wrapper for c in summary.done for place in c.stack)]


def wrappers_of(run: RunIndex, summary: FunctionSummary) -> list[str]:
    """Return the wrappers that all breaks of a function are in."""
    names = [wrapper_of(c, broken) for c in summary.compilations for broken in c.breaks]
    return list(dict.fromkeys(names)) if all(names) else []


def _wrapped(run: RunIndex) -> list[str]:
    names = list(dict.fromkeys(filter(None, (
        wrapper_of(c, broken) for c in run.capture.compilations for broken in c.breaks))))
    if not names:
        return []
    wrapper = names[0]
    compiled = compiled_in(run, wrapper)
    if compiled:
        inner = ", ".join(code(summary.title) for summary in compiled[:3])
        return [f"{code(wrapper + '.forward')} runs in plain Python: torch does not trace it. The module in it is "
                f"compiled by itself: {inner}."]
    own = any(summary.location is not None and not is_library(summary.location.filename) for summary in run.summaries)
    why = "" if own else " A module of torch's own class, such as `nn.Sequential`, is then not compiled by itself."
    return [f"Nothing of your model was compiled. It is wrapped in {code(wrapper)} before torch.compile, and the "
            f"wrapper breaks the graph before it calls your module.{why} Compile the module first: "
            f"{code(f'{wrapper}(torch.compile(model))')}."]
