"""Compilations without a Dynamo frame: the call of one of torch's compilers that this thread is in.

Where line 12 of ``app.py`` calls ``compile_fx(gm, inputs)`` and no ``torch.compile`` is above that, :func:`current` is
``CompilerCall("compile_fx", "app.py", 12, ...)`` until it returns.
"""

from __future__ import annotations

import sys
from collections.abc import MutableMapping
from typing import Any, NamedTuple

from . import private_api

#: Modules between torch and its caller that belong to neither.
_BETWEEN = ("contextlib", "functools", "depyf")


class CompilerCall(NamedTuple):
    """A call of a compiler, or of what shows a graph while no compiler is at work.

    Attributes:
        function: what was called: ``"compile_fx"``; without a compiler the caller's own function.
        filename, line: who called it.
        by_compiler: whether that function is a compiler's.
        marks: takes marks that live as long as the call; ``None`` without a compiler.
        aot: the number that AOTAutograd gave to what it compiles; a backward graph that is compiled later has the same.
    """

    function: str
    filename: str
    line: int
    by_compiler: bool = False
    marks: MutableMapping[str, Any] | None = None
    aot: int | None = None


def current() -> CompilerCall:
    """Return the outermost call of a compiler of torch's on the stack of this thread."""
    frame: Any = sys._getframe(1)
    innermost, compiler = None, None
    while frame is not None:
        module = _module(frame)
        if innermost is None and not _is_of_torch(module) and not _is_between(module):
            innermost = frame
        if module.startswith(private_api.COMPILING_MODULES) and not module.startswith(private_api.RUNNING_MODULES):
            compiler = frame
        frame = frame.f_back
    if compiler is None:
        return CompilerCall(_name(innermost) if innermost is not None else "program", *_place(innermost))
    called = caller = compiler
    while caller is not None and (_is_of_torch(_module(caller)) or _is_between(_module(caller))):
        if _is_of_torch(_module(caller)) and not _name(caller).rpartition(".")[2].startswith("_"):
            called = caller
        caller = caller.f_back
    return CompilerCall(_name(called), *_place(caller), True, compiler.f_locals, _aot_number())


def _module(frame: Any) -> str:
    return str(frame.f_globals.get("__name__"))


def _is_of_torch(module: str) -> bool:
    return module == "torch" or module.startswith(("torch.", "functorch."))


def _is_between(module: str) -> bool:
    return module.partition(".")[0] in _BETWEEN


def _name(frame: Any) -> str:
    """Return the name of the public function that a frame is of: ``aot_function`` for what that returned."""
    name = getattr(frame.f_code, "co_qualname", frame.f_code.co_name)
    return str(name).partition(".<locals>")[0].removesuffix(".__call__").replace("<module>", "module")


def _place(frame: Any) -> tuple[str, int]:
    return (frame.f_code.co_filename, frame.f_lineno or 0) if frame is not None else ("", 0)


def _aot_number() -> int | None:
    """Return ``3`` while torch compiles what it calls ``"3_backward"``."""
    try:
        names = private_api.AOT_CONTEXT.get()()[0]
        return int(str(names[0]).partition("_")[0]) if names else None
    except (private_api.MissingPrivateApi, TypeError, ValueError, LookupError):
        return None
