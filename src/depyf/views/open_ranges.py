"""What the versions of a function leave open: the range of each size and number, and what is demanded beyond it.

::

    2 <= x.shape[0], 2*x.shape[0]*x.shape[1] <= 4096     all sizes from 2 on with `2 * x.shape[0] * x.shape[1] <= 4096`
    x.shape[2] // 4 == 6, in each version                one value of `x.shape[2] // 4`
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ..advice.recompile_changes import NUMBER
from ..records.model import Compilation, SymbolDecision
from ..torch_text.comparisons import as_python
from ..torch_text.size_names import SYMBOL
from ..torch_text.user_expressions import user_expression
from .changes import in_words
from .dump.guards.limits import bounds, equations
from .dump.guards.sizes import in_shape_words, is_in_range, range_in_sentence
from .fixed_symbols import holds
from .inductor_ranges import condition_in_words, is_made_by_inductor
from .markdown import code, some
from .run_index import RunIndex

#: The decisions that fix symbols, by the key of the compilation.
FixedSymbols = Mapping[tuple[int, int, int], list[SymbolDecision]]


def created(compilation: Compilation) -> list[SymbolDecision]:
    """Return the decisions that made symbols."""
    return [decision for decision in compilation.symbols if decision.kind == "created"]


def named(
    run: RunIndex, compilation: Compilation, decisions: Iterable[SymbolDecision]
) -> Iterator[tuple[str, SymbolDecision]]:
    """Yield the sizes and numbers that symbols stand for, in the user's words, with the decisions."""
    names = run.stack_names(compilation)
    for decision in decisions:
        for source in decision.source.split(", "):
            if source:
                yield in_words(source, names), decision


class OpenRanges:
    """What the versions of one run's functions leave open."""

    def __init__(self, run: RunIndex) -> None:
        self.run = run

    def ranges(self, frame: list[Compilation], fixed: FixedSymbols) -> tuple[dict[str, str], set[str]]:
        """Return what a version of the function leaves open, with the range that its guards leave of a size.

        The range is that of a version which could serve the first call; with the ranges come those that have none such.
        (A backend may fix a number that Dynamo left open: a float, where no tensor can stand for it.)
        """
        first = self._first_values(frame)
        result: dict[str, str] = {}
        others: set[str] = set()
        for each in frame:
            names = self.run.stack_names(each)
            closed = {decision.symbol for decision in fixed[each.compile_id.key]}
            for source in (source for decision in created(each) if decision.symbol not in closed
                           for source in decision.source.split(", ") if source):
                subject, known = in_words(source, names), self.run.range_of(each, source)
                result.setdefault(subject, "")
                if known and is_in_range(first.get(subject, ""), known):
                    result[subject] = f"all sizes {range_in_sentence(known)}{self._bounded(each, source)}"
                elif known:
                    others.add(subject)
                elif not result[subject] and (asked := self._asked_by_backend(each, source)):
                    result[subject] = f"all sizes with {some(asked, 2)}"
        return result, {subject for subject in others if not result[subject]}

    def _bounded(self, compilation: Compilation, source: str) -> str:
        """Return the bounds on what a size and others come to, `` with `2*x.shape[0]*x.shape[1] <= 4096` ``."""
        version, names = self.run.version(compilation), self.run.stack_names(compilation)
        of = in_shape_words(user_expression(source))
        told = [code(as_python(in_words(text, names))) for text in bounds(version).get(of, ())] if version else []
        return f" with {some(told, 2)}" if told else ""

    def _asked_by_backend(self, compilation: Compilation, source: str) -> list[str]:
        """Return the conditions on a number that Inductor asks for, as Markdown."""
        symbols = {each.symbol for each in created(compilation) if source in each.source.split(", ")}
        version, names = self.run.version(compilation), self.run.stack_names(compilation)
        return [code(condition_in_words(each, compilation, names)) for each in compilation.symbols
                if is_made_by_inductor(each) and symbols & set(SYMBOL.findall(each.symbol))
                and holds(each, compilation, version)]

    def equated(self, frame: list[Compilation]) -> dict[str, tuple[str, str]]:
        """Return the open sizes of which each version holds an expression for one number: that, and who asks for it.

        (Where a version does without, a test tells one number from all others.)
        """
        result: dict[str, tuple[str, str]] = {}
        free: set[str] = set()
        for each in frame:
            version, names = self.run.version(each), self.run.stack_names(each)
            if version is None:
                continue
            found = equations(version)
            free.update(in_words(size, names) for size in version.sizes.names if size not in found)
            for size, equation in found.items():
                if equation.cause is not None:
                    held = as_python(in_words(equation.text, names)).rpartition(" == ")[0]
                    result.setdefault(in_words(size, names), (held, code(self.run.short_place(equation.cause))))
        return {size: told for size, told in result.items() if size not in free}

    def _first_values(self, frame: list[Compilation]) -> dict[str, str]:
        """Return the values of the first call that changed, or were open from the first version on."""
        first: dict[str, str] = {}
        for each in frame:
            expected = {change.subject: next(filter(NUMBER.fullmatch, reversed(change.was)), "")
                        for change in self.run.changes(each)}
            seen = {subject: decision.value for subject, decision in named(self.run, each, created(each))}
            for subject, value in {**seen, **expected}.items():
                first[subject] = first.get(subject) or value or seen.get(subject, "")
        return first
