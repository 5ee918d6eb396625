"""Judging of each compiled call of a program, or one in N, while the program runs; and the report."""

from __future__ import annotations

import functools
import itertools
import os
import textwrap
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from types import FrameType
from typing import TYPE_CHECKING, Any

from ..capture import forked
from ..capture.torch_private.compiled_callables import CompiledCall, on_compiled_call, outermost_call
from ..capture.torch_private.hooks import Undo
from ..model.folding import fold
from ..records.model import SourceLocation
from ..values import frozen
from ..views.markdown import some
from .results import RunningResult

if TYPE_CHECKING:
    from .runs import JudgedCall


class CheckedCalls:
    """Judges one in so many calls from :meth:`start` on, the first of them first; runs may take ``limit`` seconds."""

    def __init__(self, every: int = 1, limit: float = 300.0) -> None:
        self.checked = Checked(every)
        self._limit = limit
        self._count = itertools.count(1)
        self._searched: set[tuple[str, tuple[str, ...]]] = set()
        self._busy = threading.local()
        self._undo: Undo | None = None

    def start(self) -> None:
        """Begin; raise ``AttributeError`` where this torch does not report its calls."""
        self._undo = on_compiled_call(self._before)

    def stop(self) -> Checked:
        """End, and return the report."""
        if self._undo is not None:
            self._undo()
        return self.checked

    def _before(self, frame: FrameType) -> None:
        if forked.is_judging() or getattr(self._busy, "on", False):
            return
        self._busy.on = True
        begun = time.perf_counter()
        try:
            call = outermost_call(frame)
            if call is not None:
                self.checked.calls = number = next(self._count)
                if (number - 1) % self.checked.every == 0:
                    self._judge(number, call)
        except Exception as error:  # (the program goes on)
            self.checked.not_judged[f"{type(error).__name__}: {error}".partition("\n")[0]] += 1
        finally:
            self.checked.seconds += time.perf_counter() - begun
            self._busy.on = False

    def _judge(self, number: int, call: CompiledCall) -> None:
        here = bool(forked.why_not() or forked.why_no_backward())
        work = functools.partial(_judged, call, self._limit, self._searched, here)
        name, given, result = work() if here else forked.in_child(work, 4 * self._limit)
        checked = self.checked
        if result.failure:
            checked.not_judged[result.failure] += 1
            return
        checked.judged += 1
        if result.differing or result.remade:
            self._searched.add((name, result.served))
        if result.remade:
            checked.remade[result.remade] += 1
        if result.differing:
            checked.different.append(WrongCall(number, name, result, given, call.place))
        elif result.not_judged:
            checked.partly.update(f"{name}: {each}" for each in result.not_judged)
            checked.in_part += 1
        else:
            checked.equal += 1


def _judged(
    call: CompiledCall, limit: float, searched: set[tuple[str, tuple[str, ...]]], here: bool,
) -> tuple[str, str, RunningResult]:
    """Judge a call; return the name of its function, its arguments where it is different, and the result."""
    import torch

    from ..capture.torch_private import compiled_callables
    from .judging import judge_running
    from .runs import JudgedCall

    function = compiled_callables.innermost_function(call.function)
    owner: Any = getattr(function, "__self__", None)
    if isinstance(owner, torch.nn.Module) and function.__name__ in ("_wrapped_call_impl", "_call_impl", "__call__"):
        function = owner
    judged = JudgedCall(call.compile(call.function), function, call.args, call.kwargs, limit=limit, here=here)
    result = judge_running(judged, lambda served: (judged.name, served) not in searched)
    return judged.name, _arguments(judged) if result.differing else "", result


def _arguments(call: JudgedCall) -> str:
    """Return the arguments of a call: ``x=f32[4, 4], s=2.0``."""
    from ..fitting.given import shown
    from ..fitting.running import Described

    code = call.code
    values = call.values()
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount] if code is not None else ()
    if values is None or not names:
        values = {**{f"args[{number}]": each for number, each in enumerate(call.args)}, **call.kwargs}
        names = tuple(values)
    described = Described(values, {})
    return ", ".join(f"{name}={shown(described.describe(values[name]), 40)}" for name in names
                     if name in values and name != "self")


# --- the report --------------------------------------------------------------------------------------
#     call 3, g(x=f32[4, 4], s=2.0) at stale_constant.py:5:
#       what torch would compile, as no version fits this call (g [0/2]): DIFFERENT
#         ...
#       likewise call 7
#
# Calls that the same versions served are reported together.
#: The report's file in a dump.
FILE = "checked_calls.txt"
#: So many kinds of differences are reported, and numbers of calls of each.
_SHOWN = 20
_WIDTH = 110


@frozen
class WrongCall:
    """A call whose outcome differs from eager Python."""

    number: int  # of the call, from 1
    function: str  # its name
    result: RunningResult  # without `fault` where the same versions were at fault before
    given: str = ""  # its arguments: `"x=f32[4, 4], s=2.0"`
    place: SourceLocation | None = None  # the program's line that makes the call

    @property
    def title(self) -> str:
        """Return ``g(x=f32[4, 4], s=2.0) at train.py:5``."""
        where = f" at {os.path.basename(self.place.filename)}:{self.place.line}" if self.place else ""
        return f"{self.function.rpartition('<locals>.')[2]}({self.given}){where}"


@dataclass
class Checked:
    """The report on the checked calls."""

    every: int = 1  # one in so many calls is judged
    calls: int = 0  # the number that were made
    judged: int = 0  # the number that were judged
    equal: int = 0  # the number with the outcome of eager Python; all of it was compared
    different: list[WrongCall] = field(default_factory=list)  # those with another outcome
    in_part: int = 0  # the number of calls that are equal where they were compared
    # Why, with the number of calls:
    partly: Counter[str] = field(default_factory=Counter)  # something was not compared
    remade: Counter[str] = field(default_factory=Counter)  # it was judged in a compilation made afresh
    not_judged: Counter[str] = field(default_factory=Counter)  # it was not judged at all
    seconds: float = 0.0  # the time that judging took

    def text(self) -> str:
        """Return the report, as the dump has it."""
        lines = [self.summary(), ""]
        # (The fault of the first call that the same versions served is known.)
        groups = list(fold(self.different, lambda each: (each.function, each.result.served)).values())
        for first, *others in groups[:_SHOWN]:
            lines += [f"call {first.number}, {first.title}:", *textwrap.indent(str(first.result), "  ").split("\n")]
            if others:
                numbers = some([str(each.number) for each in others], _SHOWN)
                lines.append(f"  likewise {'call' if len(others) == 1 else 'calls'} {numbers}")
            lines.append("")
        if len(groups) > _SHOWN:
            lines.append(f"and {sum(map(len, groups[_SHOWN:]))} calls more that are different")
        lines += [f"{title}: {why} ({count}x)" for title, found in (
            ("not compared", self.partly), ("judged otherwise", self.remade), ("not judged", self.not_judged))
            for why, count in found.most_common()]
        wrapped = [textwrap.fill(line, _WIDTH, subsequent_indent=f"{line[: len(line) - len(line.lstrip())]}  ",
                                 break_long_words=False, break_on_hyphens=False) for line in lines]
        return "\n".join(wrapped).rstrip() + "\n"

    def summary(self) -> str:
        """Return the report in one line."""
        if not self.calls:
            return "no compiled call was made, so none was judged"
        if not self.judged:
            why = f" ({next(iter(self.not_judged))})" if self.not_judged else ""
            return f"none of {self.calls} compiled calls could be judged{why}"
        parts = [(self.equal, "equal to eager Python"), (self.in_part, "equal where they were compared"),
                 (len(self.different), "DIFFERENT")]
        verdict = "all equal to eager Python" if self.equal == self.judged else ", ".join(
            f"{count} {words}" for count, words in parts if count)
        each = self.seconds / self.judged
        pace = f"{each:.1f} s" if each >= 1 else f"{1000 * each:.0f} ms"
        return (f"{self.judged} of {self.calls} compiled calls judged: {verdict}; judging took {self.seconds:.1f} s, "
                f"{pace} a call")

    def sentence(self) -> str:
        """Return the sentence that comes first in a dump; ``""`` where nothing is different."""
        if not self.different:
            return ""
        first = self.different[0]
        fault = first.result.fault
        blamed = f"; at fault: {fault.part} {fault.name}" if fault is not None else ""
        which = "gives something else than eager Python:" if len(self.different) == 1 else (
            "give something else than eager Python, the first is")
        return (f"{len(self.different)} of {self.judged} judged calls {which} call {first.number}, "
                f"`{first.title}`{blamed} ({FILE})")
