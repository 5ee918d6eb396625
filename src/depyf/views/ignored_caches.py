"""Functions with an ``lru_cache`` that torch traces: it leaves the cache aside (``WrapperUserFunctionVariable``)."""

from __future__ import annotations

import re

from ..records.model import Capture
from ..torch_text.user_expressions import user_expression
from .markdown import code, some

_CACHED = re.compile(r"check_type\((?P<function>.+), 'functools\._lru_cache_wrapper'\)")
#: A condition on what the cache wraps: torch did trace that.
_WRAPPED = ".__wrapped__.__code__"


def ignored_caches(capture: Capture) -> str:
    """Return a sentence on the user's functions of which torch leaves the cache aside; ``""`` where there is none."""
    names: dict[str, None] = {}
    for entry in (entry for function in capture.functions for frame in function.frames for entry in frame.entries):
        found = [match["function"] for guard in entry.guards
                 if (match := _CACHED.fullmatch(guard.expression)) is not None]
        for function in found:
            name = user_expression(function)
            if name.partition(".")[0] != "torch" and any(
                    f"{function}{_WRAPPED}" in guard.expression for guard in entry.guards):
                names[code(name)] = None
    if not names:
        return ""
    return (f"torch leaves the `lru_cache` of {some(list(names), 3)} aside and traces what it wraps wherever that is "
            "called, so what is computed there is a part of each graph that needs it")
