"""In what a run took place."""

from __future__ import annotations

import sys


def environment() -> dict[str, str]:
    torch = sys.modules.get("torch")
    return {"python": sys.version.split()[0], "torch": str(getattr(torch, "__version__", "none"))}
