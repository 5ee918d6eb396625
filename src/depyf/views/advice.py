"""Advice on graph breaks and recompiles, in the words of the dump; the rules are those of :mod:`depyf.advice`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from ..advice import Advice, on_break
from ..advice.calls import bound_method, on_left_method
from ..advice.libraries import SET_UP
from ..advice.recompile_changes import RecompileAdvice, ValueChange, last_part
from ..advice.recompile_circumstances import Circumstances
from ..advice.recompiles import on_change
from ..advice.source import Site
from ..records.model import Compilation, GraphBreak, SourceLocation
from ..torch_text.events import graph_break
from ..torch_text.parsed import parsed_expression
from ..torch_text.resumes import resumed_function
from .changes import CLOSURE_HINT, Change, in_words
from .circumstances.of_run import CircumstancesOfRun
from .dump.guards.conditions import GLOBALS, Condition
from .grouping import path_from_frame
from .markdown import code, prose, some
from .run_index import RunIndex
from .verdict import is_outermost
from .version_differences import MOST, Difference, version_differences

#: The type of something.
_OF_TYPE = re.compile(r"type\(([\w.\[\]'\"]+)\)")
#: An item of a list: versions differ in what it holds.
_HELD = re.compile(r"\[(?:\d+|[i-n])\]$")
#: Versions that failed at once that are compared with what was compiled then.
_COMPARED = 4
#: Recompiles of a function that are looked at for it.
_LOOKED_AT = 12
#: Functions that tell what an object is like: torch answers for them.
_OF_OBJECTS = ("len", "type", "isinstance", "hasattr")
#: What a call cannot keep by itself, as it is what a tensor is like, and what has two versions at most.
_ORDINARY = re.compile(
    r"\.shape\[|\.dtype$|\.device$|\.requires_grad$|\.training$|^torch\.is_grad_enabled|^len\(kwargs\)$")


#: What can be done about a branch that gives its function up and is left as it is.
_AROUND = "; to compile the rest, make functions of their own of what comes before and after it"
#: Torch's words where Dynamo has no way round a break. (The program may have one.)
_NO_WAY = "This graph break is fundamental"
#: Torch's id of an exception that leaves what is compiled.
_EXCEPTION = "GB0088"


class Adviser:
    """Advises on the graph breaks and recompiles of one run."""

    def __init__(self, run: RunIndex) -> None:
        self.run = run
        self._circumstances = CircumstancesOfRun(run)
        self._of_breaks: dict[GraphBreak, Advice | None] = {}

    def on_break(self, broken: GraphBreak) -> Advice | None:
        """Return the advice on a graph break; ``None`` where no rule fits.

        An exception breaks the graph again in each function that it goes through: what there is to say of it where it
        was raised holds there, too.
        """
        if broken not in self._of_breaks:
            self._of_breaks[broken] = self._on_left_method(broken) or on_break(self._site(broken))
        own = self._of_breaks[broken]
        return own if own is not None or broken.registry_id != _EXCEPTION else self._on_exceptions.get(broken.context)

    def _site(self, broken: GraphBreak) -> Site:
        """Return the statement that a break is in."""
        compilation = self._by_id.get(broken.compile_id.key)
        return self.run.source.site(broken, compilation.function if compilation is not None else "")

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
        """The compilations by torch's ids."""
        return {each.compile_id.key: each for each in self.run.capture.compilations}

    @cached_property
    def _on_exceptions(self) -> dict[str, Advice]:
        """The advice on exceptions, by torch's words for them."""
        found = ((broken.context, on_break(self._site(broken))) for each in self.run.capture.compilations
                 for broken in each.breaks if broken.registry_id == _EXCEPTION and broken.context)
        return {context: advice for context, advice in found if advice is not None}

    def on_lost(self, compilation: Compilation) -> list[str]:
        """Return advice, as Markdown, on a function that torch gave up; none where no rule fits."""
        if compilation.outcome == "limit":
            return self.on_limit([compilation])
        causes = [broken for broken in compilation.breaks if broken.skips_function]
        failure = compilation.failure
        if failure is not None and failure.reason and not causes:
            causes = [graph_break(compilation.compile_id, failure.reason,
                                  [failure.location] if failure.location is not None else [])]
        texts = [_to_the_end(advice) + _AROUND * advice.leaves for broken in causes
                 if (advice := self.on_break(broken)) is not None]
        if not texts and _is_of_iterator(causes):
            texts = [self.on_outer_break(compilation)]
        return list(dict.fromkeys(filter(None, texts or [self.on_set_up(compilation)])))

    def on_limit(self, compilations: Sequence[Compilation]) -> list[str]:
        """Return advice, as Markdown, on a function that reached the recompile limit: on all that made its versions.

        Args:
            compilations: those that torch refused at the limit.
        """
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
                    f"cost: {prose(advice.cost)}"]
        outer = self.on_set_up(compilation)
        return [f"**change**: {outer}"] if outer else []

    def torchs_hints(self, group: Iterable[GraphBreak]) -> list[str]:
        """Return torch's own hints on breaks of one reason.

        That Dynamo will never trace such code is left out where we know a change of the program for each.
        """
        broken = list(group)
        has_change = all(self.on_break(each) is not None for each in broken)
        return [hint for hint in in_order(broken[0].hints) if not (has_change and hint.startswith(_NO_WAY))]

    def on_set_up(self, compilation: Compilation) -> str:
        """Return the advice, as Markdown, on what is in the way of what a library sets up at its first call.

        ``""`` where the program asked for the compilation, or the run has no such advice. (Other breaks of a function
        stay when its caller's are gone: it is then traced as a part of its caller.)
        """
        if is_outermost(self.run.summary_of[compilation.compile_id.key]):
            return ""
        return next((prose(advice.change) for advice in self._outer_breaks.values() if advice.rule == SET_UP), "")

    def on_outer_break(self, compilation: Compilation) -> str:
        """Return where to begin for what is compiled by itself only since a graph broke before, as Markdown.

        ``""`` where the program asked for its compilation, or there is no advice on a break before it.
        """
        begin = self._break_before(compilation)
        return prose(f"it is compiled by itself only since {begin[0]}; begin there: {begin[1]}") if begin else ""

    def _break_before(self, compilation: Compilation) -> tuple[str, str] | None:
        """Return the break before what is compiled by itself, as a clause, and the change there; ``None`` for none."""
        summary = self.run.summary_of[compilation.compile_id.key]
        if resumed_function(compilation.function):
            of, advised = "before it", self._advised(self._leading_to(compilation))
        elif not is_outermost(summary):
            of, advised = "of its caller", self._breaks_of_call(compilation)
        else:
            return None
        for broken, advice in advised.items():
            where = broken.location
            at = f" at {code(self.run.short_place(where))}" if where is not None else ""
            return f"the graph {of} breaks{at}", advice.change
        return None

    def _leading_to(self, resumed: Compilation) -> list[Compilation]:
        """Return the compilations whose break a resume function continues after."""
        frame = self.run.frame_of(resumed)
        return [] if frame is None else [
            each for each in self.run.summary_of[resumed.compile_id.key].compilations
            if frame.name in self.run.resume_names(each)]

    def _breaks_of_call(self, called: Compilation) -> dict[GraphBreak, Advice]:
        """Return the breaks for which a compiled function calls another in plain Python, with the advice on them.

        That is what torch compiled of those on the stack and came last: in the others stands how it came to be called.
        None where they are not known, or there is no advice on one of them: then the change of others is not enough.
        """
        for step in reversed(called.stack):
            of_step = [each for each in self._by_function.get(step.function, ()) if each.location is not None
                       and self.run.source.are_in_one_function(step, each.location)]
            if of_step:
                breaks = [broken for each in of_step for broken in each.breaks
                          if broken.skips_function or self._is_at(path_from_frame(broken, each), step)]
                advised = {broken: self.on_break(broken) for broken in breaks}
                known = {broken: advice for broken, advice in advised.items() if advice is not None}
                return known if len(known) == len(advised) else {}
        return {}

    @cached_property
    def _by_function(self) -> dict[str, list[Compilation]]:
        """The compilations by the name of what was compiled."""
        result: dict[str, list[Compilation]] = {}
        for each in self.run.capture.compilations:
            result.setdefault(each.function, []).append(each)
        return result

    def _is_at(self, path: Sequence[SourceLocation], step: SourceLocation) -> bool:
        """Return whether a path begins in the statement that a function is at."""
        ends = [self.run.source.end_of_statement(each) for each in (*path[:1], step)]
        return len(ends) == 2 and ends[0] == ends[1]

    def _advised(self, compilations: Iterable[Compilation]) -> dict[GraphBreak, Advice]:
        """Return the breaks of compilations that there is advice on."""
        return {broken: advice for compilation in compilations for broken in compilation.breaks
                if (advice := self.on_break(broken)) is not None}

    @cached_property
    def _outer_breaks(self) -> dict[GraphBreak, Advice]:
        """The breaks in functions that the program asked torch to compile, with the advice on them."""
        return {broken: advice for summary in self.run.summaries if is_outermost(summary)
                for broken, advice in self._advised(summary.compilations).items()}

    def on(self, compilations: Iterable[Compilation], remedies_only: bool = False) -> list[str]:
        """Return advice on how to spare torch compiling these again, as Markdown; each once.

        Args:
            compilations: of which some are recompiles.
            remedies_only: leave out what only says why there are so many versions.
        """
        compilations = [each for each in compilations if each.outcome != "skipped"]  # (which gave no version)
        advised: dict[object, tuple[str, RecompileAdvice]] = {}
        first: dict[object, Compilation] = {}
        others: dict[str, RecompileAdvice | None] = {}
        never_served: set[str] = set()
        unadvised: dict[str, None] = {}
        for subject, advice in self._others(compilations[:_LOOKED_AT]):
            if subject not in never_served:
                others[subject] = advice
            if advice is not None and advice.comes_first:
                never_served.add(subject)
        for compilation in compilations:
            for change in self.run.changes(compilation)[:1]:
                advice = self._on_change(change, compilation)
                if advice is not None and advice.comes_first:
                    never_served.add(change.subject)
                elif change.subject in never_served:
                    continue  # (a resume function may have it open, which is no help before it)
                others.pop(change.subject, None)
                if advice is None and change.lasts and self._looks_at(compilation, change):
                    unadvised.setdefault(change.subject)
                if advice is not None:
                    # (A resume function gets the sizes that the function gets: one advice on each is enough.)
                    key = change.subject, change.is_of_special_size if ".shape[" in change.subject else advice
                    advised.setdefault(key, (_subject_text(change), advice))
                    first.setdefault(key, compilation)
        subjects = {subject for subject, _ in advised.values()}
        if remedies_only:
            advised = {key: each for key, each in advised.items() if each[1].is_remedy}
        if not advised:
            return []
        besides = [(code(subject), advice) for subject, advice in others.items()
                   if advice is not None and code(subject) not in subjects and (advice.is_remedy or not remedies_only)]
        advised = self._told_apart(advised, first)
        given = {advice for _, advice in advised.values()}
        likewise = [each for each in besides if each[1] in given]
        lines = [*((line, "") for line in _lines(dict.fromkeys([*advised.values(), *likewise]))),
                 *((line, ", too") for line in _lines(each for each in besides if each[1] not in given)[:MOST])]
        lines.sort(key=lambda line: not line[0][1].comes_first)
        subjects |= {code(subject) for subject in others}
        rest = [code(subject) for subject in unadvised if code(subject) not in subjects]
        rest += [code(subject) for subject, advice in others.items()
                 if advice is None and code(f"len({subject.removesuffix('[...]')})") not in subjects]
        missing = [f"that may not be enough: the versions differ in {some(rest, MOST)}, too"] if rest else []
        # (Where one that comes first is beside what torch names, no version fits before all of them are done.)
        besides_first = lines[0][1]
        return [f"{subject}{(too or besides_first) if number else ''}: {prose(advice.text)}"
                for number, ((subject, advice), too) in enumerate(lines)] + missing

    def _told_apart(
        self, advised: Mapping[object, tuple[str, RecompileAdvice]], first: Mapping[object, Compilation],
    ) -> dict[object, tuple[str, RecompileAdvice]]:
        """Return the advice, with the part of the function that it is on where another part has other advice.

        Args:
            advised: subject and advice.
            first: the first recompile that has it.
        """
        parts: dict[str, set[tuple[int, int]]] = {}
        for key, (subject, _) in advised.items():
            parts.setdefault(subject, set()).add(first[key].compile_id.frame_key)
        return {key: (f"{subject} (in {self.run.name_of(first[key])})" if len(parts[subject]) > 1 else subject, advice)
                for key, (subject, advice) in advised.items()}

    def _on_change(self, change: Change, compilation: Compilation) -> RecompileAdvice | None:
        advice = on_change(_value_change(change), self._circumstances.of(compilation))
        if advice is not None and advice.comes_first and not self._looks_at(compilation, change):
            return None
        # (More versions are no help where each call makes another text.)
        is_text = re.match(r"[bB]?['\"]", change.now) is not None
        if (advice is None or is_text) and _comes_of_break(change) and (begin := self._break_before(compilation)):
            return RecompileAdvice(f"Python computes it since {begin[0]}; begin there: {begin[1]}")
        return advice

    def _looks_at(self, compilation: Compilation, change: Change) -> bool:
        """Return whether the version that was compiled looks at what changed: else it serves whatever that becomes."""
        version = self.run.version(compilation)
        names = self.run.stack_names(compilation)
        subjects = {change.subject, *(in_words(failure.subject, names) for failure in change.failures)}
        return version is None or any(in_words(each, names) in subjects for each in version.facts)

    def _others(self, compilations: Sequence[Compilation]) -> Iterator[tuple[str, RecompileAdvice | None]]:
        """Yield what else versions differ in from those that failed before them, with advice on it.

        A tensor's properties are left out: they are what they are; but for a size that the version leaves open since.
        So is what one version alone looks at, unless others want another value of it.
        """
        wanted: dict[str, set[str]] = {}
        found: list[tuple[Difference, Condition | None, Circumstances]] = []
        for compilation in compilations:
            changes = self.run.changes(compilation)
            if not changes or not changes[0].lasts:
                continue
            at = self._circumstances.of(compilation)
            yield from self._open_sizes(compilation, changes[0], at)
            for each, condition in self._differences(compilation):
                wanted.setdefault(each.subject, set()).update(filter(None, (each.was, each.now)))
                found.append((each, condition, at))
        main = [_value_change(change) for compilation in compilations for change in self.run.changes(compilation)[:1]]
        explained = {last_part(change.subject): change for change in main if change.hint and change.lasts}
        explained.pop("", None)  # (of a variable)
        alike: dict[str, set[str]] = {}
        for each, _, _ in found:
            alike.setdefault(_HELD.sub("[...]", each.subject), set()).add(each.subject)
        for each, condition, at in found:
            held = _HELD.sub("[...]", each.subject)
            held = held if len(alike[held]) > 1 else each.subject
            if each.was:
                # (Of layers torch explains the first alone.)
                known = explained.get(last_part(held), ValueChange("", (), ""))
                cause = condition.cause.text if condition is not None and condition.cause is not None else ""
                yield held, on_change(replace(
                    known, subject=held, was=(each.was,), now=each.now, cause=cause or known.cause,
                    of_global=known.of_global or condition is not None and condition.section == GLOBALS), at)
            elif len(wanted[each.subject]) > 1:
                yield held, None

    def _open_sizes(
        self, compilation: Compilation, first: Change, at: Circumstances,
    ) -> Iterator[tuple[str, RecompileAdvice | None]]:
        """Yield the size that changed along with something else, with advice on it and those that did so, too.

        (Where a size is what torch names, its advice tells of them.)
        """
        if ".shape[" in first.subject or not at.version.along:
            return
        size, *others = at.version.along
        was = next((each.was for each in self.run.differences(compilation) if each.subject == size), "")
        at = replace(at, version=replace(at.version, along=tuple(others)))
        advice = on_change(ValueChange(size, (was,), ""), at)
        if advice is not None:
            yield size, advice

    def _differences(self, compilation: Compilation) -> Iterator[tuple[Difference, Condition | None]]:
        """Yield the differences of a version from those that failed before it, with the conditions that say them."""
        new = self.run.version(compilation)
        for failure in compilation.guard_failures[:_COMPARED]:
            old = self.run.version_of(failure.entry)
            if old is None or new is None:
                continue
            names = self.run.stack_names(compilation)
            other = in_words(failure.subject, names) if failure.expected == "the same object" else ""
            for each in version_differences(old, new, names, ()):
                if other and re.search(rf"(?<![\w.]){re.escape(other)}(?!\w)", each.subject):
                    continue  # (what another object holds is what it is)
                if not _ORDINARY.search(each.subject) and not each.now.startswith("any"):  # (the new version takes any)
                    fact = old.facts.get(each.subject) or new.facts.get(each.subject)
                    yield each, fact.condition if fact is not None else None


def _value_change(change: Change) -> ValueChange:
    first = change.failures[0]
    hint = next((CLOSURE_HINT.sub("", failure.hint).strip() for failure in change.failures if failure.hint), "")
    return ValueChange(
        change.subject, change.was, change.now, change.lasts, tuple(name for name, _ in change.keywords), hint,
        next((failure.cause.text for failure in change.failures if failure.cause is not None), ""),
        first.source.startswith("G["))


def _comes_of_break(change: Change) -> bool:
    """Return whether what changed is what a call returned, and lay on the stack when the graph had ended."""
    parsed = parsed_expression(change.subject) if change.on_stack else None
    return parsed is not None and any(isinstance(node, ast.Call) and ast.unparse(node.func) not in _OF_OBJECTS
                                      for node in ast.walk(parsed))


def _subject_text(change: Change) -> str:
    """Return what changed, as Markdown; of something that is of another type the thing itself."""
    of_type = _OF_TYPE.fullmatch(change.subject)
    names = [code(name) for name, _ in change.keywords] or ([code(of_type[1])] if of_type is not None else [])
    return ", ".join(names) or change.subject_text()


def _lines(advised: Iterable[tuple[str, RecompileAdvice]]) -> list[tuple[str, RecompileAdvice]]:
    """Return advice with its subjects as Markdown; what holds of several things is said once."""
    subjects: dict[RecompileAdvice, list[str]] = {}
    for subject, advice in advised:
        subjects.setdefault(advice, []).append(subject)
    return [(some(of, MOST), advice) for advice, of in subjects.items()]


def _to_the_end(advice: Advice) -> str:
    """Return a change, as Markdown, with what stands in the way of the function behind it."""
    first = f"only together with a change of {advice.next_break}, which breaks the graph next: "
    first *= bool(advice.next_break)
    return prose(first + advice.change)


def _is_of_iterator(causes: Iterable[GraphBreak]) -> bool:
    """Return whether torch gave a function up for an iterator that it was called with, as a comprehension is.

    Where its caller is compiled, it is a part of that.
    """
    return any(broken.reason.startswith("Missing tp_iternext") for broken in causes)


def in_order(hints: Iterable[str]) -> list[str]:
    """Return torch's hints with those last that ask for a report: nobody's program is better for one."""
    return sorted(hints, key=lambda hint: "report an issue" in hint)
