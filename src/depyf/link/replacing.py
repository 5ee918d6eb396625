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
from typing import NamedTuple


class _Pair(NamedTuple):
    """Code of torch's cache, and what is to run for it.

    Attributes:
        function: whose version it is.
        version: Dynamo's code.
        linked: the same, with the lines of the dump.
    """

    function: weakref.ReferenceType[CodeType]
    version: weakref.ReferenceType[CodeType]
    linked: CodeType


_lock = threading.Lock()
#: By the id of Dynamo's code, as long as that lives.
_pairs: dict[int, _Pair] = {}
_users = 0
_undo: Callable[[], None] | None = None


def run_when_debugging(function: CodeType, version: CodeType, linked: CodeType) -> bool:
    """Have ``linked`` run in place of ``version`` inside ``debug()``; ``False`` if this torch cannot do so."""
    from ..capture.torch_private import replacements

    if not replacements.can_replace():
        return False
    _pairs[id(version)] = _Pair(weakref.ref(function), weakref.ref(version), linked)
    weakref.finalize(version, _pairs.pop, id(version), None).atexit = False
    return True


@contextlib.contextmanager
def linked_code_runs() -> Iterator[list[CodeType]]:
    """Inside, linked code runs. Blocks may overlap, and end in any order.

    Yields the functions whose own code runs on: those compiled for several backends. Where torch does not take linked
    code, there is one warning, and Dynamo's own runs.
    """
    global _users, _undo
    left: list[CodeType] = []
    with _lock:
        if _users == 0 and _pairs:
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


def _replace() -> tuple[Callable[[], None], list[CodeType]]:
    from ..capture.torch_private import replacements

    if not replacements.can_replace():
        return (lambda: None), []
    functions: dict[int, CodeType] = {}
    for pair in list(_pairs.values()):
        function = pair.function()
        if function is not None:
            functions[id(function)] = function

    def linked(version: CodeType) -> CodeType | None:
        pair = _pairs.get(id(version))
        return pair.linked if pair is not None and pair.version() is version else None

    return replacements.replace_versions(functions.values(), linked)
