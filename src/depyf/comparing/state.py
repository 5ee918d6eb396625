"""One start for each run in this process: what a call can change is copied or noted, and afterwards is as it was."""

from __future__ import annotations

import collections
import contextlib
import copy
import functools
import random
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

from ..capture.torch_private.quiet import without_side_effects
from .reachable import Reachable, is_library, is_users, names_read, own_state


class CannotRepeat(RuntimeError):
    """A call cannot be run twice from one state; the message names what cannot be put back."""


@contextlib.contextmanager
def repeatable(roots: dict[str, Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[tuple[Any, Any]]:
    """Give arguments for one run; what it does to them, and to what the roots lead to, is undone at the end.

    Tensors are replaced by copies wherever an object holds them, with their strides and shared memory; so no operation
    of the run sees one of the program's. Other objects are the program's own, as guards ask for their identity.

    Args:
        roots: what is called, by name.
        args, kwargs: of the call.

    Raises:
        CannotRepeat: an iterator is among the objects, or a set of tensors.
    """
    start = _Start()
    states = _random_states()
    try:
        for place, value in {"args": args, "kwargs": kwargs, **roots}.items():
            start.add(place, value)
        start.put_copies()
        yield start.copied(args), start.copied(kwargs)
    finally:
        try:
            start.undo()
        finally:
            _set_random_states(states)


class _Start(Reachable):
    """Copies of tensors, and how what holds them is put back."""

    def __init__(self) -> None:
        super().__init__()
        self._copies: dict[int, Any] = {}
        self._memory: dict[int, Any] = {}
        self._undo: list[Callable[[], object]] = []
        self._put: list[Callable[[], None]] = []

    def put_copies(self) -> None:
        for put in self._put:
            put()

    def undo(self) -> None:
        """Put everything back.

        Raises:
            RuntimeError: something could not be; all else is.
        """
        failed: Exception | None = None
        for undo in reversed(self._undo):
            try:
                undo()
            except Exception as error:
                failed = error
        if failed is not None:
            raise RuntimeError(f"something that the call changed could not be put back: {failed}") from failed

    def _met(self, place: str, value: Any) -> None:
        """Note the state of one object that can change."""
        kind = type(value)
        if isinstance(value, types.AsyncGeneratorType) or (
                hasattr(kind, "__next__") and kind.__module__ in ("builtins", "itertools", "_io")):
            raise CannotRepeat(f"{place} is an iterator ({kind.__name__}), which one run uses up")
        own = own_state(value)
        if own is not None and own.put_back is not None:
            self._undo.append(own.put_back)
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
        for cls in kind.__mro__:
            if cls.__module__ not in ("builtins", "torch"):
                for member in vars(cls).values():
                    if isinstance(member, types.MemberDescriptorType):
                        self._slot(value, member)
        if isinstance(value, dict):
            self._mapping(value)
        elif isinstance(value, (list, collections.deque)):
            self._sequence(value)
        elif isinstance(value, set):
            before = value.copy()
            self._undo += [lambda: value.update(before), value.clear]  # (the last first)
        elif isinstance(value, types.FunctionType) and not is_library(value.__code__.co_filename):
            self._mapping(value.__globals__, {*names_read(value.__code__), "__warningregistry__"})
            self._mapping(value.__globals__.get("__warningregistry__", {}))
            self._defaults(value)
        elif isinstance(value, functools.partial):
            self._partial(value)

    def _partial(self, value: Any) -> None:
        before = value.func, value.args, value.keywords, vars(value)

        def put() -> None:
            keywords = {name: self.copied(each) for name, each in before[2].items()}
            value.__setstate__((before[0], self.copied(before[1]), keywords, before[3]))

        self._put.append(put)
        self._undo.append(lambda: value.__setstate__(before))

    def _tensor(self, place: str, tensor: torch.Tensor) -> Iterable[tuple[str, Any]]:
        return [(f"{place}.{name}", value) for name, value in vars(tensor).items()]

    def _cell(self, place: str, cell: types.CellType) -> Iterable[tuple[str, Any]]:
        try:
            before = cell.cell_contents
        except ValueError:
            self._undo.append(lambda: _empty(cell))
        else:
            self._put.append(lambda: setattr(cell, "cell_contents", self.copied(before)))
            self._undo.append(lambda: setattr(cell, "cell_contents", before))
        return super()._cell(place, cell)

    def _class(self, place: str, cls: type) -> Iterable[tuple[str, Any]]:
        if is_users(cls):
            self._attributes_of(cls)
        return super()._class(place, cls)

    def _mapping(self, value: dict[Any, Any], names: set[str] | None = None) -> None:
        """Note a dictionary; of a module's variables those of some names only."""
        before = dict(value) if names is None else {name: value[name] for name in names if name in value}
        # (Of a class of the program's, methods of its own are not called; an OrderedDict has its order beside.)
        base: Any = collections.OrderedDict if isinstance(value, collections.OrderedDict) else dict

        def put() -> None:
            for key, item in before.items():
                if (new := self.copied(item)) is not item:
                    base.__setitem__(value, key, new)
            if any(isinstance(key, torch.Tensor) for key in before):
                refill({self.copied(key): self.copied(item) for key, item in before.items()})

        def undo() -> None:
            if names is not None:
                for name in names - before.keys():
                    value.pop(name, None)
                value.update(before)
            elif len(value) != len(before) or any(
                    one is not other for pair in zip(value.items(), before.items()) for one, other in zip(*pair)):
                refill(before)

        def refill(items: dict[Any, Any]) -> None:
            base.clear(value)
            for key, item in items.items():
                base.__setitem__(value, key, item)

        self._put.append(put)
        self._undo.append(undo)

    def _defaults(self, function: types.FunctionType) -> None:
        before = function.__defaults__, function.__kwdefaults__
        if before[0] is not None and (new := self.copied(before[0])) is not before[0]:
            self._put.append(lambda: setattr(function, "__defaults__", new))
        self._undo.append(lambda: setattr(function, "__defaults__", before[0])
                          if function.__defaults__ is not before[0] else None)
        if before[1]:
            self._mapping(before[1])

    def _sequence(self, value: Any) -> None:
        before = list(value)

        def put() -> None:
            for number, item in enumerate(before):
                if (new := self.copied(item)) is not item:
                    value[number] = new

        def undo() -> None:
            value.clear()
            value.extend(before)

        self._put.append(put)
        self._undo.append(undo)

    def _slot(self, owner: Any, member: types.MemberDescriptorType) -> None:
        try:
            before = member.__get__(owner, type(owner))
            member.__set__(owner, before)
        except (AttributeError, TypeError):
            return  # empty, or read-only
        self._put.append(lambda: member.__set__(owner, self.copied(before)))
        self._undo.append(lambda: member.__set__(owner, before))

    def _attributes_of(self, cls: type) -> None:
        before = dict(vars(cls))

        def put() -> None:
            for name, item in before.items():
                if (new := self.copied(item)) is not item:
                    setattr(cls, name, new)

        def undo() -> None:
            for name in [name for name in vars(cls) if name not in before]:
                with contextlib.suppress(AttributeError, TypeError):
                    delattr(cls, name)
            for name, item in before.items():
                if vars(cls).get(name) is not item and name not in ("__dict__", "__weakref__"):
                    setattr(cls, name, item)

        self._put.append(put)
        self._undo.append(undo)

    def copied(self, value: Any) -> Any:
        """Return a tensor's copy, and tuples and the call's own containers with copies in them; else the value."""
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
            result.set_(
                self._memory[storage.data_ptr()], value.storage_offset(), value.shape, value.stride())
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


def _empty(cell: types.CellType) -> None:
    with contextlib.suppress(ValueError):
        del cell.cell_contents


def _random_states() -> tuple[Any, ...]:
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_available() and torch.cuda.is_initialized() else None
    numpy = sys.modules.get("numpy")
    return torch.get_rng_state(), cuda, random.getstate(), numpy.random.get_state() if numpy is not None else None


def _set_random_states(states: tuple[Any, ...]) -> None:
    torch.set_rng_state(states[0])
    if states[1] is not None:
        torch.cuda.set_rng_state_all(states[1])
    random.setstate(states[2])
    numpy = sys.modules.get("numpy")
    if numpy is not None and states[3] is not None:
        numpy.random.set_state(states[3])
