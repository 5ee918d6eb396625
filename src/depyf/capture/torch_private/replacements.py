"""Other code in place of compiled versions, for a while.

Torch looks among its precompiled versions, with guards of their own, before its cache. A version of the cache is added
there, with the same guards and other code, and removed afterwards. The cache stays as it is.
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
        replacement: returns the code to run for a version's code; ``None`` leaves that.

    Returns:
        What undoes all of it, and the functions that were left as they are, with the reason: their versions belong to
        several backends, which precompiled versions do not distinguish, or may do so.
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
    """Return why calls with one backend, or of one region, look at some of these versions only; ``""``: at all."""
    try:
        first, *others = map(cache_entries.backend_of, versions)
    except private_api.MissingPrivateApi:
        return "may have been compiled for several backends, which this torch does not tell"
    regions = {getattr(version, "isolate_recompiles_id", None) for version in versions}
    if len(regions) > 1 or not all(cache_entries.same_backend(first, other) for other in others):
        return "was compiled for several backends"
    return ""
