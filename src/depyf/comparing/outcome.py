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
from typing import Any, Literal

import torch

from ..capture.forked import caught_text
from ..capture.torch_private.operations import without_side_effects
from ..capture.torch_private.private_api import DYNAMO
from ..values import frozen
from .reachable import GRADIENT, RESULT, Kind, Plain, Reachable, Same, TensorState
from .reference import Reference, Tolerance, difference, within_rounding

_NUMBER = re.compile(r"\d+\.\d*(?:e[+-]?\d+)?")
#: An ``assert`` on a tensor, which torch rewrites: it raises this in place of that.
_ASSERTION = ("RuntimeError", "AssertionError")
_RAISING = (dis.opmap["RAISE_VARARGS"], dis.opmap.get("RERAISE"))
Part = Literal["result", "side effect", "printed text", "exception", "gradient", "random state"]


@frozen
class Raised:
    """An exception that a call raised.

    Attributes:
        module: of its class.
        own_words: a statement of the program raised it, or it names a key; else an operation did.
    """

    type: str
    text: str
    module: str
    own_words: bool = False

    @property
    def by_torch(self) -> bool:
        """Torch's compiler raised it."""
        return f"{self.module}.".startswith(DYNAMO)


@dataclass
class Outcome:
    """The outcome of a call.

    Attributes:
        states: of everything that can be reached, by name.
        printed: to standard output and error.
        random: checksums of the states of random numbers after the call.
        drew: those of which the call drew numbers.
        left_out: there was more than is looked at.
        scalars: exact and disturbed values of the numbers that were read out of tensors, by number.
        incomplete: a result may follow from an operation whose rounding could not be measured.
        extra: further facts of the run.
    """

    states: dict[str, Any] = field(default_factory=dict)
    raised: Raised | None = None
    raised_in_backward: Raised | None = None
    printed: tuple[str, str] = ("", "")
    random: dict[str, int] = field(default_factory=dict)
    drew: frozenset[str] = frozenset()
    left_out: bool = False
    scalars: dict[float, tuple[float, ...]] = field(default_factory=dict)
    incomplete: bool = False
    extra: Any = None


@frozen
class Disagreement:
    """One place where a run differs from eager Python.

    Attributes:
        place: ``"result[0]"``, ``"global log"``, ``"args[0].grad"``.
        part: its kind.
        text: both states, in words.
        distance: the largest absolute difference; infinite where it cannot be known.
        structural: the tensors differ in more than their values: dtype, strides, shared memory.
    """

    place: str
    part: Part
    text: str
    distance: float = float("inf")
    structural: bool = False

    def __str__(self) -> str:
        return f"{self.place}: {self.text}"


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
    found: dict[int, torch.Tensor] = {}
    pending: list[Any] = [value]
    seen: set[int] = set()
    while pending:
        each = pending.pop(0)
        if id(each) in seen or len(seen) > 10_000:
            continue
        seen.add(id(each))
        if isinstance(each, torch.Tensor):
            found[id(each)] = each
        elif isinstance(each, (list, tuple)):
            pending += each
        elif isinstance(each, Mapping):
            pending += each.values()
        elif hasattr(each, "__dict__") and not isinstance(each, (type, torch.nn.Module)) and not callable(each):
            pending += vars(each).values()
    return list(found.values())


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
    """Return where one run differs from another.

    Args:
        own_random: the random numbers that each draws in its own way (``"torch"``, ``"numpy"``).
        reference: the same run of eager Python, measured: values may be as far apart as rounding can take them.
        originals: states before the call, for large tensors that one of the two did not change.
    """
    found = _exceptions(actual, expected)
    if found:
        return found
    for number, stream in enumerate(("standard output", "standard error")):
        if not _same_text(actual.printed[number], expected.printed[number], reference is not None):
            found.append(Disagreement(stream, "printed text", _texts(actual.printed[number], expected.printed[number])))
    for name, state in expected.random.items():
        if actual.random.get(name) != state and name not in own_random:
            found.append(Disagreement(f"random state of {name}", "random state",
                                      "is another one afterwards than after the call in eager Python"))
    for place in dict.fromkeys([*expected.states, *actual.states]):
        difference_ = _states(actual.states.get(place), expected.states.get(place), tolerance,
                              reference, place, (originals or {}).get(place))
        if difference_ is not None:
            found.append(Disagreement(place, _part(place), *difference_))
    return found


def _is_number_rounded(actual: Any, expected: Any, reference: Outcome | None) -> bool:
    """Return whether rounding alone explains the difference of two numbers."""
    values = reference.scalars.get(expected) if reference is not None and isinstance(expected, float) else None
    if values is None or not isinstance(actual, float):
        return False
    # (A number that float32 has was read out of such a tensor.)
    dtype = torch.float32 if torch.tensor(expected, dtype=torch.float32).item() == expected else torch.float64
    return within_rounding(torch.tensor(actual, dtype=dtype), torch.tensor(expected, dtype=dtype),
                           tuple(torch.tensor(each, dtype=torch.float64) for each in values))


def _is_tensor_rounded(actual: torch.Tensor, expected: torch.Tensor, measured: TensorState) -> bool:
    """Return whether rounding alone explains the difference of two tensors."""
    value, reference = measured.value, measured.reference
    if reference is None or value is None or (reference[0].shape, value.dtype) != (expected.shape, expected.dtype):
        return False
    repeats = torch.equal(value, expected) or (
        expected.is_floating_point() and within_rounding(expected, value, reference))
    return repeats and within_rounding(actual, expected, reference)  # (else two runs of eager Python differ)


def _exceptions(actual: Outcome, expected: Outcome) -> list[Disagreement]:
    found = []
    for name, one, other in (
            ("exception", actual.raised, expected.raised),
            ("exception of the backward pass", actual.raised_in_backward, expected.raised_in_backward)):
        if one is None and other is None:
            continue
        if one is not None and other is not None and (
                one.type == other.type or (one.type, other.type) == _ASSERTION or one.by_torch):
            continue  # (torch's tracing raises its own in place of the program's, before anything ran)
        said = ["none" if each is None else f"{each.type}: {(each.text.splitlines() or [''])[0][:120]}"
                for each in (one, other)]
        found.append(Disagreement(name, "exception", f"{said[0]}; in eager Python {said[1]}"))
    return found


def _part(place: str) -> Part:
    if place.startswith(RESULT) and (place == RESULT or place[len(RESULT)] in "[."):
        return "result"
    return "gradient" if place.startswith(GRADIENT) else "side effect"


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


def _states(
    actual: Any, expected: Any, tolerance: Tolerance, reference: Outcome | None, place: str, original: Any,
) -> tuple[str, float, bool] | None:
    """Return how two states differ, by how much, and whether in structure; ``None`` where they are equal."""
    if isinstance(actual, TensorState) and isinstance(expected, TensorState):
        return _tensor_states(actual, expected, tolerance, reference, place, original)
    equal, distance = actual == expected, float("inf")
    if isinstance(actual, Plain) and isinstance(expected, Plain):
        equal, distance = difference(actual.value, expected.value, tolerance)
        equal = equal or _is_number_rounded(actual.value, expected.value, reference)
    return None if equal else (f"{_in_words(actual)}; in eager Python {_in_words(expected)}", distance, False)


def _tensor_states(
    actual: TensorState, expected: TensorState, tolerance: Tolerance, reference: Outcome | None, place: str,
    original: Any,
) -> tuple[str, float, bool] | None:
    for (name, one), (_, other) in zip(actual.facts, expected.facts):
        if one != other:
            return f"{name} is {one}; in eager Python {other}", float("inf"), name != "shape"
    if actual.stride != expected.stride:
        return f"stride is {actual.stride}; in eager Python {expected.stride}", float("inf"), True
    if (actual.memory, actual.offset) != (expected.memory, expected.offset):
        return f"it {_memory(actual)}; in eager Python it {_memory(expected)}", float("inf"), True
    values = [each.value if each.value is not None or original is None else original.value
              for each in (actual, expected)]
    if values[0] is None or values[1] is None:
        return None if values[0] is values[1] else ("it was changed in one of the runs only", float("inf"), False)
    if torch.equal(*values):
        return None
    equal, distance = difference(values[0], values[1], tolerance)
    measured = reference.states.get(place) if reference is not None else None
    if isinstance(measured, TensorState) and measured.reference is not None:
        if reference is not None and not reference.incomplete and tolerance == Tolerance():
            equal = False  # what is measured need not be guessed by the dtype
        equal = equal or _is_tensor_rounded(values[0], values[1], measured)
    if equal:
        return None
    if values[0].numel() == 1:
        return f"{values[0].item()!r}; in eager Python {values[1].item()!r}", distance, False
    return f"differs by up to {distance:.3g}", distance, False


def _memory(state: TensorState) -> str:
    return f"shares memory with {state.memory}" if state.memory else "has memory of its own"


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
