"""Generated calls: each call that the program made, and variations of it, in plain Python, in a child process.

A process with the old texts gives outcomes for ``f``, ``x all zeros``, ``n > 0 forced True`` ...; one with the new
texts gives outcomes for the same calls. To force it, `if n > 0:` of a file becomes `if __depyf_force__(0, n > 0):`, and
`torch.where(n > 0, a, b)` becomes `torch.where(__depyf_force__(0, n > 0), a, b)`. Compiled code is not changed.
"""

from __future__ import annotations

import ast
import builtins
import dataclasses
import itertools
import logging
import re
import time
import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import torch

from ..capture import forked
from ..capture.torch_private import pipeline
from ..comparing.outcome import outcome_of
from ..comparing.reachable import Kind, Same
from ..comparing.state import repeatable, seed_random_numbers
from .outcome import MORE, Call, Conditions
from .variations import Variation, variations

_HELPER = "__depyf_force__"
MOST_CALLS = 4  #: Of each function so many calls are repeated; the first with all variations, the others as recorded.
#: Seconds that one input may take; and once one has not ended in that time, as in a loop that zeros make endless.
LIMIT, LIMIT_AFTER = 10.0, 2.0
LIMIT_OF_ALL = 90.0  #: Seconds for all generated calls of a run.
#: Places of modules and functions, of which one text names more than the other.
_OF_TEXT = re.compile(r"(global \w+|\w+ \(captured\))(\.__wrapped__)*")


class Generator:
    """Repeats the calls of a trial with other inputs, and with conditions of the change forced.

    They run in a child of this process, or where none can be forked (CUDA is in use) in this one. What a call changes
    is put back before the next.
    """

    def __init__(self, forcing: Forcing) -> None:
        self.forcing = forcing
        self.calls: list[Call] = []
        self._seen: Counter[str] = Counter()
        self._spent = 0.0

    def call(self, name: str, model: Any, compiled: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Repeat a call of the program, then make it in plain Python."""
        self.repeat(name, model, args, kwargs)
        with pipeline.all_eager():
            return model(*args, **kwargs)

    def repeat(self, name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Run a call of the program and, of the first of a function, its variations."""
        if forked.is_judging() or self._seen[name] >= MOST_CALLS:
            return
        self._seen[name] += 1
        number, began = self._seen[name], time.monotonic()
        owner = getattr(function, "__self__", function)
        inputs = itertools.islice(variations(function, owner, args, kwargs), None if number == 1 else 1)
        work = [(each, Call(name, number, each.name, forced)) for each in inputs for forced in self.forcing.choices]
        start, size, limit, until = 0, len(work), LIMIT, began + LIMIT_OF_ALL - self._spent
        while start < len(work):
            call = work[start][1]
            if start and time.monotonic() > until:
                self.calls.append(dataclasses.replace(call, input=MORE, forced={}, why_not="no time was left"))
                break
            rest, calls = work[start : start + size], list[Call]()
            try:
                calls = self._some(function, rest, limit) if forked.why_not() else forked.in_child(
                    lambda: self._some(function, rest, limit), limit)  # noqa: B023
                size *= 2
            except forked.ChildFailed as error:  # (half of them, then half of these, to know which fails)
                calls = [dataclasses.replace(call, why_not=str(error))] if size == 1 else []
                size = max(1, min(size, len(rest)) // 2)
                limit = LIMIT_AFTER if isinstance(error, forked.ChildTooSlow) else limit
            start += len(calls)
            self.calls += calls
        self._spent += time.monotonic() - began

    def _some(self, function: Callable[..., Any], work: list[tuple[Variation, Call]], limit: float) -> list[Call]:
        """Run calls in this process, for half of the seconds that one may take."""
        if forked.is_judging():
            torch.set_num_threads(1)
        calls, until = list[Call](), time.monotonic() + limit / 2
        for variation, call in work:
            try:
                calls.append(dataclasses.replace(call, **_run(function, variation, call.forced, self.forcing)))
            except Exception as error:  # noqa: BLE001  (of what cannot be put back, for example)
                calls.append(dataclasses.replace(call, why_not=str(error)))
            if time.monotonic() > until:
                break
        self.forcing.to = {}
        return calls


def _run(function: Callable[..., Any], variation: Variation, forced: Mapping[int, bool], forcing: Forcing,
         ) -> dict[str, Any]:
    """Run one generated call and return its attributes of :class:`Call`."""
    owner: Any = getattr(function, "__self__", function)
    roots = {"function": function} if owner is function and not isinstance(owner, torch.nn.Module) else {
        "self": owner, "function": function}
    with repeatable(roots, variation.args, variation.kwargs) as (args, kwargs):
        if variation.training is not None:
            owner.train(variation.training)
        forcing.to, forcing.taken = forced, set()
        seed_random_numbers(0)
        with _Messages() as messages, pipeline.all_eager():
            outcome = outcome_of(function, roots, args, kwargs, None)
    states = outcome.states
    named = {place: states.get(state.place) if isinstance(state, Same) else state for place, state in states.items()}
    outcome.states = {place: states[place] for place, state in named.items() if not (
        isinstance(state, Kind) and state.text.startswith(("module ", "function ")) and _OF_TEXT.fullmatch(place))}
    return {"outcome": outcome, "taken": frozenset(forcing.taken), "said": messages.lines}


class _Messages(logging.Handler):
    """Inside, collects log records and the warnings of Python code, without their lines in the program."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[tuple[str, str]] = []

    def __enter__(self) -> _Messages:
        logging.getLogger().addHandler(self)
        self._warn, warnings.warn = warnings.warn, self.warn
        return self

    def __exit__(self, *error: object) -> None:
        logging.getLogger().removeHandler(self)
        warnings.warn = self._warn

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append((record.levelname, record.getMessage()))

    def warn(self, message: Any, category: Any = None, *args: Any, **kwargs: Any) -> None:
        category = type(message) if isinstance(message, Warning) else category or UserWarning
        self.lines.append((category.__name__, str(message)))


# --- conditions of a change ---------------------------------------------------------------------------
class Forcing:
    """Forces conditions to a side, in this process."""

    def __init__(self, conditions: Conditions) -> None:
        count = itertools.count()
        self._numbers = {path: {text: number for texts, number in zip(tests, count) for text in texts}
                         for path, tests in conditions.items()}
        #: The ways to force the conditions: none, then each by itself, as sides by number.
        self.choices: list[Mapping[int, bool]] = [{}, *(
            {number: side} for number in range(next(count)) for side in (True, False))]
        self.to: Mapping[int, bool] = {}  # the current choice
        self.taken: set[tuple[int, bool]] = set()  # the sides that were taken, as (number, side)
        setattr(builtins, _HELPER, self)

    def put_into(self, tree: ast.Module, path: str) -> None:
        """Wrap the conditions of a file in calls of this object."""
        ast.fix_missing_locations(_Instrumented(self._numbers.get(path, {})).visit(tree))

    def __call__(self, number: int, test: Any) -> Any:
        """Return the test, or the side to which it is forced."""
        side = self.to.get(number)
        is_tensor = isinstance(test, torch.Tensor)
        if side is None:
            sides = set(test.detach().bool().flatten().tolist()) if is_tensor else {bool(test)}
            self.taken |= {(number, each) for each in sides}
            return test
        self.taken.add((number, side))
        return torch.full_like(test, side, dtype=torch.bool) if is_tensor else side


class _Instrumented(ast.NodeTransformer):
    def __init__(self, numbers: Mapping[str, int]) -> None:
        self.numbers = numbers

    def _wrapped(self, test: ast.expr) -> ast.expr:
        number = self.numbers.get(ast.unparse(test))
        match test:
            case _ if number is not None:
                return ast.Call(ast.Name(_HELPER, ast.Load()), [ast.Constant(number), test], [])
            case ast.BoolOp(ast.And(), [first, *rest]):  # (What is asked of Python's values first stays an `if`.)
                test.values = [first, self._wrapped(ast.BoolOp(ast.And(), rest) if rest[1:] else rest[0])]
        return test

    def visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, (ast.If, ast.IfExp)):
            node.test = self._wrapped(node.test)
        elif isinstance(node, ast.Call) and node.args and isinstance(node.func, ast.Attribute) and (
                node.func.attr in ("where", "cond")):
            node.args[0] = self._wrapped(node.args[0])
        return self.generic_visit(node)
