"""Groups of what repeats in a run: graph breaks by reason and place, recompiles by guard, losses by function."""

from __future__ import annotations

from collections.abc import Iterable

from ..records.model import Compilation, GraphBreak, GuardFailure, SourceLocation
from ..torch_text.global_names import plain_name
from ..torch_text.run_ids import without_values
from .causes import cause
from .markdown import one_line


def breaks_by_reason(compilations: Iterable[Compilation]) -> list[list[tuple[GraphBreak, Compilation]]]:
    """Group graph breaks by their reason."""
    result: dict[tuple[str, str], list[tuple[GraphBreak, Compilation]]] = {}
    for compilation in compilations:
        for broken in compilation.breaks:
            result.setdefault((broken.registry_id, one_line(broken.reason)), []).append((broken, compilation))
    return list(result.values())


def breaks_by_place(
    group: Iterable[tuple[GraphBreak, Compilation]]
) -> list[list[tuple[GraphBreak, Compilation]]]:
    """Group the graph breaks of one reason by place and cause, by function, and by what was given up."""
    result: dict[object, list[tuple[GraphBreak, Compilation]]] = {}
    for broken, compilation in group:
        where, meant = broken.location, compilation.user_function
        # (One wrapper's name is that of many functions.)
        function = (meant.name, meant.wrappers[:1]) if meant is not None else plain_name(compilation.function)
        # (At one place torch may meet several calls that it does not trace.)
        key = where and (where.filename, where.line), cause(broken), function, broken.skips_function
        result.setdefault(key, []).append((broken, compilation))
    return list(result.values())


def path_to(broken: GraphBreak, compilation: Compilation) -> tuple[SourceLocation, ...]:
    """Return the stack from the user's function to the break; longer than one if functions were inlined."""
    meant = compilation.user_function
    path = path_from_frame(broken, compilation)
    if meant is not None and meant.location is not None and meant.wrappers:
        for at, place in enumerate(path):
            if (place.function, place.filename) == (meant.location.function, meant.location.filename):
                return path[at:]
    return path


def path_from_frame(broken: GraphBreak, compilation: Compilation) -> tuple[SourceLocation, ...]:
    """Return the stack from what torch compiled, which may be a wrapper."""
    stack = broken.stack
    if 0 < broken.depth <= len(stack):
        return stack[-broken.depth :]
    own, location = plain_name(compilation.function), compilation.location
    begins = [at for at, place in enumerate(stack) if plain_name(place.function) == own
              and (location is None or place.filename == location.filename)]
    return stack[begins[-1] if begins else -1 :]


def kind_of_failure(failure: GuardFailure) -> str:
    """Return the text of the guard that failed, values left out."""
    text = one_line(failure.text)
    for value in (failure.expected, failure.seen):
        if value and not value.isnumeric():
            text = text.replace(one_line(value), "_")
    return without_values(text, failure.source)


def recompiles(compilations: Iterable[Compilation]) -> list[Compilation]:
    """Return the compilations because no version matched; at the limit nothing is compiled any more."""
    return [c for c in compilations if c.guard_failures and c.outcome != "limit"]


def failures_by_kind(members: Iterable[Compilation]) -> list[list[GuardFailure]]:
    """Group the failures of guards: those that differ in values only are one kind."""
    kinds: dict[str, list[GuardFailure]] = {}
    for compilation in members:
        for failure in compilation.guard_failures:
            kinds.setdefault(kind_of_failure(failure), []).append(failure)
    return list(kinds.values())


def not_compiled(compilations: Iterable[Compilation]) -> list[list[Compilation]]:
    """Group compilations that gave no code by function and reason."""
    groups: dict[object, list[Compilation]] = {}
    for compilation in compilations:
        if compilation.outcome in ("compiled", "open"):
            continue
        place = compilation.location
        reason = compilation.failure.reason.partition("\n")[0] if compilation.failure else ""
        groups.setdefault((compilation.outcome, compilation.function, place and (place.filename, place.line),
                           without_values(reason)), []).append(compilation)
    return list(groups.values())
