"""Generated calls: each call that the program made, and variations of it, in plain Python, each in a child process.

A process with the old texts gives outcomes for ``f``, ``x all zeros``, ``n > 0 forced True`` ...; one with the new
texts gives outcomes for the same calls.
"""

from __future__ import annotations

import copy
import dis
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
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from .forced import Conditions, Forcing, choices, instrument
from .outcome import MORE, Call

if TYPE_CHECKING:
    from .variations import Variation

#: Of each function so many calls are repeated; the first with all variations, the others as recorded.
MOST_CALLS = 4
#: Seconds that one input may take.
LIMIT = 20.0
#: Seconds for all generated calls of a run.
LIMIT_OF_ALL = 90.0


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
        self.calls: list[Call] = []
        self._seen: Counter[str] = Counter()
        self._spent = 0.0
        self._later: list[Callable[[], list[Call]]] = []

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
        number, began = self._seen[name], time.monotonic()
        try:
            if apart.why_not():
                function, args, kwargs = copy.deepcopy((function, args, kwargs))
                self._later.append(lambda: self._all(name, number, function, args, kwargs, on_copies))
            else:
                self.calls += apart.in_child(
                    lambda: self._all(name, number, function, args, kwargs, apart.in_child), 2 * LIMIT_OF_ALL)
        except Exception as error:  # noqa: BLE001  (of what cannot be copied or pickled)
            self.calls.append(Call(name, number, "as recorded", why_not=str(error)))
        self._spent += time.monotonic() - began

    def finished(self) -> list[Call]:
        """Return the generated calls, when the program has ended."""
        for work in self._later:
            self.calls += work()
        return self.calls

    def _all(self, name: str, number: int, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any],
             apart: Callable[[Callable[[], Any], float], Any]) -> list[Call]:
        """Return the generated calls for one call. The code of functions is exchanged for good.

        Args:
            name, number, function, args, kwargs: of the call; with other inputs, too, if it is the first.
            apart: runs work within seconds, so that it changes nothing here.
        """
        import torch

        from .variations import variations

        torch.set_num_threads(1)  # (each child would start threads of its own)
        forcing = Forcing()
        instrument(self.texts, self.conditions, forcing)
        owner = getattr(function, "__self__", function)
        results: list[Call] = []
        until = time.monotonic() + LIMIT_OF_ALL - self._spent
        for variation in itertools.islice(variations(function, owner, args, kwargs), None if number == 1 else 1):
            if results and time.monotonic() > until:
                return [*results, Call(name, number, MORE, why_not="no time was left")]
            for forced in self.forced:
                each = Call(name, number, variation.name, forced)
                try:
                    vars(each).update(apart(lambda: _run(function, variation, forced, forcing), LIMIT))
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
         ) -> dict[str, Any]:
    """Run one generated call, in a child of its own or on copies, and return what is known of it (:class:`Call`)."""
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
    own_words = False

    def called(*args: Any, **kwargs: Any) -> Any:
        nonlocal own_words
        try:
            return function(*args, **kwargs)
        except Exception as error:
            own_words = _in_own_words(error)
            raise

    try:
        with pipeline.all_eager():
            outcome = outcome_of(called, roots, args, kwargs, None)
    finally:
        logging.getLogger().removeHandler(said)
        warnings.warn = warn
    outcome.random["python"] = zlib.adler32(repr(random.getstate()).encode())  # (a hash is another in each process)
    for place in list(outcome.states):  # (what only a text names, as the module `torch`, is no difference)
        name = re.match(r"global \w+", place)
        if name is not None and name[0] not in roots:
            del outcome.states[place]
    return {"outcome": outcome, "taken": frozenset(forcing.taken), "said": said.lines, "own_words": own_words}


def _in_own_words(error: BaseException) -> bool:
    """Return whether a statement raised an error, or it names a key; else the words are those of an operation."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return isinstance(error, KeyError) or trace is None or (
        trace.tb_frame.f_code.co_code[trace.tb_lasti] in (dis.opmap["RAISE_VARARGS"], dis.opmap.get("RERAISE"))
        and not trace.tb_frame.f_globals.get("__name__", "").startswith("torch."))


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
