"""Generated calls: each call that the program made, and variations of it, in plain Python, each in a child process.

the process with the old texts  ->  [f, x all zeros, n > 0 forced: Outcome], ...  --\
    the process with the new texts  ->  [f, x all zeros, n > 0 forced: Outcome], ...  ---->  Verdict
"""

from __future__ import annotations

import itertools
import logging
import random
import types
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
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
#: Seconds for all inputs that one call leads to.
LIMIT_OF_ALL = 240.0


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
    """Repeats the calls of a trial.

    Args:
        texts: the files as they run here, by real path.
        conditions: of the change that is judged.
    """

    def __init__(self, texts: Mapping[str, str], conditions: Conditions) -> None:
        self.texts, self.conditions = texts, conditions
        self.forced = choices(sum(map(len, conditions.values())))
        self.calls: list[Generated] = []
        self._seen: Counter[str] = Counter()

    def repeat(self, name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Run a call and its variations in children of this process, which is as it was afterwards."""
        from ..capture import apart

        if apart.is_apart() or self._seen[name] >= MOST_CALLS:
            return
        self._seen[name] += 1
        why_not = apart.why_not()
        if not why_not:
            try:
                self.calls += apart.in_child(
                    lambda: self._all(name, function, args, kwargs, self._seen[name] == 1), LIMIT_OF_ALL)
            except apart.ChildFailed as error:
                why_not = str(error)
        if why_not:
            self.calls.append(Generated(name, "as recorded", {}, why_not=why_not))

    def _all(self, name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], vary: bool,
             ) -> list[Generated]:
        """Return the generated calls for one call; in a child, in which code may be exchanged for good."""
        from ..capture import apart
        from .variations import variations

        forcing = Forcing()
        instrument(self.texts, self.conditions, forcing)
        owner = getattr(function, "__self__", function)
        results = []
        for variation in itertools.islice(variations(function, owner, args, kwargs), None if vary else 1):
            natural = None
            for forced in self.forced:
                if natural is not None and natural.raised is not None:
                    break  # (an error of the side that such an input takes by itself says nothing of the other side)
                try:
                    outcome, taken = apart.in_child(lambda: _run(function, owner, variation, forced, forcing), LIMIT)
                    results.append(Generated(name, variation.name, forced, outcome, taken))
                    natural = natural or outcome
                except apart.ChildFailed as error:
                    results.append(Generated(name, variation.name, forced, why_not=str(error)))
        return results


def _run(function: Callable[..., Any], owner: Any, variation: Variation, forced: Mapping[int, bool], forcing: Forcing,
         ) -> tuple[Outcome, frozenset[tuple[int, bool]]]:
    """Run one generated call in this process, which is for it alone."""
    import torch

    from ..capture.torch_private import pipeline
    from ..comparing.outcome import outcome_of

    if variation.training is not None:
        owner.train(variation.training)
    said = _Said()
    logging.getLogger().addHandler(said)
    warnings.simplefilter("ignore")
    warnings.warn = said.warn
    forcing.to, forcing.taken = forced, set()
    torch.manual_seed(0)
    random.seed(0)
    with pipeline.all_eager():
        outcome = outcome_of(function, _roots(function, owner), variation.args, variation.kwargs, None)
    outcome.random["python"] = zlib.adler32(repr(random.getstate()).encode())  # (a hash is another in each process)
    outcome.extra = said.lines
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
        one_sided: conditions of which a side was never compared.
    """

    calls: int = 0
    differs: str = ""
    unjudged: tuple[str, ...] = ()
    conditions: int = 0
    one_sided: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Every condition was compared on both sides, and nothing differs."""
        return not self.differs and not self.one_sided and self.calls > 0

    def __str__(self) -> str:
        parts = [f"same on {count(self.calls, 'generated call')}"]
        if self.conditions:
            parts.append("both sides of " + (
                "its condition" if self.conditions == 1 else f"all {self.conditions} conditions") + " taken")
        return ", ".join([*parts, *(f"not judged: {each}" for each in self.unjudged)])


def compared(old: Sequence[Generated], new: Sequence[Generated], conditions: Conditions) -> Verdict:
    """Return the verdict on two processes' generated calls, which are paired by function, input and order."""
    tests = [pair[0] for _, pairs in sorted(conditions.items()) for pair in pairs]
    calls, taken, unjudged = 0, set[tuple[int, bool]](), dict[str, None]()
    one_by_key, other_by_key = _by_key(old), _by_key(new)
    if [key for key in one_by_key if not key[-1]] != [key for key in other_by_key if not key[-1]]:
        return Verdict(differs="the program calls other compiled functions, or with other kinds of arguments")
    for key, one in one_by_key.items():
        other = other_by_key.get(key)
        if other is None:
            continue  # (without forcing it raises in one of the processes, which differs then)
        if one.outcome is None or other.outcome is None:
            unjudged[f"{one.function}, {one.input}: {one.why_not or other.why_not}"] = None
            if (one.outcome is None) != (other.outcome is None):
                return Verdict(calls, f"{one.function}, {one.input}: only one of both ended", tuple(unjudged))
            continue
        text = _difference(other.outcome, one.outcome)
        calls += 1
        if text:
            sides = "".join(f", `{tests[number]}` forced {side}" for number, side in one.forced.items())
            return Verdict(calls, f"{one.function}, {one.input}{sides}: {text}", tuple(unjudged), len(tests))
        if one.outcome.raised is None:
            taken |= one.taken & other.taken
    one_sided = [f"`{test}` was never {side}" for number, test in enumerate(tests) for side in (True, False)
                 if (number, side) not in taken]
    return Verdict(calls, "", tuple(unjudged), len(tests), tuple(one_sided))


def _by_key(calls: Sequence[Generated]) -> dict[tuple[Any, ...], Generated]:
    """Return calls by function, input, which of these it is, and the sides that are forced."""
    seen: Counter[Any] = Counter()
    found = {}
    for each in calls:
        key = (each.function, each.input, tuple(each.forced.items()))
        seen[key] += 1
        found[(*key[:2], seen[key], key[2])] = each
    return found


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
