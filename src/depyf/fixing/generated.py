"""Generated calls: each call that the program made, and variations of it, in plain Python, each in a child process.

A process with the old texts gives outcomes for ``f``, ``x all zeros``, ``n > 0 forced True`` ...; one with the new
texts gives outcomes for the same calls. :func:`compared` says where they differ.
"""

from __future__ import annotations

import copy
import itertools
import logging
import random
import re
import sys
import time
import types
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..views.markdown import count
from .forced import Conditions, Forcing, choices, instrument

if TYPE_CHECKING:
    from ..comparing.outcome import Outcome
    from .variations import Variation

#: Of each function so many calls are repeated; the first with all variations, the others as recorded.
MOST_CALLS = 4
#: Seconds that one input may take.
LIMIT = 20.0
#: Seconds for all generated calls of a run, and the name of the inputs that there was no time for.
LIMIT_OF_ALL = 90.0
MORE = "further inputs"
#: Calls that were not judged of which so many are named.
MOST_NAMED = 3


@dataclass
class Generated:
    """One generated call.

    Attributes:
        function: its name.
        input: what differs from the recorded call.
        forced: sides that conditions were forced to, by number.
        outcome: what it left, a ``comparing.outcome.Outcome``; ``None`` where it could not be judged.
        taken: the sides of conditions that it took.
        why_not: why it could not be judged.
    """

    function: str
    input: str
    forced: Mapping[int, bool]
    outcome: Any = None
    taken: frozenset[tuple[int, bool]] = frozenset()
    why_not: str = ""


class Generator:
    """Repeats the calls of a trial with other inputs.

    Each runs in a child of this process, which is then as it was. Where no child can be forked (CUDA is in use), they
    run on copies when the program has ended: in the same order with both texts, so outcomes can be compared even where
    one call changes what a later one sees.

    Args:
        texts: the files as they run here, by real path.
        conditions: of the change that is judged.
    """

    def __init__(self, texts: Mapping[str, str], conditions: Conditions) -> None:
        self.texts, self.conditions = texts, conditions
        self.forced = choices(sum(map(len, conditions.values())))
        self.calls: list[Generated] = []
        self._seen: Counter[str] = Counter()
        self._spent = 0.0
        self._later: list[Callable[[], list[Generated]]] = []

    def call(self, name: str, model: Any, compiled: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Make a call of the program in plain Python, after it was repeated."""
        from ..capture.torch_private import pipeline

        self.repeat(name, model, args, kwargs)
        with pipeline.all_eager():
            return model(*args, **kwargs)

    def repeat(self, name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Run a call of the program and its variations."""
        from ..capture import apart

        if apart.is_apart() or self._seen[name] >= MOST_CALLS:
            return
        self._seen[name] += 1
        vary, began = self._seen[name] == 1, time.monotonic()
        try:
            if apart.why_not():
                function, args, kwargs = copy.deepcopy((function, args, kwargs))
                self._later.append(lambda: self._all(name, function, args, kwargs, vary, on_copies))
            else:
                self.calls += apart.in_child(
                    lambda: self._all(name, function, args, kwargs, vary, apart.in_child), 2 * LIMIT_OF_ALL)
        except Exception as error:  # noqa: BLE001  (of what cannot be copied or pickled)
            self.calls.append(Generated(name, "as recorded", {}, why_not=str(error)))
        self._spent += time.monotonic() - began

    def finished(self) -> list[Generated]:
        """Return the generated calls, when the program has ended."""
        for work in self._later:
            self.calls += work()
        return self.calls

    def _all(self, name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], vary: bool,
             apart: Callable[[Callable[[], Any], float], Any]) -> list[Generated]:
        """Return the generated calls for one call. The code of functions is exchanged for good.

        Args:
            name, function, args, kwargs: of the call.
            vary: with other inputs, too.
            apart: runs work within seconds, so that it changes nothing here.
        """
        import torch

        from .variations import variations

        torch.set_num_threads(1)  # (each child would start threads of its own)
        forcing = Forcing()
        instrument(self.texts, self.conditions, forcing)
        owner = getattr(function, "__self__", function)
        results: list[Generated] = []
        until = time.monotonic() + LIMIT_OF_ALL - self._spent
        for variation in itertools.islice(variations(function, owner, args, kwargs), None if vary else 1):
            if results and time.monotonic() > until:
                return [*results, Generated(name, MORE, {}, why_not="no time was left")]
            for forced in self.forced:
                each = Generated(name, variation.name, forced)
                try:
                    each.outcome, each.taken = apart(lambda: _run(function, variation, forced, forcing), LIMIT)
                except Exception as error:  # noqa: BLE001
                    each.why_not = str(error)
                results.append(each)
                if not forced and (each.outcome is None or each.outcome.raised is not None):
                    break  # (an error of the side that such an input takes by itself says nothing of the other side)
        return results


def on_copies(work: Callable[[], Any], limit: float) -> Any:
    """Do work in this process; :func:`_run` copies what it calls."""
    return work()


def _run(function: Callable[..., Any], variation: Variation, forced: Mapping[int, bool], forcing: Forcing,
         ) -> tuple[Outcome, frozenset[tuple[int, bool]]]:
    """Run one generated call, in a child of its own or on copies."""
    import torch

    from ..capture import apart
    from ..capture.torch_private import pipeline
    from ..comparing.outcome import outcome_of

    args, kwargs = variation.args, variation.kwargs
    if not apart.is_apart():
        function, args, kwargs = copy.deepcopy((function, args, kwargs))
    owner = getattr(function, "__self__", function)
    if variation.training is not None:
        module: Any = owner
        module.train(variation.training)
    said, roots = _Said(), _roots(function, owner)
    forcing.to, forcing.taken = forced, set()
    torch.manual_seed(0)
    random.seed(0)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(0)
    logging.getLogger().addHandler(said)
    warn, warnings.warn = warnings.warn, said.warn
    try:
        with pipeline.all_eager():
            outcome = outcome_of(function, roots, args, kwargs, None)
    finally:
        logging.getLogger().removeHandler(said)
        warnings.warn = warn
    outcome.random["python"] = zlib.adler32(repr(random.getstate()).encode())  # (a hash is another in each process)
    outcome.extra = said.lines
    for place in list(outcome.states):  # (what only a text names, as the module `torch`, is no difference)
        name = re.match(r"global \w+", place)
        if name is not None and name[0] not in roots:
            del outcome.states[place]
    return outcome, frozenset(forcing.taken)


class _Said(logging.Handler):
    """Takes log records and the warnings that Python code gives, without the lines that they come from."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[tuple[str, str]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append((record.levelname, record.getMessage()))

    def warn(self, message: Any, category: Any = None, *args: Any, **kwargs: Any) -> None:
        category = type(message) if isinstance(message, Warning) else category or UserWarning
        self.lines.append((category.__name__, str(message)))


def _roots(function: Callable[..., Any], owner: Any) -> dict[str, Any]:
    """Return what a call can change: its object, and the variables that its function can reach, by name."""
    roots: dict[str, Any] = {} if isinstance(owner, types.FunctionType) else {"self": owner}
    plain = function if isinstance(function, types.FunctionType) else getattr(
        function, "__func__", getattr(type(owner), "forward", None))
    if not isinstance(plain, types.FunctionType):
        return roots
    for name, cell in zip(plain.__code__.co_freevars, plain.__closure__ or ()):
        roots[f"captured {name}"] = cell
    for name, value in list(plain.__globals__.items()):
        if not name.startswith("__") and not isinstance(value, (types.ModuleType, type)) and (
                not callable(value) or type(value).__module__ == plain.__module__):
            roots[f"global {name}"] = value
    return roots


# --- two processes ----------------------------------------------------------------------------------
@dataclass(frozen=True)
class Verdict:
    """Whether generated calls are the same with two texts.

    Attributes:
        calls: how many were compared.
        differs: the first that is not the same, in words; ``""``: none.
        unjudged: what could not be compared, in words.
        conditions: how many conditions the change has.
        one_sided: conditions of which a side was never compared, or that no call ended without an error.
    """

    calls: int = 0
    differs: str = ""
    unjudged: tuple[str, ...] = ()
    conditions: int = 0
    one_sided: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Every condition was compared on both sides, and nothing differs."""
        return not self.why_not

    @property
    def why_not(self) -> str:
        """What differs, or why that is not known; ``""`` where it holds."""
        unknown = self.one_sided or (() if self.calls else (*self.unjudged, "no call could be repeated"))
        return self.differs or next(iter(unknown), "")

    def __str__(self) -> str:
        if not self.calls:
            return "none, as no line but settings of torch is changed"
        sides = ""
        if self.conditions:
            sides = ", both branches taken" if self.conditions == 1 else (
                f", both branches of {self.conditions} conditions taken")
        more = [f"and {len(self.unjudged) - MOST_NAMED} more"] if len(self.unjudged) > MOST_NAMED else []
        return "; ".join([f"same on {count(self.calls, 'call')}{sides}",
                          *(f"not judged: {each}" for each in self.unjudged[:MOST_NAMED]), *more])


def compared(old: Sequence[Generated], new: Sequence[Generated], conditions: Conditions) -> Verdict:
    """Return the verdict on two processes' generated calls."""
    from ..comparing.reachable import MOST

    tests = [test for texts in conditions.values() for test in texts]
    calls, ended, taken, unjudged = 0, False, set[tuple[int, bool]](), dict[str, None]()
    in_time = not any(each.input == MORE for each in (*old, *new))
    for one, other in _paired(old, new):
        known = one or other or old[0]
        what = f"{known.function}, {known.input}" + "".join(
            f", `{tests[number]}` forced {side}" for number, side in known.forced.items())
        if one is None or other is None:
            if in_time and not known.forced:
                return Verdict(calls, f"{what}: only one of both programs makes this call", tuple(unjudged))
            continue  # (without forcing it raises in one of them, which differs then)
        if one.outcome is None and other.outcome is None:
            unjudged[f"{what}: {one.why_not}"] = None
            continue
        text = one.why_not or other.why_not or _difference(other.outcome, one.outcome)
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


def _paired(old: Sequence[Generated], new: Sequence[Generated]) -> Iterator[tuple[Generated | None, Generated | None]]:
    """Yield calls with the same function, input and forced sides, and the same number of such before them."""
    by_key: list[dict[Any, Generated]] = [{}, {}]
    for calls, found in zip((old, new), by_key):
        seen: Counter[Any] = Counter()
        for each in calls:
            key = each.function, each.input, tuple(each.forced.items())
            seen[key] += 1
            found[key, seen[key]] = each
    for each in dict.fromkeys([*by_key[0], *by_key[1]]):
        yield by_key[0].get(each), by_key[1].get(each)


def _difference(new: Outcome, old: Outcome) -> str:
    """Return in words where a call with the new text leaves something else; ``""``: nowhere."""
    from ..comparing.outcome import disagreements
    from ..comparing.tensors import Tolerance

    if new.raised is not None and old.raised is not None and (new.raised.type, new.raised.text) != (
            old.raised.type, old.raised.text):
        return f"raises {new.raised.type}: {new.raised.text[:80]}; before {old.raised.type}: {old.raised.text[:80]}"
    if new.extra != old.extra:
        return f"logs and warns {new.extra!r:.80}; before {old.extra!r:.80}"
    found = disagreements(new, old, Tolerance())
    return str(found[0]).replace("in eager Python", "before") if found else ""
