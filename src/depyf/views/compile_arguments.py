"""The arguments of ``torch.compile`` that are not at their default, in the words of the dump."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping, Sequence

from ..records.model import Compilation, CompiledGraph
from ..torch_text.parsed import parsed_expression
from .function_summary import FunctionSummary
from .markdown import code, some


def as_written(compilation: Compilation | None) -> str:
    """Return the arguments as they stand in a call: ``mode='max-autotune', dynamic=True``."""
    given = compilation.arguments if compilation is not None else None
    return ", ".join(f"{name}={value}" for name, value in (given or {}).items())


def with_backend(graph: CompiledGraph, compilation: Compilation | None) -> str:
    """Return the backend of a graph and what else ``torch.compile`` was told: ``inductor (dynamic=True)``."""
    told = as_written(compilation)
    return graph.backend + f" ({told})" * bool(told)


def of_function(summary: FunctionSummary) -> dict[str, dict[str, str]] | None:
    """Return each set of arguments that a function was compiled with, by how it is written; ``None`` where not known.

    The one with all at their default is empty, and so is how it is written.
    """
    sets = {as_written(each): each.arguments for each in summary.compilations if each.arguments is not None}
    return sets or None


def in_words(sets: Collection[str]) -> str:
    """Return sets of arguments by how they are written, as Markdown: "the defaults and `dynamic=True`"."""
    if list(sets) == [""]:
        return "none"
    words = [code(each) if each else "the defaults" for each in sets]
    return " and ".join(words[:3] + [f"{len(words) - 3} more"] * (len(words) > 3))


def section(summaries: Sequence[FunctionSummary]) -> list[str]:
    """Return the lines of the index on arguments, by what they are; none where all are at their default.

    A function that was compiled with several sets stands with the compilations that had each of them.
    """
    functions: dict[str, list[str]] = {}
    for summary in summaries:
        sets: dict[str, list[str]] = {}
        for each in summary.compilations:
            if each.arguments is not None:
                sets.setdefault(as_written(each), []).append(code(str(each.compile_id)))
        for told, ids in sets.items():
            if told:
                of = f" in {some(ids, 3)}" if len(sets) > 1 else ""
                functions.setdefault(told, []).append(code(summary.title) + of)
    if not functions:
        return []
    same = " (of Inductor, options that are those of a mode stand as that mode)" * any(
        has_mode(each.arguments) for summary in summaries for each in summary.compilations)
    return [f"Arguments of `torch.compile` that were not at their default{same}:", "",
            *(f"* {some(of, 3)}: {code(told)}" for told, of in functions.items())]


def is_among(option: str, arguments: Mapping[str, str] | None) -> bool:
    """Return whether ``options=`` sets an option of Inductor: ``"max_autotune = True"``."""
    given = parsed_expression((arguments or {}).get("options", ""))
    names = [each.value for each in given.keys if isinstance(each, ast.Constant)] if isinstance(given, ast.Dict) else []
    return option.partition(" = ")[0] in names


def has_mode(arguments: Mapping[str, str] | None) -> bool:
    """Return whether a mode sets options of Inductor, which it does not name."""
    return "mode" in (arguments or {})
