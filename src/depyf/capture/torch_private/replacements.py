"""Other code in place of compiled versions, for a while.

torch asks its precompiled versions before its cache, with guards of their own. A version of the cache is entered there
again, with the same guards and other code, and taken out afterwards. The cache is left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import CodeType
from typing import Any

from . import cache_entries, private_api
from .shared import Undo


def can_replace() -> bool:
    """Return whether this torch has precompiled versions."""
    return all(api.present() for api in (
        private_api.ADD_VERSION, private_api.ADDED_VERSIONS, private_api.REMOVE_VERSIONS, private_api.CACHE_ENTRIES,
        private_api.CACHE_ENTRY))


def replace_versions(
    functions: Iterable[CodeType], replacement: Callable[[CodeType], CodeType | None]
) -> tuple[Undo, dict[CodeType, str]]:
    """Run other code in place of the compiled versions of functions, in the same order.

    Args:
        functions: their original code.
        replacement: what runs for a version's code; ``None`` leaves it.

    Returns:
        What takes all of it back, and the functions that were left as they are, with the reason: their versions belong
        to several backends, which precompiled versions cannot tell apart, or may do so.
    """
    add, remove = private_api.ADD_VERSION.get(), private_api.REMOVE_VERSIONS.get()
    replaced: list[CodeType] = []
    left: dict[CodeType, str] = {}

    def undo() -> None:
        for function in replaced:
            remove(function)

    for function in functions:
        versions = cache_entries.cache_entries(function)
        codes = [replacement(version.code) for version in versions]
        if not any(codes) or private_api.ADDED_VERSIONS.get()(function):
            continue
        if why := _several_backends(versions):
            left[function] = why
            continue
        replaced.append(function)
        try:
            for version, code in zip(versions, codes):
                add(function, version.guard_manager, code or version.code)
        except BaseException:
            undo()
            raise
    return undo, left


def _several_backends(versions: list[Any]) -> str:
    """Return that calls with one backend, or of one region, look at some of these versions only; ``""``: at all."""
    try:
        first, *others = map(cache_entries.backend_of, versions)
    except private_api.MissingPrivateApi:
        return "may have been compiled for several backends, which this torch does not tell"
    regions = {getattr(version, "isolate_recompiles_id", None) for version in versions}
    if len(regions) > 1 or not all(cache_entries.same_backend(first, other) for other in others):
        return "was compiled for several backends"
    return ""
