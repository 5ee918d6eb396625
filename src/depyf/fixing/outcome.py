"""The outcome of a run: graph breaks, skipped functions, recompiles, and the outcomes of calls of compiled functions.

These are the calls that the program made, or generated ones; :func:`compared` says where two lists of calls differ.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ..records.model import Capture
from ..values import frozen
from ..views.markdown import count
from ..views.run_index import RunIndex
from ..views.verdict import Totals

#: By file, the tests that choose between two sides, each as the old and the new text of a change have it.
Conditions = Mapping[str, Sequence[tuple[str, ...]]]
#: The autograd function that a tensor prints: another one may compute the same.
_GRADIENT = re.compile(r"grad_fn=<\w+>")
MORE = "further inputs"  #: The name of the inputs for which no time was left.
MOST_NAMED = 3  #: So many calls that were not judged are named.


@dataclass
class Call:
    """A call of a compiled function."""

    function: str  # its name
    number: int = 1  # of the program's call of this function, counted from 1
    input: str = ""  # the difference from that call; `""` for the program's own, which torch compiled
    forced: Mapping[int, bool] = field(default_factory=dict)  # sides that conditions were forced to, by number
    outcome: Any = None  # a `comparing.outcome.Outcome`; `None` where it could not be judged
    taken: frozenset[tuple[int, bool]] = frozenset()  # the sides of conditions that it took
    said: Sequence[tuple[str, str]] = ()  # log records and warnings, as (level, text)
    why_not: str = ""  # why it could not be judged

    @property
    def key(self) -> tuple[object, ...]:
        """Identifies the same call of another run."""
        return self.function, self.number, self.input, *self.forced.items()

    def title(self, tests: Sequence[str]) -> str:
        """Return its function, input and what is forced: ``"f, x all zeros, `n > 0` forced True"``."""
        return ", ".join((self.function, *filter(None, [self.input]), *(
            f"`{tests[number]}` forced {side}" for number, side in self.forced.items())))


@frozen
class Outcome:
    """One run of a program."""

    capture: Capture | None  # its records; `None` where there are none
    calls: Sequence[Call] = ()  # of its compiled functions, or the generated ones
    printed: str = ""  # its standard output
    status: int | None = 0  # its exit status; `None` where it took too long
    error: str = ""  # the end of its standard error

    @cached_property
    def totals(self) -> Totals:
        """The numbers of breaks, skipped functions and recompiles, as all views have them."""
        return Totals.of(RunIndex(self.capture or Capture()))

    @property
    def broken_at(self) -> set[tuple[str, str]]:
        """The kinds of graph breaks, with the lines that they are at."""
        return {(broken.registry_id or broken.reason, broken.location.text if broken.location else "")
                for each in (self.capture or Capture()).compilations for broken in each.breaks}

    @property
    def operations(self) -> int:
        """The number of operations in graphs."""
        return sum(each.counts.get("operations", 0) for each in (self.capture or Capture()).compilations)

    @property
    def weight(self) -> int:
        """The sum of all problems: a function in plain Python weighs more than a break, and that than a recompile.

        (Recompiles of a function that torch gave up may only show when it is compiled.)
        """
        return 3 * self.totals.skipped + 2 * self.totals.breaks + self.totals.recompiles

    def difference(self, before: Outcome) -> str:
        """Return in words where this run differs from one before; ``""``: nowhere."""
        if self.status != before.status:
            return "the exit status is another one"
        if _GRADIENT.sub("", self.printed) != _GRADIENT.sub("", before.printed):
            return "the program prints something else"
        if [each.key for each in self.calls] != [each.key for each in before.calls]:
            return "the program calls its compiled functions in another order"
        return compared(before.calls, self.calls, {}, (1e-4, 1e-5)).differs  # (rounding differs where graphs do)


@frozen
class Verdict:
    """Whether calls are the same with two texts."""

    calls: int = 0  # the number that were compared
    differs: str = ""  # the first that is not the same, in words; `""`: none
    unjudged: tuple[str, ...] = ()  # what could not be compared, in words
    conditions: int = 0  # the number of conditions of the change
    #: conditions of which a side was never compared, or that no call ended without an error
    one_sided: tuple[str, ...] = ()

    @property
    def why_not(self) -> str:
        """The difference, or why it is not known; ``""`` where every condition was compared on both sides."""
        unknown = self.one_sided or (() if self.calls else (*self.unjudged, "no call could be repeated"))
        return self.differs or next(iter(unknown), "")

    def __str__(self) -> str:
        if not self.calls:
            return "none, as no line but settings of torch is changed"
        sides = "" if not self.conditions else ", both branches taken" if self.conditions == 1 else (
            f", both branches of {self.conditions} conditions taken")
        more = [f"and {len(self.unjudged) - MOST_NAMED} more"] if len(self.unjudged) > MOST_NAMED else []
        return "; ".join([f"same on {count(self.calls, 'call')}{sides}",
                          *(f"not judged: {each}" for each in self.unjudged[:MOST_NAMED]), *more])


def compared(old: Sequence[Call], new: Sequence[Call], conditions: Conditions,
             tolerance: tuple[float, ...] = ()) -> Verdict:
    """Return the verdict on the calls of two runs; the tolerance is relative and absolute, ``()``: that of rounding."""
    from ..comparing.reachable import MOST

    tests = [texts[0] for tests in conditions.values() for texts in tests]
    calls, ended, taken = 0, False, set[tuple[int, bool]]()
    before, after = ({each.key: each for each in calls_ if each.input != MORE} for calls_ in (old, new))
    late = [f"{each.title(())}: {each.why_not}" for each in new if each.input == MORE]
    in_time = not late and all(each.input != MORE for each in old)
    unjudged = dict.fromkeys(late)
    for key in dict.fromkeys((*before, *after)):
        one, other = before.get(key), after.get(key)
        known = one or other or Call("")
        of_input = before.get((known.function, known.number, known.input))
        if known.forced and (of_input is None or of_input.outcome is None or of_input.outcome.raised is not None):
            continue  # (where the unforced call raises, a forced one says nothing)
        what = known.title(tests)
        if one is None or other is None:
            if in_time and not known.forced:
                return Verdict(calls, f"{what}: only one of both programs makes this call", tuple(unjudged))
            continue  # (without forcing it raises in one of them, which differs then)
        if one.outcome is None and other.outcome is None:
            unjudged[f"{what}: {one.why_not}"] = None
            continue
        text = one.why_not or other.why_not or _difference(other, one, tolerance)
        if text:
            return Verdict(calls, f"{what}: {text}", tuple(unjudged), len(tests))
        if one.outcome.left_out:
            unjudged[f"{what}: what lies beyond {MOST} objects"] = None
        calls += 1
        if one.outcome.raised is None:
            ended = True
            taken |= one.taken & other.taken
    one_sided = [f"`{test}` was never {side}" for number, test in enumerate(tests) for side in (True, False)
                 if (number, side) not in taken]
    if calls and not ended:
        one_sided.append("each call raises an error")
    return Verdict(calls, "", tuple(unjudged), len(tests), tuple(one_sided))


def _difference(new: Call, old: Call, tolerance: tuple[float, ...]) -> str:
    """Return in words where the outcome of a call with the new text differs; ``""``: nowhere."""
    from ..comparing.outcome import disagreements
    from ..comparing.reference import Tolerance

    one, other = new.outcome.raised, old.outcome.raised
    if one is not None and other is not None and (one.type != other.type or one.text != other.text and (
            one.own_words or other.own_words)):
        return f"raises {one.type}: {one.text[:80]}; before {other.type}: {other.text[:80]}"
    if new.said != old.said:
        return f"logs and warns {new.said!r:.80}; before {old.said!r:.80}"
    found = (each for each in disagreements(new.outcome, old.outcome, Tolerance(*tolerance)) if not each.why_not)
    return next((str(each).replace("in eager Python", "before") for each in found), "")
