"""Run an action once, right before torch compiles a frame or a compiled function is called, without importing torch."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from typing import Any

from ..import_hook import when_imported
from . import hooks, private_api

#: A frame is about to be compiled.
FRAME = private_api.COMPILED_FRAME
#: What ``torch.compile`` returned is about to run.
CALL = private_api.STANCE


def before_next(api: private_api.PrivateApi, action: Callable[[], None]) -> Callable[[], None]:
    """Have the action called once, in whatever thread, right before a function of torch's next runs.

    Torch is as it was before when that happens, and what the action replaces there counts for this call. What it
    raises reaches the program. Returns what cancels it.

    Raises:
        MissingPrivateApi: this torch has no such function.
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


class _TraceWaiter(logging.Handler):
    """Runs an action at each event of torch's structured trace."""

    def __init__(self, action: Callable[[], None]) -> None:
        super().__init__(logging.DEBUG)
        self.action = action

    def handle(self, record: logging.LogRecord) -> bool:
        """Call the action, without the handler's lock: it may wait for others."""
        self.action()
        return True


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

    def wait(_: object) -> None:
        try:
            undo.append(before_next(moment, begin))
        except AttributeError:  # another torch: at once
            begin()

    def wait_for_graphs(_: object) -> None:
        with contextlib.suppress(Exception):  # (a torch that shows no graphs)
            undo.append(before_next(private_api.SHOWN_GRAPH, begin))

    def wait_for_export(_: object) -> None:
        with contextlib.suppress(Exception):  # (a torch that exports otherwise)
            undo.append(before_next(private_api.EXPORT, begin))

    logger = logging.getLogger(private_api.TRACE_LOG.key)
    waiter = _TraceWaiter(begin)
    undo.append(lambda: logger.removeHandler(waiter))
    logger.addHandler(waiter)
    try:
        undo.append(when_imported(moment.first_place[0], wait))
        undo.append(when_imported(FRAME.first_place[0], wait_for_graphs))
        undo.append(when_imported(private_api.EXPORT.first_place[0], wait_for_export))
    except Exception:  # ours
        end()
        raise
    return end
