"""Run an action once, right before torch compiles a frame or a compiled function is called, without importing torch."""

from __future__ import annotations

import contextlib
import functools
import logging
from collections.abc import Callable
from typing import Any

from ..import_hook import when_imported
from . import hooks, private_api, trace_events

#: A frame is about to be compiled.
FRAME = private_api.COMPILED_FRAME
#: What ``torch.compile`` returned is about to run.
CALL = private_api.STANCE


def before_next(api: private_api.PrivateApi, action: Callable[[], None]) -> Callable[[], None]:
    """Have the action called once, in whatever thread, right before a function of torch's next runs.

    Torch is as it was before when that happens, and what the action replaces there counts for this call. What it
    raises reaches the program. Returns what cancels it; raises ``MissingPrivateApi`` if this torch has no such one.
    """
    def first(original: Any, *args: Any, **kwargs: Any) -> Any:
        # (Other code that wrapped our function would call it again.)
        ours = getattr(getattr(api.get(), "__code__", None), "co_filename", "") == hooks.__file__
        undo()
        action()
        if isinstance(kwargs.get("skip"), int):
            kwargs["skip"] += 2  # how many frames above are torch's: these are two more
        return (api.get() if ours else original)(*args, **kwargs)

    undo = hooks.replaced(api, first)
    return undo


def before_first(action: Callable[[], None], moment: private_api.PrivateApi = FRAME) -> Callable[[], None]:
    """Have the action called once, before torch compiles a frame, a graph without one, or continues an earlier one.

    (A backward graph may be compiled long after its forward graph. Torch's trace reports that, and direct calls of
    its compilers.) The action must not raise. Returns what cancels it.

    Args:
        moment: a function of torch's that is called then, :data:`FRAME` or :data:`CALL`.
    """
    undo: list[Callable[[], None]] = []
    waiting = [action]

    def end() -> None:
        waiting.clear()
        while undo:
            with contextlib.suppress(Exception):  # an error in depyf is not the program's
                undo.pop()()

    def begin() -> None:
        try:
            wanted = waiting.pop()  # (by one thread)
        except IndexError:
            return
        end()
        wanted()

    def wait(api: private_api.PrivateApi, _: object) -> None:
        try:
            undo.append(before_next(api, begin))
        except Exception:  # another torch: at once, unless it only shows no graphs or exports otherwise
            if api is moment:
                begin()

    logger = logging.getLogger(trace_events.TRACE_LOGGER)
    waiter = trace_events.TraceHandler(lambda *event: begin(), lambda *name: True)
    undo.append(lambda: logger.removeHandler(waiter))
    logger.addHandler(waiter)
    try:
        for api, imported in ((moment, moment), (private_api.SHOWN_GRAPH, FRAME), (private_api.EXPORT,) * 2):
            undo.append(when_imported(imported.first_place[0], functools.partial(wait, api)))
    except Exception:  # ours
        end()
        raise
    return end
