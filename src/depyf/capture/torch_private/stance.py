"""Run compiled code, compile nothing.

Before compiled code runs, a function of torch's decides what to do with a frame that has no fitting cache entry
(``private_api.STANCE``); here its answer is "run the frame as it is". Without it torch's public stance
``eager_on_recompile`` does the same, but does not report which function ran uncompiled. Without that one, too, torch
compiles what does not fit.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any

from . import private_api
from .hooks import SharedPatch, Undo, shared_patch


@contextlib.contextmanager
def no_compilation(on_miss: Callable[[CodeType], None]) -> Iterator[bool]:
    """Have frames that fit no cache entry run their original code; yield whether ``on_miss`` is called for each."""
    answer = _eager_answer()
    if answer is None:
        with _public_stance():
            yield False
        return

    release = shared_patch("the answer to a miss").acquire(on_miss, functools.partial(_answer_misses, answer))
    try:
        yield True
    finally:
        release()


def _answer_misses(answer: Callable[[], Any], users: SharedPatch[Callable[[CodeType], None]]) -> Undo:
    is_skipped = private_api.IS_SKIPPED.get()
    owner, name = private_api.STANCE.owner(), private_api.STANCE.attribute
    previous = private_api.STANCE.get()

    def callback_without_compiling(callback: Any) -> Any:
        if previous(callback) in (None, False):  # disabled, or already "run only"
            return previous(callback)

        def run_original(frame: Any, *args: Any, **kwargs: Any) -> Any:
            if not is_skipped(frame.f_code):
                for on_miss in users.wanted:
                    on_miss(frame.f_code)
            return answer()

        # Cache entries belong to a backend, which torch finds by following this attribute.
        setattr(run_original, private_api.BACKEND_CHAIN.key, callback)
        return run_original

    setattr(owner, name, callback_without_compiling)

    def undo() -> None:
        if getattr(owner, name, None) is callback_without_compiling:
            setattr(owner, name, previous)

    return undo


@contextlib.contextmanager
def _public_stance() -> Iterator[None]:
    """Set torch's stance once for all sessions: torch's own goes wrong where the first to begin is the first to end."""
    set_stance = private_api.PUBLIC_STANCE.get_or(None)
    if set_stance is None:
        yield
        return

    def make(_: SharedPatch[None]) -> Undo:
        stance = set_stance("eager_on_recompile")
        stance.__enter__()
        return lambda: stance.__exit__(None, None, None)

    release = shared_patch("the public stance").acquire(None, make)
    try:
        yield
    finally:
        release()


def _eager_answer() -> Callable[[], Any] | None:
    """Return a function that makes torch's answer to run a frame, and what it calls, as it is; ``None`` without one."""
    try:
        private_api.STANCE.get()
        private_api.IS_SKIPPED.get()
        make, action = private_api.STANCE_ANSWER.get(), private_api.FRAME_ACTION.get()
        strategy = private_api.EXECUTION_STRATEGY.get()(action.DEFAULT, action.RUN_ONLY)
        make(frame_exec_strategy=strategy, apply_to_code=False)
    except (AttributeError, TypeError):
        return None
    return lambda: make(frame_exec_strategy=strategy, apply_to_code=False)
