"""The arguments of ``torch.compile`` that are not at their default, in the words of the dump."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..records.model import Compilation, CompiledGraph
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


def of_function(summary: FunctionSummary) -> dict[str, dict[str, str]]:
    """Return each set of arguments that a function was compiled with, by how it is written; none at their default."""
    return {as_written(each): each.arguments for each in summary.compilations if each.arguments}


def is_known(summary: FunctionSummary) -> bool:
    """Return whether it is recorded what ``torch.compile`` was told."""
    return any(each.arguments is not None for each in summary.compilations)


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
        told.startswith("mode=") for told in functions)
    return [f"Arguments of `torch.compile` that were not at their default{same}:", "",
            *(f"* {some(of, 3)}: {code(told)}" for told, of in functions.items())]


def is_among(option: str, arguments: Mapping[str, str] | None) -> bool:
    """Return whether ``options=`` has an option of Inductor: ``"max_autotune = True"``."""
    name, _, value = option.partition(" = ")
    return f"{name!r}: {value}" in (arguments or {}).get("options", "")
