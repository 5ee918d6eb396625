"""The verdict on a run, as sentences in Markdown: what is wrong, what was not compiled, and why.

The index, the page and the terminal show the same sentences. Below them: findings, and the numbers of a run.
"""

from __future__ import annotations

import ast
import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from ..records.model import Compilation, CompileId, GraphBreak, SourceLocation
from ..records.store import WRONG_RESULTS
from ..torch_text.events import AT_LIMIT, graph_break
from ..torch_text.global_names import plain_name, resumed_function
from ..torch_text.libraries import enters_compiled_code, is_library, is_of_dynamo, knows_callers, wrapper_class
from ..torch_text.met import what_blocks
from ..values import frozen
from .causes import cause, path_to, statement
from .formatting import LOST
from .function_summary import FunctionSummary
from .markdown import code, count, prose, some
from .run_index import RunIndex
from .user_source import NumberForText, numbers_for_text

MOST = 3  #: Sentences before "and N more".


def verdict(run: RunIndex) -> list[str]:
    """Return the sentences, the weightiest first; none where all that was requested was compiled."""
    wrapped = _wrapped(run)
    # (Where a break in a wrapper had torch compile the function in it separately, that function is meant.)
    units = [next((each for each in run.summaries if summary.wrappers and not each.wrappers
                   and summary.location is not None and summary.location.is_at(each.location)), summary)
             for summary in run.summaries if is_outermost(summary)]
    units += [summary for summary in run.inner
              if not summary.done and any(map(break_given_up_at, summary.compilations))]
    of_units = [line for summary in {id(summary): summary for summary in units}.values()
                for line in _unit_lines(run, summary)]
    rests = {f"{why_plain(run, each)}.": each for summary in run.summaries for each in _lost_rests(summary).values()}
    failed = [line for line, each in rests.items() if each.outcome == "failed"]
    failed += (f"{code(graph.name)} at {code(run.short_place(graph.call))} was not exported: {code(issue.subject)}: "
               f"{prose(issue.outcome, 300)}" + "." * (not issue.outcome.endswith((".", "!")))
               for graph in run.capture.graphs if graph.call is not None
               for issue in graph.issues if issue.kind == "failed")
    lines = list(dict.fromkeys([*failed, *wrapped, *of_units, *rests]))  # (A failed compilation mostly ends the call.)
    ended = [c for c in run.capture.compilations if c.outcome not in ("open", "loaded", "unknown")]
    # (There is no graph, as far as the records say.)
    if ended and not wrapped and not any(run.graph_names(c) for c in ended) and all(
            c.outcome != "compiled" or run.knows_code(c) for c in ended):
        lines[:1] = [f"Nothing of your program was compiled. {lines[0]}" if lines else
                     "Torch compiled no function in this run." if run.graphs else "Torch made no graph in this run."]
    rest = len(lines) - MOST
    if rest > 0:
        lines[MOST:] = [f"Torch did not compile, or gave up, {count(rest, 'other function')}, too (see Not compiled)."]
    # (Judged calls that were different, of ``depyf run --check``.)
    wrong = [f"{prose(note[:1].upper() + note[1:])}." for note in run.capture.notes if note.startswith(WRONG_RESULTS)]
    return [*wrong, *_numbers_for_text(run), *lines]


def _numbers_for_text(run: RunIndex) -> list[str]:
    """Return a sentence on each text of the program for which compiled code has a number."""
    found: dict[tuple[str, NumberForText], list[str]] = {}
    for compilation in run.capture.compilations:
        entry = run.entry(compilation)
        for each in numbers_for_text(entry, compilation, run.source) if entry is not None else ():
            found.setdefault((run.name_of(compilation), each), []).append(code(str(compilation.compile_id)))
    return [f"{name} {'raises a `TypeError` that' if each.piece else 'gives another value than'} plain Python"
            f"{' does not' if each.piece else ''} in {some(ids, 3)}: it {each.sentence} "
            f"({code(run.short_place(each.place))}). That is an error of torch's; what `str.format` makes stays text."
            for (name, each), ids in found.items()]


def is_outermost(summary: FunctionSummary) -> bool:
    """Return whether the program requested a summary's compilation, rather than that a compiled function calls it."""
    for compilation in summary.compilations:
        files = [place.filename for place in reversed(compilation.stack)]
        if not resumed_function(compilation.function) and (
                enters_compiled_code(files) if knows_callers(files) else compilation.compile_id.frame == 0):
            return True
    return False


def break_given_up_at(compilation: Compilation) -> GraphBreak | None:
    """Return the graph break at which torch gave a function up."""
    return next((broken for broken in reversed(compilation.breaks) if broken.skips_function), None)


def _lost(compilations: Iterable[Compilation]) -> list[Compilation]:
    lost = [c for c in compilations if c.outcome in LOST]
    return [] if lost and lost[0].location and is_library(lost[0].location.filename) else lost


# --- one function -------------------------------------------------------------------------------------
def _unit_lines(run: RunIndex, summary: FunctionSummary) -> list[str]:
    from_beginning = [c for c in summary.compilations if not resumed_function(c.function)]
    below = compiled_below(run, summary)
    compiled = f" What it calls is compiled by itself: {below}." if below else ""
    if lost := _lost(from_beginning):
        compiled *= lost[0].outcome != "limit"
        return [f"{why_plain(run, lost[0])}.{compiled}{since_then(run, lost[0])}"]
    breaks = [(broken, c) for c in from_beginning for broken in c.breaks]
    if not breaks or not summary.done or any(run.graph_names(c) for c in summary.compilations) or all(
            wrapper_of(c, broken) for c in summary.compilations for broken in c.breaks):
        return []
    broken, compilation = breaks[0]
    return [f"No graph was made of {code(summary.title)}: {_at(run, broken.location, compilation)} breaks the graph."
            f"{compiled}"] if run.knows_code(compilation) else []


def _lost_rests(summary: FunctionSummary) -> dict[tuple[int, int], Compilation]:
    """Return the resume functions that torch gave up at the next break, or that failed to compile, by their frames."""
    compiled = {c.compile_id.frame_key for c in summary.done}
    return {c.compile_id.frame_key: c for c in _lost(c for c in summary.compilations if resumed_function(c.function))
            if c.compile_id.frame_key not in compiled and (c.outcome == "failed" or break_given_up_at(c) is not None)}


def since_then(run: RunIndex, lost: Compilation) -> str:
    """Return a sentence on the versions that a function had when torch gave it up; ``""`` where it had none.

    Torch skips all later calls of the code then, whatever its versions would serve (``apply_to_code`` of
    ``ConvertFrameReturn``, torch/_dynamo/types.py); at the recompile limit it goes on to use them.
    """
    if not (before := _versions_before(run, lost.compile_id)) or lost.outcome != "skipped":
        return ""
    versions = "earlier version" if before == 1 else f"{before} earlier versions"
    return f" Since then all calls of it do, also those that its {versions} served."


def _versions_before(run: RunIndex, this: CompileId) -> int:
    """Return the number of earlier versions, also those of other functions in the same wrapper."""
    return sum(c.compile_id.frame_key == this.frame_key and c.compile_id.key < this.key
               for c in run.capture.compilations if c.outcome == "compiled")


def why_plain(run: RunIndex, compilation: Compilation) -> str:
    """Return why a function runs in plain Python: a sentence without its full stop.

    ``TinyGPT.forward`` runs in plain Python: line 34 (``if x.abs().max() > 3.0``), reached from line 54, breaks the
    graph inside the loop at line 53
    """
    name, meant = run.name_of(compilation), compilation.user_function
    if meant is not None and meant.wrappers and not is_of_dynamo(meant.wrappers[0].filename):
        name = f"{code(meant.wrappers[0].function)} around {code(meant.name)}"  # (the code that torch compiled)
    name += "," if run.branch_of(compilation) is not None else ""  # (which ends the clause that names the branch)
    this, failure = compilation.compile_id, compilation.failure
    before = _versions_before(run, this)
    if compilation.outcome == "limit":
        changes = run.changes(compilation)
        calls = f"Calls that match none of its {count(before, 'version')}" if before else "Calls"
        go = f"raise {code(AT_LIMIT)}, as `fullgraph=True` is set" if failure and failure.kind == AT_LIMIT \
            else "run in plain Python"
        return f"{name} reached the recompile limit. {calls} {go}" + (f" ({changes[0].row()})" if changes else "")
    if compilation.outcome == "failed":
        reason = ""
        if failure is not None:  # (without torch's stacks and hints on debugging)
            first, whole = failure.reason.strip().partition("\n\n")[0], graph_break(this, failure.reason).reason
            lines = itertools.takewhile(lambda line: line.strip() in first, whole.splitlines())
            reason = prose("\n".join(lines).rstrip(":. ") or whole)
        kind = code(failure.kind) if failure and failure.kind else "an error"
        at = f" at {_at(run, failure.location, compilation)}" if failure and failure.location else ""
        later = any(c.outcome == "compiled" and c.compile_id.frame_key == this.frame_key
                    for c in run.capture.compilations)
        again = " again" if before else " at first" * later
        return f"{name} was not compiled{again}: {kind}{at}" + (f": {reason}" if reason else "")
    broken = break_given_up_at(compilation)
    if broken is not None:
        where, how = _at(run, broken.location, compilation), _no_way_on(run, broken, compilation)
        path = path_to(broken, compilation)
        named = len(path) > 1 and what_blocks(broken) in ("loop", "context")
        called = f", reached from line {path[0].line}," if named else ""
        return f"{name} runs in plain Python: {where}{called} {how}"
    if failure is not None and failure.reason:
        return f"{name} runs in plain Python: {prose(graph_break(this, failure.reason).reason)}"
    which = f"the call that {code(str(this))} began with" if before else "its first call"
    return f"{name} runs in plain Python: torch found no tensor operation on the path of {which}"


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
    """Return the statements of a function around a break that keep torch from continuing after it; none if not known.

    A `try` always does (``BlockStackEntry.can_restore``, torch/_dynamo/symbolic_convert.py), a `with` where torch
    cannot enter its context again.
    """
    path = path_to(broken, compilation)
    under_context = what_blocks(broken) == "context"
    if not path or broken.gave_up and not under_context:
        return []
    tries = run.source.statements_around(path[0], ast.Try) if len(path) == 1 else []
    contexts = run.source.statements_around(path[0], ast.With, ast.AsyncWith) if under_context else []
    found = f"the `with` at line {contexts[0]}" if len(contexts) == 1 else "a `with`"
    return [f"the `try` at line {line}" for line in tries[-1:]] + [found] * under_context


def _at(run: RunIndex, where: SourceLocation | None, compilation: Compilation) -> str:
    """Return ``line 34 (`if x.abs().max() > 3.0`)``, with its file where that is not the function's."""
    if where is None:
        return "something"
    text, own = statement(where.text or run.source.line(where)), compilation.place
    place = f"line {where.line}" if own is not None and own.filename == where.filename else code(run.short_place(where))
    return f"{place} ({code(text)})" if text else place


def compiled_below(run: RunIndex, summary: FunctionSummary, lost: Compilation | None = None) -> str:
    """Return the compiled functions with graphs that a function, or only its resume function ``lost``, calls."""
    names = [code(each.title) for each in run.inner if each is not summary and any(
        run.graph_names(c) and _is_called_by(run, summary, c, lost) for c in each.done)]
    return ", ".join(names[:3]) + (f" and {count(len(names) - 3, 'other')}" if len(names) > 3 else "")


def _is_called_by(run: RunIndex, summary: FunctionSummary, compilation: Compilation, lost: Compilation | None) -> bool:
    """Return whether what was compiled was called by a function, or by what that calls.

    Where ``lost`` is of a resume function of it, what was called before the break does not count.
    """
    caller = summary.location
    resumed = resumed_function(lost.function) if lost is not None else None
    if caller is None:
        return False
    is_inner = plain_name(caller.function).startswith("<")  # (a comprehension, within a definition)
    definition = None if is_inner else run.source.function_at(caller)
    first, last = (definition.first, definition.last) if definition is not None else (
        caller.line, caller.line if is_inner else math.inf)
    if resumed is not None and lost is not None:
        # (The line of the break calls before the break and after it; what the resume function calls has its name.)
        first = max(first, run.source.end_of_statement(SourceLocation(caller.filename, resumed[1], "")) + 1)
        if any((place.filename, place.function) == (caller.filename, lost.function) for place in compilation.stack):
            return True
    # (A log has no source, by which to know where the function ends.)
    return any(place.filename == caller.filename and first <= place.line <= last
               and (definition is not None or plain_name(place.function) == plain_name(caller.function))
               for place in compilation.stack)


# --- torch's wrappers around a user's module -------------------------------------------------------------
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
    """Return the functions with graphs that torch's wrapper around a user's module calls."""
    return [summary for summary in run.summaries if any(run.graph_names(c) for c in summary.done)
            and any(wrapper_class(place.filename) == wrapper for c in summary.done for place in c.stack)]


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


# --- Findings: what of a run counts against a budget, each with its place and its cause; from records alone -----------
#     Finding("breaks", "Generator.forward", "`Generator.forward`", SourceLocation("/home/me/generate.py", 21, ...),
#             "generate.py:21", "`.item()` needs a value out of a tensor, ...", "[0/0]")
#
# The numbers are those of ``depyf explain`` and ``depyf fix``. A function in which torch found no tensor operation
# (most often what follows the last graph break) does not count as skipped: nothing is lost by it.
@frozen
class Finding:
    """One thing that counts against a budget."""

    kind: str
    function: str
    frame: str  # the part of it, as Markdown: "`f` from line 9 on"
    place: SourceLocation | None
    shown: str  # the place in short, `model.py:12`
    cause: str  # as Markdown, a clause
    compile_id: str
    amount: float = 1  # 1; of compile time its seconds, of guards and kernels their number


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
    """A kind of finding."""

    one: str
    many: str
    of: Callable[[RunIndex, Compilation], Iterable[_Found]]
    # the compilations of a function that there may be such findings of
    among: Callable[[FunctionSummary], Iterable[Compilation]] = lambda summary: summary.done
    at_line: bool = False  # it is at the line of its place, not in the function that begins there

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
    if compilation.outcome == "skipped":  # (with earlier versions, those are no longer used: see since_then)
        return bool(compilation.failure and compilation.failure.reason or compilation.breaks
                    or compilation.compile_id.recompile)
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
    """The numbers of a run."""

    functions: int  # that were compiled at least once, with their resume functions
    versions: int  # compilations that gave code
    graphs: int  # that this code calls
    # breaks, places: graph breaks, each once for every compilation that reaches it, and their lines
    breaks: int
    places: int
    recompiles: int
    outcomes: dict[str, int]  # the number of functions that were not compiled, by outcome
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
