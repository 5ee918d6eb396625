"""A call compared with the versions of a running function.

Torch's own guards decide; nothing is run, compiled or counted. The smallest change with which a version would fit is
found on the guards as records, made to copies of the arguments, and checked by torch's guards once more. The live
values of a frame are described without running the user's code.
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from ..capture.object_facts import MISSING
from ..capture.torch_private import cache_entries, private_api
from ..capture.torch_private.guards import full_guards
from ..capture.user_function import CalledFrame, meant_by_frame
from ..records.model import Guard, GuardFailure, SourceLocation
from ..torch_text.global_names import without_ids
from ..torch_text.guard_failures import guard_failures
from ..torch_text.guards import parse_guards
from ..torch_text.parsed import parsed_expression
from ..torch_text.user_expressions import user_expression
from .changes import smallest_change
from .conditions import Change, known
from .given import UNKNOWN, Given, Opaque, Symbol, TensorValue, shown
from .oracle import Failure, Fit, VersionFit, failure_of
from .written import device

_MOST_ITEMS = 1000  #: Containers with more items are not looked into.


class Described:
    """Descriptions of the values of a frame that guards name, made without running the user's code."""

    def __init__(self, values: Mapping[str, Any], namespace: Mapping[str, Any]) -> None:
        self._values = values
        self._namespace = namespace
        self._known: dict[int, tuple[Any, Any]] = {}  # by identity: the object, which stays alive, and its description

    def look(self, node: ast.expr) -> Any:
        """Return the description of an expression's value; ``UNKNOWN`` where reading it may run code."""
        value = self._live(node)
        return UNKNOWN if value is MISSING else self.describe(value)

    def shown(self, expression: str) -> str:
        """Return the value of an expression in the user's words or torch's, as text; ``""`` where it is not known."""
        match tree := parsed_expression(expression):
            case ast.Call(ast.Name("type"), [inner, *_]) if (of := self._live(inner)) is not MISSING:
                return _type_name(of)
        value = UNKNOWN if tree is None else known(tree, Given({}, {}, self.look))
        return "" if value is UNKNOWN else shown(value)

    def _live(self, node: ast.expr) -> Any:
        from ..capture.torch_private.frame_values import guarded_value  # (it imports torch)

        return guarded_value(node, self._values, self._namespace)

    def describe(self, value: Any) -> Any:
        """Return the description of a value; the same object for the same object."""
        known = self._known.get(id(value))
        if known is None:
            known = self._known[id(value)] = (value, self._new(value))
        return known[1]

    def _new(self, value: Any) -> Any:
        torch = sys.modules["torch"]
        kind = type(value)
        if value is None or kind in (bool, int, float, complex, str, bytes):
            return value
        if kind in (torch.Tensor, torch.nn.Parameter) and _plain(value):
            return TensorValue(tuple(map(int, value.shape)), tuple(map(int, value.stride())),
                               str(value.dtype).removeprefix("torch."), str(value.device), value.requires_grad,
                               kind.__name__, value.is_inference())
        if kind is torch.dtype:
            return Symbol(str(value), "torch.dtype")
        if kind is torch.device:
            return device(str(value))
        if kind in (list, tuple, set) and len(value) <= _MOST_ITEMS:
            return kind(map(self.describe, value))
        if kind is dict and len(value) <= _MOST_ITEMS:
            return {self.describe(key): self.describe(item) for key, item in value.items()}
        return Opaque(_type_name(value))


def _plain(tensor: Any) -> bool:
    """Return whether shape, strides, dtype, device and gradient are all that torch's guards see of a tensor."""
    return (tensor.layout is sys.modules["torch"].strided
            and not (tensor.is_conj() or tensor.is_neg() or tensor.is_quantized))


def _type_name(value: Any) -> str:
    kind = type(value)
    return f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.")


def state() -> dict[str, Any]:
    """Return torch's settings that have public names, by their names in ``check_global_state``."""
    torch = sys.modules["torch"]
    return {
        "grad_mode": torch.is_grad_enabled(), "inference_mode": torch.is_inference_mode_enabled(),
        "default_dtype": Symbol(str(torch.get_default_dtype()), "torch.dtype"),
        "num_threads": torch.get_num_threads(),
        "autocast": {device: Symbol(str(torch.get_autocast_dtype(device)), "torch.dtype") for device in ("cpu", "cuda")
                     if torch.is_autocast_enabled(device)},
        "deterministic_algorithms": torch.are_deterministic_algorithms_enabled()}


# --- Versions of a running function ------------------------------------------------------------------
#: Torch does not say which functions it skips.
_SKIPPED = "whether torch skips the function since its last attempt to compile it, which ended with {}"
#: Larger tensors are not allocated.
_MOST_BYTES = 1 << 27
Guards = dict[int, tuple[Guard, ...]]


class RunningOracle:
    """Compares a call with the versions of a running function.

    Args:
        frame: the frame that the call begins with.
        compiled_with: cache entries of other backends are ignored.
        guards: those that were parsed already, by the id of torch's guard manager.
    """

    def __init__(
        self, frame: CalledFrame, compiled_with: cache_entries.CompiledWith | None, guards: Guards | None = None,
    ) -> None:
        private_api.GUARD_CHECK.get()  # raises where this torch cannot be asked
        self._frame = frame
        self._compiled_with = compiled_with
        self._entries = cache_entries.entries(frame.code, compiled_with)
        self._described = Described(frame.values, frame.namespace)
        self._guards: Guards = {} if guards is None else guards
        self._stance, self._unguarded = cache_entries.stance()
        self._failed = cache_entries.last_failure(frame.code)
        self.given = Given({}, state(), self._described.look)

    def answer(self) -> Fit:
        """Return which version serves the call, and why each other one does not."""
        frame = self._frame
        meant = meant_by_frame(frame.code, frame.values, frame.namespace, frame.function)
        place = SourceLocation(meant.code.co_filename, meant.code.co_firstlineno, meant.name)
        return Fit(meant.name, place, tuple(map(self._version, self._entries)), self._then())

    def changed_call(self, given: Given) -> Fit:
        """Return the answer for a call that was changed (:meth:`Given.changed`)."""
        changes = [Change(path, None, after, ast.parse(path, mode="eval").body)
                   for path, after in given.values.items()]
        values = _changed(self._frame.values, changes)
        if values is None:
            undecided = (("tensors of that size, which are too large to be made", 1),)
            return Fit(self._frame.code.co_name, None,
                       tuple(VersionFit(_id(entry), None, undecided=undecided) for entry in self._entries))
        frame = dataclasses.replace(self._frame, values=values)
        return RunningOracle(frame, self._compiled_with, self._guards).answer()

    def _version(self, entry: cache_entries.Entry) -> VersionFit:
        name, values, changed_by = _id(entry), self._frame.values, self._frame.changed_by
        if self._unguarded:
            violated = () if entry.check(values).fits else (self._failure(entry),)
            return VersionFit(name, None, undecided=(("guards, which torch skips as its stance says", 1),),
                              dropped=violated)
        if self._stance == "force_eager":
            return VersionFit(name, False, Failure("the stance of torch", "another", "'force_eager'"))
        undecided: tuple[tuple[str, int], ...] = (
            ((f"what {changed_by} make of the arguments", 1),) if changed_by else ())
        if not entry.given_up and entry.check(values).fits:
            undecided += ((_SKIPPED.format(self._failed), 1),) if self._failed else ()
            # The first guard that the program asked torch to drop and that the call does not meet.
            full = full_guards(entry.guard_manager)
            reason = full.failure_reason(values) if full is not None else ""
            dropped = (failure_of(self._read(reason)),) if reason else ()
            return VersionFit(name, None if undecided else True, undecided=undecided, dropped=dropped)
        if undecided:
            return VersionFit(name, None, undecided=undecided)
        changes, certain = ((), False) if entry.given_up else self._changes(entry)
        return VersionFit(name, False, self._failure(entry), changes, certain)

    def _read(self, reason: str) -> GuardFailure:
        reason = without_ids(reason, self._frame.namespace, self._frame.values)
        return guard_failures(reason, seen=self._described.shown)[0]

    def _failure(self, entry: cache_entries.Entry) -> Failure:
        first = self._read(cache_entries.failure_reason(entry, self._frame.values))
        cause = first.cause or next((guard.cause for guard in self._guards.get(id(entry.guard_manager), ())
                                     if first.source and user_expression(guard.source) == first.source and guard.cause),
                                    None)
        return failure_of(dataclasses.replace(first, cause=cause))

    def _changes(self, entry: cache_entries.Entry) -> tuple[tuple[Change, ...], bool]:
        """Return the smallest change of the call, none if torch's guards refuse it; and whether they accepted it."""
        key = id(entry.guard_manager)
        if key not in self._guards:
            printed = without_ids(str(entry.guard_manager), self._frame.namespace, {})
            self._guards[key] = parse_guards(printed)
        changes = smallest_change(self._guards[key], self.given)
        of_state = [change for change in changes if change.path in self.given.state]
        values = _changed(self._frame.values, [change for change in changes if change not in of_state])
        if not changes or values is None or any(change.path != "grad_mode" for change in of_state):
            return changes, False
        with contextlib.ExitStack() as stack:
            for change in of_state:
                stack.enter_context(sys.modules["torch"].set_grad_enabled(change.after))
            fits = entry.check(values).fits
        return (changes, True) if fits else ((), False)

    def _then(self) -> str:
        if self._stance == "fail_on_recompile":
            return "torch would raise an error, as its stance is 'fail_on_recompile'"
        if self._stance in ("force_eager", "eager_on_recompile"):
            return f"it would run in plain Python, as torch's stance is {self._stance!r}"
        if not self._entries:
            return "none is compiled yet, or torch leaves the function in plain Python"
        limit, count = cache_entries.recompile_limit(), len(self._entries)
        if limit is not None and count >= limit:
            return f"it would run in plain Python, as torch makes at most {limit} versions"
        return f"torch would compile another version ({count}{f' of at most {limit}' if limit else ''} so far)"


def _id(entry: cache_entries.Entry) -> str:
    return entry.name.strip("[]")


# --- changed calls: the local variables of a frame with copies of what changes ---------------------------
class _NotMade(Exception):
    """A value is not made: too large, or of a kind that cannot be."""


def _changed(values: Mapping[str, Any], changes: Sequence[Change]) -> dict[str, Any] | None:
    """Return the variables of a changed call, with the user's own objects; ``None`` where a value cannot be made."""
    result: dict[str, Any] = dict(values)
    try:
        for change in changes:
            result = _with_value(result, _keys(change.node), change.after)
    except (_NotMade, LookupError, TypeError):
        return None
    return result


def _keys(node: ast.expr) -> list[Any]:
    """Return the keys by which an expression of torch's, or one in the user's words, reads a value from the locals."""
    keys: list[Any] = []
    while isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        keys.insert(0, node.slice.value)
        node = node.value
    if not isinstance(node, ast.Name) or node.id == "G":
        raise _NotMade
    return keys if node.id == "L" and keys else [node.id, *keys]


def _with_value(holder: Any, keys: list[Any], wanted: Any) -> Any:
    """Return a copy of a container with another value where the keys lead to."""
    if not keys:
        return _made(wanted)
    if type(holder) not in (list, tuple, dict):
        raise _NotMade
    copy = list(holder) if type(holder) is tuple else holder.copy()
    copy[keys[0]] = _with_value(holder[keys[0]], keys[1:], wanted)
    return tuple(copy) if type(holder) is tuple else copy


def _made(wanted: Any) -> Any:
    """Return a value as it is described. A tensor's numbers are not set, as no guard looks at them."""
    torch = sys.modules["torch"]
    if isinstance(wanted, Symbol):
        raise _NotMade
    if not isinstance(wanted, TensorValue):
        return wanted
    dtype = getattr(torch, wanted.dtype, None)
    span = 1 + sum((size - 1) * stride for size, stride in zip(wanted.shape, wanted.stride)) if math.prod(
        wanted.shape) else 0
    if dtype is None or span * dtype.itemsize > _MOST_BYTES:
        raise _NotMade
    from ..capture.torch_private.operations import without_side_effects  # (it imports torch)

    try:
        with without_side_effects(), torch.inference_mode(wanted.inference):
            made = torch.empty_strided(wanted.shape, wanted.stride, dtype=dtype, device=wanted.device)
            if wanted.cls == "Parameter":
                return torch.nn.Parameter(made, wanted.requires_grad)
            return made.requires_grad_() if wanted.requires_grad else made
    except (RuntimeError, AssertionError) as error:  # (no such device, no gradient for integers)
        raise _NotMade from error
