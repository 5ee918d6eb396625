"""The key of a compile cache, as torch tells it in ``fx_graph_cache_hit`` and ``_miss``.

    {"key": "fo2k…", "components": ["[ab3x…] gm: <lambda>()…", "[9kd0…] inductor_config[debug]: False", …]}

Torch tells some 600 components (torch/_inductor/codecache.py, ``FxGraphHashDetails.debug_lines``), nearly all of them
options. They are put together by name.
"""

from __future__ import annotations

import json
import re

from ..records.model import CacheKeyPart

_COMPONENT = re.compile(r"\[(?P<digest>\w+)\] (?P<name>\w+)(?P<place>\[[^\]]*\])?")
_LENGTH = 12


def parts(payload: str) -> tuple[CacheKeyPart, ...]:
    """Return the parts of the key that was asked for; none where the payload tells none."""
    try:
        value = json.loads(payload) if payload else None
    except (ValueError, RecursionError):
        return ()
    components = value.get("components") if isinstance(value, dict) else None
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
