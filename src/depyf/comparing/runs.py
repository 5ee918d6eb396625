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
from ..capture.torch_private import cache_entries, compiled_callables, hooks, pipeline
from ..capture.torch_private.hooks import no_compilation
from ..capture.torch_private.operations import without_side_effects
from ..records.model import Guard
from ..torch_text.global_names import resumed_function
from ..torch_text.guards import parse_guards
from ..values import frozen
from .outcome import Disagreement, Outcome, disagreements, outcome_of
from .reachable import MOST, Reachable, TensorState
from .recording import compiled_copy
from .reference import Tolerance
from .state import CannotRepeat, repeatable, seed_random_numbers

Result = TypeVar("Result")
#: Why a place is not judged whose value follows random numbers that compiled code draws in its own way.
OWN_DRAWS = "follows random numbers that the compiled code draws in its own way"
_EXACT = Tolerance(0.0, 0.0)


@frozen
class Served:
    """A compiled version that ran.

    Attributes:
        function: name of the function, or of the resume function.
        version: ``"[0/1]"``.
        resumes_at: the line that a resume function begins with; 0 for others.
        filename, line: where the function begins.
        guards: its conditions, where facts are asked for.
        free: numbers of the call of which the guards say nothing: ``"s = 4.0"``; where facts are asked for.
    """

    function: str
    version: str
    resumes_at: int = 0
    filename: str = ""
    line: int = 0
    guards: tuple[Guard, ...] = ()
    free: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """``"forward [0/1]"``, ``"resume function for line 7 [1/0]"``."""
        function = f"resume function for line {self.resumes_at}" if self.resumes_at else self.function
        return f"{function} {self.version}"


@frozen
class Loaded:
    """The versions that ran, in order; the functions that none fitted; whether the called function is one of these."""

    served: tuple[Served, ...]
    missed: tuple[str, ...]
    nothing_fits: bool


@frozen
class Findings:
    """The result of a comparison with eager Python.

    Attributes:
        differing: the places with another value.
        not_judged: places that differ between runs of eager Python, too, with the reason.
        largest: the largest difference of values, rounding included.
    """

    differing: tuple[Disagreement, ...] = ()
    not_judged: tuple[tuple[Disagreement, str], ...] = ()
    largest: float = 0.0


@dataclass
class JudgedCall:
    """A call that is judged.

    Attributes:
        compiled: what is called: as ``torch.compile`` returned it, or not compiled.
        function: the user's function or module that it runs.
        args, kwargs: of the call.
        tolerance: up to which values are equal; by default what rounding can make, measured.
        backward: run the backward pass, too; ``None``: if results require gradients.
        limit: seconds for each run.
        here: run on copies in this process, not in forked ones.
    """

    compiled: Any
    function: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    tolerance: Tolerance = field(default_factory=Tolerance)
    backward: bool | None = None
    limit: float = 600.0
    here: bool = False
    _eager: dict[Any, Outcome] = field(default_factory=dict)

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
        except CannotRepeat as error:
            raise forked.ChildFailed(str(error)) from error
        except (Exception, SystemExit) as error:  # as of a child
            raise forked.ChildFailed(f"{type(error).__name__}: {error}") from error

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
        key = asks, measured, nudged, seed, reseeded
        if key not in self._eager:
            def work(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Outcome:
                if nudged:
                    _nudge([args, kwargs, self.function, getattr(self.function, "__self__", None)])
                if seed is not None:
                    seed_random_numbers(seed, reseeded)
                with pipeline.all_eager(), contextlib.ExitStack() as stack:
                    for name in ("is_compiling", "is_dynamo_compiling"):
                        if asks and hasattr(torch.compiler, name):
                            stack.enter_context(mock.patch.object(torch.compiler, name, lambda: True))
                    return outcome_of(self.function, self.roots, args, kwargs, self.backward, measured)

            self._eager[key] = self.run(work)
        return self._eager[key]

    def as_loaded(
        self, compiles: bool = True, facts: bool = False, before: Callable[[], None] = lambda: None,
    ) -> Outcome:
        """Run the call as the compiled versions are; ``extra`` of the outcome is :class:`Loaded`.

        Args:
            compiles: what no version fits is compiled, as the program would do it; else, and in this process, it runs
                in plain Python.
            facts: also return guards and free numbers of the versions.
            before: is called first, in the process of the run.
        """
        def work(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Outcome:
            before()
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
                if compiles and not self.here:
                    stack.callback(hooks.on_bytecode(lambda original, transformed: missed.append(original)))
                else:
                    stack.enter_context(no_compilation(missed.append))
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
            with settings(), make() as backend:
                if self.here:
                    compiled = compiled_copy(self.function, backend, dynamic)
                else:
                    if self.code is not None:
                        pipeline.forget(self.code)
                    compiled = torch.compile(self.function, backend=backend, dynamic=dynamic)
                result = outcome_of(compiled, self.roots, args, kwargs, self.backward)
                result.extra = ask()
                return result

        return self.run(work)

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
        if findings.differing and may_ask:
            asked = self._against(actual, own_random, True)
            findings = findings if asked.differing else asked
        return findings

    def _against(self, actual: Outcome, own_random: frozenset[str], asks: bool) -> Findings:
        expected = self.in_eager_python(asks)
        originals = self._originals(actual, expected)
        compared = functools.partial(disagreements, expected=expected, own_random=own_random, originals=originals)
        exact = compared(actual, tolerance=_EXACT)
        unseen = _unseen(actual, expected)
        if not exact:
            return Findings((), unseen)
        measured = self.in_eager_python(asks, measured=True) if self.tolerance == Tolerance() else None
        found = compared(actual, tolerance=self.tolerance, reference=measured)
        differing, not_judged = [], []
        for each in found:
            why = self._why_not_judged(each, expected, measured, own_random, asks)
            not_judged.append((each, why)) if why else differing.append(each)
        return Findings(tuple(differing), (*not_judged, *unseen), max(each.distance for each in exact))

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
                if not each.structural}

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

    def _originals(self, actual: Outcome, expected: Outcome) -> dict[str, Any]:
        """Return states before the call of large tensors that only one of the runs changed."""
        for place, state in actual.states.items():
            other = expected.states.get(place)
            if isinstance(state, TensorState) and isinstance(other, TensorState) and \
                    (state.value is None) != (other.value is None):
                return Reachable({"args": self.args, "kwargs": self.kwargs, **self.roots}).states
        return {}

    # --- versions -------------------------------------------------------------------------------------
    def _loaded(self, ran: list[CodeType], missed: list[CodeType], facts: bool) -> Loaded:
        versions = {id(entry.code): (code, entry) for code in (*cache_entries.known_codes(), self.code)
                    if code is not None for entry in cache_entries.entries(code)}
        served = tuple(self._served(*versions[id(code)], facts) for code in ran if id(code) in versions)
        names = tuple(dict.fromkeys(getattr(code, "co_qualname", code.co_name) for code in missed))
        own = self.code
        return Loaded(served, names, own is not None and any(code is own for code in missed))

    def _served(self, code: CodeType, entry: cache_entries.Entry, facts: bool) -> Served:
        _, resumes_at = resumed_function(code.co_name) or ("", 0)
        served = Served(code.co_name, entry.name, resumes_at, code.co_filename, code.co_firstlineno)
        if not facts:
            return served
        values = self.values() if self.code is not None and code.co_name == self.code.co_name else None
        return replace(served, guards=parse_guards(str(entry.guard_manager)),
                       free=tuple(_free(entry, values)) if values is not None else ())

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


def _unseen(actual: Outcome, expected: Outcome) -> tuple[tuple[Disagreement, str], ...]:
    """Return what of two outcomes was not compared at all, and why."""
    found = []
    if actual.left_out or expected.left_out:
        found.append((Disagreement("objects", "side effect", ""),
                      f"a set has objects in no order, or more than {MOST} are reached"))
    for one, other in ((actual.raised, expected.raised), (actual.raised_in_backward, expected.raised_in_backward)):
        if one is None or other is None or one.type != other.type or one.type == "RuntimeError":
            continue  # (of the last torch has its own texts)
        if one.text != other.text:
            found.append((Disagreement("exception", "exception", ""), "its text is another one"))
    return tuple(found)


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
