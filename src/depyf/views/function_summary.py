"""A user's function with everything that was compiled of it, and the arguments of ``torch.compile`` in words.

(Those that are not at their default.)
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from ..records.model import Compilation, CompiledFunction, SourceLocation
from ..torch_text.parsed import parsed_expression
from .markdown import code, some


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
    def from_function(cls, function: CompiledFunction) -> FunctionSummary:
        """Summarise a function that has compiled versions."""
        first = function.frames[0]
        return cls(function.name, first.title or function.name, first.location, first.wrappers, function)

    @property
    def done(self) -> list[Compilation]:
        """Return the compilations that gave code."""
        return [c for c in self.compilations if c.outcome == "compiled"]

    @property
    def recompiles(self) -> list[Compilation]:
        """Return the compilations because no version matched."""
        return [each for each in self.compilations if each.guard_failures and each.outcome != "limit"]

    @property
    def file(self) -> str:
        """Return the name of its full code; empty where it has none."""
        return self.function.file if self.function else ""


# --- Arguments of torch.compile ----------------------------------------------------------------------
Setting = TypeVar("Setting", bound=Hashable)


def arguments_as_written(compilation: Compilation | None) -> str:
    """Return the arguments as in a call: ``mode='max-autotune', dynamic=True``."""
    given = compilation.arguments if compilation is not None else None
    return ", ".join(f"{name}={value}" for name, value in (given or {}).items())


def arguments_of(summary: FunctionSummary) -> dict[str, dict[str, str]] | None:
    """Return each set of arguments that a function was compiled with, as written (``""``: defaults), or ``None``."""
    sets = {arguments_as_written(each): each.arguments for each in summary.compilations if each.arguments is not None}
    return sets or None


def arguments_in_words(sets: Collection[str]) -> str:
    """Return sets of arguments by how they are written, as Markdown: "the defaults and `dynamic=True`"."""
    if list(sets) == [""]:
        return "none"
    words = [code(each) if each else "the defaults" for each in sets]
    return " and ".join(words[:3] + [f"{len(words) - 3} more"] * (len(words) > 3))


def functions_by_setting(
    summaries: Iterable[FunctionSummary], settings_of: Callable[[Compilation], Iterable[Setting]],
) -> dict[Setting, list[str]]:
    """Return the functions that were compiled with each setting, as Markdown; an empty setting is left out.

    A function that was compiled with several has the ids of the compilations with each of them.
    """
    functions: dict[Setting, list[str]] = {}
    for summary in summaries:
        ids: dict[Setting, dict[str, None]] = {}
        for compilation in summary.compilations:
            for setting in settings_of(compilation):
                ids.setdefault(setting, {})[code(str(compilation.compile_id))] = None
        for setting, members in ids.items():
            if setting:
                of = f" in {some(list(members), 3)}" if len(ids) > 1 else ""
                functions.setdefault(setting, []).append(code(summary.title) + of)
    return functions


def arguments_section(summaries: Sequence[FunctionSummary]) -> list[str]:
    """Return the lines of the index on arguments, by what they are; none where all are at their default."""
    functions = functions_by_setting(
        summaries, lambda each: [arguments_as_written(each)] if each.arguments is not None else [])
    if not functions:
        return []
    same = " (of Inductor, options that are those of a mode are shown as that mode)" * any(
        "mode" in (each.arguments or {}) for summary in summaries for each in summary.compilations)
    return [f"Arguments of `torch.compile` that were not at their default{same}:", "",
            *(f"* {some(list(dict.fromkeys(of)), 3)}: {code(arguments)}" for arguments, of in functions.items())]


def is_among(option: str, arguments: Mapping[str, str] | None) -> bool:
    """Return whether ``options=`` sets an option of Inductor: ``"max_autotune = True"``."""
    given = parsed_expression((arguments or {}).get("options", ""))
    names = [each.value for each in given.keys if isinstance(each, ast.Constant)] if isinstance(given, ast.Dict) else []
    return option.partition(" = ")[0] in names
