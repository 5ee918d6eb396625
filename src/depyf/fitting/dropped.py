"""Guards that a program asked torch to drop, checked on each of its calls.

    print(dropped)
    3 of 20 calls violate guards that torch was asked to drop.

      [0/0] of Decoder.forward, llama.py:80: 3 of 17 calls, first call 4:
        x.shape[0] must be 2 or more, is 1 (llama.py:88: if x.shape[0] > 1:)

Programs that serve models drop guards to save time, vLLM all of them. A call that does not meet one gets the result of
a graph that was made for others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from ..capture.torch_private.guards import FullGuards, keep_dropped
from ..guarded import guarded_call
from ..records.model import SourceLocation
from ..torch_text.guard_failures import guard_failures
from .oracle import Failure, failure_in_words, failure_of, place_text
from .running import Described


@dataclass
class Violation:
    """A dropped guard that calls did not meet."""

    version: str  # torch's id of the version that served them, `"0/1"`
    # function, location: of the version, as torch names it
    function: str
    location: SourceLocation | None
    failure: Failure  # the first guard that did not hold, with the value of the first such call
    calls: int = 0  # the number of calls that did not meet it
    first_call: int = 0  # the first of them, counted from 1 among all that the version served


class DroppedGuards:
    """A block in which dropped guards are checked on each call, and afterwards the violations.

    Only functions that are compiled in the block are checked, and calls that torch finds a version for: not those of a
    program that calls compiled code itself. A check takes as long as the guards would have.
    """

    def __init__(self) -> None:
        self.calls: dict[str, int] = {}  # how many calls were checked, by version
        self.violations: list[Violation] = []  # what they violated
        self.problems: list[str] = []  # the errors in checks
        self._known: dict[tuple[int, str], Violation] = {}
        self._leave: Callable[[], None] | None = None

    def __enter__(self) -> DroppedGuards:
        self._leave = keep_dropped(
            lambda full, values: guarded_call(lambda: self._check(full, values), None, self._report))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._leave is not None:
            self._leave()
            self._leave = None

    def __str__(self) -> str:
        return "\n".join(self._lines()) + "\n"

    def _report(self, error: Exception) -> None:
        problem = f"{type(error).__name__}: {error}"
        if problem not in self.problems:
            self.problems.append(problem)

    def _check(self, full: FullGuards, values: Mapping[str, Any]) -> None:
        self.calls[full.compile_id] = number = self.calls.get(full.compile_id, 0) + 1
        reason = full.failure_reason(values)
        if not reason:
            return
        failed = failure_of(guard_failures(reason, seen=Described(values, {}).shown)[0])
        key = id(full), failed.subject + failed.wanted
        if key not in self._known:
            name, location = full.function()
            self._known[key] = Violation(full.compile_id, name, location and SourceLocation(*location, name), failed,
                                         first_call=number)
            self.violations.append(self._known[key])
        self._known[key].calls += 1

    def _lines(self) -> Iterator[str]:
        bad, calls = sum(each.calls for each in self.violations), sum(self.calls.values())
        if not self.calls:
            yield "No call was checked: no function was compiled whose guards torch was asked to drop."
        else:
            verb = "violates" if bad == 1 else "violate"
            yield f"{bad or 'None'} of {calls} calls {verb} guards that torch was asked to drop."
        for each in self.violations:
            of = f" of {each.function}, {place_text(each.location)}" if each.location else ""
            yield f"\n  [{each.version}]{of}: {each.calls} of {self.calls[each.version]} calls, first call " \
                  f"{each.first_call}:\n    {failure_in_words(each.failure)}"
        for problem in self.problems:
            yield f"\n  Some calls could not be checked: {problem}"
