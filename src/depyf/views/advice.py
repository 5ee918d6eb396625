"""Advice on graph breaks and recompiles as Markdown; the rules are those of :mod:`depyf.advice`."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property

from ..advice import Advice, on_break
from ..advice.breaks import IN_TURN, SET_UP, WAITS, on_left_method
from ..advice.recompiles import RecompileAdvice, on_change
from ..advice.source import Loop, Site
from ..records.model import Compilation, GraphBreak, SourceLocation
from ..torch_text.events import graph_break
from ..torch_text.global_names import resumed_function
from ..torch_text.met import bound_method, in_order, is_fundamental, met, what_blocks
from ..torch_text.parsed import parsed_expression
from .causes import path_from_frame
from .changes import Change
from .circumstances import Circumstances, value_change
from .markdown import code, prose, some
from .run_index import RunIndex
from .verdict import is_outermost
from .version_differences import MOST

#: Functions that ask what an object is like: torch knows their results.
_OF_OBJECTS = ("len", "type", "isinstance", "hasattr")
#: What to do about a branch that is left as it is, and at which torch gives its function up.
_AROUND = "; to compile the rest, make functions of their own of what comes before and after it"


class Adviser:
    """Advises on the graph breaks and recompiles of one run."""

    def __init__(self, run: RunIndex) -> None:
        self.run = run
        self._circumstances = Circumstances(run)
        self._of_breaks: dict[GraphBreak, Advice | None] = {}

    def on_break(self, broken: GraphBreak) -> Advice | None:
        """Return the advice on a graph break; ``None`` where no rule fits.

        An exception breaks the graph again in each function that it leaves: advice on where it was raised applies. What
        torch cannot reconstruct after a break goes with that break.
        """
        own = self._alone(broken)
        if own is not None and (at := ", ".join(filter(None, (self._first.get(each) for each in own.settings)))):
            own = replace(own, change=f"{own.change}; first do what is advised at {at}: the setting is for the whole "
                          "program, which may end in an error or another result there")
        if own is not None and own.rule not in IN_TURN and not (own.leaves or own.next_break):
            own = replace(own, next_break=self._given_up_after(broken))
        if own is None and met(broken).kind == "exception":
            return self._on_exceptions.get(broken.context)
        if own is None and met(broken).kind == "reconstruction" and (cause := self._reconstructed_for(broken)):
            return self.on_break(cause)
        return own

    def _given_up_after(self, broken: GraphBreak) -> str:
        """Return the place, as Markdown, of a break in a later loop or context for which torch gives up what follows.

        Without this break torch gives up all of the function for it. ``""`` for none.
        """
        compilation, statement = self._by_id.get(broken.compile_id.key), self._site(broken).statement
        last = (0 if statement is None else statement.lineno if isinstance(statement, Loop) else
                statement.end_lineno or 0)  # (The sides of a branch go with it.)
        names = self.run.resume_names(compilation) if compilation is not None else ()
        frames = [self.run.frames[name] for name in names if name in self.run.frames]
        return next((f"{code(self.run.short_place(after.location))} ({code(after.location.text.strip())})"
                     for each in self.run.capture.compilations
                     if any(frame.may_be_of(each.function, each.location) for frame in frames)
                     for after in each.breaks if after.location is not None and after.location.line > last
                     and what_blocks(after) in ("loop", "context")), "")

    def _alone(self, broken: GraphBreak) -> Advice | None:
        """Return the advice on a graph break as if there were no others."""
        if broken not in self._of_breaks:
            own, outer = on_break(self._site(broken)), self._from_outermost(broken)
            if outer is not broken and not (own is not None and own.edits and not own.settings):
                own = on_break(self._site(outer)) or (own if own is not None and own.leaves else None)
            self._of_breaks[broken] = self._on_left_method(broken) or own
        return self._of_breaks[broken]

    def _from_outermost(self, broken: GraphBreak) -> GraphBreak:
        """Return the same break in the function that the program asked to be compiled; the break itself for none.

        (What breaks the graph of its caller is compiled by itself: nothing can be done before a call of it.)
        """
        compilation = self._by_id.get(broken.compile_id.key)
        if compilation is None or is_outermost(self.run.summary_of[compilation.compile_id.key]):
            return broken
        return max((each for other in self.run.capture.compilations for each in other.breaks
                    if (each.location, each.registry_id) == (broken.location, broken.registry_id)),
                   key=lambda each: each.depth, default=broken)  # (that of a failure is in no list)

    def _reconstructed_for(self, broken: GraphBreak) -> GraphBreak | None:
        """Return the break in the same line after which torch could not reconstruct a value."""
        line = broken.location
        known = self._by_id.get(broken.compile_id.key)
        if known is None or line is None:
            return None
        of_line = [each for each in known.breaks if met(each).kind != "reconstruction" and any(
            (place.filename, place.line) == (line.filename, line.line) for place in each.stack)]
        return of_line[-1] if of_line else None

    @cached_property
    def _first(self) -> dict[str, str]:
        """The places, as Markdown, of breaks that a setting for the whole program may make errors of, by setting."""
        found: dict[str, dict[str, None]] = {setting: {} for setting in WAITS}
        for broken in (each for compilation in self.run.capture.compilations for each in compilation.breaks):
            for setting, (events, rules) in WAITS.items():
                if broken.location is not None and met(broken).event in events and (
                        advice := self._alone(broken)) is not None and advice.rule in rules:
                    found[setting][code(self.run.short_place(broken.location))] = None
        return {setting: some(list(places), MOST) for setting, places in found.items() if places}

    def _site(self, broken: GraphBreak) -> Site:
        compilation = self._by_id.get(broken.compile_id.key)
        return self.run.source.site(broken, compilation.function if compilation is not None else "")

    @cached_property
    def _on_exceptions(self) -> dict[str, Advice]:
        """The advice on exceptions, by torch's words for them."""
        found = ((broken.context, on_break(self._site(broken))) for each in self.run.capture.compilations
                 for broken in each.breaks if met(broken).kind == "exception" and broken.context)
        return {context: advice for context, advice in found if advice is not None}

    def _on_left_method(self, broken: GraphBreak) -> Advice | None:
        """Return the advice on a bound method that the break before it in its line left on the stack; else ``None``."""
        method = bound_method(broken).rpartition(".")[2]
        resumed = self._by_id.get(broken.compile_id.key) if method else None
        if resumed is None or not resumed_function(resumed.function):
            return None
        names = self.run.stack_names(resumed).values()
        left = next((name for name in names if name.endswith(f".{method}")), "")
        here = path_from_frame(broken, resumed)[:1]
        before = [each for compilation in self._leading_to(resumed) for each in compilation.breaks
                  if here and self._is_at(path_from_frame(each, compilation), here[0])]
        return on_left_method(left, self.on_break(before[-1])) if left and before else None

    @cached_property
    def _by_id(self) -> dict[tuple[int, int, int], Compilation]:
        return {each.compile_id.key: each for each in self.run.capture.compilations}

    def on_lost(self, compilation: Compilation) -> list[str]:
        """Return advice, as Markdown, on a function that torch gave up; none where no rule fits."""
        if compilation.outcome == "limit":
            return self.on_limit([compilation])
        causes = [broken for broken in compilation.breaks if broken.skips_function]
        failure = compilation.failure
        if failure is not None and failure.kind == "ConstraintViolationError":
            return list(filter(None, [self._circumstances.constraint(compilation)]))
        if failure is not None and failure.reason and not causes:
            causes = [graph_break(compilation.compile_id, failure.reason,
                                  [failure.location] if failure.location is not None else [])]
        texts = [_to_the_end(advice) + prose(advice.proven) + _AROUND * advice.leaves for broken in causes
                 if (advice := self.on_break(broken)) is not None]
        if not texts and any(met(broken).kind == "next" for broken in causes):
            # (A function that takes an iterator, as a comprehension, is traced with its caller if that is compiled.)
            texts = [self.on_outer_break(compilation)]
        return list(dict.fromkeys(filter(None, texts or [self.on_set_up(compilation)])))

    def on_limit(self, compilations: Sequence[Compilation]) -> list[str]:
        """Return advice, as Markdown, on a function whose compilations torch refused at the recompile limit."""
        frames = {each.compile_id.frame_key for each in compilations}
        return self.on([each for each in self.run.capture.compilations if each.compile_id.frame_key in frames],
                       remedies_only=True)

    def change_on(self, broken: GraphBreak) -> str:
        """Return what to do about a graph break, as Markdown; ``""`` where no rule fits."""
        advice = self.on_break(broken)
        return _to_the_end(advice) if advice is not None else ""

    def lines_on(self, broken: GraphBreak, compilation: Compilation) -> list[str]:
        """Return the advice on a graph break as the items of a list in Markdown: what to do, why, what it costs."""
        advice = self.on_break(broken)
        if advice is not None:
            label = "advice" if advice.leaves else "change"
            return [f"**{label}**: {_to_the_end(advice)}", f"because {prose(advice.why)}",
                    f"cost: {prose(advice.cost + advice.proven)}"]
        outer = self.on_set_up(compilation)
        return [f"**change**: {outer}"] if outer else []

    def torchs_hints(self, group: Iterable[GraphBreak]) -> list[str]:
        """Return torch's own hints on breaks of one reason, less those that our advice on each of them contradicts."""
        broken = list(group)
        has_change = all(self.on_break(each) is not None for each in broken)
        return [hint for hint in in_order(broken[0].hints) if not (has_change and is_fundamental(hint))]

    def on_set_up(self, compilation: Compilation) -> str:
        """Return the advice, as Markdown, on what is in the way of what a library sets up at its first call.

        ``""`` where the program asked for the compilation, or the run has no such advice. (Other breaks of a function
        stay when its caller's are gone: it is then traced as a part of its caller.)
        """
        if is_outermost(self.run.summary_of[compilation.compile_id.key]):
            return ""
        advices = (self.on_break(broken) for summary in self.run.summaries if is_outermost(summary)
                   for each in summary.compilations for broken in each.breaks)
        return next((prose(advice.change) for advice in advices
                     if advice is not None and advice.rule == SET_UP and not advice.leaves), "")

    def on_outer_break(self, compilation: Compilation) -> str:
        """Return where to begin for what is compiled by itself only since a graph broke before; ``""`` if not known."""
        begin = self._break_before(compilation)
        return prose(f"it is compiled by itself only since {begin[0]}; begin there: {begin[1]}") if begin else ""

    def _break_before(self, compilation: Compilation) -> tuple[str, str] | None:
        """Return the break before what is compiled by itself, as a clause, and the change there; ``None`` for none."""
        if resumed_function(compilation.function):
            of, breaks = "before it", [broken for each in self._leading_to(compilation) for broken in each.breaks]
        elif not is_outermost(self.run.summary_of[compilation.compile_id.key]):
            of, breaks = "of its caller", self._breaks_of_call(compilation)
        else:
            return None
        for broken in breaks:
            advice, where = self.on_break(broken), broken.location
            if advice is not None and not advice.leaves:
                at = f" at {code(self.run.short_place(where))}" if where is not None else ""
                return f"the graph {of} breaks{at}", _whole(advice)
        return None

    def _breaks_of_call(self, called: Compilation) -> list[GraphBreak]:
        """Return the breaks for which a compiled function calls another in plain Python.

        The caller is the last function on the stack that torch compiled. None where the breaks are not known, or there
        is no advice on one of them: then the change of others is not enough.
        """
        for step in reversed(called.stack):
            of_step = [each for each in self.run.capture.compilations if each.function == step.function
                       and each.location is not None and self.run.source.are_in_one_function(step, each.location)]
            if of_step:
                breaks = [broken for each in of_step for broken in each.breaks
                          if broken.skips_function or self._is_at(path_from_frame(broken, each), step)]
                advices = list(map(self.on_break, breaks))
                return breaks if all(each is not None and not each.leaves for each in advices) else []
        return []

    def _leading_to(self, resumed: Compilation) -> list[Compilation]:
        """Return the compilations whose break a resume function continues after."""
        frame = self.run.frame_of(resumed)
        return [] if frame is None else [
            each for each in self.run.summary_of[resumed.compile_id.key].compilations
            if frame.name in self.run.resume_names(each)]

    def _is_at(self, path: Sequence[SourceLocation], step: SourceLocation) -> bool:
        """Return whether a path begins in the statement that a function is at."""
        ends = [self.run.source.end_of_statement(each) for each in (*path[:1], step)]
        return len(ends) == 2 and ends[0] == ends[1]

    def on(self, compilations: Iterable[Compilation], remedies_only: bool = False) -> list[str]:
        """Return advice on recompiles as Markdown, that on most of them first; each sentence once."""
        subjects: dict[RecompileAdvice, dict[str, int]] = {}
        changes = [(change, each) for each in compilations if each.outcome not in ("skipped", "failed")
                   for change in self._circumstances.most_telling(each)]  # (without a version nothing is known of it)
        of_function = {change.subject for change, each in changes if not resumed_function(each.function)}
        for change, compilation in changes:
            # (A resume function gets what its function got: advice on that is enough.)
            if not resumed_function(compilation.function) or change.subject not in of_function:
                advice = self._on_change(change, compilation)
                if advice is not None and (advice.is_remedy or not remedies_only):
                    counts = subjects.setdefault(advice, {})
                    subject = _subject_text(change)
                    counts[subject] = counts.get(subject, 0) + 1
        order = sorted(subjects, key=lambda advice: -sum(subjects[advice].values()))
        return [f"{some(list(subjects[advice]), MOST)}: {prose(advice.text)}" for advice in order]

    def _on_change(self, change: Change, compilation: Compilation) -> RecompileAdvice | None:
        facts = self._circumstances.facts(compilation, change)
        if _comes_of_break(change) and change.lasts and not facts.fixed_at and (
                begin := self._break_before(compilation)):
            return RecompileAdvice(f"Python computes it since {begin[0]}; begin there: {begin[1]}")
        return on_change(value_change(change), facts)


def _comes_of_break(change: Change) -> bool:
    """Return whether what changed is what a call returned, and was on the stack when the graph had ended."""
    parsed = parsed_expression(change.subject) if change.on_stack else None
    return parsed is not None and any(isinstance(node, ast.Call) and ast.unparse(node.func) not in _OF_OBJECTS
                                      for node in ast.walk(parsed))


def _subject_text(change: Change) -> str:
    """Return what changed, as Markdown; of something that is of another type the thing itself."""
    if change.keywords:
        return ", ".join(code(name) for name, _ in change.keywords)
    match parsed_expression(change.subject):
        case ast.Call(ast.Name("type"), [of], []):
            return code(ast.unparse(of))
    return change.subject_text()


def _whole(advice: Advice) -> str:
    """Return a change with the next break that has to be changed, too."""
    first = f"only together with a change of {advice.next_break}, which breaks the graph next: "
    return first * bool(advice.next_break) + advice.change


def _to_the_end(advice: Advice) -> str:
    """Return a change with the next break as Markdown."""
    return prose(_whole(advice))
