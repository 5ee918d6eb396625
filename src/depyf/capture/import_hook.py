"""Run an action right after a module is imported for the first time."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


def when_imported(name: str, action: Callable[[ModuleType], None]) -> Callable[[], None]:
    """Call the action with the module: now, or when its import is done.

    The module is imported by its own loader, the same object: only its ``exec_module`` is replaced, on this one object
    and until it has run. Where a loader does not allow that, the action is never called.

    Args:
        action: must not raise: the import would fail.

    Returns:
        A function that stops the waiting.
    """
    module = sys.modules.get(name)
    if module is not None and not getattr(getattr(module, "__spec__", None), "_initializing", False):
        action(module)
        return lambda: None
    finder = _Finder(name, action)
    sys.meta_path.insert(0, finder)
    return finder.leave


class _Finder:
    """The first in ``sys.meta_path``; finds nothing itself."""

    def __init__(self, name: str, action: Callable[[ModuleType], None]) -> None:
        self._name = name
        self._action = action
        self._looking = threading.local()
        self._left = False

    def leave(self) -> None:
        """Stop waiting."""
        self._left = True
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name != self._name or getattr(self._looking, "now", False):
            return None
        self._looking.now = True
        try:
            spec = next(filter(None, (
                finder.find_spec(name, path, target) for finder in list(sys.meta_path)
                if finder is not self and hasattr(finder, "find_spec"))), None)
        finally:
            self._looking.now = False
        loader: Any = spec.loader if spec is not None else None
        original: Any = getattr(loader, "exec_module", None)

        def exec_module(module: ModuleType) -> None:
            loader.__dict__.pop("exec_module", None)
            original(module)
            if not self._left:
                self.leave()
                self._action(module)

        if original is not None:
            with contextlib.suppress(AttributeError, TypeError):  # (no attributes of its own, or frozen ones)
                loader.exec_module = exec_module
        return spec
