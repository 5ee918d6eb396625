"""The facts that advice on recompiles requires (:class:`depyf.advice.recompiles.Facts`).

They come from all versions of a function, once for each function::

    x.shape[1] fixed at m.py:8 in [0/0] and [0/1]      fixed_at "`m.py:8`"
    x.shape[0]: 4 in [0/0], open in [0/1]              is_open
    x: contiguous in [0/0], strides (1, 2) in [0/1]    others "`x`"
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from ..advice.recompiles import Facts, ValueChange, setters_of
from ..advice.source import is_own, last_name
from ..model.guards import Tensor
from ..records.model import Compilation, SourceLocation, SymbolDecision
from ..records.store import UNDER_STANCE
from ..torch_text.guard_failures import are_numbers, number
from ..torch_text.size_names import symbols_in
from ..torch_text.user_expressions import is_global, sources_in_words
from .changes import Change, in_words
from .dump.guards.versions import MOST, Version
from .markdown import code, some
from .run_index import RunIndex
from .size_conditions import fixed_symbols, holds_at


@dataclass
class _Versions:
    """Where the versions of one function fix sizes and numbers, and those that they leave open.

    Attributes:
        fixed: the place of the line that fixes each, ``None`` if unknown.
        opened: those that versions leave open, each with the conditions on its symbol by the number of the version.
    """

    fixed: dict[str, SourceLocation | None] = field(default_factory=dict)
    opened: dict[str, dict[int, list[str]]] = field(default_factory=dict)


class Circumstances:
    """The facts about the recompiles of one run."""

    def __init__(self, run: RunIndex) -> None:
        self.run = run
        self._versions: dict[tuple[int, int], _Versions] = {}

    def facts(self, compilation: Compilation, change: Change) -> Facts:
        """Return the facts about what changed at a recompile."""
        versions, first = self._versions_of(compilation), change.failures[0]
        names = self.run.stack_names(compilation)
        # (A variable of a closure has its name in the subject, and its place in torch's decisions.)
        subject = in_words(first.subject, names) if first.subject != first.text else change.subject
        place = versions.fixed.get(subject)
        besides = [each for each in self.run.differences(compilation) if not each.is_open and each.subject != subject]
        return Facts(
            fixed_at=code(self.run.short_place(place)) if place is not None else "",
            is_open=subject in versions.opened and (place is not None or subject not in versions.fixed),
            # (Open strides torch finds by comparing calls, of which it compares fewer if it compiles less often.)
            spares=not besides and self._is_whole and not any(".stride(" in name for name in versions.opened)
            and _spares(change, [*versions.opened.get(subject, {}).values()]),
            others=any(each.was.kind != "none" for each in besides),
            equal_at_first=self._equal_at_first(compilation, change),
            dynamic=(compilation.arguments or {}).get("dynamic", ""),
            of_parameter=any(failure.owner == "parameter" for failure in change.failures),
            set_at=self._set_at(setters_of(subject)), numbers=self._numbers(compilation, subject))

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
        said = []
        for name, decision in _named(self.run, compilation, fixed_symbols(compilation, None)):
            if ".shape[" in name:
                at = f" at {code(self.run.short_place(decision.location))}" if decision.location is not None else ""
                said.append(f"{code(name)} is marked as dynamic, and what is computed with it{at} fixes it at "
                            f"{decision.value}")
        return (f"{'; '.join(dict.fromkeys(said))}: with `torch._dynamo.maybe_mark_dynamic` in place of `mark_dynamic` "
                "a size that is fixed has a version of its own") if said else ""

    @cached_property
    def _is_whole(self) -> bool:
        """Whether no graph of the run breaks, and torch skipped nothing; with symbols it may trace other code then.

        (A call that raises an exception in the stance ``fail_on_recompile`` may be served by a version of open sizes.)
        """
        return not any(each.breaks or each.outcome in ("skipped", "failed") for each in self.run.capture.compilations
                       ) and not any(note.startswith(f"{UNDER_STANCE}`fail_on_recompile`")
                                     for note in self.run.capture.notes)

    def _versions_of(self, compilation: Compilation) -> _Versions:
        key = compilation.compile_id.frame_key
        if key not in self._versions:  # (the same for all versions of a function, of which there may be hundreds)
            members = [each for each in self.run.capture.compilations if each.compile_id.frame_key == key]
            self._versions[key] = self._read(members)
        return self._versions[key]

    def _read(self, members: Iterable[Compilation]) -> _Versions:
        result = _Versions()
        for each in members:
            if each.outcome in ("skipped", "limit"):
                continue
            fixed = dict(_named(self.run, each, fixed_symbols(each, self.run.version(each))))
            asked = [decision for decision in each.symbols if decision.kind == "guarded"]
            result.fixed.update({name: decision.location for name, decision in fixed.items()})
            created = (decision for decision in each.symbols if decision.kind == "created")
            for name, decision in _named(self.run, each, created):
                if name not in fixed:
                    result.opened.setdefault(name, {})[each.compile_id.recompile] = (
                        [one.symbol for one in asked if decision.symbol in symbols_in(one.symbol)])
        return result

    def _equal_at_first(self, compilation: Compilation, change: Change) -> bool:
        """Return whether another size of the arguments was the same in a version that failed for a size.

        Where it failed for a number: whether two sizes were, and one is open later.
        """
        if ".shape[" not in change.subject:
            sizes = [[size for _, size in _sizes(self.run.version_of(failure.entry))] for failure in change.failures]
            return any(".shape[" in name for name in self._versions_of(compilation).opened) and any(
                each.count(size) > 1 for each in sizes for size in each)
        return any(size == failure.expected and name != change.subject for failure in change.failures
                   for name, size in _sizes(self.run.version_of(failure.entry)))

    def _numbers(self, compilation: Compilation, subject: str) -> tuple[int, ...]:
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
    of_program = not change.subject.startswith("torch.")  # (a global of torch's is no argument of anything)
    return ValueChange(change.subject, change.was, change.now, change.lasts, tuple(name for name, _ in change.keywords),
                       first.owner, is_global(first.source) and of_program)


def _sizes(version: Version | None) -> list[tuple[str, str]]:
    """Return the names and the values of the sizes that a version is for."""
    return [(f"{one.subject}.shape[{index}]", str(size)) for one in (version.conditions if version else ())
            if isinstance(one, Tensor) for index, size in enumerate(one.size)]


def _spares(change: Change, versions: Sequence[Iterable[str]]) -> bool:
    """Return whether the first version that leaves a number open serves its first value, too, as far as is known."""
    first = change.was[0] if change.was else ""
    if not are_numbers((first, change.now)):
        return not any(versions)
    is_whole, will_be = (isinstance(number(each), int) for each in (first, change.now))
    outcomes = {holds_at(condition, first) for condition in next(iter(versions), ())}
    return is_whole == will_be and outcomes <= {True}


def _named(
    run: RunIndex, compilation: Compilation, decisions: Iterable[SymbolDecision],
) -> Iterator[tuple[str, SymbolDecision]]:
    """Yield the sizes and numbers of decisions, in the user's words, with these."""
    names = run.stack_names(compilation)
    for decision in decisions:
        for name in sources_in_words(decision.source, names):
            yield name, decision
