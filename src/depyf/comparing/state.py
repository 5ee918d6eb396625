"""The same start for each run in this process: what a call can change is copied or noted, and restored afterwards."""

from __future__ import annotations

import collections
import contextlib
import copy
import functools
import random
import sys
import types
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

import torch

from ..capture.torch_private.operations import without_side_effects
from .reachable import Reachable, is_library, is_users, names_read, own_state, slots_of

_ABSENT = object()


class CannotRepeat(RuntimeError):
    """A call cannot be run twice from one state; the message names what cannot be put back."""


@contextlib.contextmanager
def repeatable(roots: dict[str, Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[tuple[Any, Any]]:
    """Give arguments for one run; what it does to them, and to what the roots lead to, is undone at the end.

    Tensors are replaced by copies wherever an object holds them, with their strides and shared memory, so that no
    operation of the run sees one of the program's. Other objects are the program's own: guards ask for their identity.

    Raises:
        CannotRepeat: an iterator is among the objects, or a set of tensors.
        RuntimeError: something could not be put back; all else was.
    """
    start = _Start()
    with same_random_numbers():
        try:
            for place, value in {"args": args, "kwargs": kwargs, **roots}.items():
                start.add(place, value)
            for put in start.put:
                put()
            yield start.copied(args), start.copied(kwargs)
        finally:
            try:
                start.undo.close()
            except Exception as error:
                raise RuntimeError(f"something that the call changed could not be put back: {error}") from error


@contextlib.contextmanager
def same_random_numbers() -> Iterator[None]:
    """Restore the states of torch's, Python's and NumPy's random numbers at the end."""
    states: list[tuple[Any, Any]] = [(torch.set_rng_state, torch.get_rng_state()), (random.setstate, random.getstate())]
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        states.append((torch.cuda.set_rng_state_all, torch.cuda.get_rng_state_all()))
    if (numpy := sys.modules.get("numpy")) is not None:
        states.append((numpy.random.set_state, numpy.random.get_state()))
    try:
        yield
    finally:
        for put, state in states:
            put(state)


def seed_random_numbers(seed: int, names: Collection[str] = ("torch", "python", "numpy")) -> None:
    """Seed some of the random numbers of torch, Python and NumPy."""
    if "torch" in names:
        torch.manual_seed(seed)
    if "python" in names:
        random.seed(seed)
    numpy = sys.modules.get("numpy")
    if "numpy" in names and numpy is not None:
        numpy.random.seed(seed)


class _Start(Reachable):
    """Notes the content of each object that is met: copies are put in before the run, the content after it."""

    def __init__(self) -> None:
        super().__init__()
        self._copies: dict[int, Any] = {}
        self._memory: dict[int, Any] = {}
        self.put: list[Callable[[], object]] = []
        self.undo = contextlib.ExitStack()

    def _note(self, before: Any, write: Callable[[Any], object]) -> None:
        """Note a value, or the items of a container as a tuple, and what writes another in its place."""
        def put() -> None:
            if (new := self.copied(before)) is not before:
                write(new)

        self.put.append(put)
        self.undo.callback(write, before)

    def _met(self, place: str, value: Any) -> None:
        kind = type(value)
        if isinstance(value, types.AsyncGeneratorType) or (
                hasattr(kind, "__next__") and kind.__module__ in ("builtins", "itertools", "_io")):
            raise CannotRepeat(f"{place} is an iterator ({kind.__name__}), which one run uses up")
        own = own_state(value)
        if own is not None and own.put_back is not None:
            self.undo.callback(own.put_back)
        elif own is not None or kind.__module__ == "weakref" and hasattr(kind, "__len__") and len(value):
            raise CannotRepeat(f"{place} is of the type {kind.__name__}, which cannot be put back")
        if isinstance(value, (set, frozenset, types.MappingProxyType)) and any(
                isinstance(each, torch.Tensor) for each in (
                    value.values() if isinstance(value, types.MappingProxyType) else value)):
            raise CannotRepeat(f"{place} is a {kind.__name__} of tensors")
        if isinstance(value, types.ModuleType):
            if not is_library(getattr(value, "__file__", None) or ""):
                self._mapping(vars(value))
            return
        if isinstance(value, torch.Tensor):
            return
        attributes = getattr(value, "__dict__", None)
        if type(attributes) is dict:
            self._mapping(attributes)
        for _, member in slots_of(kind):
            try:
                before = member.__get__(value, kind)
            except AttributeError:
                self.undo.callback(_empty, value, member)
                continue
            with contextlib.suppress(AttributeError, TypeError):  # read-only
                member.__set__(value, before)
                self._note(before, functools.partial(member.__set__, value))
        if isinstance(value, dict):
            self._mapping(value)
        elif isinstance(value, (list, collections.deque, set)):
            self._note(tuple(value), functools.partial(_write_items, value))
        elif isinstance(value, types.CellType):
            try:
                self._note(value.cell_contents, functools.partial(setattr, value, "cell_contents"))
            except ValueError:  # (empty)
                self.undo.callback(delattr, value, "cell_contents")
        elif isinstance(value, type):
            if is_users(value):
                self._note(tuple(vars(value).items()), functools.partial(_write_attributes, value))
        elif isinstance(value, types.FunctionType) and not is_library(value.__code__.co_filename):
            self._mapping(value.__globals__, {*names_read(value.__code__), "__warningregistry__"})
            self._mapping(value.__globals__.get("__warningregistry__", {}))
            self._note(value.__defaults__, lambda defaults: setattr(value, "__defaults__", defaults)
                       if value.__defaults__ is not defaults else None)
            self._mapping(value.__kwdefaults__ or {})
        elif isinstance(value, functools.partial):
            self._note((value.func, value.args, value.keywords, vars(value)), getattr(value, "__setstate__"))  # noqa: B009

    def _tensor(self, place: str, tensor: torch.Tensor) -> Iterable[tuple[str, Any]]:
        return [(f"{place}.{name}", value) for name, value in vars(tensor).items()]

    def _mapping(self, value: dict[Any, Any], names: set[str] | None = None) -> None:
        """Note a dictionary; of a module's variables those with some names only."""
        before = value.items() if names is None else ((name, value[name]) for name in names if name in value)
        # (A program's subclass may override methods, which are not to be called; an OrderedDict also stores an order.)
        base: Any = collections.OrderedDict if isinstance(value, collections.OrderedDict) else dict

        def write(pairs: tuple[tuple[Any, Any], ...]) -> None:
            items = dict(pairs)
            if names is not None:
                for name in names - items.keys():
                    value.pop(name, None)
            elif len(value) != len(items) or any(one is not other for one, other in zip(value, items)):
                base.clear(value)
            for key, item in items.items():
                if base.get(value, key, _ABSENT) is not item:
                    base.__setitem__(value, key, item)

        self._note(tuple(before), write)

    def copied(self, value: Any) -> Any:
        """Return the copy of a tensor, a tuple with such copies in it, else the value."""
        if isinstance(value, torch.Tensor):
            if id(value) not in self._copies:
                self._alive.append(value)
                with without_side_effects():
                    self._copies[id(value)] = self._copy(value)
            return self._copies[id(value)]
        if isinstance(value, tuple):
            items = [self.copied(item) for item in value]
            if any(new is not old for new, old in zip(items, value)):
                return type(value)(*items) if hasattr(value, "_fields") else tuple.__new__(type(value), items)
        return value

    def _copy(self, value: torch.Tensor) -> torch.Tensor:
        if type(value) not in (torch.Tensor, torch.nn.Parameter) or value.layout is not torch.strided \
                or value.is_quantized or value.is_meta or value.is_conj() or value.is_neg():
            try:
                return copy.deepcopy(value.detach()).requires_grad_(value.requires_grad)
            except (RuntimeError, TypeError, NotImplementedError) as error:
                raise CannotRepeat(f"a {type(value).__name__} cannot be copied: {error}") from error
        storage = value.untyped_storage()
        if storage.data_ptr() not in self._memory:
            self._alive.append(storage)
            self._memory[storage.data_ptr()] = storage.clone()
        with torch.inference_mode(value.is_inference()):
            result = torch.empty(0, dtype=value.dtype, device=value.device)
            result.set_(self._memory[storage.data_ptr()], value.storage_offset(), value.shape, value.stride())
        if isinstance(value, torch.nn.Parameter):
            result = torch.nn.Parameter(result, requires_grad=value.requires_grad)
        elif value.requires_grad:
            result.requires_grad_()
            if not value.is_leaf:
                with torch.enable_grad():
                    result = result.clone()
        vars(result).update((name, self.copied(each)) for name, each in vars(value).items())
        if value.is_leaf and value.grad is not None:
            result.grad = self.copied(value.grad)
        return result


def _write_items(value: Any, items: tuple[Any, ...]) -> None:
    if len(value) != len(items) or any(one is not other for one, other in zip(value, items)):
        value.clear()
        (value.update if isinstance(value, set) else value.extend)(items)


def _write_attributes(cls: type, pairs: tuple[tuple[str, Any], ...]) -> None:
    items = dict(pairs)
    for name in [name for name in vars(cls) if name not in items]:
        with contextlib.suppress(AttributeError, TypeError):
            delattr(cls, name)
    for name, item in items.items():
        if vars(cls).get(name) is not item and name not in ("__dict__", "__weakref__"):
            setattr(cls, name, item)


def _empty(owner: Any, member: types.MemberDescriptorType) -> None:
    with contextlib.suppress(AttributeError):
        member.__delete__(owner)
