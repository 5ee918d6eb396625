"""Advice on graph breaks and recompiles as Markdown; the rules are those of :mod:`depyf.advice`."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable
from dataclasses import replace

from ..advice import Advice, on_break
from ..advice.breaks import OPTIMIZER
from ..advice.recompiles import Facts, ValueChange, on_change
from ..advice.source import is_own
from ..records.model import Compilation, GraphBreak
from ..torch_text.events import graph_break
from ..torch_text.global_names import resumed_function
from ..torch_text.guard_failures import number
from ..torch_text.met import in_order, is_fundamental, met
from ..torch_text.parsed import parsed_expression
from ..torch_text.size_names import symbols_in
from ..torch_text.user_expressions import is_global
from .causes import path_from_frame
from .changes import Change, in_words
from .dump.guards.sizes import fixed_symbols
from .dump.guards.versions import MOST
from .markdown import code, prose, some
from .run_index import RunIndex
from .verdict import is_outermost


class Adviser:
    """Advises on the graph breaks and recompiles of one run; not by the rules whose change was ``tried`` in vain."""

    def __init__(self, run: RunIndex, tried: Collection[str] = ()) -> None:
        self.run, self._tried = run, tried
        self._of_breaks: dict[GraphBreak, Advice | None] = {}

    def on_break(self, broken: GraphBreak) -> Advice | None:
        """Return the advice on a graph break; ``None`` where no rule fits.

        What torch cannot reconstruct after a break goes with that break.
        """
        if broken not in self._of_breaks:
            known = self.run.capture.by_id.get(broken.compile_id.key)
            breaks = known.breaks if known is not None else ()
            # (the last break in the same line after which torch could not reconstruct a value)
            cause = next((each for each in reversed(breaks) if met(broken).kind == "reconstruction" != met(each).kind
                          and any(place.is_at(broken.location) for place in each.stack)), None)
            site = self.run.source.site(self._from_outermost(broken))
            advice = self.on_break(cause) if cause is not None else on_break(replace(site, is_tried=broken in breaks))
            if advice and cause and cause.location and not cause.location.is_at(broken.location):
                place = code(self.run.short_place(cause.location))
                advice = replace(advice, change=f"it follows from the graph break at {place}: {advice.change}")
            self._of_breaks[broken] = advice
        return self._of_breaks[broken]

    def _from_outermost(self, broken: GraphBreak) -> GraphBreak:
        """Return the same break in the function that the program asked to be compiled; the break itself for none.

        (What breaks the graph of its caller is compiled by itself: nothing can be done before a call of it.)
        """
        compilation = self.run.capture.by_id.get(broken.compile_id.key)
        if compilation is None or is_outermost(self.run.summary_of[compilation.compile_id.key]):
            return broken
        return max((each for other in self.run.capture.compilations for each in other.breaks
                    if (each.location, each.registry_id) == (broken.location, broken.registry_id)),
                   key=lambda each: each.depth, default=broken)  # (that of a failure is in no list)

    def on_lost(self, compilation: Compilation) -> list[str]:
        """Return advice, as Markdown, on a function that torch gave up; none where no rule fits."""
        if compilation.outcome == "limit":
            return self.on((each for each in self.run.capture.compilations
                            if each.compile_id.frame_key == compilation.compile_id.frame_key), True)
        causes = [broken for broken in compilation.breaks if broken.skips_function]
        failure = compilation.failure
        if failure is not None and failure.kind == "ConstraintViolationError":
            return list(filter(None, [self._constraint(compilation)]))
        if failure is not None and failure.reason and not causes:
            inner = [failure.location] if failure.location is not None else []
            causes = [graph_break(compilation.compile_id, failure.reason, inner)]
        if compilation.outcome == "skipped" and failure is None and not causes and compilation.place is not None \
                and is_own(compilation.place.filename) and not resumed_function(compilation.function):
            return ["where other calls of it compute with tensors, leave out those that do not (test that before the "
                    "call): for one of them torch gives the function up for all"]
        texts = list(filter(None, map(self.change_on, causes)))
        if not texts and any(met(broken).kind == "next" for broken in causes):
            # (A function that takes an iterator, as a comprehension, is traced with its caller if that is compiled.)
            texts = [self.on_outer_break(compilation)]
        return list(dict.fromkeys(filter(None, texts)))

    def change_on(self, broken: GraphBreak) -> str:
        """Return what is to be said of a graph break, as Markdown; ``""`` where no rule fits."""
        advice = self.on_break(broken)
        return prose(advice.change) if advice is not None and advice.rule not in self._tried else ""

    def lines_on(self, broken: GraphBreak) -> list[str]:
        """Return the advice on a graph break as items in Markdown: a sentence, or a change, why, and what it costs."""
        advice = self.on_break(broken)
        if advice is None:
            return []
        if not advice.is_change:
            return [f"**advice**: {prose(advice.change)}"]
        return [f"**change**: {prose(advice.change)}", f"because {prose(advice.why)}", f"cost: {prose(advice.cost)}"]

    def torchs_hints(self, group: Iterable[GraphBreak]) -> list[str]:
        """Return torch's own hints on breaks of one reason, less those that our advice on each of them contradicts."""
        broken = list(group)
        has_change = all((advice := self.on_break(each)) is not None and advice.is_change for each in broken)
        return [hint for hint in in_order(broken[0].hints) if not (has_change and is_fundamental(hint))]

    def on_outer_break(self, compilation: Compilation) -> str:
        """Return the break since which something is compiled by itself; ``""`` if not known."""
        summary, of, breaks = self.run.summary_of[compilation.compile_id.key], "of its caller", []
        if resumed_function(compilation.function):
            frame, of = self.run.frame_of(compilation), "before it"
            breaks = [broken for each in summary.compilations if frame and frame.name in self.run.resume_names(each)
                      for broken in each.breaks]
        elif not is_outermost(summary):
            breaks = self._breaks_of_call(compilation)
        where = next(filter(None, (self.run.source.site(broken).where or broken.location for broken in breaks)), None)
        return f"it is compiled by itself since the graph {of} breaks at {code(self.run.short_place(where))}" \
            if where is not None else ""

    def _breaks_of_call(self, called: Compilation) -> list[GraphBreak]:
        """Return the breaks for which a compiled function calls another in plain Python; none where torch always does.

        The caller is the last function on the stack that torch compiled.
        """
        for step in reversed(called.stack):
            of_step = [each for each in self.run.capture.compilations if each.function == step.function
                       and each.location is not None and self.run.source.are_in_one_function(step, each.location)]
            if of_step:
                end = self.run.source.end_of_statement(step)  # (a path that begins in the statement of the step)
                breaks = [broken for each in of_step for broken in each.breaks if broken.skips_function or [
                    self.run.source.end_of_statement(first) for first in path_from_frame(broken, each)[:1]] == [end]]
                rules = [advice.rule for advice in map(self.on_break, breaks) if advice is not None]
                return breaks if OPTIMIZER not in rules else []
        return []

    def on(self, compilations: Iterable[Compilation], is_action: bool | None = None) -> list[str]:
        """Return what is true of recompiles as Markdown, what there is to do first; each sentence once.

        Args:
            compilations: of one function.
            is_action: only sentences that name something to do, or only those that do not.
        """
        return [advice.change for advice in self.recompiles_by_advice(compilations)
                if is_action in (None, advice.is_change)]

    def recompiles_by_advice(self, compilations: Iterable[Compilation]) -> dict[Advice, list[Compilation]]:
        """Return the recompiles that each advice, as Markdown, is on; what there is to do first, then that on most."""
        changes = [(change, each) for each in compilations if each.outcome != "failed"
                   for change in self.run.changes(each)[:1]]  # (a failed one is no version)
        known = {change.subject for change, each in changes if each.outcome != "limit"}
        changes = [(change, each) for change, each in changes if each.outcome != "limit" or change.subject not in known]
        advised: dict[Advice, list[tuple[str, Compilation]]] = {}
        for change, each in changes:
            said = on_change(value_change(change), self._facts(each, change))
            if said is not None and said.rule not in self._tried:
                advised.setdefault(said, []).append((_subject_text(change), each))
        result: dict[Advice, list[Compilation]] = {}
        for said, of in sorted(advised.items(), key=lambda item: (not item[0].is_change, -len(item[1]))):
            subjects, compilations = zip(*of)
            others = some([code(each) for each in self.run.new_in_each(compilations)], MOST)
            besides = f"; each of the versions that were compiled for this is for another value of {others}, too: to " \
                      "spare one, that has to stay the same or to be left open as well" if others else ""
            text = f"{some(list(dict.fromkeys(subjects)), MOST)}: {prose(said.change)}{besides}"
            result[replace(said, change=text)] = list(compilations)
        return result

    def _facts(self, compilation: Compilation, change: Change) -> Facts:
        """Return the facts about what changed at a recompile."""
        first, names = change.failures[0], self.run.stack_names(compilation)
        # (A variable of a closure has its name in the subject, and its place in torch's decisions.)
        subject = in_words(first.subject, names) if first.subject != first.text else change.subject
        versions = [(each, *self.run.sizes(each)) for each in self.run.capture.compilations
                    if each.compile_id.frame_key == compilation.compile_id.frame_key]
        failed = [self.run.version_of(failure.entry) for failure in change.failures]
        among = [compilation, *(each.compilation for each in failed if each is not None)]
        # (Last that of this version, or of one that the call did not fit.)
        fixed = [places[subject] for each, places, _ in sorted(versions, key=lambda each: each[0] in among)
                 if subject in places]
        # (What was compiled with other arguments of torch.compile says nothing of this one's sizes.)
        free = [(each, there[subject]) for each, _, there in versions
                if subject in there and each.arguments == compilation.arguments]
        opened = [self.run.range_of(each, source) for each, source in free]
        equated = [subject in getattr(self.run.version(each), "equations", ()) for each, _ in free]
        ranges = list(dict.fromkeys(each.in_words() for each in opened))
        was = number(change.before)
        serves_was = was is not None and any((each.low or 0) <= was <= (each.high or was) for each in opened)
        return Facts(
            fixed_at=code(self.run.short_place(fixed[-1])) if fixed and fixed[-1] is not None else "",
            is_open=bool(opened) and (not fixed or fixed[-1] is not None),
            is_equated=any(equated) and all(is_one or left.high is not None for is_one, left in zip(equated, opened)),
            serves_small=any(each.low in (0, 1) for each in opened),
            dynamic=(compilation.arguments or {}).get("dynamic", ""),
            of_parameter=any(failure.owner == "parameter" for failure in change.failures),
            ranges=some(ranges, MOST) if len(ranges) > 1 and not serves_was and not any(equated) and all(
                each.high is not None for each in opened) else "",
            numbers=tuple(int(fact.text) for version in self.run.versions_beside(compilation)
                          if (fact := version.facts.get(subject)) is not None and fact.text.isdigit()))

    def _constraint(self, compilation: Compilation) -> str:
        """Return what to say of sizes marked dynamic for which the code leaves one value or some; ``""`` for none."""
        said = []
        for name, decision in self.run.with_names(compilation, fixed_symbols(compilation, None)):
            if ".shape[" in name:
                at = f" at {code(self.run.short_place(decision.location))}" if decision.location is not None else ""
                said.append(f"{code(name)} is marked as dynamic, and what is computed with it{at} fixes it at "
                            f"{decision.value}")
        if said:
            return (f"{'; '.join(dict.fromkeys(said))}: with `torch._dynamo.maybe_mark_dynamic` in place of "
                    "`mark_dynamic` a size that is fixed has a version of its own")
        # (A mark without bounds allows conditions on the size: torch's RelaxedUnspecConstraint.)
        tested = [each for each in compilation.symbols if each.kind == "guarded"]
        symbols = {symbol for each in tested for symbol in symbols_in(each.symbol)}
        names = [name for name, each in self.run.with_names(compilation, compilation.symbols)
                 if each.kind == "created" and each.symbol in symbols and ".shape[" in name]
        places = {code(self.run.short_place(each.location)): None for each in tested if each.location is not None}
        return (f"{code(names[0])} is marked as dynamic with `min` or `max`, and what torch traced at "
                f"{some(list(places), MOST)} is for a part of these values: with `mark_dynamic` without `min` and "
                "`max` a value of the other part has a version of its own") if len(names) == 1 and places else ""


def _subject_text(change: Change) -> str:
    """Return what changed, as Markdown; of something that is of another type the thing itself."""
    if change.keywords:
        return ", ".join(code(name) for name, _ in change.keywords)
    match parsed_expression(change.subject):
        case ast.Call(ast.Name("type"), [of], []):
            return code(ast.unparse(of))
    return change.subject_text()


def value_change(change: Change) -> ValueChange:
    """Return a change at a recompile as the rules on it know it."""
    first = change.failures[0]
    of_program = not change.subject.startswith("torch.")  # (a global of torch's is no argument of anything)
    return ValueChange(change.subject, change.was, change.now, change.lasts, tuple(name for name, _ in change.keywords),
                       first.owner, is_global(first.source) and of_program)
