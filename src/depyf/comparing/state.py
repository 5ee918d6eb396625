"""The same start for each run: copies of arguments, of modules' tensors, and of the state of random numbers."""

from __future__ import annotations

import contextlib
import random
import sys
from collections.abc import Iterator
from types import CodeType, FunctionType, MethodType
from typing import Any

import torch

from .tensors import Memo, copied


class Start:
    """The state that a call starts from.

    Args:
        function: what is called. Modules and tensors are found that it is, is a method of, holds in closures, or names
            as globals, and those among the arguments.
        args, kwargs: its arguments.
    """

    def __init__(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.function = function
        self.args = args
        self.kwargs = kwargs
        self.modules = _modules(function, args, kwargs)
        self.random = _random_state()

    @contextlib.contextmanager
    def run(self) -> Iterator[Run]:
        """Arguments for one run, and modules that hold copies of their tensors; afterwards all is as it was."""
        memo = Memo()
        restore: list[tuple[dict[str, Any], dict[str, Any]]] = []
        cells: list[tuple[Any, Any]] = []
        names: dict[str, torch.Tensor] = {}
        _set_random_state(self.random)
        try:
            for prefix, module in self.modules:
                for path, inner in module.named_modules():
                    for held in (inner.__dict__, inner._parameters, inner._buffers):
                        restore.append((held, dict(held)))
                        for key, value in list(held.items()):
                            if key in ("_parameters", "_buffers", "_modules"):
                                continue
                            plain = held is inner.__dict__ and type(value) in (list, dict)
                            if isinstance(value, torch.Tensor) or plain:
                                held[key] = copied(value, memo)
                            if isinstance(value, torch.Tensor):
                                names[".".join(part for part in (prefix, path, key) if part)] = held[key]
            for container, key, value in _loose_tensors(self.function):
                cells.append((container, (key, value)))
                copy = copied(value, memo)
                names[str(key)] = copy
                _put(container, key, copy)
            args = copied(self.args, memo)
            kwargs = copied(self.kwargs, memo)
            yield Run(args, kwargs, names)
        finally:
            for held, before in restore:
                held.clear()
                held.update(before)
            for container, (key, value) in cells:
                _put(container, key, value)
            _set_random_state(self.random)


class Run:
    """Copies for one run.

    Attributes:
        args, kwargs: of the call.
        held: tensors of modules, closures and globals, by name.
    """

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any], held: dict[str, torch.Tensor]) -> None:
        self.args = args
        self.kwargs = kwargs
        self.held = held


def _plain(function: Any) -> FunctionType | None:
    if isinstance(function, MethodType):
        function = function.__func__
    return function if isinstance(function, FunctionType) else None


def _reachable(function: Any) -> Iterator[tuple[str, Any, Any, Any]]:
    """Yield ``(name, value, container, key)`` of closures and globals of a function and of those defined in it."""
    plain = _plain(function)
    if plain is None:
        return
    for name, cell in zip(plain.__code__.co_freevars, plain.__closure__ or ()):
        try:
            yield name, cell.cell_contents, cell, name
        except ValueError:
            continue  # empty
    pending: list[CodeType] = [plain.__code__]
    seen: set[str] = set()
    while pending:
        code = pending.pop()
        pending += [const for const in code.co_consts if isinstance(const, CodeType)]
        for name in code.co_names:
            if name in plain.__globals__ and name not in seen:
                seen.add(name)
                yield name, plain.__globals__[name], plain.__globals__, name


def _modules(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[tuple[str, torch.nn.Module]]:
    result: dict[int, tuple[str, torch.nn.Module]] = {}

    def add(name: str, value: Any, depth: int = 0) -> None:
        if isinstance(value, torch.nn.Module):
            result.setdefault(id(value), (name, value))
        elif depth < 4 and isinstance(value, (tuple, list)):
            for index, item in enumerate(value):
                add(f"{name}[{index}]", item, depth + 1)
        elif depth < 4 and type(value) is dict:
            for key, item in value.items():
                add(f"{name}[{key!r}]", item, depth + 1)

    add("", function)
    add("", getattr(function, "__self__", None))
    for name, value, _, _ in _reachable(function):
        add(name, value)
    add("args", args)
    add("kwargs", kwargs)
    return list(result.values())


def _loose_tensors(function: Any) -> list[tuple[Any, Any, torch.Tensor]]:
    return [(container, key, value) for _, value, container, key in _reachable(function)
            if isinstance(value, torch.Tensor)]


def _put(container: Any, key: Any, value: Any) -> None:
    if isinstance(container, dict):
        container[key] = value
    else:
        container.cell_contents = value


def _random_state() -> tuple[Any, ...]:
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_available() and torch.cuda.is_initialized() else None
    numpy = sys.modules.get("numpy")
    return torch.get_rng_state(), cuda, random.getstate(), numpy.random.get_state() if numpy is not None else None


def _set_random_state(state: tuple[Any, ...]) -> None:
    torch.set_rng_state(state[0])
    if state[1] is not None:
        torch.cuda.set_rng_state_all(state[1])
    random.setstate(state[2])
    numpy = sys.modules.get("numpy")
    if numpy is not None and state[3] is not None:
        numpy.random.set_state(state[3])
