"""The facts that advice on recompiles requires (:class:`depyf.advice.recompiles.Facts`).

They come from all versions of a function, once for each function::

    x.shape[1] fixed at m.py:8 in [0/0] and [0/1]      fixed_at "`m.py:8`"
    x.shape[0]: 4 in [0/0], open in [0/1]              is_open
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ..advice.recompiles import Facts, ValueChange, setters_of
from ..advice.source import is_own, last_name
from ..model.arithmetic import Interval
from ..records.model import Compilation, SourceLocation
from ..torch_text.size_names import symbols_in
from ..torch_text.user_expressions import is_global
from .changes import Change, in_words
from .dump.guards.versions import MOST
from .markdown import code, some
from .run_index import RunIndex
from .size_conditions import condition_in_words, fixed_symbols, holds_at


class Circumstances:
    """The facts about the recompiles of one run."""

    def __init__(self, run: RunIndex) -> None:
        self.run = run

    def facts(self, compilation: Compilation, change: Change) -> Facts:
        """Return the facts about what changed at a recompile."""
        first, names = change.failures[0], self.run.stack_names(compilation)
        # (A variable of a closure has its name in the subject, and its place in torch's decisions.)
        subject = in_words(first.subject, names) if first.subject != first.text else change.subject
        versions = [(each, *self.run.sizes(each)) for each in self.run.capture.compilations
                    if each.compile_id.frame_key == compilation.compile_id.frame_key]
        fixed = [places[subject] for _, places, _ in versions if subject in places]
        place = fixed[-1] if fixed else None
        # (What was compiled with other arguments of torch.compile says nothing of this one's sizes.)
        opened = [(each, there[subject]) for each, _, there in versions
                  if subject in there and each.arguments == compilation.arguments]
        return Facts(
            fixed_at=code(self.run.short_place(place)) if place is not None else "",
            is_open=bool(opened) and (place is not None or not fixed),
            dynamic=(compilation.arguments or {}).get("dynamic", ""),
            of_parameter=any(failure.owner == "parameter" for failure in change.failures),
            set_at=self._set_at(setters_of(subject)), numbers=self._numbers(compilation, subject),
            ranges=self._ranges(opened))

    def constraint(self, compilation: Compilation) -> str:
        """Return a sentence on sizes marked dynamic that have one value, or some only, as Markdown; ``""`` for none."""
        said = []
        for name, decision in self.run.with_names(compilation, fixed_symbols(compilation, None)):
            if ".shape[" in name:
                at = f" at {code(self.run.short_place(decision.location))}" if decision.location is not None else ""
                said.append(f"{code(name)} is marked as dynamic, and what is computed with it{at} fixes it at "
                            f"{decision.value}")
        return (f"{'; '.join(dict.fromkeys(said))}: with `torch._dynamo.maybe_mark_dynamic` in place of `mark_dynamic` "
                "a size that is fixed has a version of its own") if said else self._narrowed(compilation)

    def _narrowed(self, compilation: Compilation) -> str:
        """Return a sentence on a condition that excludes sizes from those of a mark with ``min`` and ``max``."""
        for name, created in self.run.with_names(compilation, (
                each for each in compilation.symbols if each.kind == "created")):
            marked = Interval.read(created.range) or Interval()
            sizes = (marked.low, marked.low + 1, marked.high) if marked.low and marked.high else ()
            for each in compilation.symbols:
                if each.kind == "guarded" and created.symbol in symbols_in(each.symbol) and any(
                        holds_at(each.symbol, str(size)) is False for size in sizes):
                    at = f" at {code(self.run.short_place(each.location))}" if each.location is not None else ""
                    condition = condition_in_words(each, compilation, self.run.values_on_stack(compilation))
                    return (f"{code(name)} is marked as dynamic {marked.in_sentence()}, and {code(condition)}{at} is "
                            "not true of all of these: without `min` and `max` in `mark_dynamic` a version may be for "
                            "some sizes only")
        return ""

    def _numbers(self, compilation: Compilation, subject: str) -> tuple[int, ...]:
        facts = [version.facts.get(subject) for version in self.run.versions_beside(compilation)]
        return tuple(int(fact.text) for fact in facts if fact is not None and fact.text.isdigit())

    def _ranges(self, opened: Sequence[tuple[Compilation, str]]) -> str:
        """Return the ranges that versions leave open, as text; ``""`` for one, or where one has no greatest value."""
        ranges = [self.run.range_of(compilation, source) for compilation, source in opened]
        texts = list(dict.fromkeys(each.in_words() for each in ranges))
        return some(texts, MOST) if len(texts) > 1 and all(each.high is not None for each in ranges) else ""

    def _set_at(self, setters: tuple[str, ...]) -> str:
        """Return the places of the program that call one of some functions, as Markdown."""
        places = [code(self.run.short_place(SourceLocation(path, node.lineno)))
                  for path in ([file.path for file in self.run.capture.sources] if setters else ()) if is_own(path)
                  for node in ast.walk(self.run.source.tree(path) or ast.Module([], []))
                  if isinstance(node, ast.Call) and last_name(node.func) in setters]
        return some(list(dict.fromkeys(places)), MOST) if places else ""


def value_change(change: Change) -> ValueChange:
    """Return a change at a recompile as the rules on it know it."""
    first = change.failures[0]
    of_program = not change.subject.startswith("torch.")  # (a global of torch's is no argument of anything)
    return ValueChange(change.subject, change.was, change.now, change.lasts, tuple(name for name, _ in change.keywords),
                       first.owner, is_global(first.source) and of_program)

