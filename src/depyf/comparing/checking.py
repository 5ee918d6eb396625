"""Each compiled call of a program, or one in N, judged while the program runs on."""

from __future__ import annotations

import itertools
import threading
import time
from dataclasses import dataclass, field
from typing import Any

from ..capture import apart
from ..capture.torch_private.compiled_calls import CompiledCall, on_compiled_call
from ..capture.torch_private.shared import Undo
from .results import RunningResult

#: That many differences are told in full.
_TOLD = 20


@dataclass
class Checked:
    """What is known of the checked calls.

    Attributes:
        every: one in so many calls is judged.
        calls: that were made.
        judged: that were judged.
        equal: of these, that left what eager Python leaves.
        different: ``(number of the call, function, result)`` of those that left something else.
        not_judged: why others could not be, and how many.
        seconds: what the judging took.
        program_seconds: from the first call to the last.
    """

    every: int = 1
    calls: int = 0
    judged: int = 0
    equal: int = 0
    different: list[tuple[int, str, RunningResult]] = field(default_factory=list)
    not_judged: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    begun: float = 0.0

    def text(self) -> str:
        """Return the report, as it stands in the dump."""
        lines = [self.summary(), ""]
        for number, function, result in self.different[:_TOLD]:
            lines += [f"call {number}, {function}:", *(f"  {line}" for line in str(result).split("\n")), ""]
        if len(self.different) > _TOLD:
            lines.append(f"and {len(self.different) - _TOLD} calls more that are different")
        lines += [f"not judged: {why} ({count}x)" for why, count in self.not_judged.items()]
        return "\n".join(lines).rstrip() + "\n"

    def summary(self) -> str:
        """Return the report in one line."""
        verdict = f"{self.judged} of {self.calls} compiled calls judged: "
        verdict += "all equal to eager Python" if not self.different and self.judged == self.equal else (
            f"{self.equal} equal to eager Python, {len(self.different)} DIFFERENT")
        each = self.seconds / self.judged if self.judged else 0.0
        return f"{verdict}; judging took {self.seconds:.1f} s, {1000 * each:.0f} ms a call"


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
        name, result = apart.in_child(lambda: _judged(call, self._limit, known), 4 * self._limit)
        if result.failure:
            self._not_judged(result.failure)
            return
        self.checked.judged += 1
        if result.equal:
            self.checked.equal += 1
        else:
            known.add((name, result.served))
            self.checked.different.append((number, name, result))

    def _not_judged(self, why: str) -> None:
        self.checked.not_judged[why] = self.checked.not_judged.get(why, 0) + 1


def _judged(
    call: CompiledCall, limit: float, located: set[tuple[str, tuple[str, ...]]],
) -> tuple[str, RunningResult]:
    """Judge a call, in a process of its own."""
    from ..capture.torch_private import hooks
    from .judged import JudgedCall
    from .judging import judge_running

    function = hooks.innermost_function(call.function)
    owner: Any = getattr(function, "__self__", None)
    import torch

    if isinstance(owner, torch.nn.Module) and function.__name__ in ("_wrapped_call_impl", "_call_impl", "__call__"):
        function = owner
    name = getattr(function, "__qualname__", type(function).__qualname__)
    judged = JudgedCall(call.compile(call.function), function, call.args, call.kwargs, limit=limit)
    result = judge_running(judged, locate=lambda served: (name, served) not in located)
    return name, result
