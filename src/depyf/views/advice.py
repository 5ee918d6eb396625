"""Advice on graph breaks and recompiles, in the words of the dump; the rules are those of :mod:`depyf.advice`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property

from ..advice import Advice, Sources, on_break
from ..advice.libraries import SET_UP
from ..advice.recompiles import Circumstances, RecompileAdvice, ValueChange, on_change
from ..records.model import Compilation, GraphBreak
from ..torch_text.events import graph_break
from ..torch_text.libraries import is_library
from ..torch_text.resumes import resumed_function
from ..torch_text.size_names import SYMBOL
from .causes import in_two_steps
from .changes import CLOSURE_HINT, Change, in_words
from .dump.guards.conditions import ARGUMENTS
from .dump.guards.sizes import range_in_sentence
from .fixed_symbols import fixed_symbols
from .markdown import code, prose, some
from .run_index import RunIndex
from .verdict import is_outermost
from .version_differences import MOST, version_differences

#: Files through which torch calls a function of the user's.
_OF_TORCH = re.compile(r"torch[\\/](?:_dynamo[\\/]|nn[\\/]modules[\\/]module\.py$)")
#: Files that another than the user wrote.
_INSTALLED = re.compile(r"[\\/](?:site|dist)-packages[\\/]")
#: The type of something, as Markdown.
_OF_TYPE = re.compile(r"^`type\(([\w.\[\]'\"]+)\)`$")
#: An item of a list: versions differ in what it holds.
_HELD = re.compile(r"\[(?:\d+|[i-n])\]$")
#: Versions that failed at once that are compared with what was compiled then.
_COMPARED = 4
#: Recompiles of a function that are looked at for it.
_LOOKED_AT = 12
#: What a call cannot keep by itself, as it is what a tensor is like, and what has two versions at most.
_ORDINARY = re.compile(
    r"\.shape\[|\.dtype$|\.device$|\.requires_grad$|\.training$|^torch\.is_grad_enabled|^len\(kwargs\)$")


#: Torch's words where Dynamo has no way round a break. (The program may have one.)
_NO_WAY = "This graph break is fundamental"
#: Torch's id of an exception that leaves what is compiled.
_EXCEPTION = "GB0088"


class Adviser:
    """Advises on the graph breaks and recompiles of one run."""

    def __init__(self, run: RunIndex) -> None:
        self.run = run
        self._sources = Sources(run.capture.sources)
        self._of_functions: dict[tuple[int, int], Circumstances] = {}
        self._of_breaks: dict[GraphBreak, Advice | None] = {}
        self._of_sizes: dict[tuple[tuple[int, int], str], list[str]] = {}

    def on_break(self, broken: GraphBreak) -> Advice | None:
        """Return the advice on a graph break; ``None`` where no rule fits.

        An exception breaks the graph again in each function that it goes through: what there is to say of it where it
        was raised holds there, too.
        """
        if broken not in self._of_breaks:
            self._of_breaks[broken] = on_break(self._sources.site(broken))
        own = self._of_breaks[broken]
        return own if own is not None or broken.registry_id != _EXCEPTION else self._on_exceptions.get(broken.context)

    @cached_property
    def _on_exceptions(self) -> dict[str, Advice]:
        """The advice on exceptions, by torch's words for them."""
        found = ((broken.context, on_break(self._sources.site(broken))) for each in self.run.capture.compilations
                 for broken in each.breaks if broken.registry_id == _EXCEPTION and broken.context)
        return {context: advice for context, advice in found if advice is not None}

    def on_lost(self, compilation: Compilation) -> list[str]:
        """Return advice, as Markdown, on a function that torch gave up; none where no rule fits."""
        if compilation.outcome == "limit":
            return self.on([compilation])
        causes = [broken for broken in compilation.breaks if broken.skips_function]
        failure = compilation.failure
        if failure is not None and failure.reason and not causes:
            causes = [graph_break(compilation.compile_id, failure.reason,
                                  [failure.location] if failure.location is not None else [])]
        texts = [prose(advice.change) for broken in causes if (advice := self.on_break(broken)) is not None]
        if not texts and _is_of_iterator(causes):
            texts = [self.on_outer_break(compilation)]
        return list(dict.fromkeys(filter(None, texts or [self.on_set_up(compilation)])))

    def lines_on(self, broken: GraphBreak, compilation: Compilation) -> list[str]:
        """Return the advice on a graph break as the items of a list in Markdown: what to do, why, what it costs."""
        advice = self.on_break(broken)
        if advice is not None:
            return [f"**change**: {prose(advice.change)}", f"because {prose(advice.why)}",
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
        begin = self._begin(compilation)
        return prose(f"it is compiled by itself only since {begin[0]}; begin there: {begin[1]}") if begin else ""

    def _begin(self, compilation: Compilation) -> tuple[str, str] | None:
        """Return the break before what is compiled by itself, as a clause, and the change there; ``None`` for none."""
        summary = self.run.summary_of[compilation.compile_id.key]
        if resumed_function(compilation.function):
            of, advised = "before it", self._advised(self._leading_to(compilation)) or self._advised(
                summary.compilations)
        elif not is_outermost(summary):
            of, advised = "of its caller", self._outer_breaks
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

    def _advised(self, compilations: Iterable[Compilation]) -> dict[GraphBreak, Advice]:
        """Return the breaks of compilations that there is advice on."""
        return {broken: advice for compilation in compilations for broken in compilation.breaks
                if (advice := self.on_break(broken)) is not None}

    @cached_property
    def _outer_breaks(self) -> dict[GraphBreak, Advice]:
        """The breaks in functions that the program asked torch to compile, with the advice on them."""
        return {broken: advice for summary in self.run.summaries if is_outermost(summary)
                for broken, advice in self._advised(summary.compilations).items()}

    def on(self, compilations: Iterable[Compilation]) -> list[str]:
        """Return advice on how to spare torch compiling these again, as Markdown; each once."""
        compilations = list(compilations)
        found: dict[object, tuple[str, RecompileAdvice]] = {}
        others: dict[str, RecompileAdvice | None] = {}
        for compilation in compilations[:_LOOKED_AT]:
            others.update(self._others(compilation))
        for compilation in compilations:
            for change in self.run.changes(compilation)[:1]:
                others.pop(change.subject, None)
                advice = on_change(_value_change(change), self._circumstances(compilation))
                if advice is None and "(" in change.subject and (begin := self._begin(compilation)):
                    # (A value that comes of the break.)
                    advice = RecompileAdvice(f"Python computes it since {begin[0]}; begin there: {begin[1]}")
                if advice is not None:
                    # (A resume function gets the sizes that the function gets: one advice on each is enough.)
                    key = change.subject, change.is_of_special_size if ".shape[" in change.subject else advice
                    found.setdefault(key, (_OF_TYPE.sub(r"`\1`", _subject_text(change)), advice))
        if not found:
            return []
        told = _told(dict.fromkeys(found.values()))
        known = {subject for subject, _ in found.values()}
        advised = [(code(subject), advice) for subject, advice in others.items()
                   if advice is not None and code(subject) not in known]
        told += _told(advised, ", too")[:MOST]
        told.sort(key=lambda each: not each[1])
        lengths = known | {code(subject) for subject in others}
        rest = [code(subject) for subject, advice in others.items()
                if advice is None and code(f"len({subject.removesuffix('[...]')})") not in lengths]
        missing = [f"that may not be enough: the versions differ in {some(rest, MOST)}, too"] if rest else []
        return [text for text, _ in told] + missing

    def _others(self, compilation: Compilation) -> Iterator[tuple[str, RecompileAdvice | None]]:
        """Yield what else the failed versions differ in from the one compiled then, with advice on it.

        A tensor's properties are left out: they are what they are.
        """
        new, changes = self.run.version(compilation), self.run.changes(compilation)
        if new is None or not changes[0].lasts:
            return
        at = self._circumstances(compilation)
        for failure in compilation.guard_failures[:_COMPARED]:
            old = self.run.version_of(failure.entry)
            for each in version_differences(old, new, self.run.stack_names(compilation), ()) if old else ():
                if not _ORDINARY.search(each.subject) and not each.now.startswith("any"):  # (the new version takes any)
                    held = _HELD.sub("[...]", each.subject)
                    yield held, on_change(ValueChange(held, (each.was,), each.now), at) if each.was else None

    def _circumstances(self, compilation: Compilation) -> Circumstances:
        key = compilation.compile_id.frame_key
        if key not in self._of_functions:  # (the same for all versions of a function, of which there may be hundreds)
            self._of_functions[key] = Circumstances(
                fixed=self._fixed(compilation), fixed_with=self._fixed_with(compilation),
                ranges=self._ranges(compilation), calls=self._calls(compilation), made_in=self._caller(compilation),
                tested=self._tested(compilation), breaks=any(
                    resumed_function(each.function) is not None
                    for each in self.run.summary_of[compilation.compile_id.key].compilations))
        known = self._of_functions[key]
        return replace(known, modules=self._of_modules(compilation, known.fixed), along=self._along(compilation),
                       in_library=self._is_called_by_library(compilation))

    def _along(self, compilation: Compilation) -> tuple[str, ...]:
        """Return the sizes that go with the one that torch names first.

        Those that one version held for one value of, and the one compiled then leaves open, too; and those that are the
        same in a version.
        """
        along = [each.subject for each in self.run.differences(compilation)
                 if ".shape[" in each.subject and each.was.isdigit() and int(each.was) > 1 and not each.now.isdigit()]
        subject = next((change.subject for change in self.run.changes(compilation)), "")
        return tuple(dict.fromkeys([*along, *self._equal_sizes(compilation, subject)]))

    def _equal_sizes(self, compilation: Compilation, subject: str) -> list[str]:
        """Return the sizes that are the same as this one in any version of the function."""
        key = compilation.compile_id.frame_key, subject
        if key not in self._of_sizes:  # (all versions are looked at)
            all_names = [version.sizes.names for version in map(self.run.version, self._of_frame(compilation))
                         if version is not None]
            self._of_sizes[key] = [each for names in all_names for each, name in names.items()
                                   if each != subject and name == names.get(subject)]
        return self._of_sizes[key]

    def _of_frame(self, compilation: Compilation) -> list[Compilation]:
        return [c for c in self.run.capture.compilations if c.compile_id.frame_key == compilation.compile_id.frame_key]

    def _fixed(self, compilation: Compilation) -> dict[str, str]:
        """Return the sizes that a version of the function holds for one value, with the place that fixed them."""
        return {in_words(source, self.run.stack_names(each)): code(self.run.short_place(decision.location))
                for each in self._of_frame(compilation)
                for decision in fixed_symbols(each) if decision.location is not None
                for source in decision.source.split(", ") if source}

    def _fixed_with(self, compilation: Compilation) -> dict[str, tuple[str, ...]]:
        """Return the sizes that one version holds for one value of, and another leaves open.

        With each come sizes of arguments that are the same number in the first: what is computed with both fixes it.
        """
        opened: set[str] = set()
        fixed: dict[str, tuple[Compilation, str]] = {}
        for each in self._of_frame(compilation):
            made, held = ({
                in_words(source, self.run.stack_names(each)): decision.value for decision in decisions
                for source in decision.source.split(", ") if source}
                for decisions in ([one for one in each.symbols if one.kind == "created"], fixed_symbols(each)))
            opened |= made.keys() - held.keys()
            fixed = {**{name: (each, value) for name, value in held.items()}, **fixed}
        return {name: tuple(each for each in self._sizes(where, value) if each != name)
                for name, (where, value) in fixed.items() if name in opened}

    def _sizes(self, compilation: Compilation, number: str) -> list[str]:
        """Return the sizes of arguments that a version holds for this number."""
        version = self.run.version(compilation)
        return [] if version is None else [
            f"{one.subject}.shape[{index}]" for one in version.conditions
            if one.tensor is not None and one.section == ARGUMENTS
            for index, size in enumerate(one.tensor.size) if str(size) == number]

    def _tested(self, compilation: Compilation) -> frozenset[str]:
        """Return the sizes on which torch tested a condition in a version that leaves them open."""
        tested: set[str] = set()
        for each in self._of_frame(compilation):
            made = {decision.symbol: decision.source for decision in each.symbols if decision.kind == "created"}
            words = {word for decision in each.symbols if decision.kind == "guarded"
                     for word in SYMBOL.findall(decision.symbol)}
            tested.update(in_words(source, self.run.stack_names(each)) for word in words
                          for source in made.get(word, "").split(", ") if source)
        return frozenset(tested)

    def _of_modules(self, compilation: Compilation, fixed: Mapping[str, str]) -> dict[str, int]:
        """Return the fixed sizes that changed along with those of ``self``'s tensors.

        Another module was called.
        """
        subjects = [change.subject for change in self.run.changes(compilation)[:1] if change.subject in fixed]
        if not subjects or not any(each.subject.startswith("self.") and ".shape[" in each.subject
                                   for each in self.run.differences(compilation)):
            return {}
        modules = {tuple(one.text for one in version.conditions if one.tensor and one.root == "self")
                   for version in map(self.run.version, self._of_frame(compilation)) if version is not None}
        return dict.fromkeys(subjects, len(modules))

    def _ranges(self, compilation: Compilation) -> dict[str, str]:
        """Return what a version of the same function leaves open, with the range that its guards leave of a size."""
        ranges = ((in_words(source, self.run.stack_names(each)), self.run.range_of(each, source))
                  for each in self._of_frame(compilation)
                  for decision in each.symbols if decision.kind == "created"
                  for source in decision.source.split(", ") if source)
        result: dict[str, str] = {}
        for what, known in ranges:
            if known or what not in result:
                result[what] = f"all sizes {range_in_sentence(known)}" if known else ""
        return result

    def _calls(self, compilation: Compilation) -> dict[str, str]:
        """Return calls of bound methods whose arguments break the graph, written in two steps."""
        summary = self.run.summary_of.get(compilation.compile_id.key)
        steps = (in_two_steps(broken) for each in (summary.compilations if summary else ()) for broken in each.breaks)
        return dict(filter(None, steps))

    def _caller(self, compilation: Compilation) -> str:
        """Return the function that the program has compiled, in which the values may be made that this one gets.

        ``""`` where the program itself makes the call.
        """
        summary = self.run.summary_of[compilation.compile_id.key]
        resumed = resumed_function(compilation.function) is not None
        if is_outermost(summary) and not resumed:
            return ""
        for place in compilation.stack:
            # (Of functions of one name in a file it is the last that begins before.)
            begun = [(each.location.line, self.run.summary_of[each.compile_id.key].title)
                     for each in self.run.capture.compilations if each.location is not None
                     and (each.location.filename, each.function) == (place.filename, place.function)
                     and each.location.line <= place.line]
            if begun:
                return max(begun)[1]
        return summary.title if resumed else ""

    def _is_called_by_library(self, compilation: Compilation) -> bool:
        caller = next((place for place in reversed(compilation.stack) if not _OF_TORCH.search(place.filename)), None)
        return caller is not None and (is_library(caller.filename) or _INSTALLED.search(caller.filename) is not None)


def _value_change(change: Change) -> ValueChange:
    first = change.failures[0]
    hint = next((CLOSURE_HINT.sub("", failure.hint).strip() for failure in change.failures if failure.hint), "")
    return ValueChange(
        change.subject, change.was, change.now, change.lasts, tuple(name for name, _ in change.keywords), hint,
        next((failure.cause.text for failure in change.failures if failure.cause is not None), ""),
        first.source.startswith("G["))


def _subject_text(change: Change) -> str:
    return ", ".join(code(name) for name, _ in change.keywords) or change.subject_text()


def _told(advised: Iterable[tuple[str, RecompileAdvice]], besides: str = "") -> list[tuple[str, bool]]:
    """Return advice as Markdown, each with whether it comes first; what holds of several things is said once."""
    subjects: dict[RecompileAdvice, list[str]] = {}
    for subject, advice in advised:
        subjects.setdefault(advice, []).append(subject)
    return [(f"{some(of, MOST)}{besides}: {prose(advice.text)}", advice.comes_first) for advice, of in subjects.items()]


def _is_of_iterator(causes: Iterable[GraphBreak]) -> bool:
    """Return whether torch gave a function up for an iterator that it was called with, as a comprehension is.

    Where its caller is compiled, it is a part of that.
    """
    return any(broken.reason.startswith("Missing tp_iternext") for broken in causes)


def in_order(hints: Iterable[str]) -> list[str]:
    """Return torch's hints with those last that ask for a report: nobody's program is better for one."""
    return sorted(hints, key=lambda hint: "report an issue" in hint)
