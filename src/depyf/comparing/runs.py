"""One call, run several times from the same start: in eager Python, as its compiled versions are, and compiled afresh.

Each run is done in a fork (:mod:`depyf.capture.forked`), so it has the program's own objects and leaves nothing; where
no process can be forked, on copies in this one (``state``).
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from types import CodeType, FunctionType
from typing import Any, TypeVar
from unittest import mock

import torch

from ..capture import forked
from ..capture.object_facts import closure_values
from ..capture.torch_private import cache_entries, compiled_callables, hooks, pipeline
from ..capture.torch_private.hooks import no_compilation
from ..capture.torch_private.operations import without_side_effects
from ..records.model import Guard
from ..torch_text.global_names import resumed_function
from ..torch_text.guards import parse_guards
from ..values import frozen
from .outcome import Disagreement, Outcome, disagreements, outcome_of
from .reachable import Reachable, TensorState
from .recording import Recorder, compiled_copy, stage_backend
from .reference import Tolerance
from .state import CannotRepeat, repeatable, seed_random_numbers

Result = TypeVar("Result")
#: Why a place is not judged whose value follows random numbers that compiled code draws in its own way.
OWN_DRAWS = "follows random numbers that the compiled code draws in its own way"
_EXACT = Tolerance(0.0, 0.0)


@frozen
class Served:
    """A compiled version that ran."""

    function: str  # name of the function, or of the resume function
    version: str  # `"[0/1]"`
    resumes_at: int = 0  # the line that a resume function begins with; 0 for others
    filename: str = ""
    line: int = 0  # where the function begins
    guards: tuple[Guard, ...] = ()  # its conditions, where facts are asked for
    #: numbers of the call of which the guards say nothing: `"s = 4.0"`; where facts are asked for
    free: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """``"forward [0/1]"``, ``"resume function for line 7 [1/0]"``."""
        function = f"resume function for line {self.resumes_at}" if self.resumes_at else self.function
        return f"{function} {self.version}"


@frozen
class Loaded:
    """The versions that ran, in order; whether none fitted some function, and the called function among these."""

    served: tuple[Served, ...]
    missed: bool
    nothing_fits: bool


@frozen
class Findings:
    """The places that differ from eager Python, those that are not judged, the largest difference, also by rounding."""

    differing: tuple[Disagreement, ...]
    not_judged: tuple[Disagreement, ...]
    largest: float = 0.0


@dataclass
class JudgedCall:
    """A call that is judged."""

    compiled: Any  # what is called: as `torch.compile` returned it, or not compiled
    function: Any  # the user's function or module that it runs
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    #: up to which values are equal; by default what rounding can make, measured
    tolerance: Tolerance = field(default_factory=Tolerance)
    backward: bool | None = None  # run the backward pass, too; `None`: if results require gradients
    limit: float = 600.0  # seconds for each run
    here: bool = False  # run on copies in this process, not in forked ones
    _eager: dict[Any, Outcome] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name of the function, or of the module's class."""
        name: str = getattr(self.function, "__qualname__", type(self.function).__qualname__)
        return name

    @property
    def roots(self) -> dict[str, Any]:
        """What the call can change besides its arguments, by name."""
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
    def backend(self) -> Any:
        """The backend that it was compiled with; ``None`` where that is not known."""
        arguments = cache_entries.compiled_with(self.compiled)
        return arguments.backend if arguments is not None else None

    # --- runs -----------------------------------------------------------------------------------------
    def run(self, work: Callable[[tuple[Any, ...], dict[str, Any]], Result]) -> Result:
        """Return the result of ``work(args, kwargs)``, and undo its effects.

        Raises:
            ChildFailed: it failed, or the call cannot be repeated here; the message says why.
        """
        if not self.here:
            return forked.in_child(lambda: work(self.args, self.kwargs), self.limit)
        try:
            with forked.judging(), repeatable(self.roots, self.args, self.kwargs) as (args, kwargs):
                return work(args, kwargs)
        except (Exception, SystemExit) as error:  # as of a child
            said = "" if isinstance(error, CannotRepeat) else f"{type(error).__name__}: "
            raise forked.ChildFailed(f"{said}{error}") from error

    def in_eager_python(
        self, asks: bool = False, measured: bool = False, nudged: bool = False, seed: int | None = None,
        reseeded: frozenset[str] = frozenset(),
    ) -> Outcome:
        """Run the call in eager Python, once for the same options.

        Args:
            asks: ``torch.compiler.is_compiling()`` is true for the program.
            measured: measure how far rounding may take each value.
            nudged: all numbers that the call begins with are changed by about their last digit.
            seed, reseeded: the random numbers that are drawn otherwise, from this seed (``"torch"``, ``"numpy"``).
        """
        def work(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Outcome:
            if nudged:
                _nudge([args, kwargs, self.function, getattr(self.function, "__self__", None)])
            if seed is not None:
                seed_random_numbers(seed, reseeded)
            with pipeline.all_eager(), contextlib.ExitStack() as stack:
                for name in ("is_compiling", "is_dynamo_compiling") if asks else ():
                    stack.enter_context(mock.patch.object(torch.compiler, name, lambda: True))
                return outcome_of(self.function, self.roots, args, kwargs, self.backward, measured)

        key = asks, measured, nudged, seed, reseeded
        if key not in self._eager:
            self._eager[key] = self.run(work)
        return self._eager[key]

    def as_loaded(self, facts: bool = False) -> Outcome:
        """Run the call as the compiled versions are; ``extra`` of the outcome is :class:`Loaded`.

        What no version fits is compiled, as the program would do it; in this process it runs in plain Python.

        Args:
            facts: also return guards and free numbers of the versions.
        """
        def work(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Outcome:
            hooks.never_compile()
            missed: list[CodeType] = []
            ran: list[CodeType] = []

            def profiled(*args: Any, **kwargs: Any) -> Any:
                before = sys.getprofile()
                sys.setprofile(lambda frame, event, _: ran.append(frame.f_code) if event == "call" else None)
                try:
                    return self.compiled(*args, **kwargs)
                finally:
                    sys.setprofile(before)

            with contextlib.ExitStack() as stack:
                if self.here:
                    stack.enter_context(no_compilation(missed.append))
                else:
                    stack.callback(hooks.on_bytecode(lambda original, transformed: missed.append(original)))
                result = outcome_of(profiled, self.roots, args, kwargs, self.backward)
            result.extra = self._loaded(ran, missed, facts)
            return result

        return self.run(work)

    def afresh(
        self, make: Callable[[], contextlib.AbstractContextManager[Any]], ask: Callable[[], Any] = lambda: None,
        settings: Callable[[], contextlib.AbstractContextManager[None]] = pipeline.isolated_compile,
        dynamic: bool | None = None,
    ) -> Outcome:
        """Run the call compiled anew.

        Args:
            make: makes the context of a backend.
            ask: is called afterwards, for the outcome's ``extra``.
            settings: makes the context in which torch compiles.
        """
        def work(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Outcome:
            hooks.never_compile()
            if self.code is not None and not self.here:
                pipeline.forget(self.code)
            with settings(), make() as backend:
                compiled = compiled_copy(self.function, backend, dynamic)
                result = outcome_of(compiled, self.roots, args, kwargs, self.backward)
                result.extra = ask()  # (what was compiled is still there)
                return result

        return self.run(work)

    def at_stage(self, stage: str, recorder: Recorder, dynamic: bool | None) -> Outcome:
        """Run the call as a stage of a compilation made afresh; ``extra`` of the outcome: graphs, and notes on them."""
        return self.afresh(lambda: stage_backend(stage, recorder), lambda: (recorder.graphs, recorder.notes),
                           dynamic=dynamic)

    # --- judging --------------------------------------------------------------------------------------
    def against_eager(
        self, actual: Outcome, own_random: frozenset[str] = frozenset(), *, may_ask: bool = True,
    ) -> Findings:
        """Return where an outcome differs from eager Python by more than rounding and chance explain.

        Args:
            own_random: the random numbers that it draws in its own way.
            may_ask: accept what the program does in eager Python where ``torch.compiler.is_compiling()`` is true.
        """
        findings = self._against(actual, own_random, False)
        asked = self._against(actual, own_random, True) if findings.differing and may_ask else findings
        return findings if asked.differing else asked

    def _against(self, actual: Outcome, own_random: frozenset[str], asks: bool) -> Findings:
        expected = self.in_eager_python(asks)
        # (Of a large tensor that only one of the runs changed the other has no value.)
        pairs = [(state, expected.states.get(place)) for place, state in actual.states.items()]
        originals = Reachable({"args": self.args, "kwargs": self.kwargs, **self.roots}).states if any(
            isinstance(one, TensorState) and isinstance(other, TensorState) and (one.value is None) != (
                other.value is None) for one, other in pairs) else {}
        compared = functools.partial(disagreements, actual, expected, own_random=own_random, originals=originals)
        exact = compared(tolerance=_EXACT)
        if all(each.why_not for each in exact):
            return Findings((), tuple(exact))
        measured = self.in_eager_python(asks, measured=True) if self.tolerance == Tolerance() else None
        found = [replace(each, why_not=each.why_not or self._why_not_judged(each, expected, measured, own_random, asks))
                 for each in compared(tolerance=self.tolerance, reference=measured)]
        differing, not_judged = (tuple(each for each in found if bool(each.why_not) == unknown)
                                 for unknown in (False, True))
        return Findings(differing, not_judged, max(each.distance for each in exact if not each.why_not))

    def _why_not_judged(
        self, found: Disagreement, expected: Outcome, measured: Outcome | None, own_random: frozenset[str], asks: bool,
    ) -> str:
        """Return why a place says nothing about the compiler: runs of eager Python may differ there."""
        if found.structural:
            return ""

        def varies(reference: Outcome | None = None, **options: Any) -> dict[str, float]:
            """Return the places where another run of eager Python leaves something else, and by how much."""
            other = self.in_eager_python(asks, **options)
            return {each.place: each.distance for each in disagreements(
                other, expected, _EXACT, reference=reference or (other if "measured" in options else None))
                if not (each.structural or each.why_not)}

        if own_random & expected.drew and any(
                found.place in varies(seed=seed, reseeded=own_random) for seed in (1234567, 77)):
            return OWN_DRAWS
        if found.place in varies(measured=True):
            return "two runs in eager Python differ there"
        # (Of a tensor the rounding was measured, or the tolerance was given.)
        if not isinstance(expected.states.get(found.place), TensorState) or measured is not None and measured.scalars:
            distance = varies(measured, nudged=True).get(found.place)
            if distance is not None and not found.distance > 8 * distance:
                return "the last digit of a number decides it"
        return ""

    # --- versions -------------------------------------------------------------------------------------
    def _loaded(self, ran: list[CodeType], missed: list[CodeType], facts: bool) -> Loaded:
        versions = {id(entry.code): (code, entry) for code in (*cache_entries.known_codes(), self.code)
                    if code is not None for entry in cache_entries.entries(code)}
        served = []
        for code, entry in (versions[id(code)] for code in ran if id(code) in versions):
            _, resumes_at = resumed_function(code.co_name) or ("", 0)
            values = self.values() if facts and self.code is not None and code.co_name == self.code.co_name else None
            served.append(Served(code.co_name, entry.name, resumes_at, code.co_filename, code.co_firstlineno,
                                 parse_guards(str(entry.guard_manager)) if facts else (),
                                 tuple(_free(entry, values)) if values is not None else ()))
        return Loaded(tuple(served), bool(missed), any(code is self.code for code in missed))

    def values(self) -> dict[str, Any] | None:
        """Return the local variables that the call begins with; ``None`` where it is not of a plain function."""
        function: Any = self.plain
        if function is None:
            return None
        this = self.function if isinstance(self.function, torch.nn.Module) else getattr(self.function, "__self__", None)
        try:
            bound = inspect.signature(function).bind(*([this] if this is not None else []), *self.args, **self.kwargs)
        except (TypeError, ValueError):
            return None
        bound.apply_defaults()
        return {**bound.arguments, **closure_values(function)}


def _free(entry: cache_entries.Entry, values: dict[str, Any]) -> Iterator[str]:
    """Yield numbers of which the guards of a version say nothing: they also hold with other numbers."""
    if not entry.check(values).fits:
        return
    for name, value in values.items():
        if type(value) in (bool, int, float):
            others = [not value] if isinstance(value, bool) else [value + 3, value * 2 + 5]
            if all(entry.check({**values, name: other}).fits for other in others):
                yield f"{name} = {value!r}"


def _nudge(roots: list[Any]) -> None:
    """Change all floating-point numbers that a call begins with by about their last digit."""
    generator = torch.Generator().manual_seed(0)
    seen: set[int] = set()
    tensors = Reachable({str(number): each for number, each in enumerate(roots)}).tensors
    with without_side_effects():
        for tensor in tensors:
            if tensor.is_floating_point() and tensor.layout is torch.strided and tensor.device.type == "cpu" \
                    and tensor.numel() and tensor.untyped_storage().data_ptr() not in seen:
                seen.add(tensor.untyped_storage().data_ptr())
                with contextlib.suppress(RuntimeError):
                    signs = torch.rand(tensor.shape, generator=generator) * 2 - 1
                    tensor.data.mul_((1 + 4 * torch.finfo(tensor.dtype).eps * signs).to(tensor.dtype))
