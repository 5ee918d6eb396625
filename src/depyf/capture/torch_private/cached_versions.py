"""The compiled versions that torch keeps of a code object."""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType
from typing import Any

from . import private_api


def cache_entries(code: CodeType) -> list[Any]:
    """Return the cache entries of a code object, in the order in which their guards are tried."""
    return list(private_api.CACHE_ENTRIES.get()(code))


def was_asked(code: CodeType) -> bool:
    """Return whether torch was asked to compile a code object.

    It skips frames without tensors and says nothing.
    """
    try:
        return code in private_api.SEEN_CODES.get()
    except private_api.MissingPrivateApi:
        return False


def entry_facts(entry: Any) -> tuple[CodeType, tuple[int, int] | None, Callable[[], str]]:
    """Return ``(transformed code, (frame, recompile), what prints the guard tree)`` of a cache entry."""
    own = getattr(entry, "compile_id", None)
    ids = (int(own.frame_id), int(own.frame_compile_id)) if own is not None else None
    return entry.code, ids, lambda: str(getattr(entry, "guard_manager", None))


def backend_of(entry: Any) -> Any:
    """Return the backend that a cache entry is of.

    A torch before 2.11 does not show it: there it is the only one of the process.

    Raises:
        MissingPrivateApi: this torch does not show it, and there are several.
    """
    if private_api.ENTRY_BACKEND.present():
        return entry.backend
    backends = [backend for backend in private_api.BACKENDS.get().values() if callable(backend)]
    if not backends or not all(same_backend(backends[0], other) for other in backends):
        raise private_api.MissingPrivateApi(
            f"this torch does not show which of {len(backends)} backends a compiled version is of; torch 2.11 does, "
            "and in a process with one backend it is known")
    return backends[0]


def same_backend(one: Any, other: Any) -> bool:
    """Return whether torch takes two backends for the same (``backend_match``)."""
    if one is other:
        return True
    try:
        return type(one) is type(other) and bool(one == other)
    except Exception:
        return False


def is_given_up(entry: Any) -> bool:
    """Return whether torch gave a cache entry up, because an object is gone that its guards compare with.

    It is behind all others then, wherever it was.
    """
    return hasattr(getattr(entry, "guard_manager", None), "invalidation_reason")
