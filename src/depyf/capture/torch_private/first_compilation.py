"""Something done right before torch compiles a frame, once, by those who must not be the ones to import torch."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

from . import private_api
from .shared import leave_traceback

#: The module that compiles frames, and its function that does so.
MODULE, _, FUNCTION = private_api.COMPILED_FRAME.places[0].partition(":")


def before_next(module: ModuleType, action: Callable[[], None]) -> Callable[[], None]:
    """Have the action called once, in whatever thread, right before the next frame is compiled.

    Torch is as it was before when that happens.

    Args:
        module: :data:`MODULE`, imported.
        action: must not raise, unless the program is to see it.

    Returns:
        What takes it back.
    """
    original = getattr(module, FUNCTION)

    def undo() -> None:
        if getattr(module, FUNCTION) is first:
            setattr(module, FUNCTION, original)

    @functools.wraps(original)
    def first(*args: Any, **kwargs: Any) -> Any:
        undo()
        action()
        if isinstance(kwargs.get("skip"), int):
            kwargs["skip"] += 1  # how many frames above are torch's: this is one more
        try:
            return original(*args, **kwargs)
        except BaseException as error:
            with contextlib.suppress(Exception):
                leave_traceback(error)
            raise

    setattr(module, FUNCTION, first)
    return undo
