"""Each compiled call of a program, or one in N, judged while the program runs on."""

from __future__ import annotations

import itertools
import threading
import time
from typing import TYPE_CHECKING, Any

from ..capture import apart
from ..capture.torch_private.compiled_calls import CompiledCall, on_compiled_call
from ..capture.torch_private.shared import Undo
from .checked import Checked, WrongCall
from .results import RunningResult

if TYPE_CHECKING:
    from .judged import JudgedCall


class CheckedCalls:
    """Judges calls from :meth:`start` on.

    Args:
        every: one in so many calls is judged, the first of them first.
        limit: seconds for each run of a call.
    """

    def __init__(self, every: int = 1, limit: float = 300.0) -> None:
        self.checked = Checked(every)
        self._limit = limit
        self._count = itertools.count(1)
        self._located: set[tuple[str, tuple[str, ...]]] = set()
        self._busy = threading.local()
        self._undo: Undo | None = None

    def start(self) -> None:
        """Begin.

        Raises:
            RuntimeError: calls cannot be judged here; the message says why.
        """
        why_not = apart.why_not()
        if why_not:
            raise RuntimeError(f"calls cannot be checked: {why_not}")
        self._undo = on_compiled_call(self._before)

    def stop(self) -> Checked:
        """End, and return what is known."""
        if self._undo is not None:
            self._undo()
            self._undo = None
        return self.checked

    def _before(self, call: CompiledCall) -> None:
        if apart.is_apart() or getattr(self._busy, "on", False):
            return
        number = next(self._count)
        self.checked.calls = number
        if (number - 1) % self.checked.every:
            return
        self._busy.on = True
        begun = time.perf_counter()
        try:
            self._judge(number, call)
        except Exception as error:  # (the program goes on)
            self._not_judged(f"{type(error).__name__}: {error}")
        finally:
            self.checked.seconds += time.perf_counter() - begun
            self._busy.on = False

    def _judge(self, number: int, call: CompiledCall) -> None:
        why_not = apart.why_not()
        if why_not:
            self._not_judged(why_not)
            return
        known = self._located
        no_backward = apart.why_no_backward()
        backward = False if no_backward else None
        name, given, result = apart.in_child(lambda: _judged(call, self._limit, known, backward), 4 * self._limit)
        if result.failure:
            self._not_judged(result.failure)
            return
        self.checked.judged += 1
        if no_backward:
            self.checked.forward_only[no_backward] = self.checked.forward_only.get(no_backward, 0) + 1
        if result.equal:
            self.checked.equal += 1
        else:
            known.add((name, result.served))
            self.checked.different.append(WrongCall(number, name, result, given, call.place))

    def _not_judged(self, why: str) -> None:
        self.checked.not_judged[why] = self.checked.not_judged.get(why, 0) + 1


def _judged(
    call: CompiledCall, limit: float, located: set[tuple[str, tuple[str, ...]]], backward: bool | None,
) -> tuple[str, str, RunningResult]:
    """Judge a call, in a process of its own: its function, its arguments where it is different, the result."""
    from ..capture.torch_private import compiled_callables
    from .judged import JudgedCall
    from .judging import judge_running

    function = compiled_callables.innermost_function(call.function)
    owner: Any = getattr(function, "__self__", None)
    import torch

    if isinstance(owner, torch.nn.Module) and function.__name__ in ("_wrapped_call_impl", "_call_impl", "__call__"):
        function = owner
    name = getattr(function, "__qualname__", type(function).__qualname__)
    judged = JudgedCall(call.compile(call.function), function, call.args, call.kwargs, backward=backward, limit=limit)
    result = judge_running(judged, locate=lambda served: (name, served) not in located)
    return name, "" if result.equal else _arguments(judged), result


def _arguments(call: JudgedCall) -> str:
    """Return the arguments of a call: ``x=f32[4, 4], s=2.0``."""
    from ..fitting.described import Described
    from ..fitting.values import shown

    code = call.code
    values = call.values()
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount] if code is not None else ()
    if values is None or not names:
        values = {**{f"args[{number}]": each for number, each in enumerate(call.args)}, **call.kwargs}
        names = tuple(values)
    described = Described(values, {})
    return ", ".join(f"{name}={shown(described.describe(values[name]), 40)}" for name in names
                     if name in values and name != "self")
