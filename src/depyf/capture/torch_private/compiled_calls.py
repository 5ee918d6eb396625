"""Calls of what ``torch.compile`` returned, told of before each runs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from ...records.model import SourceLocation
from . import hooks, private_api
from .shared import Undo

#: The function inside that ``torch.compile`` returns, and its variables.
_WRAPPER = "compile_wrapper"


class CompiledCall(NamedTuple):
    """A call that is about to run.

    Attributes:
        function: what was given to ``torch.compile``: a function, or a method of a module.
        args, kwargs: of the call.
        compile: makes of the function what ``torch.compile`` returned, again.
        place: the program's line that makes the call, where one is above.
    """

    function: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    compile: Callable[[Any], Any]
    place: SourceLocation | None = None


def on_compiled_call(before: Callable[[CompiledCall], None]) -> Undo:
    """Call ``before`` for each call that enters compiled code; not for those made inside of it.

    What it raises reaches the program.

    Raises:
        MissingPrivateApi: this torch cannot be asked.
    """
    def make(original: Any) -> Any:
        def callback_from_stance(callback: Any) -> Any:
            result = original(callback)
            call = _outermost(sys._getframe(1)) if callback not in (None, False) else None
            if call is not None:
                before(call)
            return result

        return callback_from_stance

    return hooks.replaced(private_api.STANCE, make)


def _outermost(frame: Any) -> CompiledCall | None:
    """Return the call whose wrapper asks, if no compiled code runs yet."""
    for _ in range(4):
        if frame is None:
            return None
        if frame.f_code.co_name == _WRAPPER and frame.f_globals.get("__name__") == private_api.STANCE.module:
            break
        frame = frame.f_back
    else:
        return None
    values = frame.f_locals
    if values.get("prior") not in (None, False) or not {"fn", "args", "kwargs", "self"} <= values.keys():
        return None
    return CompiledCall(values["fn"], values["args"], values["kwargs"], values["self"], _place(frame.f_back))


def _place(frame: Any) -> SourceLocation | None:
    """Return the innermost line that is not torch's own."""
    while frame is not None:
        if not f"{frame.f_globals.get('__name__')}.".startswith("torch."):
            return SourceLocation(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name, "")
        frame = frame.f_back
    return None
