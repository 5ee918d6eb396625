"""A user's function with everything that was compiled of it."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..records.model import Compilation, CompiledFunction, SourceLocation
from ..torch_text.global_names import plain_name
from ..torch_text.libraries import is_of_dynamo
from .grouping import recompiles


@dataclass
class FunctionSummary:
    """A function with everything that was compiled of it, and its wrappers, outermost first."""

    name: str
    title: str
    location: SourceLocation | None
    wrappers: tuple[SourceLocation, ...] = ()
    function: CompiledFunction | None = None
    compilations: list[Compilation] = field(default_factory=list)

    @classmethod
    def of_function(cls, function: CompiledFunction) -> FunctionSummary:
        """Summarise a function that has compiled versions."""
        first = function.frames[0]
        return cls(function.name, first.title or function.name, first.location, first.wrappers, function)

    @classmethod
    def of_compilation(cls, compilation: Compilation) -> FunctionSummary:
        """Summarise a function that gave no code."""
        name, meant = plain_name(compilation.function), compilation.user_function
        if meant is None:
            return cls(name, name, compilation.location)
        return cls(name, meant.name, meant.location, meant.wrappers)

    @property
    def done(self) -> list[Compilation]:
        """Return the compilations that gave code."""
        return [c for c in self.compilations if c.outcome == "compiled"]

    @property
    def recompiles(self) -> list[Compilation]:
        """Return the compilations because no version matched."""
        return recompiles(self.compilations)

    @property
    def file(self) -> str:
        """Return the name of its full code; empty where it has none."""
        return self.function.file if self.function else ""


def tell_apart(summaries: list[FunctionSummary]) -> None:
    """Name the wrapper in a title where one was compiled without the function that it calls: both have its name."""
    titles: dict[str, list[FunctionSummary]] = {}
    for summary in summaries:
        titles.setdefault(summary.title, []).append(summary)
    for same in titles.values():
        for summary in same if len({summary.wrappers for summary in same}) > 1 else ():
            if summary.wrappers:
                own = [each for each in summary.wrappers if not is_of_dynamo(each.filename)]
                summary.title += f" (its wrapper {(own or summary.wrappers)[0].function})"
