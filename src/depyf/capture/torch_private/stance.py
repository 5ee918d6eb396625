"""Run what is compiled, compile nothing.

Touches ``torch._dynamo.eval_frame._callback_from_stance`` (torch 2.6 and later), through which every way
into compiled code asks what to do with a frame that has no fitting cache entry, and the answer's type
``torch._dynamo.types.ConvertFrameReturn`` (2.7). Without them the public stance ``eager_on_recompile`` does
the same, but nobody learns which function ran uncompiled.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any


@contextlib.contextmanager
def no_compilation(on_miss: Callable[[CodeType], None]) -> Iterator[bool]:
    """Inside, frames that fit no cache entry run their original code; ``on_miss`` is told each time.

    Yields whether ``on_miss`` can be told at all.
    """
    answer = _eager_answer()
    if answer is None:
        import torch

        stance = torch.compiler.set_stance("eager_on_recompile")
        with stance:
            yield False
        return

    from torch._dynamo import trace_rules

    eval_frame: Any = importlib.import_module("torch._dynamo.eval_frame")
    previous = eval_frame._callback_from_stance

    def callback_without_compiling(callback: Any) -> Any:
        if previous(callback) in (None, False):  # disabled, or already "run only"
            return previous(callback)

        def run_original(frame: Any, *args: Any, **kwargs: Any) -> Any:
            if not trace_rules.check(frame.f_code):
                on_miss(frame.f_code)
            return answer()

        # Cache entries belong to a backend, which torch finds by following this attribute.
        run_original._torchdynamo_orig_backend = callback  # type: ignore[attr-defined]
        return run_original

    eval_frame._callback_from_stance = callback_without_compiling
    try:
        yield True
    finally:
        if eval_frame._callback_from_stance is callback_without_compiling:
            eval_frame._callback_from_stance = previous


def _eager_answer() -> Callable[[], Any] | None:
    """Makes the answer "run this frame as it is, and look for no more to compile in what it calls"."""
    try:
        types: Any = importlib.import_module("torch._dynamo.types")
        eval_frame: Any = importlib.import_module("torch._dynamo.eval_frame")
        strategy = types.FrameExecStrategy(types.FrameAction.DEFAULT, types.FrameAction.RUN_ONLY)
        types.ConvertFrameReturn(frame_exec_strategy=strategy, apply_to_code=False)
        eval_frame._callback_from_stance  # noqa: B018  (is it there?)
    except (ImportError, AttributeError, TypeError):
        return None
    return lambda: types.ConvertFrameReturn(frame_exec_strategy=strategy, apply_to_code=False)
