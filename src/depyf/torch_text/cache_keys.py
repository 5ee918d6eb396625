"""Torch's accounts of lookups in a compile cache (``fx_graph_cache_hit``, ``_miss``, ``_bypass``).

    {"key": "fo2k…", "components": ["[ab3x…] gm: <lambda>()…", "[9kd0…] inductor_config[debug]: False", …]}

The key has some 600 components (torch/_inductor/codecache.py, ``FxGraphHashDetails.debug_lines``), nearly all of them
options. They are put together by name.
"""

from __future__ import annotations

import json
import re
from typing import Any

from ..records.model import CacheKeyPart

_COMPONENT = re.compile(r"\[(?P<digest>\w+)\] (?P<name>\w+)(?P<place>\[[^\]]*\])?")
_LENGTH = 12


def parts(payload: str) -> tuple[CacheKeyPart, ...]:
    """Return the parts of the key that was looked up; none where the payload has none."""
    components = _field(payload, "components")
    if not isinstance(components, list):
        return ()
    digests: dict[str, list[str]] = {}
    for component in components:
        match = _COMPONENT.match(component) if isinstance(component, str) else None
        if match is not None:
            digests.setdefault(match["name"], []).append(f"{match['place'] or ''}{match['digest']}")
    import hashlib  # (most runs have no such key)

    return tuple(CacheKeyPart(name, hashlib.sha256("\n".join(sorted(each)).encode()).hexdigest()[:_LENGTH])
                 for name, each in digests.items())


def bypass_reason(payload: str) -> str:
    """Return why the cache was not asked; ``""`` where it was."""
    return str(_field(payload, "cache_bypass_reason") or "")


def _field(payload: str, name: str) -> Any:
    try:
        value = json.loads(payload)
    except (ValueError, RecursionError):
        return None
    return value.get(name) if isinstance(value, dict) else None
