"""The outcome of a call: its result or exception, what it printed and changed, gradients, random numbers drawn."""

from __future__ import annotations

import contextlib
import dis
import random
import re
import sys
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any

import torch

from ..capture.forked import caught_text
from ..capture.torch_private.operations import without_side_effects
from ..capture.torch_private.private_api import DYNAMO
from ..values import frozen
from .reachable import ALONE, GRADIENT, MOST, RESULT, Kind, Plain, Reachable, Same, TensorState
from .reference import Reference, Tolerance, difference, within_rounding

_NUMBER = re.compile(r"\d+\.\d*(?:e[+-]?\d+)?")
#: An ``assert`` on a tensor, which torch rewrites: it raises this in place of that.
_ASSERTION = ("RuntimeError", "AssertionError")
_RAISING = (dis.opmap["RAISE_VARARGS"], dis.opmap.get("RERAISE"))


@frozen
class Raised:
    """An exception that a call raised."""

    type: str
    text: str
    module: str  # of its class
    own_words: bool = False  # a statement of the program raised it, or it names a key; else an operation did

    @property
    def by_torch(self) -> bool:
        """Torch's compiler raised it."""
        return f"{self.module}.".startswith(DYNAMO)


@dataclass
class Outcome:
    """The outcome of a call."""

    states: dict[str, Any] = field(default_factory=dict)  # of everything that can be reached, by name
    raised: Raised | None = None
    raised_in_backward: Raised | None = None
    printed: tuple[str, str] = ("", "")  # to standard output and error
    random: dict[str, int] = field(default_factory=dict)  # checksums of the states of random numbers after the call
    drew: frozenset[str] = frozenset()  # those of which the call drew numbers
    left_out: bool = False  # there was more than is looked at
    #: exact and disturbed values of the numbers that were read out of tensors, by number
    scalars: dict[float, tuple[float, ...]] = field(default_factory=dict)
    incomplete: bool = False  # a result may follow from an operation whose rounding could not be measured
    extra: Any = None  # further facts of the run


@frozen
class Disagreement:
    """One place where a run differs from eager Python."""

    place: str  # `"result[0]"`, `"global log"`, `"args[0].grad"`
    part: str  # "result", "side effect", "printed text", "exception", "gradient" or "random state"
    text: str  # both states, in words
    distance: float = inf  # the largest absolute difference; infinite where it cannot be known
    # in what the tensors differ besides values: "structure" (dtype, strides), or it shares memory ("shared memory")
    structural: str = ""
    why_not: str = ""  # why it is not judged; `""`: it is a difference

    def __str__(self) -> str:
        return f"{self.place}: {self.why_not or self.text}"


def outcome_of(
    function: Callable[..., Any], roots: Mapping[str, Any], args: tuple[Any, ...], kwargs: dict[str, Any],
    backward: bool | None, measured: bool = False,
) -> Outcome:
    """Run a call and describe its outcome; nothing is put back here.

    Args:
        roots: what it can change besides its arguments, by name.
        backward: run the backward pass of its results, too; ``None``: if they require gradients.
        measured: measure how far rounding may take each value.
    """
    given = {"args": args, "kwargs": kwargs, **roots}
    before = Reachable(given)
    drawn = random_states()
    result = Outcome()
    value: Any = None
    reference = Reference() if measured else None
    with caught_text() as (out, err), reference or contextlib.nullcontext():
        try:
            value = function(*args, **kwargs)
        except (Exception, SystemExit) as error:  # noqa: BLE001  (it is the outcome)
            result.raised = raised(error)
        result.random = random_states()
        if result.raised is None and backward is not False:
            try:
                _run_backward(value, [each for each in before.tensors if each.requires_grad])
            except Exception as error:  # noqa: BLE001
                result.raised_in_backward = raised(error)
    if reference is not None:
        result.scalars, result.incomplete = reference.scalars, bool(reference.incomplete)
    result.printed = out.getvalue(), err.getvalue()
    result.drew = frozenset(name for name, state in result.random.items() if drawn.get(name) != state)
    after = Reachable(given if result.raised is not None else {**given, RESULT: value}, before.checksums, reference)
    result.states, result.left_out = after.states, after.left_out
    return result


def raised(error: BaseException) -> Raised:
    """Describe an exception."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    own_words = isinstance(error, KeyError) or trace is None or (
        trace.tb_frame.f_code.co_code[trace.tb_lasti] in _RAISING
        and not trace.tb_frame.f_globals.get("__name__", "").startswith("torch."))
    return Raised(type(error).__qualname__, str(error), type(error).__module__, own_words)


def _run_backward(value: Any, given: list[torch.Tensor]) -> None:
    """Run the backward pass of all results, each weighed so that no two elements count alike.

    It ends at ``given`` tensors that the program computed before the call: what led to them is not part of the call.
    """
    outputs = [each for each in _tensors(value) if each.requires_grad and each.grad_fn is not None
               and (each.is_floating_point() or each.is_complex())]
    if outputs:
        with without_side_effects():
            weights = [torch.linspace(0.5, 1.5, max(each.numel(), 1), dtype=torch.float64, device=each.device)[
                : each.numel()].reshape(each.shape).to(each.dtype) for each in outputs]
        computed = [each for each in given if not each.is_leaf]
        for each in computed:
            each.retain_grad()
        torch.autograd.backward(outputs, weights, inputs=given if computed else None)


def _tensors(value: Any) -> list[torch.Tensor]:
    found: list[torch.Tensor] = []
    pending: list[Any] = [value]
    seen: set[int] = set()
    while pending:
        each = pending.pop(0)
        if id(each) in seen or len(seen) > 10_000:
            continue
        seen.add(id(each))
        if isinstance(each, torch.Tensor):
            found.append(each)
        elif isinstance(each, (list, tuple)):
            pending += each
        elif isinstance(each, Mapping):
            pending += each.values()
        elif hasattr(each, "__dict__") and not isinstance(each, (type, torch.nn.Module)) and not callable(each):
            pending += vars(each).values()
    return found


def random_states() -> dict[str, int]:
    """Return a checksum of each state of random numbers."""
    with without_side_effects():
        states = {"torch": zlib.adler32(torch.get_rng_state().numpy()),
                  "python": zlib.adler32(repr(random.getstate()).encode())}
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        _, keys, position, *rest = numpy.random.get_state()
        states["numpy"] = hash((zlib.adler32(keys.tobytes()), position, *rest))
    return states


# --- two outcomes ---------------------------------------------------------------------------------
def disagreements(
    actual: Outcome, expected: Outcome, tolerance: Tolerance, *, own_random: frozenset[str] = frozenset(),
    reference: Outcome | None = None, originals: Mapping[str, Any] | None = None,
) -> list[Disagreement]:
    """Return where one run differs from another, and what of them cannot be compared (with ``why_not``).

    Args:
        own_random: the random numbers that each draws in its own way (``"torch"``, ``"numpy"``).
        reference: the same run of eager Python, measured: values may be as far apart as rounding can take them.
        originals: states before the call, for large tensors that one of the two did not change.
    """
    found = _exceptions(actual, expected)
    if any(not each.why_not for each in found):
        return found
    if actual.left_out or expected.left_out:
        found.append(Disagreement("objects", "side effect", "", why_not=f"a set has objects in no order, or more than "
                                  f"{MOST} are reached"))
    for stream, text, expected_text in zip(("standard output", "standard error"), actual.printed, expected.printed):
        if not _same_text(text, expected_text, reference is not None):
            found.append(Disagreement(stream, "printed text", _texts(text, expected_text)))
    for name, state in expected.random.items():
        if actual.random.get(name) != state and name not in own_random:
            found.append(Disagreement(f"random state of {name}", "random state",
                                      "is another one afterwards than after the call in eager Python"))
    for place in dict.fromkeys([*expected.states, *actual.states]):
        one, other = actual.states.get(place), expected.states.get(place)
        if isinstance(one, TensorState) and isinstance(other, TensorState):
            differs = _tensors_differ(one, other, tolerance, reference, place, (originals or {}).get(place))
        else:
            differs = _objects_differ(one, other, tolerance, reference)
        if differs is not None:
            is_result = place.startswith(RESULT) and (place == RESULT or place[len(RESULT)] in "[.")
            part = "result" if is_result else "gradient" if place.startswith(GRADIENT) else "side effect"
            found.append(Disagreement(place, part, *differs))
    return found


def _exceptions(actual: Outcome, expected: Outcome) -> list[Disagreement]:
    found = []
    for name, one, other in (
            ("exception", actual.raised, expected.raised),
            ("exception of the backward pass", actual.raised_in_backward, expected.raised_in_backward)):
        if one is other is None:
            continue
        if one is not None and other is not None and (
                one.type == other.type or (one.type, other.type) == _ASSERTION or one.by_torch):
            # (Torch's tracing raises its own in place of the program's, before anything ran, and has its own texts.)
            if one.type == other.type != "RuntimeError" and one.text != other.text:
                found.append(Disagreement(name, "exception", "", why_not="its text is another one"))
            continue
        said = ["none" if each is None else f"{each.type}: {(each.text.splitlines() or [''])[0][:120]}"
                for each in (one, other)]
        found.append(Disagreement(name, "exception", f"{said[0]}; in eager Python {said[1]}"))
    return found


def _same_text(actual: str, expected: str, up_to_rounding: bool) -> bool:
    """Return whether two runs printed the same; ``up_to_rounding``: numbers may differ by a thousandth."""
    if actual == expected or not up_to_rounding:
        return actual == expected
    numbers = [list(map(float, _NUMBER.findall(text))) for text in (actual, expected)]
    return _NUMBER.sub("", actual) == _NUMBER.sub("", expected) and len(numbers[0]) == len(numbers[1]) and all(
        abs(one - other) <= 1e-3 * max(abs(one), abs(other)) for one, other in zip(*numbers))


def _texts(actual: str, expected: str) -> str:
    for number, (one, other) in enumerate(zip(actual.splitlines(), expected.splitlines()), 1):
        if one != other:
            return f"line {number} is {one[:80]!r}; in eager Python {other[:80]!r}"
    return f"{actual[-80:]!r}; in eager Python {expected[-80:]!r}"


def _objects_differ(
    actual: Any, expected: Any, tolerance: Tolerance, reference: Outcome | None,
) -> tuple[str, float, str] | None:
    """Return how two states differ, by how much, and in what of their structure; ``None`` where they are equal."""
    equal, distance = actual == expected, inf
    if isinstance(actual, Plain) and isinstance(expected, Plain):
        one, other = actual.value, expected.value
        equal, distance = difference(one, other, tolerance)
        values = reference.scalars.get(other) if reference is not None and isinstance(other, float) else None
        if not equal and values is not None and isinstance(one, float):
            # (A number that float32 has was read out of such a tensor.)
            dtype = torch.float32 if torch.tensor(other, dtype=torch.float32).item() == other else torch.float64
            equal = within_rounding(torch.tensor(one, dtype=dtype), torch.tensor(other, dtype=dtype),
                                    tuple(torch.tensor(each, dtype=torch.float64) for each in values))
    return None if equal else (f"{_in_words(actual)}; in eager Python {_in_words(expected)}", distance, "")


def _tensors_differ(
    actual: TensorState, expected: TensorState, tolerance: Tolerance, reference: Outcome | None, place: str,
    original: Any,
) -> tuple[str, float, str] | None:
    """Return how two tensors differ, as :func:`_objects_differ` does."""
    for name, one in actual.facts.items():
        if one != (other := expected.facts.get(name)):
            if name == "it":
                return f"it {one}; in eager Python it {other}", inf, "shared memory" if one != ALONE else "structure"
            return f"{name} is {one}; in eager Python {other}", inf, "structure" * (name != "shape")
    value, expected_value = (each.value if each.value is not None or original is None else original.value
                             for each in (actual, expected))
    if value is None or expected_value is None:
        return None if value is expected_value else ("it was changed in one of the runs only", inf, "")
    if torch.equal(value, expected_value):
        return None
    equal, distance = difference(value, expected_value, tolerance)
    measured = reference.states.get(place) if reference is not None else None
    if reference is not None and isinstance(measured, TensorState) and measured.reference is not None:
        # (What is measured need not be guessed by the dtype.)
        equal = equal and (reference.incomplete or tolerance != Tolerance()) or _is_rounded(
            value, expected_value, measured)
    if equal:
        return None
    if value.numel() == 1:
        return f"{value.item()!r}; in eager Python {expected_value.item()!r}", distance, ""
    return f"differs by up to {distance:.3g}", distance, ""


def _is_rounded(actual: torch.Tensor, expected: torch.Tensor, measured: TensorState) -> bool:
    """Return whether rounding alone explains the difference of two tensors."""
    value, reference = measured.value, measured.reference
    if reference is None or value is None or (reference[0].shape, value.dtype) != (expected.shape, expected.dtype):
        return False
    repeats = torch.equal(value, expected) or (
        expected.is_floating_point() and within_rounding(expected, value, reference))
    return repeats and within_rounding(actual, expected, reference)  # (else two runs of eager Python differ)


def _in_words(state: Any) -> str:
    match state:
        case None:
            return "not there"
        case Plain(value):
            return repr(value)[:120]
        case Kind(text):
            return text[:120]
        case Same(place):
            return f"the object at {place}"
    return "a tensor"
