"""The arguments of ``torch.compile`` that are not at their default, in the words of the dump."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

from ..records.model import Compilation, CompiledGraph
from ..torch_text.parsed import parsed_expression
from .function_summary import FunctionSummary
from .markdown import code, some

Setting = TypeVar("Setting", bound=Hashable)


def as_written(compilation: Compilation | None) -> str:
    """Return the arguments as in a call: ``mode='max-autotune', dynamic=True``."""
    given = compilation.arguments if compilation is not None else None
    return ", ".join(f"{name}={value}" for name, value in (given or {}).items())


def with_backend(graph: CompiledGraph, compilation: Compilation | None) -> str:
    """Return the backend of a graph and the other arguments of ``torch.compile``: ``inductor (dynamic=True)``."""
    arguments = as_written(compilation)
    return graph.backend + f" ({arguments})" * bool(arguments)


def of_function(summary: FunctionSummary) -> dict[str, dict[str, str]] | None:
    """Return each set of arguments that a function was compiled with, as written (``""``: defaults), or ``None``."""
    sets = {as_written(each): each.arguments for each in summary.compilations if each.arguments is not None}
    return sets or None


def in_words(sets: Collection[str]) -> str:
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


def section(summaries: Sequence[FunctionSummary]) -> list[str]:
    """Return the lines of the index on arguments, by what they are; none where all are at their default."""
    functions = functions_by_setting(
        summaries, lambda each: [as_written(each)] if each.arguments is not None else [])
    if not functions:
        return []
    same = " (of Inductor, options that are those of a mode stand as that mode)" * any(
        "mode" in (each.arguments or {}) for summary in summaries for each in summary.compilations)
    return [f"Arguments of `torch.compile` that were not at their default{same}:", "",
            *(f"* {some(of, 3)}: {code(arguments)}" for arguments, of in functions.items())]


def is_among(option: str, arguments: Mapping[str, str] | None) -> bool:
    """Return whether ``options=`` sets an option of Inductor: ``"max_autotune = True"``."""
    given = parsed_expression((arguments or {}).get("options", ""))
    names = [each.value for each in given.keys if isinstance(each, ast.Constant)] if isinstance(given, ast.Dict) else []
    return option.partition(" = ")[0] in names
