"""Run an action once, right before torch compiles a frame or a compiled function is called, without importing torch."""

from __future__ import annotations

import contextlib
import functools
import logging
from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple

from ..import_hook import when_imported
from . import hooks, private_api
from .hooks import leave_traceback


class Moment(NamedTuple):
    """A function of torch's that is called at a moment, and the module that it is in."""

    module: str
    function: str


#: A frame is about to be compiled.
FRAME = Moment(*private_api.COMPILED_FRAME.first_place)
#: What ``torch.compile`` returned is about to run.
CALL = Moment(*private_api.STANCE.first_place)


def before_next(moment: Moment, module: ModuleType, action: Callable[[], None]) -> Callable[[], None]:
    """Have the action called once, in whatever thread, right before the next such moment; return what cancels it.

    Torch is as it was before when that happens. The module is that of the moment, imported; what the action raises
    reaches the program.
    """
    name = moment.function
    original = getattr(module, name)

    def undo() -> None:
        if getattr(module, name) is first:
            setattr(module, name, original)

    @functools.wraps(original)
    def first(*args: Any, **kwargs: Any) -> Any:
        undo()
        ours = getattr(module, name) is original  # (else other code wrapped our function, and would call it again)
        action()
        if isinstance(kwargs.get("skip"), int):
            kwargs["skip"] += 1  # how many frames above are torch's: this is one more
        try:
            # (The action may have put its own there.)
            return (getattr(module, name) if ours else original)(*args, **kwargs)
        except BaseException as error:
            with contextlib.suppress(Exception):
                leave_traceback(error)
            raise

    setattr(module, name, first)
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


def before_first(action: Callable[[], None], frames: bool = True) -> Callable[[], None]:
    """Have the action called once, before torch compiles a frame, a graph without one, or continues an earlier one.

    (A backward graph may be compiled long after its forward graph. Torch's trace reports that, and direct calls of
    its compilers.) The action must not raise. Returns what cancels it.

    Args:
        frames: before a frame is compiled, too.
    """
    undo: list[Callable[[], None]] = []
    ended = False

    def end() -> None:
        nonlocal ended
        ended = True
        while undo:
            with contextlib.suppress(Exception):  # an error in depyf is not the program's
                undo.pop()()

    def begin() -> None:
        if not ended:
            end()
            action()

    def wait(module: ModuleType) -> None:
        try:
            if frames:
                undo.append(before_next(FRAME, module, begin))
        except AttributeError:  # another torch: at once
            begin()
            return
        with contextlib.suppress(Exception):  # (a torch that shows no graphs)
            undo.append(hooks.replaced(private_api.SHOWN_GRAPH, lazy_string))

    def wait_for_export(_: ModuleType) -> None:
        with contextlib.suppress(Exception):  # (a torch that exports otherwise)
            undo.append(hooks.replaced(private_api.EXPORT, export))

    def export(original: Any, *args: Any, **kwargs: Any) -> Any:
        begin()
        return private_api.EXPORT.get()(*args, **kwargs)

    def lazy_string(original: Any, *args: Any, **kwargs: Any) -> Any:
        begin()
        # (The action, and others that wait, have their own there.)
        return private_api.SHOWN_GRAPH.get()(*args, **kwargs)

    logger = logging.getLogger(private_api.TRACE_LOG.key)
    waiter = _TraceWaiter(begin)
    undo.append(lambda: logger.removeHandler(waiter))
    logger.addHandler(waiter)
    try:
        undo.append(when_imported(FRAME.module, wait))
        undo.append(when_imported(private_api.EXPORT.first_place[0], wait_for_export))
    except Exception:  # ours
        end()
        raise
    return end
