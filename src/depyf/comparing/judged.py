"""One call, run several times from the same start: in eager Python, as its compiled versions are, and compiled afresh.

Each run is done in a process of its own (:mod:`depyf.capture.apart`), so it has the program's own objects and leaves
nothing behind.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import CodeType, FunctionType
from typing import Any

import torch

from ..capture.apart import in_child
from ..capture.torch_private import cache_entries, compiled_callables, hooks, pipeline, resume_code
from ..capture.torch_private.loaded import LoadedGraph, loaded_graphs
from ..capture.torch_private.quiet import without_side_effects
from ..capture.torch_private.stance import no_compilation
from ..records.model import Guard
from ..torch_text.guards import parse_guards
from .outcome import Disagreement, Outcome, disagreements, outcome_of
from .reachable import Reachable, TensorState
from .tensors import Tolerance

#: How much further apart than after a change of the last digit of all numbers results may be.
_NOISE = 8.0


@dataclass(frozen=True)
class Served:
    """A compiled version that ran.

    Attributes:
        function: name of the function, or of the resume function.
        version: ``"[0/1]"``.
        resumes_at: the line that a resume function begins with; 0 for others.
        filename, line: where the function begins.
    """

    function: str
    version: str
    resumes_at: int = 0
    filename: str = ""
    line: int = 0


@dataclass(frozen=True)
class VersionFacts:
    """What a version is made of, as it is loaded.

    Attributes:
        guards: its conditions.
        graphs: its graphs, in the order in which its code names them.
        free: numbers of the call of which the guards say nothing: ``"s = 4.0"``.
    """

    guards: tuple[Guard, ...] = ()
    graphs: tuple[LoadedGraph, ...] = ()
    free: tuple[str, ...] = ()


@dataclass(frozen=True)
class Loaded:
    """What is said of a run of the versions that exist.

    Attributes:
        served: the versions that ran, in order.
        missed: functions that were compiled, as no version fitted.
        nothing_fits: the function itself is among them.
        facts: of the versions that ran, where they are asked for.
    """

    served: tuple[Served, ...] = ()
    missed: tuple[str, ...] = ()
    nothing_fits: bool = False
    facts: dict[Served, VersionFacts] = field(default_factory=dict)


@dataclass
class JudgedCall:
    """A call and what is to be known of it.

    Attributes:
        compiled: what is called: as ``torch.compile`` returned it, or not compiled.
        function: the user's function or module behind it.
        args, kwargs: of the call.
        tolerance: up to which values are equal.
        backward: run the backward pass, too; ``None``: if results require gradients.
        limit: seconds for each run.
    """

    compiled: Any
    function: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    tolerance: Tolerance = field(default_factory=Tolerance)
    backward: bool | None = None
    limit: float = 600.0
    _noise: dict[frozenset[str], dict[str, float]] = field(default_factory=dict)
    _expected: Outcome | None = None
    _asked: Outcome | None = None

    @property
    def roots(self) -> dict[str, Any]:
        """What the function leads to, by name."""
        return {"module" if isinstance(self.function, torch.nn.Module) else "function": self.function}

    @property
    def plain(self) -> FunctionType | None:
        """The function that torch compiles, where it is written in Python."""
        inner = self.function.forward if isinstance(self.function, torch.nn.Module) else self.function
        inner = compiled_callables.innermost_function(getattr(inner, "__func__", inner))
        return inner if isinstance(inner, FunctionType) else None

    @property
    def code(self) -> CodeType | None:
        """Its code object."""
        return self.plain.__code__ if self.plain is not None else None

    @property
    def expected(self) -> Outcome:
        """What the call leaves in eager Python."""
        if self._expected is None:
            self._expected = self.in_eager_python()
        return self._expected

    def in_eager_python(self, before: Callable[[], None] = lambda: None) -> Outcome:
        """Run the call in eager Python.

        Args:
            before: is called first, in the process of the run.
        """
        def work() -> Outcome:
            before()
            with pipeline.all_eager():
                return self._outcome(self.function)

        return in_child(work, self.limit)

    def as_loaded(
        self, compiles: bool = True, facts: bool = False, before: Callable[[], None] = lambda: None,
    ) -> Outcome:
        """Run the call as the compiled versions are; ``extra`` of the outcome is :class:`Loaded`.

        Args:
            compiles: what no version fits is compiled, as the program would do it; else it runs as it is written.
            facts: tell what the versions are made of.
            before: is called first, in the process of the run.
        """
        def work() -> Outcome:
            before()
            hooks.never_compile("depyf")
            missed: list[CodeType] = []
            ran: list[CodeType] = []
            with contextlib.ExitStack() as stack:
                if compiles:
                    stack.callback(hooks.on_bytecode(lambda original, transformed: missed.append(original)))
                else:
                    stack.enter_context(no_compilation(missed.append))
                result = self._outcome(lambda *args, **kwargs: _profiled(
                    ran, lambda: self.compiled(*args, **kwargs)))
            result.extra = self._told(ran, missed, facts)
            return result

        return in_child(work, self.limit)

    def afresh(
        self, run: Callable[[], tuple[Any, Any]],
        settings: Callable[[], contextlib.AbstractContextManager[None]] = pipeline.isolated_compile,
    ) -> Outcome:
        """Run the call compiled anew.

        Args:
            run: called in the process of the run; returns what is called in place of the function, and what is called
                afterwards for the outcome's ``extra``.
            settings: makes the context in which torch compiles.
        """
        def work() -> Outcome:
            hooks.never_compile("depyf")
            with settings():
                function, tell = run()
                result = self._outcome(function)
                result.extra = tell()
                return result

        return in_child(work, self.limit)

    def against_eager(self, actual: Outcome, own_random: frozenset[str], *, may_ask: bool = True) -> list[Disagreement]:
        """Return where an outcome is another than in eager Python, beyond what the call's own noise explains.

        Args:
            actual: the outcome.
            own_random: the random numbers that it draws in its own way.
            may_ask: a program that asks whether torch compiles it is right where it does what it then wants.
        """
        originals = self._originals(actual)
        found = disagreements(actual, self.expected, self.tolerance, own_random=own_random, originals=originals)
        if not found:
            return found
        if self._asked is None and may_ask:
            self._asked = self.in_eager_python(_say_it_compiles)
        if may_ask and self._asked is not None and not disagreements(
                actual, self._asked, self.tolerance, own_random=own_random, originals=originals):
            return []
        return disagreements(actual, self.expected, self.tolerance, own_random=own_random,
                             noise=self._own_noise(own_random), originals=originals)

    # --- parts ------------------------------------------------------------------------------------
    def _outcome(self, function: Callable[..., Any]) -> Outcome:
        return outcome_of(function, self.roots, self.args, self.kwargs, self.backward)

    def _told(self, ran: list[CodeType], missed: list[CodeType], with_facts: bool) -> Loaded:
        by_code: dict[int, tuple[Served, cache_entries.Entry]] = {}
        codes = {id(code): code for code in (*cache_entries.known_codes(), self.code) if code is not None}
        for code in codes.values():
            for entry in cache_entries.entries(code):
                by_code[id(entry.code)] = Served(
                    code.co_name, entry.name, _resumed_line(code), code.co_filename, code.co_firstlineno), entry
        served = [by_code[id(code)] for code in ran if id(code) in by_code]
        facts = {each: self._facts(each, entry) for each, entry in served} if with_facts else {}
        names = tuple(dict.fromkeys(getattr(code, "co_qualname", code.co_name) for code in missed))
        own = self.code
        return Loaded(tuple(each for each, _ in served), names,
                      own is not None and any(code is own for code in missed), facts)

    def _facts(self, served: Served, entry: cache_entries.Entry) -> VersionFacts:
        namespace = getattr(self.plain, "__globals__", {})
        values = self.values() if self.code is not None and served.function == self.code.co_name else None
        return VersionFacts(parse_guards(str(entry.guard_manager)),
                            tuple(loaded_graphs(entry.code, namespace)),
                            tuple(_free(entry, values)) if values is not None else ())

    def values(self) -> dict[str, Any] | None:
        """Return the local variables that the call begins with; ``None`` where it is not of a plain function."""
        function = self.plain
        if function is None:
            return None
        this = self.function if isinstance(self.function, torch.nn.Module) else getattr(self.function, "__self__", None)
        try:
            bound = inspect.signature(function).bind(*([this] if this is not None else []), *self.args, **self.kwargs)
        except (TypeError, ValueError):
            return None
        bound.apply_defaults()
        values = dict(bound.arguments)
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
            with contextlib.suppress(ValueError):  # empty
                values[name] = cell.cell_contents
        return values

    def _originals(self, actual: Outcome) -> dict[str, Any]:
        """Return states before the call of large tensors that only one of the runs changed."""
        wanted = False
        for place, state in actual.states.items():
            other = self.expected.states.get(place)
            if isinstance(state, TensorState) and isinstance(other, TensorState) and \
                    (state.value is None) != (other.value is None):
                wanted = True
        if not wanted:
            return {}
        walk = Reachable()
        for name, value in {"args": self.args, "kwargs": self.kwargs, **self.roots}.items():
            walk.add(name, value)
        return walk.states

    def _own_noise(self, own_random: frozenset[str]) -> dict[str, float]:
        """Return how far each place is from itself, for reasons that are none of the compiler's.

        Infinite where a second run in eager Python gives another value, or one with other random numbers where the
        compiler draws its own; else a multiple of what a change of the last digit of all numbers makes.
        """
        if own_random in self._noise:
            return self._noise[own_random]
        noise: dict[str, float] = {}
        exact = Tolerance(0.0, 0.0)
        others = [self.in_eager_python()]
        if own_random & self.expected.drew:
            others += [self.in_eager_python(functools.partial(_reseed, own_random, seed)) for seed in (1234567, 77)]
        for other in others:
            for each in disagreements(other, self.expected, exact):
                noise[each.place] = float("inf")
        nudged = self.in_eager_python(lambda: _nudge(self))
        for each in disagreements(nudged, self.expected, exact):
            noise.setdefault(each.place, _NOISE * each.apart if each.apart != float("inf") else 0.0)
        self._noise[own_random] = noise
        return noise


def _profiled(ran: list[CodeType], call: Callable[[], Any]) -> Any:
    """Call, and note the code objects that run."""
    def profile(frame: Any, event: str, argument: Any) -> None:
        if event == "call":
            ran.append(frame.f_code)

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        return call()
    finally:
        sys.setprofile(before)


def _free(entry: cache_entries.Entry, values: dict[str, Any]) -> Iterator[str]:
    """Yield numbers of which the guards of a version say nothing: with other numbers they hold, too."""
    if not entry.check(values).fits:
        return
    for name, value in values.items():
        if type(value) in (bool, int, float):
            others = [not value] if isinstance(value, bool) else [value + 3, value * 2 + 5]
            if all(entry.check({**values, name: other}).fits for other in others):
                yield f"{name} = {value!r}"


def _resumed_line(code: CodeType) -> int:
    """Return the line that a resume function goes on with; 0 for another function."""
    if not resume_code.is_resume(code):
        return 0
    number = code.co_name.rpartition("_at_")[2]
    return int(number) if number.isdigit() else code.co_firstlineno


def _say_it_compiles() -> None:
    """In the process of a run: a program that asks whether torch compiles it is told that it does."""
    for name in ("is_compiling", "is_dynamo_compiling"):
        if hasattr(torch.compiler, name):
            setattr(torch.compiler, name, lambda: True)


def _reseed(names: frozenset[str], seed: int) -> None:
    """Have other random numbers drawn."""
    if "torch" in names:
        torch.manual_seed(seed)
    numpy = sys.modules.get("numpy")
    if "numpy" in names and numpy is not None:
        numpy.random.seed(seed)


def _nudge(call: JudgedCall) -> None:
    """Change all floating-point numbers that the call begins with by about their last digit."""
    state = random.getstate()
    generator = torch.Generator().manual_seed(0)
    seen: set[int] = set()
    with without_side_effects():
        for tensor in tensors_of(call):
            if tensor.is_floating_point() and tensor.layout is torch.strided and tensor.device.type == "cpu" \
                    and tensor.numel() and tensor.untyped_storage().data_ptr() not in seen:
                seen.add(tensor.untyped_storage().data_ptr())
                with contextlib.suppress(RuntimeError):
                    signs = torch.rand(tensor.shape, generator=generator) * 2 - 1
                    tensor.data.mul_((1 + 4 * torch.finfo(tensor.dtype).eps * signs).to(tensor.dtype))
    random.setstate(state)


def tensors_of(call: JudgedCall) -> Iterator[torch.Tensor]:
    """Yield the tensors that a call's arguments and its function lead to."""
    pending: list[Any] = [call.args, call.kwargs, call.function, getattr(call.function, "__self__", None)]
    seen: set[int] = set()
    while pending and len(seen) < 20_000:
        each = pending.pop(0)
        if id(each) in seen:
            continue
        seen.add(id(each))
        if isinstance(each, torch.Tensor):
            yield each
        elif isinstance(each, torch.nn.Module):
            yield from each.parameters()
            yield from each.buffers()
        elif isinstance(each, (list, tuple)):
            pending += each
        elif isinstance(each, dict):
            pending += each.values()
        elif hasattr(each, "__dict__") and not isinstance(each, type) and not callable(each):
            pending += vars(each).values()
        elif callable(each) and hasattr(each, "__closure__"):
            for cell in each.__closure__ or ():
                with contextlib.suppress(ValueError):
                    pending.append(cell.cell_contents)
            code = getattr(each, "__code__", None)
            pending += [each.__globals__[name] for name in getattr(code, "co_names", ())
                        if name in each.__globals__ and isinstance(each.__globals__[name], torch.Tensor)]
