"""depyf: see what ``torch.compile`` does, in source code a person can read, run and step through.

Public names load when they are first used; importing this package imports neither torch nor the
decompiler.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import explain, optimization
    from .comparing import Comparison, compare
    from .debugging import BadValueFound, debug
    from .logs import install, uninstall
    from .prepare import prepare_debug
    from .source import decompile, decompile_full

__version__ = "1.0.0.dev0"
__all__ = [
    "BadValueFound", "Comparison", "compare", "debug", "decompile", "decompile_full", "explain", "install",
    "optimization", "prepare_debug", "uninstall"]

_HOMES = {
    "BadValueFound": "debugging",
    "Comparison": "comparing",
    "compare": "comparing",
    "debug": "debugging",
    "decompile": "source",
    "decompile_full": "source",
    "install": "logs",
    "prepare_debug": "prepare",
    "uninstall": "logs",
}


def __getattr__(name: str) -> Any:
    if name in ("explain", "optimization"):
        return importlib.import_module(f".{name}", __name__)
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'depyf' has no attribute {name!r}")
    value = getattr(importlib.import_module(f".{home}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
