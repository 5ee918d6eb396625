"""Each compiled call of a program, or one in N, judged while the program runs on."""

from __future__ import annotations

import itertools
import threading
import time
from typing import TYPE_CHECKING, Any

from ..capture import apart
from ..capture.torch_private.compiled_callables import CompiledCall, on_compiled_call
from ..capture.torch_private.shared import Undo
from .checked import Checked, WrongCall
from .results import RunningResult

if TYPE_CHECKING:
    from .runs import JudgedCall


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
        self._searched: set[tuple[str, tuple[str, ...]]] = set()
        self._busy = threading.local()
        self._undo: Undo | None = None

    def start(self) -> None:
        """Begin.

        Raises:
            AttributeError: this torch cannot be asked for its calls.
        """
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
            self.checked.not_judged[f"{type(error).__name__}: {error}".partition("\n")[0]] += 1
        finally:
            self.checked.seconds += time.perf_counter() - begun
            self._busy.on = False

    def _judge(self, number: int, call: CompiledCall) -> None:
        searched = self._searched
        here = bool(apart.why_not() or apart.why_no_backward())

        def work() -> tuple[str, str, RunningResult]:
            return _judged(call, self._limit, searched, here)

        name, given, result = work() if here else apart.in_child(work, 4 * self._limit)
        if result.failure:
            self.checked.not_judged[result.failure] += 1
            return
        self.checked.judged += 1
        if result.differing or result.remade:
            searched.add((name, result.served))
        if result.differing:
            self.checked.different.append(WrongCall(number, name, result, given, call.place))
        elif result.not_judged:
            self.checked.partly.update(f"{name}: {each}" for each in result.not_judged)
            self.checked.in_part += 1
        else:
            self.checked.equal += 1
        if result.remade:
            self.checked.remade[result.remade] += 1


def _judged(
    call: CompiledCall, limit: float, searched: set[tuple[str, tuple[str, ...]]], here: bool,
) -> tuple[str, str, RunningResult]:
    """Judge a call: its function, its arguments where it is different, the result."""
    import torch

    from ..capture.torch_private import compiled_callables
    from .judging import judge_running
    from .runs import JudgedCall

    function = compiled_callables.innermost_function(call.function)
    owner: Any = getattr(function, "__self__", None)
    if isinstance(owner, torch.nn.Module) and function.__name__ in ("_wrapped_call_impl", "_call_impl", "__call__"):
        function = owner
    name = getattr(function, "__qualname__", type(function).__qualname__)
    judged = JudgedCall(call.compile(call.function), function, call.args, call.kwargs, limit=limit, here=here)
    result = judge_running(judged, lambda served: (name, served) not in searched)
    return name, _arguments(judged) if result.differing else "", result


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
