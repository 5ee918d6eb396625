"""Linked code runs in place of Dynamo's while ``debug()`` is on.

Outside, Dynamo's own code runs: it has the lines of the user's file, so the warnings and tracebacks of a program name
those, and the program is what it is without us.
"""

from __future__ import annotations

import contextlib
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator
from types import CodeType

#: Makes the linked code of a version: ``make(function, version)``; ``None`` where Dynamo's own code has to run.
Make = Callable[[CodeType, CodeType], "CodeType | None"]


class _Version:
    """Code of torch's cache, and what is to run for it.

    Args:
        function: whose version it is.
        version: Dynamo's code.
        make: the same with the lines of the dump, when that is needed for the first time.
    """

    def __init__(self, function: CodeType, version: CodeType, make: Make) -> None:
        self.function = weakref.ref(function)
        self.version = weakref.ref(version)
        self._make: Make | None = make
        self._linked: CodeType | None = None

    def linked(self) -> CodeType | None:
        function, version, make = self.function(), self.version(), self._make
        if make is not None and function is not None and version is not None:
            self._make = None
            self._linked = make(function, version)
        return self._linked


_lock = threading.Lock()
#: By the id of Dynamo's code, as long as that lives.
_versions: dict[int, _Version] = {}
_users = 0
_undo: Callable[[], None] | None = None


def run_when_debugging(
    function: CodeType, version: CodeType, make: Make, gone: Callable[[], object] = int,
) -> bool:
    """Have what ``make`` makes run in place of ``version`` inside ``debug()``; ``False`` if this torch cannot do so.

    Args:
        function: what torch compiled.
        version: Dynamo's code.
        make: makes the same with the lines of the dump.
        gone: called when the version is no more.
    """
    from ..capture.torch_private import replacements

    if not replacements.can_replace():
        return False
    _versions[id(version)] = _Version(function, version, make)
    weakref.finalize(version, _forget, id(version), gone).atexit = False
    return True


def _forget(version: int, gone: Callable[[], object]) -> None:
    _versions.pop(version, None)
    gone()


@contextlib.contextmanager
def linked_code_runs() -> Iterator[dict[CodeType, str]]:
    """Inside, linked code runs. Blocks may overlap, and end in any order.

    Yields the functions whose own code runs on, with the reason: those compiled for several backends. Where torch does
    not take linked code, there is one warning, and Dynamo's own runs.
    """
    global _users, _undo
    left: dict[CodeType, str] = {}
    with _lock:
        if _users == 0 and _versions:
            try:
                _undo, left = _replace()
            except Exception as error:  # noqa: BLE001  (an error of ours must not reach the program)
                warnings.warn(f"depyf: breakpoints in files of transformed code are not hit: this torch does not take "
                              f"the code for them ({type(error).__name__}: {error})", RuntimeWarning, stacklevel=2)
        _users += 1
    try:
        yield left
    finally:
        with _lock:
            _users -= 1
            if _users == 0 and _undo is not None:
                undo, _undo = _undo, None
                undo()


def _replace() -> tuple[Callable[[], None], dict[CodeType, str]]:
    from ..capture.torch_private import replacements

    if not replacements.can_replace():
        return (lambda: None), {}
    functions: dict[int, CodeType] = {}
    for each in list(_versions.values()):
        function = each.function()
        if function is not None:
            functions[id(function)] = function

    def linked(version: CodeType) -> CodeType | None:
        known = _versions.get(id(version))
        return known.linked() if known is not None and known.version() is version else None

    return replacements.replace_versions(functions.values(), linked)
