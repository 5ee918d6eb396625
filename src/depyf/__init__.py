"""depyf: see what ``torch.compile`` does, in source code a person can read, run and step through.

Public names load when they are first used; importing this package imports neither torch nor the
decompiler.

(PYTEST_DONT_REWRITE: pytest, which loads depyf's plugin, would warn where this was imported before.)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .old_names import enter_modules, find

if TYPE_CHECKING:
    from . import explain, optimization
    from .backends import stage
    from .comparing import Comparison, compare
    from .debugging import debug
    from .fitting import Fit, dropped_guards, fits
    from .logs import install, uninstall
    from .notebook.magic import Magic
    from .prepare import prepare_debug
    from .source import decompile, decompile_full
    from .watch.stop import BadValueFound

__version__ = "1.0.0.dev0"
__all__ = [
    "BadValueFound", "Comparison", "Fit", "compare", "debug", "decompile", "decompile_full",
    "dropped_guards", "explain", "fits", "install", "optimization", "prepare_debug", "stage", "uninstall"]

_magic: Magic | None = None  #: The magic of the shell that loaded us.

_HOMES = {
    "DecompilationError": "bytecode.errors",
    "Decompiler": "old_names",
    "BadValueFound": "watch.stop",
    "Comparison": "comparing",
    "Fit": "fitting",
    "compare": "comparing",
    "debug": "debugging",
    "decompile": "source",
    "decompile_full": "source",
    "dropped_guards": "fitting",
    "fits": "fitting",
    "install": "logs",
    "prepare_debug": "prepare",
    "stage": "backends",
    "uninstall": "logs",
}


def __getattr__(name: str) -> Any:
    if name in ("explain", "optimization"):
        return importlib.import_module(f".{name}", __name__)
    home = _HOMES.get(name)
    if home is None:
        return find(__name__, name)
    value = getattr(importlib.import_module(f".{home}", __name__), name)
    globals()[name] = value
    return value


enter_modules()


def load_ipython_extension(shell: Any) -> None:
    """``%load_ext depyf`` in IPython and Jupyter: the magic ``%%depyf`` (see :mod:`depyf.notebook.magic`)."""
    from .notebook.magic import Magic

    global _magic
    if _magic is None or _magic.shell is not shell:
        _magic = Magic(shell)
        _magic.register()


def unload_ipython_extension(shell: Any) -> None:
    """``%unload_ext depyf``."""
    global _magic
    if _magic is not None and _magic.shell is shell:
        _magic.unregister()
        _magic = None


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
