"""The stack of this thread: frames of torch's functions that are at work, and their variables."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from types import FrameType
from typing import Any

from . import private_api


def frames(frame: FrameType | None) -> Iterator[FrameType]:
    """Yield a frame and those that called it, innermost first."""
    while frame is not None:
        yield frame
        frame = frame.f_back


def frame_of(api: private_api.PrivateApi) -> FrameType | None:
    """Return the innermost frame of a function of torch's; ``None`` where it is not on the stack."""
    try:
        module, function = api.module, api.attribute
    except private_api.MissingPrivateApi:
        return None
    return next((frame for frame in frames(sys._getframe()) if frame.f_code.co_name == function
                 and frame.f_globals.get("__name__") == module), None)


def variables_of(api: private_api.PrivateApi) -> Mapping[str, Any]:
    """Return the arguments and variables of a function of torch's on the stack; nothing where it is not there."""
    frame = frame_of(api)
    return frame.f_locals if frame is not None else {}
