"""Functions with an ``lru_cache`` that torch traces: it leaves the cache aside (``WrapperUserFunctionVariable``)."""

from __future__ import annotations

from ..model.guards import Type
from ..model.reading import condition_of
from ..records.model import Capture
from .markdown import code, some

#: What the cache wraps, where torch did trace that.
_WRAPPED = ".__wrapped__.__code__"


def ignored_caches(capture: Capture) -> str:
    """Return a sentence on the user's functions of which torch leaves the cache aside; ``""`` where there is none."""
    names: dict[str, None] = {}
    for entry in (entry for function in capture.functions for frame in function.frames for entry in frame.entries):
        for one in (condition_of(guard) for guard in entry.guards if guard.kind == "TYPE_MATCH"):
            if isinstance(one, Type) and one.name == "functools._lru_cache_wrapper" and (
                    one.of.partition(".")[0] != "torch") and any(
                    guard.source.startswith(f"{one.source}{_WRAPPED}") for guard in entry.guards):
                names[code(one.of)] = None
    if not names:
        return ""
    return (f"torch leaves the `lru_cache` of {some(list(names), 3)} aside and traces what it wraps wherever that is "
            "called, so what is computed there is a part of each graph that needs it")
