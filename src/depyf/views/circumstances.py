"""The facts that advice on recompiles requires (:class:`depyf.advice.recompiles.Facts`).

They come from all versions of a function, once for each function::

    x.shape[1] fixed at m.py:8 in [0/0] and [0/1]      fixed_at "`m.py:8`"
    x.shape[0]: 4 in [0/0], open in [0/1]              is_open
    x: contiguous in [0/0], strides (1, 2) in [0/1]    others "`x`"
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ..advice.recompiles import PRESENCE, Facts, ValueChange, event_of, setters_of
from ..advice.source import is_own, last_name, parsed
from ..model.guards import Tensor
from ..records.model import Compilation, GuardFailure, SourceLocation, SymbolDecision
from ..torch_text.guard_failures import are_numbers, is_of_equal_sizes, number
from ..torch_text.parsed import parsed_expression
from ..torch_text.size_names import symbols_in
from ..torch_text.user_expressions import is_global
from .changes import Change, in_words
from .dump.guards.versions import Fact
from .markdown import code, some
from .run_index import RunIndex
from .size_conditions import fixed_symbols, holds_at
from .version_differences import MOST, version_differences


@dataclass
class _Versions:
    """Where the versions of one function fix sizes and numbers, and those that they leave open.

    Attributes:
        fixed: the place of the line that fixes each, ``None`` if unknown.
        fixed_at: the values that each is fixed at.
        together: for each of these, others that torch took for the same one.
        opened: those that versions leave open, each with the conditions on its symbol by the number of the version.
        broken: the place of a break that the version which leaves each open has, and the versions before it do not.
        limit: the function reached the recompile limit.
        moved: what is in another place of its owner than in an earlier version.
        values: what each version wanted, and what calls had, by subject.
    """

    fixed: dict[str, SourceLocation | None] = field(default_factory=dict)
    fixed_at: dict[str, set[str]] = field(default_factory=dict)
    together: dict[str, list[str]] = field(default_factory=dict)
    opened: dict[str, dict[int, list[str]]] = field(default_factory=dict)
    broken: dict[str, SourceLocation] = field(default_factory=dict)
    limit: bool = False
    moved: set[str] = field(default_factory=set)
    values: dict[str, set[str]] = field(default_factory=dict)


class Circumstances:
    """The facts about the recompiles of one run."""

    def __init__(self, run: RunIndex) -> None:
        self.run = run
        self._versions: dict[tuple[int, int], _Versions] = {}
        self._stored: dict[tuple[int, int], list[tuple[Mapping[str, Fact], dict[str, str]]]] = {}

    def facts(self, compilation: Compilation, change: Change) -> Facts:
        """Return the facts about what changed at a recompile."""
        versions, first = self._versions_of(compilation), change.failures[0]
        names = self.run.stack_names(compilation)
        # (A variable of a closure has its name in the subject, and its place in torch's decisions.)
        subject = in_words(first.subject, names) if first.subject != first.text else change.subject
        place = versions.fixed.get(subject)
        return Facts(
            fixed_at=code(self.run.short_place(place)) if place is not None else "",
            is_fixed_once=len(versions.fixed_at.get(subject, ())) < 2,
            fixed_with=some(list(map(code, together)), MOST) if (together := versions.together.get(subject)) else "",
            is_open=subject in versions.opened and (place is not None or subject not in versions.fixed),
            spares=_spares(change, [*versions.opened.get(subject, {}).values()]),
            others=self._others(compilation, subject),
            differs_in_more=event_of(value_change(change)) == "layout" and self._differs_in_more(
                compilation, first, change.subject),
            broken_at=code(self.run.short_place(broken)) if (broken := versions.broken.get(subject)) else "",
            equal_at_first=self._equal_at_first(change), dynamic=(compilation.arguments or {}).get("dynamic", ""),
            of_parameter=any(failure.owner == "parameter" for failure in change.failures), limit=versions.limit,
            is_duck=any(map(is_of_equal_sizes, change.failures)),
            static_at=self._set_at(("mark_static",)) if ".shape[" in subject else "",
            set_at=self._set_at(setters_of(subject)), lengths=self._lengths(compilation, subject),
            values=len(versions.values.get(change.subject, ())),
            is_set=number(change.now) is not None and self._is_set(compilation, change.subject),
            is_unread=self._is_unread(compilation, change),
            is_computed_with=any(each != subject and subject in map(ast.unparse, ast.walk(parsed))
                                 for each in versions.values if (parsed := parsed_expression(each)) is not None),
            is_moved=in_words(first.source, names) in versions.moved, is_own=self._is_own(compilation, first))

    def most_telling(self, compilation: Compilation) -> Sequence[Change]:
        """Return the change that says most of why torch compiled again; none where it did not.

        A version that leaves a size or number open refuses a call for less than one with a fixed value of it.
        """
        def weight(change: Change) -> int:
            if change.subject not in opened:
                return 1
            return 2 if are_numbers(change.was) else 0

        changes, versions = self.run.changes(compilation), self._versions_of(compilation)
        opened = {name for name, by_number in versions.opened.items()
                  if min(by_number) < compilation.compile_id.recompile}
        return sorted(changes, key=weight)[:1]

    def constraint(self, compilation: Compilation) -> str:
        """Return a sentence on sizes that are marked dynamic and have one value, as Markdown; ``""`` for none."""
        fixed = [(name, decision) for name, decision in _named(
            self.run, compilation, fixed_symbols(compilation, None)) if ".shape[" in name]
        said = []
        for name, decision in fixed:
            at = f" at {code(self.run.short_place(decision.location))}" if decision.location is not None else ""
            said.append(f"{code(name)} is marked as dynamic, and what is computed with it{at} fixes it at "
                        f"{decision.value}")
        if not said:
            return ""
        return (f"{'; '.join(dict.fromkeys(said))}: change that line so that it takes other sizes, or write "
                "`torch._dynamo.maybe_mark_dynamic` in place of `mark_dynamic`, and a size that is fixed has a version "
                "of its own")

    def _is_set(self, compilation: Compilation, subject: str) -> bool:
        """Return whether the code of a version sets an attribute, a key or a global variable of that name."""
        key, parsed = compilation.compile_id.frame_key, parsed_expression(subject)
        name = f"global {subject}" if isinstance(parsed, ast.Name) else _last_part(parsed)
        if name and key not in self._stored:
            self._stored[key] = [(version.facts, dict(_stored(version.entry.transformed.source.text)))
                                 for version in self.run.versions_beside(compilation)]
        # (A context that sets it back sets the value that the version expects.)
        return any(name in stored and (subject not in facts or facts[subject].text != stored[name])
                   for facts, stored in self._stored.get(key, ()))

    def _is_unread(self, compilation: Compilation, change: Change) -> bool:
        """Return whether a version of the function does not look at what failed in another one."""
        old, subject = self.run.version_of(change.failures[0].entry), change.subject
        return old is not None and subject in old.facts and any(
            subject not in version.facts for version in self.run.versions_beside(compilation))

    def _is_own(self, compilation: Compilation, failure: GuardFailure) -> bool:
        """Return whether what failed is a variable of a function that a resume function goes on with."""
        root, frame = failure.source.partition(".")[0].partition("[")[0], self.run.frame_of(compilation)
        first = next((each.frames[0] for each in self.run.capture.functions if frame in each.frames), frame)
        return frame is not None and first is not frame and root in frame.arguments and first is not None and (
            root not in (*first.arguments, *first.freevars))

    def _versions_of(self, compilation: Compilation) -> _Versions:
        key = compilation.compile_id.frame_key
        if key not in self._versions:  # (the same for all versions of a function, of which there may be hundreds)
            members = [each for each in self.run.capture.compilations if each.compile_id.frame_key == key]
            self._versions[key] = self._read(members)
        return self._versions[key]

    def _read(self, members: Iterable[Compilation]) -> _Versions:
        result = _Versions()
        before: dict[SourceLocation, None] | None = None
        for each in members:
            names = self.run.stack_names(each)
            for change in self.run.changes(each):
                result.values.setdefault(change.subject, set()).update((*change.was, change.now))
                result.moved.update(in_words(failure.source, names) for failure in change.failures if (
                    failure.expected, failure.seen) == PRESENCE and change.now != failure.seen)
            result.limit = result.limit or each.outcome == "limit"
            if each.outcome in ("skipped", "limit"):
                continue
            fixed = dict(_named(self.run, each, fixed_symbols(each, self.run.version(each))))
            asked = [decision for decision in each.symbols if decision.kind == "guarded"]
            result.fixed.update({name: decision.location for name, decision in fixed.items()})
            for name, decision in fixed.items():
                result.fixed_at.setdefault(name, set()).add(decision.value)
                result.together[name] = [other for other, beside in fixed.items() if beside is decision
                                         and other.replace("._base", "") != name.replace("._base", "")]
            breaks = dict.fromkeys(one.location for one in each.breaks if one.location is not None)
            new = [location for location in breaks if before is not None and location not in before]
            before = breaks | (before or {})
            created = (decision for decision in each.symbols if decision.kind == "created")
            for name, decision in _named(self.run, each, created):
                if name not in fixed:
                    result.opened.setdefault(name, {})[each.compile_id.recompile] = (
                        [one.symbol for one in asked if decision.symbol in symbols_in(one.symbol)])
                    if new and len(result.opened[name]) == 1:  # (with `dynamic=True` it is the first one)
                        result.broken[name] = new[0]
        return result

    def _others(self, compilation: Compilation, subject: str) -> str:
        """Return what else a version differs in from the earlier one and does not leave open, as Markdown.

        Nothing where a later version that leaves the subject open differs in no such thing from an earlier one.
        """
        subjects = [each.subject for each in self.run.differences(compilation) if not each.is_open]
        versions, names = self.run.versions_beside(compilation), self.run.stack_names(compilation)
        if subjects and any(
                found and all(each.is_open for each in found)
                and any(each.subject == subject and are_numbers((each.was.value,)) for each in found)
                for number, new in enumerate(versions) for old in versions[:number]
                if (found := version_differences(old, new, names, ()))):
            return ""
        return some([code(each) for each in dict.fromkeys(subjects)], MOST) if subjects else ""

    def _differs_in_more(self, compilation: Compilation, failure: GuardFailure, subject: str) -> bool:
        """Return whether a version and the one that failed for a tensor's layout differ in more than that layout."""
        old, new = self.run.version_of(failure.entry), self.run.version(compilation)
        tensor = subject.partition(".stride(")[0]
        return old is not None and new is not None and any(
            each.subject.partition(".stride(")[0] != tensor
            for each in version_differences(old, new, self.run.stack_names(compilation), ()))

    def _equal_at_first(self, change: Change) -> bool:
        """Return whether another size of the arguments was the same in a version that failed for a size."""
        if ".shape[" not in change.subject:
            return False
        for failure in change.failures:
            version = self.run.version_of(failure.entry)
            sizes = [(f"{one.subject}.shape[{index}]", str(size)) for one in (version.conditions if version else ())
                     if isinstance(one, Tensor) for index, size in enumerate(one.size)]
            if any(size == failure.expected and name != change.subject for name, size in sizes):
                return True
        return False

    def _lengths(self, compilation: Compilation, subject: str) -> tuple[int, ...]:
        facts = [version.facts.get(subject) for version in self.run.versions_beside(compilation)]
        return tuple(int(fact.text) for fact in facts if fact is not None and fact.text.isdigit())

    def _set_at(self, setters: tuple[str, ...]) -> str:
        """Return the places of the program that call one of some functions, as Markdown."""
        places = [code(self.run.short_place(SourceLocation(path, node.lineno)))
                  for path in (self.run.source.files() if setters else ()) if is_own(path)
                  for node in ast.walk(self.run.source.tree(path) or ast.Module([], []))
                  if isinstance(node, ast.Call) and last_name(node.func) in setters]
        return some(list(dict.fromkeys(places)), MOST) if places else ""


def value_change(change: Change) -> ValueChange:
    """Return a change at a recompile as the rules on it know it."""
    first = change.failures[0]
    cause = next((failure.cause.text for failure in change.failures if failure.cause is not None), "")
    return ValueChange(
        change.subject, change.was, change.now, change.lasts, tuple(name for name, _ in change.keywords), cause,
        first.owner, is_global(first.source))


def _spares(change: Change, versions: Sequence[Iterable[str]]) -> bool | None:
    """Return whether the first version that leaves a number open serves its first value, too; ``None`` if not known."""
    first = change.was[0] if change.was else ""
    if not are_numbers((first, change.now)):
        return None if any(versions) else True
    is_whole, will_be = (isinstance(number(each), int) for each in (first, change.now))
    if is_whole != will_be:
        return False
    outcomes = [{holds_at(condition, first) for condition in tested} for tested in versions]
    if outcomes and outcomes[0] <= {True}:
        return True
    return None if any(False not in each for each in outcomes) else False  # (a later one may differ in more)


def _stored(text: str) -> Iterator[tuple[str, str]]:
    """Yield the names of the attributes, keys and globals that code sets, with the values: ``Layer.calls = 2``."""
    nodes = list(ast.walk(parsed(text) or ast.Pass()))
    names = {name for node in nodes if isinstance(node, ast.Global) for name in node.names}
    for node in (node for node in nodes if isinstance(node, ast.Assign)):
        for target in node.targets:
            of_global = f"global {target.id}" if isinstance(target, ast.Name) and target.id in names else ""
            if name := of_global or _last_part(target):
                yield name, ast.unparse(node.value)


def _last_part(node: ast.expr | None) -> str:
    match node:
        case ast.Attribute(_, name) | ast.Subscript(_, ast.Constant(str(name))):
            return name
    return ""


def _named(
    run: RunIndex, compilation: Compilation, decisions: Iterable[SymbolDecision],
) -> Iterator[tuple[str, SymbolDecision]]:
    """Yield the sizes and numbers of decisions, in the user's words, with these."""
    names = run.stack_names(compilation)
    for decision in decisions:
        for source in decision.source.split(", "):
            if source:
                yield in_words(source, names), decision
