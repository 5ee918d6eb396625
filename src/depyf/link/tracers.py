"""Functions that watch the program: debuggers, coverage tools, trace functions of scripts.

The interpreter calls them between the lines of any function, so they also run inside compiled code, where torch takes
them for part of the program.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from types import CodeType, FrameType
from typing import Any

#: Modules of debuggers and coverage tools. (``sys.monitoring`` does not tell whom it calls.)
_TOOLS = ("bdb", "pdb", "pydevd", "debugpy", "IPython", "ipdb", "coverage", "viztracer")
_LIBRARY = os.path.dirname(os.__file__) + os.sep


def of_a_tool(code: CodeType, asking: str) -> bool:
    """Return whether a frame of ``code`` that begins now belongs to what watches the program.

    It does if it is a trace or profile function that is set (in this thread or on a frame), was called by one, or
    stands in a file of a known tool, or was called from there by way of the standard library at most. Functions of
    the standard library count as well: tools that are compiled to C call them and leave no frame.

    Args:
        code: of the frame.
        asking: how the names of the modules begin that are on the stack because they ask this.
    """
    places = tuple(_places())
    if code.co_filename.startswith(places) or _in_library(code.co_filename):
        return True
    running = {code}
    watching = {*_codes(sys.gettrace()), *_codes(sys.getprofile())}
    frame: FrameType | None = sys._getframe(1)
    near = True
    while frame is not None:
        running.add(frame.f_code)
        watching.update(_codes(frame.f_trace))
        if near:
            if frame.f_code.co_filename.startswith(places):
                return True
            near = _on_the_way(frame, asking)
        frame = frame.f_back
    return not watching.isdisjoint(running)


def _on_the_way(frame: FrameType, asking: str) -> bool:
    """Return whether a frame is none of the program's: the standard library's, or ours and torch's that ask this."""
    name = str(frame.f_globals.get("__name__", ""))
    return _in_library(frame.f_code.co_filename) or name.startswith(("depyf.", asking))


def _in_library(path: str) -> bool:
    return path.startswith(_LIBRARY) and "-packages" + os.sep not in path


def _places() -> Iterator[str]:
    """Yield the files of tools that are loaded; of packages, the folders."""
    for name in _TOOLS:
        module = sys.modules.get(name)
        file = getattr(module, "__file__", None)
        if isinstance(file, str):
            yield os.path.dirname(file) + os.sep if hasattr(module, "__path__") else file


def _codes(function: Any) -> Iterator[CodeType]:
    """Yield the code of a function, a method, or an object that is called."""
    calls = type(function).__call__ if callable(function) else None
    for each in (function, calls):
        code = getattr(getattr(each, "__func__", each), "__code__", None)
        if isinstance(code, CodeType):
            yield code
