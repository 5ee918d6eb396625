"""The versions of one function, with the sizes and numbers that torch gave symbols in each of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...records.model import Compilation, SymbolDecision
from ..changes import in_words
from ..fixed_symbols import fixed_symbols
from ..run_index import RunIndex

#: A size or number in the user's words, with a decision of torch's on its symbol.
Named = tuple[str, SymbolDecision]


class FunctionVersions:
    """The versions of one function.

    Attributes:
        run: the run that they are of.
        compilations: those that gave the versions. What was decided in one that was given up holds for no call.
    """

    def __init__(self, run: RunIndex, compilation: Compilation) -> None:
        self.run = run
        key = compilation.compile_id.frame_key
        self.compilations = [each for each in run.capture.compilations
                             if each.compile_id.frame_key == key and each.outcome != "skipped"]
        self._fixed = {each.compile_id.key: fixed_symbols(each, run.version(each)) for each in self.compilations}

    def fixed(self, compilation: Compilation) -> list[SymbolDecision]:
        """Return the decisions that fixed symbols in a version."""
        return self._fixed[compilation.compile_id.key]

    def fixed_by_name(self, compilation: Compilation) -> list[Named]:
        """Return the sizes and numbers that a version holds for one value, with the decisions that fixed them."""
        return list(self._named(compilation, self.fixed(compilation)))

    def fixed_in_any(self) -> Iterator[Named]:
        """Yield the sizes and numbers that any version holds for one value, with the decisions that fixed them."""
        for each in self.compilations:
            yield from self.fixed_by_name(each)

    def created_by_name(self, compilation: Compilation) -> list[Named]:
        """Return the sizes and numbers that torch gave symbols in a version, with the decisions that made these."""
        return list(self._named(compilation, created(compilation)))

    def _named(self, compilation: Compilation, decisions: Iterable[SymbolDecision]) -> Iterator[Named]:
        names = self.run.stack_names(compilation)
        for decision in decisions:
            for source in decision.source.split(", "):
                if source:
                    yield in_words(source, names), decision


def created(compilation: Compilation) -> list[SymbolDecision]:
    """Return the decisions that made symbols."""
    return [decision for decision in compilation.symbols if decision.kind == "created"]
